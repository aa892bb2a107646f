#include "opcheck/tensors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>

#include "base/mapped_file.h"
#include "formats/registry.h"
#include "golden/rounding.h"
#include "metrics/elements.h"
#include "tensor/half.h"

namespace ait::opcheck {
namespace {

constexpr size_t kBlockElements = size_t{1} << 16;

constexpr auto kTogether = std::to_array<std::string_view>({
    "AllGatherOperation",
    "AllGatherVOperation",
    "AllReduceOperation",
    "AllToAllOperation",
    "AllToAllVOperation",
    "AllToAllVV2Operation",
    "BroadcastOperation",
    "LinearParallelOperation",
    "RecvOperation",
    "ReduceScatterOperation",
    "ReduceScatterVOperation",
    "SendOperation",
});

// A copy in float16 or float32.
Result<Tensor> cast(const Tensor& tensor, DType dtype) {
  const TensorView view = tensor.view();
  const size_t bytes = size_bytes(dtype);
  auto file =
      MappedFile::temporary(view.elements * bytes, [&](std::span<std::byte> out) -> Result<void> {
        std::vector<double> values;
        for (size_t first = 0; first < view.elements; first += kBlockElements) {
          const size_t count = std::min(kBlockElements, view.elements - first);
          metrics::read_elements(view, first, count, values);
          for (size_t i = 0; i < count; ++i) {
            const auto value = static_cast<float>(golden::round_to(dtype, values[i]));
            const uint16_t half = float_to_fp16(value);
            std::memcpy(out.data() + (first + i) * bytes,
                        dtype == DType::kFloat16 ? static_cast<const void*>(&half) : &value, bytes);
          }
        }
        return {};
      });
  if (!file) return fail(file.error());
  return Tensor::contiguous(*file, (*file)->bytes(), dtype, tensor.shape());
}

Result<Tensor> as_wanted(Tensor tensor, Precision precision) {
  const DType dtype = precision == Precision::kFloat16 ? DType::kFloat16 : DType::kFloat32;
  if (precision == Precision::kAsRecorded || tensor.dtype() == dtype || tensor.elements() == 0 ||
      info(tensor.dtype()).kind != DTypeKind::kFloat)
    return tensor;
  return cast(tensor, dtype);
}

Result<golden::Given> load_one(const std::string& path, Precision precision) {
  auto file = formats::open_tensor_file(path);
  if (!file) return fail(file.error());
  if ((*file)->size() != 1)
    return fail(Error(ErrorCode::kCorrupt, path) << "holds not exactly one tensor");
  auto loaded = (*file)->load(0);
  if (!loaded) return fail(loaded.error());
  auto tensor = as_wanted(std::move(*loaded), precision);
  if (!tensor) return fail(tensor.error());
  const auto described = (*file)->describe(0);
  return golden::Given{std::move(*tensor), described && described->fractal};
}

Result<rerun::Outcome> run_again(const Case& each, const golden::GivenList& inputs,
                                 rerun::Runner& runner) {
  rerun::Call call{each.type, each.param, {}};
  for (const auto& input : inputs) {
    call.inputs.emplace_back();
    if (input) call.inputs.back() = rerun::Input{input->tensor, input->fractal};
  }
  return runner.run(call);
}

}  // namespace

Result<golden::GivenList> load(const TensorPlaces& places, Precision precision) {
  golden::GivenList out;
  for (const auto& place : places) {
    out.emplace_back();
    if (!place) continue;
    auto given = load_one(place->path, precision);
    if (!given) return fail(given.error());
    out.back() = std::move(*given);
  }
  return out;
}

bool is_done_together(std::string_view type) {
  return std::find(kTogether.begin(), kTogether.end(), type) != kTogether.end();
}

Result<Actual> load_actual(const Case& each, const golden::GivenList& inputs, Precision precision,
                           rerun::Runner* runner) {
  Actual out;
  if (runner != nullptr) {
    const std::string library = std::filesystem::path(runner->plugin()).filename();
    if (is_done_together(each.type)) {
      out.source = "dump: several ranks do it together";
    } else if (auto again = run_again(each, inputs, *runner); again) {
      for (Tensor& output : again->outputs) {
        auto tensor = as_wanted(std::move(output), precision);
        if (!tensor) return fail(tensor.error());
        out.outputs.emplace_back(golden::Given{std::move(*tensor), false});
      }
      out.source = std::string(kRerunSource) + library;
      out.again = std::move(*again);
      return out;
    } else if (again.error().code() == ErrorCode::kUnsupported) {
      out.source = "dump: " + library + ": " + again.error().message();
    } else {
      return fail(again.error());
    }
  }
  auto outputs = load(each.outputs, precision);
  if (!outputs) return fail(outputs.error());
  out.outputs = std::move(*outputs);
  return out;
}

Result<std::optional<Tensor>> tensor_of(const Case& each, const Actual& actual,
                                        const golden::Output& output, size_t index,
                                        Precision precision) {
  if (index < actual.outputs.size() && actual.outputs[index]) return actual.outputs[index]->tensor;
  if (!output.written_input) return std::nullopt;
  const size_t input = *output.written_input;
  if (actual.again) {
    if (input >= actual.again->inputs.size() || !actual.again->inputs[input]) return std::nullopt;
    return as_wanted(*actual.again->inputs[input], precision);
  }
  if (input >= each.inputs_after.size() || !each.inputs_after[input]) return std::nullopt;
  auto loaded = load_one(each.inputs_after[input]->path, precision);
  if (!loaded) return fail(loaded.error());
  return std::move(loaded->tensor);
}

}  // namespace ait::opcheck
