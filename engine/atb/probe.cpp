// A file of its own: a compiler that sees a body next to its caller may inline it, and then no
// preloaded probe is ever asked.
#include "atb/probe.h"

namespace atb {

bool Probe::IsTensorNeedSave(const std::vector<int64_t>&, const std::string&) { return false; }
bool Probe::IsSaveTensorData() { return false; }
bool Probe::IsSaveTensorDesc() { return false; }
bool Probe::IsExecuteCountInRange(const uint64_t) { return false; }
bool Probe::IsSaveTensorBefore() { return false; }
bool Probe::IsSaveTensorAfter() { return false; }
void Probe::SaveTensor(const std::string&, const std::string&, const std::string&, const void*,
                       uint64_t, const std::string&) {}
bool Probe::IsSaveTiling() { return false; }
void Probe::SaveTiling(const uint8_t*, uint64_t, const std::string&) {}
void Probe::SaveParam(const std::string&, const std::string&) {}
bool Probe::IsSaveParam() { return false; }
bool Probe::ReportOperationIOTensorEnable() { return false; }
void Probe::ReportOperationIOTensor(const size_t, const std::string&, const std::string&,
                                    const std::vector<Probe::Tensor>&,
                                    const std::vector<Probe::Tensor>&) {}
bool Probe::ReportOperationStatisticEnable() { return false; }
void Probe::ReportOperationSetupStatistic(const size_t, const std::string&, const std::string&) {}
void Probe::ReportOperationExecuteStatistic(const size_t, const std::string&, const std::string&) {}
bool Probe::ReportKernelIOTensorEnable() { return false; }
void Probe::ReportKernelIOTensor(const size_t, const std::string&, const std::string&,
                                 const std::vector<Probe::Tensor>&,
                                 const std::vector<Probe::Tensor>&) {}
bool Probe::ReportOperationGraphEnable() { return false; }
void Probe::ReportOperationGraph(const std::string&, const std::string&) {}
bool Probe::IsOverflowCheck() { return false; }
bool Probe::IsOverflowStop() { return false; }
void Probe::ReportOverflowKernel(const std::string&) {}
void Probe::UpdateConfig() {}
// True, unlike the others: without a configuration file every directory is wanted.
bool Probe::IsSaveTensorInSpecificDir(const std::string&) { return true; }

}  // namespace atb

namespace atb_speed {

bool SpeedProbe::IsReportModelTopoInfo(const std::string&) { return false; }
void SpeedProbe::ReportModelTopoInfo(const std::string&, const std::string&) {}

}  // namespace atb_speed
