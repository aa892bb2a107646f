// Products with weights that nobody recorded. Some rows of golden's input and value show what the
// weights do to every mixture of these rows, and so to a part of any other input: what was done to
// my input (a shard left out, a rounding) is seen in that part of my value, mixed with a part that
// cannot be known. So a hypothesis is held against chance here, and not against the whole error.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "golden/rounder.h"
#include "golden/rounding.h"
#include "locate/cause_families.h"
#include "metrics/elements.h"

namespace ait::locate {
namespace {

constexpr size_t kRows = 24;       // that are explained, and that they are mixed of
constexpr size_t kColumns = 1024;  // of the value
constexpr size_t kFewestMixed = 3;
constexpr size_t kShards = 8;
// The part that can be seen has to be of the size that the hypothesis says, and this many times as
// large as chance would make it.
constexpr double kSlopeFrom = 0.6;
constexpr double kSlopeTo = 1.6;
constexpr double kAboveChance = 5;

using Vector = std::vector<double>;

// With several sums at a time, since one would wait for itself.
double dot(const double* a, const double* b, size_t count) {
  std::array<double, 8> sums{};
  const size_t whole = count / sums.size() * sums.size();
  for (size_t k = 0; k < whole; k += sums.size())
    for (size_t lane = 0; lane < sums.size(); ++lane) sums[lane] += a[k + lane] * b[k + lane];
  for (size_t k = whole; k < count; ++k) sums[k - whole] += a[k] * b[k];
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

// Evenly spread numbers below `count`, at most `most` of them.
std::vector<size_t> some_of(size_t count, size_t most) {
  std::vector<size_t> out;
  const size_t wanted = std::min(count, most);
  out.reserve(wanted);
  for (size_t k = 0; k < wanted; ++k) out.push_back(k * count / wanted);
  return out;
}

class Linear {
 public:
  Linear(const Evidence& evidence, const Source& source) : evidence_(evidence), source_(source) {
    for (const size_t i : some_of(evidence.sample().size(), kRows)) explained_.push_back(i);
    columns_ = some_of(evidence.columns(), kColumns);
    collect();
    factorise();
  }

  void add(Candidates& out) {
    if (mixed_.size() < kFewestMixed) return;
    try_shards(out);
    try_types(out);
  }

 private:
  // Rows of golden, of this call and of earlier ones.
  void collect() {
    const std::vector<size_t> rows = evidence_.spread_rows(size_t{1} << 17);
    const Rows x = evidence_.rows_of(source_.input->golden, rows);
    const Rows y = evidence_.rows_of(evidence_.fault().golden, rows);
    for (size_t k = 0; k < rows.size() && mixed_.size() < kRows; ++k) keep(x[k], y[k]);
    const std::vector<Tensor>& then_x = source_.input->golden_earlier;
    const std::vector<Tensor>& then_y = evidence_.fault().golden_earlier;
    for (size_t k = 0; k < std::min(then_x.size(), then_y.size()); ++k) {
      const size_t count = then_y[k].elements() / evidence_.columns();
      if (count == 0 || then_x[k].elements() != count * x.columns || !is_real(then_x[k].dtype()) ||
          !is_real(then_y[k].dtype()))
        continue;
      for (size_t row = 0; row < count && mixed_.size() < kRows; ++row) {
        Vector of_x(x.columns);
        Vector of_y(evidence_.columns());
        metrics::read_elements(then_x[k].view(), row * x.columns, x.columns, of_x.data());
        metrics::read_elements(then_y[k].view(), row * of_y.size(), of_y.size(), of_y.data());
        keep(of_x.data(), of_y.data());
      }
    }
  }

  void keep(const double* x, const double* y) {
    const size_t width = source_.golden.columns;
    if (!(dot(x, x, width) > 0)) return;
    mixed_.emplace_back(x, x + width);
    values_.emplace_back();
    for (const size_t c : columns_) values_.back().push_back(y[c]);
  }

  // Cholesky's factor of the products of the rows with each other, and a little on the diagonal,
  // since rows are only as exact as their type.
  void factorise() {
    const size_t n = mixed_.size();
    lower_.assign(n * n, 0);
    const double ridge = std::max(1e-9, evidence_.noise() * evidence_.noise());
    for (size_t i = 0; i < n; ++i)
      for (size_t j = 0; j <= i; ++j) {
        double sum = dot(mixed_[i].data(), mixed_[j].data(), mixed_[i].size());
        if (i == j) sum *= 1 + ridge;
        for (size_t k = 0; k < j; ++k) sum -= lower_[i * n + k] * lower_[j * n + k];
        if (i == j)
          lower_[i * n + i] = std::sqrt(std::max(sum, 1e-300));
        else
          lower_[i * n + j] = sum / lower_[j * n + j];
      }
  }

  // What the weights make of the part of x that is a mixture of golden's rows; x is 0 but for `count`
  // elements from `first` on.
  Vector seen(const double* x, size_t first, size_t count) const {
    const size_t n = mixed_.size();
    Vector factors(n);
    for (size_t i = 0; i < n; ++i) {
      factors[i] = dot(mixed_[i].data() + first, x + first, count);
      for (size_t k = 0; k < i; ++k) factors[i] -= lower_[i * n + k] * factors[k];
      factors[i] /= lower_[i * n + i];
    }
    for (size_t i = n; i-- > 0;) {
      for (size_t k = i + 1; k < n; ++k) factors[i] -= lower_[k * n + i] * factors[k];
      factors[i] /= lower_[i * n + i];
    }
    Vector out(columns_.size());
    for (size_t i = 0; i < n; ++i)
      for (size_t c = 0; c < out.size(); ++c) out[c] += factors[i] * values_[i][c];
    return out;
  }

  // Sums over all rows of how an error goes with what is expected of it.
  struct Match {
    double product = 0;
    double expected = 0;
    double error = 0;
    size_t elements = 0;

    void add(const Vector& predicted, const Vector& found) {
      product += dot(predicted.data(), found.data(), found.size());
      expected += dot(predicted.data(), predicted.data(), found.size());
      error += dot(found.data(), found.data(), found.size());
      elements += found.size();
    }
    double correlation() const {
      return expected > 0 && error > 0 ? product / std::sqrt(expected * error) : 0;
    }
    bool is_no_accident() const {
      const double slope = expected > 0 ? product / expected : 0;
      return slope >= kSlopeFrom && slope <= kSlopeTo &&
             correlation() * std::sqrt(static_cast<double>(elements)) >= kAboveChance;
    }
  };

  // My value less golden's, in a row.
  Vector error_of(size_t i) const {
    Vector out;
    for (const size_t c : columns_)
      out.push_back(evidence_.actual()[i][c] - evidence_.golden()[i][c]);
    return out;
  }
  // Without the part along golden's value, which any factor could be.
  void leave_out_golden(size_t i, Vector& of) const {
    double product = 0;
    double square = 0;
    for (size_t k = 0; k < of.size(); ++k) {
      const double g = evidence_.golden()[i][columns_[k]];
      product += g * of[k];
      square += g * g;
    }
    for (size_t k = 0; square > 0 && k < of.size(); ++k)
      of[k] -= product / square * evidence_.golden()[i][columns_[k]];
  }

  void report(const Match& match, const char* name, const std::string& what,
              Candidates& out) const {
    const double seen_part = match.correlation();
    const double left = evidence_.error() * std::sqrt(std::max(0.0, 1 - seen_part * seen_part));
    Candidate candidate;
    candidate.proof = Proof::kFitted;
    candidate.cause = {
        name,
        fmt::format("my is what golden's weights give after {}{}, as far as {} rows can show "
                    "(they explain {:.0f} % of the error, by chance it would be {:.2g} %)",
                    what, evidence_.where(), mixed_.size(), 100 * seen_part * seen_part,
                    100 / static_cast<double>(std::max<size_t>(match.elements, 1))),
        evidence_.error(), left};
    out.push_back(std::move(candidate));
  }

  // The sum lacks what some of the input's columns add to it.
  void try_shards(Candidates& out) const {
    const size_t width = source_.actual.columns;
    size_t shards = kShards;
    while (shards > 1 && (width % shards != 0 || width / shards < 2)) shards /= 2;
    if (shards < 2) return;
    const size_t size = width / shards;
    std::vector<std::vector<Vector>> parts(explained_.size());  // of each row and shard
    std::vector<Vector> errors;
    double kept = 0;
    double all = 0;
    for (size_t r = 0; r < explained_.size(); ++r) {
      const double* x = source_.actual[explained_[r]];
      for (size_t shard = 0; shard < shards; ++shard) {
        parts[r].push_back(seen(x, shard * size, size));
        leave_out_golden(explained_[r], parts[r].back());
      }
      errors.push_back(error_of(explained_[r]));
      all += dot(errors[r].data(), errors[r].data(), errors[r].size());
      leave_out_golden(explained_[r], errors[r]);
      kept += dot(errors[r].data(), errors[r].data(), errors[r].size());
    }
    constexpr double kMoreThanAFactor = 0.02;
    if (kept < kMoreThanAFactor * all) return;
    Match best;
    std::string what;
    for (size_t missing = shards / 2; missing >= 1; missing /= 2)
      for (size_t first = 0; first < shards; first += missing)
        for (const bool rest : {false, true}) {
          if (rest && missing == shards / 2) continue;  // the other half
          Match match;
          for (size_t r = 0; r < explained_.size(); ++r) {
            Vector predicted(columns_.size());
            for (size_t shard = 0; shard < shards; ++shard) {
              const bool is_missing = (shard >= first && shard < first + missing) != rest;
              for (size_t c = 0; is_missing && c < predicted.size(); ++c)
                predicted[c] -= parts[r][shard][c];
            }
            match.add(predicted, errors[r]);
          }
          if (!match.is_no_accident() || match.correlation() <= best.correlation()) continue;
          best = match;
          what = fmt::format("leaving out {}columns {} to {} of its input", rest ? "all but " : "",
                             first * size, (first + missing) * size - 1);
        }
    if (!what.empty()) report(best, "one-shard", what, out);
  }

  void try_types(Candidates& out) const {
    const auto offer = [&](const std::string& type, auto rounded) {
      Match match;
      for (const size_t i : explained_) {
        Vector change = rounded(source_.actual[i]);
        for (size_t k = 0; k < change.size(); ++k) change[k] -= source_.actual[i][k];
        match.add(seen(change.data(), 0, change.size()), error_of(i));
      }
      if (match.is_no_accident())
        report(match, "precision", fmt::format("rounding its input to {}", type), out);
    };
    const size_t width = source_.actual.columns;
    for (const DType type :
         {DType::kFloat16, DType::kBFloat16, DType::kFloat8E4M3FN, DType::kFloat8E5M2}) {
      if (rounding_unit(type) <= rounding_unit(source_.input->actual.dtype())) continue;
      const golden::Rounder rounder(type);
      offer(std::string(name(type)), [&](const double* x) {
        Vector row(width);
        rounder.round(x, width, row.data());
        for (double& value : row)
          if (!std::isfinite(value)) value = 0;
        return row;
      });
    }
    offer("int8 with a scale for each row", [&](const double* x) {
      double largest = 0;
      for (size_t k = 0; k < width; ++k) largest = std::max(largest, std::abs(x[k]));
      Vector row(x, x + width);
      for (double& value : row)
        value = largest > 0 ? golden::quantised(value / largest * 127) * largest / 127 : 0;
      return row;
    });
  }

  const Evidence& evidence_;
  const Source& source_;
  std::vector<size_t> explained_;  // rows of the sample
  std::vector<size_t> columns_;
  std::vector<Vector> mixed_;   // rows of golden's input
  std::vector<Vector> values_;  // and of its value
  Vector lower_;
};

// y' = W^T x: the product of row i of my value with row j of the input is that of row j of golden's
// value with row i of the input, whatever the weights are.
void transposed_causes(const Evidence& evidence, const Source& source, Candidates& out) {
  const size_t width = evidence.columns();
  const std::vector<size_t> rows = some_of(evidence.sample().size(), kRows);
  if (source.actual.columns != width || rows.size() < 3) return;
  for (const bool centred : {false, true}) {  // a bias adds the same to a row or column of products
    if (centred && rows.size() < 4) return;
    const auto products = [&](auto of) {
      std::vector<double> matrix(rows.size() * rows.size());
      for (size_t i = 0; i < rows.size(); ++i)
        for (size_t j = 0; j < rows.size(); ++j) matrix[i * rows.size() + j] = of(rows[i], rows[j]);
      if (centred) {
        const auto n = static_cast<double>(rows.size());
        for (const size_t step : {size_t{1}, rows.size()})
          for (size_t i = 0; i < rows.size(); ++i) {
            double mean = 0;
            const size_t begin = step == 1 ? i * rows.size() : i;  // of a row, or of a column
            for (size_t j = 0; j < rows.size(); ++j) mean += matrix[begin + j * step] / n;
            for (size_t j = 0; j < rows.size(); ++j) matrix[begin + j * step] -= mean;
          }
      }
      return matrix;
    };
    const auto mine = products(
        [&](size_t i, size_t j) { return dot(evidence.actual()[i], source.golden[j], width); });
    const auto plain = products(
        [&](size_t i, size_t j) { return dot(evidence.golden()[i], source.golden[j], width); });
    const auto other = products(
        [&](size_t i, size_t j) { return dot(source.actual[i], evidence.golden()[j], width); });
    double error = 0;
    double left = 0;
    double norm = 0;
    for (size_t i = 0; i < rows.size(); ++i)
      for (size_t j = 0; j < rows.size(); ++j) {
        if (i == j) continue;  // the same for both
        const size_t k = i * rows.size() + j;
        error += (mine[k] - plain[k]) * (mine[k] - plain[k]);
        left += (mine[k] - other[k]) * (mine[k] - other[k]);
        norm += plain[k] * plain[k];
      }
    if (!(norm > 0)) continue;
    const Fit fit{std::sqrt(error / norm), std::sqrt(left / norm)};
    if (!evidence.explains(fit)) continue;
    return evidence.add(out, Proof::kModel, "transposed", "transposing its weights", fit);
  }
}

// Rows that are alike in golden's value are alike in mine: whatever made it had the same input. True
// where no rows are alike, since that tells nothing.
bool rows_are_as_alike(const Evidence& evidence) {
  constexpr double kAlike = 0.2;
  constexpr double kAsAlike = 0.5;
  const std::vector<size_t> rows = some_of(evidence.sample().size(), kRows);
  const size_t width = evidence.columns();
  const auto cosine = [&](const Rows& of, size_t i, size_t j) {
    const double norms = dot(of[i], of[i], width) * dot(of[j], of[j], width);
    return norms > 0 ? dot(of[i], of[j], width) / std::sqrt(norms) : 0;
  };
  double product = 0;
  double golden = 0;
  double mine = 0;
  size_t count = 0;
  for (size_t i = 0; i < rows.size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      const double g = cosine(evidence.golden(), rows[i], rows[j]);
      const double m = cosine(evidence.actual(), rows[i], rows[j]);
      product += g * m;
      golden += g * g;
      mine += m * m;
      ++count;
    }
  if (count == 0 || golden < kAlike * kAlike * static_cast<double>(count)) return true;
  return product >= kAsAlike * std::sqrt(golden * mine);
}

// All that went into it is right.
bool inputs_are_right(const CauseCase& fault) {
  constexpr double kRight = 0.1;
  constexpr size_t kElements = size_t{1} << 16;
  std::vector<double> golden;
  std::vector<double> actual;
  for (const CauseInput& input : fault.inputs) {
    if (!is_real(input.golden.dtype()) || !is_real(input.actual.dtype())) continue;
    const size_t count = std::min(kElements, input.golden.elements());
    metrics::read_elements(input.golden.view(), 0, count, golden);
    metrics::read_elements(input.actual.view(), 0, count, actual);
    double off = 0;
    double norm = 0;
    for (size_t k = 0; k < count; ++k) {
      off += (actual[k] - golden[k]) * (actual[k] - golden[k]);
      norm += golden[k] * golden[k];
    }
    if (!(off <= kRight * kRight * norm)) return false;
  }
  return !fault.inputs.empty();
}

// What went in is right, and the value is nothing like golden's though as large: what it was
// multiplied with is something else.
void weight_causes(const Evidence& evidence, bool is_of_experts, Candidates& out) {
  constexpr double kUnlike = 0.6;
  constexpr double kUnlikeOfExperts = 0.95;  // of which some are right
  constexpr double kLargest = 4;
  double product = 0;
  double golden = 0;
  double mine = 0;
  for (size_t i = 0; i < evidence.sample().size(); ++i) {
    product += dot(evidence.golden()[i], evidence.actual()[i], evidence.columns());
    golden += dot(evidence.golden()[i], evidence.golden()[i], evidence.columns());
    mine += dot(evidence.actual()[i], evidence.actual()[i], evidence.columns());
  }
  if (evidence.region().columns_confined || !(golden > 0) || !(mine > 0)) return;
  if (evidence.region().rows_confined && !is_of_experts) return;
  const double unlike = is_of_experts ? kUnlikeOfExperts : kUnlike;
  if (std::abs(product) > unlike * std::sqrt(golden * mine)) return;
  if (mine > kLargest * kLargest * golden || golden > kLargest * kLargest * mine) return;
  if (!inputs_are_right(evidence.fault()) || !rows_are_as_alike(evidence)) return;
  const auto add = [&](const char* name, const char* what) {
    Candidate candidate;
    candidate.proof = Proof::kGuess;
    candidate.cause = {
        name,
        fmt::format("my is as large as golden and nothing like it (error {}), though "
                    "its input is right: it looks like {}",
                    short_number(evidence.error()), what),
        evidence.error(), evidence.error()};
    out.push_back(std::move(candidate));
  };
  const CauseCase& fault = evidence.fault();
  if (type_has(fault, "act") || type_has(fault, "silu") || type_has(fault, "gelu"))
    add("fused-order", "the activation of another projection, as where gate and up are exchanged");
  add("wrong-weights", "the product with other weights");
}

}  // namespace

void linear_causes(const Evidence& evidence, Candidates& out) {
  using capture::OpKind;
  const CauseCase& fault = evidence.fault();
  if (fault.kind == OpKind::kLinear && !evidence.sources().empty()) {
    const Source& source = evidence.sources().back();
    transposed_causes(evidence, source, out);
    Linear(evidence, source).add(out);
  }
  // Experts multiply, too: their input says which.
  const bool is_of_experts = std::ranges::any_of(fault.inputs, [](const CauseInput& input) {
    return info(input.golden.dtype()).kind == DTypeKind::kInteger;
  });
  const bool may_be = fault.kind == OpKind::kUnknown || fault.kind == OpKind::kActivation;
  if (fault.kind == OpKind::kLinear || (is_of_experts && may_be))
    weight_causes(evidence, is_of_experts, out);
}

}  // namespace ait::locate
