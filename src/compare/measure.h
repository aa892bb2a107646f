// What is measured of one pair of tensors, and why something could not be.
//
//   Row row = measure(load(golden_path), load(my_path), options);
//   row.golden.path = golden_path;
//
// A pair always gives a row: a side that cannot be read, shapes that do not fit and values that are
// not finite all end up in `reason`, in the old tools' words where they had any.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "base/error.h"
#include "metrics/compare.h"
#include "tensor/tensor.h"

namespace ait::compare {

// Whose definitions the seven metrics follow; docs/metrics.md has the differences.
enum class MetricCompat : uint8_t {
  kOwn,
  kMsit,  // nothing where a value is not finite, old masks and clamps
  kAit,   // msit's, and relative_euclidean_distance without its square root
};

struct Options {
  MetricCompat compat = MetricCompat::kOwn;
  bool rows = false;   // also the worst row and the divergence row by row
  size_t threads = 0;  // 0: all cores
  const std::atomic<bool>* stop =
      nullptr;  // when it becomes true, what is not yet measured is left out
};

struct Side {
  // As the report shows them; measure() leaves them to the caller.
  std::string path;
  std::string operation;
  std::string type;
  std::string rank;
  std::string transform;

  std::optional<DType> dtype;
  Shape shape;
  std::optional<metrics::Side> statistics;

  bool present() const { return dtype.has_value(); }  // a tensor was read
};

struct Row {
  std::string token_id = "0";
  std::string data_id = "0";
  std::string pairing;         // how sure it is that the two belong together: "certain"
  std::string pairing_reason;  // and why
  Side golden;
  Side actual;
  // Set wherever elements stood against elements; see metrics_of().
  std::optional<metrics::Comparison> comparison;
  std::string reason;  // sentences joined by blanks; empty when there is nothing to say
};

// The comparison where its seven metrics hold: some position was compared, and the old tools' rule
// did not withhold them. nullptr otherwise.
const metrics::Comparison* metrics_of(const Row& row);

// The reasons of docs/metrics.md, word for word.
namespace reasons {
inline constexpr const char* kShape = "data shape doesn't match.";
inline constexpr const char* kFlattened = "shape differs, compared flattened.";
inline constexpr const char* kEmpty = "data is empty.";
inline constexpr const char* kGoldenNonFinite = "golden_data includes NAN or inf.";
inline constexpr const char* kActualNonFinite = "my_data includes NAN or inf.";
inline constexpr const char* kGoldenZero = "golden_data is all zero.";
inline constexpr const char* kActualZero = "my_data is all zero.";
inline constexpr const char* kComplex = "complex data, compared as pairs of reals.";
inline constexpr const char* kComplexAgainstReal = "complex against real data, not compared.";
}  // namespace reasons

// Thread-safe. A failed Result becomes the row's reason; the other side still gets its statistics.
Row measure(const Result<Tensor>& golden, const Result<Tensor>& actual, const Options& options);

}  // namespace ait::compare
