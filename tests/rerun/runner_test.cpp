#include "rerun/runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <thread>

#include "stand_in.h"
#include "tensors.h"
#include "test_files.h"

namespace ait::rerun {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

// A sanitizer turns the signal into an end of its own.
const auto kCrashed =
    ::testing::AnyOf(HasSubstr("killed by signal 11"), HasSubstr("ended its process with"));

std::vector<float> values(const Tensor& tensor) {
  std::vector<float> out(tensor.elements());
  gather(tensor.view(), 0, out.size(), std::as_writable_bytes(std::span(out)).data());
  return out;
}

std::unique_ptr<Runner> runner(Settings settings = stand_in()) {
  auto out = Runner::start(std::move(settings));
  EXPECT_TRUE(out) << out.error().text();
  return out ? std::move(*out) : nullptr;
}

Call call(std::string_view type) { return {type, "{}", {Input{*floats({1, 2, 3})}}}; }

std::string failure(Runner& tested, std::string_view type) {
  const auto again = tested.run(call(type));
  return again ? "it was run" : again.error().text();
}

std::string start_failure(const Settings& settings) {
  const auto started = Runner::start(settings);
  return started ? "it was loaded" : started.error().text();
}

TEST(Runner, GivesWhatTheLibraryComputes) {
  const auto tested = runner();
  EXPECT_EQ(tested->library(), "a stand-in");
  for (int i = 0; i < 3; ++i) {
    const auto again = tested->run(call("DoublingOperation"));
    ASSERT_TRUE(again) << again.error().text();
    ASSERT_EQ(again->outputs.size(), 1u);
    EXPECT_EQ(again->outputs[0].dtype(), DType::kFloat32);
    EXPECT_THAT(again->outputs[0].shape(), ElementsAre(3));
    EXPECT_THAT(values(again->outputs[0]), ElementsAre(2, 4, 6));
    EXPECT_THAT(values(*again->inputs[0]), ElementsAre(1, 2, 3));
  }
}

TEST(Runner, GivesInputsThatWereWrittenToAndLeavesTheCallersAlone) {
  const Call given = {"InPlaceOperation", "", {Input{*floats({1, 2})}, std::nullopt}};
  const auto again = runner()->run(given);
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_TRUE(again->outputs.empty());
  ASSERT_EQ(again->inputs.size(), 2u);
  EXPECT_THAT(values(*again->inputs[0]), ElementsAre(-1, -2));
  EXPECT_FALSE(again->inputs[1]);
  EXPECT_THAT(values(given.inputs[0]->tensor), ElementsAre(1, 2));
}

TEST(Runner, BringsStridedInputsIntoOrder) {
  const auto owner = std::make_shared<std::vector<float>>(std::vector<float>{1, 2, 3, 4});
  const auto turned = Tensor::strided(owner, std::as_bytes(std::span<const float>(*owner)),
                                      DType::kFloat32, {2, 2}, {1, 2}, 0);
  const auto again = runner()->run({"DoublingOperation", "", {Input{*turned}}});
  ASSERT_TRUE(again);
  EXPECT_THAT(values(again->outputs[0]), ElementsAre(2, 6, 4, 8));
}

TEST(Runner, TellsWhatALibraryLacksFromWhatFails) {
  const auto tested = runner();
  const auto refused = tested->run(call("RefusedOperation"));
  EXPECT_EQ(refused.error().code(), ErrorCode::kUnsupported);
  EXPECT_THAT(refused.error().text(), HasSubstr("stand_in.so: has no RefusedOperation with {}"));
  const auto failing = tested->run(call("FailingOperation"));
  EXPECT_NE(failing.error().code(), ErrorCode::kUnsupported);
  EXPECT_THAT(failing.error().text(), HasSubstr("the device 0 is on fire"));
  EXPECT_THAT(failure(*tested, "SilentOperation"), HasSubstr("does not say why"));
  EXPECT_THAT(failure(*tested, "ThrowingOperation"), HasSubstr("has thrown an exception"));
}

TEST(Runner, GoesOnAfterACrash) {
  const auto tested = runner();
  EXPECT_THAT(failure(*tested, "CrashingOperation"), kCrashed);
  EXPECT_TRUE(tested->run(call("DoublingOperation")));
  EXPECT_THAT(failure(*tested, "EndingOperation"), HasSubstr("with status 5"));
  EXPECT_TRUE(tested->run(call("DoublingOperation")));
}

TEST(Runner, EndsWhatHangsAndGoesOn) {
  Settings settings = stand_in();
  settings.limit = std::chrono::milliseconds(200);
  const auto tested = runner(settings);
  EXPECT_THAT(failure(*tested, "HangingOperation"), HasSubstr("gave no answer within 200 ms"));
  EXPECT_TRUE(tested->run(call("DoublingOperation")));
}

TEST(Runner, TrustsNothingOfWhatAPluginDescribes) {
  const auto tested = runner();
  for (const char* type : {"HugeOperation", "OverflowingOperation", "NegativeOperation"})
    EXPECT_THAT(failure(*tested, type), HasSubstr("that they may take")) << type;
  EXPECT_THAT(failure(*tested, "UntypedOperation"), HasSubstr("a type that ait does not know: 99"));
  EXPECT_THAT(failure(*tested, "ManyOperation"), HasSubstr("too many outputs"));
  EXPECT_THAT(failure(*tested, "ScribblingOperation"), HasSubstr("has written over"));
  EXPECT_TRUE(tested->run(call("DoublingOperation")));
}

TEST(Runner, KeepsToItsMemory) {
  Settings settings = stand_in();
  settings.memory_bytes = 1 << 20;
  const std::vector<float> large(1 << 19);
  const auto again = runner(settings)->run({"DoublingOperation", "", {Input{*floats(large)}}});
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().text(), HasSubstr("need 2 MiB, more than the 1 MiB"));
}

