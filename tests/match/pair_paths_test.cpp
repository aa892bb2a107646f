#include "match/pair_paths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>

#include "test_files.h"

namespace ait::match {
namespace {

using capture::Layout;
using capture::Operation;
using capture::Recording;
using capture::RecordingBuilder;
using capture::Run;
using capture::RunKind;
using formats::TempFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// ---- A layout that the product does not know: a folder "toy" with one file for each operation in
// the order of their names. This is all that a new layout needs.

bool is_toy(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path + "/toy", ignored);
}

Result<Run> read_toy(const std::string& path) {
  Recording recording;
  recording.root = path;
  recording.traits = {.words = "a toy run", .identity = capture::Traits::Identity::kNames};
  recording.ranks = {{path, "", "0", ""}};
  recording.rounds = {"toy"};
  std::string files;
  for (const auto& entry : std::filesystem::directory_iterator(path + "/toy"))
    files += entry.path().filename().string() + '\0';
  RecordingBuilder builder;
  builder.add(0, 0, ".", files);
  builder.finish(
      recording, {},
      [](std::string_view file) {
        RecordingBuilder::Name name;
        name.operation = file.substr(file.find('/') + 1);
        return std::vector{name};
      },
      [](const std::string& name) {
        Operation operation;
        operation.name = name;
        return operation;
      },
      [](const std::string&) { return std::string(); },
      [](const Operation& a, const Operation& b) { return a.name < b.name; });
  return Run(std::move(recording));
}

constexpr std::array kToys = {Layout{"toy", RunKind::kOperations, false, is_toy, read_toy}};

TEST(PairPaths, TakesALayoutThatItHasNeverHeardOf) {
  const TempFolder folder;
  for (const char* side : {"golden", "my"})
    for (const char* name : {"b.bin", "a.bin"})
      folder.write(std::string(side) + "/toy/" + name, "x");
  const Inputs inputs{.golden = (folder.path() / "golden").string(),
                      .actual = (folder.path() / "my").string()};
  const auto list = pair_paths(inputs, kToys);
  ASSERT_TRUE(list) << list.error().text();
  EXPECT_EQ(list->what, "a toy run with a toy run");
  ASSERT_EQ(list->pairs.count, 2U);
  for (size_t i = 0; i < 2; ++i) {
    const Pair pair = list->pairs.at(i);
    EXPECT_TRUE(pair.complete());
    EXPECT_EQ(pair.golden.records[0].operation, pair.actual.records[0].operation);
  }
  // The product's own layouts take the same folders for folders of files.
  EXPECT_EQ(pair_paths(inputs)->kind, RunKind::kFiles);
}

TEST(PairPaths, PicksTheUsualSideOfAFolderThatHoldsTwoDumps) {
  const TempFolder folder;
  folder.write("both/torch_tensors/cpu_1/0/root.x/output.pth", "x");
  folder.write("both/tensors/0_1/0/0_Linear/after/outtensor0.bin", "x");
  const std::string both = (folder.path() / "both").string();
  const auto golden = capture::find_layout(both, RunKind::kOperations, capture::Role::kGolden);
  const auto actual = capture::find_layout(both, RunKind::kOperations, capture::Role::kActual);
  ASSERT_NE(golden, nullptr);
  ASSERT_NE(actual, nullptr);
  EXPECT_EQ(golden->name, "torch dump");
  EXPECT_EQ(actual->name, "acceleration library's dump");
}

TEST(PairPaths, SaysWhatIsWrongWithThePaths) {
  const TempFolder folder;
  folder.write("dump/torch_tensors/cpu_1/0/root.x/output.pth", "x");
  folder.write("plain/x.npy", "x");
  const std::string file = folder.write("one.npy", "x");
  const auto error = [&](const std::string& golden, const std::string& actual) {
    const auto list = pair_paths({.golden = golden, .actual = actual});
    return list ? std::string() : list.error().text();
  };
  const std::string dump = (folder.path() / "dump").string();
  const std::string plain = (folder.path() / "plain").string();
  EXPECT_THAT(error(dump, plain), HasSubstr("plain: holds no dump of torch or of"));
  EXPECT_THAT(error(plain, file), HasSubstr("is a folder but"));
  EXPECT_THAT(error(file, plain + "/none"), HasSubstr("no such file or folder"));
  EXPECT_THAT(error(file, ""), HasSubstr("--my-path is required"));
  const auto single = pair_paths({.golden = file, .actual = file});
  ASSERT_TRUE(single);
  EXPECT_FALSE(single->kind) << "two files of one tensor are a single pair";
}

TEST(PairPaths, RefusesOptionsThatMakeNoSenseWhateverIsCompared) {
  const TempFolder folder;
  const std::string file = folder.write("one.npy", "x");
  EXPECT_FALSE(pair_paths({.golden = file, .actual = file, .token_map = "nonsense"}));
  EXPECT_FALSE(pair_paths({.golden = file, .actual = file, .mapping_file = file + ".none"}));
}

}  // namespace
}  // namespace ait::match
