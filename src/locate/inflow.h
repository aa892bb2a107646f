// How far off what went into each value of a token is, in my run or in a noise run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "locate/noise_run.h"
#include "locate/value.h"

namespace ait::locate {

inline constexpr size_t kWhole = static_cast<size_t>(Measure::kWhole);
inline constexpr size_t kRow = static_cast<size_t>(Measure::kRow);
inline constexpr size_t kColumn = static_cast<size_t>(Measure::kColumn);

// Two rows that have nothing to do with each other are that far from each other.
inline constexpr double kOtherRow = 1.5;

inline bool is_finite(const Value& value) { return value.is_compared && !value.is_broken; }

// A dropout of two values was given their sum.
inline bool is_sum(const Value& value) {
  return (value.kind == capture::OpKind::kAdd || value.kind == capture::OpKind::kMove) &&
         value.sources.size() > 1;
}

class Inflow {
 public:
  using Run = std::vector<std::optional<NoiseRun::Measured>>;

  // `run` has an entry for each value, or none at all. `cache` is what is kept of the tokens before:
  // what attention finds is off by what went into it there. Both values and run are to outlive this.
  Inflow(const std::vector<Value>& values, const Run& run,
         std::unordered_map<uint64_t, Errors>& cache);

  const Errors& operator[](size_t i) const { return inputs_[i]; }
  // The share of a value's rows that are others, since another choice was made for them: all of them
  // where its rows are those of one choice.
  double others(size_t i) const { return others_[i]; }

 private:
  const NoiseRun::Measured* measured(size_t i) const { return run_[i] ? &*run_[i] : nullptr; }
  bool is_sorted(const Value& value) const;
  double share_of_others(const Value& value) const;
  Errors inputs_of(const Value& value) const;
  bool is_plain_sum(const Value& value) const;
  Errors inputs_of_sum(const Value& value) const;

  const std::vector<Value>& values_;
  const Run& run_;
  std::vector<Errors> inputs_;
  std::vector<double> others_;
  std::vector<bool> is_sorted_;  // its rows are those of choices that differ
};

}  // namespace ait::locate
