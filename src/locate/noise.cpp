#include "locate/noise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_set>

#include "locate/inflow.h"

namespace ait::locate {
namespace {

using capture::OpKind;

// A value that is so many times as far off as expected is a fault. Against what the kind of an
// operation does in general, against what it does in this model, and against what was measured.
// Products with weights, sums and mere moves hand errors on as they are, whatever the data; a norm or
// an activation may make more of them; attention and what lies between modules far more.
struct Factors {
  Errors kind, peers, noise_run;
  Errors calibrated;  // against a noise run, where other layers say how it relates to my run
  double straying;    // of few elements: by this over the root of their number
};
constexpr Factors kSteady = {{2.5, 2.5, 4}, {3, 3, 3.5}, {1.8, 2, 2}, {1.7, 1.8, 1.9}, 1};
constexpr Factors kBent = {{4, 4.5, 5.5}, {4.5, 6.5, 5.5}, {2.5, 2.5, 2.4}, {2.4, 2.5, 2.3}, 1};
constexpr Factors kProduct = {{4, 4, 5}, {4, 4.5, 4.5}, {2.3, 2.1, 3.2}, {1.8, 2, 3.2}, 1};
constexpr Factors kTable = {{2.5, 3, 4}, {4, 8, 8}, {2.3, 2.5, 2.6}, {2.2, 2.4, 2.6}, 3};
constexpr Factors kOpen = {{5, 6, 7}, {4.2, 8, 8}, {2.3, 3, 3}, {2.2, 2.8, 2.8}, 3};
constexpr double kBeforeFactor = 10;

// The worst of many rows or columns strays farther than their mean does.
constexpr Errors kLocalFloor = {1, 2.5, 3};
constexpr Errors kLocalFactor = {1, 1.3, 1.5};
// Columns of few rows stray more: by this over the root of their number. What may be anything says
// nothing by single elements.
constexpr double kColumnStraying = 0.7;
constexpr size_t kFewestRows = 4;
// The error of so few elements says little.
constexpr double kFewElements = 16;
constexpr double kFewestElements = 32;  // of single columns

// How far what other choices make may exceed that.
constexpr double kOtherMargin = 1.2;

// A row of a sum whose addends cancel there may be that much farther off.
constexpr double kCancelledRow = 4;

// With so many other layers the median of their gains is what the operation does.
constexpr size_t kEnoughPeers = 3;
// One or two may both be unlike this one.
constexpr double kFewPeersMargin = 1.5;
constexpr double kLeastGain = 0.6;
// Two layers are alike within this factor.
constexpr double kAlike = 2;
// Gains that are so large in all layers are no faults, where the layers are alike within this factor.
constexpr double kUnlike = 3;
constexpr double kUnlikeAlike = 4;
// Other operations of the same kind are less alike than the same operation of other layers.
constexpr double kKinMargin = 1.3;
// All but the tenth of them that have the largest gains must be surpassed by this.
constexpr double kAbovePeers = 1.5;

// Of the gains of other layers those that are this many times the median are faults of their own.
constexpr double kMostAboveMedian = 4;
// What one or two other layers do may be a fault of theirs: more than this many times what such
// operations do in general is not believed.
constexpr double kMostSteadyGain = 2;
constexpr double kMostGain = 8;
// The noise run's gain is of one value: it is no less than this part of what other layers have.
constexpr double kLeastOfPeers = 0.7;
// How much noisier my run may be than the noise run, and single layers than the usual one.
constexpr double kMostNoisier = 3;
constexpr double kMostAboveUsual = 2;
constexpr double kAboveNoisePeers = 1.3;

// What is left of the floor where both runs compute in the same way.
constexpr double kExactFloor = 1.0 / 3;

// Inputs that are off by more than this have hardly anything to do with golden's: what comes of them
// tells nothing of who computed it.
constexpr double kLostInput = 0.5;

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

const Factors& factors_of(const Value& value) {
  switch (value.kind) {
    case OpKind::kMove:
    case OpKind::kEmbedding:
    case OpKind::kLinear:
    case OpKind::kAdd:
    case OpKind::kRotary:
      return kSteady;
    case OpKind::kNorm:
    case OpKind::kActivation:
      return kBent;
    case OpKind::kMultiply:
      return kProduct;
    case OpKind::kOther:
      return kTable;
    default:
      return kOpen;
  }
}

// Sums of float32 products are rounded to float32 at every step, and those of narrow types are not.
double reduction_units(const Value& value, const std::vector<Value>& values) {
  const bool is_sum = value.kind == OpKind::kLinear || value.kind == OpKind::kNorm ||
                      value.kind == OpKind::kAttention || value.kind == OpKind::kUnknown;
  if (value.unit > unit_of(DType::kFloat32) || !is_sum) return 1;
  size_t longest = 1;
  for (const uint32_t source : value.sources) longest = std::max(longest, values[source].columns);
  return 1 + std::sqrt(static_cast<double>(longest)) / 8;
}

class Model {
 public:
  Model(const std::vector<Value>& values,
        const std::vector<std::optional<NoiseRun::Measured>>& noise, Memory& memory)
      : values_(values),
        noise_(noise),
        memory_(memory),
        mine_(measured_of(values)),
        inputs_(values, mine_, memory.inputs),
        noise_inputs_(values, noise, memory.noise_inputs) {}

