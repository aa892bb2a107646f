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

TEST(PairPaths, SaysThatADumpHasNoTensors) {
  const TempFolder folder;
  folder.write("full/ait_dump/tensors/0_1/0/0_Linear/after/outtensor0.bin", "x");
  folder.write("model/ait_dump/model/1/Llama.json", "{}");
  folder.write("tables/ait_dump/operation_io_tensors/1/operation_tensors_0.csv", "x");
  folder.write("plain/x.npy", "x");
  const auto path = [&](const char* name) { return (folder.path() / name).string(); };
  const auto error = [&](const std::string& golden, const std::string& actual) {
    const auto list = pair_paths({.golden = golden, .actual = actual});
    return list ? std::string() : list.error().text();
  };
  const std::string why =
      "is a dump without tensors: it holds model; record it again with --type tensor";
  EXPECT_THAT(error(path("full"), path("model")), HasSubstr("model: " + why));
  EXPECT_THAT(error(path("model"), path("model/ait_dump")), HasSubstr("model: " + why));
  EXPECT_THAT(error(path("model/ait_dump"), path("full")), HasSubstr("ait_dump: " + why));
  EXPECT_THAT(error(path("full"), path("tables")),
              HasSubstr("it holds operation_io_tensors; record it again"));
  EXPECT_THAT(error(path("full"), path("plain")), HasSubstr("holds no dump of torch or of"));
}

TEST(PairPaths, RefusesOptionsThatHaveNoEffect) {
  const TempFolder folder;
  const std::string mapping = folder.write("types.json", R"({"Linear": "Linear"})");
  folder.write("plain/x.npy", "x");
  folder.write("m/golden_tensor/metadata.json", R"({"0": {"0": ["a", "b"]}})");
  folder.write("dump/torch_tensors/cpu_1/0/root.x/output.pth", "x");
  const std::string plain = (folder.path() / "plain").string();
  const std::string manual = (folder.path() / "m").string();
  const std::string dump = (folder.path() / "dump").string();
  const auto error = [](const Inputs& inputs) {
    const auto list = pair_paths(inputs);
    return list ? std::string() : list.error().text();
  };
  for (const std::string& path : {plain, manual}) {
    EXPECT_THAT(error({.golden = path, .actual = path, .mapping_file = mapping}),
                HasSubstr("--op-mapping-file has no effect on"));
    EXPECT_THAT(error({.golden = path, .actual = path, .token_map = "0:0"}),
                HasSubstr("--token-map has no effect on"));
  }
  for (const std::string& path : {plain, manual, dump}) {
    EXPECT_THAT(error({.golden = path, .actual = path, .golden_is_tensor = true}),
                HasSubstr("--golden-name, --golden-dtype and --golden-shape are for a file"));
  }
  for (const std::string& path : {plain, dump}) {
    EXPECT_THAT(error({.golden = path, .actual = path, .actual_is_tensor = true}),
                HasSubstr("--my-name, --my-dtype and --my-shape are for a file"));
  }
}

TEST(PairPaths, SaysWhichTypesOfAMappingFileAreNowhere) {
  const TempFolder folder;
  folder.write("t/torch_tensors/cpu_1/0/root.x/output.pth", "x");
  folder.write(
      "t/torch_tensors/cpu_1/model_tree.json",
      R"({"name": "root", "type": "M", "children": [{"name": "root.x", "type": "Norm"}]})");
  folder.write("a/tensors/0_1/0/0_Linear/after/outtensor0.bin", "x");
  const std::string golden = (folder.path() / "t").string();
  const std::string actual = (folder.path() / "a").string();
  const auto list = [&](const std::string& mine, const char* mapping) {
    return pair_paths({.golden = golden,
                       .actual = mine,
                       .mapping_file = folder.write("types.json", mapping),
                       .token_map = "0:0"});
  };
  EXPECT_TRUE(list(actual, R"({"Linear": "Norm"})")->problems.empty());
  const auto some = list(actual, R"({"Linear": ["Norm", "Nrom"], "Liner": "Norm"})");
  ASSERT_TRUE(some) << some.error().text();
  ASSERT_EQ(some->problems.size(), 1U);
  EXPECT_THAT(some->problems[0].text(),
              HasSubstr("types.json: --op-mapping-file: no module is a Nrom, no operation of the "
                        "acceleration library is a Liner"));
  const auto tensor = list(actual, R"({"Linear_outtensor1": "Norm"})");
  ASSERT_FALSE(tensor);
  EXPECT_THAT(tensor.error().text(), HasSubstr("none of its lines has an effect: no operation of "
                                               "the acceleration library is a Linear_outtensor1"));
  const auto alike = list(golden, R"({"Linear": "Norm"})");
  ASSERT_TRUE(alike) << alike.error().text();
  ASSERT_EQ(alike->problems.size(), 1U);
  EXPECT_THAT(alike->problems[0].text(), HasSubstr("has no effect between two dumps of one kind"));
}

TEST(PairPaths, SaysThatMyPathIsNotUsedByAMapping) {
  const TempFolder folder;
  const std::string golden = folder.write("golden.npy", "x");
  const std::string mine = folder.write("mine/a.npy", "x");
  folder.write("m/golden_tensor/metadata.json",
               R"({"0": {"0": [")" + golden + R"(", ")" + mine + R"("]}})");
  folder.write("elsewhere/b.npy", "x");
  const auto problems = [&](const std::string& actual) {
    const auto list = pair_paths({.golden = (folder.path() / "m").string(), .actual = actual});
    std::vector<std::string> out;
    for (const Error& problem : list->problems) out.push_back(problem.text());
    return out;
  };
  const auto path = [&](const char* name) { return (folder.path() / name).string(); };
  EXPECT_THAT(problems(""), ElementsAre());
  EXPECT_THAT(problems(path("mine")), ElementsAre());
  EXPECT_THAT(problems(mine), ElementsAre());
  EXPECT_THAT(problems(path("nowhere.bin")),
              ElementsAre(HasSubstr("nowhere.bin: no such file or folder, so that --my-path has no "
                                    "effect; the mapping names my files")));
  EXPECT_THAT(
      problems(path("elsewhere")),
      ElementsAre(HasSubstr("elsewhere: --my-path has no effect: all my files lie where the "
                            "mapping says")));
}

TEST(PairPaths, RefusesOptionsThatMakeNoSenseWhateverIsCompared) {
  const TempFolder folder;
  const std::string file = folder.write("one.npy", "x");
  EXPECT_FALSE(pair_paths({.golden = file, .actual = file, .token_map = "nonsense"}));
  EXPECT_FALSE(pair_paths({.golden = file, .actual = file, .mapping_file = file + ".none"}));
}

}  // namespace
}  // namespace ait::match
