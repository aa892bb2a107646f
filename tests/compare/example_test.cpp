// The example at the head of compare/engine.h.
#include <gtest/gtest.h>

#include <algorithm>

#include "compare/engine.h"
#include "formats/write.h"
#include "tensors.h"
#include "test_files.h"

namespace ait::compare {
namespace {

double worst_cosine(const match::Pairs& pairs) {
  double worst = 1;
  const std::atomic<bool> stop = false;
  compare_pairs(pairs, Options(), stop, [&](Row&& row, uint64_t) {
    const metrics::Comparison* c = metrics_of(row);
    if (c != nullptr) worst = std::min(worst, c->cosine_similarity);
  });
  return worst;
}

TEST(CompareExample, FindsTheWorstPair) {
  const formats::TempFolder folder;
  const auto record = [&](const char* name, const std::vector<float>& values) {
    capture::TensorRecord out;
    out.path = (folder.path() / name).string();
    const std::vector<formats::NamedTensor> tensors = {{"", *floats(values)}};
    EXPECT_TRUE(formats::write_tensor_file(out.path, tensors, *formats::file_format_of(out.path)));
    return out;
  };
  std::vector<match::Pair> pairs(2);
  pairs[0].golden = pairs[0].actual = record("same.npy", {1, 2});
  pairs[1].golden = record("g.npy", {1, 0});
  pairs[1].actual = record("m.npy", {0, 1});
  EXPECT_EQ(worst_cosine(pairs), 0);
}

}  // namespace
}  // namespace ait::compare
