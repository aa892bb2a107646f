#include "locate/locate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

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

// A finding that is hardly beyond its limit may be a healthy value that strays; one that is so many
// times farther beyond is none. What follows from the first may be farther off itself.
constexpr double kHardly = 1.7;
constexpr double kOutshines = 4;
constexpr double kOutshinesBefore = 20;

// The same value in both runs is as far off wherever it stands, but for padding.
constexpr double kSameError = 1.1;

// A pair of which nothing else is known.
constexpr double kAloneUnits = 8;

constexpr const char* kOtherShape = "its shape is another one than golden's.";
constexpr const char* kIdentical = "every element is identical.";
constexpr const char* kOtherChoices =
    "choices differ; rounding does that where two of golden's are close to each other.";

constexpr size_t kMostFindings = 64;
constexpr size_t kMostSuspicions = 3;
constexpr size_t kMostChoices = 64;

bool outshines(double excess, double other, bool follows) {
  return other < kHardly && excess > (follows ? kOutshinesBefore : kOutshines) * other;
}

std::string measure_text(const Row& row, size_t measure) {
  const auto* c = compare::metrics_of(row);
  if (c == nullptr || !c->profile || measure == 0) return "it";
  return measure == 1 ? fmt::format("row {} of it", c->profile->worst_row)
                      : fmt::format("column {} of it", c->profile->worst_column);
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

std::string error_text(const Row& row, const Value& value, const Expected& expected,
                       size_t measure) {
  const double ratio =
      expected.errors[measure] > 0 ? value.errors[measure] / expected.errors[measure] : 0;
  return fmt::format("{} is {}{} off, {} times the {} ({}).", measure_text(row, measure),
                     value.is_bound ? "at least " : "", number_text(value.errors[measure]),
                     times_text(ratio), expected_text(expected, measure), expected.basis_text());
}

bool has_other_shape(const Row& row) {
  return !row.golden.is_missing() && !row.actual.is_missing() && row.golden.was_read() &&
         row.actual.was_read() && !row.comparison &&
         row.reason.find(compare::reasons::kShape) != std::string::npos;
}

// That computed the value. Of a kernel, the operation that it belongs to; of what goes into a module
// and is only handed on by my side, the module around it, which had to compute something there.
std::string operation_of(const Row& row) {
  const std::string& name = row.origin.is_known && !row.origin.operation.empty()
                                ? row.origin.operation
                                : row.subject.name;
  const bool is_input = !row.actual.records.empty() &&
                        row.actual.records.front().direction == capture::Direction::kInput;
  if (row.origin.is_copy)
    return is_input ? row.subject.name.substr(0, row.subject.name.rfind('.')) : row.subject.name;
  const bool is_kernel =
      !row.actual.records.empty() && row.actual.records.front().level == capture::Level::kKernel;
  return is_kernel && name == row.subject.name ? name.substr(0, name.rfind('/')) : name;
}

}  // namespace

void Locator::add(Row&& row, uint64_t bytes) {
  if (!waiting_.empty() && (row.token != token_ || waiting_.size() >= kMostWaiting)) judge_token();
  token_ = row.token;
  const size_t place = values_.size();
  values_.push_back(value_of(row, place));
  if (row.golden.is_missing()) alone_[row.subject.name].push_back(place);
  for (const std::string& operation : row.origin.passed)
    if (const auto found = alone_.find(operation); found != alone_.end())
      for (const size_t at : found->second)
        values_[place].passed_unit = std::max(values_[place].passed_unit, values_[at].unit);
  if (options_.noise != nullptr) noise_.push_back(options_.noise->of(row));
  waiting_.push_back({std::move(row), bytes});
}

void Locator::finish() { judge_token(); }

