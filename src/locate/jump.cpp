#include "locate/jump.h"

#include <algorithm>

#include "compare/non_finite.h"

namespace ait::locate {
namespace {

// A single rounded operation stays within a few units in the last place of the narrower side; an
// error ten times that of everything before it is new.
constexpr double kJump = 10;

// Half a unit in the last place, the relative rounding error of a type.
double rounding_of(const compare::Side& side) {
  switch (side.dtype.value_or(DType::kFloat32)) {
    case DType::kFloat16:
      return 0x1p-11;
    case DType::kBFloat16:
      return 0x1p-8;
    case DType::kFloat64:
      return 0x1p-53;
    default:
      return 0x1p-24;
  }
}

}  // namespace

void ErrorJump::add(const compare::Row& row) {
  if (row_) return;
  if (row.token != token_) {
    token_ = row.token;
    largest_ = 0;
  }
  const metrics::Comparison* c = compare::metrics_of(row);
  const bool broken = compare::non_finite_differ(row);
  if (c == nullptr && !row.distance_at_least && !broken) return;
  const double error =
      c != nullptr ? c->relative_euclidean_distance : row.distance_at_least.value_or(0);
  const double floor = std::max(rounding_of(row.golden), rounding_of(row.actual));
  if (broken || error > kJump * std::max(largest_, floor)) {
    row_ = row;
    before_ = largest_;
  }
  largest_ = std::max(largest_, error);
}

}  // namespace ait::locate
