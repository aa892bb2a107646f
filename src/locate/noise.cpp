#include "locate/noise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_set>

namespace ait::locate {
namespace {

using capture::OpKind;

constexpr size_t kWhole = 0;
constexpr size_t kRow = 1;
constexpr size_t kColumn = 2;

// A value that is so many times as far off as expected is a fault. Against what the kind of an
// operation does in general, against what it does in this model, and against what was measured.
constexpr double kKindFactor = 5;
constexpr double kPeersFactor = 4;
constexpr double kNoiseRunFactor = 2;
constexpr double kBeforeFactor = 10;
// Between modules a perturbed run rounds nothing that the model itself rounds.
constexpr double kNoiseBetween = 3;

// The worst of many rows or columns strays farther than their mean does.
constexpr Errors kLocalFactor = {1, 1.3, 1.5};
constexpr Errors kLocalFloor = {1, 2.5, 3};

// Two rows that have nothing to do with each other.
constexpr double kOtherRow = 1.5;

// The worst of many rows that are alike is that much farther off than all of them.
constexpr double kRowOverWhole = 1.5;

// With so many other layers the median of their gains is what the operation does.
constexpr size_t kEnoughPeers = 3;
// One or two may both be unlike this one.
constexpr double kFewPeersMargin = 1.5;
constexpr double kLeastGain = 0.6;
// All but the tenth of them that have the largest gains must be surpassed by this.
constexpr double kAbovePeers = 1.5;

constexpr double kFewElements = 64;

// The root mean square of a rounding, in units; and which part of a noise run's errors is smallest.
constexpr double kUsualRounding = 0.42;
constexpr size_t kLowest = 20;

// What is left of the floor where both runs compute in the same way.
constexpr double kExactFloor = 1.0 / 3;

// Inputs that are off by more than this have hardly anything to do with golden's: what comes of them
// tells nothing of who computed it.
constexpr double kLostInput = 0.5;

// Weights of a norm are rounded, too, and a channel of which little is left shows it.
constexpr double kNormColumns = 2;

struct KindModel {
  double gain;
  double floor;  // in rounding units
};

// Gains: errors of inputs are as random as rounding is, so that a matrix of any shape passes them on
// as it passes on the data; what is computed between modules may be anything, attention among it.
// Floors: a rounding leaves a root mean square of 0.42 units; operations round weights, products
// and results.
KindModel model_of(const Value& value) {
  switch (value.kind) {
    case OpKind::kMove:
      return {1, 0.5};
    case OpKind::kEmbedding:
      return {1, 0.6};
    case OpKind::kNorm:
    case OpKind::kLinear:
    case OpKind::kActivation:
    case OpKind::kAdd:
      return {1.5, 0.8};
    case OpKind::kMultiply:
    case OpKind::kRotary:
      return {1.8, 1};
    default:
      return {2.5, 1.2};
  }
}

// Sums of float32 products are rounded to float32 at every step, and those of narrow types are not.
double reduction_units(const Value& value, const std::vector<Value>& values) {
  if (value.unit > unit_of(DType::kFloat32)) return 1;
  size_t longest = 1;
  for (const uint32_t source : value.sources) longest = std::max(longest, values[source].columns);
  return 1 + std::sqrt(static_cast<double>(longest)) / 8;
}

uint64_t golden_key(const compare::Row& row) {
  std::string text;
  for (const capture::TensorRecord& record : row.golden.records)
    text += record.path + ":" + record.member + ";";
  const match::Transform& t = row.golden.transform;
  return std::hash<std::string>()(text + std::to_string(t.first) + "," + std::to_string(t.taken));
}

// Where the noise run has the same operations as mine: one tensor of golden may be held against
// several of them.
uint64_t own_key(uint64_t golden, const compare::Row& row) {
  return golden ^ (std::hash<std::string>()(row.subject.name + "/" + row.subject.tensor + "@" +
                                            row.subject.rank) *
                   0x9e3779b97f4a7c15ULL);
}

class Model {
 public:
  Model(const std::vector<Value>& values,
        const std::vector<std::optional<NoiseRun::Measured>>& noise, Memory& memory)
      : values_(values), noise_(noise), memory_(memory) {}

