#include "locate/causes.h"

#include <gtest/gtest.h>

#include "planted.h"

namespace ait::locate {
namespace {

using capture::OpKind;

const std::vector<OpKind> kKinds = {OpKind::kUnknown, OpKind::kNorm,       OpKind::kLinear,
                                    OpKind::kAdd,     OpKind::kActivation, OpKind::kAttention,
                                    OpKind::kRotary,  OpKind::kOther,      OpKind::kMultiply};

// A value with a few inputs of the usual shapes, which have nothing to do with it.
CauseCase with_inputs(Planter& planter, const Numbers& right, const Numbers& wrong,
                      const Shape& shape, RunType golden, RunType actual) {
  CauseCase fault{planter.stored(right, shape, golden), planter.stored(wrong, shape, actual)};
  fault.kind = kKinds[planter.between(0, kKinds.size() - 1)];
  const size_t rows = right.size() / static_cast<size_t>(shape.back());
  const auto columns = static_cast<size_t>(shape.back());
  for (const size_t width :
       {columns, columns, columns / 2, 2 * columns, columns / 4, columns / 4}) {
    const Numbers input = planter.normals(rows * width);
    fault.inputs.push_back({planter.stored(input, dims({1, rows, width}), golden),
                            planter.stored(input, dims({1, rows, width}), actual), "x"});
  }
  fault.noise = noise_of(golden, actual);
  return fault;
}

template <typename Damage>
void expect_nothing(Damage damage) {
  for (const auto& [golden, actual] : kRuns)
    for (uint64_t seed = 1; seed <= 40; ++seed) {
      Planter planter(seed);
      const Shape shape = dims({1, planter.between(1, 30), planter.among({32, 64, 128, 256})});
      const Numbers right = planter.normals(static_cast<size_t>(shape[1] * shape[2]));
      const Numbers wrong = damage(planter, right, static_cast<size_t>(shape[2]), actual);
      const CauseCase fault = with_inputs(planter, right, wrong, shape, golden, actual);
      auto causes = likely_causes(fault);
      // A product whose input is right and whose value is another one is just that.
      if (fault.kind == OpKind::kLinear)
        std::erase_if(causes, [](const Cause& cause) { return cause.name == "wrong-weights"; });
      EXPECT_TRUE(causes.empty()) << "seed " << seed << ", shape " << shape_text(shape) << ", "
                                  << ait::name(actual.dtype) << "\n"
                                  << names(causes);
    }
}

TEST(LikelyCauses, AreNoneOfHealthyNoise) {
  expect_nothing([](Planter& planter, const Numbers& right, size_t, RunType actual) {
    return planter.with_noise(right, actual);
  });
}

TEST(LikelyCauses, AreNoneOfUnrelatedDamage) {
  expect_nothing([](Planter& planter, const Numbers& right, size_t, RunType) {
    Numbers out = right;
    for (double& value : out) value += 0.7 * planter.normal();
    return out;
  });
}

TEST(LikelyCauses, AreNoneOfAnUnrelatedValue) {
  expect_nothing([](Planter& planter, const Numbers& right, size_t, RunType) {
    return planter.normals(right.size());
  });
}

TEST(LikelyCauses, AreNoneOfDamageThatGrowsFromRowToRow) {
  expect_nothing([](Planter& planter, const Numbers& right, size_t columns, RunType) {
    Numbers out = right;
    for (size_t k = 0; k < out.size(); ++k)
      out[k] += 0.3 * (1 + static_cast<double>(k / columns) / 20) * planter.normal();
    return out;
  });
}

TEST(LikelyCauses, AreNoneOfWhatCannotBeLookedAt) {
  const std::vector<std::byte> bytes(64);
  const auto complex = make_tensor(DType::kComplex64, {8}, bytes);
  EXPECT_TRUE(likely_causes({*complex, *complex}).empty());
  const auto three = floats({1, 2, 3});
  const auto two = floats({1, 2});
  EXPECT_TRUE(likely_causes({*three, *two}).empty());
  EXPECT_TRUE(likely_causes({*floats({}), *floats({})}).empty());
  EXPECT_TRUE(likely_causes({*floats({0, 0}), *floats({0, 0})}).empty());
  EXPECT_TRUE(likely_causes({*three, *three}).empty());
}

}  // namespace
}  // namespace ait::locate
