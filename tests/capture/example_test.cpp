// The example at the head of capture/layout.h.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capture/layout.h"
#include "test_files.h"

namespace ait::capture {
namespace {

tl::unexpected<Error> not_a_dump(const std::string& path) {
  return fail(Error(ErrorCode::kUsage, path) << "is no dump");
}

Result<std::vector<std::string>> names_in(const std::string& path) {
  std::vector<std::string> names;
  const Layout* layout = find_layout(path, RunKind::kOperations, Role::kGolden);
  if (layout == nullptr) return not_a_dump(path);
  auto run = layout->read(path);
  if (!run) return fail(run.error());
  const auto& recording = std::get<Recording>(*run);
  for (const Operation& operation : recording.operations) names.push_back(operation.name);
  return names;
}

TEST(CaptureExample, ListsOperationsOfWhateverDump) {
  const formats::TempFolder folder;
  folder.write("a/tensors/0_1/0/0_Linear/after/outtensor0.bin", "x");
  folder.write("t/torch_tensors/cpu_1/0/root.x/output.pth", "x");
  folder.write("other/notes.txt", "x");
  const auto names = [&](const char* name) { return names_in((folder.path() / name).string()); };
  EXPECT_THAT(*names("a"), ::testing::ElementsAre("0_Linear"));
  EXPECT_THAT(*names("t"), ::testing::ElementsAre("root", "root.x"));
  EXPECT_FALSE(names("other"));
}

}  // namespace
}  // namespace ait::capture
