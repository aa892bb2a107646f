#include "capture/manual_mapping.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <ctime>
#include <filesystem>
#include <thread>

#include "test_files.h"

namespace ait::capture {
namespace {

using formats::TempFolder;
namespace fs = std::filesystem;

ManualMapping read(const std::string& path, const std::string& actual_root = {}) {
  auto mapping = read_manual_mapping(path);
  EXPECT_TRUE(mapping) << mapping.error().text();
  if (mapping) find_moved_files(*mapping, actual_root);
  return mapping ? *mapping : ManualMapping{};
}

TEST(FindMetadata, AcceptsTheFileItsFolderAndTheFolderAbove) {
  const TempFolder folder;
  const std::string json = folder.write("12_0/golden_tensor/metadata.json", "{}");
  const std::string base = (folder.path() / "12_0").string();
  for (const std::string& path :
       {json, base + "/golden_tensor", base + "/golden_tensor/", base, base + "/"}) {
    SCOPED_TRACE(path);
    const std::string found = find_metadata(path);
    ASSERT_FALSE(found.empty());
    EXPECT_TRUE(std::filesystem::equivalent(found, json));
  }
  EXPECT_EQ(find_metadata(folder.path().string()), "");
}

TEST(ManualMapping, ReadsPairsInNumericOrder) {
  const TempFolder folder;
  const auto json = folder.write("metadata.json",
                                 R"({"10": {"0": ["/g/10", "/m/10"]},
                                     "9": {"11": ["/g/b", "/m/b"], "2": ["/g/a", "/m/a"]}})");
  const auto pairs = read(json).pairs;
  ASSERT_EQ(pairs.size(), 3u);
  EXPECT_EQ(pairs[0].token_id, "2");
  EXPECT_EQ(pairs[1].token_id, "11");
  EXPECT_EQ(pairs[2].data_id, "10");
  EXPECT_EQ(pairs[2].golden_path, "/g/10");
  EXPECT_EQ(pairs[2].actual_path, "/m/10");
}

TEST(ManualMapping, MergesADataIdThatStandsTwice) {
  const TempFolder folder;
  const auto json =
      folder.write("metadata.json", R"({"1": {"0": ["/g0", "/m0"]}, "1": {"1": ["/g1", "/m1"]}})");
  EXPECT_EQ(read(json).pairs.size(), 2u);
}

TEST(ManualMapping, KeepsTheGoodEntriesAndNamesTheBad) {
  const TempFolder folder;
  const auto json = folder.write(
      "metadata.json", R"({"1": {"0": ["/only golden"], "1": "text", "2": ["/g", "/m"]}, "2": 7})");
  const auto mapping = read(json);
  EXPECT_EQ(mapping.pairs.size(), 1u);
  ASSERT_EQ(mapping.problems.size(), 3u);
  EXPECT_EQ(mapping.problems[0].message(),
            "Invalid data in golden metadata.json, data_id: 1, token_id: 0");
}

TEST(ManualMapping, RefusesWhatIsNoJsonObject) {
  const TempFolder folder;
  for (const char* text : {"", "[]", "{\"1\": {", "7"}) {
    SCOPED_TRACE(text);
    EXPECT_FALSE(read_manual_mapping(folder.write("metadata.json", text)));
  }
}

TEST(ManualMapping, FindsRelativePathsBesideTheJson) {
  const TempFolder folder;
  const auto golden = folder.write("0/1_tensor.pth", "x");
  const auto json = folder.write("metadata.json", R"({"1": {"0": ["0/1_tensor.pth", "/m"]}})");
  EXPECT_TRUE(std::filesystem::equivalent(read(json).pairs[0].golden_path, golden));
}

TEST(ManualMapping, FindsMovedFilesBelowMyPathByTheirTail) {
  const TempFolder folder;
  const auto moved = folder.write("new/tensors/0_9/0/op/after/outtensor0.bin", "x");
  const auto json = folder.write(
      "metadata.json",
      R"({"1": {"0": ["/g", "/old/ait_dump/tensors/0_9/0/op/after/outtensor0.bin"]}})");
  const auto root = (folder.path() / "new").string();
  EXPECT_EQ(read(json, root).pairs[0].actual_path, moved);
}

TEST(ManualMapping, FindsGoldenFilesBesideTheJsonWhereTheDumpHasMoved) {
  const TempFolder folder;
  const auto golden = folder.write("golden_tensor/0/1_tensor.pth", "x");
  const auto other = folder.write("elsewhere/1_tensor.pth", "x");
  const auto json = folder.write("golden_tensor/metadata.json",
                                 R"({"1": {"0": ["/old/golden_tensor/0/1_tensor.pth", "/m"],
                                     "1": ["/old/golden_tensor/1/1_tensor.pth", "/m"],
                                     "2": [")" +
                                     other + R"(", "/m"],
                                     "3": ["/old/../0/1_tensor.pth", "/m"],
                                     "4": ["/old/elsewhere/../../elsewhere/1_tensor.pth", "/m"]}})");
  const auto pairs = read(json).pairs;
  ASSERT_EQ(pairs.size(), 5u);
  EXPECT_EQ(pairs[0].golden_path, golden);
  EXPECT_EQ(pairs[1].golden_path, "/old/golden_tensor/1/1_tensor.pth") << "is nowhere";
  EXPECT_EQ(pairs[2].golden_path, other) << "is where the json says";
  EXPECT_EQ(pairs[3].golden_path, golden);
  EXPECT_EQ(pairs[4].golden_path, "/old/elsewhere/../../elsewhere/1_tensor.pth");
}

