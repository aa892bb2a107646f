// Watches the statistics of a run, round by round, and says of which rounds to keep the tensors.
//
//   Trigger trigger(*parse_conditions("nan,spike=10"), 2);
//   trigger.see(7, "root.norm", "output", "[1, 64]", Values::of(3, -3, 12));
//   for (uint64_t round : trigger.end_round(7)) remove_tensors(round);
//   trigger.finish();  // those of the last rounds, of which nothing more can be said
//
// tests/watch/example_test.cpp runs this example.
//
// A condition fires in the first of the rounds in which it holds; as long as it goes on holding, it
// does not fire again, so that a run whose loss has become NaN does not fill the disk. Kept are the
// round, `keep` rounds before it and `keep` after it. `every=N` keeps its rounds alone. So no more than
// keep + 1 rounds wait to be decided, however long the run.
//
// This is the main header of `watch`, the library that looks at runs while they run. A new condition
// is a value of Condition::Kind with its word in conditions.cpp and its case in trigger.cpp.
//
// All functions may be called from many threads at once.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "watch/conditions.h"

namespace ait::watch {

class Histories;

// That a condition held.
struct Event {
  uint64_t round = 0;
  std::string condition;         // "spike=10"
  std::string module;            // "root.model.norm"; nothing of `every`
  std::string tensor;            // "output"
  std::string statistic;         // "norm"
  double value = 0;              // of the statistic
  std::optional<double> median;  // of the rounds before, for a spike
};

class Trigger {
 public:
  static constexpr size_t kMaxKeep = 1000;

  Trigger(std::vector<Condition> conditions, size_t keep);
  ~Trigger();

  // The statistics of a tensor of a round that has not ended. Tensors come in the order in which they
  // were computed: of those for which a condition holds, the first is the event.
  void see(uint64_t round, std::string_view module, std::string_view tensor, std::string_view shape,
           const Values& values);

  // Rounds whose tensors nobody wants, now that this one has ended.
  std::vector<uint64_t> end_round(uint64_t round);
  // And those of the last ones, now that no other comes.
  std::vector<uint64_t> finish();

  // The first of each stretch of rounds in which a condition held. Those beyond kMaxEvents are
  // counted and keep no tensors.
  static constexpr size_t kMaxEvents = 1000;
  std::vector<Event> events() const;
  uint64_t more_events() const;
  // First and last of each stretch of rounds that keep their tensors, those still open included.
  std::vector<std::pair<uint64_t, uint64_t>> kept() const;
  uint64_t rounds_seen() const;

 private:
  using Found = std::vector<std::optional<Event>>;  // for each condition

  std::optional<Event> holds(const Condition& condition, const Values& values,
                             const std::optional<double>& usual_norm,
                             const std::optional<double>& usual_magnitude) const;
  bool fires(uint64_t round);
  bool is_sampled(uint64_t round) const;
  void keep(uint64_t round);

  const std::vector<Condition> conditions_;
  const size_t keep_;
  const bool has_spike_;

  mutable std::mutex mutex_;
  std::unique_ptr<Histories> histories_;
  std::map<uint64_t, Found> under_way_;
  std::vector<bool> held_before_;  // each condition, in the round that ended last
  std::deque<uint64_t> pending_;   // rounds that have ended and may still be wanted
  size_t after_left_ = 0;          // rounds to be kept because of one before them
  uint64_t rounds_seen_ = 0;
  std::vector<Event> events_;
  uint64_t more_events_ = 0;
  std::vector<std::pair<uint64_t, uint64_t>> kept_;
};

}  // namespace ait::watch
