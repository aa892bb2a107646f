#include "dump/judgement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "outcomes.h"

namespace ait::dump {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> problems(
    Outcome outcome, launch::Program program = {}, std::optional<launch::AtbLibrary> (*atb)() = [] {
      return std::optional<launch::AtbLibrary>();
    }) {
  judge(outcome, program, atb);
  return outcome.problems;
}

TEST(Judge, IsContentWhenAllArrived) {
  EXPECT_THAT(problems(outcome_of({process(7, 10, 10), process(8, 0, 0)})), IsEmpty());
}

TEST(Judge, NamesProcessesThatDidNotEndAndWhatIsMissing) {
  RecordedProcess killed = process(7, 10, 8);
  killed.ended = false;
  killed.counts.records_announced = 3;
  killed.counts.records_written = 2;
  EXPECT_THAT(problems(outcome_of({killed})),
              ElementsAre(AllOf(HasSubstr("process 7 did not end in order"), HasSubstr("2 tensors"),
                                HasSubstr("1 other file "))));
  killed.still_running = true;
  EXPECT_THAT(problems(outcome_of({killed})), ElementsAre(HasSubstr("still runs")));
}

TEST(Judge, IsNotContentWithFilesThatAreGoneOrCannotBeCounted) {
  RecordedProcess robbed = process(7, 10, 8);
  robbed.counts.records_announced = 1;
  EXPECT_THAT(problems(outcome_of({robbed})),
              ElementsAre(AllOf(HasSubstr("process 7 had written 2 tensors and 1 other file more "),
                                HasSubstr("removed or moved"))));
  RecordedProcess hidden = process(7, 10, 10);
  hidden.uncounted = "/out/ait_dump/tensors: Too many open files";
  EXPECT_THAT(problems(outcome_of({hidden})), ElementsAre(HasSubstr("Too many open files")));
  RecordedProcess bare = process(7, 0, 0);
  bare.counts.lines_written = 3;
  Outcome tables = outcome_of({bare});
  tables.options.types = {"op"};
  EXPECT_THAT(problems(tables), ElementsAre(HasSubstr("3 lines of tables or times")));
}

TEST(Judge, NotesTensorsThatLaterOnesReplaced) {
  RecordedProcess busy = process(7, 10, 6);
  busy.counts.replaced = 4;
  Outcome outcome = outcome_of({busy});
  judge(outcome, {});
  EXPECT_TRUE(outcome.complete());
  EXPECT_THAT(outcome.notes, ElementsAre(HasSubstr("4 tensors over earlier ones")));
}

TEST(Judge, SaysWhyThingsCouldNotBeStored) {
  RecordedProcess full = process(7, 10, 4);
  full.counts.failed = 6;
  full.counts.lines_failed = 1;
  full.counts.failure_number = ENOSPC;
  std::snprintf(full.counts.failure_step, sizeof full.counts.failure_step, "write the file");
  std::snprintf(full.counts.failure_path, sizeof full.counts.failure_path,
                "/out/ait_dump/tensors/0_7/x.bin");
  EXPECT_THAT(problems(outcome_of({full})),
              ElementsAre(AllOf(HasSubstr("6 tensors, 1 line could not be stored"),
                                HasSubstr("cannot write the file: No space left on device"),
                                HasSubstr("(tensors/0_7/x.bin)"))));
}

TEST(Judge, FindsOutWhyNothingWasCaptured) {
  const auto only = [](auto change) {
    RecordedProcess none = process(7, 0, 0);
    Outcome outcome = outcome_of({});
    change(none.counts, outcome.options);
    outcome.end.run.processes = {none};
    const auto found = problems(outcome);
    EXPECT_EQ(found.size(), 1U);
    return found.empty() ? "" : found[0];
  };
  EXPECT_THAT(only([](auto& c, auto&) { c.operations_asked = c.operations_wanted = 0; }),
              HasSubstr("set up no operation"));
  EXPECT_THAT(only([](auto& c, auto& o) {
                c.operations_wanted = 0;
                o.ids = "77";
                o.operation_name = "self";
              }),
              HasSubstr("matches -ids 77 and -opname self"));
  EXPECT_THAT(only([](auto& c, auto&) { c.rounds_asked = c.rounds_wanted = 0; }),
              HasSubstr("none was executed"));
  EXPECT_THAT(only([](auto& c, auto& o) {
                c.rounds_wanted = 0;
                c.highest_round = 2;
                o.rounds = {{5, 6}};
              }),
              AllOf(HasSubstr("-er 5,6"), HasSubstr("highest was round 2")));
  EXPECT_THAT(only([](auto& c, auto& o) {
                c.skipped = 3;
                o.device = 5;
              }),
              AllOf(HasSubstr("3 tensors"), HasSubstr("-device 5")));
  EXPECT_THAT(only([](auto&, auto& o) { o.device = 1; }),
              HasSubstr("-device 1: no operation ran on that device"));
  EXPECT_THAT(only([](auto&, auto&) {}), HasSubstr("did not run in the rounds -er 0,0"));
}

TEST(Judge, NamesTheFiltersThatMatchNothing) {
  RecordedProcess one = process(7, 5, 5);
  RecordedProcess two = process(8, 5, 5);
  one.counts.ids_matched[0] = 0b0001;
  two.counts.ids_matched[0] = 0b0100;
  one.counts.names_matched[0] = 0b10;
  Outcome outcome = outcome_of({one, two});
  outcome.options.ids = "2,99,3_1,100";
  EXPECT_THAT(problems(outcome), ElementsAre(HasSubstr("no operation has the id 99, 100 of -ids")));
  outcome.options.ids = "2";
  outcome.options.operation_name = "conv,self";
  EXPECT_THAT(problems(outcome), ElementsAre(HasSubstr("no operation's name begins with conv,")));
  outcome.options.operation_name = "";
  EXPECT_THAT(problems(outcome), IsEmpty());
}

TEST(Judge, SaysThatAProcessCouldKeepNoCounts) {
  RecordedProcess blind = process(7, 0, 0);
  blind.ended = false;
  blind.no_ledger = ENOSPC;
  EXPECT_THAT(problems(outcome_of({blind})),
              ElementsAre(AllOf(HasSubstr("process 7"), HasSubstr("No space left on device"))));
}

TEST(Judge, SaysThatOnnxAloneIsNothing) {
  Outcome outcome = outcome_of({});
  outcome.options.types = {"onnx"};
  EXPECT_THAT(problems(outcome), ElementsAre(HasSubstr("--type onnx alone records nothing")));
}

TEST(Judge, FindsOutWhyNobodyCalled) {
  launch::Program program{"/x/tool", "/x/tool", launch::Obstacle::kStatic};
  EXPECT_THAT(problems(outcome_of({}), program), ElementsAre(HasSubstr("linked statically")));
  program.obstacle = launch::Obstacle::kOtherRights;
  EXPECT_THAT(problems(outcome_of({}), program), ElementsAre(HasSubstr("setuid")));
  program.obstacle = launch::Obstacle::kNone;
  EXPECT_THAT(problems(outcome_of({}), program), ElementsAre(HasSubstr("ATB_HOME_PATH")));
  EXPECT_THAT(problems(outcome_of({}), program,
                       [] {
                         return std::optional(
                             launch::AtbLibrary{"/lib/libatb.so", launch::ProbeInterface{}, ""});
                       }),
              ElementsAre(HasSubstr("no probe interface")));
  EXPECT_THAT(problems(outcome_of({}), program,
                       [] {
                         return std::optional(launch::AtbLibrary{
                             "/lib/libatb.so", launch::ProbeInterface{true, false}, ""});
                       }),
              ElementsAre(HasSubstr("does it use the acceleration library?")));
}

TEST(Judge, NotesRoundsThatWereNotReached) {
  Outcome outcome = outcome_of({process(7, 1, 1)});
  outcome.options.rounds = {{0, 9}};
  outcome.end.run.processes[0].counts.highest_round = 3;
  judge(outcome, {});
  EXPECT_TRUE(outcome.complete());
  EXPECT_THAT(outcome.notes, ElementsAre(AllOf(HasSubstr("up to 9"), HasSubstr("round 3"))));
}

}  // namespace
}  // namespace ait::dump
