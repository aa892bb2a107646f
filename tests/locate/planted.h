// Values of two runs with a mistake in one of them, made by plain loops.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "locate/causes.h"
#include "tensor/half.h"
#include "tensors.h"

namespace ait::locate {

using Numbers = std::vector<double>;

// What a run computes in: how its values are stored, and how far healthy ones are off.
struct RunType {
  DType dtype;
  double unit;
};
inline constexpr RunType kFp32{DType::kFloat32, 1e-7};
inline constexpr RunType kFp16{DType::kFloat16, 0x1p-11};
inline constexpr RunType kBf16{DType::kBFloat16, 0x1p-8};
inline const std::vector<std::pair<RunType, RunType>> kRuns = {
    {kFp32, kFp32}, {kFp32, kFp16}, {kFp32, kBf16}, {kBf16, kBf16}};

class Planter {
 public:
  explicit Planter(uint64_t seed) : engine_(seed) {}

  size_t among(std::vector<size_t> choices) {
    return choices[std::uniform_int_distribution<size_t>(0, choices.size() - 1)(engine_)];
  }
  size_t between(size_t first, size_t last) {
    return std::uniform_int_distribution<size_t>(first, last)(engine_);
  }
  double normal() { return normal_(engine_); }
  Numbers normals(size_t count, double scale = 1) {
    Numbers out(count);
    for (double& value : out) value = scale * normal();
    return out;
  }
  // Healthy values of a run: each is off by about its rounding.
  Numbers with_noise(const Numbers& values, const RunType& run) {
    Numbers out = values;
    for (double& value : out) value *= 1 + 0.3 * run.unit * normal();
    return out;
  }
  Tensor stored(const Numbers& values, Shape shape, const RunType& run) {
    return tensor(with_noise(values, run), std::move(shape), run);
  }
  // As they are, but for the rounding of the type.
  static Tensor tensor(const Numbers& values, Shape shape, const RunType& run) {
    if (run.dtype == DType::kFloat32)
      return *make_tensor(run.dtype, std::move(shape),
                          std::vector<float>(values.begin(), values.end()));
    std::vector<uint16_t> narrow;
    for (const double value : values)
      narrow.push_back(run.dtype == DType::kFloat16 ? float_to_fp16(static_cast<float>(value))
                                                    : float_to_bf16(static_cast<float>(value)));
    return *make_tensor(run.dtype, std::move(shape), narrow);
  }

 private:
  std::mt19937_64 engine_;
  std::normal_distribution<double> normal_;
};

inline double noise_of(const RunType& golden, const RunType& actual) {
  return std::max(golden.unit, actual.unit);
}

inline Shape dims(std::initializer_list<size_t> sizes) { return Shape(sizes.begin(), sizes.end()); }

inline std::string names(const std::vector<Cause>& causes) {
  std::string out;
  for (const Cause& cause : causes) out += cause.name + ": " + cause.text + "\n";
  return out;
}

// The right name is the first or second.
inline ::testing::AssertionResult is_among_first_two(const std::vector<Cause>& causes,
                                                     const std::string& name) {
  for (size_t k = 0; k < std::min<size_t>(2, causes.size()); ++k)
    if (causes[k].name == name) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << name << " is not among the first two of\n"
                                       << names(causes);
}

struct Planted {
  CauseCase fault;
  std::string name;
};

// Tries `plant` with many seeds and with all kinds of runs; it gives the fault and the name.
inline void for_each_planted(
    const std::function<Planted(Planter&, RunType golden, RunType actual)>& plant,
    size_t seeds = 12) {
  for (const auto& [golden, actual] : kRuns)
    for (uint64_t seed = 1; seed <= seeds; ++seed) {
      Planter planter(seed);
      auto [fault, name] = plant(planter, golden, actual);
      if (fault.noise == 0) fault.noise = noise_of(golden, actual);
      const std::vector<Cause> causes = likely_causes(fault);
      EXPECT_TRUE(is_among_first_two(causes, name))
          << "seed " << seed << ", " << ait::name(golden.dtype) << " against "
          << ait::name(actual.dtype) << ", shape " << shape_text(fault.golden.shape());
      for (const Cause& cause : causes) EXPECT_FALSE(cause.text.empty());
    }
}

}  // namespace ait::locate