TEST(Runner, KeepsStandardOutputForItself) {
  testing::internal::CaptureStdout();
  EXPECT_TRUE(runner()->run(call("TalkingOperation")));
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

TEST(Runner, RefusesWhatIsNoPlugin) {
  EXPECT_THAT(start_failure(stand_in("nowhere")), HasSubstr("rerun library not found"));
  EXPECT_THAT(start_failure(stand_in("stand_in_old")),
              HasSubstr("version 99 of the interface, but ait needs 1"));
  EXPECT_THAT(start_failure(stand_in("stand_in_empty")),
              HasSubstr("has no function ait_rerun_plugin"));
  EXPECT_THAT(start_failure(stand_in("stand_in_crash")), kCrashed);
  Settings no_library = stand_in();
  no_library.plugin = no_library.worker;
  EXPECT_THAT(start_failure(no_library), HasSubstr("ait-rerun: "));
}

TEST(Runner, LeavesNoProcessBehind) {
  {
    const auto tested = runner();
    EXPECT_TRUE(tested->run(call("DoublingOperation")));
  }
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
}

// The state of a process as the kernel writes it, or X where there is none.
char state_of(int process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  std::getline(file, text);
  const size_t end = text.rfind(") ");
  return end == std::string::npos ? 'X' : text[end + 2];
}

// Waits until `is_so` holds, or long enough that it never will.
bool comes_true(const std::function<bool()>& is_so) {
  for (int i = 0; i < 500 && !is_so(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  return is_so();
}

TEST(Runner, TakesAHangingPluginWithItWhenItIsKilled) {
  const formats::TempFolder folder;
  const std::string path = folder.path() / "pid";
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv("AIT_TEST_PID", path.c_str(), 1);
    static_cast<void>(runner()->run(call("HangingOperation")));
    std::_Exit(0);
  }
  int worker = 0;
  EXPECT_TRUE(comes_true([&] { return bool(std::ifstream(path) >> worker); }));
  EXPECT_NE(state_of(worker), 'X');
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(comes_true([&] { return state_of(worker) == 'X' || state_of(worker) == 'Z'; }))
      << state_of(worker);
}

TEST(DefaultPlugin, IsWhatTheEnvironmentNames) {
  ::unsetenv("AIT_OPCHECK_LIB_PATH");
  EXPECT_THAT(default_plugin(), EndsWith("/lib/ait/libait_rerun_engine.so"));
  ::setenv("AIT_OPCHECK_LIB_PATH", "/mine.so", 1);
  EXPECT_EQ(default_plugin(), "/mine.so");
  ::unsetenv("AIT_OPCHECK_LIB_PATH");
}

}  // namespace
}  // namespace ait::rerun
