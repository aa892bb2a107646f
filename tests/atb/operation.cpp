#include "operation.h"

#include <unistd.h>

#include <atomic>
#include <cstring>
#include <memory>

#include "content.h"
#include "probe_interface.h"

namespace atb {
namespace {

std::atomic<int64_t> next_operation_id{0};

std::string joined(const std::vector<int64_t>& numbers, const char* separator) {
  std::string text;
  for (size_t i = 0; i < numbers.size(); ++i) {
    text += (i == 0 ? "" : separator) + std::to_string(numbers[i]);
  }
  return text;
}

std::vector<int64_t> appended(std::vector<int64_t> ids, size_t index) {
  ids.push_back(static_cast<int64_t>(index));
  return ids;
}

uint64_t data_bytes(const TensorDescription& tensor) {
  uint64_t bytes = element_bytes(tensor.dtype);
  for (const int64_t size : tensor.dims) bytes *= static_cast<uint64_t>(size);
  return bytes;
}

std::string process_folder(const Context& context) {
  return std::to_string(context.settings().device) + "_" + std::to_string(getpid());
}

std::string json_list(const std::vector<int>& numbers) {
  std::string text = "[";
  for (size_t i = 0; i < numbers.size(); ++i)
    text += (i == 0 ? "" : ",") + std::to_string(numbers[i]);
  return text + "]";
}

// The library blames the folder "before" whenever that moment is recorded at all, and leaves out
// the names of parameters.
std::vector<Probe::Tensor> reported(const std::vector<TensorDescription>& tensors,
                                    const std::string& folder, const char* prefix) {
  std::vector<Probe::Tensor> list;
  for (size_t i = 0; i < tensors.size(); ++i) {
    list.push_back({dtype_name(tensors[i].dtype), format_name(tensors[i].format),
                    joined(tensors[i].dims, ","),
                    folder + "/" + prefix + std::to_string(i) + ".bin"});
  }
  return list;
}

// A number for each key, so that a wrong line is told from the right one.
std::string statistic(const std::vector<const char*>& keys, uint64_t first_value, uint64_t step) {
  std::string text;
  for (size_t i = 0; i < keys.size(); ++i) {
    text +=
        (i == 0 ? "" : ", ") + std::string(keys[i]) + ":" + std::to_string(first_value + step * i);
  }
  return text;
}

const std::vector<const char*> kSetupKeys = {"totalTime",
                                             "runnerCreateTime",
                                             "runnerSetupTime",
                                             "runnerFillHostTilingTime",
                                             "setupTotalCount",
                                             "setupCacheHitCount",
                                             "setupCacheMissCount",
                                             "opsInitLuanchBufferTime",
                                             "tilingCacheHitCount",
                                             "tilingCacheMissCount",
                                             "tilingLocalCacheHitCount",
                                             "tilingGlobalCacheHitCount",
                                             "kernelCacheGetTilingTime",
                                             "kernelCacheAddTilingTime",
                                             "kernelCacheCompareRunInfoTime",
                                             "kernelCacheGetRunInfoTime"};
const std::vector<const char*> kExecuteKeys = {"totalTime",       "streamSyncTime",
                                               "tillingCopyTime", "kernelExecuteTime",
                                               "launchTime",      "preLaunchTime"};

}  // namespace

void set_next_operation_id(int64_t id) { next_operation_id = id; }

Context::Context(const Settings& settings) : settings_(settings) { Probe::IsOverflowCheck(); }
Context::~Context() { Probe::IsOverflowCheck(); }
void Context::set_stream() { Probe::IsOverflowCheck(); }

std::string Operation::Runner::name_with_ids() const {
  return description->type + "_" + joined(ids, "_");
}

std::string Operation::Runner::kernel_folder(size_t kernel) const {
  return "/" + std::to_string(kernel) + "_" + description->kernels[kernel].name;
}

std::string Operation::Runner::content_key(const Context& context) const {
  return process_folder(context) + "/" + std::to_string(executions) + "/" + path;
}

Operation::Operation(OperationDescription description) : description_(std::move(description)) {}

void Operation::setup(Context& context) {
  if (!is_set_up_) {
    number(runner_, description_, {next_operation_id++}, "");
    ask_children(runner_);
    if (Probe::ReportOperationGraphEnable()) {
      Probe::ReportOperationGraph(runner_.name_with_ids(), graph_json(runner_, nullptr));
    }
    is_set_up_ = true;
  }
  runner_.wanted = Probe::IsTensorNeedSave(runner_.ids, description_.type);
  if (Probe::IsSaveTensorDesc()) {
    rebuild_dirs(runner_, process_folder(context) + "/" + std::to_string(setups_) + "/");
  }
  setup_runner(runner_);
  fill_tiling(runner_, context);
  const bool old = context.settings().old_statistics;
  const uint64_t count = setups_++;
  if (Probe::ReportOperationStatisticEnable()) {
    // Since 8.5 the record is cleared, and the count raised, before they are reported.
    Probe::ReportOperationSetupStatistic(old ? count : count + 1, runner_.name_with_ids(),
                                         statistic(kSetupKeys, old ? count : 0, old ? 10 : 0));
  }
}

int Operation::execute(Context& context) {
  const uint64_t count = runner_.executions;
  const int status = execute_runner(runner_, context);
  if (context.settings().old_statistics && Probe::ReportOperationStatisticEnable()) {
    Probe::ReportOperationExecuteStatistic(count, runner_.name_with_ids(),
                                           statistic(kExecuteKeys, count, 7));
  }
  return status;
}

void Operation::number(Runner& runner, const OperationDescription& description,
                       const std::vector<int64_t>& ids, const std::string& parent_path) {
  runner.description = &description;
  runner.ids = ids;
  runner.path = parent_path + std::to_string(ids.back()) + "_" + description.type;
  runner.dir = description.type;  // until, and unless, the probe wants descriptions
  runner.children.resize(description.nodes.size());
  for (size_t i = 0; i < description.nodes.size(); ++i) {
    number(runner.children[i], description.nodes[i].operation, appended(ids, i), runner.path + "/");
  }
}

void Operation::ask_children(Runner& runner) {
  for (Runner& child : runner.children) {
    ask_children(child);
    child.wanted = Probe::IsTensorNeedSave(child.ids, child.description->type);
  }
}

void Operation::rebuild_dirs(Runner& runner, const std::string& root) {
  runner.dir = root + runner.path;
  for (Runner& child : runner.children) rebuild_dirs(child, root);
}

void Operation::setup_runner(Runner& runner) {
  for (Runner& child : runner.children) setup_runner(child);
  const std::vector<Kernel>& kernels = runner.description->kernels;
  if (runner.kernel_wanted.empty()) {
    for (size_t i = 0; i < kernels.size(); ++i) {
      // The operation's type, not the kernel's name.
      runner.kernel_wanted.push_back(
          Probe::IsTensorNeedSave(appended(runner.ids, i), runner.description->type));
    }
  } else {
    // From the second time on tiling comes from a cache, and is copied only if somebody wants it.
    for (const Kernel& kernel : kernels) {
      if (kernel.tiling_bytes > 0) Probe::IsSaveTiling();
    }
  }
  Probe::UpdateConfig();
}

void Operation::fill_tiling(const Runner& runner, const Context& context) {
  for (const Runner& child : runner.children) fill_tiling(child, context);
  for (size_t i = 0; i < runner.description->kernels.size(); ++i) {
    const uint64_t bytes = runner.description->kernels[i].tiling_bytes;
    const std::string dir = runner.dir + runner.kernel_folder(i);
    if (bytes == 0 || !runner.kernel_wanted[i] ||
        !Probe::IsExecuteCountInRange(runner.executions) || !Probe::IsSaveTiling() ||
        !Probe::IsSaveTensorInSpecificDir(dir)) {
      continue;
    }
    const std::vector<uint8_t> tiling =
        content(runner.content_key(context) + runner.kernel_folder(i) + "|tiling", bytes, -1);
    Probe::SaveTiling(tiling.data(), bytes, dir + "/kernel_tilingdata.bin");
  }
}

bool Operation::is_selected(const Runner& runner) {
  return Probe::IsExecuteCountInRange(runner.executions) && runner.wanted &&
         Probe::IsSaveTensorInSpecificDir(runner.dir);
}

int Operation::execute_runner(Runner& runner, const Context& context) {
  const OperationDescription& description = *runner.description;
  if (is_selected(runner) && Probe::IsSaveTensorBefore()) save(runner, context, "", true);

  int status = kOk;
  for (size_t i = 0; i < runner.children.size() && status == kOk; ++i) {
    status = execute_runner(runner.children[i], context);
  }
  if (runner.children.empty()) status = run_kernels(runner, context);

  if (is_selected(runner) && Probe::IsSaveTensorAfter()) save(runner, context, "", false);
  if (is_selected(runner) && Probe::IsSaveParam() && !description.param.empty()) {
    Probe::SaveParam(description.param, runner.dir + "/op_param.json");
  }
  if (Probe::ReportOperationIOTensorEnable() && runner.children.empty()) {
    const std::string folder = runner.dir + (Probe::IsSaveTensorBefore() ? "/before" : "/after");
    Probe::ReportOperationIOTensor(runner.executions, runner.name_with_ids(),
                                   description.param.empty() ? "{}" : description.param,
                                   reported(description.inputs, folder, "intensor"),
                                   reported(description.outputs, folder, "outtensor"));
  }
  ++runner.executions;
  return status;
}

int Operation::run_kernels(const Runner& runner, const Context& context) {
  const OperationDescription& description = *runner.description;
  for (size_t i = 0; i < description.kernels.size(); ++i) {
    const std::string folder = runner.kernel_folder(i);
    const auto is_kernel_selected = [&](bool (*is_moment_selected)()) {
      return runner.kernel_wanted[i] && Probe::IsExecuteCountInRange(runner.executions) &&
             is_moment_selected() && Probe::IsSaveTensorInSpecificDir(runner.dir + folder);
    };
    if (is_kernel_selected(Probe::IsSaveTensorBefore)) save(runner, context, folder, true);
    if (Probe::IsOverflowCheck()) {
      for (const Overflow& overflow : context.settings().overflows) {
        if (overflow.operation != runner.name_with_ids() || overflow.round != runner.executions ||
            overflow.kernel != i) {
          continue;
        }
        Probe::ReportOverflowKernel(runner.name_with_ids() + ":" + description.kernels[i].name);
        if (Probe::IsOverflowStop()) return kErrorRtFail;
      }
    }
    if (Probe::ReportKernelIOTensorEnable()) {
      // The operation's folder, though these are the kernel's tensors.
      const std::string reported_folder =
          runner.dir + (Probe::IsSaveTensorBefore() ? "/before" : "/after");
      Probe::ReportKernelIOTensor(runner.executions, description.type,
                                  "kernel: " + description.kernels[i].name,
                                  reported(description.inputs, reported_folder, "intensor"),
                                  reported(description.outputs, reported_folder, "outtensor"));
    }
    if (is_kernel_selected(Probe::IsSaveTensorAfter)) save(runner, context, folder, false);
  }
  return kOk;
}

void Operation::save(const Runner& runner, const Context& context, const std::string& kernel_folder,
                     bool is_before) {
  const OperationDescription& description = *runner.description;
  const std::string when = is_before ? "before" : "after";
  const std::string folder = runner.dir + kernel_folder + "/" + when + "/";
  const std::string key = runner.content_key(context) + kernel_folder + "|";
  Probe::IsSaveTensorData();  // true only makes the real library wait for the device

  const auto save_all = [&](const std::vector<TensorDescription>& tensors, bool is_input,
                            const std::vector<std::string>& names) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      const TensorDescription& tensor = tensors[i];
      const uint64_t bytes = data_bytes(tensor);
      if (bytes == 0) continue;  // the device's copy fails, and there is nothing to save
      const bool is_output_memory = !is_input || (description.in_place && i == 0);
      const std::vector<uint8_t> data =
          content(key + (is_output_memory ? when + "|out" : "before|in") + std::to_string(i), bytes,
                  tensor.dtype);
      // Exactly this much memory and gone at once: whoever reads too much or too late is found out.
      std::unique_ptr<uint8_t[]> host(new uint8_t[bytes]);
      memcpy(host.get(), data.data(), bytes);
      const bool has_name = kernel_folder.empty() && i < names.size();
      try {
        Probe::SaveTensor(std::to_string(tensor.format), std::to_string(tensor.dtype),
                          joined(tensor.dims, ","), host.get(), bytes,
                          folder + (is_input ? "intensor" : "outtensor") + std::to_string(i) +
                              (has_name ? "_" + names[i] : "") + ".bin");
      } catch (...) {
        // As the library does: one tensor's trouble is not the model's.
      }
      memset(host.get(), 0xEE, bytes);
    }
  };
  save_all(description.inputs, true, description.input_names);
  save_all(description.outputs, false, description.output_names);
}

