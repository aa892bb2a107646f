#include <gtest/gtest.h>

#include "planted.h"

namespace ait::locate {
namespace {

// What goes into attention, for all tokens: those of earlier calls first.
struct Case {
  size_t batch = 1;
  size_t earlier = 0;
  size_t tokens = 1;
  size_t heads = 4;
  size_t kv_heads = 2;
  size_t size = 16;
  bool neighbours = false;  // turned together
  bool rope = true;
  Numbers q, k, v;  // [batch, all tokens, heads, size]
  size_t all() const { return earlier + tokens; }
};

struct Mistake {
  std::string name;
  double scale = 0;  // 0: the usual one
  bool other_pairs = false;
  bool no_rope = false;
  int shift = 0;      // of queries
  int shift_new = 0;  // of queries and keys of this call
  bool no_mask = false;
  bool next = false;  // sees the next token
  bool no_self = false;
  bool tiled = false;
  bool rolled = false;
  bool no_cache = false;
  bool swap_kv = false;
  int skip = 0;
  size_t window = 0;
  long stale = -1;      // this many places before the token itself
  bool zero = false;    // holds zeros, or else the token before
  long only_head = -1;  // the only one with the mistake
};

double angle(double position, size_t pair, size_t size) {
  return position * std::pow(10000.0, -2.0 * static_cast<double>(pair) / static_cast<double>(size));
}

Numbers turned(const double* x, size_t size, double position, bool neighbours) {
  Numbers out(size);
  for (size_t j = 0; j < size / 2; ++j) {
    const size_t a = neighbours ? 2 * j : j;
    const size_t b = neighbours ? 2 * j + 1 : j + size / 2;
    const double c = std::cos(angle(position, j, size));
    const double s = std::sin(angle(position, j, size));
    out[a] = x[a] * c - x[b] * s;
    out[b] = x[b] * c + x[a] * s;
  }
  return out;
}

// [batch, tokens, heads, size] of the tokens of this call.
Numbers attention(const Case& of, const Numbers& q, const Numbers& k, const Numbers& v,
                  const Mistake& planted) {
  Numbers out;
  for (size_t b = 0; b < of.batch; ++b)
    for (size_t t = of.earlier; t < of.all(); ++t)
      for (size_t h = 0; h < of.heads; ++h) {
        const Mistake mistake = planted.only_head < 0 || static_cast<size_t>(planted.only_head) == h
                                    ? planted
                                    : Mistake{};
        size_t kv = mistake.tiled ? h % of.kv_heads : h / (of.heads / of.kv_heads);
        if (mistake.rolled) kv = (kv + 1) % of.kv_heads;
        const bool rope = of.rope && !mistake.no_rope;
        const bool pairs = of.neighbours != mistake.other_pairs;
        const auto key_of = [&](const Numbers& from, size_t at) {
          return from.data() + ((b * of.all() + at) * of.kv_heads + kv) * of.size;
        };
        const double* query = q.data() + ((b * of.all() + t) * of.heads + h) * of.size;
        const Numbers tq =
            rope ? turned(query, of.size,
                          static_cast<double>(t) + mistake.shift + mistake.shift_new, pairs)
                 : Numbers(query, query + of.size);
        const double scale =
            mistake.scale != 0 ? mistake.scale : 1 / std::sqrt(static_cast<double>(of.size));
        Numbers weights;
        double total = 0;
        size_t first = mistake.no_cache ? of.earlier : static_cast<size_t>(mistake.skip);
        size_t end = mistake.no_mask   ? of.all()
                     : mistake.next    ? std::min(of.all(), t + 2)
                     : mistake.no_self ? t
                                       : t + 1;
        if (end <= first) {
          first = 0;
          end = std::max<size_t>(end, 1);
        }
        if (mistake.window > 0 && t + 1 > mistake.window)
          first = std::max(first, t + 1 - mistake.window);
        const auto source = [&](size_t at) {
          return mistake.stale >= 0 && at + static_cast<size_t>(mistake.stale) == t ? at - 1 : at;
        };
        for (size_t slot = first; slot < end; ++slot) {
          const size_t s = source(slot);
          if (s != slot && mistake.zero) {
            weights.push_back(1);
            total += 1;
            continue;
          }
          const double* key = key_of(mistake.swap_kv ? v : k, s);
          const Numbers tk =
              rope ? turned(key, of.size,
                            static_cast<double>(s) + (s >= of.earlier ? mistake.shift_new : 0),
                            pairs)
                   : Numbers(key, key + of.size);
          double score = 0;
          for (size_t d = 0; d < of.size; ++d) score += tq[d] * tk[d];
          weights.push_back(std::exp(score * scale));
          total += weights.back();
        }
        for (size_t d = 0; d < of.size; ++d) {
          double sum = 0;
          for (size_t s = first; s < end; ++s)
            if (source(s) == s || !mistake.zero)
              sum += weights[s - first] * key_of(mistake.swap_kv ? k : v, source(s))[d];
          out.push_back(sum / total);
        }
      }
  return out;
}

Case random_case(Planter& planter) {
  Case out;
  out.batch = planter.among({1, 1, 2});
  out.tokens = planter.between(6, 30);
  out.kv_heads = planter.among({2, 4});
  out.heads = out.kv_heads * planter.among({2, 4});
  out.size = planter.among({16, 32});
  out.neighbours = planter.between(0, 3) == 0;
  return out;
}

void fill(Planter& planter, Case& of) {
  of.q = planter.normals(of.batch * of.all() * of.heads * of.size);
  of.k = planter.normals(of.batch * of.all() * of.kv_heads * of.size);
  of.v = planter.normals(of.batch * of.all() * of.kv_heads * of.size);
}

// Tokens [first, first + count) of [batch, all tokens, width].
Numbers tokens_of(const Case& of, const Numbers& values, size_t first, size_t count) {
  const size_t width = values.size() / of.batch / of.all();
  Numbers out;
  for (size_t b = 0; b < of.batch; ++b)
    out.insert(out.end(), values.begin() + static_cast<long>((b * of.all() + first) * width),
               values.begin() + static_cast<long>((b * of.all() + first + count) * width));
  return out;
}

struct Options {
  bool tables = true;
  bool names = true;
};

Planted plant(Planter& planter, RunType golden, RunType actual, Case of, const Mistake& mistake,
              Options options = {}) {
  fill(planter, of);
  // What was recorded is what was computed with, here and there.
  const auto stored_exactly = [](const Numbers& values, const RunType& run) {
    const Tensor tensor = Planter::tensor(values, {static_cast<int64_t>(values.size())}, run);
    Numbers out;
    for (size_t k = 0; k < values.size(); ++k) {
      const std::byte* at = tensor.view().data + k * size_bytes(run.dtype);
      if (run.dtype == DType::kFloat32) {
        out.push_back(static_cast<double>(*reinterpret_cast<const float*>(at)));
      } else {
        const uint16_t bits = *reinterpret_cast<const uint16_t*>(at);
        out.push_back(static_cast<double>(run.dtype == DType::kFloat16 ? fp16_to_float(bits)
                                                                       : bf16_to_float(bits)));
      }
    }
    return out;
  };
  Numbers gold[3];
  Numbers mine[3];
  const Numbers* all[] = {&of.q, &of.k, &of.v};
  for (size_t k = 0; k < 3; ++k) {
    gold[k] = stored_exactly(*all[k], golden);
    mine[k] = stored_exactly(planter.with_noise(*all[k], {actual.dtype, 2 * actual.unit}), actual);
  }
  const Shape shape = dims({of.batch, of.tokens, of.heads * of.size});
  CauseCase fault{planter.stored(attention(of, gold[0], gold[1], gold[2], {}), shape, golden),
                  planter.stored(attention(of, mine[0], mine[1], mine[2], mistake), shape, actual)};
  fault.noise = 3 * noise_of(golden, actual);
  const char* names[] = {"q_proj/output", "k_proj/output", "v_proj/output"};
  if (options.tables && of.rope) {
    for (const bool is_cos : {true, false}) {
      const auto table = [&](size_t first, size_t count) {
        Numbers values;
        for (size_t t = first; t < first + count; ++t)
          for (size_t d = 0; d < of.size; ++d) {
            const double a =
                angle(static_cast<double>(t), of.neighbours ? d / 2 : d % (of.size / 2), of.size);
            values.push_back(is_cos ? std::cos(a) : std::sin(a));
          }
        return values;
      };
      CauseInput input{
          Planter::tensor(table(of.earlier, of.tokens), dims({1, of.tokens, of.size}), golden),
          Planter::tensor(table(of.earlier, of.tokens), dims({1, of.tokens, of.size}), actual),
          is_cos ? "rotary/cos" : "rotary/sin"};
      if (of.earlier > 0) {
        input.golden_earlier.push_back(
            Planter::tensor(table(0, of.earlier), dims({1, of.earlier, of.size}), golden));
        input.actual_earlier.push_back(
            Planter::tensor(table(0, of.earlier), dims({1, of.earlier, of.size}), actual));
      }
      fault.inputs.push_back(input);
    }
  }
  for (size_t k = 0; k < 3; ++k) {
    const size_t width = (k == 0 ? of.heads : of.kv_heads) * of.size;
    const auto part = [&](const Numbers& values, size_t first, size_t count, RunType run) {
      return Planter::tensor(tokens_of(of, values, first, count), dims({of.batch, count, width}),
                             run);
    };
    CauseInput input{part(gold[k], of.earlier, of.tokens, golden),
                     part(mine[k], of.earlier, of.tokens, actual), options.names ? names[k] : "x"};
    if (of.earlier > 0 && k > 0) {  // a prompt, then token by token
      const size_t prompt = of.earlier - std::min<size_t>(2, of.earlier - 1);
      for (size_t first = 0; first < of.earlier; first += first == 0 ? prompt : 1) {
        const size_t count = first == 0 ? prompt : 1;
        input.golden_earlier.push_back(part(gold[k], first, count, golden));
        input.actual_earlier.push_back(part(mine[k], first, count, actual));
      }
    }
    fault.inputs.push_back(input);
  }
  return {fault, mistake.name};
}

TEST(AttentionCauses, FindWhatIsWrongInAPrompt) {
  for_each_planted(
      [](Planter& planter, RunType golden, RunType actual) {
        const Case of = random_case(planter);
        const double root = std::sqrt(static_cast<double>(of.size));
        const Mistake mistakes[] = {
            {.name = "scale", .scale = 1},
            {.name = "scale", .scale = 1 / root / root},
            {.name = "rope-pairing", .other_pairs = true},
            {.name = "missing-rope", .no_rope = true},
            {.name = "position", .shift = 1},
            {.name = "position", .shift = -2},
            {.name = "masked-region", .no_mask = true},
            {.name = "masked-region", .next = true},
            {.name = "masked-region", .no_self = true},
            {.name = "heads-order", .tiled = true},
            {.name = "heads-order", .rolled = true},
            {.name = "fused-order", .swap_kv = true},
            {.name = "masked-region", .skip = 1},
            {.name = "masked-region", .window = 3},
        };
        Options options;
        options.tables = planter.between(0, 2) != 0;
        options.names = planter.between(0, 1) == 0;
        return plant(planter, golden, actual, of, mistakes[planter.between(0, 13)], options);
      },
      60);
}

TEST(AttentionCauses, FindTheMistakeOfASingleHead) {
  for_each_planted(
      [](Planter& planter, RunType golden, RunType actual) {
        const Case of = random_case(planter);
        Mistake mistakes[] = {{.name = "scale", .scale = 1},
                              {.name = "rope-pairing", .other_pairs = true},
                              {.name = "masked-region", .no_mask = true},
                              {.name = "position", .shift = 1}};
        Mistake mistake = mistakes[planter.between(0, 3)];
        mistake.only_head = static_cast<long>(planter.between(0, of.heads - 1));
        return plant(planter, golden, actual, of, mistake);
      },
      20);
}

TEST(AttentionCauses, FindWhatIsWrongWithACache) {
  for_each_planted(
      [](Planter& planter, RunType golden, RunType actual) {
        Case of = random_case(planter);
        of.earlier = planter.between(4, 20);
        of.tokens = 1;
        const Mistake mistakes[] = {
            {.name = "stale-cache", .no_self = true},
            {.name = "stale-cache", .no_cache = true},
            {.name = "stale-cache", .stale = 0},
            {.name = "stale-cache", .stale = 2},
            {.name = "stale-cache", .stale = 0, .zero = true},
            {.name = "stale-cache", .stale = 2, .zero = true},
            {.name = "position", .shift_new = 1},
            {.name = "position", .shift_new = -static_cast<int>(of.earlier)},
            {.name = "rope-pairing", .other_pairs = true},
            {.name = "scale", .scale = 1},
        };
        Options options;
        options.tables = planter.between(0, 2) != 0;
        return plant(planter, golden, actual, of, mistakes[planter.between(0, 9)], options);
      },
      30);
}

// As of GPT-2: no rotary embedding, one tensor of queries, keys and values.
TEST(AttentionCauses, FindWhatIsWrongWithFusedQueriesKeysAndValues) {
  for_each_planted(
      [](Planter& planter, RunType golden, RunType actual) {
        Case of;
        of.tokens = planter.between(6, 20);
        of.heads = of.kv_heads = planter.among({2, 4});
        of.size = planter.among({16, 32});
        of.rope = false;
        const Mistake mistakes[] = {{.name = "scale", .scale = 1},
                                    {.name = "masked-region", .no_mask = true},
                                    {.name = "heads-order", .rolled = true},
                                    {.name = "fused-order", .swap_kv = true}};
        auto [fault, name] = plant(planter, golden, actual, of, mistakes[planter.between(0, 3)]);
        const size_t width = of.heads * of.size;
        const auto fuse = [&](bool of_golden) {
          const auto value = [&](size_t input, size_t k) {
            const Tensor& tensor =
                of_golden ? fault.inputs[input].golden : fault.inputs[input].actual;
            const std::byte* at = tensor.view().data + k * size_bytes(tensor.dtype());
            if (tensor.dtype() == DType::kFloat32)
              return static_cast<double>(*reinterpret_cast<const float*>(at));
            const uint16_t bits = *reinterpret_cast<const uint16_t*>(at);
            return static_cast<double>(tensor.dtype() == DType::kFloat16 ? fp16_to_float(bits)
                                                                         : bf16_to_float(bits));
          };
          Numbers out;
          for (size_t t = 0; t < of.tokens; ++t)
            for (size_t input = 0; input < 3; ++input)
              for (size_t c = 0; c < width; ++c) out.push_back(value(input, t * width + c));
          return Planter::tensor(out, dims({1, of.tokens, 3 * width}), of_golden ? golden : actual);
        };
        fault.inputs = {{fuse(true), fuse(false), "c_attn/output"}};
        return Planted{fault, name};
      },
      20);
}

}  // namespace
}  // namespace ait::locate
