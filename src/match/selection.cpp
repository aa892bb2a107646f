#include "match/selection.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <string_view>
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

uint64_t hash_of(const Row& row) {
  return std::hash<std::string_view>()(
      {reinterpret_cast<const char*>(row.data()), row.size() * sizeof(double)});
}

std::optional<size_t> find_in_row(const Row& whole, const Row& wanted) {
  const auto found = std::search(whole.begin(), whole.end(), wanted.begin(), wanted.end());
  if (found == whole.end()) return std::nullopt;
  return static_cast<size_t>(found - whole.begin());
}

}  // namespace

bool may_be_part(size_t elements, size_t columns, size_t whole_elements, size_t whole_columns) {
  if (columns < kFewestColumns || elements == 0 || elements >= whole_elements) return false;
  const size_t whole_rows = whole_elements / whole_columns;
  if (columns == whole_columns) return whole_rows <= kMostRows;
  return columns < whole_columns && elements / columns % whole_rows == 0;
}

Selection Whole::find(const Tensor& part) {
  const Rows small(part);
  const Rows large(tensor_);
  if (!may_be_part(part.elements(), small.columns(), tensor_.elements(), large.columns()))
    return Selection::kNone;
  const bool are_rows = small.columns() == large.columns();
  if (are_rows && rows_.empty())
    for (size_t row = 0; row < large.count(); ++row)
      rows_.emplace(hash_of(large.begin(row, kFewestColumns)), row);
  const auto has_row = [&](const Row& wanted) {
    const auto [first, last] =
        rows_.equal_range(hash_of({wanted.begin(), wanted.begin() + kFewestColumns}));
    return std::any_of(first, last,
                       [&](const auto& each) { return large.row(each.second) == wanted; });
  };
  const size_t last = small.count() - 1;
  const size_t pieces = small.count() / large.count();  // of each row, where they are columns
  std::optional<size_t> place;
  for (const size_t row : std::set<size_t>{0, last / 3, 2 * last / 3, last}) {
    const Row wanted = small.row(row);
    if (is_constant(wanted) || (are_rows && !has_row(wanted))) return Selection::kNone;
    if (are_rows) continue;
    const auto found = find_in_row(large.row(row / pieces), wanted);
    if (!found || (pieces == 1 && place && *place != *found)) return Selection::kNone;
    place = found;
  }
  return are_rows ? Selection::kRows : Selection::kColumns;
}

}  // namespace ait::match
