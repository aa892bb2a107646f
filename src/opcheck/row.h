// What came of checking one output of one operation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/dtype.h"

namespace ait::opcheck {

// What a result must keep to by the old tools' standard: this share of its elements is right to a
// relative error of `tolerance`.
struct Standard {
  double tolerance = 0;
  double rate_percent = 0;
  bool by_one = false;  // small integers: an element may be off by one
};

// The metrics that a check gives beside the share of right elements, where they are asked for.
struct Metrics {
  bool absolute = false;  // abs
  bool cosine = false;    // cos_sim
  bool kl = false;        // kl
};

// The type that floating tensors are brought to before anything is computed of them.
enum class Precision : uint8_t { kAsRecorded, kFloat16, kFloat32 };

enum class Verdict : uint8_t {
  kPass,
  kFailed,
  kNoGolden,  // "addition failed": nothing to hold it against
};

// What the source of a row begins with whose output a library gave when it ran the operation again.
inline constexpr std::string_view kRerunSource = "rerun: ";

struct CheckRow {
  std::string id;
  std::string type;
  std::string param;
  std::string folder;
  std::string again_folder;  // the smallest part of the dump that holds all it takes to check again
  std::string rank;
  std::string round;
  std::optional<size_t> output;  // nothing where none was compared
  std::optional<Standard> standard;
  Verdict verdict = Verdict::kFailed;

  // By the old definitions; nothing where they were not asked for or nothing was compared.
  std::optional<double> relative_rate_percent;
  std::optional<double> max_relative_error;
  std::optional<double> absolute_rate_percent;
  std::optional<double> max_absolute_error;
  std::optional<double> cosine_similarity;
  std::optional<double> kl_divergence;

  // How far the worst element is off, in bounds of what rounding explains; above 1 it does not.
  std::optional<double> of_bound;
  std::optional<size_t> worst_element;
  double worst_golden = 0;
  double worst_actual = 0;
  std::string form;  // which of several sound results it agrees with best
  // What was checked: "rerun: libx.so", "dump: …" where it could not be run again; empty: the dump.
  std::string source;

  std::vector<std::string> reasons;
  std::string error_data;  // the folder where the operation was saved, where it failed
  std::string again;       // the command that checks this operation alone, where it failed

  bool was_compared() const { return relative_rate_percent.has_value(); }
  bool is_outside_bound() const { return of_bound && !(*of_bound <= 1); }
  // It was compared, and is not what it should be by one of the two verdicts.
  bool is_failing() const {
    return is_outside_bound() || (was_compared() && verdict == Verdict::kFailed);
  }
};

using CheckRows = std::vector<CheckRow>;

}  // namespace ait::opcheck
