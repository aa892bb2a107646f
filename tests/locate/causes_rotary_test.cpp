#include <gtest/gtest.h>

#include "planted.h"

namespace ait::locate {
namespace {

struct Turning {
  bool neighbours = false;
  double shift = 0;
  bool none = false;
  double sign = 1;
};

// [tokens, heads, size]
Numbers turned(const Numbers& x, size_t heads, size_t size, const Turning& how) {
  Numbers out = x;
  if (how.none) return out;
  for (size_t block = 0; block < x.size() / size; ++block)
    for (size_t j = 0; j < size / 2; ++j) {
      const double position = static_cast<double>(block / heads) + how.shift;
      const double a = how.sign * position *
                       std::pow(10000.0, -2.0 * static_cast<double>(j) / static_cast<double>(size));
      const size_t u = block * size + (how.neighbours ? 2 * j : j);
      const size_t v = block * size + (how.neighbours ? 2 * j + 1 : j + size / 2);
      out[u] = x[u] * std::cos(a) - x[v] * std::sin(a);
      out[v] = x[v] * std::cos(a) + x[u] * std::sin(a);
    }
  return out;
}

TEST(RotaryCauses, FindWhatIsWrongWithTurnedQueries) {
  for_each_planted(
      [](Planter& planter, RunType golden, RunType actual) -> Planted {
        const size_t tokens = planter.between(4, 30);
        const size_t heads = planter.among({2, 4});
        const size_t size = planter.among({16, 32, 64});
        const bool neighbours = planter.between(0, 2) == 0;
        const Numbers x = planter.normals(tokens * heads * size);
        const Numbers mine = planter.with_noise(x, {actual.dtype, 2 * actual.unit});
        const Turning sound{neighbours};
        const std::pair<Turning, const char*> mistakes[] = {{{!neighbours}, "rope-pairing"},
                                                            {{neighbours, 1}, "position"},
                                                            {{neighbours, -3}, "position"},
                                                            {{neighbours, 0, true}, "missing-rope"},
                                                            {{neighbours, 0, false, -1}, "sign"}};
        const auto& [mistake, name] = mistakes[planter.between(0, 4)];
        const bool flat = planter.between(0, 1) == 0;
        const Shape shape = flat ? dims({tokens, heads * size}) : dims({tokens, heads, size});
        CauseCase fault{planter.stored(turned(x, heads, size, sound), shape, golden),
                        planter.stored(turned(mine, heads, size, mistake), shape, actual)};
        fault.kind = capture::OpKind::kRotary;
        fault.noise = 3 * noise_of(golden, actual);
        fault.inputs.push_back(
            {Planter::tensor(x, shape, golden), Planter::tensor(mine, shape, actual), "q"});
        if (planter.between(0, 1) == 0)
          for (const bool is_cos : {true, false}) {
            Numbers table;
            for (size_t t = 0; t < tokens; ++t)
              for (size_t d = 0; d < size; ++d) {
                const double a =
                    static_cast<double>(t) *
                    std::pow(10000.0, -2.0 *
                                          static_cast<double>(neighbours ? d / 2 : d % (size / 2)) /
                                          static_cast<double>(size));
                table.push_back(is_cos ? std::cos(a) : std::sin(a));
              }
            fault.inputs.push_back({Planter::tensor(table, dims({tokens, size}), golden),
                                    Planter::tensor(table, dims({tokens, size}), actual), "table"});
          }
        return {fault, name};
      },
      40);
}

TEST(RotaryCauses, FindAPositionWithoutAnyInput) {
  for_each_planted([](Planter& planter, RunType golden, RunType actual) -> Planted {
    const size_t tokens = planter.between(4, 30);
    const size_t heads = planter.among({2, 4});
    const size_t size = planter.among({16, 32, 64});
    const Numbers x = planter.normals(tokens * heads * size);
    const Shape shape = dims({tokens, heads * size});
    CauseCase fault{planter.stored(turned(x, heads, size, {}), shape, golden),
                    planter.stored(turned(x, heads, size, {false, 1}), shape, actual)};
    fault.kind = capture::OpKind::kRotary;
    return {fault, "position"};
  });
}

// A model whose buffers were cast along with its weights, or that is another model's port.
TEST(RotaryCauses, FindHowAWrongTableWasComputed) {
  for_each_planted(
      [](Planter& planter, RunType golden, RunType actual) -> Planted {
        const size_t tokens = planter.between(300, 600);
        const size_t size = planter.among({32, 64, 128});
        const double base = planter.between(0, 1) == 0 ? 10000 : 500000;
        const bool is_cos = planter.between(0, 1) == 0;
        const size_t mistake = planter.between(0, 3);
        const auto table = [&](bool sound) {
          Numbers out;
          for (size_t t = 0; t < tokens; ++t)
            for (size_t c = 0; c < size; ++c) {
              const bool other = !sound && mistake == 3;
              const double used = other ? (base == 10000 ? 500000 : 10000) : base;
              double frequency = std::pow(
                  used, -2.0 * static_cast<double>(c % (size / 2)) / static_cast<double>(size));
              auto position = static_cast<double>(t);
              // bfloat16 keeps eight bits.
              const auto round = [](double value) {
                if (value == 0) return value;
                const double unit = std::ldexp(1.0, std::ilogb(value) - 7);
                return std::nearbyint(value / unit) * unit;
              };
              if (!sound && mistake == 0) frequency = round(frequency);
              if (!sound && mistake == 1) position = round(position);
              double angle = position * frequency;
              if (!sound && mistake == 2) angle = round(angle);
              out.push_back(is_cos ? std::cos(angle) : std::sin(angle));
            }
          return out;
        };
        const Shape shape = dims({1, tokens, size});
        CauseCase fault{planter.stored(table(true), shape, golden),
                        planter.stored(table(false), shape, actual)};
        fault.kind = capture::OpKind::kRotary;
        fault.noise = 3 * noise_of(golden, actual);
        return {fault, mistake == 3 ? "rope-base" : "precision"};
      },
      8);
}

}  // namespace
}  // namespace ait::locate
