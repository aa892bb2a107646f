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

uint64_t microseconds_since(Clock::time_point start) {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start).count());
}

// Ids count over the whole process, whatever thread sets an operation up first.
int64_t next_operation_id() {
  static std::atomic<int64_t> next{0};
  return next++;
}

// The misspelt keys are ATB's and literal. Caches this library does not have stay at zero.
std::string setup_text(const Statistic& s) {
  return fmt::format(
      "totalTime:{}, runnerCreateTime:{}, runnerSetupTime:{}, runnerFillHostTilingTime:{}, "
      "setupTotalCount:{}, setupCacheHitCount:{}, setupCacheMissCount:{}, "
      "opsInitLuanchBufferTime:0, tilingCacheHitCount:{}, tilingCacheMissCount:{}, "
      "tilingLocalCacheHitCount:{}, tilingGlobalCacheHitCount:0, kernelCacheGetTilingTime:0, "
      "kernelCacheAddTilingTime:0, kernelCacheCompareRunInfoTime:0, kernelCacheGetRunInfoTime:0",
      s.total_us, s.create_us, s.setup_us, s.tiling_us, s.setup_hits + s.setup_misses, s.setup_hits,
      s.setup_misses, s.tiling_hits, s.tiling_misses, s.tiling_hits);
}

std::string execute_text(const Statistic& s) {
  const uint64_t launch_us = s.total_us > s.kernel_us ? s.total_us - s.kernel_us : 0;
  return fmt::format(
      "totalTime:{}, streamSyncTime:0, tillingCopyTime:0, kernelExecuteTime:{}, launchTime:{}, "
      "preLaunchTime:0",
      s.total_us, s.kernel_us, launch_us);
}

Probe::Tensor describe(const Tensor& tensor, std::string file) {
  return {data_type_name(tensor.desc.dtype), "nd", tensor.desc.dims.text(), std::move(file)};
}

void save_one(const Tensor& tensor, const std::string& file) {
  if (tensor.data == nullptr || tensor.desc.bytes() == 0) return;
  try {
    Probe::SaveTensor(std::to_string(kFormatNd),
                      std::to_string(static_cast<int>(tensor.desc.dtype)), tensor.desc.dims.text(),
                      tensor.data, tensor.desc.bytes(), file);
  } catch (const std::exception&) {
    return;  // a probe's trouble is not the model's
  }
}

}  // namespace

std::string tensor_file(const std::string& folder, bool input, size_t index) {
  return fmt::format("{}/{}tensor{}.bin", folder, input ? "in" : "out", index);
}

Operation::~Operation() = default;

Status Operation::UpdateParam(const std::string&) {
  return invalid_param(name_ + " has no parameters");
}

std::string Operation::param_or_empty_object() const {
  std::string param = GetParam();
  return param.empty() ? "{}" : param;
}

void Operation::number(Operation* parent, size_t index, std::vector<int64_t> ids) {
  parent_ = parent;
  index_ = index;
  ids_ = std::move(ids);
  op_name_ = name_;
  for (const int64_t id : ids_) op_name_ += '_' + std::to_string(id);
  directory_ = name_;
  numbered_ = true;
}

Status check_pack(const Operation& operation, const VariantPack& pack) {
  const auto& name = operation.GetName();
  if (pack.inTensors.size() != operation.GetInputNum() ||
      pack.outTensors.size() != operation.GetOutputNum())
    return invalid_tensor(fmt::format("{} takes {} inputs and {} outputs, but was given {} and {}",
                                      name, operation.GetInputNum(), operation.GetOutputNum(),
                                      pack.inTensors.size(), pack.outTensors.size()));
  std::vector<TensorDesc> in, expected;
  in.reserve(pack.inTensors.size());
  for (const Tensor& tensor : pack.inTensors) in.push_back(tensor.desc);
  if (auto status = operation.InferShape(in, expected); !status.ok()) return status;
  for (size_t i = 0; i < expected.size(); ++i)
    if (!(pack.outTensors[i].desc == expected[i]))
      return invalid_tensor(fmt::format(
          "output {} of {} should be {} [{}], but is {} [{}]", i, name,
          data_type_name(expected[i].dtype), expected[i].dims.text(),
          data_type_name(pack.outTensors[i].desc.dtype), pack.outTensors[i].desc.dims.text()));
  for (const auto* tensors : {&pack.inTensors, &pack.outTensors})
    for (const Tensor& tensor : *tensors)
      if (tensor.data == nullptr && tensor.desc.bytes() > 0)
        return invalid_tensor("a tensor of " + name + " has no memory");
  return {};
}

Status Operation::Setup(const VariantPack& pack, uint64_t& workspace_bytes, Context& context) {
  const auto start = Clock::now();
  Statistic& statistic = context.statistic();
  statistic = {};
  if (auto status = check_pack(*this, pack); !status.ok()) return status;
  if (!numbered_) {
    number(nullptr, 0, {next_operation_id()});
    ask_children();
    if (Probe::ReportOperationGraphEnable())
      Probe::ReportOperationGraph(op_name_, graph_json(nullptr));
    statistic.create_us = microseconds_since(start);
  }
  need_save_ = Probe::IsTensorNeedSave(ids_, name_);
  if (Probe::IsSaveTensorDesc())
    set_directory(
        fmt::format("{}_{}/{}/{}_{}", context.device(), getpid(), setup_count_, ids_[0], name_));
  workspace_bytes = 0;
  const auto setup_start = Clock::now();
  if (auto status = setup_runner(pack, workspace_bytes, context); !status.ok()) return status;
  statistic.setup_us = microseconds_since(setup_start);
  const auto tiling_start = Clock::now();
  fill_tiling();
  statistic.tiling_us = microseconds_since(tiling_start);
  if (Probe::ReportOperationStatisticEnable()) {
    statistic.total_us = microseconds_since(start);
    Probe::ReportOperationSetupStatistic(setup_count_, op_name_, setup_text(statistic));
  }
  ++setup_count_;
  return {};
}

