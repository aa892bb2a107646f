#include "cli/dump_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../launch/scratch_folder.h"
#include "cli/moment.h"
#include "cli/overflow_results.h"

namespace ait::cli {
namespace {

using ait::ScratchFolder;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
namespace fs = std::filesystem;

RecordedProcess process(uint64_t pid, uint64_t announced, uint64_t written) {
  RecordedProcess out;
  out.pid = pid;
  out.ended = true;
  out.counts.announced = announced;
  out.counts.written = written;
  out.counts.written_bytes = written * 100;
  out.counts.operations_asked = 4;
  out.counts.operations_wanted = 4;
  out.counts.rounds_asked = 4;
  out.counts.rounds_wanted = 4;
  return out;
}

DumpReport report_of(std::vector<RecordedProcess> processes) {
  DumpReport out;
  out.options.command = {"bash", "run.sh"};
  out.dump = "/out/ait_dump";
  out.end.run.processes = std::move(processes);
  return out;
}

std::vector<std::string> problems(
    DumpReport report, launch::Program program = {},
    std::optional<launch::AtbLibrary> (*atb)() = [] {
      return std::optional<launch::AtbLibrary>();
    }) {
  judge(report, program, atb);
  return report.problems;
}

TEST(Judge, IsContentWhenAllArrived) {
  EXPECT_THAT(problems(report_of({process(7, 10, 10), process(8, 0, 0)})), IsEmpty());
}

TEST(Judge, NamesProcessesThatDidNotEndAndWhatIsMissing) {
  RecordedProcess killed = process(7, 10, 8);
  killed.ended = false;
  killed.counts.records_announced = 3;
  killed.counts.records_written = 2;
  EXPECT_THAT(problems(report_of({killed})),
              ElementsAre(AllOf(HasSubstr("process 7 did not end in order"), HasSubstr("2 tensors"),
                                HasSubstr("1 file "))));
  killed.still_running = true;
  EXPECT_THAT(problems(report_of({killed})), ElementsAre(HasSubstr("still runs")));
}

TEST(Judge, SaysWhyThingsCouldNotBeStored) {
  RecordedProcess full = process(7, 10, 4);
  full.counts.failed = 6;
  full.counts.lines_failed = 1;
  full.counts.failure_number = ENOSPC;
  std::snprintf(full.counts.failure_step, sizeof full.counts.failure_step, "write the file");
  std::snprintf(full.counts.failure_path, sizeof full.counts.failure_path,
                "/out/ait_dump/tensors/0_7/x.bin");
  EXPECT_THAT(problems(report_of({full})),
              ElementsAre(AllOf(HasSubstr("6 tensors, 1 line could not be stored"),
                                HasSubstr("cannot write the file: No space left on device"),
                                HasSubstr("(tensors/0_7/x.bin)"))));
}

TEST(Judge, FindsOutWhyNothingWasCaptured) {
  const auto only = [](auto change) {
    RecordedProcess none = process(7, 0, 0);
    DumpReport report = report_of({});
    change(none.counts, report.options);
    report.end.run.processes = {none};
    const auto found = problems(report);
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
  EXPECT_THAT(only([](auto&, auto&) {}), HasSubstr("offered no tensor"));
}

TEST(Judge, FindsOutWhyNobodyCalled) {
  launch::Program program{"/x/tool", "/x/tool", launch::Obstacle::kStatic};
  EXPECT_THAT(problems(report_of({}), program), ElementsAre(HasSubstr("linked statically")));
  program.obstacle = launch::Obstacle::kOtherRights;
  EXPECT_THAT(problems(report_of({}), program), ElementsAre(HasSubstr("setuid")));
  program.obstacle = launch::Obstacle::kNone;
  EXPECT_THAT(problems(report_of({}), program), ElementsAre(HasSubstr("ATB_HOME_PATH")));
  EXPECT_THAT(problems(report_of({}), program,
                       [] {
                         return std::optional(
                             launch::AtbLibrary{"/lib/libatb.so", launch::ProbeInterface{}, ""});
                       }),
              ElementsAre(HasSubstr("no probe interface")));
  EXPECT_THAT(problems(report_of({}), program,
                       [] {
                         return std::optional(launch::AtbLibrary{
                             "/lib/libatb.so", launch::ProbeInterface{true, false}, ""});
                       }),
              ElementsAre(HasSubstr("does it use the acceleration library?")));
}

TEST(Judge, NotesRoundsThatWereNotReached) {
  DumpReport report = report_of({process(7, 1, 1)});
  report.options.rounds = {{0, 9}};
  report.end.run.processes[0].counts.highest_round = 3;
  judge(report, {});
  EXPECT_TRUE(report.complete());
  EXPECT_THAT(report.notes, ElementsAre(AllOf(HasSubstr("up to 9"), HasSubstr("round 3"))));
}

TEST(Manifest, HoldsWhatWasAskedAndWhatCame) {
  DumpReport report = report_of({process(7, 10, 10)});
  report.options.ids = "2,3_1";
  report.end.child.signal = 9;
  report.files.layers = {"layer/7/A_0.json"};
  const std::string text = manifest_text(report);
  for (const char* part :
       {"\"tool\": \"ait llm dump\"", "\"complete\": true", "\"save_operation_ids\": \"2,3_1\"",
        "\"exit_status\": 137", "\"signal\": 9", "\"announced\": 10", "\"written_bytes\": 1000",
        "\"pid\": 7", "\"ended_in_order\": true", "layer/7/A_0.json",
        "\"glibc\": ", "\"start\": ", "\"bash\"", "\"run.sh\""})
    EXPECT_THAT(text, HasSubstr(part));
}

TEST(Manifest, HoldsNoPathOfThisMachine) {
  RecordedProcess full = process(7, 10, 4);
  full.counts.failed = 6;
  full.counts.failure_number = ENOSPC;
  std::snprintf(full.counts.failure_path, sizeof full.counts.failure_path,
                "/out/ait_dump/tensors/x.bin");
  DumpReport report = report_of({full});
  judge(report, {});
  EXPECT_THAT(manifest_text(report), AllOf(HasSubstr("tensors/x.bin"), Not(HasSubstr("/out/"))));
}

TEST(Manifest, KeepsTheOneBefore) {
  const ScratchFolder folder;
  DumpReport report = report_of({process(7, 1, 1)});
  report.dump = folder.path();
  report.end.start = 1'000'000'000;
  ASSERT_TRUE(write_manifest(report));
  report.end.start += 60;
  ASSERT_TRUE(write_manifest(report));
  ASSERT_TRUE(write_manifest(report));  // the second run's own is set aside, too
  const std::string first = "manifest_" + stamp_text(1'000'000'000) + ".json";
  const std::string second = "manifest_" + stamp_text(1'000'000'060) + ".json";
  EXPECT_THAT(content_of(folder / first), HasSubstr(iso_text(1'000'000'000)));
  EXPECT_THAT(content_of(folder / second), HasSubstr(iso_text(1'000'000'060)));
  ASSERT_TRUE(write_manifest(report));  // same start as one set aside before
  EXPECT_TRUE(fs::exists(folder / second.substr(0, second.size() - 5) + "_1.json"));
}

TEST(Manifest, SetsAsideEvenWhatIsNotOurs) {
  const ScratchFolder folder;
  folder.file("manifest.json", "hello");
  DumpReport report = report_of({});
  report.dump = folder.path();
  ASSERT_TRUE(write_manifest(report));
  EXPECT_THAT(content_of(folder / "manifest.json"), HasSubstr("ait llm dump"));
  size_t kept = 0;
  for (const auto& entry : fs::directory_iterator(folder.path()))
    if (content_of(entry.path()) == "hello") ++kept;
  EXPECT_EQ(kept, 1U);
}

TEST(Manifest, OfADryRunHoldsTheForecastAndNoLosses) {
  RecordedProcess counted = process(7, 10, 0);
  counted.ended = false;
  DumpReport report = report_of({counted});
  report.options.dry_run = true;
  report.forecast = Forecast{};
  judge(report, {});
  EXPECT_THAT(report.problems, ElementsAre(Not(HasSubstr("did not arrive"))));
  EXPECT_THAT(manifest_text(report), AllOf(HasSubstr("\"forecast\""), Not(HasSubstr("\"lost\""))));
}

TEST(Summary, EndsWithTheNextCommand) {
  DumpReport report = report_of({process(7, 10, 10)});
  report.dump = "/my out/ait_dump";
  EXPECT_THAT(summary_text(report), AllOf(HasSubstr("10, 1000 bytes"), HasSubstr("complete"),
                                          EndsWith("Next: ait llm compare -gp GOLDEN -mp "
                                                   "'/my out/ait_dump'\n")));
  report = report_of({process(7, 0, 0)});
  report.options.types = {"model", "layer", "onnx"};
  report.files.models = {"model/7/M.json"};
  report.files.onnx = {"model/7/M.onnx"};
  EXPECT_THAT(summary_text(report),
              EndsWith("Next: open in Netron: /out/ait_dump/model/7/M.onnx\n"));
}

TEST(Summary, SaysWhatIsMissing) {
  DumpReport report = report_of({process(7, 10, 8)});
  report.problems = {"it rained"};
  EXPECT_THAT(summary_text(report), AllOf(HasSubstr("8 of 10 announced"), HasSubstr("not complete"),
                                          HasSubstr("Not complete: it rained.")));
}

TEST(CountRounds, CountsEachOnce) {
  EXPECT_EQ(count_rounds({{0, 0}}, INT64_MAX), 1U);
  EXPECT_EQ(count_rounds({{3, 5}, {7, 7}}, INT64_MAX), 4U);
  EXPECT_EQ(count_rounds({{3, 5}, {4, 8}, {4, 4}}, INT64_MAX), 6U);
  EXPECT_EQ(count_rounds({{3, 5}, {7, 7}}, 6), 3U);
  EXPECT_EQ(count_rounds({{3, 5}}, 2), 0U);
  EXPECT_EQ(count_rounds({{0, INT64_MAX}}, INT64_MAX), uint64_t{1} << 63);
}

TEST(Forecast, MultipliesOneRound) {
  const ScratchFolder folder;
  DumpOptions options;
  options.rounds = {{0, 9}};
  const auto predicted = forecast(options, 20, 20'000, 4, folder.path());
  ASSERT_TRUE(predicted) << predicted.error().text();
  EXPECT_EQ(predicted->rounds_requested, 10U);
  EXPECT_EQ(predicted->rounds_reached, 5U);
  EXPECT_EQ(predicted->tensors, 100U);
  EXPECT_EQ(predicted->bytes, 100'000U);
  EXPECT_GT(predicted->seconds, 0);
  EXPECT_GT(predicted->free_bytes, 0U);
  EXPECT_TRUE(predicted->fits);
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(Forecast, WarnsWhenItWillNotFit) {
  const ScratchFolder folder;
  const auto predicted = forecast(DumpOptions{}, 1'000'000, uint64_t{1} << 60, 0, folder.path());
  ASSERT_TRUE(predicted) << predicted.error().text();
  EXPECT_FALSE(predicted->fits);
  const auto nothing = forecast(DumpOptions{}, 0, 0, 0, folder.path());
  ASSERT_TRUE(nothing);
  EXPECT_EQ(nothing->tensors, 0U);
  EXPECT_TRUE(nothing->fits);
}

TEST(OverflowResults, CountEachOperatorOfThisRunInItsOrder) {
  const ScratchFolder folder;
  const std::string line = "Overflow detected! Operator name: ";
  folder.file("ait_overflow_res_7.txt", line + "Old_1:K\n");
  const ResultSizes earlier = result_sizes(folder.path());
  folder.file("ait_overflow_res_7.txt", line + "Old_1:K\n" + line + "B_2_0:K\n" + line +
                                            "A_1:K\nnoise\n" + line + "B_2_0:K\n");
  const auto results = read_results(folder.path(), 7, earlier);
  ASSERT_TRUE(results) << results.error().text();
  EXPECT_THAT(results->operators, ElementsAre(std::pair("B_2_0:K", 2), std::pair("A_1:K", 1)));
  EXPECT_THAT(read_results(folder.path(), 8, earlier)->operators, IsEmpty());
}

TEST(OverflowResults, IdsAreTheEndOfTheOperationsName) {
  EXPECT_EQ(ids_of("LinearOperation_3_1:MatMulKernel"), "3_1");
  EXPECT_EQ(ids_of("Op2_4"), "4");
  EXPECT_EQ(ids_of("Nothing:K_1"), "");
}

TEST(Texts, AreForPeople) {
  EXPECT_EQ(bytes_text(0), "0 bytes");
  EXPECT_EQ(bytes_text(1536), "1.5 KiB");
  EXPECT_EQ(count_text(1, "process"), "1 process");
  EXPECT_EQ(count_text(2, "process"), "2 processes");
  EXPECT_EQ(shell_word("a/b"), "a/b");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(end_text({3, 0}), "ended with status 3");
  EXPECT_THAT(end_text({0, 9}), HasSubstr("signal 9"));
  EXPECT_THAT(iso_text(0), ::testing::MatchesRegex("19(70-01-01|69-12-31)T..:..:00[+-]..:.."));
}

}  // namespace
}  // namespace ait::cli
