#include "tables/opcheck_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "test_files.h"

namespace ait::tables {
namespace {

using opcheck::CheckRow;
using opcheck::Verdict;
using ::testing::HasSubstr;
using ::testing::Not;

CheckRow row_of(const std::string& id, double of_bound, Verdict verdict) {
  CheckRow row;
  row.id = id;
  row.type = "RmsNormOperation";
  row.again_folder = "/a dump/0_7/0";
  row.output = 0;
  row.relative_rate_percent = verdict == Verdict::kPass ? 100 : 50;
  row.of_bound = of_bound;
  row.verdict = verdict;
  return row;
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++found;
  return found;
}

constexpr const char* kAgain = "ait llm opcheck -i '/a dump/0_7/0' -ids 4_0 -c 'my table.csv'";

class CheckReportTest : public testing::Test {
 protected:
  CheckReport report(bool json = false) {
    return CheckReport::create({.folder = folder_.path(),
                                .name = "result.csv",
                                .again = {"-c", "my table.csv"},
                                .json = json})
        .value();
  }
  static void fill(CheckReport& report) {
    ASSERT_TRUE(report.add({row_of("4_0", 38, Verdict::kPass), row_of("4_0", 7, Verdict::kPass)}));
    ASSERT_TRUE(report.add({row_of("5", 0.5, Verdict::kPass)}));
    CheckRow lost;
    lost.reasons = {"input 0 (x) was not recorded"};
    ASSERT_TRUE(report.add({lost}));
  }

  formats::TempFolder folder_;
};

TEST_F(CheckReportTest, TellsTheWorstRowsTheReasonsAndWhatToTypeNext) {
  CheckReport tested = report();
  fill(tested);
  const std::string path = tested.finish().value();
  const std::string text = tested.text(false);
  EXPECT_THAT(text, HasSubstr("3 operations: 3 outputs checked, 2 not explained by rounding, 0 "
                              "below the standard, 1 not checked\n"));
  EXPECT_THAT(text, HasSubstr("1 not checked: input 0 (x) was not recorded\n"));
  EXPECT_THAT(text, HasSubstr("Opcheck results saved to: " + path + "\n"));
  EXPECT_EQ(count(text, "\nAgain: " + std::string(kAgain) + "\n"), 1u)
      << "once for each operation\n"
      << text;
}

TEST_F(CheckReportTest, GivesFailingRowsAloneTheirCommand) {
  CheckReport tested = report();
  fill(tested);
  const std::string csv = text_of(tested.finish().value());
  EXPECT_THAT(csv, HasSubstr(",again\n"));
  EXPECT_EQ(count(csv, kAgain), 2u);
  EXPECT_EQ(count(csv, "ait llm opcheck"), 2u);
}

TEST_F(CheckReportTest, IsOneDocumentForScripts) {
  CheckReport tested = report(true);
  fill(tested);
  const std::string path = tested.finish("_partial").value();
  EXPECT_THAT(path, HasSubstr("result_partial.csv"));
  const std::string document = tested.document();
  EXPECT_THAT(document, HasSubstr("\"outside_bound\": 2"));
  EXPECT_THAT(document, HasSubstr("\"not_checked\": 1"));
  EXPECT_THAT(document, HasSubstr("\"report\": \"" + path + "\""));
  EXPECT_EQ(count(document, "\"op_id\""), 4u);
}

TEST_F(CheckReportTest, HasTheColumnsThatWereAskedForAlone) {
  CheckReport plain = report();
  EXPECT_THAT(text_of(plain.finish().value()), Not(HasSubstr("cosine_similarity")));
  auto asked = CheckReport::create(
      {.folder = folder_.path(), .name = "cosine.csv", .metrics = {.cosine = true}});
  EXPECT_THAT(text_of(asked->finish().value()), HasSubstr(",cosine_similarity,fail_reason,"));
}

TEST_F(CheckReportTest, TellsWhatWasRunAgainAndWhatWasSaved) {
  auto tested = CheckReport::create({.folder = folder_.path(),
                                     .name = "result.csv",
                                     .library = "a library",
                                     .save_error_data = true});
  ASSERT_TRUE(tested);
  EXPECT_EQ(report().error_folder(), "");
  EXPECT_EQ(tested->error_folder(), folder_.path() / "result_error_data");
  CheckRow again = row_of("4_0", 38, Verdict::kPass);
  again.source = "rerun: liba.so";
  again.error_data = tested->error_folder() + "/tensors";
  CheckRow recorded = row_of("5", 0.5, Verdict::kPass);
  recorded.source = "dump: several ranks do it together";
  ASSERT_TRUE(tested->add({again}) && tested->add({recorded}) && tested->finish());
  EXPECT_THAT(tested->text(false),
              HasSubstr("1 outputs are those of a library, 1 those of the dump\n"));
  EXPECT_THAT(tested->text(false),
              HasSubstr("Error data of 1 operations saved to: " + tested->error_folder() + "\n"));
  EXPECT_THAT(tested->document(), HasSubstr("\"error_data\": \"" + tested->error_folder()));
}

}  // namespace
}  // namespace ait::tables
