#include "locate/examine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>
#include <utility>

#include "compare/engine.h"
#include "locate/choices.h"
#include "locate/introduced.h"
#include "locate/unpaired.h"
#include "metrics/compare.h"

namespace ait::locate {
namespace {

// Hypotheses cost time, and what comes after the first few faults follows from them more often than
// not.
constexpr size_t kExamined = 4;

// Rows that are looked through for the same value at the tokens before, and how many of these.
constexpr size_t kLookedBack = 20000;
constexpr size_t kEarlierTokens = 64;

// The largest error of what went into the module that put a value out, as far as both runs recorded
// it beside the value, infinite where their shapes differ; nothing where neither did.
std::optional<double> recorded_input_error(const Finding& finding) {
  if (finding.row.golden.records.size() != 1 || finding.row.actual.records.size() != 1)
    return std::nullopt;
  namespace fs = std::filesystem;
  const fs::path golden = fs::path(finding.row.golden.records[0].path).parent_path();
  const fs::path actual = fs::path(finding.row.actual.records[0].path).parent_path();
  std::optional<double> most;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(actual, ignored)) {
    const std::string name = entry.path().filename().native();
    if (!name.starts_with("input")) continue;
    match::Pair pair;
    pair.golden.records.emplace_back().path = (golden / name).native();
    pair.actual.records.emplace_back().path = entry.path().native();
    const auto tensors = compare::load_pair(pair);
    if (!tensors) continue;
    if (tensors->first.elements() != tensors->second.elements())
      return std::numeric_limits<double>::infinity();
    const auto compared = metrics::compare(tensors->first.view(), tensors->second.view(), {});
    if (compared) most = std::max(most.value_or(0), compared->relative_euclidean_distance);
  }
  return most;
}

// A module whose inputs have no rows: where these are off, it was the module around it.
void blame_who_fed_it(Finding& finding) {
  const std::vector<std::string>& passed = finding.row.origin.passed;
  if (passed.empty() || finding.row.actual.records.empty()) return;
  if (finding.row.actual.records[0].direction != capture::Direction::kOutput) return;
  const auto input = recorded_input_error(finding);
  if (!input || *input <= finding.noise) return;
  finding.operation = passed.back();
  const std::string off = std::isinf(*input) ? "of another shape" : number_text(*input) + " off";
  finding.reason +=
      fmt::format(" What went into it is {} already: {} computed that.", off, passed.back());
}

// Which of the operations that may have made a value adds an error of its own, where that can be
// told: those that have no partner, and the one that put the value out.
void find_culprit(Finding& finding) {
  if (finding.row.actual.records.empty()) return;
  const capture::TensorRecord& record = finding.row.actual.records.front();
  bool any = false;
  std::vector<std::string> candidates = finding.row.origin.passed;
  candidates.push_back(finding.operation);
  for (const std::string& operation : candidates) {
    const auto again = introduced_error(record, operation);
    if (!again) continue;
    any = true;
    if (again->of_bound <= 1) continue;
    finding.operation = operation;
    finding.reason += fmt::format(
        " Computed again from its own inputs, {} is {} times farther off than rounding explains.",
        operation, times_text(again->of_bound));
    return;
  }
  if (!any) return;
  if (!finding.row.origin.passed.empty()) {
    // It computes what it is given, and that was computed by something that golden has nothing like.
    finding.reason += fmt::format(
        " Computed again from its own inputs, {} is right: what it is given is wrong, which {} "
        "computed.",
        finding.operation, finding.row.origin.passed.front());
    finding.operation = finding.row.origin.passed.front();
    return;
  }
  finding.reason +=
      " Computed again from its own inputs, it is right: look at what it is given, its weights "
      "and parameters among that.";
}

// The tensors of a row as they are compared; nothing where they cannot be read, or do not fit.
std::optional<std::pair<Tensor, Tensor>> tensors_of(const match::Pair& pair) {
  auto tensors = compare::load_pair(pair);
  if (!tensors || tensors->first.elements() != tensors->second.elements()) return std::nullopt;
  return std::move(*tensors);
}

// The same value at tokens before, the oldest first.
std::vector<std::pair<Tensor, Tensor>> earlier_of(size_t number, const match::Pair& pair,
                                                  const PairOf& pair_of) {
  std::vector<std::pair<Tensor, Tensor>> out;
  if (pair.token == "0") return out;
  for (size_t back = 1; back <= number && back <= kLookedBack && out.size() < kEarlierTokens;
       ++back) {
    const auto other = pair_of(number - back);
    if (!other || other->token == pair.token || !(other->subject == pair.subject)) continue;
    if (auto tensors = tensors_of(*other)) out.push_back(std::move(*tensors));
  }
  std::reverse(out.begin(), out.end());
  return out;
}

std::optional<CauseCase> case_of(const Finding& finding, const PairOf& pair_of) {
  const auto pair = pair_of(finding.number);
  if (!pair) return std::nullopt;
  auto tensors = tensors_of(*pair);
  if (!tensors) return std::nullopt;
  CauseCase fault{std::move(tensors->first), std::move(tensors->second)};
  fault.kind = finding.row.origin.kind;
  fault.type = finding.row.actual.records.front().type;
  fault.noise = finding.expected.errors[0];
  if (pair->padding) fault.padding = *pair->padding;
  if (finding.measure == Measure::kRow)
    if (const metrics::Comparison* c = compare::metrics_of(finding.row); c && c->profile)
      fault.worst_row = c->profile->worst_row;
  for (auto& [golden, actual] : earlier_of(finding.number, *pair, pair_of))
    fault.golden_earlier.push_back(std::move(golden));
  for (const size_t number : finding.sources) {
    const auto source = pair_of(number);
    if (!source) continue;
    auto input = tensors_of(*source);
    if (!input) continue;
    CauseInput& added =
        fault.inputs.emplace_back(CauseInput{std::move(input->first), std::move(input->second),
                                             source->subject.name, source->origin.kind});
    for (auto& [golden, actual] : earlier_of(number, *source, pair_of)) {
      added.golden_earlier.push_back(std::move(golden));
      added.actual_earlier.push_back(std::move(actual));
    }
  }
  return fault;
}

// A rotation that has no partner shows only in the attention after it.
void blame_rotation(Finding& finding) {
  if (finding.causes.empty()) return;
  const std::string& cause = finding.causes.front().name;
  if (cause != "rope-pairing" && cause != "position") return;
  for (const std::string& operation : finding.row.origin.passed)
    if (operation.find("Rope") != std::string::npos) finding.operation = operation;
}

// The first choice that rounding does not explain.
std::optional<Finding> wrong_choice(const Locator& locator, const PairOf& pair_of) {
  for (const Finding& choice : locator.choices())
    if (auto reason = unexplained_choice(choice, pair_of)) {
      Finding out = choice;
      out.reason = *reason;
      out.row.judgement->verdict = compare::Verdict::kFault;
      out.row.judgement->reason = std::move(*reason);
      out.causes.push_back({"choice", "my choices are not those of the best scores", 0, 0});
      return out;
    }
  return std::nullopt;
}

// In its place among the faults. What is only suspicious is no longer worth a word.
void add_choice(Finding&& choice, std::vector<Finding>& findings) {
  std::erase_if(findings, [](const Finding& each) {
    return each.verdict() == compare::Verdict::kSuspicious;
  });
  const auto later = std::find_if(findings.begin(), findings.end(),
                                  [&](const Finding& each) { return each.number > choice.number; });
  findings.insert(later, std::move(choice));
}

void take_culprit(Culprit&& culprit, Finding& finding) {
  finding.operation = std::move(culprit.operation);
  finding.reason += culprit.reason;
  finding.causes = std::move(culprit.causes);
  finding.row.judgement->verdict = compare::Verdict::kFault;
}

}  // namespace

std::vector<Finding> examine(const Locator& locator, const PairOf& pair_of) {
  std::vector<Finding> findings = locator.findings();
  if (auto choice = wrong_choice(locator, pair_of)) add_choice(std::move(*choice), findings);
  for (size_t i = 0; i < findings.size() && i < kExamined; ++i) {
    Finding& finding = findings[i];
    if (auto culprit = led_astray(finding, pair_of)) {
      take_culprit(std::move(*culprit), finding);
    } else {
      if (finding.verdict() == compare::Verdict::kSuspicious) continue;
      find_culprit(finding);
      blame_who_fed_it(finding);
    }
    if (!finding.causes.empty()) continue;
    if (auto fault = case_of(finding, pair_of)) finding.causes = likely_causes(*fault);
    blame_rotation(finding);
  }
  return findings;
}

match::Pair pair_of(const compare::Row& row) {
  match::Pair pair;
  pair.token = row.token;
  pair.subject = row.subject;
  pair.origin = row.origin;
  pair.golden.records = row.golden.records;
  pair.golden.transform = row.golden.transform;
  pair.actual.records = row.actual.records;
  pair.actual.transform = row.actual.transform;
  return pair;
}

}  // namespace ait::locate
