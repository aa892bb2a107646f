#include "atb/operation.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <exception>

#include "atb/probe.h"
#include "atb/save_tensor.h"

namespace atb {
namespace {

using Clock = std::chrono::steady_clock;

uint64_t MicrosecondsSince(Clock::time_point start) {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start).count());
}

// Ids count over the whole process, whatever thread sets an operation up first.
int64_t NextOperationId() {
  static std::atomic<int64_t> next{0};
  return next++;
}

// The misspelt keys are ATB's and literal. Caches this library does not have stay at zero.
std::string SetupText(const Statistic& s) {
  return fmt::format(
      "totalTime:{}, runnerCreateTime:{}, runnerSetupTime:{}, runnerFillHostTilingTime:{}, "
      "setupTotalCount:{}, setupCacheHitCount:{}, setupCacheMissCount:{}, "
      "opsInitLuanchBufferTime:0, tilingCacheHitCount:{}, tilingCacheMissCount:{}, "
      "tilingLocalCacheHitCount:{}, tilingGlobalCacheHitCount:0, kernelCacheGetTilingTime:0, "
      "kernelCacheAddTilingTime:0, kernelCacheCompareRunInfoTime:0, kernelCacheGetRunInfoTime:0",
      s.total_us, s.create_us, s.setup_us, s.tiling_us, s.setup_hits + s.setup_misses, s.setup_hits,
      s.setup_misses, s.tiling_hits, s.tiling_misses, s.tiling_hits);
}

std::string ExecuteText(const Statistic& s) {
  const uint64_t launch_us = s.total_us > s.kernel_us ? s.total_us - s.kernel_us : 0;
  return fmt::format(
      "totalTime:{}, streamSyncTime:0, tillingCopyTime:0, kernelExecuteTime:{}, launchTime:{}, "
      "preLaunchTime:0",
      s.total_us, s.kernel_us, launch_us);
}

Probe::Tensor Describe(const Tensor& tensor, std::string file) {
  return {DataTypeName(tensor.desc.dtype), "nd", tensor.desc.dims.Text(), std::move(file)};
}

void SaveOne(const Tensor& tensor, const std::string& file) {
  if (tensor.data == nullptr || tensor.desc.Bytes() == 0) return;
  try {
    Probe::SaveTensor(std::to_string(kFormatNd),
                      std::to_string(static_cast<int>(tensor.desc.dtype)), tensor.desc.dims.Text(),
                      tensor.data, tensor.desc.Bytes(), file);
  } catch (const std::exception&) {
    return;  // a probe's trouble is not the model's
  }
}

}  // namespace

std::string TensorFile(const std::string& folder, bool input, size_t index) {
  return fmt::format("{}/{}tensor{}.bin", folder, input ? "in" : "out", index);
}

Operation::~Operation() = default;

Status Operation::UpdateParam(const std::string&) {
  return InvalidParam(name_ + " has no parameters");
}

std::string Operation::ParamOrEmptyObject() const {
  std::string param = GetParam();
  return param.empty() ? "{}" : param;
}

void Operation::Number(Operation* parent, size_t index, std::vector<int64_t> ids) {
  parent_ = parent;
  index_ = index;
  ids_ = std::move(ids);
  op_name_ = name_;
  for (const int64_t id : ids_) op_name_ += '_' + std::to_string(id);
  directory_ = name_;
  numbered_ = true;
}

Status CheckPack(const Operation& operation, const VariantPack& pack) {
  const auto& name = operation.GetName();
  if (pack.inTensors.size() != operation.GetInputNum() ||
      pack.outTensors.size() != operation.GetOutputNum())
    return InvalidTensor(fmt::format("{} takes {} inputs and {} outputs, but was given {} and {}",
                                     name, operation.GetInputNum(), operation.GetOutputNum(),
                                     pack.inTensors.size(), pack.outTensors.size()));
  std::vector<TensorDesc> in, expected;
  in.reserve(pack.inTensors.size());
  for (const Tensor& tensor : pack.inTensors) in.push_back(tensor.desc);
  if (auto status = operation.InferShape(in, expected); !status.ok()) return status;
  for (size_t i = 0; i < expected.size(); ++i)
    if (!(pack.outTensors[i].desc == expected[i]))
      return InvalidTensor(fmt::format("output {} of {} should be {} [{}], but is {} [{}]", i, name,
                                       DataTypeName(expected[i].dtype), expected[i].dims.Text(),
                                       DataTypeName(pack.outTensors[i].desc.dtype),
                                       pack.outTensors[i].desc.dims.Text()));
  for (const auto* tensors : {&pack.inTensors, &pack.outTensors})
    for (const Tensor& tensor : *tensors)
      if (tensor.data == nullptr && tensor.desc.Bytes() > 0)
        return InvalidTensor("a tensor of " + name + " has no memory");
  return {};
}

Status Operation::Setup(const VariantPack& pack, uint64_t& workspace_bytes, Context& context) {
  const auto start = Clock::now();
  Statistic& statistic = context.statistic();
  statistic = {};
  if (auto status = CheckPack(*this, pack); !status.ok()) return status;
  if (!numbered_) {
    Number(nullptr, 0, {NextOperationId()});
    AskChildren();
    if (Probe::ReportOperationGraphEnable())
      Probe::ReportOperationGraph(op_name_, GraphJson(nullptr));
    statistic.create_us = MicrosecondsSince(start);
  }
  need_save_ = Probe::IsTensorNeedSave(ids_, name_);
  if (Probe::IsSaveTensorDesc())
    SetDirectory(
        fmt::format("{}_{}/{}/{}_{}", context.device(), getpid(), setup_count_, ids_[0], name_));
  workspace_bytes = 0;
  const auto setup_start = Clock::now();
  if (auto status = SetupRunner(pack, workspace_bytes, context); !status.ok()) return status;
  statistic.setup_us = MicrosecondsSince(setup_start);
  const auto tiling_start = Clock::now();
  FillTiling();
  statistic.tiling_us = MicrosecondsSince(tiling_start);
  if (Probe::ReportOperationStatisticEnable()) {
    statistic.total_us = MicrosecondsSince(start);
    Probe::ReportOperationSetupStatistic(setup_count_, op_name_, SetupText(statistic));
  }
  ++setup_count_;
  return {};
}

