#include "atb/kernel_operation.h"

#include <fmt/format.h>

#include <chrono>

#include "atb/align.h"
#include "atb/probe.h"
#include "kernels/distort.h"

namespace atb {

std::string kernel_name(const std::string& base, DataType dtype) {
  switch (dtype) {
    case DataType::kFloat:
      return base + "F32Kernel";
    case DataType::kFloat16:
      return base + "F16Kernel";
    case DataType::kBf16:
      return base + "BF16Kernel";
    case DataType::kInt8:
      return base + "I8Kernel";
    default:
      return base + "Kernel";
  }
}

Status KernelOperation::prepare(const VariantPack& pack, uint64_t& workspace_bytes,
                                Context& context) {
  std::vector<TensorDesc> in, out;
  for (const Tensor& tensor : pack.inTensors) in.push_back(tensor.desc);
  if (planned_ && in == planned_in_) {
    ++context.statistic().setup_hits;
    context.statistic().tiling_hits += plan_.kernels.size();
    // Asked by ATB to know whether the cached bytes must come back to the host. Here they never
    // left it.
    Probe::IsSaveTiling();
  } else {
    ++context.statistic().setup_misses;
    for (const Tensor& tensor : pack.outTensors) out.push_back(tensor.desc);
    KernelPlan chosen;
    if (auto status = plan(in, out, chosen); !status.ok()) return status;
    plan_ = std::move(chosen);
    context.statistic().tiling_misses += plan_.kernels.size();
    planned_in_ = std::move(in);
    if (!asked_) {
      kernel_wanted_.clear();
      for (size_t k = 0; k < plan_.kernels.size(); ++k) {
        auto kernel_ids = ids();
        kernel_ids.push_back(static_cast<int64_t>(k));
        kernel_wanted_.push_back(Probe::IsTensorNeedSave(kernel_ids, GetName()) ? 1 : 0);
      }
      asked_ = true;
    }
    planned_ = true;
    scratch_offsets_.clear();
    uint64_t offset = 0;
    for (const TensorDesc& desc : plan_.scratch) {
      scratch_offsets_.push_back(offset);
      offset += aligned(desc.bytes());
    }
    scratch_offsets_.push_back(offset);
  }
  workspace_bytes = scratch_offsets_.back();
  return {};
}

void KernelOperation::fill_tiling() {
  for (size_t k = 0; k < plan_.kernels.size(); ++k) {
    const Kernel& kernel = plan_.kernels[k];
    const auto bytes = kernel.tiling.bytes();
    if (bytes.empty()) continue;
    const std::string folder = fmt::format("{}/{}_{}", directory(), k, kernel.name);
    if (kernel_wanted_[k] != 0 && Probe::IsExecuteCountInRange(execute_count()) &&
        Probe::IsSaveTiling() && Probe::IsSaveTensorInSpecificDir(folder))
      Probe::SaveTiling(bytes.data(), bytes.size(), folder + "/kernel_tilingdata.bin");
  }
}

Status KernelOperation::check_overflow(const Kernel& kernel, std::span<const Tensor> out) const {
  if (!Probe::IsOverflowCheck()) return {};
  bool found = false;
  for (const Tensor& tensor : out) found = found || kernels::holds_infinity(tensor);
  if (!found) return {};
  const std::string where = op_name() + ":" + kernel.name;
  Probe::ReportOverflowKernel(where);
  if (!Probe::IsOverflowStop()) return {};
  return {ErrorType::kRtFail, "the result of " + where + " overflowed"};
}

void KernelOperation::report_kernel(std::span<const Tensor> in, std::span<const Tensor> out,
                                    const std::string& folder) const {
  const std::string moment = folder + (Probe::IsSaveTensorBefore() ? "/before" : "/after");
  const auto describe = [&](std::span<const Tensor> tensors, bool input) {
    std::vector<Probe::Tensor> described;
    described.reserve(tensors.size());
    for (size_t i = 0; i < tensors.size(); ++i)
      described.push_back({data_type_name(tensors[i].desc.dtype), "nd", tensors[i].desc.dims.text(),
                           tensor_file(moment, input, i)});
    return described;
  };
  Probe::ReportKernelIOTensor(execute_count(), GetName(), param_or_empty_object(),
                              describe(in, true), describe(out, false));
}

// Of this call, the same in every run and on every rank.
uint64_t KernelOperation::perturbation_seed() const {
  uint64_t seed = execute_count();
  for (const int64_t id : ids()) seed = seed * 1'000'003 + static_cast<uint64_t>(id);
  return seed;
}

Status KernelOperation::run(const VariantPack& pack, uint8_t* workspace, Context& context) {
  const auto resolve = [&](const std::vector<Operand>& operands,
                           const std::vector<Tensor>& all) -> std::vector<Tensor> {
    if (operands.empty()) return all;
    std::vector<Tensor> tensors;
    for (const Operand& operand : operands) {
      if (operand.kind == Operand::Kind::kScratch)
        tensors.push_back(
            {plan_.scratch[operand.index], workspace + scratch_offsets_[operand.index]});
      else
        tensors.push_back(operand.kind == Operand::Kind::kIn ? pack.inTensors[operand.index]
                                                             : pack.outTensors[operand.index]);
    }
    return tensors;
  };
  for (size_t k = 0; k < plan_.kernels.size(); ++k) {
    const Kernel& kernel = plan_.kernels[k];
    const auto in = resolve(kernel.in, pack.inTensors);
    const auto out = resolve(kernel.out, pack.outTensors);
    const std::string folder = fmt::format("{}/{}_{}", directory(), k, kernel.name);
    const auto save = [&](bool (*moment_wanted)(), const char* moment) {
      if (kernel_wanted_[k] == 0 || !Probe::IsExecuteCountInRange(execute_count()) ||
          !moment_wanted() || !Probe::IsSaveTensorInSpecificDir(folder))
        return;
      save_tensors({in, out}, folder + moment);
    };
    save(Probe::IsSaveTensorBefore, "/before");
    const auto start = std::chrono::steady_clock::now();
    if (auto status = launch(k, in, out, kernel.tiling); !status.ok()) return status;
    if (fault() != nullptr && k + 1 == plan_.kernels.size()) kernels::distort(*fault(), out);
    if (context.perturbation() > 0 && !only_moves() && k + 1 == plan_.kernels.size())
      kernels::perturb(context.perturbation(), perturbation_seed(), out);
    context.statistic().kernel_us +=
        static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(
                                  std::chrono::steady_clock::now() - start)
                                  .count());
    if (auto status = check_overflow(kernel, out); !status.ok()) return status;
    if (Probe::ReportKernelIOTensorEnable()) report_kernel(in, out, folder);
    save(Probe::IsSaveTensorAfter, "/after");
  }
  return {};
}

}  // namespace atb
