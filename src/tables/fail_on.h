// --fail-on: the conditions under which a comparison ends with status 1.
//
//   auto conditions = parse_fail_on("cosine_similarity<0.999,nan");
//   if (!conditions) return fail(conditions.error());          // kUsage, naming the choices
//   for (const Condition& condition : *conditions)
//     if (hits(condition, row)) …
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "tables/comparison.h"

namespace ait::tables {

struct Condition {
  enum class Kind : uint8_t {
    kBelow,      // metric<number
    kAbove,      // metric>number
    kFailed,     // neither metrics nor statistics of both sides: unreadable, shapes do not fit, …
    kNan,        // a NaN or an infinity on either side
    kUnmatched,  // a side has no partner
  };
  Kind kind;
  std::string text;  // as the user wrote it
  const ComparisonColumn* metric = nullptr;
  double limit = 0;
};

Result<std::vector<Condition>> parse_fail_on(std::string_view list);

// A metric that was not measured hits nothing (`failed` is there for that), but for a distance that
// is known to be larger than the limit; one that is NaN hits any limit.
bool hits(const Condition& condition, const compare::Row& row);

}  // namespace ait::tables