  std::vector<Expected> run() {
    const size_t count = values_.size();
    floors_.resize(count);
    cancelling_.assign(count, 1);
    for (size_t i = 0; i < count; ++i) look_at(i);
    find_exact();
    for (size_t i = 0; i < count; ++i) {
      const Value& value = values_[i];
      if (value.role == 0 || !is_usable(value) || inputs_.others(i) > 0) continue;
      peers_[value.role].push_back(static_cast<uint32_t>(i));
      if (has_noise(i)) noise_peers_[value.role].push_back(static_cast<uint32_t>(i));
      if (has_kin(value)) kin_[kin_of(value)].push_back(static_cast<uint32_t>(i));
    }
    by_noise_.resize(noise_.size());
    for (size_t i = 0; i < noise_.size(); ++i)
      if (has_noise(i)) by_noise_[i] = by_noise_gain(i);
    std::vector<Expected> out;
    out.reserve(count);
    Errors before{};
    for (size_t i = 0; i < count; ++i) {
      out.push_back(expected(i, before));
      if (is_finite(values_[i]))
        for (size_t k = 0; k < kMeasures; ++k)
          before[k] = std::max(before[k], values_[i].errors[k]);
    }
    return out;
  }

 private:
  using Measured = NoiseRun::Measured;

  // Its gain can be told.
  bool is_usable(const Value& value) const {
    return is_finite(value) && value.has_origin && !value.is_bound && !value.is_discrete &&
           !value.is_identical;
  }
  bool has_noise(size_t i) const {
    return i < noise_.size() && noise_[i] && noise_[i]->errors[kWhole] > 0 &&
           noise_inputs_.others(i) == 0;
  }

  // Operations of the same kind in a layer: norms do to errors what other norms of the model do.
  static bool has_kin(const Value& value) {
    return value.is_leaf && (value.kind == OpKind::kNorm || value.kind == OpKind::kLinear);
  }
  static uint64_t kin_of(const Value& value) { return static_cast<uint64_t>(value.kind); }

  static Inflow::Run measured_of(const std::vector<Value>& values) {
    Inflow::Run out;
    out.reserve(values.size());
    for (const Value& value : values)
      out.push_back(Measured{value.errors, value.spread, value.unit, value.unit, value.is_identical,
                             value.share_differing});
    return out;
  }

  void look_at(size_t i) {
    const Value& value = values_[i];
    double unit = std::max(value.unit, value.passed_unit);
    for (const uint32_t at : value.sources) unit = std::max(unit, values_[at].unit);
    floors_[i] = model_of(value).floor * unit * reduction_units(value, values_);
    if (value.kind == OpKind::kLinear && value.sources.size() == 1) {
      const double input_size = values_[value.sources[0]].size;
      if (value.size > 0 && input_size > 0) {
        double& most = memory_.sizes[value.id];
        most = std::max(most, value.size / input_size);
        cancelling_[i] = most / (value.size / input_size);
      }
    }
  }

  // Where the same operation of another layer gave identical results from identical inputs, both
  // runs compute it in the same way, and nothing is rounded otherwise.
  void find_exact() {
    for (size_t i = 0; i < values_.size(); ++i)
      if (const Value& value = values_[i];
          value.role != 0 && value.is_identical && value.has_origin && are_inputs_identical(value))
        exact_roles_.insert(value.role);
    is_exact_.resize(values_.size());
    for (size_t i = 0; i < values_.size(); ++i) {
      is_exact_[i] = exact_roles_.contains(values_[i].role) && are_inputs_identical(values_[i]) &&
                     inputs_[i][kWhole] == 0;
      if (is_exact_[i]) floors_[i] *= kExactFloor;
    }
  }

