#include "cli/compare_many.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/log.h"
#include "cli/coverage.h"
#include "cli/process_io.h"
#include "cli/progress.h"
#include "cli/report_name.h"
#include "compare/engine.h"
#include "compare/non_finite.h"
#include "locate/jump.h"
#include "report/json.h"
#include "report/number.h"
#include "report/table.h"
#include "report/utf8.h"
#include "tables/row_report.h"

namespace ait::cli {
namespace {

using compare::Row;
using report::Align;
using report::Cell;
using report::Table;

constexpr size_t kWorstRows = 10;
constexpr size_t kShownReasons = 5;
constexpr size_t kShownProblems = 5;
constexpr size_t kMaxPathBytes = 4096;  // as reasons have them

// NaN and infinities on one side only first, in the order of the rows: they spread, and the first
// ones tell where from. Then the largest distance, then the lowest cosine: a wrong scale leaves the
// cosine at 1.
bool is_worse(const Row& a, const Row& b) {
  const bool broken = compare::non_finite_differ(a);
  if (broken || compare::non_finite_differ(b)) return broken && !compare::non_finite_differ(b);
  const metrics::Comparison& x = *compare::metrics_of(a);
  const metrics::Comparison& y = *compare::metrics_of(b);
  if (x.relative_euclidean_distance != y.relative_euclidean_distance)
    return x.relative_euclidean_distance > y.relative_euclidean_distance;
  return x.cosine_similarity < y.cosine_similarity;
}

// "golden: 0, my side: 9", or where only statistics are known, which side holds some.
std::string non_finite_counts(const Row& row) {
  const auto count = [](const compare::Side& side) {
    if (side.kept == capture::Kept::kBytes) return std::to_string(side.statistics->non_finite());
    return std::string(side.has_non_finite() ? "some" : "none");
  };
  return fmt::format("golden: {}, my side: {}", count(row.golden), count(row.actual));
}

// "token 0, 2_Layer/0_Linear/outtensor0"
std::string where(const Row& row) {
  return fmt::format("token {}, {}", report::visible(row.token),
                     report::visible(tables::data_id(row.subject)));
}

// The reason with "….bin" for the files that it names: thousands of files may share it.
std::string without_paths(const Row& row) {
  std::string out = row.reason;
  for (const compare::Side* side : {&row.golden, &row.actual})
    for (const capture::TensorRecord& record : side->records) {
      const std::string path = printable(record.path, kMaxPathBytes);
      const std::string shown = "…" + std::filesystem::path(path).extension().native();
      if (path.empty()) continue;
      for (size_t at = out.find(path); at != std::string::npos; at = out.find(path, at)) {
        out.replace(at, path.size(), shown);
        at += shown.size();
      }
    }
  return out;
}

// What is kept of the rows once they are in the report.
class Summary {
 public:
  void add(const Row& row) {
    ++rows_;
    jump_.add(row);
    const metrics::Comparison* c = compare::metrics_of(row);
    if (compare::non_finite_differ(row)) {
      if (non_finite_++ == 0) first_non_finite_ = row;
      keep_if_worst(row);
    } else if (c != nullptr && !c->identical) {
      keep_if_worst(row);
    }
    if (row.golden.is_missing() || row.actual.is_missing()) {
      ++(row.actual.is_missing() ? only_golden_ : only_actual_);
    } else if (row.comparison && row.comparison->identical) {
      ++identical_;
    } else if (c != nullptr) {
      ++differing_;
    } else if (row.distance_at_least) {
      ++by_statistics_;
      if (!farthest_ || *row.distance_at_least > *farthest_->distance_at_least) farthest_ = row;
    } else {
      ++failed_;
      ++reasons_[without_paths(row)];
    }
  }

  size_t rows() const { return rows_; }
  size_t paired() const { return identical_ + differing_ + by_statistics_ + failed_; }

