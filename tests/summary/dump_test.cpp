#include "summary/dump.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../dump/outcomes.h"

namespace ait::summary {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;

TEST(Summary, EndsWithTheNextCommand) {
  dump::Outcome outcome = dump::outcome_of({dump::process(7, 10, 10)});
  outcome.dump = "/my out/ait_dump";
  EXPECT_THAT(dump_text(outcome), AllOf(HasSubstr("10, 1000 bytes"), HasSubstr("complete"),
                                        EndsWith("Next: ait llm compare -gp GOLDEN -mp "
                                                 "'/my out/ait_dump'\n")));
  outcome = dump::outcome_of({dump::process(7, 0, 0)});
  outcome.options.types = {"model", "layer", "onnx"};
  outcome.files.models = {"model/7/M.json"};
  outcome.files.onnx = {"model/7/M.onnx"};
  EXPECT_THAT(dump_text(outcome), EndsWith("Next: open in Netron: /out/ait_dump/model/7/M.onnx\n"));
}

TEST(Summary, SaysWhatIsMissing) {
  dump::Outcome outcome = dump::outcome_of({dump::process(7, 10, 8)});
  outcome.problems = {"it rained"};
  EXPECT_THAT(dump_text(outcome), AllOf(HasSubstr("8 of 10 announced"), HasSubstr("not complete"),
                                        HasSubstr("Not complete: it rained.")));
}

}  // namespace
}  // namespace ait::summary
