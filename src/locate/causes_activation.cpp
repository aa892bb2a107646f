// Activations, gates and products. What gives golden's value from golden's inputs is looked for among
// a few forms, and likewise what gives mine from mine: the difference is the mistake.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numbers>
#include <numeric>
#include <optional>

#include "locate/cause_families.h"

namespace ait::locate {
namespace {

constexpr size_t kElements = 4096;      // that each form is tried on
constexpr size_t kFirstElements = 128;  // that rule out most of them
constexpr double kHopeless = 0.5;

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

struct Function {
  const char* name;
  double (*of)(double);
};
constexpr size_t kIdentity = 0;
constexpr auto kFunctions = std::to_array<Function>({
    {"nothing", [](double x) { return x; }},
    {"silu", [](double x) { return x * sigmoid(x); }},
    {"gelu", [](double x) { return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2)); }},
    {"gelu by tanh",
     [](double x) {
       const double inner = std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
       return 0.5 * x * (1 + std::tanh(inner));
     }},
    {"quick gelu", [](double x) { return x * sigmoid(1.702 * x); }},
    {"relu", [](double x) { return std::max(x, 0.0); }},
    {"squared relu", [](double x) { return x > 0 ? x * x : 0; }},
    {"sigmoid", [](double x) { return sigmoid(x); }},
    {"tanh", [](double x) { return std::tanh(x); }},
    {"mish", [](double x) { return x * std::tanh(std::log1p(std::exp(std::min(x, 40.0)))); }},
    {"softplus", [](double x) { return x > 40 ? x : std::log1p(std::exp(x)); }},
    {"elu", [](double x) { return x > 0 ? x : std::expm1(x); }},
    {"hard swish", [](double x) { return x * std::clamp(x + 3, 0.0, 6.0) / 6; }},
    {"leaky relu", [](double x) { return x > 0 ? x : 0.01 * x; }},
});

// Where the argument of the function, or the factor beside it, is: a source, and which of its
// columns stands at column c of the value.
struct Operand {
  size_t source = 0;
  size_t first = 0;
  size_t step = 1;
  size_t column(size_t c) const { return first + c * step; }
  bool operator==(const Operand&) const = default;
};

// function(argument) * factor
struct Form {
  size_t function = kIdentity;
  Operand argument;
  std::optional<Operand> factor;
};

struct Place {
  size_t row;
  size_t column;
};

// Numbers 0 to count - 1 in an order in which the first ones are from all over.
size_t spread(size_t k, size_t count) {
  size_t step = count * 5 / 8 + 1;
  while (std::gcd(step, count) != 1) ++step;
  return k * step % count;
}

class Search {
 public:
  explicit Search(const Evidence& evidence) : evidence_(evidence) {
    const std::vector<size_t>& columns = evidence.hit_columns();
    const size_t all = evidence.sample().size() * columns.size();
    const size_t wanted = std::min(all, kElements);
    for (size_t k = 0; k < wanted; ++k) {
      const size_t at = spread(k, wanted) * all / wanted;
      places_.push_back({at / columns.size(), columns[at % columns.size()]});
    }
    for (size_t s = 0; s < evidence.sources().size(); ++s) {
      const size_t width = evidence.sources()[s].golden.columns;
      if (width == evidence.columns()) operands_.push_back({s, 0, 1});
      if (width == 2 * evidence.columns()) {  // a gate and what it is for, side by side or in turn
        pairs_.push_back({{s, 0, 1}, {s, width / 2, 1}});
        pairs_.push_back({{s, 0, 2}, {s, 1, 2}});
      }
    }
    constexpr size_t kMostOperands = 4;
    if (operands_.size() > kMostOperands) operands_.resize(kMostOperands);
    for (size_t a = 0; a < operands_.size(); ++a)
      for (size_t b = a + 1; b < operands_.size(); ++b)
        pairs_.push_back({operands_[a], operands_[b]});
  }

  bool is_possible() const { return !operands_.empty() || !pairs_.empty(); }

  struct Found {
    Form form;
    double residual = std::numeric_limits<double>::infinity();
  };

