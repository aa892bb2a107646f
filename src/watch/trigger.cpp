#include "watch/trigger.h"

#include <algorithm>
#include <cmath>

#include "watch/history.h"

namespace ait::watch {
namespace {

using Kind = Condition::Kind;

std::string key_of(std::string_view module, std::string_view tensor) {
  std::string key(module);
  key += '/';
  key += tensor;
  return key;
}

Event event_of(const Condition& condition, std::string statistic, double value,
               const std::optional<double>& median = {}) {
  Event out;
  out.condition = condition.text;
  out.statistic = std::move(statistic);
  out.value = value;
  out.median = median;
  return out;
}

bool is_spike(double value, const std::optional<double>& usual, double factor) {
  return usual && *usual > 0 && value > factor * *usual;
}

}  // namespace

Trigger::Trigger(std::vector<Condition> conditions, size_t keep)
    : conditions_(std::move(conditions)),
      keep_(std::min(keep, kMaxKeep)),
      has_spike_(std::any_of(conditions_.begin(), conditions_.end(),
                             [](const Condition& each) { return each.kind == Kind::kSpike; })),
      histories_(std::make_unique<Histories>()),
      held_before_(conditions_.size()) {}

Trigger::~Trigger() = default;

std::optional<Event> Trigger::holds(const Condition& condition, const Values& values,
                                    const std::optional<double>& usual_norm,
                                    const std::optional<double>& usual_magnitude) const {
  switch (condition.kind) {
    case Kind::kNan:
      if (values.has_nan) return event_of(condition, "max", std::nan(""));
      break;
    case Kind::kInf:
      if (values.has_inf)
        return event_of(condition, std::isinf(values.maximum) ? "max" : "min",
                        std::isinf(values.maximum) ? values.maximum : values.minimum);
      break;
    case Kind::kNorm:
      if (values.norm > condition.limit) return event_of(condition, "norm", values.norm);
      break;
    case Kind::kSpike:
      if (is_spike(values.norm, usual_norm, condition.limit))
        return event_of(condition, "norm", values.norm, usual_norm);
      if (is_spike(values.magnitude(), usual_magnitude, condition.limit))
        return event_of(condition, "largest magnitude", values.magnitude(), usual_magnitude);
      break;
    case Kind::kEvery:
      break;
  }
  return std::nullopt;
}

void Trigger::see(uint64_t round, std::string_view module, std::string_view tensor,
                  std::string_view shape, const Values& values) {
  const std::lock_guard lock(mutex_);
  std::optional<double> usual_norm;
  std::optional<double> usual_magnitude;
  if (has_spike_) {
    if (Histories::History* history = histories_->of(key_of(module, tensor), shape)) {
      usual_norm = history->norm.median();
      usual_magnitude = history->magnitude.median();
      history->norm.add(values.norm);
      history->magnitude.add(values.magnitude());
    }
  }
  Found& found = under_way_.try_emplace(round, Found(conditions_.size())).first->second;
  for (size_t i = 0; i < conditions_.size(); ++i) {
    if (found[i]) continue;
    found[i] = holds(conditions_[i], values, usual_norm, usual_magnitude);
    if (!found[i]) continue;
    found[i]->round = round;
    found[i]->module = module;
    found[i]->tensor = tensor;
  }
}

// Also takes what came late of rounds before.
bool Trigger::fires(uint64_t round) {
  std::vector<bool> holds(conditions_.size());
  std::vector<Event> fired;
  const auto end = under_way_.upper_bound(round);
  for (auto each = under_way_.begin(); each != end; each = under_way_.erase(each))
    for (size_t i = 0; i < conditions_.size(); ++i) {
      if (!each->second[i]) continue;
      if (!holds[i] && !held_before_[i]) fired.push_back(*std::move(each->second[i]));
      holds[i] = true;
    }
  held_before_ = holds;
  if (fired.empty()) return false;
  if (events_.size() + fired.size() > kMaxEvents) {
    more_events_ += fired.size();
    return false;
  }
  events_.insert(events_.end(), fired.begin(), fired.end());
  return true;
}

bool Trigger::is_sampled(uint64_t round) const {
  return std::any_of(conditions_.begin(), conditions_.end(), [&](const Condition& each) {
    return each.kind == Kind::kEvery && round % static_cast<uint64_t>(each.limit) == 0;
  });
}

void Trigger::keep(uint64_t round) {
  if (!kept_.empty() && kept_.back().second + 1 == round)
    kept_.back().second = round;
  else
    kept_.emplace_back(round, round);
}

std::vector<uint64_t> Trigger::end_round(uint64_t round) {
  const std::lock_guard lock(mutex_);
  ++rounds_seen_;
  std::vector<uint64_t> unwanted;
  const auto drop_down_to = [&](size_t rounds) {
    for (; pending_.size() > rounds; pending_.pop_front()) unwanted.push_back(pending_.front());
  };
  if (fires(round)) {
    drop_down_to(keep_);
    for (const uint64_t before : pending_) keep(before);
    pending_.clear();
    keep(round);
    after_left_ = keep_;
  } else if (after_left_ > 0) {
    --after_left_;
    keep(round);
  } else if (is_sampled(round)) {
    keep(round);
  } else {
    pending_.push_back(round);
    // At least one waits: calls of modules between two rounds belong to the one before.
    drop_down_to(std::max<size_t>(keep_, 1));
  }
  return unwanted;
}

std::vector<uint64_t> Trigger::finish() {
  const std::lock_guard lock(mutex_);
  std::vector<uint64_t> unwanted(pending_.begin(), pending_.end());
  pending_.clear();
  return unwanted;
}

std::vector<Event> Trigger::events() const {
  const std::lock_guard lock(mutex_);
  return events_;
}

uint64_t Trigger::more_events() const {
  const std::lock_guard lock(mutex_);
  return more_events_;
}

std::vector<std::pair<uint64_t, uint64_t>> Trigger::kept() const {
  const std::lock_guard lock(mutex_);
  return kept_;
}

uint64_t Trigger::rounds_seen() const {
  const std::lock_guard lock(mutex_);
  return rounds_seen_;
}

}  // namespace ait::watch
