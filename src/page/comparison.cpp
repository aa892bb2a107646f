#include "page/comparison.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "compare/engine.h"
#include "page/detail.h"
#include "page/manifests.h"
#include "page/results.h"
#include "summary/findings.h"

namespace ait::page {
namespace {

using compare::Row;
using locate::Finding;
using report::Cell;
using report::Json;
using report::JsonArray;
using report::JsonObject;
using tables::ComparisonColumn;

// Rows whose tensors are looked at, and elements of all of these: a page should not take longer than
// the comparison.
constexpr size_t kMostDetails = 50;
constexpr size_t kMostElements = size_t{1} << 28;

template <typename T>
std::string joined(const std::vector<T>& values, std::string_view separator) {
  std::string out;
  for (const T& value : values) {
    if (!out.empty()) out += separator;
    if constexpr (std::is_same_v<T, std::string>)
      out += value;
    else
      out += std::to_string(value);
  }
  return out;
}

template <auto get>
Cell of_profile(const Row& row) {
  return row.comparison && row.comparison->profile ? Cell(get(*row.comparison->profile)) : Cell();
}

using metrics::ErrorProfile;
using enum report::ColumnGroup;

// What the page wants to know beside the columns of the csv.
constexpr auto kPageColumns = std::to_array<ComparisonColumn>({
    {"subject", kOrigin, [](const Row& r) { return Cell(r.subject.name); }},
    {"tensor", kOrigin, [](const Row& r) { return Cell(r.subject.tensor); }},
    {"layer", kOrigin,
     [](const Row& r) { return r.subject.layer ? Cell(uint64_t{*r.subject.layer}) : Cell(); }},
    {"direction", kOrigin,
     [](const Row& r) {
       const auto& records = r.actual.records.empty() ? r.golden.records : r.actual.records;
       if (records.empty()) return Cell();
       return Cell(std::string(records.front().direction == capture::Direction::kInput ? "input"
                                                                                       : "output"));
     }},
    {"missing", kOrigin,
     [](const Row& r) {
       if (r.golden.is_missing()) return Cell(std::string("golden"));
       return r.actual.is_missing() ? Cell(std::string("my")) : Cell();
     }},
    {"made_by", kOrigin, [](const Row& r) { return Cell(r.origin.operation); }},
    {"sources", kOrigin, [](const Row& r) { return Cell(joined(r.origin.sources, " ")); }},
    {"passed", kOrigin, [](const Row& r) { return Cell(joined(r.origin.passed, "\n")); }},
    {"is_copy", kOrigin, [](const Row& r) { return r.origin.is_copy ? Cell(true) : Cell(); }},
    {"rows", kExtended, of_profile<[](const ErrorProfile& p) { return p.rows; }>},
    {"error_worst_row", kExtended, of_profile<[](const ErrorProfile& p) { return p.worst_row; }>},
    {"worst_row_error", kExtended,
     of_profile<[](const ErrorProfile& p) { return p.worst_row_error; }>},
    {"usual_row_error", kExtended,
     of_profile<[](const ErrorProfile& p) { return p.usual_row_error; }>},
    {"error_worst_column", kExtended,
     of_profile<[](const ErrorProfile& p) { return p.worst_column; }>},
    {"worst_column_error", kExtended,
     of_profile<[](const ErrorProfile& p) { return p.worst_column_error; }>},
    {"usual_column_error", kExtended,
     of_profile<[](const ErrorProfile& p) { return p.usual_column_error; }>},
});

tables::ComparisonColumns columns_of_page() {
  tables::ComparisonColumns out;
  for (const ComparisonColumn& column : tables::all_comparison_columns())
    if (!column.name.starts_with("my_headroom_")) out.push_back(&column);
  for (const ComparisonColumn& column : kPageColumns) out.push_back(&column);
  return out;
}

// How much a row is worth a closer look.
double interest(const Row& row) {
  if (row.golden.is_missing() || row.actual.is_missing() || !row.comparison) return 0;
  if (row.comparison->identical) return 0;
  if (!row.judgement) return row.comparison->relative_euclidean_distance;
  if (row.judgement->verdict == compare::Verdict::kBroken) return 1e300;
  const double expected = std::max(row.judgement->expected, 1e-12);
  return row.judgement->error / expected;
}

// The numbers of the rows that are looked at closely: where errors begin, what went in there, and
// those that stand out most.
std::vector<size_t> chosen(const std::vector<Finding>& findings,
                           const std::multimap<double, size_t>& worst) {
  std::vector<size_t> out;
  std::set<size_t> seen;
  const auto add = [&](size_t number) {
    if (out.size() < kMostDetails && seen.insert(number).second) out.push_back(number);
  };
  for (const Finding& finding : findings) add(finding.number);
  for (const Finding& finding : findings)
    for (const size_t source : finding.sources) add(source);
  for (auto it = worst.rbegin(); it != worst.rend(); ++it) add(it->second);
  return out;
}

JsonArray details_of(const std::vector<size_t>& numbers, const locate::PairOf& pair_of) {
  JsonArray out;
  size_t elements = 0;
  for (const size_t number : numbers) {
    if (!pair_of) break;
    const auto pair = pair_of(number);
    if (!pair || !pair->golden.present() || !pair->actual.present()) continue;
    const auto tensors = compare::load_pair(*pair);
    if (!tensors || elements + tensors->first.elements() > kMostElements) continue;
    elements += tensors->first.elements();
    auto detail = detail_of(tensors->first, tensors->second);
    if (!detail) continue;
    detail->set("row", uint64_t{number});
    out.emplace_back(std::move(*detail));
  }
  return out;
}

// What the words of a finding stand on, and what its row is called, which may be beyond kMostRows.
JsonArray finding_facts(const std::vector<Finding>& findings) {
  JsonArray out;
  for (const Finding& finding : findings) {
    JsonArray sources;
    for (const size_t source : finding.sources) sources.emplace_back(uint64_t{source});
    JsonObject each;
    each.set("row", uint64_t{finding.number})
        .set("sources", std::move(sources))
        .set("input_error", finding.expected.input)
        .set("gain", finding.expected.gain)
        .set("floor", finding.expected.floor)
        .set("factor", finding.expected.factor(finding.measure))
        .set("peers", uint64_t{finding.expected.peers})
        .set("tokens", uint64_t{finding.tokens})
        .set("ranks", uint64_t{finding.ranks});
    out.emplace_back(std::move(each));
  }
  return out;
}

}  // namespace

ComparisonPage::ComparisonPage() : columns_(columns_of_page()) {
  for (const ComparisonColumn* column : columns_)
    page_.table.add_column(column->name, column->style == report::NumberStyle::kTenDecimals);
}

void ComparisonPage::add(const Row& row) {
  const size_t number = found_.rows();
  found_.add(row);
  if (const double value = interest(row); value > 0) {
    worst_.emplace(value, number);
    if (worst_.size() > kMostDetails) worst_.erase(worst_.begin());
  }
  if (golden_path_.empty() && !row.golden.records.empty())
    golden_path_ = row.golden.records.front().path;
  if (actual_path_.empty() && !row.actual.records.empty())
    actual_path_ = row.actual.records.front().path;
  if (number >= kMostRows) return;
  for (size_t k = 0; k < columns_.size(); ++k) page_.table.set(k, columns_[k]->value(row));
  page_.table.end_row();
}

Page ComparisonPage::finish(const ComparisonFacts& facts) && {
  static const std::vector<Finding> kNone;
  const std::vector<Finding>& findings = facts.findings != nullptr ? *facts.findings : kNone;
  JsonArray manifests;
  add_manifests("golden", golden_path_, manifests);
  add_manifests("my", actual_path_, manifests);
  page_.about.set("kind", "comparison")
      .set("version", facts.version)
      .set("made", now_text())
      .set("command", facts.command)
      .set("report", facts.report)
      .set("rows", uint64_t{found_.rows()})
      .set("complete", facts.complete)
      .set("in_order", facts.in_order)
      .set("counts", found_.json({}))
      .set("findings", summary::findings_json(findings))
      .set("finding_facts", finding_facts(findings))
      .set("details", details_of(chosen(findings, worst_), facts.pair_of))
      .set("manifests", std::move(manifests))
      .set("note", facts.note)
      .set("noise", facts.noise);
  return std::move(page_);
}

}  // namespace ait::page
