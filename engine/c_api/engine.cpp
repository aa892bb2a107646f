#include "c_api/engine.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <string>
#include <vector>

#include "atb/operation.h"
#include "models/llama.h"

namespace {

thread_local std::string last_error;

struct OperationHandle {
  std::unique_ptr<atb::Operation> operation;
  std::string param;
  std::vector<uint8_t> workspace;
};

// Operations of a script run on one device, one at a time.
struct Device {
  std::mutex mutex;
  atb::Context context{0};
};
Device& the_device() {
  static Device device;
  return device;
}

// Runs `body`, which returns what the caller gets; nothing is thrown out of the library.
template <class T, class Body>
T guarded(T failed, const Body& body) noexcept {
  try {
    last_error.clear();
    return body();
  } catch (const std::exception& error) {
    last_error = error.what();
    return failed;
  }
}

template <class T>
T failed(T failed, std::string message) {
  last_error = std::move(message);
  return failed;
}

// Whether the description makes sense; the product of the sizes must fit in memory.
bool describe(const AitEngineTensor& from, atb::Tensor& to) {
  if (from.rank < 0 || from.rank > AIT_ENGINE_MAX_RANK ||
      !atb::data_type_from_code(from.dtype, to.desc.dtype))
    return false;
  uint64_t count = atb::element_bytes(to.desc.dtype);
  for (int32_t i = 0; i < from.rank; ++i) {
    if (from.dims[i] < 0 ||
        __builtin_mul_overflow(count, static_cast<uint64_t>(from.dims[i]), &count) ||
        count > static_cast<uint64_t>(PTRDIFF_MAX))
      return false;
    to.desc.dims.push_back(from.dims[i]);
  }
  to.data = from.data;
  return true;
}

bool describe_all(const AitEngineTensor* from, size_t count, std::vector<atb::Tensor>& to) {
  to.resize(count);
  for (size_t i = 0; i < count; ++i)
    if (!describe(from[i], to[i])) return false;
  return true;
}

constexpr const char* kBadTensor = "a tensor has a type or shape that the library does not know";

int copy_logits(const ait::Result<std::vector<float>>& logits, float* to) {
  if (!logits) return failed(1, logits.error().text());
  std::copy(logits->begin(), logits->end(), to);
  return 0;
}

}  // namespace

const char* ait_engine_error(void) { return last_error.c_str(); }

const char* ait_engine_operation_types(void) {
  static const std::string types = [] {
    std::string list;
    for (const std::string& type : atb::operation_types()) list += (list.empty() ? "" : ",") + type;
    return list;
  }();
  return types.c_str();
}

void* ait_engine_operation_new(const char* type, const char* param) {
  return guarded<void*>(nullptr, [&]() -> void* {
    auto made = atb::CreateOperation(type, param);
    if (!made.status.ok()) return failed<void*>(nullptr, made.status.message());
    return new OperationHandle{std::move(made.operation), {}, {}};
  });
}

void ait_engine_operation_free(void* operation) { delete static_cast<OperationHandle*>(operation); }

const char* ait_engine_operation_param(void* operation) {
  auto& handle = *static_cast<OperationHandle*>(operation);
  handle.param = handle.operation->GetParam();
  return handle.param.c_str();
}

int ait_engine_operation_infer(void* operation, const AitEngineTensor* in, size_t in_count,
                               AitEngineTensor* out, size_t capacity) {
  return guarded(-1, [&] {
    const atb::Operation& op = *static_cast<OperationHandle*>(operation)->operation;
    if (in_count != op.GetInputNum())
      return failed(-1, op.GetName() + " takes " + std::to_string(op.GetInputNum()) +
                            " inputs, not " + std::to_string(in_count));
    std::vector<atb::Tensor> tensors;
    if (!describe_all(in, in_count, tensors)) return failed(-1, kBadTensor);
    std::vector<atb::TensorDesc> descs, outputs;
    for (const atb::Tensor& tensor : tensors) descs.push_back(tensor.desc);
    if (auto status = op.InferShape(descs, outputs); !status.ok())
      return failed(-1, status.message());
    if (outputs.size() > capacity) return failed(-1, "there is no room for all outputs");
    for (size_t i = 0; i < outputs.size(); ++i) {
      out[i] = {};
      out[i].dtype = static_cast<int32_t>(outputs[i].dtype);
      out[i].rank = static_cast<int32_t>(outputs[i].dims.size());
      std::copy(outputs[i].dims.begin(), outputs[i].dims.end(), out[i].dims);
    }
    return static_cast<int>(outputs.size());
  });
}

int ait_engine_operation_run(void* operation, const AitEngineTensor* in, size_t in_count,
                             const AitEngineTensor* out, size_t out_count) {
  return guarded(1, [&] {
    auto& handle = *static_cast<OperationHandle*>(operation);
    atb::VariantPack pack;
    if (!describe_all(in, in_count, pack.inTensors) ||
        !describe_all(out, out_count, pack.outTensors))
      return failed(1, kBadTensor);
    Device& device = the_device();
    const std::lock_guard lock(device.mutex);
    uint64_t bytes = 0;
    if (auto status = handle.operation->Setup(pack, bytes, device.context); !status.ok())
      return failed(1, status.message());
    handle.workspace.resize(bytes);
    auto status = handle.operation->Execute(pack, handle.workspace.data(), bytes, device.context);
    return status.ok() ? 0 : failed(1, status.message());
  });
}

void* ait_engine_model_load(const char* folder, const char* dtype, int left_padding,
                            const char* faults) {
  return guarded<void*>(nullptr, [&]() -> void* {
    atb_speed::LlamaOptions options;
    auto type = atb_speed::parse_model_type(dtype);
    if (!type) return failed<void*>(nullptr, type.error().text());
    options.type = *type;
    if (left_padding != 0) options.padding = atb_speed::Padding::kLeft;
    std::string_view rest(faults);
    while (!rest.empty()) {
      const size_t line = rest.find('\n');
      auto fault = atb_speed::parse_fault(std::string(rest.substr(0, line)));
      if (!fault) return failed<void*>(nullptr, fault.error().text());
      options.faults.push_back(*fault);
      rest = line == std::string_view::npos ? std::string_view() : rest.substr(line + 1);
    }
    auto model = atb_speed::Llama::load(folder, options);
    if (!model) return failed<void*>(nullptr, model.error().text());
    return model->release();
  });
}

void ait_engine_model_free(void* model) { delete static_cast<atb_speed::Llama*>(model); }

int64_t ait_engine_model_vocabulary(void* model) {
  return static_cast<atb_speed::Llama*>(model)->vocabulary();
}

int ait_engine_model_prefill(void* model, const int64_t* tokens, const size_t* lengths,
                             size_t batch, size_t more_tokens, float* logits) {
  return guarded(1, [&] {
    std::vector<std::vector<int64_t>> prompts;
    for (size_t b = 0; b < batch; ++b) {
      prompts.emplace_back(tokens, tokens + lengths[b]);
      tokens += lengths[b];
    }
    return copy_logits(static_cast<atb_speed::Llama*>(model)->prefill(prompts, more_tokens),
                       logits);
  });
}

int ait_engine_model_decode(void* model, const int64_t* tokens, size_t batch, float* logits) {
  return guarded(1, [&] {
    return copy_logits(static_cast<atb_speed::Llama*>(model)->decode({tokens, tokens + batch}),
                       logits);
  });
}
