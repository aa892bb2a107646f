#include <gtest/gtest.h>

#include "page/comparison.h"
#include "unpacked.h"

namespace ait::page {
namespace {

compare::Row row_number(size_t i) {
  compare::Row row;
  row.subject.name = "layers." + std::to_string(i);
  row.subject.tensor = "output";
  row.subject.layer = static_cast<uint32_t>(i);
  for (compare::Side* side : {&row.golden, &row.actual}) {
    side->records.emplace_back().path = "/nowhere/" + std::to_string(i) + ".npy";
    side->dtype = DType::kFloat32;
  }
  row.comparison.emplace();
  row.comparison->elements = row.comparison->compared = 8;
  row.comparison->relative_euclidean_distance = 0.25;
  if (i > 0) row.origin = {true, row.subject.name, capture::OpKind::kLinear, {1}, false, {}};
  row.judgement = {compare::Verdict::kFault, 0.25, 0.01, "it is off"};
  return row;
}

// tests/page runs the example of comparison.h.
TEST(ComparisonPage, HoldsRowsFindingsAndHowValuesFlow) {
  ComparisonPage rows;
  for (size_t i = 0; i < 3; ++i) rows.add(row_number(i));
  locate::Finding finding;
  finding.row = row_number(1);
  finding.number = 1;
  finding.sources = {0};
  finding.operation = "layers.1";
  const std::vector<locate::Finding> findings = {finding};
  ComparisonFacts facts;
  facts.findings = &findings;
  facts.in_order = true;
  const std::string text = page_text(std::move(rows).finish(facts));
  const auto about = about_of(text);
  EXPECT_EQ(about["rows"], 3);
  EXPECT_EQ(about["counts"]["summary"]["differing"], 3);
  EXPECT_EQ(about["findings"][0]["operation"], "layers.1");
  EXPECT_EQ(about["finding_facts"][0]["row"], 1);
  EXPECT_EQ(about["finding_facts"][0]["sources"][0], 0);
  EXPECT_TRUE(about["details"].empty()) << "its tensors are not there any more";
  std::map<std::string, std::string> ids;
  for (const auto& column : about["table"]["columns"]) ids[column["name"]] = column["id"];
  const auto parts = parts_of(text);
  EXPECT_EQ(parts.at(ids.at("verdict") + "t"), "[\"\",\n\"fault\"]");
  EXPECT_EQ(parts.at(ids.at("sources") + "t"), "[\"\",\n\"1\"]");
  EXPECT_EQ(parts.at(ids.at("subject") + "t"),
            "[\"\",\n\"layers.0\",\n\"layers.1\",\n\"layers.2\"]");
}

}  // namespace
}  // namespace ait::page