  bool are_inputs_identical(const Value& value) const {
    return !value.sources.empty() &&
           std::all_of(value.sources.begin(), value.sources.end(),
                       [&](uint32_t source) { return values_[source].is_identical; });
  }

  // What the errors of inputs come to in each measure, before they are multiplied by a gain. The
  // error of a column comes from all columns where an operation mixes them, and from its own where
  // it does not.
  double input_for(size_t i, size_t measure) const {
    return input_for(i, measure, inputs_[i], floors_[i]);
  }

  double input_for(size_t i, size_t measure, const Errors& inputs, double floor) const {
    const double whole = cancelling_[i] * std::hypot(inputs[kWhole], floor);
    if (measure == kWhole) return whole;
    if (measure == kRow)
      return cancelling_[i] * std::hypot(inputs[kRow], floor * kLocalFloor[kRow]);
    return std::max(whole, 0.5 * inputs[kColumn]);
  }

  double gain_of(size_t i, size_t measure) const {
    return values_[i].errors[measure] / input_for(i, measure);
  }

  // Of the noise run, whose own rounding is that of its types.
  double noise_gain_of(size_t i, size_t measure) const {
    const double unit = values_[i].unit;
    const double floor = unit > 0 ? floors_[i] * noise_[i]->unit / unit : floors_[i];
    return noise_[i]->errors[measure] / input_for(i, measure, noise_inputs_[i], floor);
  }

  Expected expected(size_t i, const Errors& before) const {
    const Value& value = values_[i];
    Expected out;
    out.input = inputs_[i][kWhole];
    out.floor = floors_[i];
    Errors factors{};
    if (!value.has_origin || value.is_bound)
      factors = by_rows_before(value, before, out);
    else
      factors = by_gain(i, out);
    if (has_noise(i) && !is_exact_[i]) factors = by_noise_run(i, factors, out);
    const Factors& own = factors_of(value);
    const double elements = static_cast<double>(value.rows) * static_cast<double>(value.columns);
    // What was measured there strays with the elements.
    const double strays =
        out.basis == Basis::kNoiseRun ? std::min(own.straying, 1.0) : own.straying;
    const double straying = (1 + strays / std::sqrt(elements)) * (elements < kFewElements ? 2 : 1);
    out.is_open = inputs_[i][kWhole] > kLostInput || inputs_.others(i) == 1;
    for (size_t k = 0; k < kMeasures; ++k)
      out.limits[k] = std::max(out.limits[k], out.errors[k] * factors[k] * straying);
    const auto rows = static_cast<double>(std::max<size_t>(value.column_rows, 1));
    out.limits[kColumn] *= 1 + kColumnStraying / std::sqrt(rows);
    const bool is_steady = &own != &kOpen && &own != &kTable && value.kind != OpKind::kMove;
    if ((!is_steady && value.column_rows < kFewestRows) || elements < kFewestElements)
      out.limits[kColumn] = std::numeric_limits<double>::infinity();
    if (inputs_.others(i) > 0) add_others(value, inputs_.others(i), out);
    if (is_unlike(i)) out.limits.fill(std::numeric_limits<double>::infinity());
    return out;
  }

  // Rows for which another choice was made may be anything; but most others are as they were.
  static void add_others(const Value& value, double share, Expected& out) {
    constexpr double kAny = std::numeric_limits<double>::infinity();
    const bool is_usual_right = value.usual <= out.limits[kWhole];
    const double other = kOtherRow * std::sqrt(share);
    out.errors[kWhole] = std::hypot(out.errors[kWhole], other);
    out.limits = {is_usual_right ? kAny : std::hypot(out.limits[kWhole], kOtherMargin * other),
                  kAny, kAny};
  }

