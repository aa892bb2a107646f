// Times the metric kernels on one core against that core's raw read bandwidth, on the same buffers.
//
//   metrics_bench [MiB per side, default 128] [repeats, default 9]
//
// Prints one JSON line per element type. The four measurements are interleaved, so that a noisy
// neighbour hits all of them alike; figures are medians, spread is (maximum - minimum) / median.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "metrics/compare.h"
#include "noisy_pair.h"

namespace {

using namespace ait;
using bench::NoisyPair;

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// As fast as one core can take bytes in: nothing but loads and additions.
uint64_t read_all(const std::vector<std::byte>& bytes) {
  const auto* words = reinterpret_cast<const uint64_t*>(bytes.data());
  const size_t count = bytes.size() / sizeof(uint64_t);
  uint64_t sums[16] = {};
  for (size_t i = 0; i + 16 <= count; i += 16)
    for (size_t k = 0; k < 16; ++k) sums[k] += words[i + k];
  uint64_t total = 0;
  for (const uint64_t sum : sums) total += sum;
  return total;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const size_t bytes = (argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 128) << 20;
  const int repeats = argc > 2 ? std::atoi(argv[2]) : 9;
  constexpr int64_t kRow = 4096;
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat32}) {
    const size_t elements = bytes / size_bytes(dtype);
    const auto rows = static_cast<int64_t>(elements) / kRow;
    const NoisyPair pair(dtype, {rows, kRow});
    const std::vector<std::byte>& golden = pair.golden_bytes();
    const std::vector<std::byte>& actual = pair.actual_bytes();
    const TensorView g = pair.golden();
    const TensorView m = pair.actual();
    metrics::Request no_kl;
    no_kl.kl = false;
    const metrics::Request all;
    metrics::Request by_row;
    by_row.rows = true;

    const char* names[] = {"read", "metrics_without_kl", "metrics_with_kl", "metrics_with_rows",
                           "statistics"};
    constexpr size_t kKinds = 5;
    std::vector<double> times[kKinds];
    volatile double sink = 0;
    for (int r = 0; r < repeats; ++r) {
      double marks[kKinds + 1];
      marks[0] = seconds();
      sink = static_cast<double>(read_all(golden) + read_all(actual));
      marks[1] = seconds();
      sink = metrics::compare(g, m, no_kl)->cosine_similarity;
      marks[2] = seconds();
      sink = metrics::compare(g, m, all)->cosine_similarity;
      marks[3] = seconds();
      sink = metrics::compare(g, m, by_row)->cosine_similarity;
      marks[4] = seconds();
      sink = metrics::statistics(g).mean + metrics::statistics(m).mean;
      marks[5] = seconds();
      for (size_t k = 0; k < kKinds; ++k) times[k].push_back(marks[k + 1] - marks[k]);
    }
    (void)sink;
    std::printf("{\"dtype\": \"%s\", \"bytes\": %zu, \"target\": \"%s\"",
                std::string(name(dtype)).c_str(), 2 * bytes, metrics::simd_target().c_str());
    for (size_t k = 0; k < kKinds; ++k) {
      const auto [low, high] = std::minmax_element(times[k].begin(), times[k].end());
      const double middle = median(times[k]);
      std::printf(", \"%s\": {\"seconds\": %.6f, \"spread\": %.3f, \"of_bandwidth\": %.3f}",
                  names[k], middle, (*high - *low) / middle, median(times[0]) / middle);
    }
    std::printf("}\n");
    std::fflush(stdout);
  }
}
