#include "compare/engine.h"

#include <gtest/gtest.h>

#include <cmath>

#include "columns_text.h"
#include "formats/write.h"
#include "tensors.h"
#include "test_files.h"

namespace ait::compare {
namespace {

using formats::TempFolder;

class Engine : public ::testing::Test {
 protected:
  std::string save(const std::string& name, const std::vector<float>& values) {
    return save(name, {{"", *floats(values)}});
  }
  std::string save(const std::string& name, const std::vector<formats::NamedTensor>& tensors) {
    const std::string path = (folder_.path() / name).string();
    const auto done = formats::write_tensor_file(path, tensors, *formats::file_format_of(path));
    EXPECT_TRUE(done) << done.error().text();
    return path;
  }

  static match::Pair pair(const std::string& id, const std::string& golden,
                          const std::string& actual) {
    match::Pair out;
    out.subject.name = id;
    const auto side = [](const std::string& path) {
      capture::TensorRecord record;
      record.path = path;
      return path.empty() ? match::Side() : match::Side(record);
    };
    out.golden = side(golden);
    out.actual = side(actual);
    return out;
  }

  static std::vector<Row> run(const std::vector<match::Pair>& pairs, size_t threads = 2) {
    Options options;
    options.threads = threads;
    options.profile = true;
    std::vector<Row> rows;
    const std::atomic<bool> stop = false;
    EXPECT_EQ(compare_pairs(pairs, options, stop,
                            [&](Row&& row, uint64_t) { rows.push_back(std::move(row)); }),
              pairs.size());
    return rows;
  }

  TempFolder folder_;
};

TEST_F(Engine, EmitsRowsInTheOrderOfThePairsForAnyThreadCount) {
  std::vector<match::Pair> pairs;
  for (int i = 0; i < 60; ++i) {
    // Sizes of very different cost, so that later pairs finish first.
    std::vector<float> values(i % 7 == 0 ? 300000 : 10);
    for (size_t k = 0; k < values.size(); ++k)
      values[k] = std::sin(static_cast<float>(k) + static_cast<float>(i));
    const auto golden = save("g" + std::to_string(i) + ".npy", values);
    for (float& value : values) value *= 1.001f;
    pairs.push_back(
        pair(std::to_string(i), golden, save("m" + std::to_string(i) + ".bin", values)));
  }
  const auto one = run(pairs, 1);
  ASSERT_EQ(one.size(), pairs.size());
  for (size_t i = 0; i < one.size(); ++i) EXPECT_EQ(one[i].subject.name, std::to_string(i));
  for (const size_t threads : {2u, 8u}) EXPECT_EQ(all_text(run(pairs, threads)), all_text(one));
}

TEST_F(Engine, OneBadFileIsOneRowWithItsReason) {
  const auto good = save("good.npy", {1, 2, 3});
  const auto rows =
      run({pair("0", good, good), pair("1", good, folder_.write("bad.npy", "garbage")),
           pair("2", good, (folder_.path() / "gone.npy").string()),
           pair("3", good, folder_.path().string()), pair("4", good, good)});
  ASSERT_EQ(rows.size(), 5u);
  EXPECT_TRUE(rows[0].reason.empty());
  EXPECT_NE(rows[1].reason.find("bad.npy"), std::string::npos);
  EXPECT_EQ(rows[2].reason,
            "my_data_path: " + (folder_.path() / "gone.npy").string() + " is not a file.");
  EXPECT_NE(rows[3].reason.find("is not a file."), std::string::npos);
  EXPECT_TRUE(rows[4].comparison->identical);
  EXPECT_TRUE(rows[1].golden.statistics.has_value()) << "the good side keeps its values";
}

TEST_F(Engine, ASideWithoutAPartnerIsARow) {
  const auto good = save("good.npy", {1, 2, 3});
  const auto rows = run({pair("a", good, ""), pair("b", "", good)});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].reason, "no counterpart in my-path.");
  EXPECT_EQ(rows[1].reason, "no counterpart in golden-path.");
  EXPECT_TRUE(rows[0].golden.was_read());
  EXPECT_TRUE(rows[0].actual.is_missing());
}

TEST_F(Engine, FilesOfSeveralTensorsGiveARowForEachName) {
  const auto golden =
      save("g.safetensors", {{"w", *floats({1, 2})}, {"only_golden", *floats({1})}});
  const auto actual = save("m.pth", {{"w", *floats({1, 2})}, {"only_my", *floats({1})}});
  const auto rows = run({pair("file", golden, actual)});
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(tables::data_id(rows[0].subject), "file:w");
  EXPECT_TRUE(rows[0].comparison->identical);
  EXPECT_EQ(tables::data_id(rows[1].subject), "file:only_golden");
  EXPECT_EQ(rows[1].reason, "no counterpart in my-path.");
  EXPECT_EQ(tables::data_id(rows[2].subject), "file:only_my");
}