Status Operation::setup_runner(const VariantPack& pack, uint64_t& workspace_bytes,
                               Context& context) {
  if (auto status = prepare(pack, workspace_bytes, context); !status.ok()) return status;
  Probe::UpdateConfig();
  return {};
}

Status Operation::Execute(const VariantPack& pack, uint8_t* workspace, uint64_t workspace_bytes,
                          Context& context) {
  if (setup_count_ == 0) return invalid_param("set up " + name_ + " before executing it");
  if (workspace == nullptr && workspace_bytes > 0)
    return invalid_tensor(fmt::format("{} needs {} bytes of workspace", name_, workspace_bytes));
  const auto start = Clock::now();
  context.statistic() = {};
  auto status = execute_runner(pack, workspace, context);
  if (Probe::ReportOperationStatisticEnable()) {
    context.statistic().total_us = microseconds_since(start);
    Probe::ReportOperationExecuteStatistic(setup_count_ - 1, op_name_,
                                           execute_text(context.statistic()));
  }
  return status;
}

bool Operation::wanted() const {
  return Probe::IsExecuteCountInRange(execute_count_) && need_save_ &&
         Probe::IsSaveTensorInSpecificDir(directory_);
}

void Operation::save_tensors(const VariantPack& pack, const std::string& folder) const {
  // ATB waits for the device where the answer is yes; here all work is done already.
  Probe::IsSaveTensorData();
  for (size_t i = 0; i < pack.inTensors.size(); ++i)
    save_one(pack.inTensors[i], tensor_file(folder, true, i));
  for (size_t i = 0; i < pack.outTensors.size(); ++i)
    save_one(pack.outTensors[i], tensor_file(folder, false, i));
}

void Operation::report_io(const VariantPack& pack) const {
  const std::string folder = directory_ + (Probe::IsSaveTensorBefore() ? "/before" : "/after");
  std::vector<Probe::Tensor> in, out;
  for (size_t i = 0; i < pack.inTensors.size(); ++i)
    in.push_back(describe(pack.inTensors[i], tensor_file(folder, true, i)));
  for (size_t i = 0; i < pack.outTensors.size(); ++i)
    out.push_back(describe(pack.outTensors[i], tensor_file(folder, false, i)));
  Probe::ReportOperationIOTensor(execute_count_, op_name_, param_or_empty_object(), in, out);
}

Status Operation::execute_runner(const VariantPack& pack, uint8_t* workspace, Context& context) {
  uint64_t round = 0;
  if (save_tensor_on())
    round = context.place().folder.empty() ? task_round_.of(execute_count_) : context.place().round;
  const bool save_files = save_tensor_on() && save_tensor_wanted(runner_name(), round);
  if (save_files) save_tensor_files(pack.inTensors, true, legacy_path(context), "before", round);
  if (wanted() && Probe::IsSaveTensorBefore()) save_tensors(pack, directory_ + "/before");
  auto status = run(pack, workspace, context);
  // What failed is saved too: it is what somebody will look for.
  if (wanted() && Probe::IsSaveTensorAfter()) save_tensors(pack, directory_ + "/after");
  if (wanted() && Probe::IsSaveParam())
    if (const std::string param = GetParam(); !param.empty())
      Probe::SaveParam(param, directory_ + "/op_param.json");
  if (Probe::ReportOperationIOTensorEnable() && !is_graph()) report_io(pack);
  if (save_files) {
    save_tensor_files(pack.inTensors, true, legacy_path(context), "after", round);
    save_tensor_files(pack.outTensors, false, legacy_path(context), "after", round);
  }
  ++execute_count_;
  return status;
}

std::string Operation::runner_name() const {
  std::string name = name_;
  const std::string suffix = "Operation";
  if (name.size() > suffix.size() && name.ends_with(suffix))
    name.resize(name.size() - suffix.size());
  return name + "Runner";
}

std::string Operation::legacy_path(const Context& context) const {
  if (parent_ != nullptr)
    return fmt::format("{}/{}_{}", parent_->legacy_path(context), index_, runner_name());
  const auto& place = context.place();
  if (place.folder.empty()) return fmt::format("{}_{}", ids_[0], runner_name());
  return fmt::format("{}/{}_{}", place.folder, place.node, runner_name());
}

std::string Operation::graph_json(const GraphPlace* place) const {
  const std::string param = GetParam();
  return fmt::format(
      R"({{{}"inTensorNum":{},"opName":"{}","opType":"{}",{}"outTensorNum":{},"param":{}}})",
      place ? "\"inTensorIds\":" + place->in_ids + "," : "", GetInputNum(), op_name_, name_,
      place ? "\"outTensorIds\":" + place->out_ids + "," : "", GetOutputNum(),
      param.empty() ? "null" : param);
}

}  // namespace atb
