#include "cli/compare_many.h"

#include <fmt/format.h>

#include <map>

#include "base/log.h"
#include "cli/page_file.h"
#include "cli/process_io.h"
#include "cli/progress.h"
#include "cli/report_name.h"
#include "cli/stored_rows.h"
#include "compare/engine.h"
#include "locate/examine.h"
#include "locate/locate.h"
#include "report/json.h"
#include "report/utf8.h"
#include "report/wrap.h"
#include "summary/comparison.h"
#include "summary/findings.h"
#include "summary/pairing.h"
#include "tables/row_report.h"

namespace ait::cli {
namespace {

constexpr size_t kShownProblems = 5;
constexpr size_t kMaxPathBytes = 4096;  // as reasons have them

// Writes the page that --html asks for; its path, or nothing where none was asked for. `rows` holds
// what was judged.
Result<std::string> write_html(const CompareOptions& options, const match::PairList& list,
                               const std::vector<locate::Finding>& findings,
                               const std::string& report_path, const std::string& note,
                               page::ComparisonPage&& rows) {
  if (options.html.empty()) return std::string();
  const auto store = compare::RowStore::open(compare::rows_path_of(report_path));
  if (!store) return fail(store.error());
  page::ComparisonFacts facts;
  facts.findings = &findings;
  // A pair knows more than its row, but only in dumps has each pair one row.
  facts.pair_of = [&](size_t number) -> Result<match::Pair> {
    if (list.automatic && number < list.pairs.count) return list.pairs.at(number);
    return pair_in(*store, number);
  };
  facts.in_order = list.automatic.has_value();
  facts.report = report_path;
  facts.note = note;
  facts.noise = options.noise;
  add_origin(facts);
  return page::write_page(options.html, std::move(rows).finish(facts));
}

}  // namespace

void log_problems(const std::vector<Error>& problems) {
  for (size_t i = 0; i < problems.size() && i < kShownProblems; ++i)
    log_warning(problems[i].text());
  if (problems.size() > kShownProblems)
    log_warning(fmt::format("… and {} more such problems", problems.size() - kShownProblems));
}

Result<locate::NoiseRun> measure_noise(const CompareOptions& options) {
  const auto list = match::pair_paths({.golden = options.golden.path,
                                       .actual = options.noise,
                                       .mapping_file = {},
                                       .token_map = {},
                                       .level = options.level});
  if (!list) return fail(Error(list.error()).set_path(options.noise));
  if (!list->automatic)
    return fail(Error(ErrorCode::kUsage, options.noise)
                << "--noise needs a dump of the same model as golden; this is not one");
  log_info("measuring noise: " + printable(list->what, kMaxPathBytes));
  locate::NoiseRun noise;
  const GracefulStop stop;
  Progress progress(list->pairs.count);
  size_t rows = 0;
  compare::compare_pairs(list->pairs, measure_options(options), stop.requested(),
                         [&](compare::Row&& row, uint64_t bytes) {
                           noise.add(row);
                           progress.advance(++rows, bytes);
                         });
  if (stop.requested()) return fail(Error(ErrorCode::kInterrupted) << "stopped");
  noise.settle();
  if (noise.is_empty())
    return fail(Error(ErrorCode::kUsage, options.noise)
                << "--noise has no tensor that golden has, too; give a run of the same model");
  return noise;
}

int run_compare_many(const CompareOptions& options, const match::PairList& list,
                     const RowsFrom& from) {
  log_problems(list.problems);
  log_info("comparing " + printable(list.what, kMaxPathBytes));
  auto csv = tables::RowReport::create(
      options.output_folder,
      report_name(options.statistics, list.kind == capture::RunKind::kMapping),
      report_columns(options));
  if (!csv) return report_error(csv.error());

  summary::ComparisonSummary found;
  page::ComparisonPage rows_of_page;
  std::map<std::string, size_t> hits;
  std::optional<Error> write_error;
  const GracefulStop stop;
  locate::Locator locator({.in_order = list.automatic.has_value(), .noise = from.noise},
                          [&](compare::Row&& row, uint64_t) {
                            if (write_error) return;
                            if (auto written = csv->append(row); !written) {
                              write_error = written.error();
                              stop.request();
                              return;
                            }
                            for (const tables::Condition& condition : options.fail_on)
                              if (tables::hits(condition, row)) ++hits[condition.text];
                            found.add(row);
                            if (!options.html.empty()) rows_of_page.add(row);
                          });
  {
    Progress progress(list.pairs.count);
    size_t measured = 0;
    const auto add = [&](compare::Row&& row, uint64_t bytes) {
      locator.add(std::move(row), bytes);
      progress.advance(++measured, bytes);
    };
    if (from.each) {
      if (auto read = from.each(stop.requested(), add); !read) return report_error(read.error());
    } else {
      compare::compare_pairs(list.pairs, measure_options(options), stop.requested(), add);
    }
    locator.finish();
  }
  if (write_error) return report_error(*write_error);
  const bool stopped = stop.requested();
  const bool partial = stopped || from.is_partial;
  const std::string note = comparison_note(list, options.noise);
  const auto report_path = csv->finish(partial ? "_partial" : "", note);
  if (!report_path) return report_error(report_path.error());
  if (stopped)
    log_warning(fmt::format("stopped: {} of {} rows are in the partial report", found.rows(),
                            list.pairs.count));

  const std::vector<locate::Finding> findings =
      locate::examine(locator, [&](size_t number) -> Result<match::Pair> {
        if (number < list.pairs.count) return list.pairs.at(number);
        return fail(Error(ErrorCode::kNotFound) << "there is no such row");
      });
  const auto page =
      write_html(options, list, findings, *report_path, note, std::move(rows_of_page));
  int status = hits.empty() ? kDone : kFailOnHit;
  if (options.json) {
    report::JsonArray met;
    for (const auto& [text, count] : hits) met.emplace_back(text);
    report::JsonObject document = found.json(report_columns(options));
    if (list.automatic) {
      document.set("recordings", summary::completeness_json(list));
      document.set("pairing", summary::coverage_json(*list.automatic));
      document.set("findings", summary::findings_json(findings));
      document.set("jump", summary::jump_json(findings));
    }
    if (!options.html.empty()) document.set("html", page ? report::Cell(*page) : report::Cell());
    document.set("report", report::Cell(*report_path))
        .set("partial", partial)
        .set("fail_on_met", std::move(met));
    status = print(report::Json(std::move(document)).text() + "\n", status);
  } else {
    const bool coloured = stdout_is_colourful();
    const size_t columns = stdout_columns();
    std::string lead = summary::completeness_text(list);
    if (list.automatic) {
      const std::string said = summary::findings_text(findings, found.differing(), options.explain);
      if (!said.empty()) lead += said + "\n";
      lead += summary::coverage_text(*list.automatic, coloured);
    }
    status = print(report::wrapped(lead, columns) + found.text(coloured, columns) +
                       "\nReport: " + report::visible(*report_path) + "\n" +
                       (page && !page->empty() ? page_line(*page) : "") +
                       found.next_step(findings, *report_path),
                   status);
  }
  for (const auto& [text, count] : hits)
    log_warning(fmt::format("--fail-on {} is met by {} rows", printable(text), count));
  if (!page) return report_error(page.error());
  if (stopped) return kInterruptedStatus;
  if (found.paired() == 0 && !partial)
    return report_error(Error(ErrorCode::kUsage)
                        << "nothing was compared: no tensor of one side has a counterpart in the "
                           "other; the report gives the reasons");
  return status;
}

}  // namespace ait::cli
