#include "match/by_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ait::match {
namespace {

capture::Capture folder(const std::string& root, const std::vector<std::string>& names) {
  capture::Capture capture;
  for (const std::string& name : names) {
    capture::TensorRecord record;
    record.path = root + "/" + name;
    record.operation = name;
    capture.records.push_back(record);
  }
  return capture;
}

// "golden|my" of each pair.
std::vector<std::string> paths(const std::vector<Pair>& pairs) {
  std::vector<std::string> out;
  const auto path = [](const Side& side) {
    return side.present() ? side.records[0].path : std::string();
  };
  for (const Pair& pair : pairs) out.push_back(path(pair.golden) + "|" + path(pair.actual));
  return out;
}

TEST(PairByName, PairsEqualNames) {
  const auto pairs = pair_by_name(folder("g", {"a.npy", "b.npy"}), folder("m", {"a.npy", "b.npy"}));
  EXPECT_EQ(paths(pairs), (std::vector<std::string>{"g/a.npy|m/a.npy", "g/b.npy|m/b.npy"}));
  EXPECT_EQ(pairs[1].subject.name, "b.npy");
}

TEST(PairByName, PairsAcrossExtensionsOnlyWhereUnambiguous) {
  EXPECT_EQ(paths(pair_by_name(folder("g", {"x/a.pth"}), folder("m", {"x/a.bin"}))),
            std::vector<std::string>{"g/x/a.pth|m/x/a.bin"});
  EXPECT_EQ(paths(pair_by_name(folder("g", {"a.pth"}), folder("m", {"a.bin", "a.npy"}))),
            (std::vector<std::string>{"|m/a.bin", "|m/a.npy", "g/a.pth|"}));
  // An exact name is taken first and leaves the other free.
  EXPECT_EQ(paths(pair_by_name(folder("g", {"a.npy", "a.pth"}), folder("m", {"a.bin", "a.npy"}))),
            (std::vector<std::string>{"g/a.npy|m/a.npy", "g/a.pth|m/a.bin"}));
}

TEST(PairByName, LosesNothing) {
  const auto pairs = pair_by_name(folder("g", {"a", "t2", "t10"}), folder("m", {"b", "t3", "t10"}));
  EXPECT_EQ(paths(pairs),
            (std::vector<std::string>{"g/a|", "|m/b", "g/t2|", "|m/t3", "g/t10|m/t10"}));
}

TEST(PairByName, TakesDotsInTensorNamesAsPartOfTheName) {
  auto golden = folder("g", {"layers.0.weight"});
  auto actual = folder("m", {"layers.0.bias"});
  golden.records[0].member = "layers.0.weight";
  actual.records[0].member = "layers.0.bias";
  EXPECT_EQ(pair_by_name(golden, actual).size(), 2u);
}

TEST(AddScales, GivesWeightsWhatLiesBesideThem) {
  const auto capture_of = [](const std::vector<std::string>& names) {
    capture::Capture out;
    for (const std::string& name : names) {
      capture::TensorRecord record;
      record.path = "model.safetensors";
      record.member = record.operation = name;
      out.records.push_back(std::move(record));
    }
    return out;
  };
  auto pairs = pair_by_name(
      capture_of({"a.weight", "b.weight", "weight_norm.weight"}),
      capture_of({"a.weight", "a.weight_offset", "a.weight_scale", "b.weight", "c.weight_scale",
                  "weight_norm.weight", "weight_norm.weight_scale"}));
  EXPECT_EQ(add_scales(pairs), 2U);
  std::vector<std::string> found;
  for (const Pair& pair : pairs) {
    std::string text = pair.subject.name + (pair.actual.dequantise ? "*" : "");
    for (const auto& record : pair.actual.records) text += " " + record.operation;
    found.push_back(text);
  }
  EXPECT_THAT(found, ::testing::ElementsAre("a.weight* a.weight a.weight_scale a.weight_offset",
                                            "b.weight b.weight", "c.weight_scale c.weight_scale",
                                            "weight_norm.weight* weight_norm.weight "
                                            "weight_norm.weight_scale"));
}

}  // namespace
}  // namespace ait::match
