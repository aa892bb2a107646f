#include "locate/inflow.h"

#include <algorithm>
#include <cmath>

namespace ait::locate {
namespace {

using capture::OpKind;

// The worst of many rows that are alike is that much farther off than all of them.
constexpr double kRowOverWhole = 1.5;

// The addends of a single row or column of a sum are not as large as those of all: one that is small
// on the whole may be this part of it there.
constexpr double kLocalShare = 0.3;

size_t elements(const Value& value) { return value.rows * value.columns; }

// What a module made of several parts returns has a row for each choice again.
bool puts_together(const Value& value, const Value& choices) {
  return value.is_leaf && value.kind == OpKind::kUnknown && value.rows == choices.rows;
}

}  // namespace

Inflow::Inflow(const std::vector<Value>& values, const Run& run,
               std::unordered_map<uint64_t, Errors>& cache)
    : values_(values), run_(run), inputs_(run.size()) {
  for (size_t i = 0; i < run.size(); ++i) {
    const Value& value = values[i];
    is_sorted_.push_back(is_sorted(value));
    others_.push_back(share_of_others(value));
    inputs_[i] = inputs_of(value);
    if (!value.reads_cache) continue;
    Errors& known = cache[value.id];
    for (size_t k = 0; k < kMeasures; ++k)
      known[k] = inputs_[i][k] = std::max(known[k], inputs_[i][k]);
  }
}

bool Inflow::is_sorted(const Value& value) const {
  bool sorted = false;
  for (const uint32_t at : value.sources) {
    const Value& source = values_[at];
    if (source.is_discrete && puts_together(value, source)) return false;
    if (source.is_discrete)
      sorted |= measured(at) != nullptr && !measured(at)->is_identical;
    else
      sorted |= is_sorted_[at] && source.rows == value.rows;
  }
  return sorted;
}

double Inflow::share_of_others(const Value& value) const {
  double share = 0;
  for (const uint32_t at : value.sources) {
    const NoiseRun::Measured* const its = measured(at);
    if (its == nullptr || !values_[at].is_discrete || its->is_identical) continue;
    share = std::max(share, puts_together(value, values_[at]) ? its->share_differing : 1);
  }
  return share;
}

Errors Inflow::inputs_of(const Value& value) const {
  if (is_plain_sum(value)) return inputs_of_sum(value);
  Errors inputs{};
  for (const uint32_t at : value.sources) {
    const Value& source = values_[at];
    const NoiseRun::Measured* const its = measured(at);
    if (its == nullptr || source.is_broken || source.is_discrete) continue;
    // A table of angles takes no more of what it is given than its type.
    if (value.kind == OpKind::kOther && elements(source) != elements(value)) continue;
    // Rows that were sorted by choices are not those of what is put together from them.
    if (is_sorted_[at] && value.rows != source.rows) continue;
    // The rows of what holds some of them may be padding, which nobody minds.
    if (source.has_padding && !value.has_padding && value.rows != source.rows)
      inputs[kWhole] = std::max(inputs[kWhole], kOtherRow);
    // Some of the rows may be those that are farthest off.
    const bool takes_some = value.rows < source.rows;
    inputs[kWhole] = std::max({inputs[kWhole], its->spread, takes_some ? its->errors[kRow] : 0});
    inputs[kRow] = std::max({inputs[kRow], its->errors[kRow], kRowOverWhole * its->spread});
    const double rows =
        takes_some ? static_cast<double>(source.rows) / static_cast<double>(value.rows) : 1;
    inputs[kColumn] = std::max(inputs[kColumn], its->errors[kColumn] * std::sqrt(rows));
  }
  return inputs;
}

// A sum whose addends are all known is off by what these are, each as large as it is.
bool Inflow::is_plain_sum(const Value& value) const {
  return is_sum(value) && value.size > 0 &&
         std::all_of(value.sources.begin(), value.sources.end(), [&](uint32_t at) {
           const Value& source = values_[at];
           return is_finite(source) && !source.is_discrete && source.size > 0 &&
                  elements(source) == elements(value);
         });
}

Errors Inflow::inputs_of_sum(const Value& value) const {
  Errors inputs{};
  Errors most{};
  for (const uint32_t at : value.sources)
    if (const NoiseRun::Measured* const its = measured(at); its != nullptr)
      for (size_t k = 0; k < kMeasures; ++k) {
        inputs[k] = std::hypot(inputs[k], its->errors[k] * values_[at].size / value.size);
        most[k] = std::max(most[k], its->errors[k]);
      }
  inputs[kRow] = std::max({inputs[kRow], kRowOverWhole * inputs[kWhole], kLocalShare * most[kRow]});
  inputs[kColumn] = std::max(inputs[kColumn], kLocalShare * most[kColumn]);
  return inputs;
}

}  // namespace ait::locate
