#include "tables/row_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "compare/measure.h"
#include "tensors.h"
#include "test_files.h"

namespace ait::tables {
namespace {

using formats::TempFolder;
using ::testing::UnorderedElementsAre;

class RowReportTest : public ::testing::Test {
 protected:
  Result<RowReport> begin() {
    return RowReport::create(folder_.path().string(), "report.csv", comparison_columns(false));
  }
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
      out.push_back(entry.path().filename().string());
    return out;
  }

  TempFolder folder_;
  const compare::Row row_ = compare::measure(floats({1, 2}), floats({1, 3}), {});
};

TEST_F(RowReportTest, LeavesTheRowsBesideTheCsvUnderTheSameName) {
  for (const char* expected : {"report", "report_1"}) {
    auto report = begin();
    ASSERT_TRUE(report) << report.error().text();
    ASSERT_TRUE(report->append(row_));
    const auto path = report->finish();
    ASSERT_TRUE(path);
    EXPECT_EQ(*path, (folder_.path() / expected).string() + ".csv");
    const auto store = compare::RowStore::open((folder_.path() / expected).string() + ".rows");
    ASSERT_TRUE(store) << store.error().text();
    EXPECT_EQ(store->size(), 1U);
  }
  auto partial = begin();
  ASSERT_TRUE(partial->finish("_partial"));
  EXPECT_THAT(names(),
              UnorderedElementsAre("report.csv", "report.rows", "report_1.csv", "report_1.rows",
                                   "report_partial.csv", "report_partial.rows"));
}

TEST_F(RowReportTest, LeavesNothingBehindWithoutItsEnd) {
  {
    auto report = begin();
    ASSERT_TRUE(report->append(row_));
  }
  EXPECT_TRUE(names().empty());
}

TEST_F(RowReportTest, TakesThePlaceOfRowsThatHaveLostTheirCsv) {
  folder_.write("report.rows", "left over");
  auto report = begin();
  ASSERT_TRUE(report->append(row_));
  ASSERT_TRUE(report->finish());
  EXPECT_TRUE(compare::RowStore::open((folder_.path() / "report.rows").string()));
}

}  // namespace
}  // namespace ait::tables
