// Norms. The plain norm of golden's input has to give golden's value, with a weight for each column
// (and a bias) that is fitted where there are enough rows. With fewer rows golden's value stands for
// the weight: what a mistake changes is then the factor between the two norms.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "golden/rounder.h"
#include "locate/cause_families.h"

namespace ait::locate {
namespace {

constexpr size_t kRowsForWeight = 4;  // rows to fit a weight for each column, or a bias, too
constexpr size_t kRowsForBias = 6;
constexpr size_t kSpread = size_t{1} << 15;  // elements of these rows
constexpr double kSmallNormed = 0.05;        // too small to divide by
constexpr auto kEpsilons =
    std::to_array<double>({1e-6, 1e-5, 1e-8, 1e-12, 1e-7, 1e-4, 1e-3, 1e-2, 0});

struct Moments {
  double mean = 0;
  double square = 0;  // mean of the squares
  double spread(bool centred) const { return centred ? square - mean * mean : square; }
};

Moments moments(const double* x, size_t count) {
  Moments out;
  for (size_t c = 0; c < count; ++c) {
    out.mean += x[c];
    out.square += x[c] * x[c];
  }
  out.mean /= static_cast<double>(count);
  out.square /= static_cast<double>(count);
  return out;
}

// Of each `group` elements: (x - mean) / sqrt(variance + epsilon), or without the mean.
Rows normed(const Rows& x, bool centred, double epsilon, size_t group) {
  Rows out = x;
  for (size_t first = 0; first < out.values.size(); first += group) {
    double* values = out.values.data() + first;
    const Moments of = moments(values, group);
    const double scale = 1 / std::sqrt(std::max(of.spread(centred), 0.0) + epsilon);
    for (size_t c = 0; c < group; ++c) values[c] = (values[c] - (centred ? of.mean : 0)) * scale;
  }
  return out;
}

struct Affine {
  std::vector<double> weight;
  std::vector<double> bias;  // empty: none
  double at(size_t c, double x) const { return weight[c] * x + (bias.empty() ? 0 : bias[c]); }
};

Affine fitted(const Rows& x, const Rows& y, bool with_bias) {
  const size_t rows = x.count();
  const auto n = static_cast<double>(rows);
  Affine out{std::vector<double>(x.columns), {}};
  if (with_bias) out.bias.resize(x.columns);
  for (size_t c = 0; c < x.columns; ++c) {
    double xs = 0;
    double ys = 0;
    for (size_t i = 0; with_bias && i < rows; ++i) {
      xs += x[i][c] / n;
      ys += y[i][c] / n;
    }
    double product = 0;
    double square = 0;
    for (size_t i = 0; i < rows; ++i) {
      product += (x[i][c] - xs) * (y[i][c] - ys);
      square += (x[i][c] - xs) * (x[i][c] - xs);
    }
    out.weight[c] = square > 0 ? product / square : 0;
    if (with_bias) out.bias[c] = ys - out.weight[c] * xs;
  }
  return out;
}

// A norm that gives golden's value from golden's input.
struct NormModel {
  bool centred = false;
  double epsilon = 0;
  Affine affine;  // no weight: there are too few rows, and golden's value stands for it
  Rows golden;    // the norm without its weight
  Rows actual;    // the same of my input
};

class Norm {
 public:
  Norm(const Evidence& evidence, const Source& source)
      : evidence_(evidence),
        source_(source),
        rows_(evidence.spread_rows(kSpread)),
        x_(evidence.rows_of(source.input->golden, rows_)),
        y_(evidence.rows_of(evidence.fault().golden, rows_)) {}

  void add(Candidates& out) {
    if (y_.count() >= kRowsForWeight) {
      if (auto model = fitted_model()) try_mistakes(*model, out);
      return;
    }
    // Too few rows to tell one norm from another: only where a norm was recorded, and each kind is
    // tried.
    if (evidence_.fault().kind != capture::OpKind::kNorm) return;
    for (const bool centred : {false, true}) {
      NormModel model;
      model.centred = centred;
      model.epsilon = kEpsilons[0];
      set_normed(model);
      try_mistakes(model, out);
    }
  }

