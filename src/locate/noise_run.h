// What a third run is off by, which is healthy by definition.
//
//   NoiseRun noise;
//   for (const compare::Row& row : rows_of_the_noise_run) noise.add(row);
//   noise.settle();
//   if (const auto measured = noise.of(my_row)) …        // of the same golden tensor
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>

#include "locate/value.h"

namespace ait::locate {

// Errors of a run that is healthy by definition, against the same golden: a repeat, golden in
// another precision, or golden with its inputs moved by a rounding unit.
class NoiseRun {
 public:
  void add(const compare::Row& row);
  // After the last row.
  void settle();
  bool is_empty() const { return errors_.empty(); }
  size_t size() const { return errors_.size(); }

  struct Measured {
    Errors errors{};
    double spread = 0;
    double unit = 0;       // what it was rounded by, or perturbed
    double type_unit = 0;  // what its type rounds by
    bool is_identical = true;
    double share_differing = 0;
  };
  // Of the same golden tensor; nothing where the noise run has none.
  std::optional<Measured> of(const compare::Row& row) const;

 private:
  std::unordered_map<uint64_t, Measured> errors_;  // by golden's files and columns
  double perturbed_ = 0;  // the rounding unit that its smallest errors are of
};

}  // namespace ait::locate
