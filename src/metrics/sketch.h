// A few hundred numbers that stand for a tensor which was not kept, so that its distance to another
// one can still be estimated.
//
//   const Sketch golden = sketch(golden_tensor.view());   // while it is there
//   const Sketch mine = sketch(my_tensor.view());
//   const auto estimate = metrics::estimate(golden, golden_norm, mine, my_norm);
//   if (estimate && estimate->distance.least > 0.01) …    // they differ by more than a hundredth
//
// The projections are sums of the elements under signs that look random but are always the same.
// They are linear: the projections of a difference are the differences of projections, and their
// sum of squares is that of the difference to a few parts in a hundred, however small it is. So a
// distance of 1e-5 is known as well as one of 0.5. Which rows and columns differ is seen from their
// norms. docs/metrics.md has the definition and the bound, docs/formats/statistics_csv.md the text.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/tensor.h"

namespace ait::metrics {

struct Sketch {
  // Every element is in one bucket of each part, under a sign.
  static constexpr size_t kParts = 4;
  static constexpr size_t kBuckets = 64;
  // More rows or columns are taken together in groups of neighbours, all but the last of one size.
  static constexpr size_t kMostGroups = 256;

  std::array<float, kParts * kBuckets> projections{};
  size_t row_count = 0;  // a row is the last dimension
  size_t column_count = 0;
  std::vector<float> rows;     // norms of the groups of rows
  std::vector<float> columns;  // and of columns, the same place in all rows

  bool operator==(const Sketch&) const = default;
};

// Elements that are not finite count as 0, complex tensors as twice as many reals.
Sketch sketch(const TensorView& tensor);

// As text, and back; nothing where it is none of a tensor of this type and shape.
std::string sketch_text(const Sketch& sketch);
std::optional<Sketch> parse_sketch(std::string_view text, DType dtype, const Shape& shape);

struct Estimate {
  struct Range {
    double value = 0;
    double least = 0;
    double most = 0;
    bool operator==(const Range&) const = default;
  };
  // The rows or columns whose norms differ most, relative to golden's, or to the usual one
  // where golden's is smaller.
  struct Group {
    size_t first = 0;
    size_t last = 0;
    double difference = 0;
    bool operator==(const Group&) const = default;
  };
  Range distance;  // relative euclidean distance
  Range cosine;
  std::optional<Group> row;  // nothing where no norm differs
  std::optional<Group> column;

  bool operator==(const Estimate&) const = default;
};

// Norms are those of the finite elements, right to 2^-20 of themselves. Nothing where the two have
// not as many rows and columns, a number is not finite, or golden is all zero.
std::optional<Estimate> estimate(const Sketch& golden, double golden_norm, const Sketch& actual,
                                 double actual_norm);

}  // namespace ait::metrics
