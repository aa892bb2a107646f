#include "opcheck/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checked.h"
#include "small_dump.h"

namespace ait::opcheck {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Check, GivesEveryOperationARow) {
  const SmallDump dump;
  dump.add_doubling("0_7/0/1_ElewiseOperation", {2, 4, 6});
  dump.add_doubling("0_7/0/2_ElewiseOperation", {2, 4, 9});
  dump.add("0_7/0/3_MysteryOperation", "after/outtensor0", {1}, {1});
  dump.set_param("0_7/0/4_ElewiseOperation", "{not json");
  dump.add("0_7/0/4_ElewiseOperation", "after/outtensor0", {1}, {1});
  dump.add_doubling("0_7/0/5_ElewiseOperation", {2, 4});
  dump.folder().write("ait_dump/tensors/0_7/0/6_ElewiseOperation/after/outtensor0.bin", "rubbish");
  dump.add_doubling("0_7/0/7_ElewiseOperation", {2, 4, 6});
  std::filesystem::remove(dump.at("0_7/0/7_ElewiseOperation/after/outtensor0.bin"));
  const auto rows = check(dump.path());
  ASSERT_EQ(rows.size(), 7u);
  EXPECT_EQ(rows[0].verdict, Verdict::kPass);
  EXPECT_EQ(*rows[0].of_bound, 0);
  EXPECT_EQ(rows[1].verdict, Verdict::kFailed);
  EXPECT_THAT(rows[1].reasons[0], HasSubstr("not met standart: 99.99."));
  EXPECT_EQ(rows[2].verdict, Verdict::kNoGolden);
  EXPECT_THAT(rows[2].reasons, ElementsAre("operation type not supported"));
  for (size_t i = 3; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].verdict, Verdict::kFailed) << i;
    EXPECT_FALSE(rows[i].was_compared()) << i;
    ASSERT_EQ(rows[i].reasons.size(), 1u) << i;
  }
  EXPECT_THAT(rows[4].reasons[0], HasSubstr("shape mismatch: [2] vs [3]"));
  EXPECT_THAT(rows[6].reasons[0], HasSubstr("output 0 was not recorded"));
}

TEST(Check, StopsWhenAsked) {
  const SmallDump dump;
  for (int i = 0; i < 20; ++i)
    dump.add_doubling("0_7/0/" + std::to_string(i) + "_ElewiseOperation", {2, 4, 6});
  const auto cases = find_cases({.folder = dump.path()});
  std::atomic<bool> stop = false;
  Options options;
  options.threads = 1;
  size_t rows = 0;
  const size_t done =
      check_cases(cases->cases, options, stop, [&](std::vector<CheckRow>&& checked) {
        rows += checked.size();
        stop = true;
      });
  EXPECT_EQ(done, rows);
  EXPECT_LT(done, 20u);
}

// Half a mebibyte is the share of each of the two that one thread has under way.
TEST(Check, GivesAGoldenThatNeedsMoreThanItsShareAllOfTheMemory) {
  const SmallDump dump;
  const auto add = [&](const std::string& name, int64_t elements) {
    const std::string at = "0_7/0/" + name;
    const auto count = static_cast<size_t>(elements);
    dump.set_param(at, R"({"elewiseType": 2, "mulsParam": {"varAttr": 2.0}})");
    dump.add(at, "after/intensor0", {elements}, std::vector<float>(count, 1));
    dump.add(at, "after/outtensor0", {elements}, std::vector<float>(count, 2));
  };
  for (const char* name : {"1_ElewiseOperation", "3_ElewiseOperation", "5_ElewiseOperation"})
    add(name, 10);
  add("2_ElewiseOperation", 100000);
  add("4_ElewiseOperation", 1000000);
  Options options;
  options.memory_bytes = size_t{1} << 20;
  for (const size_t threads : {1, 2}) {
    options.threads = threads;
    const auto rows = check(dump.path(), options);
    ASSERT_EQ(rows.size(), 5u);
    for (size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(rows[i].id, std::to_string(i + 1));
    for (const size_t i : {0, 1, 2, 4}) EXPECT_EQ(rows[i].verdict, Verdict::kPass) << i;
    EXPECT_THAT(rows[3].reasons,
                ElementsAre(HasSubstr("needs at least 8 MiB, more than the 1 MiB")));
  }
}

TEST(Check, SaysWhereATableIsOfOtherTensors) {
  const SmallDump dump;
  dump.add_doubling("0_7/0/1_ElewiseOperation", {2, 4, 6});
  dump.add_doubling("0_7/0/2_ElewiseOperation", {2, 4, 6});
  const auto table =
      dump.folder().write("operation_tensors_0.csv",
                          "OpName|OutDType|InShape|OutShape\nElewiseOperation_1|float|3|3\n"
                          "ElewiseOperation_2|float|2,3|3\n");
  const auto cases = find_cases({.folder = dump.path(), .table = table});
  ASSERT_TRUE(cases);
  std::vector<CheckRow> rows;
  const std::atomic<bool> stop = false;
  check_cases(cases->cases, Options(), stop,
              [&](std::vector<CheckRow>&& checked) { rows.push_back(checked.at(0)); });
  EXPECT_THAT(rows[0].reasons, ElementsAre());
  EXPECT_THAT(rows[1].reasons, ElementsAre("the table says 2,3 for input 0, its file 3"));
  EXPECT_EQ(rows[1].verdict, Verdict::kPass);
}

TEST(Check, BringsFloatingTensorsToAnotherType) {
  const SmallDump dump;
  dump.add_doubling("0_7/0/1_ElewiseOperation", {2, 4.002F, 6});
  Options options;
  const auto standard = [&](Precision precision) {
    options.precision = precision;
    const auto rows = check(dump.path(), options);
    return std::pair(rows[0].verdict, rows[0].standard->tolerance);
  };
  EXPECT_EQ(standard(Precision::kAsRecorded), std::pair(Verdict::kFailed, 0.0001));
  EXPECT_EQ(standard(Precision::kFloat32), std::pair(Verdict::kFailed, 0.0001));
  EXPECT_EQ(standard(Precision::kFloat16), std::pair(Verdict::kPass, 0.001));
}

}  // namespace
}  // namespace ait::opcheck
