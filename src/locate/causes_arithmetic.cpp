// A factor, a sign, a bias or an addend that is missing, doubled or another one.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "locate/cause_families.h"

namespace ait::locate {
namespace {

// How near a fitted factor has to be to one that has a name, beside what the noise allows.
constexpr double kNameTolerance = 0.004;
// A coefficient that is this near to 0, to that of golden, or to twice or minus it, is that.
constexpr double kCoefficientTolerance = 0.1;
constexpr double kNoCoefficient = 0.05;
constexpr size_t kMostAddends = 6;
constexpr double kOfMine = 0.25;          // a factor has to explain my value, too
constexpr size_t kFewestRows = 2;         // to tell a bias from anything else
constexpr size_t kFewestChannelRows = 4;  // to tell a factor for each column from anything else
// Rows that hardly differ cannot show what is the same in all of them.
constexpr double kRowsDiffer = 2;  // more than what is left, and than the noise

// A factor in words: "1/sqrt(64)".
std::string factor_text(double factor, const Evidence& evidence) {
  const double tolerance = std::max(kNameTolerance, 2 * evidence.noise());
  const auto is = [&](double value) { return std::abs(factor / value - 1) <= tolerance; };
  std::vector<size_t> sizes = {evidence.columns()};
  for (const Source& source : evidence.sources()) sizes.push_back(source.golden.columns);
  for (const size_t head : {64, 128, 32, 16, 8, 256, 96, 80, 72, 48, 112, 192})
    sizes.push_back(head);
  std::string number = short_number(factor);
  for (const size_t simple : {2, 4, 8, 16}) {
    if (is(static_cast<double>(simple))) return number;
    if (is(1 / static_cast<double>(simple))) return fmt::format("1/{}", simple);
  }
  for (const size_t size : sizes) {
    const double root = std::sqrt(static_cast<double>(size));
    if (is(root)) return fmt::format("{} = sqrt({})", number, size);
    if (is(1 / root)) return fmt::format("{} = 1/sqrt({})", number, size);
    if (size > 16 && is(root * root)) return number;
    if (size > 16 && is(1 / (root * root))) return fmt::format("1/{}", size);
  }
  return number;
}

void scale_causes(const Evidence& evidence, Candidates& out) {
  double product = 0;
  double square = 0;
  double mine = 0;
  for (size_t i = 0; i < evidence.sample().size(); ++i)
    for (const size_t c : evidence.hit_columns()) {
      const double g = evidence.golden()[i][c];
      const double m = evidence.actual()[i][c];
      product += g * m;
      square += g * g;
      mine += m * m;
    }
  if (!(square > 0)) return;
  if (mine == 0) {
    const Region& region = evidence.region();
    evidence.add(out, Proof::kRelation,
                 region.columns_confined ? "one-shard"
                 : region.rows_confined  ? "masked-region"
                                         : "zero",
                 "setting it to 0", {evidence.error(), 0});
    return;
  }
  const double factor = product / square;
  const Fit fit =
      evidence.fit([&](size_t i, size_t c) { return factor * evidence.golden()[i][c]; });
  // A factor near 0 explains any value that is small beside golden's.
  if (!evidence.explains(fit) || fit.residual > kOfMine * std::abs(factor)) return;
  if (std::abs(factor + 1) <= kCoefficientTolerance)
    evidence.add(out, Proof::kRelation, "sign", "changing its sign", fit);
  else
    evidence.add(out, Proof::kFitted, "scale", "multiplying it by " + factor_text(factor, evidence),
                 fit);
}

// |my| over |golden|
double size_of_mine(const Evidence& evidence) {
  return evidence.fit([](size_t, size_t) { return 0.0; }).residual;
}

// A factor for each row, as of quantisation by tokens, or for each column, as of a weight.
void line_scale_causes(const Evidence& evidence, Candidates& out) {
  const size_t rows = evidence.sample().size();
  const std::vector<size_t>& columns = evidence.hit_columns();
  constexpr size_t kFewestColumns = 8;
  const auto factors = [&](bool by_row) {
    std::vector<double> product(by_row ? rows : evidence.columns());
    std::vector<double> square(product.size());
    for (size_t i = 0; i < rows; ++i)
      for (const size_t c : columns) {
        const double g = evidence.golden()[i][c];
        product[by_row ? i : c] += g * evidence.actual()[i][c];
        square[by_row ? i : c] += g * g;
      }
    for (size_t k = 0; k < product.size(); ++k)
      product[k] = square[k] > 0 ? product[k] / square[k] : 1;
    return product;
  };
  if (rows >= kFewestRows && columns.size() >= kFewestColumns) {
    const std::vector<double> by_row = factors(true);
    const Fit fit =
        evidence.fit([&](size_t i, size_t c) { return by_row[i] * evidence.golden()[i][c]; });
    if (evidence.explains(fit) && fit.residual <= kOfMine * size_of_mine(evidence)) {
      const auto [least, most] = std::ranges::minmax(by_row);
      evidence.add(out, Proof::kGuess, "row-scale",
                   fmt::format("multiplying each row by a factor of its own ({} to {})",
                               short_number(least), short_number(most)),
                   fit);
    }
  }
  if (rows < kFewestChannelRows || columns.size() < 2) return;
  const std::vector<double> by_column = factors(false);
  const Fit fit =
      evidence.fit([&](size_t i, size_t c) { return by_column[c] * evidence.golden()[i][c]; });
  if (!evidence.explains(fit) || fit.residual > kOfMine * size_of_mine(evidence)) return;
  double least = std::numeric_limits<double>::infinity();
  double most = -least;
  for (const size_t c : columns) {
    least = std::min(least, by_column[c]);
    most = std::max(most, by_column[c]);
  }
  evidence.add(out, Proof::kGuess, "channel-scale",
               fmt::format("multiplying each column by a factor of its own ({} to {})",
                           short_number(least), short_number(most)),
               fit);
}

// The same in all rows is missing, or there twice.
void bias_causes(const Evidence& evidence, Candidates& out) {
  const size_t rows = evidence.sample().size();
  if (rows < kFewestRows) return;
  std::vector<double> bias(evidence.columns());
  std::vector<double> mean(evidence.columns());
  for (size_t i = 0; i < rows; ++i)
    for (const size_t c : evidence.hit_columns()) {
      bias[c] += (evidence.actual()[i][c] - evidence.golden()[i][c]) / static_cast<double>(rows);
      mean[c] += evidence.golden()[i][c] / static_cast<double>(rows);
    }
  const Fit fit =
      evidence.fit([&](size_t i, size_t c) { return evidence.golden()[i][c] + bias[c]; });
  // Of r rows the mean explains 1/r of any error, so that the rest has to shrink beyond that.
  const double by_chance = std::sqrt(1 - 1 / static_cast<double>(rows));
  if (!evidence.explains({fit.error, fit.residual / by_chance})) return;
  const double differing = evidence.model_error([&](size_t, size_t c) { return mean[c]; });
  if (differing < kRowsDiffer * fit.residual || differing < kRowsDiffer * evidence.noise()) return;
  double kept = 0;  // of golden's own mean, if the bias is that: then it was left out
  double square = 0;
  for (const size_t c : evidence.hit_columns()) {
    kept -= bias[c] * mean[c];
    square += bias[c] * bias[c];
  }
  evidence.add(out, Proof::kFitted, "missing-bias",
               kept >= 0.5 * square ? "leaving out what is the same in all rows, a bias"
                                    : "adding the same to all rows, as a bias of another value or "
                                      "one that is added twice",
               fit);
}

// Whether an input can be an addend: it has the columns of the value.
std::vector<const Source*> addends_of(const Evidence& evidence) {
  std::vector<const Source*> out;
  for (const Source& source : evidence.sources()) {
    if (source.golden.columns != evidence.columns() || out.size() == kMostAddends) continue;
    const bool is_known = std::ranges::any_of(
        out, [&](const Source* other) { return other->golden.values == source.golden.values; });
    if (!is_known) out.push_back(&source);
  }
  return out;
}

// The factors with which the addends give the value, and how well they do.
struct Sum {
  std::vector<double> factors;
  double residual = 1;
};

std::optional<Sum> fitted_sum(const Evidence& evidence, const std::vector<const Source*>& addends,
                              bool of_golden) {
  const size_t k = addends.size();
  const Rows& value = of_golden ? evidence.golden() : evidence.actual();
  std::vector<double> matrix(k * k);
  std::vector<double> right(k);
  std::vector<double> terms(k);
  const auto read = [&](size_t i, size_t c) {
    for (size_t a = 0; a < k; ++a)
      terms[a] = of_golden ? addends[a]->golden[i][c] : addends[a]->actual[i][c];
  };
  for (size_t i = 0; i < evidence.sample().size(); ++i)
    for (const size_t c : evidence.hit_columns()) {
      read(i, c);
      for (size_t a = 0; a < k; ++a) {
        right[a] += terms[a] * value[i][c];
        for (size_t b = 0; b < k; ++b) matrix[a * k + b] += terms[a] * terms[b];
      }
    }
  auto factors = solve(std::move(matrix), std::move(right));
  if (!factors) return std::nullopt;
  Sum sum{std::move(*factors), 0};
  const auto predicted = [&](size_t i, size_t c) {
    read(i, c);
    double out = 0;
    for (size_t a = 0; a < k; ++a) out += sum.factors[a] * terms[a];
    return out;
  };
  sum.residual = of_golden ? evidence.model_error(predicted) : evidence.fit(predicted).residual;
  return sum;
}

// The sum of some inputs: what became of each of them.
bool sum_causes(const Evidence& evidence, const std::vector<const Source*>& addends,
                Candidates& out) {
  constexpr size_t kEvidencePerAddend = 16;
  const size_t elements = evidence.sample().size() * evidence.hit_columns().size();
  if (addends.empty() || elements < kEvidencePerAddend * addends.size()) return false;
  const auto sound = fitted_sum(evidence, addends, true);
  const auto mine = fitted_sum(evidence, addends, false);
  if (!sound || !mine || !evidence.is_model(sound->residual)) return false;
  const double as_golden = evidence
                               .fit([&](size_t i, size_t c) {
                                 double sum = 0;
                                 for (size_t a = 0; a < addends.size(); ++a)
                                   sum += sound->factors[a] * addends[a]->actual[i][c];
                                 return sum;
                               })
                               .residual;
  const Fit fit{as_golden, mine->residual};
  if (!evidence.explains(fit)) return false;
  bool found = false;
  for (size_t a = 0; a < addends.size(); ++a) {
    const double before = sound->factors[a];
    const double now = mine->factors[a];
    const std::string& tensor = addends[a]->input->tensor;
    const auto is = [&](double factor) {
      return std::abs(now - factor * before) <= kCoefficientTolerance * std::abs(before);
    };
    if (std::abs(before) <= kNoCoefficient) {
      if (std::abs(now) <= kNoCoefficient) continue;
      evidence.add(out, Proof::kModel, "wrong-residual", "adding " + tensor, fit);
    } else if (std::abs(now) <= kNoCoefficient * std::abs(before)) {
      evidence.add(out, Proof::kModel, "missing-residual", "leaving out " + tensor, fit);
    } else if (is(2)) {
      evidence.add(out, Proof::kModel, "doubled-residual", "adding " + tensor + " twice", fit);
    } else if (is(-1)) {
      evidence.add(out, Proof::kModel, "sign", "changing the sign of " + tensor, fit);
    } else if (std::abs(now - before) >
               std::max(2 * evidence.noise(), kNameTolerance) * std::abs(before)) {
      evidence.add(out, Proof::kModel, "scale",
                   fmt::format("multiplying {} by {}", tensor, factor_text(now / before, evidence)),
                   fit);
    } else {
      continue;
    }
    found = true;
  }
  return found;
}

// My value is one of the inputs as it is, and golden's is not.
void copy_causes(const Evidence& evidence, const std::vector<const Source*>& addends,
                 Candidates& out) {
  using capture::OpKind;
  const OpKind kind = evidence.fault().kind;
  if (kind != OpKind::kAdd && kind != OpKind::kUnknown && kind != OpKind::kOther) return;
  for (const Source* addend : addends) {
    const Fit fit = evidence.fit([&](size_t i, size_t c) { return addend->actual[i][c]; });
    if (evidence.explains(fit) && fit.residual <= kOfMine * size_of_mine(evidence))
      evidence.add(out, Proof::kModel, "missing-residual",
                   "adding nothing to " + addend->input->tensor, fit);
  }
}

// Where the sum is not known in full: golden without one of the inputs, or with it once more.
void addend_causes(const Evidence& evidence, const std::vector<const Source*>& addends,
                   Candidates& out) {
  for (const Source* addend : addends)
    for (const double sign : {-1.0, 1.0}) {
      const Fit fit = evidence.fit([&](size_t i, size_t c) {
        return evidence.golden()[i][c] + sign * addend->golden[i][c];
      });
      if (!evidence.explains(fit)) continue;
      evidence.add(out, Proof::kRelation, sign < 0 ? "missing-residual" : "doubled-residual",
                   (sign < 0 ? "leaving out " : "adding once more ") + addend->input->tensor, fit);
    }
}

}  // namespace

void arithmetic_causes(const Evidence& evidence, Candidates& out) {
  const std::vector<const Source*> addends = addends_of(evidence);
  if (!sum_causes(evidence, addends, out)) {
    addend_causes(evidence, addends, out);
    copy_causes(evidence, addends, out);
  }
  scale_causes(evidence, out);
  bias_causes(evidence, out);
  line_scale_causes(evidence, out);
}

}  // namespace ait::locate
