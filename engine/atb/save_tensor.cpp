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

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : value;
}

Settings Read() {
  Settings settings;
  settings.on = Variable("ACLTRANSFORMER_SAVE_TENSOR") == "1";
  if (const auto text = Variable("ACLTRANSFORMER_SAVE_TENSOR_MAX"); !text.empty())
    settings.rounds = std::strtoull(text.c_str(), nullptr, 10);
  std::string_view rest;
  const auto list = Variable("ACLTRANSFORMER_SAVE_TENSOR_RUNNER");
  for (rest = list; !rest.empty();) {
    const size_t comma = rest.find(',');
    if (comma != 0) settings.runners.emplace_back(rest.substr(0, comma));
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
  }
  auto home = Variable("ACLTRANSFORMER_HOME_PATH");
  settings.root = (home.empty() ? "." : std::move(home)) + "/tensors/";
  return settings;
}

// Once: it is asked for at every operation.
const Settings& Current() {
  static const Settings settings = Read();
  return settings;
}

ait::record::ElementType TypeOf(DataType dtype) {
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

void SayOnce(const std::string& path, const char* what) {
  static std::once_flag said;
  std::call_once(said, [&] {
    std::fprintf(stderr, "atb: cannot save %s: %s; the run goes on\n", path.c_str(), what);
  });
}

constexpr const char* kTaskVariable = "AIT_CMP_TASK_ID";

}  // namespace

bool SaveTensorOn() { return Current().on; }

uint64_t TaskRound::Of(uint64_t executions) {
  if (auto task = Variable(kTaskVariable); task != task_) {
    task_ = std::move(task);
    first_ = executions;
  }
  return executions - first_;
}

bool SaveTensorWanted(const std::string& runner, uint64_t round) {
  const Settings& settings = Current();
  if (!settings.on || round >= settings.rounds) return false;
  if (settings.runners.empty()) return true;
  for (const std::string& wanted : settings.runners)
    if (wanted == runner) return true;
  return false;
}

void SaveTensorFiles(std::span<const Tensor> tensors, bool input, const std::string& path,
                     const char* moment, uint64_t round) {
  auto task = Variable(kTaskVariable);
  // A name, never a path of its own.
  if (task.empty() || task.find('/') != std::string::npos || task == "..")
    task = std::to_string(round);
  const std::string folder = Current().root + std::to_string(getpid()) + "/" + task + "/" + path +
                             "/" + moment + (input ? "/inTensor" : "/outTensor");
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = tensors[i];
    if (tensor.desc.Bytes() == 0) continue;
    const std::string file = folder + std::to_string(i) + ".bin";
    const auto& dims = tensor.desc.dims;
    ait::record::FileImage image;
    const auto encoded = ait::record::encode_atb_bin(
        {TypeOf(tensor.desc.dtype), dims.begin(), dims.size(), tensor.data, tensor.desc.Bytes()},
        image);
    if (encoded != ait::record::EncodeResult::kOk) {
      SayOnce(file, ait::record::describe(encoded));
      continue;
    }
    if (const auto status = image.write(file.c_str()); !status.ok())
      SayOnce(file, std::strerror(status.error_number));
  }
}

}  // namespace atb
