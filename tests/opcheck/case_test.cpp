#include "opcheck/case.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "small_dump.h"

namespace ait::opcheck {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> names(const Cases& cases) {
  std::vector<std::string> out;
  for (const Case& each : cases.cases)
    out.push_back(each.id + " " + each.type + " " + each.rank + "/" + each.round);
  return out;
}

// Two ranks, two rounds of one of them; a graph with two operations, one of which has a kernel.
void fill(const SmallDump& dump) {
  for (const char* place : {"0_7/0", "0_7/1", "1_8/0"}) {
    const std::string at = std::string(place) + "/";
    dump.add(at + "10_Layer", "after/outtensor0", {1}, {1});
    dump.add(at + "10_Layer/0_LinearOperation", "after/intensor0", {1}, {1});
    dump.add(at + "10_Layer/0_LinearOperation", "before/intensor0", {1}, {2});
    dump.add(at + "10_Layer/0_LinearOperation", "after/outtensor0", {1}, {1});
    dump.add(at + "10_Layer/0_LinearOperation/0_MatMulKernel", "after/outtensor0", {1}, {1});
    dump.set_param(at + "10_Layer/0_LinearOperation",
                   std::string("{\"rank\": ") + (place[0] == '1' ? "1}" : "0}"));
    dump.add(at + "10_Layer/1_SelfAttentionOperation", "after/outtensor1", {1}, {1});
    dump.add(at + "2_RmsNormOperation", "after/outtensor0", {1}, {1});
  }
}

TEST(Cases, AreTheOperationsOfEveryRankAndRoundInTheOrderOfTheirNumbers) {
  const SmallDump dump;
  fill(dump);
  const auto cases = find_cases({.folder = dump.path()});
  ASSERT_TRUE(cases) << cases.error().text();
  EXPECT_THAT(
      names(*cases),
      ElementsAre("2 RmsNormOperation 0/0", "2 RmsNormOperation 0/1", "2 RmsNormOperation 1/0",
                  "10_0 LinearOperation 0/0", "10_0 LinearOperation 0/1",
                  "10_0 LinearOperation 1/0", "10_1 SelfAttentionOperation 0/0",
                  "10_1 SelfAttentionOperation 0/1", "10_1 SelfAttentionOperation 1/0"));
}

TEST(Cases, TakeInputsFromBeforeAndOutputsFromAfter) {
  const SmallDump dump;
  fill(dump);
  const auto cases = find_cases({.folder = dump.path(), .ids = {{10, 0}}});
  ASSERT_TRUE(cases);
  const Case& linear = cases->cases[0];
  EXPECT_THAT(linear.inputs[0]->path, HasSubstr("before/intensor0.bin"));
  EXPECT_THAT(linear.inputs_after[0]->path, HasSubstr("after/intensor0.bin"));
  EXPECT_THAT(linear.outputs[0]->path, HasSubstr("after/outtensor0.bin"));
  EXPECT_EQ(linear.param, "{\"rank\": 0}");
  EXPECT_EQ(cases->cases[2].param, "{\"rank\": 1}") << "ranks have parameters of their own";
  EXPECT_EQ(linear.ranks.size(), 2u);
}

TEST(Cases, AreChosenByIdsAndPartsOfNames) {
  const SmallDump dump;
  fill(dump);
  const auto chosen = [&](Search search) {
    search.folder = dump.at("0_7/0");  // any part of a dump will do
    const auto cases = find_cases(search);
    return cases ? names(*cases) : std::vector<std::string>{cases.error().text()};
  };
  EXPECT_THAT(chosen({.ids = {{10}}}),
              ElementsAre("10_0 LinearOperation 0/0", "10_1 SelfAttentionOperation 0/0"));
  EXPECT_THAT(chosen({.ids = {{1}}}), ElementsAre());
  EXPECT_THAT(chosen({.names = {"SELF", "rms"}}),
              ElementsAre("2 RmsNormOperation 0/0", "10_1 SelfAttentionOperation 0/0"));
  EXPECT_THAT(chosen({.ids = {{10}}, .names = {"lin"}}), ElementsAre("10_0 LinearOperation 0/0"));
}

TEST(Cases, OfATableAreItsRowsAndNamedWhereTheyHaveNoTensors) {
  const SmallDump dump;
  fill(dump);
  const auto table = dump.folder().write(
      "operation_tensors_0.csv",
      "OpName|OpParam|OutDType\nLinearOperation_10_0|{\"hasBias\":false}|float\n"
      "GatherOperation_99|{}|float\nrubbish\n");
  const auto cases = find_cases({.folder = dump.at("0_7/0"), .table = table});
  ASSERT_TRUE(cases) << cases.error().text();
  ASSERT_EQ(cases->cases.size(), 3u);
  EXPECT_THAT(cases->cases[0].problem, HasSubstr("line 4: the OpName is not"));
  EXPECT_EQ(cases->cases[1].param, "{\"hasBias\":false}") << "the table wins";
  EXPECT_EQ(cases->cases[2].problem, "tensor dir of 99 not found");
}

// The table of another run: its operations are found by the files that it names.
TEST(Cases, OfATableFindFilesBesideIt) {
  const SmallDump dump;
  fill(dump);
  const auto table = dump.folder().write(
      "ait_dump/operation_io_tensors/7/operation_tensors_0.csv",
      "OpName|OpParam|OutDType|InTensorFile|OutTensorFile\n"
      "LinearOperation_99|{}|float|tensors/0_7/0/10_Layer/0_LinearOperation/after/intensor0.bin;;"
      "nowhere.bin|tensors/0_7/0/2_RmsNormOperation/after/outtensor0.bin\n");
  const auto cases = find_cases({.folder = dump.at("0_7/0"), .table = table});
  ASSERT_TRUE(cases) << cases.error().text();
  const Case& found = cases->cases.at(0);
  EXPECT_EQ(found.problem, "");
  ASSERT_EQ(found.inputs.size(), 3u);
  EXPECT_TRUE(found.inputs[0] && !found.inputs[1] && !found.inputs[2]);
  EXPECT_THAT(found.folder, HasSubstr("0_LinearOperation/after"));
  EXPECT_TRUE(found.outputs[0]);
}

TEST(Cases, SayThatParametersAreTooLongToBeSome) {
  const SmallDump dump;
  dump.add("0_7/0/2_RmsNormOperation", "after/outtensor0", {1}, {1});
  dump.set_param("0_7/0/2_RmsNormOperation", std::string(100000, ' '));
  const auto cases = find_cases({.folder = dump.path()});
  ASSERT_TRUE(cases);
  EXPECT_THAT(cases->cases.at(0).problem, HasSubstr("op_param.json"));
}

// All ranks of an operation are needed to check it where there are several.
TEST(Cases, KnowTheSmallestPartOfTheDumpThatChecksThemAgain) {
  const SmallDump one, two;
  one.add("0_7/0/2_RmsNormOperation", "after/outtensor0", {1}, {1});
  EXPECT_EQ(find_cases({.folder = one.path()})->cases.at(0).again_folder, one.at("0_7/0"));
  fill(two);
  EXPECT_EQ(find_cases({.folder = two.path()})->cases.at(0).again_folder, two.path());
}

TEST(Cases, AreNotFoundWhereThereIsNoDump) {
  const formats::TempFolder folder;
  EXPECT_THAT(find_cases({.folder = folder.path() / "nowhere"}).error().text(),
              HasSubstr("no such folder"));
  EXPECT_THAT(find_cases({.folder = folder.path()}).error().text(), HasSubstr("is not a dump"));
}

}  // namespace
}  // namespace ait::opcheck
