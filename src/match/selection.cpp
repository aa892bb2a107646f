#include "match/selection.h"

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "metrics/elements.h"

namespace ait::match {
namespace {

using Row = std::vector<double>;

// Fewer numbers than these may be the same by chance.
constexpr size_t kFewestColumns = 8;

// Whoever has more rows has no rows of tokens.
constexpr size_t kMostRows = size_t{1} << 16;

// A tensor as rows of its last dimension.
class Rows {
 public:
  explicit Rows(const Tensor& tensor)
      : tensor_(tensor),
        columns_(tensor.shape().empty() ? 1 : static_cast<size_t>(tensor.shape().back())) {}

  size_t columns() const { return columns_; }
  size_t count() const { return tensor_.elements() / columns_; }
  Row begin(size_t row, size_t columns) const {
    Row out(columns);
    metrics::read_elements(tensor_.view(), row * columns_, columns, out.data());
    return out;
  }
  Row row(size_t row) const { return begin(row, columns_); }

 private:
  const Tensor& tensor_;
  size_t columns_;
};

bool is_constant(const Row& row) {
  return std::all_of(row.begin(), row.end(), [&](double value) { return value == row[0]; });
}

bool has_row(const Rows& whole, const Row& wanted) {
  const Row first(wanted.begin(), wanted.begin() + kFewestColumns);
  for (size_t row = 0; row < whole.count(); ++row)
    if (whole.begin(row, kFewestColumns) == first && whole.row(row) == wanted) return true;
  return false;
}

std::optional<size_t> find_in_row(const Row& whole, const Row& wanted) {
  const auto found = std::search(whole.begin(), whole.end(), wanted.begin(), wanted.end());
  if (found == whole.end()) return std::nullopt;
  return static_cast<size_t>(found - whole.begin());
}

}  // namespace

Selection find_selection(const Tensor& part, const Tensor& whole) {
  if (part.elements() == 0 || part.elements() >= whole.elements()) return Selection::kNone;
  const Rows small(part);
  const Rows large(whole);
  const bool may_be_rows = small.columns() == large.columns() && large.count() <= kMostRows;
  const bool may_be_columns =
      small.columns() < large.columns() && small.count() % large.count() == 0;
  if (small.columns() < kFewestColumns || (!may_be_rows && !may_be_columns))
    return Selection::kNone;
  const size_t last = small.count() - 1;
  const size_t pieces = small.count() / large.count();  // of each row, where they are columns
  std::optional<size_t> place;
  for (const size_t row : std::set<size_t>{0, last / 3, 2 * last / 3, last}) {
    const Row wanted = small.row(row);
    if (is_constant(wanted)) return Selection::kNone;
    if (may_be_rows) {
      if (!has_row(large, wanted)) return Selection::kNone;
      continue;
    }
    const auto found = find_in_row(large.row(row / pieces), wanted);
    if (!found || (pieces == 1 && place && *place != *found)) return Selection::kNone;
    place = found;
  }
  return may_be_rows ? Selection::kRows : Selection::kColumns;
}

}  // namespace ait::match
