// Attention between its inputs and its result: which of the inputs are queries, keys and values, how
// large a head is and how it is turned is found out from golden; then each mistake is tried on mine.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <numeric>

#include "locate/attention_model.h"
#include "locate/cause_families.h"

namespace ait::locate {
namespace {

constexpr size_t kSearchCost = 6'000'000;  // multiplications
constexpr size_t kTrialCost = 16'000'000;
constexpr size_t kMostInputs = 8;
constexpr size_t kMostShift = 64;
constexpr auto kHeadSizes = std::to_array<size_t>({128, 64, 32, 16, 96, 80, 256});  // the usual
constexpr size_t kSmallestHead = 2;
constexpr size_t kLargestHead = 512;
constexpr auto kBases = std::to_array<double>({10000, 500000, 1000000});

// A row and a head of the value, to be computed.
struct Spot {
  size_t sample;  // the row as one of the sample
  size_t sequence;
  size_t token;
  size_t head;
};

bool looks_like(const CauseInput& input, std::string_view word) {
  return input.tensor.find(word) != std::string::npos;
}

class Study {
 public:
  Study(const Evidence& evidence, const TokenForm& form) : evidence_(evidence), form_(form) {
    const std::vector<CauseInput>& inputs = evidence.fault().inputs;
    const size_t first = inputs.size() - std::min(inputs.size(), kMostInputs);
    for (size_t k = first; k < inputs.size(); ++k)
      if (auto table = TokenTable::make(inputs[k], form.sequences, form.tokens))
        tables_.push_back(std::make_unique<TokenTable>(std::move(*table)));
    find_angles();
  }

  // Finds how golden's value is made of golden's inputs.
  bool find_model();
  void try_mistakes(Candidates& out);

 private:
  // Where elements of the value are.
  double value(const Rows& of, const Spot& spot, size_t d, size_t size) const {
    return of[spot.sample][form_.heads_first ? d : spot.head * size + d];
  }

  void find_angles();
  std::vector<size_t> head_sizes(size_t width, size_t kv_width) const;
  void try_sizes(const Pick& q, const Pick& k, const Pick& v, size_t kv_width, size_t size);
  void try_model(AttentionModel model);
  std::vector<Spot> spots(size_t heads, size_t rows, size_t each, bool hit_only) const;
  // |my or golden - what the model gives| over |golden| at the spots.
  double residual(Attention& attention, const AttentionModel& model, SideOf side,
                  const std::vector<Spot>& spots) const;
  void try_shifts(const std::vector<Spot>& spots, double sound, Candidates& out);

