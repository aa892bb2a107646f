// Runs single operations again, in a library that is loaded as a plug-in (plugin.h).
//
//   Settings settings;
//   settings.plugin = path;  // libmine.so
//   auto runner = Runner::start(settings);
//   if (!runner) return fail(runner.error());  // kNotFound, or it is no plug-in
//   const auto again = (*runner)->run({"ElewiseOperation", param, {Input{x}}});
//   if (!again) return fail(again.error());  // kUnsupported: the library does not have it
//   return again->outputs[0];
//
// tests/rerun/example_test.cpp runs this example.
//
// The plug-in lives in a process of its own, so that a crash or an endless loop costs one operation
// and no more. This is the main header of `rerun`.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "tensor/tensor.h"

namespace ait::rerun {

struct Settings {
  std::string plugin = {};  // the shared object; default_plugin() if not given
  std::string worker = {};  // the program that loads it; the one installed with ait if not given
  int device = 0;
  std::chrono::milliseconds limit = std::chrono::minutes(1);  // of one operation
  size_t memory_bytes = 0;  // of the tensors of one operation; 0: a quarter of the machine's
};

struct Input {
  Tensor tensor;
  bool fractal = false;  // stored as FRACTAL_NZ
};

struct Call {
  std::string_view type;   // "LinearOperation"
  std::string_view param;  // JSON
  std::vector<std::optional<Input>> inputs;
};

struct Outcome {
  std::vector<Tensor> outputs;
  std::vector<std::optional<Tensor>> inputs;  // as they were after the operation
};

class Runner {
 public:
  static Result<std::unique_ptr<Runner>> start(Settings settings);
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  // kUnsupported where the library has no such operation or mode; every other failure is one of
  // this call. Calls of several threads wait for each other.
  Result<Outcome> run(const Call& call);

  const std::string& plugin() const { return settings_.plugin; }
  const std::string& library() const { return library_; }  // what the plug-in says that it is

 private:
  class Shared;

  explicit Runner(Settings settings) : settings_(std::move(settings)) {}
  Result<void> load();
  Result<void> ask(const Shared& block);
  Result<void> start_worker();
  std::string end_worker();  // how it ended
  Error error(ErrorCode code = ErrorCode::kUnreadable) const;

  Settings settings_;
  std::string library_;
  std::mutex mutex_;
  int worker_ = -1;  // process
  int socket_ = -1;
};

// $AIT_OPCHECK_LIB_PATH, or the plug-in of the acceleration library that comes with ait and computes
// on the CPU.
std::string default_plugin();

}  // namespace ait::rerun
