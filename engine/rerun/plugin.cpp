// The acceleration library of the CPU as a plug-in of `ait llm opcheck -rerun`, and the example of
// one: from the description of an operation to one that is made, set up and executed.
#include "rerun/plugin.h"

#include <algorithm>
#include <cstring>
#include <exception>

#include "atb/operation.h"

namespace {

int refuse(AitRerunCall& call, int status, const std::string& message) {
  if (call.message_bytes > 0) {
    const size_t bytes = std::min(message.size(), call.message_bytes - 1);
    std::memcpy(call.message, message.data(), bytes);
    call.message[bytes] = 0;
  }
  return status;
}

// What an operation cannot do it says when it is made or shown its tensors.
int refuse(AitRerunCall& call, const atb::Status& status) {
  return refuse(
      call,
      status.code() == atb::ErrorType::kInvalidParam ? AIT_RERUN_UNSUPPORTED : AIT_RERUN_FAILED,
      status.message());
}

bool describe(const AitRerunTensor& from, atb::Tensor& to) {
  if (from.is_given == 0 || from.format != atb::kFormatNd ||
      !atb::data_type_from_code(from.dtype, to.desc.dtype))
    return false;
  for (int32_t i = 0; i < from.rank; ++i) to.desc.dims.push_back(from.dims[i]);
  to.data = from.data;
  return true;
}

// Runs `body` on the operation that the call is about, with its inputs.
template <class Body>
int with_operation(AitRerunCall* call, const Body& body) noexcept {
  try {
    auto made = atb::CreateOperation(call->operation, call->param);
    if (!made.status.ok()) return refuse(*call, AIT_RERUN_UNSUPPORTED, made.status.message());
    if (call->input_count != made.operation->GetInputNum())
      return refuse(*call, AIT_RERUN_UNSUPPORTED,
                    made.operation->GetName() + " takes " +
                        std::to_string(made.operation->GetInputNum()) + " inputs, not " +
                        std::to_string(call->input_count));
    atb::VariantPack pack;
    for (uint32_t i = 0; i < call->input_count; ++i)
      if (!describe(call->inputs[i], pack.inTensors.emplace_back()))
        return refuse(*call, AIT_RERUN_UNSUPPORTED,
                      "input " + std::to_string(i) + " has a type or layout that is not supported");
    return body(*made.operation, pack);
  } catch (const std::exception& error) {
    return refuse(*call, AIT_RERUN_FAILED, error.what());
  }
}

int infer(AitRerunCall* call) {
  return with_operation(call, [&](atb::Operation& operation, atb::VariantPack& pack) {
    std::vector<atb::TensorDesc> inputs, outputs;
    for (const atb::Tensor& tensor : pack.inTensors) inputs.push_back(tensor.desc);
    if (auto status = operation.InferShape(inputs, outputs); !status.ok())
      return refuse(*call, status);
    if (outputs.size() > call->output_capacity)
      return refuse(*call, AIT_RERUN_FAILED, "there is no room for all outputs");
    call->output_count = static_cast<uint32_t>(outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      AitRerunTensor& to = call->outputs[i];
      to.dtype = static_cast<int32_t>(outputs[i].dtype);
      to.format = atb::kFormatNd;
      to.rank = static_cast<int32_t>(outputs[i].dims.size());
      std::copy(outputs[i].dims.begin(), outputs[i].dims.end(), to.dims);
    }
    return AIT_RERUN_OK;
  });
}

int run(AitRerunCall* call) {
  return with_operation(call, [&](atb::Operation& operation, atb::VariantPack& pack) {
    for (uint32_t i = 0; i < call->output_count; ++i)
      describe(call->outputs[i], pack.outTensors.emplace_back());
    atb::Context context(call->device);
    uint64_t bytes = 0;
    if (auto status = operation.Setup(pack, bytes, context); !status.ok())
      return refuse(*call, status);
    std::vector<uint8_t> workspace(bytes);
    if (auto status = operation.Execute(pack, workspace.data(), bytes, context); !status.ok())
      return refuse(*call, status);
    return AIT_RERUN_OK;
  });
}

}  // namespace

const AitRerunPlugin* ait_rerun_plugin(void) {
  static const AitRerunPlugin plugin = {AIT_RERUN_ABI, "the CPU engine of ait (no NPU)", infer,
                                        run};
  return &plugin;
}
