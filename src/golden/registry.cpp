#include <algorithm>
#include <array>
#include <cmath>

#include "base/parallel.h"
#include "golden/families.h"
#include "golden/golden.h"
#include "golden/rounder.h"

namespace ait::golden {
namespace {

using Golden = Result<Expected> (*)(Task&);
using Changed = std::vector<size_t> (*)(graph::AtbParam&);

struct Entry {
  std::string_view type;
  Golden golden;
  Changed changed = nullptr;  // the inputs that it writes to; none where it has no such function
};

// Of operations that always write to the same inputs.
template <size_t... kInputs>
std::vector<size_t> inputs(graph::AtbParam&) {
  return {kInputs...};
}

// A new operation is one line here.
constexpr auto kEntries = std::to_array<Entry>({
    {"ActivationOperation", activation},
    {"AllGatherOperation", all_gather},
    {"AllGatherVOperation", all_gather_v},
    {"AllReduceOperation", all_reduce},
    {"AllToAllOperation", all_to_all},
    {"AllToAllVOperation", all_to_all_v},
    {"AllToAllVV2Operation", all_to_all_v},
    {"AsStridedOperation", as_strided},
    {"BlockCopyOperation", block_copy, inputs<0, 1>},
    {"BroadcastOperation", broadcast, changed_by_broadcast},
    {"CohereLayerNormOperation", cohere_layer_norm},
    {"ConcatOperation", concat},
    {"CumsumOperation", cumsum},
    {"DynamicNTKOperation", dynamic_ntk},
    {"ElewiseOperation", elewise},
    {"FaUpdateOperation", fa_update},
    {"FillOperation", fill},
    {"FusedAddTopkDivOperation", fused_add_topk_div},
    {"GatherOperation", gather},
    {"GatherPreRmsNormOperation", gather_pre_rms_norm},
    {"GatingOperation", gating},
    {"GroupTopkOperation", group_topk, changed_by_group_topk},
    {"GroupedMatmulInplaceAddOperation", grouped_matmul_inplace_add, changed_by_inplace_add},
    {"GroupedMatmulWithRoutingOperation", grouped_matmul_with_routing},
    {"IndexAddOperation", index_add, inputs<0>},
    {"KvCacheOperation", kv_cache, inputs<2>},
    {"LayerNormOperation", layer_norm},
    {"LayerNormWithStrideOperation", layer_norm_with_stride},
    {"LinearOperation", linear, changed_by_linear},
    {"LinearParallelOperation", linear_parallel},
    {"LinearQuantOperation", linear},
    {"LinearSparseOperation", linear_sparse},
    {"MatmulOperation", matmul},
    {"MlaPreprocessOperation", mla_preprocess, inputs<19, 20>},
    {"MultiLatentAttentionOperation", multi_latent_attention},
    {"MultinomialOperation", multinomial},
    {"NonzeroOperation", nonzero},
    {"NormRopeReshapeOperation", norm_rope_reshape, inputs<6>},
    {"OnehotOperation", onehot},
    {"PadOperation", pad},
    {"PagedAttentionOperation", paged_attention},
    {"PagedCacheLoadOperation", paged_cache_load, inputs<4, 5>},
    {"RecvOperation", recv},
    {"ReduceOperation", reduce},
    {"ReduceScatterOperation", reduce_scatter},
    {"ReduceScatterVOperation", reduce_scatter_v},
    {"RepeatOperation", repeat},
    {"ReshapeAndCacheOmniOperation", reshape_and_cache_omni, inputs<2, 3>},
    {"ReshapeAndCacheOperation", reshape_and_cache, written_caches},
    {"ReshapeAndCacheWithStrideOperation", reshape_and_cache_with_stride, written_caches},
    {"RingMLAOperation", ring_mla},
    {"RmsNormOperation", rms_norm},
    {"RmsNormWithStrideOperation", rms_norm_with_stride},
    {"RopeOperation", rope},
    {"RopeQConcatOperation", rope_q_concat},
    {"ScatterElementsV2Operation", scatter_elements, inputs<0>},
    {"SelfAttentionOperation", self_attention},
    {"SendOperation", send},
    {"SetValueOperation", set_value, inputs<0>},
    {"SliceOperation", slice},
    {"SoftmaxOperation", softmax},
    {"SortOperation", sort},
    {"SplitOperation", split},
    {"SwigluQuantOperation", swiglu_quant},
    {"TopkToppSamplingOperation", topk_topp_sampling},
    {"TransdataOperation", transdata},
    {"TransposeOperation", transpose},
    {"UnpadOperation", unpad},
    {"WhereOperation", where},
});

// Operations of the library that have none, and what is missing for it.
struct Without {
  std::string_view type;
  std::string_view missing;
};
constexpr std::string_view kTraining = "it is an operation of training";
constexpr std::string_view kNoResult =
    "its definition has not been checked against a result of the library";
constexpr std::string_view kDropped =
    "the library dropped it, and the names of its parameters are not known";
constexpr std::string_view kControl = "it steers others and has no tensors to compare";
constexpr auto kWithout = std::to_array<Without>({
    {"EventOperation", kControl},
    {"FastSoftMaxGradOperation", kTraining},
    {"FastSoftMaxOperation", kTraining},
    {"GenAttentionMaskOperation", kTraining},
    {"GmmDeqSwigluQuantGmmDeqOperation", kNoResult},
    {"IfCondOperation", kControl},
    {"LaserAttentionGradOperation", kTraining},
    {"LaserAttentionOperation", kTraining},
    {"LinearActivationOperation", kDropped},
    {"LinearActivationQuantOperation", kDropped},
    {"MmDeqSwigluQuantMmDeqOperation", kNoResult},
    {"PadWithHiddenStateOperation", kTraining},
    {"RazorFusionAttentionOperation", kNoResult},
    {"RelayAttentionOperation", "how its lists of tensors are recorded is not known"},
    {"RmsNormBackwardOperation", kTraining},
    {"RopeGradOperation", kTraining},
    {"StridedBatchMatmulOperation", kTraining},
    {"UnpadWithHiddenStateOperation", kTraining},
});

const Entry* find(std::string_view type) {
  const auto found = std::find_if(kEntries.begin(), kEntries.end(),
                                  [&](const Entry& entry) { return entry.type == type; });
  return found == kEntries.end() ? nullptr : &*found;
}

}  // namespace

Result<Expected> compute(const Operation& operation, const Limits& limits) {
  Task task(operation, limits);
  const Entry* entry = find(operation.type);
  if (entry == nullptr)
    return fail(Error(ErrorCode::kUnsupported)
                << printable(operation.type) << ": " << why_no_golden(operation.type));
  Result<Expected> expected = fail(Error(ErrorCode::kUnsupported));
  with_threads(limits.threads, [&] { expected = entry->golden(task); });
  // A parameter that was not understood makes everything after it worthless.
  if (const auto read = task.param().finish(); !read)
    return fail(task.contradiction(read.error().text()));
  return expected;
}

bool knows(std::string_view type) { return find(type) != nullptr; }

std::string why_no_golden(std::string_view type) {
  const auto found = std::find_if(kWithout.begin(), kWithout.end(),
                                  [&](const Without& each) { return each.type == type; });
  if (found == kWithout.end()) return "operation type not supported";
  return "no golden: " + std::string(found->missing);
}

std::vector<std::string_view> known_types() {
  std::vector<std::string_view> types;
  types.reserve(kEntries.size());
  for (const Entry& entry : kEntries) types.push_back(entry.type);
  return types;
}

std::vector<size_t> changed_inputs(std::string_view type, std::string_view param) {
  const Entry* entry = find(type);
  if (entry == nullptr || entry->changed == nullptr) return {};
  graph::AtbParam parsed(param);
  return entry->changed(parsed);
}

double bound(const Output& output, size_t index, DType dtype, size_t form) {
  if (output.slack.empty()) return 0;  // moved: the same number in the same type
  const double slack = output.slack[index];
  const double value = form == 0 ? output.values[index] : output.forms[form - 1].values[index];
  return Rounder(dtype).bound(value, slack);
}

bool is_tied(const Output& output, size_t index, double result) {
  if (output.tie_of.empty() || output.tie_of[index] == Output::kNoTie) return false;
  const std::vector<double>& set = output.ties[output.tie_of[index]];
  return std::binary_search(set.begin(), set.end(), result);
}

}  // namespace ait::golden
