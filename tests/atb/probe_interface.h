// What the acceleration library lets a probe replace, as far as a binary interface goes: names,
// order of parameters and the layout of Tensor. Members 26 and 27 of the real class, which convert
// the library's own tensors, are never a probe's business and are left out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

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
  static bool IsExecuteCountInRange(uint64_t executeCount);
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
  static void ReportOperationIOTensor(size_t executeCount, const std::string& opName,
                                      const std::string& opParam,
                                      const std::vector<Tensor>& inTensors,
                                      const std::vector<Tensor>& outTensors);
  static bool ReportOperationStatisticEnable();
  static void ReportOperationSetupStatistic(size_t executeCount, const std::string& opName,
                                            const std::string& st);
  static void ReportOperationExecuteStatistic(size_t executeCount, const std::string& opName,
                                              const std::string& st);
  static bool ReportKernelIOTensorEnable();
  static void ReportKernelIOTensor(size_t executeCount, const std::string& opName,
                                   const std::string& opParam, const std::vector<Tensor>& inTensors,
                                   const std::vector<Tensor>& outTensors);
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