TEST_F(Engine, FindsMembersOfCheckpointsByName) {
  const auto golden = save("g.safetensors", {{"a", *floats({1, 2})}, {"b", *floats({3, 4})}});
  const auto actual = save("m.safetensors", {{"b", *floats({3, 4})}, {"a", *floats({1, 2})}});
  std::vector<match::Pair> pairs;
  for (const char* name : {"a", "b", "missing"}) {
    pairs.push_back(pair(name, golden, actual));
    pairs.back().golden.records[0].member = pairs.back().actual.records[0].member = name;
  }
  const auto rows = run(pairs);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_TRUE(rows[0].comparison->identical);
  EXPECT_TRUE(rows[1].comparison->identical);
  EXPECT_EQ(tables::path_text(rows[1].golden), golden + ":b");
  EXPECT_NE(rows[2].reason.find("holds no tensor named missing"), std::string::npos);
}

TEST_F(Engine, DescribesARepeatedSideAsItsFileIs) {
  const float nan = std::nanf("");
  const auto golden = save("g.npy", {{"", *floats({1, 2}, {3, nan})}});
  const auto actual = save("m.npy", {{"", *floats({3, 2}, {3, nan, 3, nan, 3, 5})}});
  for (const bool golden_is_smaller : {true, false}) {
    match::Pair each = golden_is_smaller ? pair("x", golden, actual) : pair("x", actual, golden);
    each.fit = match::Fit::kRepeat;
    const Row row = run({each}).at(0);
    const Side& smaller = golden_is_smaller ? row.golden : row.actual;
    const Side& larger = golden_is_smaller ? row.actual : row.golden;
    EXPECT_EQ(smaller.shape, (Shape{1, 2}));
    EXPECT_EQ(larger.shape, (Shape{3, 2}));
    EXPECT_EQ(smaller.statistics->elements, 2U);
    EXPECT_EQ(smaller.statistics->nan, 1U);
    EXPECT_EQ(smaller.statistics->l2_norm, 3);
    EXPECT_EQ(row.comparison->elements, 6U);
    EXPECT_NE(row.reason.find("data is repeated."), std::string::npos);
  }
}

TEST_F(Engine, LeavesPaddingOutOfTheProfile) {
  const auto golden = save("g.npy", {{"", *floats({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8})}});
  const auto actual = save("m.npy", {{"", *floats({4, 2}, {9, 9, 3, 4, 5, 7, 9, 9})}});
  match::Pair each = pair("x", golden, actual);
  each.padding = std::make_shared<std::vector<bool>>(std::vector{true, false, false, true});
  const auto profile_of = [](const match::Pair& one) {
    return run({one}).at(0).comparison->profile.value();
  };
  EXPECT_EQ(profile_of(each).rows, 2U);
  EXPECT_EQ(profile_of(each).worst_row, 2U);
  EXPECT_NEAR(profile_of(each).error, 1 / std::sqrt(86), 1e-9);

  // Columns are taken of the same rows.
  match::Pair columns = each;
  columns.golden.transform = columns.actual.transform = {.columns = 2, .first = 1, .taken = 1};
  EXPECT_EQ(profile_of(columns).rows, 2U);
  EXPECT_NEAR(profile_of(columns).error, 1 / std::sqrt(16 + 36), 1e-9);

  // Of rows in another order, or chosen, or repeated, nobody knows which are padding.
  match::Pair chosen = each;
  match::RowChoice choice;
  choice.count = 4;
  choice.rows = {3, 2, 1, 0};
  chosen.golden.rows = chosen.actual.rows = std::make_shared<match::RowChoice>(choice);
  EXPECT_EQ(profile_of(chosen).rows, 4U);
  const auto half = save("half.npy", {{"", *floats({2, 2}, {1, 2, 3, 4})}});
  match::Pair repeated = pair("x", half, actual);
  repeated.fit = match::Fit::kRepeat;
  repeated.padding = each.padding;
  EXPECT_EQ(profile_of(repeated).rows, 4U);
  const auto heads = save("heads.npy", {{"", *floats({2, 2, 2}, {1, 2, 5, 6, 3, 4, 7, 8})}});
  const auto tokens = save("tokens.npy", {{"", *floats({2, 2, 2}, {9, 9, 3, 4, 5, 7, 9, 9})}});
  match::Pair moved = pair("x", heads, tokens);
  moved.golden.transform.heads_first = true;
  moved.padding = each.padding;
  EXPECT_EQ(profile_of(moved).rows, 4U);
}

TEST_F(Engine, StopsWhenAskedAndLeavesNoGap) {
  const std::vector<float> big(200000, 1.5f);
  const auto golden = save("golden.npy", big);
  const auto actual = save("actual.npy", std::vector<float>(big.size(), 1.6f));
  std::vector<match::Pair> pairs;
  for (int i = 0; i < 2000; ++i) pairs.push_back(pair(std::to_string(i), golden, actual));
  std::atomic<bool> stop = false;
  std::vector<std::string> ids;
  const size_t finished = compare_pairs(pairs, {}, stop, [&](Row&& row, uint64_t) {
    ids.push_back(row.subject.name);
    if (ids.size() == 100) stop = true;
  });
  EXPECT_EQ(finished, ids.size());
  EXPECT_GE(ids.size(), 100u);
  EXPECT_LT(ids.size(), 1000u);
  for (size_t i = 0; i < ids.size(); ++i) ASSERT_EQ(ids[i], std::to_string(i));
}

}  // namespace
}  // namespace ait::compare
