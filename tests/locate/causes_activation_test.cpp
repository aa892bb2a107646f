#include <gtest/gtest.h>

#include <numbers>

#include "planted.h"

namespace ait::locate {
namespace {

double silu(double x) { return x / (1 + std::exp(-x)); }
double gelu(double x) { return x * std::erfc(-x / std::sqrt(2.0)) / 2; }
double gelu_tanh(double x) {
  return x / 2 * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * std::pow(x, 3))));
}
double quick_gelu(double x) { return x / (1 + std::exp(-1.702 * x)); }
double relu(double x) { return x > 0 ? x : 0; }
double nothing(double x) { return x; }

using Function = double (*)(double);

struct Mlp {
  Shape shape;
  Numbers gate;
  Numbers up;
  Numbers my_gate;
  Numbers my_up;
};

Mlp random_mlp(Planter& planter, RunType actual) {
  Mlp out;
  const size_t rows = planter.between(1, 16);
  const size_t columns = planter.among({64, 172});
  out.shape = dims({1, rows, columns});
  out.gate = planter.normals(rows * columns, 1.5);
  out.up = planter.normals(rows * columns);
  out.my_gate = planter.with_noise(out.gate, {actual.dtype, 3 * actual.unit});
  out.my_up = planter.with_noise(out.up, {actual.dtype, 3 * actual.unit});
  return out;
}

void add_input(CauseCase& fault, const Numbers& golden_values, const Numbers& my_values,
               const Shape& shape, RunType golden, RunType actual, const char* name) {
  fault.inputs.push_back({Planter::tensor(golden_values, shape, golden),
                          Planter::tensor(my_values, shape, actual), name});
}

TEST(ActivationCauses, FindAnotherVariant) {
  for_each_planted(
      [](Planter& planter, RunType golden, RunType actual) -> Planted {
        const Mlp mlp = random_mlp(planter, actual);
        // The variants of gelu are as near to each other as bf16 is coarse.
        const bool fine = actual.unit < 1e-5;
        const std::vector<std::pair<Function, Function>> far = {{silu, gelu},    {gelu, relu},
                                                                {silu, nothing}, {gelu_tanh, silu},
                                                                {relu, gelu},    {silu, relu}};
        const std::vector<std::pair<Function, Function>> near = {
            {gelu, gelu_tanh}, {gelu_tanh, gelu}, {gelu, quick_gelu}, {quick_gelu, gelu_tanh}};
        const auto& pairs = fine && planter.between(0, 1) == 0 ? near : far;
        const auto& [sound, wrong] = pairs[planter.between(0, pairs.size() - 1)];
        Numbers right;
        Numbers mine;
        for (size_t k = 0; k < mlp.gate.size(); ++k) {
          right.push_back(sound(mlp.gate[k]));
          mine.push_back(wrong(mlp.my_gate[k]));
        }
        CauseCase fault{planter.stored(right, mlp.shape, golden),
                        planter.stored(mine, mlp.shape, actual)};
        fault.kind = capture::OpKind::kActivation;
        fault.noise = 3 * noise_of(golden, actual);
        add_input(fault, mlp.gate, mlp.my_gate, mlp.shape, golden, actual, "gate_proj/output");
        return {fault, "activation"};
      },
      24);
}

TEST(ActivationCauses, FindWhatIsWrongWithAGate) {
  for_each_planted(
      [](Planter& planter, RunType golden, RunType actual) -> Planted {
        const Mlp mlp = random_mlp(planter, actual);
        const size_t mistake = planter.between(0, 2);
        const char* names[] = {"fused-order", "missing-factor", "activation"};
        Numbers right;
        Numbers mine;
        for (size_t k = 0; k < mlp.gate.size(); ++k) {
          right.push_back(silu(mlp.gate[k]) * mlp.up[k]);
          const double g = mlp.my_gate[k];
          const double u = mlp.my_up[k];
          mine.push_back(mistake == 0 ? g * silu(u) : mistake == 1 ? silu(g) : gelu(g) * u);
        }
        CauseCase fault{planter.stored(right, mlp.shape, golden),
                        planter.stored(mine, mlp.shape, actual)};
        fault.noise = 3 * noise_of(golden, actual);
        add_input(fault, mlp.gate, mlp.my_gate, mlp.shape, golden, actual, "gate_proj/output");
        add_input(fault, mlp.up, mlp.my_up, mlp.shape, golden, actual, "up_proj/output");
        return {fault, names[mistake]};
      },
      24);
}

TEST(ActivationCauses, FindAFusedValueThatIsCutInAnotherWay) {
  for_each_planted([](Planter& planter, RunType golden, RunType actual) -> Planted {
    const size_t rows = planter.between(1, 16);
    const size_t columns = planter.among({64, 172});
    const Numbers fused = planter.normals(rows * columns * 2, 1.5);
    const bool exchanged = planter.between(0, 1) == 0;
    Numbers right;
    Numbers mine;
    for (size_t r = 0; r < rows; ++r)
      for (size_t c = 0; c < columns; ++c) {
        const double* row = fused.data() + r * columns * 2;
        right.push_back(silu(row[c]) * row[columns + c]);
        mine.push_back(exchanged ? row[c] * silu(row[columns + c])
                                 : silu(row[2 * c]) * row[2 * c + 1]);
      }
    const Shape shape = dims({rows, columns});
    CauseCase fault{planter.stored(right, shape, golden), planter.stored(mine, shape, actual)};
    fault.kind = capture::OpKind::kActivation;
    fault.noise = 3 * noise_of(golden, actual);
    add_input(fault, fused, planter.with_noise(fused, actual), dims({rows, 2 * columns}), golden,
              actual, "gate_up/output");
    return {fault, "fused-order"};
  });
}

}  // namespace
}  // namespace ait::locate
