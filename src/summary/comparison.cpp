#include "summary/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "base/log.h"
#include "compare/non_finite.h"
#include "report/chart.h"
#include "report/number.h"
#include "report/table.h"
#include "report/utf8.h"
#include "report/wrap.h"

namespace ait::summary {
namespace {

using compare::Row;
using report::Align;
using report::Cell;
using report::Table;

constexpr size_t kWorstRows = 10;
constexpr size_t kShownReasons = 5;
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

// Recordings have a few hundred layers at most; a store that was tampered with may name more.
constexpr size_t kMostLayers = 4096;
// What a worst row needs beside its name.
constexpr size_t kNarrow = 100;
constexpr size_t kLeastName = 16;

// The end of a text that is too wide, since names differ there.
std::string end_of(std::string text, size_t columns) {
  if (report::display_width(text) <= columns) return text;
  std::string_view rest = text;
  while (!rest.empty() && report::display_width(rest) + 1 > columns)
    rest.remove_prefix(report::first_character(rest).bytes);
  return "…" + std::string(rest);
}

// 0 for a tenth of what is expected and less, 1 for a hundred times as much and more.
double height(double times) {
  if (!(times > 0)) return 0;
  return std::clamp((std::log10(times) + 1) / 3, 0.0, 1.0);
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

}  // namespace

void ComparisonSummary::note_layer(const Row& row) {
  if (!row.subject.layer || !row.judgement || !(row.judgement->expected > 0)) return;
  const double times = row.judgement->verdict == compare::Verdict::kBroken
                           ? std::numeric_limits<double>::infinity()
                           : row.judgement->error / row.judgement->expected;
  if (layers_.size() >= kMostLayers && !layers_.contains(*row.subject.layer)) return;
  double& worst = layers_[*row.subject.layer];
  worst = std::max(worst, times);
}

// A block for each layer, the first and the last of them named.
std::string ComparisonSummary::layers_text(size_t columns) const {
  if (layers_.size() < 2) return {};
  std::vector<double> heights;
  auto worst = layers_.begin();
  for (auto it = layers_.begin(); it != layers_.end(); ++it) {
    heights.push_back(height(it->second));
    if (it->second > worst->second) worst = it;
  }
  const std::string first = fmt::format("  layer {} ", layers_.begin()->first);
  const std::string last = fmt::format(" {}", layers_.rbegin()->first);
  const size_t around = first.size() + last.size();
  const size_t room = columns == 0 ? heights.size() : columns > around + 4 ? columns - around : 4;
  const std::string title = fmt::format(
      "Error along the layers, as a multiple of what is expected (0.1 to 100); the largest is "
      "{:.2g} times, in layer {}:\n",
      worst->second, worst->first);
  return report::wrapped(title, columns) + first + report::sparkline(heights, room) + last + "\n";
}

void ComparisonSummary::add(const Row& row) {
  ++rows_;
  note_layer(row);
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

std::string ComparisonSummary::text(bool coloured, size_t columns) const {
  std::string out = fmt::format("{} pairs: {} identical, {} differ, {} could not be compared\n",
                                paired(), identical_, differing_, failed_);
  if (only_golden_ + only_actual_ > 0)
    out += fmt::format("{} without a partner: {} only in golden, {} only in my side\n",
                       only_golden_ + only_actual_, only_golden_, only_actual_);
  if (first_non_finite_)
    out += fmt::format("{} with NaN or infinities on one side only; the first is {} ({})\n",
                       non_finite_, where(*first_non_finite_),
                       compare::non_finite_counts(*first_non_finite_));
  if (farthest_)
    out += fmt::format(
        "{} compared by statistics alone, since a side holds no data; the farthest apart is {}: "
        "relative_euclidean_distance is at least {}\n",
        by_statistics_, where(*farthest_), report::number_text(*farthest_->distance_at_least));
  size_t shown = 0;
  for (const auto& [reason, count] : reasons_) {
    if (++shown > kShownReasons) {
      out +=
          fmt::format("  … and {} more reasons, see the report\n", reasons_.size() - kShownReasons);
      break;
    }
    out += fmt::format("  {} × {}\n", count, report::visible(reason));
  }
  out += layers_text(columns);
  if (!worst_.empty())
    out += "\nThe worst of those that differ:\n" + worst_table(coloured, columns);
  return out;
}

std::string ComparisonSummary::next_step(const std::vector<locate::Finding>& findings,
                                         const std::string& report_path) const {
  const auto look = [](std::string_view what, const Row& row) {
    return fmt::format("Next: look at {} with: ait show {}\n", what,
                       report::visible(row.actual.records.front().path));
  };
  if (!findings.empty() && !findings.front().row.actual.records.empty())
    return look("where the error begins", findings.front().row);
  if (!worst_.empty()) return look("the worst one", worst_.front());
  return fmt::format("Next: open {}\n", report::visible(report_path));
}

report::JsonObject ComparisonSummary::json(const tables::ComparisonColumns& columns) const {
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

void ComparisonSummary::keep_if_worst(const Row& row) {
  if (worst_.size() == kWorstRows && !is_worse(row, worst_.back())) return;
  // After its equals, so that the first of them stays first.
  worst_.insert(std::upper_bound(worst_.begin(), worst_.end(), row, is_worse), row);
  if (worst_.size() > kWorstRows) worst_.pop_back();
}

std::string ComparisonSummary::worst_table(bool coloured, size_t columns) const {
  // A narrow terminal has room for the name and the distance, which the rows are sorted by.
  const bool narrow = columns > 0 && columns < kNarrow;
  std::vector<const char*> names = {"token_id", "data_id"};
  std::vector<Table::Column> titles = {{"token", Align::kRight}, {"data"}};
  if (narrow) {
    names.push_back("relative_euclidean_distance");
    titles.push_back({"distance", Align::kRight});
  } else {
    for (const char* name :
         {"cosine_similarity", "relative_euclidean_distance", "max_absolute_error"}) {
      names.push_back(name);
      titles.push_back({name, Align::kRight});
    }
  }
  constexpr size_t kBesideName = 24;  // token and distance, with blanks
  if (first_non_finite_) titles.push_back({"NaN or infinities on one side only"});
  Table table(std::move(titles));
  for (const Row& row : worst_) {
    std::vector<std::string> cells;
    for (const char* name : names) cells.push_back(tables::find_comparison_column(name)->text(row));
    if (narrow)
      cells[1] = end_of(cells[1], std::max(kLeastName, columns - std::min(columns, kBesideName)));
    if (compare::non_finite_differ(row)) cells.push_back(non_finite_counts(row));
    table.add(std::move(cells));
  }
  return table.text(coloured);
}

}  // namespace ait::summary
