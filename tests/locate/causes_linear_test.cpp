#include <gtest/gtest.h>

#include "planted.h"

namespace ait::locate {
namespace {

Numbers product(const Numbers& x, const Numbers& weight, size_t inputs, size_t outputs,
                const Numbers& bias = {}) {
  Numbers out;
  for (size_t r = 0; r < x.size() / inputs; ++r)
    for (size_t o = 0; o < outputs; ++o) {
      double sum = bias.empty() ? 0 : bias[o];
      for (size_t k = 0; k < inputs; ++k) sum += x[r * inputs + k] * weight[o * inputs + k];
      out.push_back(sum);
    }
  return out;
}

struct Layer {
  size_t rows;
  size_t inputs;
  size_t outputs;
  Numbers x;
  Numbers my_x;
  Numbers weight;
};

// Tokens have something in common, as those of a text have.
Layer random_layer(Planter& planter, RunType actual, size_t rows, size_t inputs, size_t outputs) {
  Layer out{rows, inputs, outputs, {}, {}, planter.normals(inputs * outputs, 0.1)};
  const Numbers common = planter.normals(inputs, 0.3);
  for (size_t k = 0; k < rows * inputs; ++k) out.x.push_back(planter.normal() + common[k % inputs]);
  out.my_x = planter.with_noise(out.x, actual);
  return out;
}

CauseCase case_of(Planter& planter, const Layer& layer, const Numbers& right, const Numbers& wrong,
                  RunType golden, RunType actual) {
  const Shape shape = dims({1, layer.rows, layer.outputs});
  const Shape x_shape = dims({1, layer.rows, layer.inputs});
  CauseCase fault{planter.stored(right, shape, golden), planter.stored(wrong, shape, actual)};
  fault.kind = capture::OpKind::kLinear;
  fault.noise = 2 * noise_of(golden, actual);
  fault.inputs.push_back({Planter::tensor(layer.x, x_shape, golden),
                          Planter::tensor(layer.my_x, x_shape, actual), "x"});
  return fault;
}

TEST(LinearCauses, FindTransposedWeights) {
  for_each_planted([](Planter& planter, RunType golden, RunType actual) -> Planted {
    const size_t width = planter.among({32, 64, 128});
    const Layer layer = random_layer(planter, actual, planter.between(5, 20), width, width);
    Numbers transposed;
    for (size_t i = 0; i < width; ++i)
      for (size_t j = 0; j < width; ++j) transposed.push_back(layer.weight[j * width + i]);
    const Numbers bias = planter.between(0, 1) == 0 ? Numbers{} : planter.normals(width, 0.3);
    return {case_of(planter, layer, product(layer.x, layer.weight, width, width, bias),
                    product(layer.my_x, transposed, width, width, bias), golden, actual),
            "transposed"};
  });
}

TEST(LinearCauses, FindAShardOfTheInputsThatIsNotInTheSum) {
  for_each_planted([](Planter& planter, RunType golden, RunType actual) -> Planted {
    const Layer layer = random_layer(planter, actual, planter.between(6, 20),
                                     planter.among({64, 128}), planter.among({64, 96}));
    // Few rows show too little of a small shard.
    const size_t shards = layer.rows >= 12 ? planter.among({2, 4}) : 2;
    const size_t missing = planter.between(0, shards - 1);
    Numbers less = layer.my_x;
    for (size_t k = 0; k < less.size(); ++k)
      if (k % layer.inputs / (layer.inputs / shards) == missing) less[k] = 0;
    return {case_of(planter, layer, product(layer.x, layer.weight, layer.inputs, layer.outputs),
                    product(less, layer.weight, layer.inputs, layer.outputs), golden, actual),
            "one-shard"};
  });
}

TEST(LinearCauses, FindAnInputThatWasRoundedInside) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Planter planter(seed);
    const Layer layer = random_layer(planter, kFp32, planter.between(8, 20), 64, 96);
    Numbers rounded;
    for (const double value : layer.my_x)
      rounded.push_back(
          static_cast<double>(fp8_e4m3fn_to_float(float_to_fp8_e4m3fn(static_cast<float>(value)))));
    const CauseCase fault = case_of(planter, layer, product(layer.x, layer.weight, 64, 96),
                                    product(rounded, layer.weight, 64, 96), kFp32, kFp32);
    const auto causes = likely_causes(fault);
    ASSERT_TRUE(is_among_first_two(causes, "precision")) << seed;
    EXPECT_NE(causes[0].text.find("rounding its input to float8_e4m3fn"), std::string::npos)
        << names(causes);
  }
}

TEST(LinearCauses, GuessOtherWeightsWhereOnlyTheInputIsRight) {
  for_each_planted([](Planter& planter, RunType golden, RunType actual) -> Planted {
    const Layer layer = random_layer(planter, actual, planter.between(1, 20),
                                     planter.among({64, 128}), planter.among({64, 96}));
    const Numbers other = planter.normals(layer.weight.size(), 0.1);
    return {case_of(planter, layer, product(layer.x, layer.weight, layer.inputs, layer.outputs),
                    product(layer.my_x, other, layer.inputs, layer.outputs), golden, actual),
            "wrong-weights"};
  });
}

// Golden's rows are alike, and mine are not: this was no product with the same input.
TEST(LinearCauses, AreNoOtherWeightsWhereRowsAreNotAsAlike) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Planter planter(seed);
    Layer layer = random_layer(planter, kFp32, planter.between(4, 20), 64, 96);
    for (size_t k = 0; k < layer.x.size(); ++k)
      layer.x[k] = layer.my_x[k] = layer.x[k % 64] + 0.7 * planter.normal();
    const Numbers right = product(layer.x, layer.weight, 64, 96);
    const auto causes =
        likely_causes(case_of(planter, layer, right, planter.normals(right.size()), kFp32, kFp32));
    EXPECT_TRUE(causes.empty()) << seed << "\n" << names(causes);
  }
}

// Weights that are all a little off are no shard and no rounding of the input.
TEST(LinearCauses, AreNoShardsWhereWeightsAreALittleOff) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Planter planter(seed);
    const Layer layer = random_layer(planter, kFp32, planter.between(2, 20), 64, 64);
    Numbers other = layer.weight;
    for (double& value : other) value += 0.05 * planter.normal();
    const auto causes =
        likely_causes(case_of(planter, layer, product(layer.x, layer.weight, 64, 64),
                              product(layer.my_x, other, 64, 64), kFp32, kFp32));
    EXPECT_TRUE(causes.empty()) << seed << "\n" << names(causes);
  }
}

}  // namespace
}  // namespace ait::locate
