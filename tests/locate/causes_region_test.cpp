#include <gtest/gtest.h>

#include "planted.h"

namespace ait::locate {
namespace {

// Damage that nothing explains, in some elements only.
Numbers damaged(Planter& planter, const Numbers& right, const std::function<bool(size_t)>& is_hit) {
  Numbers out = right;
  for (size_t k = 0; k < out.size(); ++k)
    if (is_hit(k)) out[k] += 0.8 * planter.normal();
  return out;
}

// Nothing explains random damage, so that its place comes first.
void expect_place(const std::function<Planted(Planter&, RunType, RunType)>& plant) {
  for_each_planted(plant);
}

TEST(RegionCauses, NameTheRowOrChannel) {
  expect_place([](Planter& planter, RunType golden, RunType actual) -> Planted {
    const size_t rows = planter.between(3, 40);
    const size_t columns = planter.among({64, 100});
    const bool by_row = planter.between(0, 1) == 0;
    const size_t at = planter.between(0, by_row ? rows - 1 : columns - 1);
    const Numbers right = planter.normals(rows * columns);
    const Numbers wrong = damaged(
        planter, right, [&](size_t k) { return (by_row ? k / columns : k % columns) == at; });
    const Shape shape = dims({rows, columns});
    return {{planter.stored(right, shape, golden), planter.stored(wrong, shape, actual)},
            by_row ? "one-row" : "one-channel"};
  });
}

TEST(RegionCauses, NameTheHead) {
  expect_place([](Planter& planter, RunType golden, RunType actual) -> Planted {
    const size_t rows = planter.between(2, 40);
    const size_t size = planter.among({16, 32});
    const size_t heads = planter.among({4, 8});
    const size_t at = planter.between(0, heads - 1);
    const Numbers right = planter.normals(rows * heads * size);
    const size_t layout = planter.between(0, 2);
    const Shape shapes[] = {dims({rows, heads * size}), dims({rows, heads, size}),
                            dims({1, heads, rows, size})};
    const Numbers wrong = damaged(planter, right, [&](size_t k) {
      return (layout == 2 ? k / size / rows : k / size % heads) == at;
    });
    return {{planter.stored(right, shapes[layout], golden),
             planter.stored(wrong, shapes[layout], actual)},
            "one-head"};
  });
}

TEST(RegionCauses, NameAStretchOfRows) {
  expect_place([](Planter& planter, RunType golden, RunType actual) -> Planted {
    const size_t rows = planter.between(8, 40);
    const size_t columns = 64;
    const size_t first = planter.between(0, rows - 4);
    const size_t last = first + planter.between(1, 3);
    const Numbers right = planter.normals(rows * columns);
    const Numbers wrong = damaged(
        planter, right, [&](size_t k) { return k / columns >= first && k / columns <= last; });
    const Shape shape = dims({1, rows, columns});
    return {{planter.stored(right, shape, golden), planter.stored(wrong, shape, actual)},
            "masked-region"};
  });
}

TEST(RegionCauses, SayThatAStretchOfColumnsOrRowsIsZero) {
  expect_place([](Planter& planter, RunType golden, RunType actual) -> Planted {
    const size_t rows = planter.between(8, 40);
    const size_t columns = planter.among({64, 128});
    const bool by_row = planter.between(0, 1) == 0;
    const Numbers right = planter.normals(rows * columns);
    Numbers wrong = right;
    const size_t shard = planter.between(0, 3);
    for (size_t k = 0; k < right.size(); ++k)
      if (by_row ? k / columns < rows / 2 : k % columns / (columns / 4) == shard) wrong[k] = 0;
    const Shape shape = dims({rows, columns});
    return {{planter.stored(right, shape, golden), planter.stored(wrong, shape, actual)},
            by_row ? "masked-region" : "one-shard"};
  });
}

TEST(RegionCauses, NameTheExpertThatTheRowsChose) {
  expect_place([](Planter& planter, RunType golden, RunType actual) -> Planted {
    const size_t rows = planter.between(16, 60);
    const size_t columns = 64;
    const size_t experts = planter.among({4, 8, 16});
    const size_t chosen = planter.between(1, 2);
    const Numbers logits = planter.normals(rows * experts);
    const size_t at = planter.between(0, experts - 1);
    const auto chooses = [&](size_t row) {
      size_t better = 0;
      for (size_t e = 0; e < experts; ++e)
        better += logits[row * experts + e] > logits[row * experts + at] ? 1 : 0;
      return better < chosen;
    };
    const Numbers right = planter.normals(rows * columns);
    const Numbers wrong = damaged(planter, right, [&](size_t k) { return chooses(k / columns); });
    const Shape shape = dims({1, rows, columns});
    CauseCase fault{planter.stored(right, shape, golden), planter.stored(wrong, shape, actual)};
    fault.inputs.push_back({planter.stored(logits, dims({rows, experts}), golden),
                            planter.stored(logits, dims({rows, experts}), actual), "gate/output"});
    size_t hit = 0;
    for (size_t row = 0; row < rows; ++row) hit += chooses(row) ? 1 : 0;
    // One row tells nothing of experts, and none is no fault.
    if (hit == 1) return {fault, "one-row"};
    if (hit == 0) {
      fault.actual = planter.stored(
          damaged(planter, right, [&](size_t k) { return k / columns == 0; }), shape, actual);
      return {fault, "one-row"};
    }
    return {fault, "one-expert"};
  });
}

TEST(RegionCauses, ComeAfterWhatExplainsTheDamage) {
  Planter planter(4);
  const Numbers right = planter.normals(10 * 64);
  Numbers wrong = right;
  for (size_t c = 0; c < 64; ++c) wrong[7 * 64 + c] *= 0.5;
  const auto causes = likely_causes(
      {Planter::tensor(right, {10, 64}, kFp32), planter.stored(wrong, {10, 64}, kBf16)});
  ASSERT_GE(causes.size(), 2u);
  EXPECT_EQ(causes[0].name, "scale");
  EXPECT_NE(causes[0].text.find("in row 7"), std::string::npos) << causes[0].text;
  EXPECT_EQ(causes[1].name, "one-row");
}

}  // namespace
}  // namespace ait::locate
