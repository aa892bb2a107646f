// The interface that the acceleration library calls, as its header declares it: compiled twice,
// once for each string ABI, into one shared object. Functions without strings have the same name in
// both and come from the copy with AIT_PROBE_PLAIN_NAMES. Only inline code of the standard library
// is used.
#include <cstdint>
#include <string>
#include <vector>

#include "probe.h"

// NOLINTBEGIN(readability-identifier-naming): all names are the acceleration library's.

namespace atb {

class Probe {
 public:
  struct Tensor {
    std::string dtype;
    std::string format;
    std::string shape;
    std::string filePath;
  };

  static bool IsTensorNeedSave(const std::vector<int64_t>& ids, const std::string& opType);
  static bool IsSaveTensorData();
  static bool IsSaveTensorDesc();
  static bool IsExecuteCountInRange(const uint64_t executeCount);
  static bool IsSaveTensorBefore();
  static bool IsSaveTensorAfter();
  static void SaveTensor(const std::string& format, const std::string& dtype,
                         const std::string& dims, const void* hostData, uint64_t dataSize,
                         const std::string& filePath);
  static bool IsSaveTiling();
  static void SaveTiling(const uint8_t* tilingBuffer, uint64_t tilingBufferSize,
                         const std::string& filePath);
  static void SaveParam(const std::string& param, const std::string& filePath);
  static bool IsSaveParam();
  static bool ReportOperationIOTensorEnable();
  static void ReportOperationIOTensor(const size_t executeCount, const std::string& opName,
                                      const std::string& opParam,
                                      const std::vector<Probe::Tensor>& inTensors,
                                      const std::vector<Probe::Tensor>& outTensors);
  static bool ReportOperationStatisticEnable();
  static void ReportOperationSetupStatistic(const size_t executeCount, const std::string& opName,
                                            const std::string& st);
  static void ReportOperationExecuteStatistic(const size_t executeCount, const std::string& opName,
                                              const std::string& st);
  static bool ReportKernelIOTensorEnable();
  static void ReportKernelIOTensor(const size_t executeCount, const std::string& opName,
                                   const std::string& opParam,
                                   const std::vector<Probe::Tensor>& inTensors,
                                   const std::vector<Probe::Tensor>& outTensors);
  static bool ReportOperationGraphEnable();
  static void ReportOperationGraph(const std::string& opName, const std::string& graph);
  static bool IsOverflowCheck();
  static bool IsOverflowStop();
  static void ReportOverflowKernel(const std::string& kernelPath);
  static void UpdateConfig();
  static bool IsSaveTensorInSpecificDir(const std::string& tensorDir);
};

}  // namespace atb

namespace atb_speed {

class SpeedProbe {
 public:
  static bool IsReportModelTopoInfo(const std::string& modelName);
  static void ReportModelTopoInfo(const std::string& modelName, const std::string& graph);
};

}  // namespace atb_speed

namespace {

using namespace ait;

// Not std::string's own conversion: that one is a member which libstdc++.so may be asked for.
std::string_view view(const std::string& text) { return {text.data(), text.size()}; }

probe::RowTensors row_tensors(const std::vector<atb::Probe::Tensor>& tensors) {
  return {tensors.data(), tensors.size(), [](const void* context, size_t index) {
            const auto& tensor = static_cast<const atb::Probe::Tensor*>(context)[index];
            return probe::RowTensor{view(tensor.dtype), view(tensor.format), view(tensor.shape),
                                    view(tensor.filePath)};
          }};
}

}  // namespace