  // Each returns how many times what is expected makes a fault.
  Errors by_gain(size_t i, Expected& out) const {
    const KindModel kind = model_of(values_[i]);
    const Factors& factors = factors_of(values_[i]);
    std::vector<uint32_t> others = others_of(peers_, values_[i].role, i);
    // Where there are few other layers, other operations of its kind say more than these alone.
    const bool by_kin = others.size() < kEnoughPeers && has_kin(values_[i]);
    if (by_kin) others = others_of(kin_, kin_of(values_[i]), i);
    out.peers = others.size();
    out.basis = others.empty() ? Basis::kKind : by_kin ? Basis::kKin : Basis::kPeers;
    for (size_t k = 0; k < kMeasures; ++k) {
      const double usual = kind.gain * kLocalFloor[k] / (k == kWhole ? 1 : kLocalFloor[kRow]);
      double gain = usual;
      if (!others.empty()) {
        std::vector<double> gains;
        gains.reserve(others.size());
        for (const uint32_t other : others) gains.push_back(gain_of(other, k));
        std::sort(gains.begin(), gains.end());
        if (gains.size() >= kEnoughPeers) {
          gain = std::max(kLeastGain, gains[gains.size() / 2]) * (by_kin ? kKinMargin : 1);
          const double high = std::min(gains[gains.size() * 9 / 10], kMostAboveMedian * gain);
          out.limits[k] = kAbovePeers * high * input_for(i, k);
        } else {
          const double most = (&factors == &kSteady ? kMostSteadyGain : kMostGain) * usual;
          gain = std::max(kLeastGain, std::min(kFewPeersMargin * gains.back(), most));
        }
      }
      if (by_kin && has_alike(i, k)) gain = std::max(gain, gain_of(i, k));
      if (k == kWhole) out.gain = gain;
      out.errors[k] = std::max(gain * input_for(i, k), floors_[i] * kLocalFloor[k]);
    }
    Errors out_factors = others.empty() ? factors.kind : factors.peers;
    // What stands out of both addends may cancel in a row.
    if (others.empty() && is_sum(values_[i])) out_factors[kRow] *= kCancelledRow;
    return out_factors;
  }

  // Whether the same operation of another layer is as far off and does as much to errors.
  bool are_alike(size_t i, uint32_t other, size_t measure, double within) const {
    const auto near = [&](double a, double b) { return a < within * b && b < within * a; };
    return near(values_[i].errors[measure], values_[other].errors[measure]) &&
           near(gain_of(i, measure), gain_of(other, measure));
  }

  // Whether what it is held against is computed otherwise in all layers: a product whose bias is added
  // by an operation of its own is off by that in each of them.
  bool is_unlike(size_t i) const {
    const Value& value = values_[i];
    if (value.kind != OpKind::kLinear || !is_usable(value) || exact_roles_.contains(value.role))
      return false;
    const double most = kUnlike * model_of(value).gain;
    const std::vector<uint32_t> others = others_of(peers_, value.role, i);
    return !others.empty() && gain_of(i, kWhole) > most &&
           std::all_of(others.begin(), others.end(), [&](uint32_t other) {
             return gain_of(other, kWhole) > most && are_alike(i, other, kWhole, kUnlikeAlike);
           });
  }

  // Whether it is how the operation is computed.
  bool has_alike(size_t i, size_t measure) const {
    if (exact_roles_.contains(values_[i].role)) return false;
    const std::vector<uint32_t> others = others_of(peers_, values_[i].role, i);
    return std::any_of(others.begin(), others.end(),
                       [&](uint32_t other) { return are_alike(i, other, measure, kAlike); });
  }

  using Places = std::unordered_map<uint64_t, std::vector<uint32_t>>;
  static std::vector<uint32_t> others_of(const Places& places, uint64_t key, size_t i) {
    std::vector<uint32_t> out;
    const auto found = places.find(key);
    if (found == places.end()) return out;
    std::copy_if(found->second.begin(), found->second.end(), std::back_inserter(out),
                 [&](uint32_t other) { return other != i; });
    return out;
  }

  // What a noise run shows may be less than half of what is usual. But one whose sums are of float32
  // may have summed up in the same order as golden.
  static double least_floor(const Value& value) {
    return value.unit > unit_of(DType::kFloat32) ? 0.5 : 1.2;
  }

