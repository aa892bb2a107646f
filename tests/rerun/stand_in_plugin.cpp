// A plug-in for the tests: each of its operations behaves as its name says.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string_view>

#include "rerun/plugin.h"

#ifndef AIT_TEST_ABI
#define AIT_TEST_ABI AIT_RERUN_ABI
#endif
#ifndef AIT_TEST_ENTRY
#define AIT_TEST_ENTRY ait_rerun_plugin
#endif

namespace {

// The parameters may say which of them an operation of the real library is to behave like.
std::string_view type(const AitRerunCall* call) {
  const std::string_view param = call->param;
  constexpr std::string_view kKey = "\"standIn\": \"";
  const size_t at = param.find(kKey);
  if (at == std::string_view::npos) return call->operation;
  const std::string_view rest = param.substr(at + kKey.size());
  return rest.substr(0, rest.find('"'));
}

int infer(AitRerunCall* call) {
  if (type(call) == "RefusedOperation") {
    std::snprintf(call->message, call->message_bytes, "has no %s with %s", call->operation,
                  call->param);
    return AIT_RERUN_UNSUPPORTED;
  }
  call->output_count = 1;
  call->outputs[0] = call->inputs[0];
  if (type(call) == "InPlaceOperation") call->output_count = 0;
  if (type(call) == "HugeOperation") call->outputs[0].dims[0] = int64_t{1} << 45;
  if (type(call) == "OverflowingOperation") call->outputs[0].dims[0] = INT64_MAX;
  if (type(call) == "NegativeOperation") call->outputs[0].dims[0] = -1;
  if (type(call) == "UntypedOperation") call->outputs[0].dtype = 99;
  if (type(call) == "ManyOperation") call->output_count = call->output_capacity + 1;
  return AIT_RERUN_OK;
}

int run(AitRerunCall* call) {
  auto* in = static_cast<float*>(call->inputs[0].data);
  const size_t count = call->inputs[0].bytes / sizeof(float);
  if (type(call) == "InPlaceOperation") {
    for (size_t i = 0; i < count; ++i) in[i] = -in[i];
    return AIT_RERUN_OK;
  }
  if (type(call) == "FailingOperation") {
    std::snprintf(call->message, call->message_bytes, "the device %d is on fire", call->device);
    return AIT_RERUN_FAILED;
  }
  if (type(call) == "SilentOperation") return -7;
  if (type(call) == "CrashingOperation") std::raise(SIGSEGV);
  if (type(call) == "EndingOperation") std::_Exit(5);
  if (type(call) == "HangingOperation") {
    if (const char* path = std::getenv("AIT_TEST_PID")) {
      std::FILE* file = std::fopen(path, "w");
      std::fprintf(file, "%d\n", static_cast<int>(::getpid()));
      std::fclose(file);
    }
    while (true) ::sleep(1);
  }
  if (type(call) == "ThrowingOperation") throw std::runtime_error("out of the library");
  if (type(call) == "TalkingOperation") std::puts("what no reader of a result expects");
  // Over the descriptions of outputs, which end where the memory of inputs begins.
  if (type(call) == "ScribblingOperation") std::memset(in - 10000, 0xff, 40000);
  for (size_t i = 0; i < count; ++i) static_cast<float*>(call->outputs[0].data)[i] = 2 * in[i];
  return AIT_RERUN_OK;
}

#ifdef AIT_TEST_CRASH_AT_LOAD
[[gnu::constructor]] void crash() { std::raise(SIGSEGV); }
#endif

}  // namespace

extern "C" AIT_RERUN_EXPORT const AitRerunPlugin* AIT_TEST_ENTRY(void) {
  static const AitRerunPlugin plugin = {AIT_TEST_ABI, "a stand-in", infer, run};
  return &plugin;
}
