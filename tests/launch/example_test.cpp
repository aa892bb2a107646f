// The example at the head of launch/child.h.
#include <gtest/gtest.h>

#include "launch/child.h"
#include "launch/command_words.h"
#include "launch/program.h"

namespace ait::launch {
namespace {

Result<int> run(std::string_view exec) {
  auto words = split_command(exec);
  if (!words) return fail(words.error());
  auto program = find_program(words->front(), "/usr/bin:/bin");
  if (!program) return fail(program.error());
  Environment environment = Environment::of_this_process();
  environment.set("ATB_OUTPUT_DIR", "/out/");
  auto end = run_child(program->path, *words, environment);
  if (!end) return fail(end.error());
  return end->status();
}

TEST(LaunchExample, RunsACommandAndReturnsItsStatus) {
  EXPECT_EQ(run("sh -c 'exit 3'").value(), 3);
  EXPECT_EQ(run("sh -c 'test \"$ATB_OUTPUT_DIR\" = /out/'").value(), 0);
  EXPECT_EQ(run("no-such-program").error().code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace ait::launch
