#include "atb/save_tensor.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string_view>
#include <vector>

#include "record/atb_bin_encoder.h"

namespace atb {
namespace {

struct Settings {
  bool on = false;
  uint64_t rounds = 1;
  std::vector<std::string> runners;
  std::string root;
};

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : value;
}

Settings read() {
  Settings settings;
  settings.on = variable("ACLTRANSFORMER_SAVE_TENSOR") == "1";
  if (const auto text = variable("ACLTRANSFORMER_SAVE_TENSOR_MAX"); !text.empty())
    settings.rounds = std::strtoull(text.c_str(), nullptr, 10);
  std::string_view rest;
  const auto list = variable("ACLTRANSFORMER_SAVE_TENSOR_RUNNER");
  for (rest = list; !rest.empty();) {
    const size_t comma = rest.find(',');
    if (comma != 0) settings.runners.emplace_back(rest.substr(0, comma));
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
  }
  auto home = variable("ACLTRANSFORMER_HOME_PATH");
  settings.root = (home.empty() ? "." : std::move(home)) + "/tensors/";
  return settings;
}

// Once: it is asked for at every operation.
const Settings& current() {
  static const Settings settings = read();
  return settings;
}

ait::record::ElementType type_of(DataType dtype) {
  using ait::record::ElementType;
  switch (dtype) {
    case DataType::kFloat16:
      return ElementType::kFloat16;
    case DataType::kInt8:
      return ElementType::kInt8;
    case DataType::kInt32:
      return ElementType::kInt32;
    case DataType::kInt64:
      return ElementType::kInt64;
    case DataType::kUInt64:
      return ElementType::kUInt64;
    case DataType::kBool:
      return ElementType::kBool;
    case DataType::kBf16:
      return ElementType::kBFloat16;
    case DataType::kFloat:
      break;
  }
  return ElementType::kFloat32;
}

void say_once(const std::string& path, const char* what) {
  static std::once_flag said;
  std::call_once(said, [&] {
    std::fprintf(stderr, "atb: cannot save %s: %s; the run goes on\n", path.c_str(), what);
  });
}

constexpr const char* kTaskVariable = "AIT_CMP_TASK_ID";

}  // namespace

bool save_tensor_on() { return current().on; }

uint64_t TaskRound::of(uint64_t executions) {
  if (auto task = variable(kTaskVariable); task != task_) {
    task_ = std::move(task);
    first_ = executions;
  }
  return executions - first_;
}

bool save_tensor_wanted(const std::string& runner, uint64_t round) {
  const Settings& settings = current();
  if (!settings.on || round >= settings.rounds) return false;
  if (settings.runners.empty()) return true;
  for (const std::string& wanted : settings.runners)
    if (wanted == runner) return true;
  return false;
}

void save_tensor_files(std::span<const Tensor> tensors, bool input, const std::string& path,
                       const char* moment, uint64_t round) {
  auto task = variable(kTaskVariable);
  // A name, never a path of its own.
  if (task.empty() || task.find('/') != std::string::npos || task == "..")
    task = std::to_string(round);
  const std::string folder = current().root + std::to_string(getpid()) + "/" + task + "/" + path +
                             "/" + moment + (input ? "/inTensor" : "/outTensor");
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = tensors[i];
    if (tensor.desc.bytes() == 0) continue;
    const std::string file = folder + std::to_string(i) + ".bin";
    const auto& dims = tensor.desc.dims;
    ait::record::FileImage image;
    const auto encoded = ait::record::encode_atb_bin(
        {type_of(tensor.desc.dtype), dims.begin(), dims.size(), tensor.data, tensor.desc.bytes()},
        image);
    if (encoded != ait::record::EncodeResult::kOk) {
      say_once(file, ait::record::describe(encoded));
      continue;
    }
    if (const auto status = image.write(file.c_str()); !status.ok())
      say_once(file, std::strerror(status.error_number));
  }
}

}  // namespace atb