  std::string text(bool coloured) const {
    std::string out = fmt::format("{} pairs: {} identical, {} differ, {} could not be compared\n",
                                  paired(), identical_, differing_, failed_);
    if (only_golden_ + only_actual_ > 0)
      out += fmt::format("{} without a partner: {} only in golden, {} only in my side\n",
                         only_golden_ + only_actual_, only_golden_, only_actual_);
    if (first_non_finite_)
      out += fmt::format("{} with NaN or infinities on one side only; the first is {} ({})\n",
                         non_finite_, where(*first_non_finite_),
                         non_finite_counts(*first_non_finite_));
    if (farthest_)
      out += fmt::format(
          "{} compared by statistics alone, since a side holds no data; the farthest apart is {}: "
          "relative_euclidean_distance is at least {}\n",
          by_statistics_, where(*farthest_), report::number_text(*farthest_->distance_at_least));
    size_t shown = 0;
    for (const auto& [reason, count] : reasons_) {
      if (++shown > kShownReasons) {
        out += fmt::format("  … and {} more reasons, see the report\n",
                           reasons_.size() - kShownReasons);
        break;
      }
      out += fmt::format("  {} × {}\n", count, report::visible(reason));
    }
    if (!worst_.empty()) out += "\nThe worst of those that differ:\n" + worst_table(coloured);
    return out;
  }

  // Where the error begins; rows must be in the order of the computation for that.
  std::string jump_text() const {
    const Row* row = jump_.row();
    if (row == nullptr) return {};
    return fmt::format("\nThe error jumps first at {}: {}\n", where(*row), jump_size(*row));
  }

  report::JsonObject json(const tables::ComparisonColumns& columns) const {
    report::JsonObject counts;
    counts.set("rows", uint64_t{rows_})
        .set("identical", uint64_t{identical_})
        .set("differing", uint64_t{differing_})
        .set("failed", uint64_t{failed_})
        .set("only_golden", uint64_t{only_golden_})
        .set("only_my", uint64_t{only_actual_});
    if (non_finite_ > 0) counts.set("non_finite", uint64_t{non_finite_});
    if (farthest_) {
      report::JsonObject farthest;
      farthest.set("token_id", farthest_->token)
          .set("data_id", tables::data_id(farthest_->subject))
          .set("distance_at_least", *farthest_->distance_at_least);
      counts.set("by_statistics", uint64_t{by_statistics_}).set("farthest", std::move(farthest));
    }
    report::JsonArray worst;
    for (const Row& row : worst_) worst.emplace_back(report::column_json(columns, row));
    report::JsonObject root;
    root.set("summary", std::move(counts)).set("worst", std::move(worst));
    return root;
  }

  const Row* jump() const { return jump_.row(); }
  const Row* worst() const { return worst_.empty() ? nullptr : &worst_.front(); }

 private:
  std::string jump_size(const Row& row) const {
    const metrics::Comparison* c = compare::metrics_of(row);
    if (compare::non_finite_differ(row))
      return fmt::format("NaN or infinities on one side only ({})", non_finite_counts(row));
    const std::string before = report::number_text(jump_.before());
    if (c == nullptr)
      return fmt::format("relative_euclidean_distance is at least {}, and at least {} before",
                         report::number_text(*row.distance_at_least), before);
    return fmt::format("relative_euclidean_distance {}, at most {} before",
                       report::number_text(c->relative_euclidean_distance), before);
  }

  void keep_if_worst(const Row& row) {
    if (worst_.size() == kWorstRows && !is_worse(row, worst_.back())) return;
    // After its equals, so that the first of them stays first.
    worst_.insert(std::upper_bound(worst_.begin(), worst_.end(), row, is_worse), row);
    if (worst_.size() > kWorstRows) worst_.pop_back();
  }

  std::string worst_table(bool coloured) const {
    std::vector<Table::Column> titles = {{"token", Align::kRight},
                                         {"data"},
                                         {"cosine_similarity", Align::kRight},
                                         {"relative_euclidean_distance", Align::kRight},
                                         {"max_absolute_error", Align::kRight}};
    if (first_non_finite_) titles.push_back({"NaN or infinities on one side only"});
    Table table(std::move(titles));
    for (const Row& row : worst_) {
      std::vector<std::string> cells;
      for (const char* name : {"token_id", "data_id", "cosine_similarity",
                               "relative_euclidean_distance", "max_absolute_error"})
        cells.push_back(tables::find_comparison_column(name)->text(row));
      if (compare::non_finite_differ(row)) cells.push_back(non_finite_counts(row));
      table.add(std::move(cells));
    }
    return table.text(coloured);
  }

