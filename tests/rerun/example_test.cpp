#include <gtest/gtest.h>

#include "rerun/runner.h"
#include "stand_in.h"
#include "tensors.h"

namespace ait::rerun {
namespace {

Result<Tensor> run_again(const std::string& path, const std::string& param, const Tensor& x) {
  ::setenv("AIT_OPCHECK_LIB_PATH", "/nowhere.so", 1);  // what is given counts
  Settings settings;
  settings.plugin = path;  // libmine.so
  auto runner = Runner::start(settings);
  if (!runner) return fail(runner.error());  // kNotFound, or it is no plug-in
  const auto again = (*runner)->run({"ElewiseOperation", param, {Input{x}}});
  if (!again) return fail(again.error());  // kUnsupported: the library does not have it
  return again->outputs[0];
}

// The test lies in bin/, so that the worker is found beside it as it is beside ait.
TEST(RerunExample, RunsAnOperation) {
  const auto doubled = run_again(stand_in().plugin, "{}", *floats({4}));
  ASSERT_TRUE(doubled) << doubled.error().text();
  float value = 0;
  gather(doubled->view(), 0, 1, std::as_writable_bytes(std::span(&value, 1)).data());
  EXPECT_EQ(value, 8);
}

}  // namespace
}  // namespace ait::rerun
