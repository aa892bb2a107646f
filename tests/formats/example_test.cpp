// The example at the head of formats/registry.h.
#include <gmock/gmock.h>

#include <map>

#include "formats/registry.h"

namespace ait::formats {
namespace {

Result<std::map<std::string, Shape>> shapes_in(const std::string& path) {
  std::map<std::string, Shape> shapes;
  auto file = open_tensor_file(path);
  if (!file) return fail(file.error());
  for (size_t i = 0; i < (*file)->size(); ++i) {
    auto tensor = (*file)->load(i);
    if (!tensor) return fail(tensor.error());
    shapes[(*file)->name(i)] = tensor->shape();
  }
  return shapes;
}

TEST(FormatsExample, ListsTheShapesOfAFile) {
  const auto shapes = shapes_in(AIT_TEST_DATA "/torch/parameter.pt");
  ASSERT_TRUE(shapes) << shapes.error().text();
  EXPECT_THAT(*shapes, testing::ElementsAre(testing::Pair("", Shape{2, 3})));
  EXPECT_EQ(shapes_in(AIT_TEST_DATA "/torch/expected.txt").error().code(), ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace ait::formats
