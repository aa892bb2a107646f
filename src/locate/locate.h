// Says of every row of a comparison whether its difference is a fault or only rounding, and where
// faults begin: the first values that are far off although what they were computed from is not.
//
//   Locator locator({.in_order = true}, [&](Row&& row, uint64_t bytes) { csv.append(row); });
//   compare_pairs(pairs, options, stop, [&](Row&& row, uint64_t bytes) {
//     locator.add(std::move(row), bytes);
//   });
//   locator.finish();
//   for (const Finding& finding : locator.findings()) print(finding.reason);
//
// Rows come by token and in the order of the computation (match/plan.h), with Row::origin and
// ErrorProfile. They are handed on with their judgement when their token is complete, or when many
// are waiting. This is the main header of `locate`: value.h is what it knows of a row, noise.h what
// a healthy value may be off by, causes.h what may have made a fault.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "compare/row.h"
#include "locate/causes.h"
#include "locate/noise.h"

namespace ait::locate {

struct Finding {
  compare::Row row;             // where it is first seen, with its judgement
  size_t number = 0;            // of that row in the comparison
  std::vector<size_t> sources;  // numbers of the rows that went into it
  std::string operation;        // that computes the wrong value
  // Of the kind of measure that decided: the whole tensor, a row or a column of it.
  double error = 0;
  double noise = 0;  // what a healthy value would be off by
  Measure measure = Measure::kWhole;
  double excess = 0;  // how many times its limit it is off by; infinite where it is broken
  std::optional<uint32_t> after;  // the finding that what went into it follows from, by its number
  Expected expected;              // where that comes from
  std::vector<Cause> causes;      // best first; none: none explains it, or none was looked for
  std::string reason;             // sentences
  size_t follow = 0;              // rows that are off because of it
  // Other tokens and ranks in which the same operation goes wrong.
  size_t tokens = 1;
  size_t ranks = 1;

  compare::Verdict verdict() const { return row.judgement->verdict; }
};

struct LocateOptions {
  // Rows come in the order of the computation. Without it nothing is known of where a value comes
  // from: each is judged for itself, and nothing is found.
  bool in_order = true;
  const NoiseRun* noise = nullptr;
};

class Locator {
 public:
  using Emit = std::function<void(compare::Row&& row, uint64_t bytes)>;

  Locator(const LocateOptions& options, Emit emit) : options_(options), emit_(std::move(emit)) {}

  void add(compare::Row&& row, uint64_t bytes);
  // After the last row.
  void finish();

  // Faults in the order in which they were computed, but those that are hardly beyond their limits
  // after others that are far beyond; where there is none, what is suspicious.
  std::vector<Finding> findings() const;
  // The first values that are choices and differ, although what chose is sound as far as was seen.
  const std::vector<Finding>& choices() const { return choices_; }

 private:
  struct Waiting {
    compare::Row row;
    uint64_t bytes;
  };
  static constexpr uint32_t kNoFinding = ~uint32_t{0};

  void judge_token();
  void take_sources_of_peers();
  void judge(size_t i, const Expected& expected);
  void judge_broken(size_t i, const Expected& expected);
  void judge_error(size_t i, const Expected& expected);
  void judge_alone(size_t i);
  uint32_t infection_of(size_t i) const;
  uint32_t earlier_finding(size_t i, double excess) const;
  bool is_copy_in_golden(size_t i) const;
  double healthy_input(size_t i) const;
  void follow(size_t i, uint32_t finding);
  Finding finding_at(size_t i, const Expected& expected, size_t measure) const;
  uint32_t add_finding(Finding&& finding);

  LocateOptions options_;
  Emit emit_;
  std::string token_;
  size_t rows_ = 0;  // handed on so far
  std::vector<Waiting> waiting_;
  // Of the rows that wait:
  std::vector<Value> values_;
  std::vector<std::optional<NoiseRun::Measured>> noise_;
  std::unordered_map<std::string, std::vector<size_t>>
      alone_;                    // by operation: golden has none such
  std::vector<uint32_t> found_;  // the finding that each follows from
  std::vector<double> healthy_;  // what each would be off by without it
  // Of all tokens:
  Memory memory_;
  std::unordered_map<uint64_t, uint32_t> infected_;  // findings, by Value::id
  std::vector<Finding> findings_;
  std::vector<Finding> suspicions_;
  std::vector<Finding> choices_;
};

}  // namespace ait::locate
