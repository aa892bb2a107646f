#include "locate/noise_run.h"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

namespace ait::locate {
namespace {

// The root mean square of a rounding, in units; and which part of a noise run's errors is smallest.
constexpr double kUsualRounding = 0.42;
constexpr size_t kLowest = 20;

uint64_t golden_key(const compare::Row& row) {
  std::string text;
  for (const capture::TensorRecord& record : row.golden.records)
    text += record.path + ":" + record.member + ";";
  const match::Transform& t = row.golden.transform;
  return std::hash<std::string>()(text + std::to_string(t.first) + "," + std::to_string(t.taken));
}

// Where the noise run has the same operations as mine: one tensor of golden may be held against
// several of them.
uint64_t own_key(uint64_t golden, const compare::Row& row) {
  return golden ^ (std::hash<std::string>()(row.subject.name + "/" + row.subject.tensor + "@" +
                                            row.subject.rank) *
                   0x9e3779b97f4a7c15ULL);
}

}  // namespace

void NoiseRun::add(const compare::Row& row) {
  const Value value = value_of(row, 0);
  if (!value.is_compared || value.is_broken || row.golden.is_missing()) return;
  const uint64_t golden = golden_key(row);
  const Measured measured = {value.errors, value.spread,       value.unit,
                             value.unit,   value.is_identical, value.share_differing};
  errors_[own_key(golden, row)] = measured;
  Measured& any = errors_[golden];
  any.type_unit = any.unit = std::max(any.unit, value.unit);
  any.spread = std::max(any.spread, value.spread);
  any.is_identical &= value.is_identical;
  any.share_differing = std::max(any.share_differing, value.share_differing);
  for (size_t k = 0; k < kMeasures; ++k) any.errors[k] = std::max(any.errors[k], value.errors[k]);
}

// A run that was perturbed by more than its own types round is off by that everywhere.
void NoiseRun::settle() {
  std::vector<double> errors;
  for (const auto& [key, measured] : errors_)
    if (measured.errors[0] > 0) errors.push_back(measured.errors[0]);
  if (errors.empty()) return;
  const auto low = errors.begin() + static_cast<ptrdiff_t>(errors.size() / kLowest);
  std::nth_element(errors.begin(), low, errors.end());
  perturbed_ = *low / kUsualRounding;
}

std::optional<NoiseRun::Measured> NoiseRun::of(const compare::Row& row) const {
  const uint64_t golden = golden_key(row);
  auto found = errors_.find(own_key(golden, row));
  if (found == errors_.end()) found = errors_.find(golden);
  if (found == errors_.end()) return std::nullopt;
  Measured out = found->second;
  out.unit = std::max(out.unit, perturbed_);
  return out;
}

}  // namespace ait::locate