  // The form that comes nearest to a side's value.
  Found best(bool of_golden) const {
    Found out;
    const auto offer = [&](const Form& form) {
      const double residual = residual_of(form, of_golden);
      if (residual < out.residual) out = {form, residual};
    };
    for (size_t f = 0; f < kFunctions.size(); ++f) {
      for (const Operand& operand : operands_) offer({f, operand, std::nullopt});
      for (const auto& [a, b] : pairs_) {
        offer({f, a, b});
        if (f != kIdentity) offer({f, b, a});
      }
      // One half of a fused input alone: the gate is missing.
      for (const auto& [a, b] : pairs_)
        if (a.source == b.source)
          for (const Operand& half : {a, b}) offer({f, half, std::nullopt});
    }
    return out;
  }

  double residual_of(const Form& form, bool of_golden) const {
    const Rows& value = of_golden ? evidence_.golden() : evidence_.actual();
    const auto at = [&](const Operand& operand, const Place& place) {
      const Source& source = evidence_.sources()[operand.source];
      const Rows& rows = of_golden ? source.golden : source.actual;
      return rows[place.row][operand.column(place.column)];
    };
    double left = 0;
    double norm = 0;
    size_t seen = 0;
    for (const Place& place : places_) {
      double predicted = kFunctions[form.function].of(at(form.argument, place));
      if (form.factor) predicted *= at(*form.factor, place);
      const double d = value[place.row][place.column] - predicted;
      const double g = evidence_.golden()[place.row][place.column];
      left += d * d;
      norm += g * g;
      if (++seen == kFirstElements && !(left <= kHopeless * kHopeless * norm)) break;
    }
    return norm > 0 ? std::sqrt(left / norm) : std::numeric_limits<double>::infinity();
  }

  const std::string& name(const Operand& operand) const {
    return evidence_.sources()[operand.source].input->tensor;
  }

 private:
  const Evidence& evidence_;
  std::vector<Place> places_;
  std::vector<Operand> operands_;
  std::vector<std::pair<Operand, Operand>> pairs_;
};

bool same_operands(const Form& a, const Form& b) {
  if (a.factor.has_value() != b.factor.has_value()) return false;
  if (!a.factor) return true;
  return (a.argument == b.argument && *a.factor == *b.factor) ||
         (a.argument == *b.factor && *a.factor == b.argument);
}

// The positive number of which the function is `value`, by halving; functions grow for these.
double inverse(double (*function)(double), double value) {
  double low = 0;
  double high = 1;
  while (function(high) < value && high < 1e6) high *= 2;
  for (int k = 0; k < 60; ++k) {
    const double middle = (low + high) / 2;
    (function(middle) < value ? low : high) = middle;
  }
  return (low + high) / 2;
}

// Without the input: what golden's values are the function of, and another function of that. Of
// positive values, since they are of one number alone.
void unseen_input_causes(const Evidence& evidence, Candidates& out) {
  constexpr size_t kTried = 512;
  constexpr double kSmall = 0.05;  // all functions are alike there
  struct Value {
    double golden;
    double mine;
  };
  std::vector<Value> values;
  const size_t all = evidence.golden().values.size();
  for (size_t k = 0; k < all && values.size() < kTried; ++k) {
    const size_t at = spread(k, all);
    const double g = evidence.golden().values[at];
    if (g > kSmall) values.push_back({g, evidence.actual().values[at]});
  }
  constexpr size_t kFewest = 32;
  if (values.size() < kFewest) return;
  Fit best{0, std::numeric_limits<double>::infinity()};
  size_t was = 0;
  size_t is = 0;
  for (const size_t from : {size_t{1}, size_t{2}, size_t{3}, size_t{4}, size_t{5}}) {
    std::vector<double> x;
    x.reserve(values.size());
    for (const Value& value : values) x.push_back(inverse(kFunctions[from].of, value.golden));
    for (size_t to = 0; to < kFunctions.size(); ++to) {
      if (to == from) continue;
      double error = 0;
      double left = 0;
      double norm = 0;
      for (size_t k = 0; k < values.size(); ++k) {
        const double d = values[k].mine - kFunctions[to].of(x[k]);
        left += d * d;
        error += (values[k].mine - values[k].golden) * (values[k].mine - values[k].golden);
        norm += values[k].golden * values[k].golden;
      }
      const Fit fit{std::sqrt(error / norm), std::sqrt(left / norm)};
      if (fit.residual >= best.residual) continue;
      best = fit;
      was = from;
      is = to;
    }
  }
  if (evidence.explains(best))
    evidence.add(out, Proof::kFitted, "activation",
                 fmt::format("taking {} instead of {}", kFunctions[is].name, kFunctions[was].name),
                 best);
}

