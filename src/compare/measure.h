// What is measured of one pair of tensors, and why something could not be.
//
//   Row row = measure(load(golden_path), load(my_path), options);
//   row.golden.records = {golden_record};
//
// A pair always gives a row: a side that cannot be read, shapes that do not fit and values that are
// not finite all end up in `reason`, in the old tools' words where they had any.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "compare/row.h"
#include "formats/registry.h"
#include "metrics/compare.h"
#include "metrics/sketch.h"
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
  // When it becomes true, what is not yet measured is left out.
  const std::atomic<bool>* stop = nullptr;
  bool profile = false;  // also where in each tensor the error is
};

// What a side brings: its tensor, or what was kept in its place.
struct Content {
  DType dtype = DType::kFloat32;
  Shape shape;
  std::optional<Tensor> tensor;
  std::optional<metrics::Side> statistics;  // of a side without a tensor
  double rounding = 0;                      // of these: formats::Description::Statistics
  std::optional<metrics::Sketch> sketch;
  double rounding_of_type = 0;  // likewise
  std::string checksum;         // of data that were not kept; or empty

  Content() = default;
  Content(Tensor whole)  // NOLINT: a tensor is one kind of content
      : dtype(whole.dtype()), shape(whole.shape()), tensor(std::move(whole)) {}
  explicit Content(const formats::Description& description);
};

// The reasons of docs/metrics.md, word for word.
namespace reasons {
inline constexpr const char* kShape = "data shape doesn't match.";
inline constexpr const char* kFlattened = "shape differs, compared flattened.";
inline constexpr const char* kExtremes = "only minimum and maximum are compared.";
inline constexpr const char* kEmpty = "data is empty.";
inline constexpr const char* kGoldenNonFinite = "golden_data includes NAN or inf.";
inline constexpr const char* kActualNonFinite = "my_data includes NAN or inf.";
inline constexpr const char* kGoldenZero = "golden_data is all zero.";
inline constexpr const char* kActualZero = "my_data is all zero.";
inline constexpr const char* kGoldenStatistics =
    "golden_data holds statistics only: max, min, mean and norm are given.";
inline constexpr const char* kActualStatistics =
    "my_data holds statistics only: max, min, mean and norm are given.";
inline constexpr const char* kGoldenDescription = "golden_data holds type and shape only.";
inline constexpr const char* kActualDescription = "my_data holds type and shape only.";
inline constexpr const char* kSameChecksum =
    "the checksums of the data are equal: every element is identical.";
inline constexpr const char* kOtherChecksum =
    "the checksums of the data differ: they are not identical.";
inline constexpr const char* kComplex = "complex data, compared as pairs of reals.";
inline constexpr const char* kComplexAgainstReal = "complex against real data, not compared.";
}  // namespace reasons

// Thread-safe. A failed Result becomes the row's reason; the other side still gets its statistics.
// Who was compared (records, subject, token) is left to the caller. `padding`: rows of the tensors
// that hold no token, see metrics::Request; null: none is known.
Row measure(const Result<Content>& golden, const Result<Content>& actual, const Options& options,
            const std::vector<bool>* padding = nullptr);

}  // namespace ait::compare