  // The noise run shows what the operation does to errors there, whatever types it has.
  Errors by_noise_gain(size_t i) const {
    const Value& value = values_[i];
    const std::vector<uint32_t> others = others_of(noise_peers_, value.role, i);
    // Golden perturbed rounds nothing between modules, where my run does.
    const bool is_product = is_sum(value) || value.kind == OpKind::kMultiply;
    Errors out{};
    for (size_t k = 0; k < kMeasures; ++k) {
      if (!(noise_[i]->errors[k] > 0)) continue;
      double gain = std::max(noise_gain_of(i, k), is_product ? 1 : kLeastGain);
      if (others.size() >= kEnoughPeers) {
        std::vector<double> gains;
        gains.reserve(others.size());
        for (const uint32_t other : others) gains.push_back(noise_gain_of(other, k));
        std::sort(gains.begin(), gains.end());
        gain = std::max(gain, kLeastOfPeers * gains[gains.size() / 2]);
      }
      out[k] = std::max(gain * input_for(i, k), least_floor(value) * floors_[i] * kLocalFloor[k]);
    }
    return out;
  }

  // Golden perturbed does not show how my types round a table, or the weights of a norm.
  bool shows_weights(size_t i) const {
    const Value& value = values_[i];
    const bool has_my_type = noise_[i]->type_unit >= value.unit;
    const bool is_table = value.sources.empty() || value.kind == OpKind::kOther;
    return has_my_type || !(is_table || value.kind == OpKind::kNorm);
  }

  Errors by_noise_run(size_t i, const Errors& factors, Expected& out) const {
    const Value& value = values_[i];
    const bool has_inputs =
        value.sources.empty() || std::any_of(value.sources.begin(), value.sources.end(),
                                             [&](uint32_t at) { return noise_[at].has_value(); });
    if (!has_inputs) return factors;
    std::vector<uint32_t> others = others_of(noise_peers_, value.role, i);
    if (others.size() < kEnoughPeers && has_kin(value)) {
      others = others_of(kin_, kin_of(value), i);
      std::erase_if(others, [&](uint32_t other) { return !has_noise(other); });
    }
    out.basis = Basis::kNoiseRun;
    Errors changed = factors;
    for (size_t k = 0; k < kMeasures; ++k) {
      const double measured = by_noise_[i][k];
      if (!(measured > 0)) continue;
      changed[k] = factors_of(value).noise_run[k];
      out.errors[k] = std::max(measured, shows_weights(i) ? 0 : out.errors[k]);
      out.limits[k] = 0;
      std::vector<double> ratios;
      for (const uint32_t other : others)
        if (by_noise_[other][k] > 0)
          ratios.push_back(values_[other].errors[k] / by_noise_[other][k]);
      if (ratios.size() < kEnoughPeers) continue;
      // My run may be noisier than the noise run in all layers, and less evenly.
      std::sort(ratios.begin(), ratios.end());
      const double usual = std::clamp(ratios[ratios.size() / 2], 1.0, kMostNoisier);
      const double high = std::min(ratios[ratios.size() * 9 / 10], kMostAboveUsual * usual);
      out.errors[k] = std::max(out.errors[k], usual * measured);
      out.limits[k] = kAboveNoisePeers * high * measured;
      changed[k] = factors_of(value).calibrated[k];
    }
    if (inputs_[i][kWhole] > 0) out.gain = out.errors[kWhole] / inputs_[i][kWhole];
    return changed;
  }

  static Errors by_rows_before(const Value& value, const Errors& before, Expected& out) {
    out.basis = Basis::kBefore;
    out.input = before[kWhole];
    Errors factors{};
    for (size_t k = 0; k < kMeasures; ++k) {
      out.errors[k] = std::max(before[k], value.unit * kLocalFloor[k]);
      factors[k] = kBeforeFactor * kLocalFactor[k];
    }
    return factors;
  }

  const std::vector<Value>& values_;
  const std::vector<std::optional<NoiseRun::Measured>>& noise_;
  Memory& memory_;
  Inflow::Run mine_;
  Inflow inputs_;
  Inflow noise_inputs_;
  std::vector<double> floors_;
  std::unordered_set<uint64_t> exact_roles_;  // both runs compute these in the same way
  std::vector<bool> is_exact_;
  std::vector<Errors> by_noise_;    // what the noise run makes expected
  std::vector<double> cancelling_;  // how much less than at other tokens is left of the inputs
  Places peers_;
  Places noise_peers_;
  Places kin_;
};

}  // namespace

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
    case Basis::kKin:
      return fmt::format("what {} operations of its kind do in this model", peers);
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
