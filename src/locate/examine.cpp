#include "locate/examine.h"

#include "compare/engine.h"

namespace ait::locate {
namespace {

// Hypotheses cost time, and what comes after the first few faults follows from them more often than
// not.
constexpr size_t kExamined = 4;

}  // namespace

void examine(std::vector<Finding>& findings, const PairOf& pair_of) {
  for (size_t i = 0; i < findings.size() && i < kExamined; ++i) {
    Finding& finding = findings[i];
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