void Locator::judge_token() {
  found_.assign(values_.size(), kNoFinding);
  healthy_.assign(values_.size(), 0);
  if (options_.in_order) {
    pass_errors_on(values_);
    take_sources_of_peers();
    note_uses(values_);
    const std::vector<Expected> expected = expect(values_, noise_, memory_);
    for (size_t i = 0; i < values_.size(); ++i) judge(i, expected[i]);
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
  alone_.clear();
}

// What golden computed and my side only hands on was to be computed of what the same value of other
// layers is.
void Locator::take_sources_of_peers() {
  for (size_t i = 0; i < values_.size(); ++i) {
    Value& value = values_[i];
    if (!value.is_copy || value.role == 0 || !value.is_compared || is_copy_in_golden(i)) continue;
    for (size_t other = 0; other < values_.size(); ++other) {
      const Value& peer = values_[other];
      if (peer.role != value.role || peer.is_copy) continue;
      std::vector<uint32_t> sources;
      for (const uint32_t source : peer.sources)
        if (const size_t back = other - source; back <= i)
          sources.push_back(static_cast<uint32_t>(i - back));
      value.sources = std::move(sources);
      value.is_copy = false;
      break;
    }
  }
}

// The finding that the inputs of a value follow from; of several the first.
uint32_t Locator::infection_of(size_t i) const {
  uint32_t first = kNoFinding;
  for (const uint32_t source : values_[i].sources) first = std::min(first, found_[source]);
  return first;
}

// A finding of an earlier token that explains why the same value is off at this one, or what reads a
// cache: of this layer or of one before it.
uint32_t Locator::earlier_finding(size_t i, double excess) const {
  const auto explains = [&](const Finding& finding) {
    return !outshines(excess, finding.excess, true);
  };
  if (const auto known = infected_.find(values_[i].id);
      known != infected_.end() && explains(findings_[known->second]))
    return known->second;
  const std::optional<uint32_t>& layer = waiting_[i].row.subject.layer;
  if (!values_[i].reads_cache || !layer) return kNoFinding;
  for (uint32_t known = 0; known < findings_.size(); ++known)
    if (findings_[known].row.token != token_ && explains(findings_[known]) &&
        findings_[known].row.subject.layer.value_or(0) <= *layer)
      return known;
  return kNoFinding;
}

// What my side only hands on, golden may have computed: an addition that was left out.
bool Locator::is_copy_in_golden(size_t i) const {
  if (!values_[i].is_copy) return false;
  const Value& source = values_[values_[i].sources.front()];
  return source.is_compared && values_[i].errors[0] <= kSameError * source.errors[0];
}

// What the inputs of a value would be off by without the fault that they follow from.
double Locator::healthy_input(size_t i) const {
  double most = 0;
  for (const uint32_t source : values_[i].sources)
    most = std::max(most, found_[source] == kNoFinding ? values_[source].spread : healthy_[source]);
  return most;
}

void Locator::follow(size_t i, uint32_t finding) {
  found_[i] = finding;
  ++findings_[finding].follow;
}

void Locator::judge(size_t i, const Expected& expected) {
  const Value& value = values_[i];
  Row& row = waiting_[i].row;
  if (has_other_shape(row)) {
    row.judgement = Judgement{Verdict::kBroken, 0, 0, kOtherShape};
  } else if (value.is_broken) {
    judge_broken(i, expected);
  } else if (!value.is_compared) {
    found_[i] = infection_of(i);
    healthy_[i] = healthy_input(i);
  } else if (value.is_identical) {
    row.judgement = Judgement{Verdict::kIdentical, 0, 0, kIdentical};
  } else if (is_copy_in_golden(i)) {
    const uint32_t source = value.sources.front();
    row.judgement = waiting_[source].row.judgement;
    found_[i] = found_[source];
    healthy_[i] = healthy_[source];
  } else if (value.is_discrete) {
    row.judgement = Judgement{Verdict::kSuspicious, value.errors[0], 0, kOtherChoices};
    if (const uint32_t inherited = infection_of(i); inherited != kNoFinding)
      follow(i, inherited);
    else if (choices_.size() < kMostChoices)
      choices_.push_back(finding_at(i, expected, 0));
  } else {
    judge_error(i, expected);
  }
}

void Locator::judge_broken(size_t i, const Expected& expected) {
  const Value& value = values_[i];
  Row& row = waiting_[i].row;
  const bool handed_on = std::any_of(value.sources.begin(), value.sources.end(),
                                     [&](uint32_t source) { return values_[source].is_broken; });
  row.judgement = Judgement{
      Verdict::kBroken, 0, expected.errors[0],
      "NaN or infinities stand on one side only (" + compare::non_finite_counts(row) +
          (handed_on ? "), as in what went into it." : "), and in nothing that went into it.")};
  healthy_[i] = expected.errors[0];
  const uint32_t inherited = handed_on ? infection_of(i) : kNoFinding;
  constexpr double kBeyondAll = std::numeric_limits<double>::infinity();
  const uint32_t from = inherited != kNoFinding ? inherited : earlier_finding(i, kBeyondAll);
  if (from != kNoFinding) return follow(i, from);
  Finding finding = finding_at(i, expected, 0);
  finding.excess = kBeyondAll;
  found_[i] = add_finding(std::move(finding));
}

void Locator::judge_error(size_t i, const Expected& expected) {
  const Value& value = values_[i];
  Row& row = waiting_[i].row;
  size_t measure = 0;
  const double excess = expected.excess(value.errors, &measure);
  healthy_[i] =
      std::min(value.errors[0], std::max(expected.floor, expected.gain * healthy_input(i)));
  Judgement& judgement = row.judgement.emplace();
  judgement.error = value.errors[measure];
  judgement.expected = expected.errors[measure];

  uint32_t from = infection_of(i);
  // What a layer puts out and nobody takes, such as the weights of attention, harms nothing.
  const bool matters =
      (value.is_used || !row.subject.layer || !value.has_origin) && !expected.is_open;
  const bool stands_out = matters && excess > (from == kNoFinding ? 1 : kSecondFault);
  if (stands_out) {
    const uint32_t before = std::exchange(from, earlier_finding(i, excess));
    if (from == kNoFinding) {
      judgement.verdict = Verdict::kFault;
      judgement.reason = error_text(row, value, expected, measure);
      Finding finding = finding_at(i, expected, measure);
      if (before != kNoFinding) finding.after = before;
      found_[i] = add_finding(std::move(finding));
      return;
    }
  }
  if (from != kNoFinding && (excess > kSuspicious || value.errors[0] > kRecovered * healthy_[i])) {
    judgement.verdict = Verdict::kFault;
    judgement.reason = fmt::format("it is {} off and follows from {}.",
                                   number_text(judgement.error), findings_[from].operation);
    return follow(i, from);
  }
  judgement.verdict = excess > kSuspicious ? Verdict::kSuspicious : Verdict::kNoise;
  judgement.reason = error_text(row, value, expected, measure);
  if (judgement.verdict == Verdict::kSuspicious && suspicions_.size() < kMostSuspicions)
    suspicions_.push_back(finding_at(i, expected, measure));
}

// Nothing is known of where the value comes from.
void Locator::judge_alone(size_t i) {
  const Value& value = values_[i];
  Row& row = waiting_[i].row;
  if (value.is_broken || has_other_shape(row)) {
    row.judgement =
        Judgement{Verdict::kBroken, 0, 0,
                  value.is_broken ? "NaN or infinities stand on one side only." : kOtherShape};
  } else if (value.is_identical) {
    row.judgement = Judgement{Verdict::kIdentical, 0, 0, kIdentical};
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

Finding Locator::finding_at(size_t i, const Expected& expected, size_t measure) const {
  Finding finding;
  finding.row = waiting_[i].row;
  finding.number = rows_ + i;
  for (const uint32_t source : values_[i].sources) finding.sources.push_back(rows_ + source);
  finding.operation = operation_of(finding.row);
  finding.error = finding.row.judgement->error;
  finding.noise = finding.row.judgement->expected;
  finding.reason = finding.row.judgement->reason;
  finding.measure = static_cast<Measure>(measure);
  finding.excess = expected.excess(values_[i].errors);
  finding.expected = expected;
  return finding;
}

uint32_t Locator::add_finding(Finding&& finding) {
  for (uint32_t known = 0; known < findings_.size(); ++known)
    if (Finding& other = findings_[known]; other.operation == finding.operation &&
                                           other.row.token == finding.row.token &&
                                           other.row.subject.rank != finding.row.subject.rank) {
      ++other.ranks;
      return known;
    }
  if (findings_.size() < kMostFindings) findings_.push_back(std::move(finding));
  return static_cast<uint32_t>(findings_.size() - 1);
}

std::vector<Finding> Locator::findings() const {
  if (findings_.empty()) return suspicions_;
  std::vector<Finding> out;
  std::vector<Finding> less;
  for (uint32_t i = 0; i < findings_.size(); ++i) {
    const bool is_less = std::any_of(findings_.begin(), findings_.end(), [&](const Finding& other) {
      return outshines(other.excess, findings_[i].excess, other.after == i);
    });
    (is_less ? less : out).push_back(findings_[i]);
  }
  out.insert(out.end(), std::make_move_iterator(less.begin()), std::make_move_iterator(less.end()));
  return out;
}

}  // namespace ait::locate
