#include "locate/locate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "compare/measure.h"
#include "compare/non_finite.h"

namespace ait::locate {
namespace {

using compare::Judgement;
using compare::Row;
using compare::Verdict;

// Rows that wait for the rest of their token. A model of forty layers on eight ranks has fewer.
constexpr size_t kMostWaiting = 32768;

// Half of what makes a fault is worth a look.
constexpr double kSuspicious = 0.5;
// What follows from a fault may grow more than noise does, which is random: a second fault must stand
// out more.
constexpr double kSecondFault = 2;
// What follows from a fault and is no farther off than this many times the noise has got over it.
constexpr double kRecovered = 2;

// A pair of which nothing else is known.
constexpr double kAloneUnits = 8;

constexpr size_t kMostFindings = 64;
constexpr size_t kMostSuspicions = 3;

std::string measure_text(const Row& row, size_t measure) {
  const auto* c = compare::metrics_of(row);
  if (c == nullptr || !c->profile || measure == 0) return "it";
  return measure == 1 ? fmt::format("row {} of it", c->profile->worst_row)
                      : fmt::format("column {} of it", c->profile->worst_column);
}

std::string times_text(double ratio) {
  return ratio < 10 ? fmt::format("{:.1f}", ratio) : fmt::format("{:.0f}", ratio);
}

std::string expected_text(const Expected& expected, size_t measure) {
  if (expected.basis == Basis::kBefore)
    return fmt::format("{}", number_text(expected.errors[measure]));
  return expected.input > 0
             ? fmt::format("{} expected from inputs that are {} off",
                           number_text(expected.errors[measure]), number_text(expected.input))
             : fmt::format("{} expected from inputs that are right",
                           number_text(expected.errors[measure]));
}

bool has_other_shape(const Row& row) {
  return !row.golden.is_missing() && !row.actual.is_missing() && row.golden.was_read() &&
         row.actual.was_read() && !row.comparison &&
         row.reason.find(compare::reasons::kShape) != std::string::npos;
}

// That computed the value. Of a kernel, the operation that it belongs to.
std::string operation_of(const Row& row) {
  const std::string& name = row.origin.is_known && !row.origin.operation.empty()
                                ? row.origin.operation
                                : row.subject.name;
  const bool is_kernel =
      !row.actual.records.empty() && row.actual.records.front().level == capture::Level::kKernel;
  return is_kernel && name == row.subject.name ? name.substr(0, name.rfind('/')) : name;
}

}  // namespace

void Locator::add(Row&& row, uint64_t bytes) {
  if (!waiting_.empty() && (row.token != token_ || waiting_.size() >= kMostWaiting)) judge_token();
  token_ = row.token;
  values_.push_back(value_of(row, values_.size()));
  if (options_.noise != nullptr) noise_.push_back(options_.noise->of(row));
  waiting_.push_back({std::move(row), bytes});
}

void Locator::finish() { judge_token(); }

void Locator::judge_token() {
  found_.assign(values_.size(), kNoFinding);
  healthy_.assign(values_.size(), 0);
  if (options_.in_order) {
    pass_errors_on(values_);
    const std::vector<Expected> expected = expect(values_, noise_, memory_);
    for (size_t i = 0; i < values_.size(); ++i) judge(i, expected);
    for (size_t i = 0; i < values_.size(); ++i)
      if (found_[i] != kNoFinding) infected_.try_emplace(values_[i].id, found_[i]);
  } else {
    for (size_t i = 0; i < values_.size(); ++i) judge_alone(i);
  }
  rows_ += waiting_.size();
  for (Waiting& each : waiting_) emit_(std::move(each.row), each.bytes);
  waiting_.clear();
  values_.clear();
  noise_.clear();
}

// The finding that the inputs of a value follow from; of several the first.
uint32_t Locator::infection_of(size_t i) const {
  uint32_t first = kNoFinding;
  for (const uint32_t source : values_[i].sources) first = std::min(first, found_[source]);
  return first;
}

void Locator::judge(size_t i, const std::vector<Expected>& all) {
  const Value& value = values_[i];
  const Expected& expected = all[i];
  Row& row = waiting_[i].row;
  const uint32_t inherited = infection_of(i);
  if (has_other_shape(row)) {
    row.judgement = Judgement{Verdict::kBroken, 0, 0, "its shape is another one than golden's."};
    return;
  }
  if (!value.is_compared && !value.is_broken) {
    found_[i] = inherited;
    for (const uint32_t source : value.sources)
      healthy_[i] = std::max(
          healthy_[i], found_[source] == kNoFinding ? values_[source].spread : healthy_[source]);
    return;
  }
  if (value.is_identical) {
    row.judgement = Judgement{Verdict::kIdentical, 0, 0, "every element is identical."};
    return;
  }
  Judgement& judgement = row.judgement.emplace();
  if (value.is_copy) {
    const uint32_t source = value.sources.front();
    if (const auto& of_source = waiting_[source].row.judgement) judgement = *of_source;
    found_[i] = found_[source];
    healthy_[i] = healthy_[source];
    return;
  }
  const auto earlier = infected_.find(value.id);
  const uint32_t before = earlier == infected_.end() ? kNoFinding : earlier->second;
  const auto follow = [&](uint32_t finding) {
    found_[i] = finding;
    ++findings_[finding].follow;
  };

  if (value.is_broken) {
    judgement.verdict = Verdict::kBroken;
    healthy_[i] = expected.errors[0];
    const bool handed_on = std::any_of(value.sources.begin(), value.sources.end(),
                                       [&](uint32_t source) { return values_[source].is_broken; });
    judgement.reason =
        "NaN or infinities stand on one side only (" + compare::non_finite_counts(row) +
        (handed_on ? "), as in what went into it." : "), and in nothing that went into it.");
    if (handed_on && inherited != kNoFinding) return follow(inherited);
    if (before != kNoFinding) return follow(before);
    found_[i] = add_finding(i, expected, judgement.reason);
    return;
  }

  size_t measure = 0;
  const double excess = expected.excess(value.errors, &measure);
  judgement.error = value.errors[measure];
  judgement.expected = expected.errors[measure];
  // Without the fault that it follows from, its inputs would be as far off as in a healthy run.
  double healthy_input = 0;
  for (const uint32_t source : value.sources)
    healthy_input = std::max(
        healthy_input, found_[source] == kNoFinding ? values_[source].spread : healthy_[source]);
  healthy_[i] = std::min(value.errors[0], std::max(expected.floor, expected.gain * healthy_input));

  if (value.is_discrete) {
    judgement.verdict = Verdict::kSuspicious;
    judgement.reason =
        "choices differ; where those of golden are close to each other, rounding does that.";
    if (inherited != kNoFinding) follow(inherited);
    return;
  }

  const double ratio = judgement.expected > 0 ? judgement.error / judgement.expected : 0;
  const std::string text =
      fmt::format("{} is {}{} off, {} times the {} ({}).", measure_text(row, measure),
                  value.is_bound ? "at least " : "", number_text(judgement.error),
                  times_text(ratio), expected_text(expected, measure), expected.basis_text());
  decisive_ = measure;
  const double needed = inherited == kNoFinding ? 1 : kSecondFault;
  if (excess > needed && before == kNoFinding) {
    judgement.verdict = Verdict::kFault;
    judgement.reason = text;
    found_[i] = add_finding(i, expected, text);
    return;
  }
  if (inherited != kNoFinding || (excess > needed && before != kNoFinding)) {
    const uint32_t from = excess > needed && before != kNoFinding ? before : inherited;
    if (value.errors[0] > kRecovered * healthy_[i] || excess > kSuspicious) {
      judgement.verdict = Verdict::kFault;
      judgement.reason = fmt::format("it is {} off and follows from {}.",
                                     number_text(judgement.error), findings_[from].operation);
      return follow(from);
    }
  }
  judgement.verdict = excess > kSuspicious ? Verdict::kSuspicious : Verdict::kNoise;
  judgement.reason = text;
  if (judgement.verdict == Verdict::kSuspicious && suspicions_.size() < kMostSuspicions) {
    const size_t count = findings_.size();
    add_finding(i, expected, text);
    if (findings_.size() > count) {
      suspicions_.push_back(std::move(findings_.back()));
      findings_.pop_back();
    }
  }
}

// Nothing is known of where the value comes from.
void Locator::judge_alone(size_t i) {
  const Value& value = values_[i];
  Row& row = waiting_[i].row;
  if (value.is_broken || has_other_shape(row)) {
    row.judgement = Judgement{Verdict::kBroken, 0, 0,
                              value.is_broken ? "it holds NaN or infinities on one side only."
                                              : "its shape is another one than golden's."};
  } else if (value.is_identical) {
    row.judgement = Judgement{Verdict::kIdentical, 0, 0, "every element is identical."};
  } else if (value.is_compared) {
    const double expected = kAloneUnits * value.unit;
    const bool is_noise = value.errors[0] <= expected;
    row.judgement = Judgement{
        is_noise ? Verdict::kNoise : Verdict::kSuspicious, value.errors[0], expected,
        fmt::format("it is {} off; a few roundings of its type make up to {}, and nothing is known "
                    "of what went into it.",
                    number_text(value.errors[0]), number_text(expected))};
  }
}

uint32_t Locator::add_finding(size_t i, const Expected& expected, const std::string& reason) {
  const Row& row = waiting_[i].row;
  const std::string operation = operation_of(row);
  // The same operation on another rank.
  for (uint32_t known = 0; known < findings_.size(); ++known)
    if (findings_[known].operation == operation && findings_[known].row.token == row.token &&
        findings_[known].row.subject.rank != row.subject.rank) {
      ++findings_[known].ranks;
      return known;
    }
  if (findings_.size() >= kMostFindings) return kMostFindings - 1;
  Finding finding;
  finding.row = row;
  finding.number = rows_ + i;
  for (const uint32_t source : values_[i].sources) finding.sources.push_back(rows_ + source);
  finding.operation = operation;
  finding.error = row.judgement->error;
  finding.noise = row.judgement->expected;
  if (values_[i].is_broken) finding.noise = expected.errors[0];
  finding.reason = reason;
  finding.measure = static_cast<Measure>(decisive_);
  finding.expected = expected;
  findings_.push_back(std::move(finding));
  return static_cast<uint32_t>(findings_.size() - 1);
}

std::vector<Finding> Locator::findings() const {
  return findings_.empty() ? suspicions_ : findings_;
}

}  // namespace ait::locate
