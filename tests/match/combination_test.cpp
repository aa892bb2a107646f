#include "match/combination.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "match/selection.h"
#include "tiny_recording.h"

namespace ait::match {
namespace {

using capture::OpKind;
using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

constexpr size_t kRows = 16;
constexpr size_t kColumns = 32;

// As bf16 holds it.
float rounded(float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  bits = (bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000;
  std::memcpy(&value, &bits, sizeof bits);
  return value;
}

Content content(const std::vector<float>& values, DType dtype = DType::kFloat32) {
  Content out;
  out.hash = 1;
  out.elements = values.size();
  out.dtype = dtype;
  out.sample = values;
  if (dtype == DType::kBFloat16)
    for (float& value : out.sample) value = rounded(value);
  return out;
}

std::vector<float> values(const std::string& name) {
  return random_matrix(name, kRows, kColumns).values;
}

template <typename Make>
std::vector<float> made(const Make& make) {
  std::vector<float> out;
  for (size_t i = 0; i < kRows * kColumns; ++i) out.push_back(static_cast<float>(make(i)));
  return out;
}

class Combinations : public ::testing::TestWithParam<DType> {
 protected:
  std::optional<Combination> find(const std::vector<float>& result) const {
    return find_combination(content(result, GetParam()), {&a_, &b_, &c_, &d_});
  }

  Content a_ = content(values("a"), GetParam());
  Content b_ = content(values("b"), GetParam());
  Content c_ = content(values("c"), GetParam());
  Content d_ = content(values("d"), GetParam());
};

TEST_P(Combinations, OfTwoAreSumsAndProducts) {
  const auto sum = find(made([&](size_t i) { return a_.sample[i] + c_.sample[i]; }));
  ASSERT_TRUE(sum);
  EXPECT_EQ(sum->kind, OpKind::kAdd);
  EXPECT_THAT(sum->parts, ElementsAre(0, 2));
  const auto product = find(made([&](size_t i) { return b_.sample[i] * d_.sample[i]; }));
  ASSERT_TRUE(product);
  EXPECT_EQ(product->kind, OpKind::kMultiply);
  EXPECT_THAT(product->parts, ElementsAre(1, 3));
}

TEST_P(Combinations, MayHaveFactors) {
  const auto scaled = find(made([&](size_t i) { return 7.5 * b_.sample[i]; }));
  ASSERT_TRUE(scaled);
  EXPECT_EQ(scaled->kind, OpKind::kMultiply);
  EXPECT_THAT(scaled->parts, ElementsAre(1));
  const auto sum = find(made([&](size_t i) { return 0.25 * a_.sample[i] + 1.5 * d_.sample[i]; }));
  ASSERT_TRUE(sum);
  EXPECT_EQ(sum->kind, OpKind::kAdd);
  EXPECT_THAT(sum->parts, ElementsAre(0, 3));
}

TEST_P(Combinations, MayBeOfThree) {
  const auto sum = find(made([&](size_t i) { return a_.sample[i] + b_.sample[i] + d_.sample[i]; }));
  ASSERT_TRUE(sum);
  EXPECT_EQ(sum->kind, OpKind::kAdd);
  EXPECT_THAT(sum->parts, ElementsAre(0, 1, 3));
}

TEST_P(Combinations, AreNotFoundWhereSomethingElseIsInIt) {
  EXPECT_FALSE(find(made([&](size_t i) { return a_.sample[i] / (1 + std::exp(-b_.sample[i])); })));
  const std::vector<float> other = values("other");
  EXPECT_FALSE(find(made([&](size_t i) { return a_.sample[i] + c_.sample[i] + 0.1 * other[i]; })));
  EXPECT_FALSE(find(other));
}

TEST_P(Combinations, KeepASmallPart) {
  // A residual stream is much larger than what a layer adds to it.
  const Content small = content(made([&](size_t i) { return 0.05 * b_.sample[i]; }), GetParam());
  const Content result =
      content(made([&](size_t i) { return a_.sample[i] + small.sample[i]; }), GetParam());
  const auto sum = find_combination(result, {&a_, &small, &c_});
  ASSERT_TRUE(sum);
  EXPECT_THAT(sum->parts, ElementsAre(0, 1));
}

INSTANTIATE_TEST_SUITE_P(Types, Combinations, ::testing::Values(DType::kFloat32, DType::kBFloat16));

TEST(Combination, OfAnotherTypeIsACast) {
  const Content wide = content(values("a"));
  const Content narrow = content(values("a"), DType::kBFloat16);
  const auto found = find_combination(narrow, {&wide});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, OpKind::kMove);
}

TEST(Combination, IsSeenInWhatElseWasAdded) {
  const Content part = content(values("a"));
  const std::vector<float> other = values("other");
  EXPECT_TRUE(goes_along(part, content(made([&](size_t i) { return part.sample[i] + other[i]; }))));
  EXPECT_FALSE(goes_along(part, content(other)));
}

Tensor tensor(const std::vector<float>& of, Shape shape) {
  auto owner = std::make_shared<std::vector<float>>(of);
  return *Tensor::contiguous(owner, std::as_bytes(std::span(*owner)), DType::kFloat32,
                             std::move(shape));
}

std::vector<float> rows(const std::vector<float>& of, const std::vector<size_t>& which) {
  std::vector<float> out;
  for (const size_t row : which)
    out.insert(out.end(), of.begin() + static_cast<ptrdiff_t>(row * kColumns),
               of.begin() + static_cast<ptrdiff_t>((row + 1) * kColumns));
  return out;
}

TEST(Selection, MayBeOfRows) {
  const std::vector<float> all = values("all");
  const Tensor whole = tensor(all, {1, kRows, kColumns});
  EXPECT_EQ(find_selection(tensor(rows(all, {7, 2, 9}), {3, kColumns}), whole), Selection::kRows);
  EXPECT_EQ(find_selection(tensor(rows(values("other"), {7, 2, 9}), {3, kColumns}), whole),
            Selection::kNone);
}

TEST(Selection, MayBeOfColumns) {
  const Matrix all = random_matrix("all", kRows, kColumns);
  const Tensor whole = tensor(all.values, {1, kRows, kColumns});
  constexpr int64_t kSize = 8;
  EXPECT_EQ(find_selection(tensor(columns_of(all, 5, 16).values, {1, kRows, 16}), whole),
            Selection::kColumns);
  // Divided into heads.
  EXPECT_EQ(find_selection(tensor(columns_of(all, 8, 16).values, {1, kRows, 2, kSize}), whole),
            Selection::kColumns);
  EXPECT_EQ(find_selection(tensor(random_matrix("other", kRows, 16).values, {1, kRows, 16}), whole),
            Selection::kNone);
}

}  // namespace
}  // namespace ait::match
