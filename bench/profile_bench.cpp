// What the error profile adds to the metrics with KL, on tensors that lie in the cache.
//
//   profile_bench [repeats, default 61]
//
// Prints one JSON line per element type and shape: CPU time without and with it, medians of
// interleaved repeats.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "metrics/compare.h"
#include "noisy_pair.h"

namespace {

using namespace ait;

double cpu_seconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const int repeats = argc > 1 ? std::atoi(argv[1]) : 61;
  constexpr size_t kElementsATime = 4'000'000;
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat32})
    for (const Shape& shape : {Shape{128, 64}, Shape{512, 4096}, Shape{1, 4096}, Shape{128, 80}}) {
      const bench::NoisyPair pair(dtype, shape);
      const size_t calls = std::max<size_t>(1, kElementsATime / pair.golden().elements);
      std::vector<double> times[2];
      volatile double sink = 0;
      for (int repeat = 0; repeat < repeats; ++repeat)
        for (const bool profile : {false, true}) {
          metrics::Request request;
          request.profile = profile;
          const double start = cpu_seconds();
          for (size_t i = 0; i < calls; ++i)
            sink = metrics::compare(pair.golden(), pair.actual(), request)->cosine_similarity;
          times[profile ? 1 : 0].push_back((cpu_seconds() - start) / static_cast<double>(calls));
        }
      (void)sink;
      const double without = median(times[0]);
      const double with = median(times[1]);
      std::printf(
          "{\"dtype\": \"%s\", \"shape\": \"%s\", \"target\": \"%s\", \"microseconds\": %.3f, "
          "\"with_profile\": %.3f, \"added\": %.3f}\n",
          std::string(name(dtype)).c_str(), shape_text(shape).c_str(),
          metrics::simd_target().c_str(), without * 1e6, with * 1e6, with / without - 1);
      std::fflush(stdout);
    }
}