// My value is that of the function of something else: it is nothing like golden's, and keeps to the
// least that the function gives.
void other_input_causes(const Evidence& evidence, size_t function, Candidates& out) {
  constexpr double kUnlike = 0.6;
  double least = 0;
  for (double x = 0; x > -8; x -= 0.01) least = std::min(least, kFunctions[function].of(x));
  double product = 0;
  double golden = 0;
  double mine = 0;
  for (size_t k = 0; k < evidence.golden().values.size(); ++k) {
    const double g = evidence.golden().values[k];
    const double m = evidence.actual().values[k];
    if (m < least * 1.02 - 0.001) return;
    product += g * m;
    golden += g * g;
    mine += m * m;
  }
  if (!(golden > 0) || !(mine > 0) || product > kUnlike * std::sqrt(golden * mine)) return;
  Candidate candidate;
  candidate.proof = Proof::kGuess;
  candidate.cause = {
      "fused-order",
      fmt::format("my is nothing like golden (error {}), though it may be {} of something "
                  "else, as where gate and up are exchanged",
                  short_number(evidence.error()), kFunctions[function].name),
      evidence.error(), evidence.error()};
  out.push_back(std::move(candidate));
}

}  // namespace

void activation_causes(const Evidence& evidence, Candidates& out) {
  using capture::OpKind;
  const OpKind kind = evidence.fault().kind;
  if (kind != OpKind::kActivation && kind != OpKind::kMultiply && kind != OpKind::kUnknown &&
      kind != OpKind::kOther)
    return;
  const Search search(evidence);
  if (!search.is_possible()) {
    if (kind == OpKind::kActivation) unseen_input_causes(evidence, out);
    return;
  }
  const bool is_activation = kind == OpKind::kActivation;
  const Search::Found sound = search.best(true);
  const Search::Found mine = search.best(false);
  if (!evidence.is_model(sound.residual)) {
    // Mine is the activation of what went into it, and golden's is that of something else.
    const Fit fit{evidence.error(), mine.residual};
    if (is_activation && mine.form.function != kIdentity && evidence.explains(fit))
      evidence.add(
          out, Proof::kModel, "fused-order",
          fmt::format("taking {} of {}, as where gate and up are exchanged",
                      kFunctions[mine.form.function].name, search.name(mine.form.argument)),
          fit);
    else if (is_activation)
      unseen_input_causes(evidence, out);
    return;
  }
  const Fit fit{search.residual_of(sound.form, false), mine.residual};
  if (!evidence.explains(fit)) {
    if (is_activation) other_input_causes(evidence, sound.form.function, out);
    return;
  }
  const Form& was = sound.form;
  const Form& is = mine.form;
  const auto add = [&](const char* name, const std::string& what) {
    evidence.add(out, Proof::kModel, name, what, fit);
  };
  if (was.factor && !is.factor) return add("missing-factor", "leaving out one of its two factors");
  if (was.factor && is.factor && !same_operands(was, is))
    return add("fused-order",
               "cutting the gate and what it is for out of the fused value in another way");
  if (was.factor && is.factor && was.argument != is.argument && was.function == is.function)
    return add(
        "fused-order",
        fmt::format("exchanging the gate and what it is for, so that {} is taken of the other one",
                    kFunctions[is.function].name));
  if (was.function != is.function)
    return add("activation",
               is.function == kIdentity
                   ? fmt::format("leaving out {}", kFunctions[was.function].name)
                   : fmt::format("taking {} instead of {}", kFunctions[is.function].name,
                                 kFunctions[was.function].name));
  if (was.argument != is.argument)
    return add("wrong-input", fmt::format("taking {} as its input", search.name(is.argument)));
}

}  // namespace ait::locate
