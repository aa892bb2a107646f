#include "match/by_name.h"

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

}  // namespace
}  // namespace ait::match
