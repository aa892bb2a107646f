// Where the library lets itself be watched.
//
// These functions are called at fixed points of every operation (see docs/engine.md). The bodies
// here answer "no" and do nothing; a library that is preloaded with the same symbols answers
// instead. Names, parameter types and their order are therefore an ABI, ATB's, and must not change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "atb/types.h"

// NOLINTBEGIN(readability-identifier-naming): all names are ATB's.

namespace atb {

class AIT_ATB_API Probe {
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

// The same for whole models.
class AIT_ATB_API SpeedProbe {
 public:
  static bool IsReportModelTopoInfo(const std::string& modelName);
  static void ReportModelTopoInfo(const std::string& modelName, const std::string& graph);
};

}  // namespace atb_speed

// NOLINTEND(readability-identifier-naming)