  std::vector<Expected> run() {
    inputs_.resize(values_.size());
    floors_.resize(values_.size());
    cancelling_.assign(values_.size(), 1);
    for (size_t i = 0; i < values_.size(); ++i) look_at_inputs(i);
    lower_exact_floors();
    for (size_t i = 0; i < values_.size(); ++i)
      if (const Value& value = values_[i]; value.role != 0 && is_usable(value))
        peers_[value.role].push_back(static_cast<uint32_t>(i));
    std::vector<Expected> out;
    out.reserve(values_.size());
    Errors before{};
    for (size_t i = 0; i < values_.size(); ++i) {
      out.push_back(expected(i, before));
      if (is_finite(values_[i]))
        for (size_t k = 0; k < kMeasures; ++k)
          before[k] = std::max(before[k], values_[i].errors[k]);
    }
    return out;
  }

 private:
  static bool is_finite(const Value& value) { return value.is_compared && !value.is_broken; }
  // Its gain can be told.
  bool is_usable(const Value& value) const {
    return is_finite(value) && value.has_origin && !value.is_bound && !value.is_discrete &&
           !value.is_identical;
  }

  void look_at_inputs(size_t i) {
    const Value& value = values_[i];
    Errors& inputs = inputs_[i];
    double unit = std::max(value.unit, value.passed_unit);
    for (const uint32_t at : value.sources) {
      const Value& source = values_[at];
      unit = std::max(unit, source.unit);
      if (source.is_broken) continue;
      if (source.is_discrete) {
        take_choices(value, source, inputs);
        continue;
      }
      // The rows of what holds some of them may be padding, which nobody minds.
      if (source.has_padding && !value.has_padding && value.rows != source.rows)
        inputs[kWhole] = std::max(inputs[kWhole], kOtherRow);
      // Some of the rows may be those that are farthest off.
      const bool takes_some = value.rows < source.rows;
      inputs[kWhole] =
          std::max(inputs[kWhole], takes_some ? std::max(source.spread, source.error(Measure::kRow))
                                              : source.spread);
      inputs[kRow] =
          std::max({inputs[kRow], source.error(Measure::kRow), kRowOverWhole * source.spread});
      inputs[kColumn] = std::max(inputs[kColumn], source.error(Measure::kColumn));
    }
    if (value.reads_cache()) {
      Errors& known = memory_.inputs[value.id];
      for (size_t k = 0; k < kMeasures; ++k) known[k] = inputs[k] = std::max(known[k], inputs[k]);
    }
    if (value.kind == OpKind::kLinear && value.sources.size() == 1) {
      const double input_size = values_[value.sources[0]].size;
      if (value.size > 0 && input_size > 0) {
        double& most = memory_.sizes[value.id];
        most = std::max(most, value.size / input_size);
        cancelling_[i] = most / (value.size / input_size);
      }
    }
    floors_[i] = model_of(value).floor * unit * reduction_units(value, values_);
  }

  // Where the same operation of another layer gave identical results from identical inputs, both
  // runs compute it in the same way, and nothing is rounded otherwise.
  void lower_exact_floors() {
    std::unordered_set<uint64_t> exact;
    for (size_t i = 0; i < values_.size(); ++i)
      if (const Value& value = values_[i];
          value.role != 0 && value.is_identical && value.has_origin && are_inputs_identical(value))
        exact.insert(value.role);
    for (size_t i = 0; i < values_.size(); ++i)
      if (exact.contains(values_[i].role) && are_inputs_identical(values_[i]))
        floors_[i] *= kExactFloor;
  }

  bool are_inputs_identical(const Value& value) const {
    return !value.sources.empty() &&
           std::all_of(value.sources.begin(), value.sources.end(),
                       [&](uint32_t source) { return values_[source].is_identical; });
  }

