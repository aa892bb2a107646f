#include "summary/findings.h"

#include <fmt/format.h>

#include "report/utf8.h"
#include "tables/comparison.h"

namespace ait::summary {
namespace {

using compare::Verdict;
using locate::Finding;
using report::Cell;
using report::JsonObject;

constexpr size_t kShownFindings = 5;

// "Fault: token 0, root.model.layers.1.mlp.down_proj (layer 1)"
std::string head(const Finding& finding) {
  const compare::Row& row = finding.row;
  std::string title = "Fault";
  if (finding.verdict() == Verdict::kBroken) title = "Broken";
  if (finding.verdict() == Verdict::kSuspicious) title = "Suspicious";
  std::string out = fmt::format("{}: token {}, {}", title, report::visible(row.token),
                                report::visible(finding.operation));
  if (!row.subject.rank.empty())
    out += fmt::format(" on rank {}", report::visible(row.subject.rank));
  if (row.subject.layer) out += fmt::format(" (layer {})", *row.subject.layer);
  return out;
}

std::string passed_text(const Finding& finding) {
  const std::vector<std::string>& passed = finding.row.origin.passed;
  if (passed.empty()) return {};
  std::string names;
  for (const std::string& name : passed) names += (names.empty() ? "" : ", ") + name;
  return fmt::format("  or in one of its inputs that has no partner: {}\n", report::visible(names));
}

std::string explain_text(const Finding& finding) {
  const locate::Expected& expected = finding.expected;
  return fmt::format(
      "  threshold: {} × {} ({}); inputs {} off × gain {:.2g}, own rounding {:.2g}\n",
      locate::number_text(finding.noise), locate::number_text(expected.factor(finding.measure)),
      expected.basis_text(), locate::number_text(expected.input), expected.gain, expected.floor);
}

std::string text_of(const Finding& finding, bool explain) {
  std::string out = head(finding) + "\n";
  out += fmt::format("  {}: {}\n", report::visible(tables::data_id(finding.row.subject)),
                     finding.reason);
  out += passed_text(finding);
  for (const locate::Cause& cause : finding.causes)
    out += fmt::format("  likely cause: {}: {}\n", cause.name, cause.text);
  if (finding.follow > 0)
    out += fmt::format("  {} later rows differ because of it\n", finding.follow);
  return explain ? out + explain_text(finding) : out;
}

}  // namespace

std::string findings_text(const std::vector<Finding>& findings, size_t differing, bool explain) {
  if (findings.empty())
    return differing == 0 ? std::string() : "No fault: rounding explains every difference.\n";
  std::string out;
  for (size_t i = 0; i < findings.size() && i < kShownFindings; ++i)
    out += text_of(findings[i], explain);
  if (findings.size() > kShownFindings)
    out += fmt::format("… and {} more findings, see --json\n", findings.size() - kShownFindings);
  return out;
}

report::JsonArray findings_json(const std::vector<Finding>& findings) {
  report::JsonArray out;
  for (const Finding& finding : findings) {
    report::JsonArray causes;
    for (const locate::Cause& cause : finding.causes) {
      JsonObject each;
      each.set("name", cause.name)
          .set("text", cause.text)
          .set("residual_error", cause.residual_error);
      causes.emplace_back(std::move(each));
    }
    report::JsonArray passed;
    for (const std::string& name : finding.row.origin.passed) passed.emplace_back(name);
    const compare::Row& row = finding.row;
    JsonObject object;
    object.set("verdict", compare::word(finding.verdict()))
        .set("token_id", row.token)
        .set("data_id", tables::data_id(row.subject))
        .set("operation", finding.operation)
        .set("rank", row.subject.rank.empty() ? Cell() : Cell(row.subject.rank))
        .set("layer", row.subject.layer ? Cell(uint64_t{*row.subject.layer}) : Cell())
        .set("error", finding.error)
        .set("noise", finding.noise)
        .set("measured_on", locate::word(finding.measure))
        .set("causes", std::move(causes))
        .set("not_paired", std::move(passed))
        .set("rows_that_follow", uint64_t{finding.follow})
        .set("reason", finding.reason)
        .set("threshold", finding.expected.basis_text());
    out.emplace_back(std::move(object));
  }
  return out;
}

Cell jump_json(const std::vector<Finding>& findings) {
  return findings.empty() ? Cell() : Cell(tables::data_id(findings.front().row.subject));
}

}  // namespace ait::summary
