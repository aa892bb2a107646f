#include "summary/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ait::summary {
namespace {

using compare::Row;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

capture::TensorRecord record(const std::string& path) {
  capture::TensorRecord out;
  out.path = path;
  return out;
}

// Both sides are there, and nothing was measured.
Row pair(const std::string& name) {
  Row out;
  out.subject.name = name;
  out.golden.records = {record("golden/" + name + ".npy")};
  out.actual.records = {record("my/" + name + ".bin")};
  return out;
}

Row measured(const std::string& name, double distance) {
  Row out = pair(name);
  out.golden.dtype = out.actual.dtype = DType::kFloat16;
  out.comparison.emplace();
  out.comparison->elements = out.comparison->compared = 8;
  out.comparison->relative_euclidean_distance = distance;
  out.comparison->cosine_similarity = 1 - distance;
  out.comparison->identical = distance == 0;
  return out;
}

Row failed(const std::string& name, const std::string& reason) {
  Row out = pair(name);
  out.reason = reason;
  return out;
}

std::string text_of(const std::vector<Row>& rows) {
  ComparisonSummary summary;
  for (const Row& row : rows) summary.add(row);
  return summary.text(false);
}

TEST(ComparisonSummary, CountsEveryRowOnce) {
  Row alone = pair("d");
  alone.actual.records.clear();
  ComparisonSummary summary;
  for (const Row& row :
       {measured("a", 0), measured("b", 0.5), failed("c", "data is empty."), alone})
    summary.add(row);
  EXPECT_EQ(summary.rows(), 4U);
  EXPECT_EQ(summary.paired(), 3U);
  EXPECT_THAT(summary.text(false),
              AllOf(StartsWith("3 pairs: 1 identical, 1 differ, 1 could not be compared\n"
                               "1 without a partner: 1 only in golden, 0 only in my side\n"),
                    HasSubstr("1 × data is empty.\n")));
}

TEST(ComparisonSummary, ReasonsThatDifferInAPathAreOne) {
  const std::string text = text_of(
      {failed("a", "my/a.bin: the file is empty."), failed("b", "my/b.bin: the file is empty.")});
  EXPECT_THAT(text, HasSubstr("2 × ….bin: the file is empty.\n"));
}

TEST(ComparisonSummary, ShowsTheWorstTenAndFiveReasons) {
  std::vector<Row> rows;
  for (int i = 0; i < 12; ++i) rows.push_back(measured("row" + std::to_string(i), 0.01 * (i + 1)));
  for (int i = 0; i < 7; ++i) rows.push_back(failed("x", "reason " + std::to_string(i)));
  const std::string text = text_of(rows);
  EXPECT_THAT(text, AllOf(HasSubstr("row11"), HasSubstr("row2 "), Not(HasSubstr("row1 ")),
                          HasSubstr("… and 2 more reasons, see the report\n")));
  EXPECT_LT(text.find("row11"), text.find("row10"));
}

TEST(ComparisonSummary, NanOnOneSideIsWorseThanAnyDistance) {
  Row broken = measured("broken", 1e-9);
  broken.comparison->non_finite_agree = false;
  broken.golden.statistics.emplace();
  broken.actual.statistics.emplace().nan = 3;
  ComparisonSummary summary;
  summary.add(measured("far", 0.9));
  summary.add(broken);
  const std::string text = summary.text(false);
  EXPECT_THAT(text, HasSubstr("1 with NaN or infinities on one side only; the first is token 0, "
                              "broken (golden: 0, my side: 3)\n"));
  const std::string worst = text.substr(text.find("The worst"));
  EXPECT_LT(worst.find("broken"), worst.find("far"));
  EXPECT_THAT(summary.next_step({}, "r.csv"),
              EndsWith("look at the worst one with: ait show my/broken.bin\n"));
}

TEST(ComparisonSummary, NextIsWhereTheErrorBeginsIfThatWasFound) {
  ComparisonSummary summary;
  EXPECT_EQ(summary.next_step({}, "out/r.csv"), "Next: open out/r.csv\n");
  summary.add(measured("first", 1e-4));
  summary.add(measured("worst", 0.9));
  locate::Finding finding;
  finding.row = measured("begins", 0.2);
  EXPECT_THAT(summary.next_step({finding}, "r.csv"), EndsWith("ait show my/begins.bin\n"));
  EXPECT_THAT(summary.next_step({}, "r.csv"), EndsWith("ait show my/worst.bin\n"));
}

TEST(ComparisonSummary, WhatWasComparedByStatisticsIsCountedApart) {
  Row row = pair("a");
  row.distance_at_least = 0.25;
  EXPECT_THAT(text_of({row}), HasSubstr("1 compared by statistics alone, since a side holds no "
                                        "data; the farthest apart is token 0, a: "
                                        "relative_euclidean_distance is at least 0.25\n"));
}

TEST(ComparisonSummary, JsonHasTheCountsAndTheWorstRows) {
  ComparisonSummary summary;
  summary.add(measured("a", 0));
  summary.add(measured("b", 0.5));
  const std::string text = report::Json(summary.json(tables::comparison_columns(false))).text();
  EXPECT_THAT(text, AllOf(HasSubstr(R"("rows": 2)"), HasSubstr(R"("identical": 1)"),
                          HasSubstr(R"("data_id": "b")"), Not(HasSubstr(R"("data_id": "a")"))));
}

// Forty layers, of which one is far off.
ComparisonSummary of_layers() {
  ComparisonSummary summary;
  for (uint32_t layer = 0; layer < 40; ++layer) {
    Row row = measured("root.model.layers." + std::to_string(layer) + ".mlp.down_proj", 0.01);
    row.subject.layer = layer;
    row.judgement = {compare::Verdict::kNoise, layer == 20 ? 0.3 : 0.01, 0.01, ""};
    summary.add(row);
  }
  return summary;
}

TEST(ComparisonSummary, DrawsTheErrorAlongTheLayers) {
  const std::string text = of_layers().text(false);
  EXPECT_THAT(text, HasSubstr("the largest is 30 times, in layer 20:"));
  EXPECT_THAT(text, HasSubstr("  layer 0 ▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▇▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃ 39\n"));
  EXPECT_THAT(text, HasSubstr("max_absolute_error"));
}

TEST(ComparisonSummary, FitsANarrowTerminal) {
  const std::string text = of_layers().text(false, 40);
  EXPECT_THAT(text, HasSubstr("  layer 0 ▃▃▃▃▃▃▃▃▃▃▃▃▃▃▇▃▃▃▃▃▃▃▃▃▃▃▃ 39\n"));
  EXPECT_THAT(text, HasSubstr("…"));
  EXPECT_THAT(text, Not(HasSubstr("max_absolute_error")));
  EXPECT_THAT(text, HasSubstr("mlp.down_proj"));
}

TEST(ComparisonSummary, SaysNothingOfLayersWhereThereAreNone) {
  ComparisonSummary summary;
  summary.add(measured("a", 0.5));
  EXPECT_THAT(summary.text(false), Not(HasSubstr("layers")));
}

}  // namespace
}  // namespace ait::summary
