#include "capture/completeness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "capture/atb_dump.h"
#include "capture/torch_dump.h"
#include "test_files.h"

namespace ait::capture {
namespace {

namespace fs = std::filesystem;
using formats::TempFolder;
using std::chrono::hours;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Library : public ::testing::Test {
 protected:
  Library() {
    for (const char* round : {"0", "1"})
      folder_.write("tensors/0_411/" + std::string(round) + "/0_Linear/after/outtensor0.bin", "x");
  }
  Completeness judged() {
    const auto recording = read_atb_dump(folder_.path().string());
    if (recording) return recording->completeness;
    ADD_FAILURE() << recording.error().text();
    return {};
  }
  void set_time(const std::string& file, fs::file_time_type time) {
    fs::last_write_time(folder_.path() / file, time);
  }

  TempFolder folder_;
};

TEST_F(Library, OfAnotherToolLeavesItOpen) {
  const auto found = judged();
  EXPECT_EQ(found.complete, std::nullopt);
  EXPECT_THAT(found.doubts, IsEmpty());
}

TEST_F(Library, IsCompleteWhereItsManifestSaysSo) {
  folder_.write("manifest.json", R"({"complete": true, "processes": [{"pid": 411}]})");
  EXPECT_EQ(judged().complete, true);
}

TEST_F(Library, SaysWhyItIsNot) {
  folder_.write("manifest.json", R"({"complete": false, "incomplete_because": ["the disk is full"],
                                     "processes": [{"pid": 411, "name": "411"}]})");
  const auto found = judged();
  EXPECT_EQ(found.complete, false);
  EXPECT_THAT(found.doubts, ElementsAre("the disk is full"));
}

TEST_F(Library, OfALauncherThatWasKilledHasNoManifest) {
  fs::create_directories(folder_.path() / ".run_99");
  const auto found = judged();
  EXPECT_EQ(found.complete, false);
  EXPECT_THAT(found.doubts, ElementsAre(HasSubstr("no manifest names the process of 0_411")));
}

TEST_F(Library, IsNotJudgedByTheManifestOfAnotherRun) {
  folder_.write("manifest.json", R"({"complete": true, "processes": [{"pid": 7}]})");
  EXPECT_THAT(judged().doubts, ElementsAre(HasSubstr("no manifest names the process of 0_411")));
  folder_.write("manifest_20250102_030405.json",
                R"({"complete": true, "processes": [{"pid": 411}]})");
  EXPECT_EQ(judged().complete, true);
}

TEST_F(Library, IsKnownByTheNameOfItsProcess) {
  folder_.write("tensors/0_411_1/0/0_Linear/after/outtensor0.bin", "x");
  fs::remove_all(folder_.path() / "tensors/0_411");
  folder_.write("manifest.json",
                R"({"complete": true, "processes": [{"pid": 411, "name": "411"}]})");
  EXPECT_EQ(judged().complete, false);
  folder_.write("manifest.json",
                R"({"complete": true, "processes": [{"pid": 411, "name": "411_1"}]})");
  EXPECT_EQ(judged().complete, true);
}

TEST_F(Library, DoubtsAManifestThatIsOlderThanItsTensors) {
  folder_.write("manifest.json", R"({"complete": true, "processes": [{"pid": 411}]})");
  const auto now = fs::file_time_type::clock::now();
  set_time("manifest.json", now - hours(1));
  EXPECT_THAT(judged().doubts, ElementsAre(HasSubstr("manifest.json is older than tensors")));
  // One of the rounds is of another run.
  set_time("tensors/0_411/0/0_Linear/after/outtensor0.bin", now - hours(2));
  EXPECT_THAT(judged().doubts, ElementsAre(HasSubstr("manifest.json is older than tensors")));
  // The whole dump was copied, the manifest first.
  set_time("manifest.json", now - seconds(20));
  set_time("tensors/0_411/0/0_Linear/after/outtensor0.bin", now - seconds(19));
  EXPECT_EQ(judged().complete, true);
}

TEST_F(Library, TakesAnythingForAManifest) {
  for (const char* text : {"", "{", "[]", "3", R"({"complete": "yes"})"}) {
    folder_.write("manifest.json", text);
    EXPECT_EQ(judged().doubts.size(), 1U) << text;
    EXPECT_NE(judged().complete, true) << text;
  }
}

class Torch : public Library {
 protected:
  Torch() {
    folder_.write("torch_tensors/cpu_5/0/root/output.pth", "x");
    folder_.write("torch_tensors/cpu_5/model_tree.json", R"({"name": "root", "type": "M"})");
  }
  Completeness judged(const std::string& manifest) {
    if (!manifest.empty()) folder_.write("torch_tensors/cpu_5/manifest.json", manifest);
    const auto recording = read_torch_dump(folder_.path().string());
    if (recording) return recording->completeness;
    ADD_FAILURE() << recording.error().text();
    return {};
  }
};

TEST_F(Torch, HasAManifestInTheFolderOfEachProcess) {
  EXPECT_EQ(judged("").complete, std::nullopt);
  EXPECT_EQ(judged(R"({"state": "complete", "tensors": {"submitted": 1, "written": 1}})").complete,
            true);
  EXPECT_THAT(judged(R"({"state": "recording"})").doubts,
              ElementsAre(HasSubstr("its process was killed, or still runs")));
  EXPECT_THAT(judged(R"({"state": "complete", "tensors":
                 {"submitted": 9, "written": 2, "first_failure": "No space left on device"}})")
                  .doubts,
              ElementsAre("7 of 9 tensors were not stored: No space left on device"));
  EXPECT_THAT(
      judged(R"({"state": "complete", "errors": [{"reason": "KeyError: 3", "count": 2}]})").doubts,
      ElementsAre("an error while recording: KeyError: 3"));
  EXPECT_THAT(judged("{").doubts, ElementsAre(HasSubstr("cpu_5/manifest.json is not JSON")));
}

TEST_F(Torch, IsJudgedByItsLauncherToo) {
  folder_.write("manifest.json",
                R"({"complete": false, "incomplete_because": ["a process was killed"],
      "options": {"probe": "torch"}, "processes": [{"pid": 5}]})");
  EXPECT_THAT(judged(R"({"state": "complete"})").doubts, ElementsAre("a process was killed"));
  // That of the library beside it is none of its business, nor the other way round.
  EXPECT_EQ(Library::judged().complete, std::nullopt);
}

}  // namespace
}  // namespace ait::capture