  size_t rows_ = 0;
  size_t identical_ = 0;
  size_t differing_ = 0;
  size_t by_statistics_ = 0;
  size_t failed_ = 0;
  size_t only_golden_ = 0;
  size_t only_actual_ = 0;
  std::map<std::string, size_t> reasons_;
  size_t non_finite_ = 0;
  std::optional<Row> first_non_finite_;
  std::vector<Row> worst_;
  std::optional<Row> farthest_;
  locate::ErrorJump jump_;
};

void log_problems(const match::PairList& list) {
  for (size_t i = 0; i < list.problems.size() && i < kShownProblems; ++i)
    log_warning(list.problems[i].text());
  if (list.problems.size() > kShownProblems)
    log_warning(fmt::format("… and {} more such problems", list.problems.size() - kShownProblems));
}

// Where the error begins, if rows are in the order of the computation, or else the worst row.
std::string next_step(const Summary& summary, bool in_order, const std::string& report_path) {
  if (const Row* jump = in_order ? summary.jump() : nullptr)
    return fmt::format("Next: look at where the error begins with: ait show {}\n",
                       report::visible(jump->actual.records.front().path));
  if (const Row* worst = summary.worst())
    return fmt::format("Next: look at the worst one with: ait show {}\n",
                       report::visible(worst->actual.records.front().path));
  return fmt::format("Next: open {}\n", report::visible(report_path));
}

}  // namespace

int run_compare_many(const CompareOptions& options, const match::PairList& list) {
  log_problems(list);
  log_info("comparing " + printable(list.what, kMaxPathBytes));
  auto csv = tables::RowReport::create(
      options.output_folder,
      report_name(options.statistics, list.kind == capture::RunKind::kMapping),
      report_columns(options));
  if (!csv) return report_error(csv.error());

  Summary summary;
  std::map<std::string, size_t> hits;
  std::optional<Error> write_error;
  const GracefulStop stop;
  {
    Progress progress(list.pairs.count);
    compare::compare_pairs(list.pairs, measure_options(options), stop.requested(),
                           [&](compare::Row&& row, uint64_t bytes) {
                             if (write_error) return;
                             if (auto written = csv->append(row); !written) {
                               write_error = written.error();
                               stop.request();
                               return;
                             }
                             for (const tables::Condition& condition : options.fail_on)
                               if (tables::hits(condition, row)) ++hits[condition.text];
                             summary.add(row);
                             progress.advance(summary.rows(), bytes);
                           });
  }
  if (write_error) return report_error(*write_error);
  const bool partial = stop.requested();
  const auto report_path = csv->finish(partial ? "_partial" : "");
  if (!report_path) return report_error(report_path.error());
  if (partial)
    log_warning(fmt::format("stopped: {} of {} rows are in the partial report", summary.rows(),
                            list.pairs.count));

  int status = hits.empty() ? kDone : kFailOnHit;
  if (options.json) {
    report::JsonArray met;
    for (const auto& [text, count] : hits) met.emplace_back(text);
    report::JsonObject document = summary.json(report_columns(options));
    if (list.automatic) {
      document.set("recordings", completeness_json(list));
      document.set("pairing", coverage_json(*list.automatic));
      document.set("jump", summary.jump() == nullptr
                               ? Cell()
                               : Cell(tables::data_id(summary.jump()->subject)));
    }
    document.set("report", Cell(*report_path))
        .set("partial", partial)
        .set("fail_on_met", std::move(met));
    status = print(report::Json(std::move(document)).text() + "\n", status);
  } else {
    const bool coloured = stdout_is_colourful();
    std::string lead = completeness_text(list);
    if (list.automatic) lead += coverage_text(*list.automatic, coloured);
    const std::string jump = list.automatic ? summary.jump_text() : "";
    status =
        print(lead + summary.text(coloured) + jump + "\nReport: " + report::visible(*report_path) +
                  "\n" + next_step(summary, list.automatic.has_value(), *report_path),
              status);
  }
  for (const auto& [text, count] : hits)
    log_warning(fmt::format("--fail-on {} is met by {} rows", printable(text), count));
  if (partial) return kInterruptedStatus;
  if (summary.paired() == 0)
    return report_error(Error(ErrorCode::kUsage)
                        << "nothing was compared: no tensor of one side has a counterpart in the "
                           "other; the report gives the reasons");
  return status;
}

}  // namespace ait::cli