 private:
  void set_normed(NormModel& model) const {
    model.golden = normed(source_.golden, model.centred, model.epsilon, source_.golden.columns);
    model.actual = normed(source_.actual, model.centred, model.epsilon, source_.actual.columns);
  }

  std::optional<NormModel> fitted_model() const {
    const auto rows = static_cast<double>(y_.count());
    std::optional<NormModel> best;
    double least = std::numeric_limits<double>::infinity();
    for (const bool with_bias : {false, true}) {
      if (with_bias && y_.count() < kRowsForBias) break;
      for (const bool centred : {false, true})
        for (const double epsilon : kEpsilons) {
          NormModel model{centred, epsilon, {}, {}, {}};
          const Rows x = normed(x_, centred, epsilon, x_.columns);
          model.affine = fitted(x, y_, with_bias);
          double left = 0;
          double norm = 0;
          for (size_t i = 0; i < y_.count(); ++i)
            for (size_t c = 0; c < y_.columns; ++c) {
              const double d = y_[i][c] - model.affine.at(c, x[i][c]);
              left += d * d;
              norm += y_[i][c] * y_[i][c];
            }
          const double residual = norm > 0 ? std::sqrt(left / norm) : 1;
          // What was fitted explains a part of anything.
          const double honest = residual / std::sqrt(1 - (with_bias ? 2 : 1) / rows);
          if (!evidence_.is_model(honest) || honest >= 0.9 * least) continue;
          least = honest;
          best = std::move(model);
        }
      if (best) break;
    }
    if (best) set_normed(*best);
    return best;
  }

  // My value if the norm without its weight were `variant`.
  double predicted(const NormModel& model, const Rows& variant, size_t i, size_t c) const {
    if (!model.affine.weight.empty()) return model.affine.at(c, variant[i][c]);
    const double sound = model.golden[i][c];
    if (std::abs(sound) < kSmallNormed) return std::numeric_limits<double>::quiet_NaN();
    return evidence_.golden()[i][c] * variant[i][c] / sound;
  }

  // How well the norm gives my value with each row multiplied by a factor.
  template <typename Factor>
  double residual(const NormModel& model, const Rows& variant, Factor factor) const {
    return evidence_
        .fit([&](size_t i, size_t c) {
          const double bias = model.affine.bias.empty() ? 0 : model.affine.bias[c];
          return (predicted(model, variant, i, c) - bias) * factor(i) + bias;
        })
        .residual;
  }

  void offer(const NormModel& model, const Rows& variant, const char* name, const std::string& what,
             Candidates& out) const {
    const Fit found{sound_, residual(model, variant, [](size_t) { return 1.0; })};
    if (evidence_.explains(found)) evidence_.add(out, Proof::kModel, name, what, found);
  }

  void try_mistakes(const NormModel& model, Candidates& out) {
    sound_ = residual(model, model.actual, [](size_t) { return 1.0; });
    const size_t columns = source_.actual.columns;
    offer(model, normed(source_.actual, !model.centred, model.epsilon, columns),
          "layernorm-vs-rmsnorm",
          model.centred ? "not subtracting the mean, as RMSNorm does"
                        : "subtracting the mean, as LayerNorm does",
          out);
    offer(model, source_.actual, "missing-norm", "leaving out the norm", out);
    try_weights(model, out);
    try_epsilons(model, out);
    for (const size_t group : divisors(columns)) {
      constexpr size_t kSmallestGroup = 8;
      if (group == columns || group < kSmallestGroup) continue;
      offer(model, normed(source_.actual, model.centred, model.epsilon, group), "norm-group",
            fmt::format("taking the norm of {} columns at a time", group), out);
    }
    try_types(model, out);
  }

  void try_weights(const NormModel& model, Candidates& out) const {
    // Golden's value stands for the right weight here, too: the difference is the norm itself.
    for (const double sign : {-1.0, 1.0}) {
      const Fit found = evidence_.fit(
          [&](size_t i, size_t c) { return evidence_.golden()[i][c] + sign * model.golden[i][c]; });
      if (evidence_.explains(found))
        evidence_.add(out, Proof::kModel, "plus-one",
                      sign < 0 ? "multiplying by the weight instead of 1 + weight"
                               : "multiplying by 1 + weight instead of the weight",
                      found);
    }
    const Fit found = evidence_.fit([&](size_t i, size_t c) {
      return model.actual[i][c] + (model.affine.bias.empty() ? 0 : model.affine.bias[c]);
    });
    if (evidence_.explains(found))
      evidence_.add(out, Proof::kModel, "missing-weight", "leaving out the weight of the norm",
                    found);
  }

