// Times the metric kernels on one core against that core's raw read bandwidth, on the same buffers.
//
//   metrics_bench [MiB per side, default 128] [repeats, default 9]
//   metrics_bench --dumps GOLDEN MY     the tensors of two folders with the same names in both
//
// Prints one JSON line per element type, or one for the folders. The measurements are interleaved,
// so that a noisy neighbour hits all of them alike; figures are medians, spread is (maximum -
// minimum) / median.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/registry.h"
#include "metrics/compare.h"
#include "noisy_pair.h"

namespace {

using namespace ait;
using bench::NoisyPair;

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// As fast as one core can take bytes in: nothing but loads and additions.
uint64_t read_all(const TensorView& view) {
  const size_t count = view.bytes() / sizeof(uint64_t);
  uint64_t sums[16] = {};
  for (size_t i = 0; i + 16 <= count; i += 16) {
    for (size_t k = 0; k < 16; ++k) {
      uint64_t word = 0;  // files need not be aligned
      std::memcpy(&word, view.data + (i + k) * sizeof(word), sizeof(word));
      sums[k] += word;
    }
  }
  uint64_t total = 0;
  for (const uint64_t sum : sums) total += sum;
  return total;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

using Views = std::vector<std::pair<TensorView, TensorView>>;

// Prints the object that `title` begins.
void measure(const Views& pairs, int repeats, const std::string& title) {
  metrics::Request no_kl;
  no_kl.kl = false;
  const metrics::Request all;
  metrics::Request by_row;
  by_row.rows = true;
  struct Kind {
    const char* name;
    std::function<double(const TensorView&, const TensorView&)> run;
  };
  const auto compared = [](const metrics::Request& request) {
    return [&request](const TensorView& g, const TensorView& m) {
      return metrics::compare(g, m, request)->cosine_similarity;
    };
  };
  const Kind kinds[] = {
      {"read", [](const TensorView& g,
                  const TensorView& m) { return static_cast<double>(read_all(g) + read_all(m)); }},
      {"metrics_without_kl", compared(no_kl)},
      {"metrics_with_kl", compared(all)},
      {"metrics_with_rows", compared(by_row)},
      {"statistics",
       [](const TensorView& g, const TensorView& m) {
         return metrics::statistics(g).mean + metrics::statistics(m).mean;
       }},
  };
  std::vector<double> times[std::size(kinds)];
  volatile double sink = 0;
  for (int r = 0; r < repeats; ++r) {
    for (size_t k = 0; k < std::size(kinds); ++k) {
      const double start = seconds();
      for (const auto& [g, m] : pairs) sink = kinds[k].run(g, m);
      times[k].push_back(seconds() - start);
    }
  }
  (void)sink;
  size_t bytes = 0;
  for (const auto& [g, m] : pairs) bytes += g.bytes() + m.bytes();
  std::printf("{%s, \"bytes\": %zu, \"target\": \"%s\"", title.c_str(), bytes,
              metrics::simd_target().c_str());
  for (size_t k = 0; k < std::size(kinds); ++k) {
    const auto [low, high] = std::minmax_element(times[k].begin(), times[k].end());
    const double middle = median(times[k]);
    std::printf(", \"%s\": {\"seconds\": %.6f, \"spread\": %.3f, \"of_bandwidth\": %.3f}",
                kinds[k].name, middle, (*high - *low) / middle, median(times[0]) / middle);
  }
  std::printf("}\n");
  std::fflush(stdout);
}

// The tensors of all files that both folders have. They are mapped, so the first turn maps them.
int measure_dumps(const std::filesystem::path& golden, const std::filesystem::path& actual) {
  std::vector<Tensor> kept;
  Views pairs;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(golden)) {
    if (entry.path().extension() != ".pth" && entry.path().extension() != ".bin") continue;
    std::vector<Tensor> both;
    for (const auto& path : {entry.path(), actual / entry.path().lexically_relative(golden)}) {
      const auto file = formats::open_tensor_file(path);
      if (!file) continue;
      if (auto tensor = (*file)->load(0)) both.push_back(std::move(*tensor));
    }
    if (both.size() != 2 || both[0].shape() != both[1].shape()) continue;
    pairs.emplace_back(both[0].view(), both[1].view());
    for (Tensor& one : both) kept.push_back(std::move(one));
  }
  if (pairs.empty()) return 1;
  const std::string golden_type(name(pairs[0].first.dtype));
  const std::string actual_type(name(pairs[0].second.dtype));
  measure(pairs, 9,
          "\"work\": \"kernels\", \"golden\": \"" + golden_type + "\", \"my\": \"" + actual_type +
              "\"");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 4 && std::string_view(argv[1]) == "--dumps") return measure_dumps(argv[2], argv[3]);
  const size_t bytes = (argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 128) << 20;
  const int repeats = argc > 2 ? std::atoi(argv[2]) : 9;
  constexpr int64_t kRow = 4096;
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat32}) {
    const auto rows = static_cast<int64_t>(bytes / size_bytes(dtype)) / kRow;
    const NoisyPair pair(dtype, {rows, kRow});
    measure({{pair.golden(), pair.actual()}}, repeats,
            "\"dtype\": \"" + std::string(name(dtype)) + "\"");
  }
}