  const Evidence& evidence_;
  TokenForm form_;
  std::vector<std::unique_ptr<TokenTable>> tables_;
  const TokenTable* cos_ = nullptr;
  const TokenTable* sin_ = nullptr;
  std::vector<std::unique_ptr<Attention>> attentions_;  // one for each kind of angles
  Attention* attention_ = nullptr;                      // of the model
  std::optional<AttentionModel> model_;
  double model_residual_ = std::numeric_limits<double>::infinity();
};

void Study::find_angles() {
  std::vector<const TokenTable*> tables;
  tables.reserve(tables_.size());
  for (const auto& table : tables_) tables.push_back(table.get());
  const auto add = [&](const Angles& angles) {
    attentions_.push_back(std::make_unique<Attention>(form_.sequences, form_.tokens,
                                                      evidence_.fault().padding, angles));
  };
  if (const auto angles = angle_tables(tables, form_.tokens)) {
    cos_ = angles->cos;
    sin_ = angles->sin;
    add(*angles);
  }
  const size_t earlier = tables_.empty() ? 0 : tables_.back()->earlier();
  if (cos_ == nullptr || cos_->earlier() < earlier)
    for (const double base : kBases) add({nullptr, nullptr, base, 0, 1});
}

std::vector<size_t> Study::head_sizes(size_t width, size_t kv_width) const {
  const size_t common = std::gcd(width, kv_width);
  const Shape& shape = evidence_.fault().golden.shape();
  if (form_.heads_first || shape.size() == 4) return {static_cast<size_t>(shape.back())};
  if (shape.size() == 3 && form_.sequences == 1 && shape[0] != 1)
    return {static_cast<size_t>(shape.back())};
  std::vector<size_t> out;
  if (cos_ != nullptr)
    for (const size_t size : {cos_->width(), 2 * cos_->width(), 4 * cos_->width()})
      if (common % size == 0) out.push_back(size);
  const auto keep = [&](size_t size) {
    if (common % size == 0 && std::ranges::find(out, size) == out.end()) out.push_back(size);
  };
  for (const size_t size : kHeadSizes) keep(size);
  for (const size_t size : divisors(common))
    if (size >= kSmallestHead && size <= kLargestHead) keep(size);
  if (out.empty()) out.push_back(common);
  return out;
}

std::vector<Spot> Study::spots(size_t heads, size_t rows, size_t each, bool hit_only) const {
  const std::vector<size_t>& sample = evidence_.sample();
  const size_t size = form_.width / heads;
  std::vector<Spot> out;
  if (form_.heads_first) {  // each row is one head of one token
    const size_t wanted = std::min(sample.size(), rows * each);
    for (size_t k = 0; k < wanted; ++k) {
      const size_t i = k * sample.size() / wanted;
      const size_t row = sample[i];
      out.push_back(
          {i, row / (heads * form_.tokens), row % form_.tokens, row / form_.tokens % heads});
    }
    return out;
  }
  const size_t per_token = evidence_.columns() == form_.width ? 1 : heads;
  std::vector<size_t> hit_heads;
  for (size_t h = 0; h < heads; ++h) {
    const std::vector<size_t>& columns = evidence_.hit_columns();
    const auto from = std::ranges::lower_bound(columns, h * size);
    if (!hit_only || per_token > 1 || (from != columns.end() && *from < (h + 1) * size))
      hit_heads.push_back(h);
  }
  const size_t wanted_rows = std::min(sample.size(), rows);
  for (size_t k = 0; k < wanted_rows; ++k) {
    // The last row is one of them: it has the most keys.
    const size_t i =
        wanted_rows == 1 ? sample.size() - 1 : k * (sample.size() - 1) / (wanted_rows - 1);
    const size_t token = sample[i] / per_token;
    const size_t wanted = std::min(hit_heads.size(), each);
    for (size_t n = 0; n < wanted; ++n) {
      const size_t head =
          per_token > 1 ? sample[i] % per_token : hit_heads[n * hit_heads.size() / wanted];
      out.push_back({i, token / form_.tokens, token % form_.tokens, head});
      if (per_token > 1) break;
    }
  }
  return out;
}

double Study::residual(Attention& attention, const AttentionModel& model, SideOf side,
                       const std::vector<Spot>& spots) const {
  constexpr double kHopeless = 0.7;
  double left = 0;
  double norm = 0;
  size_t unseen = 0;
  std::vector<double> row(model.size);
  const bool is_cut = evidence_.columns() != form_.width && !form_.heads_first;  // rows are heads
  for (const Spot& spot : spots) {
    // A token that sees nothing gives whatever its kernel makes of that.
    if (!attention.row(model, side, spot.sequence, spot.token, spot.head, row.data())) {
      if (++unseen * 2 > spots.size()) return std::numeric_limits<double>::infinity();
      continue;
    }
    Spot at = spot;
    if (is_cut) at.head = 0;
    for (size_t d = 0; d < model.size; ++d) {
      const double g = value(evidence_.golden(), at, d, model.size);
      const double m = side == SideOf::kGolden ? g : value(evidence_.actual(), at, d, model.size);
      left += (m - row[d]) * (m - row[d]);
      norm += g * g;
    }
    if (side == SideOf::kGolden && left > kHopeless * kHopeless * norm) break;
  }
  return norm > 0 ? std::sqrt(left / norm) : std::numeric_limits<double>::infinity();
}

void Study::try_model(AttentionModel model) {
  // Two heads of a token with few keys, which rules out most, and of one with some more.
  const std::vector<Spot> some = spots(model.heads, 16, 2, false);
  std::vector<Spot> few(
      some.begin(), some.begin() + static_cast<std::ptrdiff_t>(std::min<size_t>(2, some.size())));
  constexpr size_t kSomeKeys = 6;
  const auto later =
      std::ranges::find_if(some, [](const Spot& spot) { return spot.token >= kSomeKeys; });
  for (auto spot = later != some.end()
                       ? later
                       : some.begin() + static_cast<std::ptrdiff_t>(
                                            some.size() - std::min<size_t>(2, some.size()));
       spot != some.end() && few.size() < 4; ++spot)
    few.push_back(*spot);
  const auto offer = [&](Attention& attention) {
    if (attention.cost() > kSearchCost) return;
    const double found = residual(attention, model, SideOf::kGolden, few);
    if (found >= model_residual_) return;
    model_residual_ = found;
    model_ = model;
    attention_ = &attention;
  };
  const double root = std::sqrt(static_cast<double>(model.size));
  for (const Mask mask : {Mask::kCausal, Mask::kNone})
    for (const double scale : {1 / root, 1.0}) {
      model.mask = mask;
      model.scale = scale;
      if (mask == Mask::kNone && form_.tokens == 1) continue;
      for (const Turn turn : {Turn::kHalves, Turn::kNeighbours, Turn::kNone}) {
        model.turn = turn;
        for (const auto& attention : attentions_) {
          offer(*attention);
          if (evidence_.is_model(model_residual_)) return;
          if (turn == Turn::kNone) break;  // whatever the angles are
        }
      }
    }
}

void Study::try_sizes(const Pick& q, const Pick& k, const Pick& v, size_t kv_width, size_t size) {
  AttentionModel model;
  model.size = size;
  model.heads = form_.width / size;
  model.kv_heads = kv_width / size;
  if (model.heads == 0 || model.kv_heads == 0 || model.heads % model.kv_heads != 0) return;
  model.q = q;
  model.k = k;
  model.v = v;
  for (Pick* pick : {&model.q, &model.k, &model.v})
    if (pick->group_stride == 0) pick->group_stride = size;  // heads side by side
  try_model(model);
}

bool Study::find_model() {
  if (form_.tokens * form_.sequences == 0) return false;
  const auto done = [&] { return evidence_.is_model(model_residual_); };
  std::vector<const TokenTable*> whole;
  for (const auto& table : tables_)
    if (table.get() != cos_ && table.get() != sin_) whole.push_back(table.get());
  for (const TokenTable* q : whole) {
    if (q->width() != form_.width || looks_like(q->input(), "k_proj") ||
        looks_like(q->input(), "v_proj"))
      continue;
    for (const TokenTable* k : whole)
      for (const TokenTable* v : whole) {
        if (q == k || q == v || k == v || k->width() != v->width() || form_.width % k->width() != 0)
          continue;
        // Names may tell; otherwise keys are computed before values.
        if (looks_like(k->input(), "v_proj") || looks_like(v->input(), "k_proj")) continue;
        if (looks_like(k->input(), "q_proj") || looks_like(v->input(), "q_proj")) continue;
        for (const size_t size : head_sizes(form_.width, k->width())) {
          try_sizes({q}, {k}, {v}, k->width(), size);
          if (done()) return true;
        }
      }
  }
  for (const TokenTable* fused : whole) {
    if (fused->width() <= form_.width || (fused->width() - form_.width) % 2 != 0) continue;
    const size_t kv_width = (fused->width() - form_.width) / 2;
    if (kv_width == 0 || form_.width % kv_width != 0) continue;
    for (const size_t size : head_sizes(form_.width, kv_width)) {
      const size_t group = form_.width / kv_width;
      // One after the other, or queries, key and value of each group together.
      try_sizes({fused}, {fused, form_.width}, {fused, form_.width + kv_width}, kv_width, size);
      if (done()) return true;
      const size_t stride = (group + 2) * size;
      try_sizes({fused, 0, size, group, stride}, {fused, group * size, 0, 1, stride},
                {fused, (group + 1) * size, 0, 1, stride}, kv_width, size);
      if (done()) return true;
    }
  }
  return false;
}

void Study::try_mistakes(Candidates& out) {
  // As many spots as the cost allows, each of which is tried some thirty times.
  constexpr size_t kTrials = 30;
  const AttentionModel& model = *model_;
  const size_t keys = model.k.table->all();
  const size_t affordable = std::max<size_t>(1, kTrialCost / kTrials / (2 * model.size * keys));
  const size_t each = std::min<size_t>(4, affordable);
  const std::vector<Spot> places =
      spots(model.heads, std::max<size_t>(1, std::min<size_t>(6, affordable / each)), each, true);
  if (places.empty() || !evidence_.is_model(residual(*attention_, model, SideOf::kGolden, places)))
    return;
  const double sound = residual(*attention_, model, SideOf::kActual, places);

  struct Trial {
    const char* name;
    std::string what;
    AttentionModel model;
  };
  std::vector<Trial> trials;
  const auto add = [&](const char* name, std::string what, auto change) {
    AttentionModel changed = model;
    change(changed);
    trials.push_back({name, std::move(what), changed});
  };
  const double size = static_cast<double>(model.size);
  const std::vector<std::pair<double, std::string>> scales = {
      {1, "leaving out the scale of the scores"},
      {1 / std::sqrt(size), "scaling the scores by 1/sqrt of the head size"},
      {1 / size, "scaling the scores twice"},
      {1 / std::sqrt(static_cast<double>(form_.width)),
       "scaling the scores by 1/sqrt of the hidden size"},
      {model.scale * 2, "doubling the scale of the scores"},
      {model.scale / 2, "halving the scale of the scores"},
      {model.scale * std::sqrt(2.0), "multiplying the scale of the scores by sqrt(2)"},
      {model.scale / std::sqrt(2.0), "dividing the scale of the scores by sqrt(2)"},
      {std::sqrt(size), "multiplying the scores by the sqrt of the head size"}};
  for (const auto& [scale, what] : scales)
    if (std::abs(scale / model.scale - 1) > 1e-6)
      add("scale", what, [&](AttentionModel& m) { m.scale = scale; });
  if (attention_->has_angles() && model.turn != Turn::kNone) {
    add("rope-pairing",
        model.turn == Turn::kHalves
            ? "turning neighbouring elements of heads instead of elements half a head apart"
            : "turning elements half a head apart instead of neighbouring ones",
        [](AttentionModel& m) {
          m.turn = m.turn == Turn::kHalves ? Turn::kNeighbours : Turn::kHalves;
        });
    add("rope-pairing",
        "turning other pairs of elements, each element by the angle of its own column",
        [](AttentionModel& m) {
          m.turn = m.turn == Turn::kHalves ? Turn::kNeighbours : Turn::kHalves;
          m.by_column = true;
        });
    add("missing-rope", "leaving out the rotary embedding",
        [](AttentionModel& m) { m.turn = Turn::kNone; });
    add("missing-rope", "leaving out the rotary embedding of queries",
        [](AttentionModel& m) { m.turn_q = false; });
    add("missing-rope", "leaving out the rotary embedding of keys",
        [](AttentionModel& m) { m.turn_k = false; });
  }
  // What a cache holds may have been turned rightly before.
  if (model.k.table->all() > form_.tokens)
    for (size_t k = 0, count = trials.size(); k < count; ++k) {
      Trial trial = trials[k];
      if (std::string_view(trial.name) == "scale" || !trial.model.turn_k) continue;
      trial.model.earlier_turn = model.turn;
      trial.what += ", from this token on";
      trials.push_back(std::move(trial));
    }
  add("masked-region",
      model.mask == Mask::kCausal ? "letting tokens see later ones" : "hiding later tokens",
      [](AttentionModel& m) { m.mask = m.mask == Mask::kCausal ? Mask::kNone : Mask::kCausal; });
  add("masked-region", "letting tokens see the next one",
      [](AttentionModel& m) { m.mask = Mask::kWithNext; });
  const bool caches = model.k.table->all() > form_.tokens;
  for (const size_t window : {1, 2, 3, 4, 8, 16, 32})
    if (window < keys)
      add("masked-region",
          fmt::format("letting tokens see only the last {}",
                      window == 1 ? "one" : fmt::format("{}", window)),
          [&](AttentionModel& m) { m.window = window; });
  add(caches ? "stale-cache" : "masked-region", "hiding each token from itself",
      [](AttentionModel& m) { m.mask = Mask::kWithoutSelf; });
  for (const size_t skipped : {1, 2, 3, 4, 8, 16})
    if (skipped < keys)
      add("masked-region",
          fmt::format("leaving out the first {}",
                      skipped == 1 ? "key" : fmt::format("{} keys", skipped)),
          [&](AttentionModel& m) { m.skipped_keys = skipped; });
  if (!evidence_.fault().padding.empty())
    add("masked-region", "letting tokens see padding",
        [](AttentionModel& m) { m.mask_padding = false; });
  if (model.kv_heads < model.heads && model.kv_heads > 1)
    add("heads-order", "giving heads of keys to queries in turn instead of in groups",
        [](AttentionModel& m) { m.mapping = Mapping::kTiled; });
  if (model.kv_heads > 1)
    add("heads-order", "giving each group of queries the next head of keys",
        [](AttentionModel& m) { m.mapping = Mapping::kNext; });
  if (caches) {
    add("stale-cache", "leaving out the tokens of earlier calls",
        [](AttentionModel& m) { m.skips_earlier = true; });
    for (const size_t back : {0, 1, 2, 3}) {
      if (back + 1 >= keys) continue;
      const std::string slot =
          back == 0 ? "its own place" : fmt::format("the place of the token {} before", back);
      for (const Stale stale : {Stale::kOld, Stale::kZero})
        add("stale-cache",
            fmt::format("reading {} from {} of the cache",
                        stale == Stale::kOld ? "the token before" : "zeros", slot),
            [&](AttentionModel& m) {
              m.stale = stale;
              m.stale_back = back;
            });
    }
  }
  add("fused-order", "exchanging keys and values", [](AttentionModel& m) { std::swap(m.k, m.v); });
  if (model.kv_heads == model.heads) {
    add("fused-order", "exchanging queries and keys",
        [](AttentionModel& m) { std::swap(m.q, m.k); });
    add("fused-order", "exchanging queries and values",
        [](AttentionModel& m) { std::swap(m.q, m.v); });
  }

  for (const Trial& trial : trials) {
    const Fit fit{sound, residual(*attention_, trial.model, SideOf::kActual, places)};
    if (evidence_.explains(fit)) evidence_.add(out, Proof::kModel, trial.name, trial.what, fit);
  }
  if (model.turn != Turn::kNone) try_shifts(places, sound, out);
}

// Positions that are off: the one that fits best at a single spot is tried on all.
void Study::try_shifts(const std::vector<Spot>& spots, double sound, Candidates& out) {
  const std::vector<Spot> one = {spots.back()};
  std::vector<int64_t> shifts;
  for (int64_t n = 1; n <= static_cast<int64_t>(kMostShift); ++n)
    shifts.insert(shifts.end(), {n, -n});
  const auto earlier = static_cast<int64_t>(model_->k.table->all() - form_.tokens);
  if (earlier > static_cast<int64_t>(kMostShift)) shifts.insert(shifts.end(), {earlier, -earlier});
  double best = std::numeric_limits<double>::infinity();
  AttentionModel found = *model_;
  int64_t by = 0;
  const size_t before = attention_->cost();
  for (const int64_t shift : shifts)
    for (const bool all : {false, true}) {
      if ((all && earlier == 0) || attention_->cost() - before > kTrialCost) continue;
      AttentionModel changed = *model_;
      (all ? changed.shift_all : changed.shift_q) = shift;
      const double left = residual(*attention_, changed, SideOf::kActual, one);
      if (left >= best) continue;
      best = left;
      found = changed;
      by = shift;
    }
  const Fit fit{sound, residual(*attention_, found, SideOf::kActual, spots)};
  if (by != 0 && evidence_.explains(fit))
    evidence_.add(out, Proof::kModel, "position",
                  fmt::format("taking positions of queries{} that are {} too {}",
                              found.shift_all != 0 ? " and keys" : "", std::abs(by),
                              by > 0 ? "large" : "small"),
                  fit);
}

}  // namespace

void attention_causes(const Evidence& evidence, Candidates& out) {
  using capture::OpKind;
  const OpKind kind = evidence.fault().kind;
  if (kind != OpKind::kAttention && kind != OpKind::kUnknown && kind != OpKind::kOther) return;
  for (const TokenForm& form : forms_of(evidence.fault().golden.shape())) {
    Study study(evidence, form);
    if (!study.find_model()) continue;
    study.try_mistakes(out);
    return;
  }
}

}  // namespace ait::locate