  // sqrt((spread + epsilon) / (spread + other)), with another epsilon fitted to the rows.
  void try_epsilons(const NormModel& model, Candidates& out) const {
    const size_t rows = evidence_.sample().size();
    std::vector<double> spreads;
    std::vector<double> factors;
    for (size_t i = 0; i < rows; ++i) {
      spreads.push_back(
          std::max(moments(source_.actual[i], source_.actual.columns).spread(model.centred), 0.0));
      double product = 0;
      double square = 0;
      for (const size_t c : evidence_.hit_columns()) {
        const double bias = model.affine.bias.empty() ? 0 : model.affine.bias[c];
        const double base = predicted(model, model.actual, i, c) - bias;
        if (std::isnan(base)) continue;
        product += base * (evidence_.actual()[i][c] - bias);
        square += base * base;
      }
      factors.push_back(square > 0 ? product / square : 1);
    }
    Fit best{0, std::numeric_limits<double>::infinity()};
    std::string what;
    const auto offer_factor = [&](auto factor, const std::string& its_what) {
      const Fit found{sound_,
                      residual(model, model.actual, [&](size_t i) { return factor(spreads[i]); })};
      if (!evidence_.explains(found) || found.residual >= best.residual) return;
      best = found;
      what = its_what;
    };
    for (const double epsilon : kEpsilons) {
      double sum = 0;
      double weights = 0;
      for (size_t i = 0; i < rows; ++i) {
        if (!(spreads[i] > 0) || !(factors[i] > 0)) continue;
        // The noise of one row's epsilon grows with its spread.
        const double weight = 1 / (spreads[i] * spreads[i]);
        sum += weight * ((spreads[i] + epsilon) / (factors[i] * factors[i]) - spreads[i]);
        weights += weight;
      }
      if (weights == 0) return;
      const double other = std::max(sum / weights, 0.0);
      offer_factor([&](double spread) { return std::sqrt((spread + epsilon) / (spread + other)); },
                   fmt::format("taking {} as epsilon", short_number(other)));
      offer_factor(
          [&](double spread) {
            return std::sqrt(spread + epsilon) / (std::sqrt(spread) + epsilon);
          },
          "adding epsilon outside of the root");
    }
    if (!what.empty()) evidence_.add(out, Proof::kModel, "epsilon", what, best);
  }

  void try_types(const NormModel& model, Candidates& out) const {
    for (const DType type :
         {DType::kFloat16, DType::kBFloat16, DType::kFloat8E4M3FN, DType::kFloat8E5M2}) {
      if (rounding_unit(type) <=
          rounding_unit(source_.actual.count() > 0 ? source_.input->actual.dtype() : type))
        continue;
      Rows rounded = source_.actual;
      const golden::Rounder rounder(type);
      rounder.round(rounded.values.data(), rounded.values.size(), rounded.values.data());
      offer(model, normed(rounded, model.centred, model.epsilon, rounded.columns), "precision",
            fmt::format("rounding the input to {}", name(type)), out);
    }
  }

  const Evidence& evidence_;
  const Source& source_;
  // Rows of golden from everywhere, hit or not, for the weight.
  std::vector<size_t> rows_;
  double sound_ = 0;  // how far my value is from the norm of my input
  Rows x_;
  Rows y_;
};

}  // namespace

void norm_causes(const Evidence& evidence, Candidates& out) {
  constexpr size_t kFewestColumns = 8;
  const capture::OpKind kind = evidence.fault().kind;
  if (kind != capture::OpKind::kNorm && kind != capture::OpKind::kUnknown) return;
  if (evidence.columns() < kFewestColumns) return;
  for (const Source& source : evidence.sources())
    if (source.golden.columns == evidence.columns()) Norm(evidence, source).add(out);
}

}  // namespace ait::locate