namespace atb {

bool Probe::IsTensorNeedSave(const std::vector<int64_t>& ids, const std::string& opType) {
  return probe::is_operation_wanted(ids.data(), ids.size(), view(opType));
}

void Probe::SaveTensor(const std::string& format, const std::string& dtype, const std::string& dims,
                       const void* hostData, uint64_t dataSize, const std::string& filePath) {
  probe::save_tensor({view(format), view(dtype), view(dims)}, hostData, dataSize, view(filePath));
}

void Probe::SaveTiling(const uint8_t* tilingBuffer, uint64_t tilingBufferSize,
                       const std::string& filePath) {
  probe::save_tiling(tilingBuffer, tilingBufferSize, view(filePath));
}

void Probe::SaveParam(const std::string& param, const std::string& filePath) {
  probe::save_parameter(view(param), view(filePath));
}

void Probe::ReportOperationIOTensor(const size_t executeCount, const std::string& opName,
                                    const std::string& opParam,
                                    const std::vector<Probe::Tensor>& inTensors,
                                    const std::vector<Probe::Tensor>& outTensors) {
  probe::add_row(probe::Table::kOperations, executeCount, view(opName), view(opParam),
                 row_tensors(inTensors), row_tensors(outTensors));
}

void Probe::ReportKernelIOTensor(const size_t executeCount, const std::string& opName,
                                 const std::string& opParam,
                                 const std::vector<Probe::Tensor>& inTensors,
                                 const std::vector<Probe::Tensor>& outTensors) {
  probe::add_row(probe::Table::kKernels, executeCount, view(opName), view(opParam),
                 row_tensors(inTensors), row_tensors(outTensors));
}

void Probe::ReportOperationSetupStatistic(const size_t executeCount, const std::string& opName,
                                          const std::string& st) {
  probe::add_statistic(executeCount, view(opName), view(st));
}

void Probe::ReportOperationExecuteStatistic(const size_t executeCount, const std::string& opName,
                                            const std::string& st) {
  probe::add_statistic(executeCount, view(opName), view(st));
}

void Probe::ReportOperationGraph(const std::string& opName, const std::string& graph) {
  probe::save_layer_graph(view(opName), view(graph));
}

void Probe::ReportOverflowKernel(const std::string& kernelPath) {
  probe::report_overflow(view(kernelPath));
}

// Asked before the library copies anything from the device: a tensor of another device need not be.
bool Probe::IsSaveTensorInSpecificDir(const std::string& tensorDir) {
  return probe::wants_device(probe::settings(), view(tensorDir));
}

#ifdef AIT_PROBE_PLAIN_NAMES

bool Probe::IsSaveTensorData() { return probe::settings().data && !probe::settings().dry_run; }
// Whatever is recorded, the library builds its paths only if told so.
bool Probe::IsSaveTensorDesc() { return true; }
bool Probe::IsExecuteCountInRange(const uint64_t executeCount) {
  return probe::is_round_wanted(executeCount);
}
bool Probe::IsSaveTensorBefore() { return probe::settings().before; }
bool Probe::IsSaveTensorAfter() { return probe::settings().after; }
bool Probe::IsSaveTiling() { return probe::settings().tiling; }
bool Probe::IsSaveParam() { return true; }
bool Probe::ReportOperationIOTensorEnable() { return probe::settings().operations; }
bool Probe::ReportOperationStatisticEnable() { return probe::settings().statistics; }
bool Probe::ReportKernelIOTensorEnable() { return probe::settings().kernels; }
bool Probe::ReportOperationGraphEnable() {
  return probe::settings().layers || probe::settings().models;
}
bool Probe::IsOverflowCheck() { return probe::is_overflow_checked(); }
bool Probe::IsOverflowStop() { return probe::settings().stop_at_overflow; }
void Probe::UpdateConfig() {}

#endif

}  // namespace atb

namespace atb_speed {

bool SpeedProbe::IsReportModelTopoInfo(const std::string& modelName) {
  return probe::is_model_wanted(view(modelName));
}

void SpeedProbe::ReportModelTopoInfo(const std::string& modelName, const std::string& graph) {
  probe::save_model_graph(view(modelName), view(graph));
}

}  // namespace atb_speed

// NOLINTEND(readability-identifier-naming)