  // Another choice makes another row of what follows; and of what holds the rows of one choice, which
  // are others then, anything.
  static void take_choices(const Value& value, const Value& source, Errors& inputs) {
    if (source.is_identical) return;
    const double share = source.rows == value.rows ? source.share_differing : 1;
    inputs[kWhole] = std::max(inputs[kWhole], kOtherRow * std::sqrt(share));
    inputs[kRow] = std::max(inputs[kRow], kOtherRow);
    inputs[kColumn] = std::max(inputs[kColumn], kOtherRow);
  }

  // What the errors of inputs come to in each measure, before they are multiplied by a gain. The
  // error of a column comes from all columns where an operation mixes them, and from its own where
  // it does not.
  double input_for(size_t i, size_t measure) const {
    const Errors& inputs = inputs_[i];
    const double whole = cancelling_[i] * std::hypot(inputs[kWhole], floors_[i]);
    if (measure == kWhole) return whole;
    if (measure == kRow)
      return cancelling_[i] * std::hypot(inputs[kRow], floors_[i] * kLocalFloor[kRow]);
    return std::max(whole, 0.5 * inputs[kColumn]);
  }

  double gain_of(size_t i, size_t measure) const {
    return values_[i].errors[measure] / input_for(i, measure);
  }

  Expected expected(size_t i, const Errors& before) const {
    const Value& value = values_[i];
    Expected out;
    out.input = inputs_[i][kWhole];
    out.floor = floors_[i];
    if (!value.has_origin || value.is_bound)
      by_rows_before(value, before, out);
    else
      by_gain(i, out);
    if (i < noise_.size() && noise_[i] && noise_[i]->errors[kWhole] > 0) by_noise_run(i, out);
    // Few elements stray more than many.
    const double elements = static_cast<double>(value.rows) * static_cast<double>(value.columns);
    const double straying = elements < kFewElements ? 2 : 1;
    out.is_open = inputs_[i][kWhole] > kLostInput;
    for (size_t k = 0; k < kMeasures; ++k)
      out.limits[k] =
          std::max(out.limits[k], out.errors[k] * out.factor * kLocalFactor[k] * straying);
    if (value.kind == OpKind::kNorm) out.limits[kColumn] *= kNormColumns;
    return out;
  }

  void by_gain(size_t i, Expected& out) const {
    const KindModel kind = model_of(values_[i]);
    const std::vector<uint32_t> others = peers_of(i);
    out.peers = others.size();
    out.basis = others.empty() ? Basis::kKind : Basis::kPeers;
    out.factor = others.empty() ? kKindFactor : kPeersFactor;
    for (size_t k = 0; k < kMeasures; ++k) {
      double gain = kind.gain * kLocalFloor[k] / (k == kWhole ? 1 : kLocalFloor[kRow]);
      if (!others.empty()) {
        std::vector<double> gains;
        gains.reserve(others.size());
        for (const uint32_t other : others) gains.push_back(gain_of(other, k));
        std::sort(gains.begin(), gains.end());
        const bool are_enough = gains.size() >= kEnoughPeers;
        gain = std::max(kLeastGain,
                        are_enough ? gains[gains.size() / 2] : kFewPeersMargin * gains.back());
        out.limits[k] = kAbovePeers * gains[gains.size() * 9 / 10] * input_for(i, k);
      }
      if (k == kWhole) out.gain = gain;
      out.errors[k] = std::max(gain * input_for(i, k), floors_[i] * kLocalFloor[k]);
    }
  }

  std::vector<uint32_t> peers_of(size_t i) const {
    std::vector<uint32_t> out;
    const auto found = peers_.find(values_[i].role);
    if (found == peers_.end()) return out;
    std::copy_if(found->second.begin(), found->second.end(), std::back_inserter(out),
                 [&](uint32_t other) { return other != i; });
    return out;
  }

