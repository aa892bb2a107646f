#include <gtest/gtest.h>

#include "planted.h"

namespace ait::locate {
namespace {

TEST(LayoutCauses, FindHeadsThatWereNotMovedBackBehindTokens) {
  for_each_planted([](Planter& planter, RunType golden, RunType actual) -> Planted {
    const size_t tokens = planter.between(5, 40);
    const size_t heads = planter.among({2, 4, 8});
    const size_t size = planter.among({8, 16, 64});
    const Numbers right = planter.normals(tokens * heads * size);
    Numbers wrong;
    for (size_t h = 0; h < heads; ++h)
      for (size_t t = 0; t < tokens; ++t)
        for (size_t d = 0; d < size; ++d) wrong.push_back(right[(t * heads + h) * size + d]);
    const Shape shape = dims({1, tokens, heads * size});
    return {{planter.stored(right, shape, golden), planter.stored(wrong, shape, actual)},
            "transposed"};
  });
}

TEST(LayoutCauses, FindATransposedMatrixAndAxesInAnotherOrder) {
  for_each_planted([](Planter& planter, RunType golden, RunType actual) -> Planted {
    const size_t a = planter.between(3, 9);
    const size_t b = planter.between(10, 19);
    const size_t c = planter.among({20, 32, 60});
    const Numbers right = planter.normals(a * b * c);
    Numbers wrong;
    const bool matrix = planter.between(0, 1) == 0;
    if (matrix) {
      for (size_t k = 0; k < c; ++k)
        for (size_t i = 0; i < a * b; ++i) wrong.push_back(right[i * c + k]);
      const Shape shape = dims({a * b, c});
      return {{planter.stored(right, shape, golden), planter.stored(wrong, shape, actual)},
              "transposed"};
    }
    for (size_t j = 0; j < b; ++j)
      for (size_t k = 0; k < c; ++k)
        for (size_t i = 0; i < a; ++i) wrong.push_back(right[(i * b + j) * c + k]);
    const Shape shape = dims({a, b, c});
    return {{planter.stored(right, shape, golden), planter.stored(wrong, shape, actual)},
            "permuted-axes"};
  });
}

TEST(LayoutCauses, FindPairsOfAHeadHalvesApartInsteadOfNeighbours) {
  for_each_planted([](Planter& planter, RunType golden, RunType actual) -> Planted {
    const size_t rows = planter.between(1, 9);
    const size_t heads = planter.among({2, 3, 8});
    const size_t size = planter.among({16, 32, 128});
    const Numbers right = planter.normals(rows * heads * size);
    Numbers wrong(right.size());
    const bool to_halves = planter.between(0, 1) == 0;
    for (size_t block = 0; block < rows * heads; ++block)
      for (size_t j = 0; j < size / 2; ++j)
        for (size_t part = 0; part < 2; ++part) {
          const size_t neighbours = block * size + 2 * j + part;
          const size_t halves = block * size + part * size / 2 + j;
          wrong[to_halves ? halves : neighbours] = right[to_halves ? neighbours : halves];
        }
    const Shape shape = dims({rows, heads * size});
    return {{planter.stored(right, shape, golden), planter.stored(wrong, shape, actual)},
            "rope-pairing"};
  });
}

TEST(LayoutCauses, FindRowsOfTheTokenBeforeOrAfter) {
  for_each_planted([](Planter& planter, RunType golden, RunType actual) -> Planted {
    const size_t batch = planter.between(1, 3);
    const size_t tokens = planter.between(3, 60);
    const size_t columns = planter.among({16, 64, 100});
    const bool is_later = planter.between(0, 1) == 0;
    const Numbers right = planter.normals(batch * tokens * columns);
    Numbers wrong(right.size());
    for (size_t b = 0; b < batch; ++b)
      for (size_t t = 0; t < tokens; ++t)
        for (size_t c = 0; c < columns; ++c) {
          const size_t from = is_later ? (t + 1) % tokens : (t + tokens - 1) % tokens;
          wrong[(b * tokens + t) * columns + c] = right[(b * tokens + from) * columns + c];
        }
    const Shape shape = dims({batch, tokens, columns});
    return {{planter.stored(right, shape, golden), planter.stored(wrong, shape, actual)},
            "token-shift"};
  });
}

TEST(LayoutCauses, CallAShiftOfATableOfAnglesAPosition) {
  for_each_planted([](Planter& planter, RunType golden, RunType actual) -> Planted {
    const size_t tokens = planter.between(4, 40);
    const size_t size = planter.among({16, 64});
    const size_t shift = planter.between(1, 3);
    Numbers right;
    Numbers wrong;
    for (size_t t = 0; t < tokens; ++t)
      for (size_t d = 0; d < size; ++d) {
        const double frequency = std::pow(
            10000.0, -2.0 * static_cast<double>(d % (size / 2)) / static_cast<double>(size));
        right.push_back(std::cos(static_cast<double>(t) * frequency));
        wrong.push_back(std::cos(static_cast<double>(t + shift) * frequency));
      }
    const Shape shape = dims({1, tokens, size});
    CauseCase fault{planter.stored(right, shape, golden), planter.stored(wrong, shape, actual)};
    fault.type = "LlamaRotaryEmbedding";
    return {fault, "position"};
  });
}

TEST(LayoutCauses, FindSequencesOfABatchInAnotherOrder) {
  for_each_planted([](Planter& planter, RunType golden, RunType actual) -> Planted {
    const size_t batch = planter.between(3, 4);
    const size_t tokens = planter.between(9, 20);
    const size_t columns = planter.among({16, 64});
    const Numbers right = planter.normals(batch * tokens * columns);
    Numbers wrong;
    for (size_t b = batch; b-- > 0;)
      for (size_t k = 0; k < tokens * columns; ++k)
        wrong.push_back(right[b * tokens * columns + k]);
    const Shape shape = dims({batch, tokens, columns});
    return {{planter.stored(right, shape, golden), planter.stored(wrong, shape, actual)},
            "token-order"};
  });
}

TEST(LayoutCauses, FindFusedStretchesInAnotherOrder) {
  for_each_planted([](Planter& planter, RunType golden, RunType actual) -> Planted {
    const size_t rows = planter.between(1, 12);
    const size_t kv = planter.among({64, 128});
    const size_t queries = kv * planter.between(1, 4);
    const size_t columns = queries + 2 * kv;
    const Numbers right = planter.normals(rows * columns);
    Numbers wrong;
    const std::vector<std::pair<size_t, size_t>> orders[] = {
        {{queries, kv}, {0, queries}, {queries + kv, kv}},  // k q v
        {{0, queries}, {queries + kv, kv}, {queries, kv}},  // q v k
        {{queries, kv}, {queries + kv, kv}, {0, queries}},  // k v q
    };
    const auto& order = orders[planter.between(0, 2)];
    for (size_t r = 0; r < rows; ++r)
      for (const auto& [first, count] : order)
        for (size_t c = 0; c < count; ++c) wrong.push_back(right[r * columns + first + c]);
    const Shape shape = dims({rows, columns});
    CauseCase fault{planter.stored(right, shape, golden), planter.stored(wrong, shape, actual)};
    fault.kind = capture::OpKind::kLinear;
    return {fault, "fused-order"};
  });
}

TEST(LayoutCauses, FindHalvesThatAreInterleaved) {
  for_each_planted([](Planter& planter, RunType golden, RunType actual) -> Planted {
    const size_t rows = planter.between(1, 12);
    const size_t half = planter.among({32, 48, 172});
    const Numbers right = planter.normals(rows * 2 * half);
    Numbers wrong(right.size());
    for (size_t r = 0; r < rows; ++r)
      for (size_t c = 0; c < half; ++c)
        for (size_t part = 0; part < 2; ++part)
          wrong[r * 2 * half + 2 * c + part] = right[r * 2 * half + part * half + c];
    const Shape shape = dims({rows, 2 * half});
    return {{planter.stored(right, shape, golden), planter.stored(wrong, shape, actual)},
            "fused-order"};
  });
}

TEST(LayoutCauses, FindHeadsThatAreTiledOrMovedByOne) {
  for_each_planted([](Planter& planter, RunType golden, RunType actual) -> Planted {
    const size_t rows = planter.between(1, 12);
    const size_t groups = planter.among({2, 4});
    const size_t each = planter.among({2, 4});
    const size_t heads = groups * each;
    const size_t size = planter.among({16, 32});
    const Numbers right = planter.normals(rows * heads * size);
    const bool tiled = planter.between(0, 1) == 0;
    Numbers wrong;
    for (size_t r = 0; r < rows; ++r)
      for (size_t h = 0; h < heads; ++h) {
        const size_t from = tiled ? h % groups * each + h / groups : (h + heads - 1) % heads;
        for (size_t d = 0; d < size; ++d) wrong.push_back(right[(r * heads + from) * size + d]);
      }
    const Shape shape = dims({rows, heads, size});
    const Shape flat = dims({rows, heads * size});
    const bool is_flat = planter.between(0, 1) == 0;
    return {{planter.stored(right, is_flat ? flat : shape, golden),
             planter.stored(wrong, is_flat ? flat : shape, actual)},
            "heads-order"};
  });
}

TEST(LayoutCauses, FindTwoHeadsThatWereSwappedAmongMany) {
  for_each_planted([](Planter& planter, RunType golden, RunType actual) -> Planted {
    const size_t rows = planter.between(2, 12);
    const size_t heads = 16;
    const size_t size = planter.among({16, 32});
    const Numbers right = planter.normals(rows * heads * size);
    Numbers wrong = right;
    const size_t head = planter.between(0, heads - 2);
    for (size_t r = 0; r < rows; ++r)
      for (size_t d = 0; d < size; ++d)
        std::swap(wrong[(r * heads + head) * size + d], wrong[(r * heads + head + 1) * size + d]);
    const Shape shape = dims({rows, heads * size});
    return {{planter.stored(right, shape, golden), planter.stored(wrong, shape, actual)},
            "heads-order"};
  });
}

}  // namespace
}  // namespace ait::locate