Status Operation::SetupRunner(const VariantPack& pack, uint64_t& workspace_bytes,
                              Context& context) {
  if (auto status = Prepare(pack, workspace_bytes, context); !status.ok()) return status;
  Probe::UpdateConfig();
  return {};
}

Status Operation::Execute(const VariantPack& pack, uint8_t* workspace, uint64_t workspace_bytes,
                          Context& context) {
  if (setup_count_ == 0) return InvalidParam("set up " + name_ + " before executing it");
  if (workspace == nullptr && workspace_bytes > 0)
    return InvalidTensor(fmt::format("{} needs {} bytes of workspace", name_, workspace_bytes));
  const auto start = Clock::now();
  context.statistic() = {};
  auto status = ExecuteRunner(pack, workspace, context);
  if (Probe::ReportOperationStatisticEnable()) {
    context.statistic().total_us = MicrosecondsSince(start);
    Probe::ReportOperationExecuteStatistic(setup_count_ - 1, op_name_,
                                           ExecuteText(context.statistic()));
  }
  return status;
}

bool Operation::Wanted() const {
  return Probe::IsExecuteCountInRange(execute_count_) && need_save_ &&
         Probe::IsSaveTensorInSpecificDir(directory_);
}

void Operation::SaveTensors(const VariantPack& pack, const std::string& folder) const {
  // ATB waits for the device where the answer is yes; here all work is done already.
  Probe::IsSaveTensorData();
  for (size_t i = 0; i < pack.inTensors.size(); ++i)
    SaveOne(pack.inTensors[i], TensorFile(folder, true, i));
  for (size_t i = 0; i < pack.outTensors.size(); ++i)
    SaveOne(pack.outTensors[i], TensorFile(folder, false, i));
}

void Operation::ReportIO(const VariantPack& pack) const {
  const std::string folder = directory_ + (Probe::IsSaveTensorBefore() ? "/before" : "/after");
  std::vector<Probe::Tensor> in, out;
  for (size_t i = 0; i < pack.inTensors.size(); ++i)
    in.push_back(Describe(pack.inTensors[i], TensorFile(folder, true, i)));
  for (size_t i = 0; i < pack.outTensors.size(); ++i)
    out.push_back(Describe(pack.outTensors[i], TensorFile(folder, false, i)));
  Probe::ReportOperationIOTensor(execute_count_, op_name_, ParamOrEmptyObject(), in, out);
}

Status Operation::ExecuteRunner(const VariantPack& pack, uint8_t* workspace, Context& context) {
  uint64_t round = 0;
  if (SaveTensorOn())
    round = context.place().folder.empty() ? task_round_.Of(execute_count_) : context.place().round;
  const bool save_files = SaveTensorOn() && SaveTensorWanted(RunnerName(), round);
  if (save_files) SaveTensorFiles(pack.inTensors, true, LegacyPath(context), "before", round);
  if (Wanted() && Probe::IsSaveTensorBefore()) SaveTensors(pack, directory_ + "/before");
  auto status = Run(pack, workspace, context);
  // What failed is saved too: it is what somebody will look for.
  if (Wanted() && Probe::IsSaveTensorAfter()) SaveTensors(pack, directory_ + "/after");
  if (Wanted() && Probe::IsSaveParam())
    if (const std::string param = GetParam(); !param.empty())
      Probe::SaveParam(param, directory_ + "/op_param.json");
  if (Probe::ReportOperationIOTensorEnable() && !IsGraph()) ReportIO(pack);
  if (save_files) {
    SaveTensorFiles(pack.inTensors, true, LegacyPath(context), "after", round);
    SaveTensorFiles(pack.outTensors, false, LegacyPath(context), "after", round);
  }
  ++execute_count_;
  return status;
}

std::string Operation::RunnerName() const {
  std::string name = name_;
  const std::string suffix = "Operation";
  if (name.size() > suffix.size() && name.ends_with(suffix))
    name.resize(name.size() - suffix.size());
  return name + "Runner";
}

std::string Operation::LegacyPath(const Context& context) const {
  if (parent_ != nullptr)
    return fmt::format("{}/{}_{}", parent_->LegacyPath(context), index_, RunnerName());
  const auto& place = context.place();
  if (place.folder.empty()) return fmt::format("{}_{}", ids_[0], RunnerName());
  return fmt::format("{}/{}_{}", place.folder, place.node, RunnerName());
}

std::string Operation::GraphJson(const GraphPlace* place) const {
  const std::string param = GetParam();
  return fmt::format(
      R"({{{}"inTensorNum":{},"opName":"{}","opType":"{}",{}"outTensorNum":{},"param":{}}})",
      place ? "\"inTensorIds\":" + place->in_ids + "," : "", GetInputNum(), op_name_, name_,
      place ? "\"outTensorIds\":" + place->out_ids + "," : "", GetOutputNum(),
      param.empty() ? "null" : param);
}

}  // namespace atb
