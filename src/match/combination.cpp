#include "match/combination.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

namespace ait::match {
namespace {

using capture::OpKind;

// Elements that may differ by more than rounding: where a type overflows or flushes to zero.
constexpr double kOutliers = 0.02;

// A part that matters in fewer elements than this is none: anything times 0 could be added.
constexpr double kMatters = 0.1;

// Of a result that is mostly NaN or infinite nothing can be told.
constexpr double kFewestFinite = 0.25;

// The cosine of unrelated tensors is about 0, give or take 1/sqrt(elements); one that was added to
// others has a share of the result that can be seen.
constexpr double kFewestShare = 0.2;
constexpr double kDeviations = 6;

// The sum of each three of so many is tried.
constexpr size_t kMostForThree = 12;

// How far a result may be from what one part comes to, relative to its size: a rounding and the
// error of the factor. In a fine type more may have been done on the way.
double tolerance_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
    case DType::kFloat64:
      return std::ldexp(1, -21);
    case DType::kFloat16:
      return std::ldexp(1, -10);
    case DType::kBFloat16:
      return std::ldexp(1, -8);
    default:
      return std::ldexp(1, -3);
  }
}

class Search {
 public:
  Search(const Content& result, const std::vector<const Content*>& candidates)
      : result_(result), candidates_(candidates) {
    for (size_t i = 0; i < candidates.size(); ++i)
      if (candidates[i]->is_read() && candidates[i]->is_float() && !candidates[i]->is_constant &&
          candidates[i]->elements == result.elements)
        usable_.push_back(i);
  }

  std::optional<Combination> run() const {
    if (!is_finite()) return std::nullopt;
    for (const size_t i : usable_)
      if (const auto factor = is_sum(std::array{i}))
        return Combination{*factor == 1 ? OpKind::kMove : OpKind::kMultiply, {i}};
    for (size_t a = 0; a < usable_.size(); ++a)
      for (size_t b = a + 1; b < usable_.size(); ++b) {
        const std::array parts{usable_[a], usable_[b]};
        if (is_sum(parts)) return Combination{OpKind::kAdd, {parts.begin(), parts.end()}};
        if (is_product(parts[0], parts[1]))
          return Combination{OpKind::kMultiply, {parts.begin(), parts.end()}};
      }
    const size_t count = std::min(usable_.size(), kMostForThree);
    for (size_t a = 0; a < count; ++a)
      for (size_t b = a + 1; b < count; ++b)
        for (size_t c = b + 1; c < count; ++c) {
          const std::array parts{usable_[a], usable_[b], usable_[c]};
          if (is_sum(parts)) return Combination{OpKind::kAdd, {parts.begin(), parts.end()}};
        }
    return std::nullopt;
  }

 private:
  const std::vector<float>& sample(size_t part) const { return candidates_[part]->sample; }

  double tolerance(std::span<const size_t> parts) const {
    double out = tolerance_of(result_.dtype);
    for (const size_t part : parts) out = std::max(out, tolerance_of(candidates_[part]->dtype));
    return out * static_cast<double>(parts.size());
  }

  // The factor of the first part, where the result is the sum of all of them, as they are or each
  // with a factor of its own.
  std::optional<double> is_sum(std::span<const size_t> parts) const {
    std::array<double, 3> factors{1, 1, 1};
    if (adds_up(parts, factors)) return factors[0];
    if (parts.size() > 2 || !fit(parts, factors) || !adds_up(parts, factors)) return std::nullopt;
    return factors[0];
  }