TEST(ManualMapping, IsNotHeldUpByALongPath) {
  const TempFolder folder;
  std::string path;
  for (int i = 0; i < 100'000; ++i) path += "/a";
  const auto json =
      folder.write("metadata.json", R"({"1": {"0": [")" + path + R"(", ")" + path + R"("]}})");
  const std::clock_t start = std::clock();
  EXPECT_EQ(read(json, folder.path().string()).pairs[0].actual_path, path);
  EXPECT_LT(std::clock() - start, CLOCKS_PER_SEC);
}

TEST(ManualMapping, RefusesAFileLargerThanAnyMapping) {
  const TempFolder folder;
  const auto json = folder.write("metadata.json", "");
  std::filesystem::resize_file(json, uintmax_t{1} << 40);
  EXPECT_EQ(read_manual_mapping(json).error().message(),
            "is larger than 256 MiB, more than such a file can be");
}

TEST(ManualMapping, NamesSomeOfManyBadEntries) {
  const TempFolder folder;
  std::string text = "{";
  for (int i = 0; i < 100'000; ++i) text += "\"" + std::to_string(i) + "\": 1,";
  const auto mapping = read(folder.write("metadata.json", text + R"("x": {"0": ["/g", "/m"]}})"));
  EXPECT_EQ(mapping.pairs.size(), 1u);
  ASSERT_EQ(mapping.problems.size(), 1001u);
  EXPECT_EQ(mapping.problems.back().message(),
            "has more entries that are not pairs of paths; only the first 1000 are reported");
}

TEST(ManualMapping, TakesMyPathForTheOnlyPair) {
  const TempFolder folder;
  const auto mine = folder.write("my.bin", "x");
  EXPECT_EQ(
      read(folder.write("one.json", R"({"1": {"0": ["/g", "/gone"]}})"), mine).pairs[0].actual_path,
      mine);
  EXPECT_EQ(
      read(folder.write("two.json", R"({"1": {"0": ["/g", "/gone"], "1": ["/g", "/gone"]}})"), mine)
          .pairs[0]
          .actual_path,
      "/gone");
}

TEST(AddToMetadata, KeepsWhatOtherThreadsAdd) {
  const TempFolder folder;
  const std::string where = folder.path().string();
  constexpr int kThreads = 4;
  constexpr int kEach = 25;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) {
        const MappedPair pair = {std::to_string(t), std::to_string(i), "/g \"quoted\"", "/m"};
        EXPECT_TRUE(add_to_metadata(where, {&pair, 1}));
      }
    });
  for (std::thread& thread : threads) thread.join();
  const auto pairs = read(where + "/metadata.json").pairs;
  ASSERT_EQ(pairs.size(), static_cast<size_t>(kThreads * kEach));
  EXPECT_EQ(pairs[0].golden_path, "/g \"quoted\"");
}

TEST(AddToMetadata, LocksThroughNoLinkAndNoFifo) {
  const TempFolder folder;
  const MappedPair pair{"a", "0", "g", "m"};
  const std::string golden = (folder.path() / "golden_tensor").string();
  fs::create_directory(golden);
  fs::create_symlink("../target", golden + "/.metadata.lock");
  const auto linked = add_to_metadata(golden, {&pair, 1});
  ASSERT_FALSE(linked);
  EXPECT_NE(linked.error().text().find("cannot be locked"), std::string::npos);
  EXPECT_FALSE(fs::exists(folder.path() / "target"));
  fs::remove(golden + "/.metadata.lock");
  ASSERT_EQ(::mkfifo((golden + "/.metadata.lock").c_str(), 0600), 0);
  EXPECT_FALSE(add_to_metadata(golden, {&pair, 1}));
}

TEST(AddToMetadata, LeavesADamagedFileAlone) {
  const TempFolder folder;
  const auto json = folder.write("metadata.json", "{ not json");
  const MappedPair pair = {"1", "0", "/g", "/m"};
  EXPECT_FALSE(add_to_metadata(folder.path().string(), {&pair, 1}));
  std::ifstream in(json);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  EXPECT_EQ(text, "{ not json");
}

}  // namespace
}  // namespace ait::capture
