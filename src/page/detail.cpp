#include "page/detail.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <vector>

#include "metrics/elements.h"

namespace ait::page {
namespace {

using report::Json;
using report::JsonArray;
using report::JsonObject;

constexpr size_t kBins = 48;
constexpr size_t kMapRows = 48;
constexpr size_t kMapColumns = 96;
constexpr size_t kWorst = 12;
constexpr size_t kBlock = 1 << 16;

// Three digits are enough to look at.
double shortened(double value) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.3g", value);
  return std::strtod(text.data(), nullptr);
}

struct Element {
  size_t index = 0;
  double golden = 0;
  double actual = 0;

  // NaN or infinite on one side only is farther off than any number.
  double distance() const {
    const double apart = std::fabs(actual - golden);
    if (std::isfinite(apart)) return apart;
    const bool same = golden == actual || (std::isnan(golden) && std::isnan(actual));
    return same ? 0 : std::numeric_limits<double>::infinity();
  }
};

class Detail {
 public:
  Detail(const Tensor& golden, const Tensor& actual) : golden_(golden), actual_(actual) {
    elements_ = golden.elements();
    const Shape& shape = golden.shape();
    columns_ = shape.empty() ? 1 : static_cast<size_t>(shape.back());
    rows_ = elements_ / columns_;
    map_rows_ = std::min(rows_, kMapRows);
    map_columns_ = std::min(columns_, kMapColumns);
  }

  JsonObject look() {
    each([&](const Element& e) { take_range(e); });
    squares_.resize(map_rows_ * map_columns_);
    counts_.resize(squares_.size());
    golden_bins_.resize(kBins);
    actual_bins_.resize(kBins);
    each([&](const Element& e) {
      count(golden_bins_, e.golden);
      count(actual_bins_, e.actual);
      place(e);
      keep_if_worst(e);
    });
    JsonObject out;
    out.set("elements", uint64_t{elements_})
        .set("histogram", histogram_json())
        .set("map", map_json())
        .set("worst", worst_json());
    return out;
  }

 private:
  template <typename Use>
  void each(const Use& use) {
    std::vector<double> golden;
    std::vector<double> actual;
    for (size_t first = 0; first < elements_; first += kBlock) {
      const size_t count = std::min(kBlock, elements_ - first);
      golden.resize(std::max(golden.size(), count));
      actual.resize(std::max(actual.size(), count));
      metrics::read_elements(golden_.view(), first, count, golden);
      metrics::read_elements(actual_.view(), first, count, actual);
      for (size_t i = 0; i < count; ++i) use(Element{first + i, golden[i], actual[i]});
    }
  }

  void take_range(const Element& e) {
    for (const double value : {e.golden, e.actual}) {
      if (!std::isfinite(value)) continue;
      low_ = std::min(low_, value);
      high_ = std::max(high_, value);
    }
    if (std::isfinite(e.golden)) golden_squares_ += e.golden * e.golden;
  }

  void count(std::vector<uint64_t>& bins, double value) const {
    if (!std::isfinite(value)) return;
    const double width = high_ - low_;
    const double part = width > 0 ? (value / width - low_ / width) * kBins : 0;
    ++bins[std::min(kBins - 1, static_cast<size_t>(std::max(0.0, part)))];
  }

  void place(const Element& e) {
    const size_t row = e.index / columns_ * map_rows_ / rows_;
    const size_t column = e.index % columns_ * map_columns_ / columns_;
    const double apart = e.distance();
    squares_[row * map_columns_ + column] += apart * apart;
    ++counts_[row * map_columns_ + column];
  }

  void keep_if_worst(const Element& e) {
    const auto worse = [](const Element& a, const Element& b) {
      return a.distance() > b.distance();
    };
    if (e.distance() == 0 || (worst_.size() == kWorst && !worse(e, worst_.back()))) return;
    worst_.insert(std::upper_bound(worst_.begin(), worst_.end(), e, worse), e);
    if (worst_.size() > kWorst) worst_.pop_back();
  }

  JsonObject histogram_json() const {
    JsonArray golden(golden_bins_.begin(), golden_bins_.end());
    JsonArray actual(actual_bins_.begin(), actual_bins_.end());
    JsonObject out;
    out.set("low", low_ <= high_ ? Json(low_) : Json(0.0))
        .set("high", low_ <= high_ ? Json(high_) : Json(0.0))
        .set("golden", std::move(golden))
        .set("my", std::move(actual));
    return out;
  }

  // Errors relative to the usual size of golden's values.
  JsonObject map_json() const {
    const double usual = std::sqrt(golden_squares_ / static_cast<double>(elements_));
    JsonArray cells;
    for (size_t i = 0; i < squares_.size(); ++i) {
      const double error =
          counts_[i] == 0 ? 0 : std::sqrt(squares_[i] / static_cast<double>(counts_[i]));
      cells.emplace_back(shortened(usual > 0 ? error / usual : error));
    }
    JsonObject out;
    out.set("rows", uint64_t{rows_})
        .set("columns", uint64_t{columns_})
        .set("map_rows", uint64_t{map_rows_})
        .set("map_columns", uint64_t{map_columns_})
        .set("errors", std::move(cells));
    return out;
  }

  JsonArray worst_json() const {
    JsonArray out;
    for (const Element& e : worst_) {
      JsonObject each;
      each.set("index", uint64_t{e.index})
          .set("row", uint64_t{e.index / columns_})
          .set("column", uint64_t{e.index % columns_})
          .set("golden", e.golden)
          .set("my", e.actual);
      out.emplace_back(std::move(each));
    }
    return out;
  }

  const Tensor& golden_;
  const Tensor& actual_;
  size_t elements_ = 0;
  size_t rows_ = 0;
  size_t columns_ = 0;
  size_t map_rows_ = 0;
  size_t map_columns_ = 0;
  double low_ = std::numeric_limits<double>::infinity();
  double high_ = -std::numeric_limits<double>::infinity();
  double golden_squares_ = 0;
  std::vector<uint64_t> golden_bins_;
  std::vector<uint64_t> actual_bins_;
  std::vector<double> squares_;
  std::vector<uint64_t> counts_;
  std::vector<Element> worst_;
};

bool is_real(DType dtype) {
  const DTypeKind kind = info(dtype).kind;
  return kind == DTypeKind::kInteger || kind == DTypeKind::kFloat;
}

}  // namespace

std::optional<JsonObject> detail_of(const Tensor& golden, const Tensor& actual) {
  if (golden.elements() != actual.elements() || golden.elements() == 0) return std::nullopt;
  if (!is_real(golden.dtype()) || !is_real(actual.dtype())) return std::nullopt;
  return Detail(golden, actual).look();
}

}  // namespace ait::page