  bool adds_up(std::span<const size_t> parts, const std::array<double, 3>& factors) const {
    const double most = tolerance(parts);
    const size_t count = result_.sample.size();
    const auto allowed = static_cast<size_t>(kOutliers * static_cast<double>(count));
    size_t outliers = 0;
    std::array<size_t, 3> matters{};
    for (size_t i = 0; i < count; ++i) {
      if (!std::isfinite(result_.sample[i])) continue;
      double sum = 0;
      double size = 0;
      std::array<double, 3> terms{};
      for (size_t p = 0; p < parts.size(); ++p) {
        terms[p] = factors[p] * sample(parts[p])[i];
        sum += terms[p];
        size += std::abs(terms[p]);
      }
      if (!(std::abs(result_.sample[i] - sum) <= most * size) && ++outliers > allowed) return false;
      for (size_t p = 0; p < parts.size(); ++p)
        if (std::abs(terms[p]) > most * size) ++matters[p];
    }
    return std::all_of(matters.begin(), matters.begin() + static_cast<ptrdiff_t>(parts.size()),
                       [&](size_t each) {
                         return static_cast<double>(each) >= kMatters * static_cast<double>(count);
                       });
  }

  // The factors with which one or two parts come nearest to the result.
  bool fit(std::span<const size_t> parts, std::array<double, 3>& factors) const {
    double aa = 0;
    double bb = 0;
    double ab = 0;
    double ar = 0;
    double br = 0;
    for (size_t i = 0; i < result_.sample.size(); ++i) {
      const double r = result_.sample[i];
      const double a = sample(parts[0])[i];
      const double b = parts.size() > 1 ? sample(parts[1])[i] : 0;
      if (!std::isfinite(r) || !std::isfinite(a) || !std::isfinite(b)) continue;
      aa += a * a;
      bb += b * b;
      ab += a * b;
      ar += a * r;
      br += b * r;
    }
    if (parts.size() == 1) {
      factors[0] = aa > 0 ? ar / aa : 0;
      return factors[0] != 0;
    }
    const double determinant = aa * bb - ab * ab;
    if (!(determinant > 0)) return false;
    factors[0] = (ar * bb - br * ab) / determinant;
    factors[1] = (br * aa - ar * ab) / determinant;
    return factors[0] != 0 && factors[1] != 0;
  }

  // Whether enough of the result is left to tell what it is.
  bool is_finite() const {
    const auto finite = std::count_if(result_.sample.begin(), result_.sample.end(),
                                      [](float value) { return std::isfinite(value); });
    return static_cast<double>(finite) >=
           kFewestFinite * static_cast<double>(result_.sample.size());
  }

  bool is_product(size_t a, size_t b) const {
    const double most = tolerance(std::array{a, b});
    const size_t count = result_.sample.size();
    const auto allowed = static_cast<size_t>(kOutliers * static_cast<double>(count));
    size_t outliers = 0;
    for (size_t i = 0; i < count; ++i) {
      if (!std::isfinite(result_.sample[i])) continue;
      const double product = double{sample(a)[i]} * sample(b)[i];
      if (!(std::abs(result_.sample[i] - product) <= most * std::abs(product)) &&
          ++outliers > allowed)
        return false;
    }
    return true;
  }

  const Content& result_;
  const std::vector<const Content*>& candidates_;
  std::vector<size_t> usable_;
};

}  // namespace

std::optional<Combination> find_combination(const Content& result,
                                            const std::vector<const Content*>& candidates) {
  if (!result.is_read() || !result.is_float() || result.is_constant) return std::nullopt;
  return Search(result, candidates).run();
}

bool goes_along(const Content& part, const Content& result) {
  if (!part.is_read() || !part.is_float() || part.is_constant || !result.is_read() ||
      part.elements != result.elements)
    return false;
  double pp = 0;
  double rr = 0;
  double pr = 0;
  for (size_t i = 0; i < result.sample.size(); ++i) {
    const double p = part.sample[i];
    const double r = result.sample[i];
    if (!std::isfinite(p) || !std::isfinite(r)) continue;
    pp += p * p;
    rr += r * r;
    pr += p * r;
  }
  const double least =
      std::max(kFewestShare, kDeviations / std::sqrt(static_cast<double>(result.sample.size())));
  return std::abs(pr) > least * std::sqrt(pp * rr);
}

}  // namespace ait::match
