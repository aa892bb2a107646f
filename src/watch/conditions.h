// What makes a round worth keeping, in the words of `--when`:
//
//     nan        a tensor holds a NaN
//     inf        a tensor holds an infinity
//     norm>X     the norm of a tensor is larger than X
//     every=N    every N-th round: 0, N, 2 N, …
//     spike=F    the norm or the largest magnitude of a tensor is more than F times its median over
//                earlier rounds in which the tensor had the same shape
//
//   auto conditions = parse_conditions("nan,spike=10");
//   if (!conditions) return fail(conditions.error());  // names the word and says what is known
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace ait::watch {

struct Condition {
  enum class Kind : uint8_t { kNan, kInf, kNorm, kEvery, kSpike };
  Kind kind = Kind::kNan;
  double limit = 0;  // X, N or F
  std::string text;  // as it was given: "norm>1e4"
};

// At least one; blanks around the commas do not count. A condition that is given twice counts once.
Result<std::vector<Condition>> parse_conditions(std::string_view list);

// Statistics of one tensor. The extremes are NaN where one element is; the norm is that of the finite
// elements.
struct Values {
  double maximum = 0;
  double minimum = 0;
  double norm = 0;
  bool has_nan = false;
  bool has_inf = false;

  // Of four numbers, as tables have them. One that holds both NaN and infinities shows only the NaN.
  static Values of(double maximum, double minimum, double norm) {
    return {maximum, minimum, norm, std::isnan(maximum),
            std::isinf(maximum) || std::isinf(minimum)};
  }
  double magnitude() const { return std::fmax(std::fabs(maximum), std::fabs(minimum)); }
};

}  // namespace ait::watch