// Keys in alphabetical order.
std::string Operation::graph_json(const Runner& runner, const Node* node) {
  const OperationDescription& description = *runner.description;
  std::string text = "{";
  if (node != nullptr) text += "\"inTensorIds\":" + json_list(node->in_ids) + ",";
  text += "\"inTensorNum\":" + std::to_string(description.inputs.size()) + ",";
  if (!runner.children.empty()) {
    text +=
        "\"internalTensorNum\":" + std::to_string(description.internal_tensors) + ",\"nodes\":[";
    for (size_t i = 0; i < runner.children.size(); ++i) {
      text += (i == 0 ? "" : ",") + graph_json(runner.children[i], &description.nodes[i]);
    }
    text += "],";
  }
  text += "\"opName\":\"" + runner.name_with_ids() + "\",\"opType\":\"" + description.type + "\",";
  if (node != nullptr) text += "\"outTensorIds\":" + json_list(node->out_ids) + ",";
  text += "\"outTensorNum\":" + std::to_string(description.outputs.size()) + ",\"param\":";
  if (!runner.children.empty()) {
    text += "\"\"";
  } else {
    text += description.param.empty() ? "null" : description.param;
  }
  return text + "}";
}

}  // namespace atb

namespace atb_speed {
namespace {

std::string json_list(const std::vector<std::string>& names) {
  std::string text = "[";
  for (size_t i = 0; i < names.size(); ++i) text += (i == 0 ? "\"" : ",\"") + names[i] + "\"";
  return text + "]";
}

}  // namespace

void Model::report() const {
  if (!SpeedProbe::IsReportModelTopoInfo(name)) return;
  std::string text = "{\"inTensors\":" + json_list(in_tensors) +
                     ",\"internalTensors\":" + json_list(internal_tensors) + ",\"modelName\":\"" +
                     name + "\",\"nodes\":[";
  for (size_t i = 0; i < nodes.size(); ++i) {
    text += std::string(i == 0 ? "" : ",") + "{\"inTensors\":" + json_list(nodes[i].in_tensors) +
            ",\"opName\":\"" + nodes[i].operation->type() +
            "\",\"outTensors\":" + json_list(nodes[i].out_tensors) + "}";
  }
  text += "],\"outTensors\":" + json_list(out_tensors) +
          ",\"weightTensors\":" + json_list(weight_tensors) + "}";
  SpeedProbe::ReportModelTopoInfo(name, text);
}

}  // namespace atb_speed
