// The bodies that the library ships and a preloaded probe replaces: they do nothing.
//
// For tests of the stand-in itself they can say what was called: with ATB_STAND_IN_TRACE naming a
// file, each call appends a line "name argument|argument|…". With ATB_STAND_IN_ANSWER=yes every
// question is answered with true, so that the trace reaches the sinks too.
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "probe_interface.h"

namespace {

bool answer() {
  static const char* const text = getenv("ATB_STAND_IN_ANSWER");
  static const bool yes = text != nullptr && strcmp(text, "yes") == 0;
  return yes;
}

// One write() for each line, so that threads and processes may share the file.
void trace(const char* function, const std::vector<std::string>& arguments = {}) {
  static const char* const path = getenv("ATB_STAND_IN_TRACE");
  if (path == nullptr) return;
  static const int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
  std::string line = function;
  for (size_t i = 0; i < arguments.size(); ++i) line += (i == 0 ? " " : "|") + arguments[i];
  line += '\n';
  if (write(file, line.data(), line.size()) != static_cast<ssize_t>(line.size())) abort();
}

bool ask(const char* function, const std::vector<std::string>& arguments = {}) {
  trace(function, arguments);
  return answer();
}

std::string joined(const std::vector<int64_t>& ids) {
  std::string text;
  for (const int64_t id : ids) text += (text.empty() ? "" : "_") + std::to_string(id);
  return text;
}

std::string joined(const std::vector<atb::Probe::Tensor>& tensors) {
  std::string text;
  for (const atb::Probe::Tensor& tensor : tensors) {
    text += (text.empty() ? "" : ";") + tensor.dtype + " " + tensor.format + " " + tensor.shape +
            " " + tensor.filePath;
  }
  return text;
}

}  // namespace

namespace atb {

bool Probe::IsTensorNeedSave(const std::vector<int64_t>& ids, const std::string& opType) {
  return ask("IsTensorNeedSave", {joined(ids), opType});
}
bool Probe::IsSaveTensorData() { return ask("IsSaveTensorData"); }
bool Probe::IsSaveTensorDesc() { return ask("IsSaveTensorDesc"); }
bool Probe::IsExecuteCountInRange(uint64_t executeCount) {
  return ask("IsExecuteCountInRange", {std::to_string(executeCount)});
}
bool Probe::IsSaveTensorBefore() { return ask("IsSaveTensorBefore"); }
bool Probe::IsSaveTensorAfter() { return ask("IsSaveTensorAfter"); }
void Probe::SaveTensor(const std::string& format, const std::string& dtype, const std::string& dims,
                       const void* /*hostData*/, uint64_t dataSize, const std::string& filePath) {
  trace("SaveTensor", {format, dtype, dims, std::to_string(dataSize), filePath});
}
bool Probe::IsSaveTiling() { return ask("IsSaveTiling"); }
void Probe::SaveTiling(const uint8_t* /*tilingBuffer*/, uint64_t tilingBufferSize,
                       const std::string& filePath) {
  trace("SaveTiling", {std::to_string(tilingBufferSize), filePath});
}
void Probe::SaveParam(const std::string& param, const std::string& filePath) {
  trace("SaveParam", {param, filePath});
}
bool Probe::IsSaveParam() { return ask("IsSaveParam"); }
bool Probe::ReportOperationIOTensorEnable() { return ask("ReportOperationIOTensorEnable"); }
void Probe::ReportOperationIOTensor(size_t executeCount, const std::string& opName,
                                    const std::string& opParam,
                                    const std::vector<Tensor>& inTensors,
                                    const std::vector<Tensor>& outTensors) {
  trace("ReportOperationIOTensor",
        {std::to_string(executeCount), opName, opParam, joined(inTensors), joined(outTensors)});
}
bool Probe::ReportOperationStatisticEnable() { return ask("ReportOperationStatisticEnable"); }
void Probe::ReportOperationSetupStatistic(size_t executeCount, const std::string& opName,
                                          const std::string& st) {
  trace("ReportOperationSetupStatistic", {std::to_string(executeCount), opName, st});
}
void Probe::ReportOperationExecuteStatistic(size_t executeCount, const std::string& opName,
                                            const std::string& st) {
  trace("ReportOperationExecuteStatistic", {std::to_string(executeCount), opName, st});
}
bool Probe::ReportKernelIOTensorEnable() { return ask("ReportKernelIOTensorEnable"); }
void Probe::ReportKernelIOTensor(size_t executeCount, const std::string& opName,
                                 const std::string& opParam, const std::vector<Tensor>& inTensors,
                                 const std::vector<Tensor>& outTensors) {
  trace("ReportKernelIOTensor",
        {std::to_string(executeCount), opName, opParam, joined(inTensors), joined(outTensors)});
}
bool Probe::ReportOperationGraphEnable() { return ask("ReportOperationGraphEnable"); }
void Probe::ReportOperationGraph(const std::string& opName, const std::string& graph) {
  trace("ReportOperationGraph", {opName, graph});
}
bool Probe::IsOverflowCheck() { return ask("IsOverflowCheck"); }
bool Probe::IsOverflowStop() { return ask("IsOverflowStop"); }
void Probe::ReportOverflowKernel(const std::string& kernelPath) {
  trace("ReportOverflowKernel", {kernelPath});
}
void Probe::UpdateConfig() { trace("UpdateConfig"); }

// The one question that the library itself answers with yes.
bool Probe::IsSaveTensorInSpecificDir(const std::string& tensorDir) {
  trace("IsSaveTensorInSpecificDir", {tensorDir});
  return true;
}

}  // namespace atb

namespace atb_speed {

bool SpeedProbe::IsReportModelTopoInfo(const std::string& modelName) {
  return ask("IsReportModelTopoInfo", {modelName});
}
void SpeedProbe::ReportModelTopoInfo(const std::string& modelName, const std::string& graph) {
  trace("ReportModelTopoInfo", {modelName, graph});
}

}  // namespace atb_speed
