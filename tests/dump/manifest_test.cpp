#include "dump/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../launch/scratch_folder.h"
#include "dump/judgement.h"
#include "dump/texts.h"
#include "outcomes.h"

namespace ait::dump {
namespace {

using ait::ScratchFolder;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

TEST(Manifest, HoldsWhatWasAskedAndWhatCame) {
  Outcome outcome = outcome_of({process(7, 10, 10)});
  outcome.options.ids = "2,3_1";
  outcome.end.child.signal = 9;
  outcome.files.layers = {"layer/7/A_0.json"};
  const std::string text = manifest_text(outcome);
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
  Outcome outcome = outcome_of({full});
  judge(outcome, {});
  EXPECT_THAT(manifest_text(outcome), AllOf(HasSubstr("tensors/x.bin"), Not(HasSubstr("/out/"))));
}

TEST(Manifest, KeepsTheOneBefore) {
  const ScratchFolder folder;
  Outcome outcome = outcome_of({process(7, 1, 1)});
  outcome.dump = folder.path();
  outcome.end.start = 1'000'000'000;
  ASSERT_TRUE(write_manifest(outcome));
  outcome.end.start += 60;
  ASSERT_TRUE(write_manifest(outcome));
  ASSERT_TRUE(write_manifest(outcome));  // the second run's own is set aside, too
  const std::string first = "manifest_" + stamp_text(1'000'000'000) + ".json";
  const std::string second = "manifest_" + stamp_text(1'000'000'060) + ".json";
  EXPECT_THAT(content_of(folder / first), HasSubstr(iso_text(1'000'000'000)));
  EXPECT_THAT(content_of(folder / second), HasSubstr(iso_text(1'000'000'060)));
  ASSERT_TRUE(write_manifest(outcome));  // same start as one set aside before
  EXPECT_TRUE(fs::exists(folder / second.substr(0, second.size() - 5) + "_1.json"));
}

TEST(Manifest, SetsAsideEvenWhatIsNotOurs) {
  const ScratchFolder folder;
  folder.file("manifest.json", "hello");
  Outcome outcome = outcome_of({});
  outcome.dump = folder.path();
  ASSERT_TRUE(write_manifest(outcome));
  EXPECT_THAT(content_of(folder / "manifest.json"), HasSubstr("ait llm dump"));
  size_t kept = 0;
  for (const auto& entry : fs::directory_iterator(folder.path()))
    if (content_of(entry.path()) == "hello") ++kept;
  EXPECT_EQ(kept, 1U);
}

TEST(Manifest, OfADryRunHoldsTheForecastAndNoLosses) {
  RecordedProcess counted = process(7, 10, 0);
  counted.ended = false;
  Outcome outcome = outcome_of({counted});
  outcome.options.dry_run = true;
  outcome.forecast = Forecast{};
  judge(outcome, {});
  EXPECT_THAT(outcome.problems, ElementsAre(Not(HasSubstr("did not arrive"))));
  EXPECT_THAT(manifest_text(outcome), AllOf(HasSubstr("\"forecast\""), Not(HasSubstr("\"lost\""))));
}

}  // namespace
}  // namespace ait::dump
