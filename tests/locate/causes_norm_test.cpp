#include <gtest/gtest.h>

#include "planted.h"

namespace ait::locate {
namespace {

struct NormCase {
  size_t rows;
  size_t columns;
  bool centred = false;
  double epsilon = 1e-6;
  Numbers x;
  Numbers weight;
  Numbers bias;  // empty: none
};

NormCase random_norm(Planter& planter, size_t fewest_rows, double scale = 1) {
  NormCase out{
      planter.between(fewest_rows, 20), planter.among({64, 96, 256}), false, 1e-6, {}, {}, {}};
  for (size_t r = 0; r < out.rows; ++r) {
    const double size = scale * std::exp(planter.normal());
    const double mean = planter.normal();
    for (size_t c = 0; c < out.columns; ++c) out.x.push_back(size * (planter.normal() + mean));
  }
  for (size_t c = 0; c < out.columns; ++c) out.weight.push_back(1 + 0.3 * planter.normal());
  return out;
}

struct Variant {
  bool centred;
  double epsilon;
  bool outside = false;
  double plus = 0;
  bool no_weight = false;
};

Numbers compute(const NormCase& norm, const Numbers& x, const Variant& how) {
  Numbers out;
  for (size_t r = 0; r < norm.rows; ++r) {
    double mean = 0;
    for (size_t c = 0; c < norm.columns; ++c) mean += x[r * norm.columns + c];
    mean = how.centred ? mean / static_cast<double>(norm.columns) : 0;
    double square = 0;
    for (size_t c = 0; c < norm.columns; ++c) square += std::pow(x[r * norm.columns + c] - mean, 2);
    square /= static_cast<double>(norm.columns);
    const double root =
        how.outside ? std::sqrt(square) + how.epsilon : std::sqrt(square + how.epsilon);
    for (size_t c = 0; c < norm.columns; ++c) {
      const double weight = how.no_weight ? 1 : norm.weight[c] + how.plus;
      out.push_back((x[r * norm.columns + c] - mean) / root * weight +
                    (norm.bias.empty() ? 0 : norm.bias[c]));
    }
  }
  return out;
}

Planted plant(Planter& planter, RunType golden, RunType actual, const NormCase& norm,
              const Variant& sound, const Variant& wrong, const std::string& name) {
  const Shape shape = dims({norm.rows, norm.columns});
  // My input is off already.
  const Numbers mine = planter.with_noise(norm.x, {actual.dtype, 3 * actual.unit});
  CauseCase fault{planter.stored(compute(norm, norm.x, sound), shape, golden),
                  planter.stored(compute(norm, mine, wrong), shape, actual)};
  fault.kind = capture::OpKind::kNorm;
  fault.noise = 3 * noise_of(golden, actual);
  fault.inputs.push_back(
      {Planter::tensor(norm.x, shape, golden), Planter::tensor(mine, shape, actual), "x"});
  return {fault, name};
}

TEST(NormCauses, FindOneThatWasLeftOutOfTheWeight) {
  for_each_planted([](Planter& planter, RunType golden, RunType actual) {
    const NormCase norm = random_norm(planter, 1);
    const bool left_out = planter.between(0, 1) == 0;
    return plant(planter, golden, actual, norm, {false, 1e-6, false, left_out ? 1.0 : 0.0},
                 {false, 1e-6, false, left_out ? 0.0 : 1.0}, "plus-one");
  });
}

TEST(NormCauses, FindTheMeanSubtractedOrNot) {
  for_each_planted([](Planter& planter, RunType golden, RunType actual) {
    const NormCase norm = random_norm(planter, 1);
    const bool centred = planter.between(0, 1) == 0;
    return plant(planter, golden, actual, norm, {centred, 1e-6}, {!centred, 1e-6},
                 "layernorm-vs-rmsnorm");
  });
}

TEST(NormCauses, FindTheMeanThatALayerNormWithBiasDoesNotSubtract) {
  for_each_planted([](Planter& planter, RunType golden, RunType actual) {
    NormCase norm = random_norm(planter, 8);
    norm.bias = planter.normals(norm.columns, 0.5);
    return plant(planter, golden, actual, norm, {true, 1e-5}, {false, 1e-5},
                 "layernorm-vs-rmsnorm");
  });
}

TEST(NormCauses, FindAnotherEpsilonOrAnotherPlaceOfIt) {
  for_each_planted(
      [](Planter& planter, RunType golden, RunType actual) {
        // Rows so small that epsilon counts.
        const double scale = actual.unit > 1e-4 ? 0.01 : 0.05;
        NormCase norm = random_norm(planter, 4, scale);
        if (norm.rows >= 8 && planter.between(0, 1) == 0)
          norm.bias = planter.normals(norm.columns, 0.5);
        const bool centred = !norm.bias.empty();
        Variant sound{centred, 1e-5};
        Variant wrong{centred, 1e-3};
        switch (planter.between(0, 2)) {
          case 0:
            sound.epsilon = 1e-4;
            wrong.epsilon = 0;
            break;
          case 1:
            sound.epsilon = wrong.epsilon = 1e-3;
            wrong.outside = true;
            break;
          default:
            break;
        }
        return plant(planter, golden, actual, norm, sound, wrong, "epsilon");
      },
      24);
}

TEST(NormCauses, FindThatTheWeightWasLeftOut) {
  for_each_planted([](Planter& planter, RunType golden, RunType actual) {
    const NormCase norm = random_norm(planter, 1);
    return plant(planter, golden, actual, norm, {false, 1e-6}, {false, 1e-6, false, 0, true},
                 "missing-weight");
  });
}

TEST(NormCauses, FindAnInputThatWasRounded) {
  Planter planter(5);
  for (const RunType narrow : {kFp16, kBf16}) {
    const NormCase norm = random_norm(planter, 8);
    const Shape shape = dims({norm.rows, norm.columns});
    Numbers rounded;
    for (const double value : norm.x)
      rounded.push_back(
          static_cast<double>(narrow.dtype == DType::kFloat16
                                  ? fp16_to_float(float_to_fp16(static_cast<float>(value)))
                                  : bf16_to_float(float_to_bf16(static_cast<float>(value)))));
    CauseCase fault{Planter::tensor(compute(norm, norm.x, {false, 1e-6}), shape, kFp32),
                    Planter::tensor(compute(norm, rounded, {false, 1e-6}), shape, kFp32)};
    fault.kind = capture::OpKind::kNorm;
    fault.inputs.push_back(
        {Planter::tensor(norm.x, shape, kFp32), Planter::tensor(norm.x, shape, kFp32), "x"});
    const auto causes = likely_causes(fault);
    ASSERT_TRUE(is_among_first_two(causes, "precision"));
    EXPECT_NE(causes[0].text.find(name(narrow.dtype)), std::string::npos) << causes[0].text;
  }
}

}  // namespace
}  // namespace ait::locate