  // A type that rounds more than the noise run's makes that much more noise. What went into the value
  // may be off by more than in the noise run: then it is off by more itself.
  void by_noise_run(size_t i, Expected& out) const {
    const Value& value = values_[i];
    const NoiseRun::Measured& own = *noise_[i];
    const double scale = own.unit > 0 ? std::max(1.0, value.unit / own.unit) : 1;
    Errors noise_inputs{};
    for (const uint32_t source : value.sources)
      if (noise_[source])
        for (size_t k = 0; k < kMeasures; ++k)
          noise_inputs[k] = std::max(noise_inputs[k], noise_[source]->errors[k] * scale);
    const bool is_like_mine = value.sources.empty() || noise_inputs[kWhole] > 0;
    if (!is_like_mine) return;
    out.basis = Basis::kNoiseRun;
    out.factor = value.is_leaf ? kNoiseRunFactor : kNoiseBetween;
    out.limits = {};
    for (size_t k = 0; k < kMeasures; ++k) {
      const double noise = own.errors[k] * scale;
      const double gain = noise_inputs[k] > 0 ? noise / noise_inputs[k] : 1;
      if (k == kWhole) out.gain = gain;
      out.errors[k] = std::max({noise, gain * inputs_[i][k], 0.5 * floors_[i] * kLocalFloor[k]});
    }
  }

  void by_rows_before(const Value& value, const Errors& before, Expected& out) const {
    out.basis = Basis::kBefore;
    out.factor = kBeforeFactor;
    out.input = before[kWhole];
    for (size_t k = 0; k < kMeasures; ++k)
      out.errors[k] = std::max(before[k], value.unit * kLocalFloor[k]);
  }

  const std::vector<Value>& values_;
  const std::vector<std::optional<NoiseRun::Measured>>& noise_;
  Memory& memory_;
  std::vector<Errors> inputs_;
  std::vector<double> floors_;
  std::vector<double> cancelling_;  // how much less than at other tokens is left of the inputs
  std::unordered_map<uint64_t, std::vector<uint32_t>> peers_;
};

}  // namespace

void NoiseRun::add(const compare::Row& row) {
  const Value value = value_of(row, 0);
  if (!value.is_compared || value.is_broken || row.golden.is_missing()) return;
  const uint64_t golden = golden_key(row);
  errors_[own_key(golden, row)] = {value.errors, value.unit};
  Measured& any = errors_[golden];
  any.unit = std::max(any.unit, value.unit);
  for (size_t k = 0; k < kMeasures; ++k) any.errors[k] = std::max(any.errors[k], value.errors[k]);
}

// A run that was perturbed by more than its own types round is off by that everywhere.
void NoiseRun::settle() {
  std::vector<double> errors;
  for (const auto& [key, measured] : errors_)
    if (measured.errors[kWhole] > 0) errors.push_back(measured.errors[kWhole]);
  if (errors.empty()) return;
  const auto low = errors.begin() + static_cast<ptrdiff_t>(errors.size() / kLowest);
  std::nth_element(errors.begin(), low, errors.end());
  perturbed_ = *low / kUsualRounding;
}

std::optional<NoiseRun::Measured> NoiseRun::of(const compare::Row& row) const {
  const uint64_t golden = golden_key(row);
  auto found = errors_.find(own_key(golden, row));
  if (found == errors_.end()) found = errors_.find(golden);
  if (found == errors_.end()) return std::nullopt;
  Measured out = found->second;
  out.unit = std::max(out.unit, perturbed_);
  return out;
}

double Expected::excess(const Errors& measured, size_t* measure) const {
  double most = 0;
  for (size_t k = 0; k < kMeasures; ++k) {
    const double excess = measured[k] > 0 ? measured[k] / limits[k] : 0;
    if (excess <= most) continue;
    most = excess;
    if (measure != nullptr) *measure = k;
  }
  return most;
}

std::string Expected::basis_text() const {
  switch (basis) {
    case Basis::kKind:
      return "what such operations do in general";
    case Basis::kPeers:
      return peers == 1 ? "what the same operation does in 1 other layer"
                        : fmt::format("what the same operation does in {} other layers", peers);
    case Basis::kNoiseRun:
      return "what the noise run has there";
    case Basis::kBefore:
      return "the largest error before it, since its inputs are not known";
  }
  return {};
}

std::vector<Expected> expect(const std::vector<Value>& values,
                             const std::vector<std::optional<NoiseRun::Measured>>& noise,
                             Memory& memory) {
  return Model(values, noise, memory).run();
}

}  // namespace ait::locate
