// compare_npy GOLDEN ACTUAL: how alike are two tensor files?
#include <cstdio>

#include "base/error.h"
#include "formats/registry.h"
#include "metrics/compare.h"

namespace {

ait::Result<double> similarity(const char* golden_path, const char* actual_path) {
  auto golden = ait::formats::load_single(golden_path);
  if (!golden) return ait::fail(golden.error());
  auto actual = ait::formats::load_single(actual_path);
  if (!actual) return ait::fail(actual.error());
  auto compared = ait::metrics::compare(golden->view(), actual->view(), {});
  if (!compared) return ait::fail(compared.error());
  return compared->cosine_similarity;
}

}  // namespace

int main(int count, char** words) {
  if (count != 3) return 2;
  const auto result = similarity(words[1], words[2]);
  if (!result) {
    std::fprintf(stderr, "%s\n", result.error().text().c_str());
    return 1;
  }
  std::printf("cosine_similarity %.6f\n", *result);
}
