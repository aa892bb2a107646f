#include "locate/examine.h"

#include <fmt/format.h>

#include "compare/engine.h"
#include "locate/introduced.h"

namespace ait::locate {
namespace {

// Hypotheses cost time, and what comes after the first few faults follows from them more often than
// not.
constexpr size_t kExamined = 4;

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
        operation, number_text(again->of_bound));
    return;
  }
  if (any)
    finding.reason +=
        " Computed again from its own inputs, it is right: look at what it is given, its weights "
        "and parameters among that.";
}

}  // namespace

void examine(std::vector<Finding>& findings, const PairOf& pair_of) {
  for (size_t i = 0; i < findings.size() && i < kExamined; ++i) {
    Finding& finding = findings[i];
    if (finding.verdict() != compare::Verdict::kSuspicious) find_culprit(finding);
    const auto pair = pair_of(finding.number);
    if (!pair) continue;
    const auto tensors = compare::load_pair(*pair);
    if (!tensors || tensors->first.elements() != tensors->second.elements()) continue;
  }
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
