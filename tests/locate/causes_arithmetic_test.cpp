#include <gtest/gtest.h>

#include "planted.h"

namespace ait::locate {
namespace {

TEST(ArithmeticCauses, FindAFactorAndNameIt) {
  for_each_planted([](Planter& planter, RunType golden, RunType actual) -> Planted {
    const Shape shape = dims({planter.between(1, 9), planter.among({32, 64, 100})});
    const Numbers right = planter.normals(static_cast<size_t>(shape[0] * shape[1]));
    const double factors[] = {0.125, 8, 2, 0.5, 1.1, 100, 0.9};
    Numbers wrong = right;
    const double factor = factors[planter.between(0, 6)];
    for (double& value : wrong) value *= factor;
    return {{planter.stored(right, shape, golden), planter.stored(wrong, shape, actual)}, "scale"};
  });
  Planter planter(1);
  const Numbers right = planter.normals(320);
  Numbers wrong = right;
  for (double& value : wrong) value /= 8;
  CauseCase fault{planter.stored(right, {5, 64}, kFp32), planter.stored(wrong, {5, 64}, kBf16)};
  auto causes = likely_causes(fault);
  ASSERT_FALSE(causes.empty());
  EXPECT_NE(causes[0].text.find("by 1/8"), std::string::npos) << causes[0].text;
  for (double& value : wrong) value *= std::sqrt(128.0) * 8;
  fault.actual = planter.stored(wrong, {5, 64}, kBf16);
  causes = likely_causes(fault);
  ASSERT_FALSE(causes.empty());
  EXPECT_NE(causes[0].text.find("sqrt(128)"), std::string::npos) << causes[0].text;
}

TEST(ArithmeticCauses, FindAChangedSignAndNothingButZeros) {
  for_each_planted([](Planter& planter, RunType golden, RunType actual) -> Planted {
    const Shape shape = dims({planter.between(1, 9), 64});
    const Numbers right = planter.normals(static_cast<size_t>(shape[0] * shape[1]));
    Numbers wrong = right;
    const bool zero = planter.between(0, 1) == 0;
    for (double& value : wrong) value *= zero ? 0 : -1;
    return {{planter.stored(right, shape, golden), planter.stored(wrong, shape, actual)},
            zero ? "zero" : "sign"};
  });
}

TEST(ArithmeticCauses, FindABiasThatWasLeftOut) {
  for_each_planted([](Planter& planter, RunType golden, RunType actual) -> Planted {
    const size_t rows = planter.between(3, 20);
    const size_t columns = planter.among({32, 64, 100});
    const Numbers bias = planter.normals(columns, std::max(0.3, 20 * actual.unit));
    const Numbers wrong = planter.normals(rows * columns);
    Numbers right = wrong;
    for (size_t k = 0; k < right.size(); ++k) right[k] += bias[k % columns];
    const Shape shape = dims({rows, columns});
    CauseCase fault{planter.stored(right, shape, golden), planter.stored(wrong, shape, actual)};
    fault.kind = capture::OpKind::kLinear;
    return {fault, "missing-bias"};
  });
}

// A residual stream, what a block adds to it, and what becomes of the two.
TEST(ArithmeticCauses, FindWhatBecameOfAnAddend) {
  for_each_planted(
      [](Planter& planter, RunType golden, RunType actual) -> Planted {
        const size_t rows = planter.between(1, 20);
        const size_t columns = planter.among({64, 100});
        const Shape shape = dims({1, rows, columns});
        const Numbers stream = planter.normals(rows * columns);
        const Numbers added = planter.normals(rows * columns, 0.4);
        struct Mistake {
          double of_stream;
          double of_added;
          const char* name;
        };
        const Mistake mistakes[] = {{0, 1, "missing-residual"},
                                    {1, 0, "missing-residual"},
                                    {2, 1, "doubled-residual"},
                                    {1, 2, "doubled-residual"},
                                    {1, -1, "sign"},
                                    {1, 0.5, "scale"}};
        const Mistake& mistake = mistakes[planter.between(0, 5)];
        // My inputs are themselves a little off.
        const Numbers my_stream = planter.with_noise(stream, {actual.dtype, 3 * actual.unit});
        const Numbers my_added = planter.with_noise(added, {actual.dtype, 3 * actual.unit});
        Numbers right;
        Numbers wrong;
        for (size_t k = 0; k < stream.size(); ++k) {
          right.push_back(stream[k] + added[k]);
          wrong.push_back(mistake.of_stream * my_stream[k] + mistake.of_added * my_added[k]);
        }
        CauseCase fault{planter.stored(right, shape, golden), planter.stored(wrong, shape, actual)};
        fault.noise = 3 * noise_of(golden, actual);
        fault.inputs.push_back({planter.stored(stream, shape, golden),
                                Planter::tensor(my_stream, shape, actual), "layers.1/input"});
        // Without the other addend the difference alone has to tell.
        if (planter.between(0, 1) == 0 || mistake.of_stream == 1)
          fault.inputs.push_back({planter.stored(added, shape, golden),
                                  Planter::tensor(my_added, shape, actual), "o_proj/output"});
        return {fault, mistake.name};
      },
      24);
}

TEST(ArithmeticCauses, FindTheMistakeInTheOneRowThatHasIt) {
  for_each_planted([](Planter& planter, RunType golden, RunType actual) -> Planted {
    const size_t rows = planter.between(5, 40);
    const size_t columns = planter.among({64, 256});
    const Shape shape = dims({rows, columns});
    const Numbers stream = planter.normals(rows * columns);
    const Numbers added = planter.normals(rows * columns);
    const size_t hit = planter.between(0, rows - 1);
    Numbers right;
    for (size_t k = 0; k < stream.size(); ++k) right.push_back(stream[k] + added[k]);
    Numbers wrong = right;
    for (size_t c = 0; c < columns; ++c) wrong[hit * columns + c] = added[hit * columns + c];
    CauseCase fault{planter.stored(right, shape, golden), planter.stored(wrong, shape, actual)};
    for (const Numbers* input : {&stream, &added})
      fault.inputs.push_back(
          {planter.stored(*input, shape, golden), planter.stored(*input, shape, actual), "x"});
    return {fault, "missing-residual"};
  });
}

TEST(ArithmeticCauses, FindAFactorOfEachRowOrColumn) {
  for_each_planted([](Planter& planter, RunType golden, RunType actual) -> Planted {
    const size_t rows = planter.between(8, 30);
    const size_t columns = planter.among({32, 64});
    const bool by_row = planter.between(0, 1) == 0;
    Numbers factors = planter.normals(std::max(rows, columns), 0.5);
    const Numbers right = planter.normals(rows * columns);
    Numbers wrong = right;
    for (size_t k = 0; k < right.size(); ++k)
      wrong[k] *= 1 + factors[by_row ? k / columns : k % columns];
    const Shape shape = dims({rows, columns});
    return {{planter.stored(right, shape, golden), planter.stored(wrong, shape, actual)},
            by_row ? "row-scale" : "channel-scale"};
  });
}

}  // namespace
}  // namespace ait::locate
