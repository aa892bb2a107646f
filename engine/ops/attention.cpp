// SelfAttentionOperation (packed sequences, calcType PA_ENCODER) and PagedAttentionOperation (one
// query for each sequence against a cache in blocks).
#include <fmt/format.h>

#include <algorithm>

#include "kernels/attention.h"
#include "kernels/loops.h"
#include "kernels/simd.h"
#include "ops/params.h"
#include "ops/registry.h"

namespace atb {
namespace {

enum SelfMask : uint8_t { kNone = 0, kMaskNorm = 1, kSlidingWindow = 7, kCausal = 9 };
constexpr int64_t kPaEncoder = 3;
// What ATB multiplies a mask of zeros and ones by; large enough to drown every score, and finite,
// so that a row that sees nothing averages instead of becoming NaN.
constexpr float kMaskedOut = -3e38f;

struct AttentionTiling {
  uint64_t tokens, heads, kv_heads, head_size, value_size, queries_per_task;
};

int64_t kv_heads_of(int64_t kv_heads, int64_t heads) { return kv_heads == 0 ? heads : kv_heads; }

Status check_heads(int64_t heads, int64_t kv_heads) {
  if (heads <= 0 || kv_heads < 0 || heads % kv_heads_of(kv_heads, heads) != 0)
    return invalid_param("headNum is positive and a multiple of kvHeadNum");
  return {};
}

struct SelfAttentionParam {
  int64_t headNum = 0, kvHeadNum = 0, isTriuMask = 0, calcType = 0, kernelType = 0, clampType = 0,
          maskType = 0, kvcacheCfg = 0, scaleType = 0, inputLayout = 0, quantType = 0,
          outDataType = -1, mlaVHeadSize = 0, windowSize = 0, cacheType = 0;
  float qScale = 1, qkScale = 1, clampMin = 0, clampMax = 0;
  bool batchRunStatusEnable = false;

  void visit(ParamFields& fields) {
    fields.field("headNum", headNum);
    fields.field("kvHeadNum", kvHeadNum);
    fields.field("qScale", qScale);
    fields.field("qkScale", qkScale);
    fields.field("batchRunStatusEnable", batchRunStatusEnable);
    fields.field("isTriuMask", isTriuMask);
    fields.field("calcType", calcType);
    fields.field("kernelType", kernelType);
    fields.field("clampType", clampType);
    fields.field("clampMin", clampMin);
    fields.field("clampMax", clampMax);
    fields.field("maskType", maskType);
    fields.field("kvcacheCfg", kvcacheCfg);
    fields.field("scaleType", scaleType);
    fields.field("inputLayout", inputLayout);
    fields.field("quantType", quantType);
    fields.field("outDataType", outDataType);
    fields.field("mlaVHeadSize", mlaVHeadSize);
    fields.field("windowSize", windowSize);
    fields.field("cacheType", cacheType);
  }
  Status check() const {
    if (calcType != kPaEncoder) return invalid_param("only calcType 3 (PA_ENCODER) is supported");
    if (maskType != kNone && maskType != kMaskNorm && maskType != kSlidingWindow &&
        maskType != kCausal)
      return invalid_param("maskType is 0, 1, 7 or 9");
    if (maskType == kSlidingWindow && windowSize <= 0)
      return invalid_param("a sliding window needs a windowSize");
    if (clampType != 0 || scaleType != 0 || inputLayout != 0 || quantType != 0 ||
        mlaVHeadSize != 0 || batchRunStatusEnable || kvcacheCfg != 0 || cacheType != 0)
      return invalid_param(
          "clamping, LOGN, BNSD, quantised, MLA and cache variants are not supported");
    return check_heads(headNum, kvHeadNum);
  }
  bool has_mask() const { return maskType == kMaskNorm || maskType == kSlidingWindow; }
};

class SelfAttentionOperation final : public ParamOperation<SelfAttentionParam> {
 public:
  SelfAttentionOperation() : ParamOperation("SelfAttentionOperation") {}

  // query, key, value, [mask], seqLen
  size_t GetInputNum() const override { return param().has_mask() ? 5 : 4; }
  size_t GetOutputNum() const override { return 1; }

  Status InferShape(const std::vector<TensorDesc>& in,
                    std::vector<TensorDesc>& out) const override {
    AttentionTiling tiling;
    if (auto status = tiling_of(in, tiling); !status.ok()) return status;
    out = {in[0]};
    if (in[0].dims.size() == 3)
      out[0].dims[2] = static_cast<int64_t>(tiling.value_size);
    else
      out[0].dims[1] = static_cast<int64_t>(tiling.heads * tiling.value_size);
    return {};
  }

 private:
  Status tiling_of(const std::vector<TensorDesc>& in, AttentionTiling& tiling) const {
    const int64_t heads = param().headNum, kv_heads = kv_heads_of(param().kvHeadNum, heads);
    for (size_t i = 0; i < 3; ++i) {
      const int64_t own = i == 0 ? heads : kv_heads;
      const Dims& dims = in[i].dims;
      const bool fits = dims.size() == 3 ? dims[1] == own : dims.size() == 2 && dims[1] % own == 0;
      if (!fits || dims[0] != in[0].dims[0] || in[i].dtype != in[0].dtype ||
          !is_floating(in[i].dtype))
        return invalid_tensor(fmt::format(
            "input {} of SelfAttentionOperation is {} [{}], but the query is {} [{}] and it has {} "
            "heads",
            i, data_type_name(in[i].dtype), dims.text(), data_type_name(in[0].dtype),
            in[0].dims.text(), own));
    }
    const auto per_head = [](const Dims& dims, int64_t own) { return dims.count(1) / own; };
    if (per_head(in[0].dims, heads) != per_head(in[1].dims, kv_heads))
      return invalid_tensor("query and key of SelfAttentionOperation have heads of different size");
    if (in.back().dtype != DataType::kInt32)
      return invalid_tensor("seqLen of SelfAttentionOperation is int32");
    if (param().has_mask()) {
      const Dims& mask = in[3].dims;
      if (!is_floating(in[3].dtype) || (mask.size() != 2 && mask.size() != 3))
        return invalid_tensor("the mask of SelfAttentionOperation is [S, S] or [batch, S, S]");
    }
    tiling = {static_cast<uint64_t>(in[0].dims[0]),
              static_cast<uint64_t>(heads),
              static_cast<uint64_t>(kv_heads),
              static_cast<uint64_t>(per_head(in[0].dims, heads)),
              static_cast<uint64_t>(per_head(in[2].dims, kv_heads)),
              16};
    return {};
  }

  Status plan(const std::vector<TensorDesc>& in, const std::vector<TensorDesc>&,
              KernelPlan& plan) const override {
    AttentionTiling tiling;
    if (auto status = tiling_of(in, tiling); !status.ok()) return status;
    Kernel attention{kernel_name("FlashAttention", in[0].dtype), Tiling(tiling), {}, {}};
    if (param().qScale != 1) {
      // As the library does: the query is multiplied first, and rounded.
      plan.scratch.push_back(in[0]);
      plan.kernels.push_back({kernel_name("Muls", in[0].dtype),
                              Tiling(param().qScale),
                              {{Operand::Kind::kIn, 0}},
                              {{Operand::Kind::kScratch, 0}}});
      attention.in = {{Operand::Kind::kScratch, 0}};
      for (uint32_t i = 1; i < in.size(); ++i) attention.in.push_back({Operand::Kind::kIn, i});
      attention.out = {{Operand::Kind::kOut, 0}};
    }
    plan.kernels.push_back(std::move(attention));
    return {};
  }

  Status launch(size_t kernel, std::span<const Tensor> in, std::span<const Tensor> out,
                const Tiling& tiling) const override {
    if (param().qScale != 1 && kernel == 0) {
      const DataType dtype = in[0].desc.dtype;
      std::vector<float> q(static_cast<size_t>(in[0].desc.dims.count()));
      kernels::widen(dtype, in[0].data, q.size(), q.data());
      for (float& value : q) value *= tiling.as<float>();
      kernels::narrow(q.data(), q.size(), dtype, out[0].data);
      return {};
    }
    return attend_all(in, out[0], tiling.as<AttentionTiling>());
  }

  struct Task {
    size_t sequence, start, length, first_query, queries, head;
  };

  Status attend_all(std::span<const Tensor> in, const Tensor& out,
                    const AttentionTiling& cut) const {
    const Tensor& lengths = in[in.size() - 1];
    std::vector<Task> tasks;
    size_t start = 0;
    const auto batch = static_cast<size_t>(lengths.desc.dims.count());
    const Tensor* mask = param().maskType == kMaskNorm ? &in[3] : nullptr;
    for (size_t b = 0; b < batch; ++b) {
      const int32_t length = lengths.as<int32_t>()[b];
      if (length < 0 || start + static_cast<size_t>(length) > cut.tokens)
        return invalid_tensor("the lengths of SelfAttentionOperation exceed its query");
      if (mask != nullptr &&
          (mask->desc.dims.back() < length || mask->desc.dims[mask->desc.dims.size() - 2] < length))
        return invalid_tensor("a sequence of SelfAttentionOperation is longer than its mask");
      for (size_t q = 0; q < static_cast<size_t>(length); q += cut.queries_per_task)
        for (size_t head = 0; head < cut.heads; ++head)
          tasks.push_back({b, start, static_cast<size_t>(length), q,
                           std::min<size_t>(cut.queries_per_task, length - q), head});
      start += static_cast<size_t>(length);
    }
    if (start != cut.tokens)
      return invalid_tensor("the lengths of SelfAttentionOperation do not add up to its query");
    if (mask != nullptr && mask->desc.dims.size() == 3 &&
        static_cast<size_t>(mask->desc.dims[0]) != batch)
      return invalid_tensor("SelfAttentionOperation needs a mask for each sequence");
    const float coefficient = mask == nullptr ? 1 : mask_coefficient(*mask);
    const size_t cost =
        tasks.empty() ? 1 : cut.queries_per_task * cut.head_size * 2 * tasks[0].length;
    kernels::for_ranges(tasks.size(), kernels::grain_for(cost), [&](size_t begin, size_t end) {
      std::vector<float> scores, q(cut.head_size), row(cut.value_size), bias;
      for (size_t i = begin; i < end; ++i)
        run_task(tasks[i], cut, in, mask, coefficient, out, scores, q, row, bias);
    });
    return {};
  }

  // Masks come in two styles: zeros and large negative numbers to be added, or zeros and ones.
  static float mask_coefficient(const Tensor& mask) {
    std::vector<float> values(static_cast<size_t>(mask.desc.dims.count()));
    kernels::widen(mask.desc.dtype, mask.data, values.size(), values.data());
    for (const float value : values)
      if (value > 0) return kMaskedOut;
    return 1;
  }

  void run_task(const Task& task, const AttentionTiling& cut, std::span<const Tensor> in,
                const Tensor* mask, float coefficient, const Tensor& out,
                std::vector<float>& scores, std::vector<float>& q, std::vector<float>& row,
                std::vector<float>& bias) const {
    const DataType dtype = in[0].desc.dtype;
    const size_t bytes = element_bytes(dtype);
    const size_t kv_head = task.head / (cut.heads / cut.kv_heads);
    const kernels::AttentionHead head{dtype,
                                      cut.head_size,
                                      cut.value_size,
                                      cut.kv_heads * cut.head_size * bytes,
                                      cut.kv_heads * cut.value_size * bytes,
                                      param().qkScale};
    const auto run_from = [&](size_t first, size_t rows) {
      return std::vector<kernels::KeyRun>{
          {in[1].as<uint8_t>() + (task.start + first) * head.key_stride +
               kv_head * cut.head_size * bytes,
           in[2].as<uint8_t>() + (task.start + first) * head.value_stride +
               kv_head * cut.value_size * bytes,
           rows}};
    };
    for (size_t i = task.first_query; i < task.first_query + task.queries; ++i) {
      const size_t token = task.start + i;
      kernels::widen(dtype,
                     in[0].as<uint8_t>() + (token * cut.heads + task.head) * cut.head_size * bytes,
                     cut.head_size, q.data());
      size_t first = 0, visible = task.length;
      if (param().maskType == kCausal || param().maskType == kSlidingWindow) visible = i + 1;
      if (param().maskType == kSlidingWindow) {
        const auto window = static_cast<size_t>(param().windowSize);
        first = visible > window ? visible - window : 0;
      }
      const float* row_bias = nullptr;
      if (mask != nullptr) {
        mask_row(*mask, task.sequence, i, coefficient, bias);
        row_bias = bias.data();
      }
      kernels::attend(head, q.data(), run_from(first, visible - first), visible - first, row_bias,
                      scores, row.data());
      kernels::narrow(row.data(), cut.value_size, dtype,
                      out.as<uint8_t>() + (token * cut.heads + task.head) * cut.value_size * bytes);
    }
  }

  static void mask_row(const Tensor& mask, size_t sequence, size_t query, float coefficient,
                       std::vector<float>& bias) {
    const Dims& dims = mask.desc.dims;
    const auto columns = static_cast<size_t>(dims.back());
    const auto rows = static_cast<size_t>(dims[dims.size() - 2]);
    const size_t row = (dims.size() == 3 ? sequence * rows : 0) + query;
    bias.resize(columns);
    kernels::widen(mask.desc.dtype,
                   mask.as<uint8_t>() + row * columns * element_bytes(mask.desc.dtype), columns,
                   bias.data());
    for (float& value : bias) value *= coefficient;
  }
};

struct PagedAttentionParam {
  int64_t headNum = 0, kvHeadNum = 0, maskType = 0, quantType = 0, compressType = 0, calcType = 0,
          mlaVHeadSize = 0;
  float qkScale = 1;
  bool batchRunStatusEnable = false, hasQuantOffset = false;

  void visit(ParamFields& fields) {
    fields.field("headNum", headNum);
    fields.field("qkScale", qkScale);
    fields.field("kvHeadNum", kvHeadNum);
    fields.field("maskType", maskType);
    fields.field("batchRunStatusEnable", batchRunStatusEnable);
    fields.field("quantType", quantType);
    fields.field("hasQuantOffset", hasQuantOffset);
    fields.field("compressType", compressType);
    fields.field("calcType", calcType);
    fields.field("mlaVHeadSize", mlaVHeadSize);
  }
  Status check() const {
    if (maskType != 0 || quantType != 0 || compressType != 0 || calcType != 0 ||
        mlaVHeadSize != 0 || batchRunStatusEnable || hasQuantOffset)
      return invalid_param(
          "masks, quantised, compressed, speculative and MLA variants are not "
          "supported");
    return check_heads(headNum, kvHeadNum);
  }
};

class PagedAttentionOperation final : public ParamOperation<PagedAttentionParam> {
 public:
  PagedAttentionOperation() : ParamOperation("PagedAttentionOperation") {}

  size_t GetInputNum() const override { return 5; }  // query, caches, blockTables, contextLens
  size_t GetOutputNum() const override { return 1; }

  Status InferShape(const std::vector<TensorDesc>& in,
                    std::vector<TensorDesc>& out) const override {
    const int64_t heads = param().headNum, kv_heads = kv_heads_of(param().kvHeadNum, heads);
    const Dims &q = in[0].dims, &k = in[1].dims, &v = in[2].dims, &tables = in[3].dims;
    const bool fits = q.size() == 3 && q[1] == heads && k.size() == 4 && v.size() == 4 &&
                      k[0] == v[0] && k[1] == v[1] && k[2] == kv_heads && v[2] == kv_heads &&
                      k[3] == q[2] && tables.size() == 2 && tables[0] == q[0] &&
                      in[4].dims.count() == q[0];
    if (!fits)
      return invalid_tensor(fmt::format(
          "the tensors of PagedAttentionOperation do not fit together: query [{}], caches [{}] and "
          "[{}], block tables [{}], lengths [{}], {} heads over {}",
          q.text(), k.text(), v.text(), tables.text(), in[4].dims.text(), heads, kv_heads));
    if (!is_floating(in[0].dtype) || in[1].dtype != in[0].dtype || in[2].dtype != in[0].dtype ||
        in[3].dtype != DataType::kInt32 || in[4].dtype != DataType::kInt32)
      return invalid_tensor(
          "PagedAttentionOperation takes caches of the query's type and int32 "
          "block tables and lengths");
    out = {in[0]};
    out[0].dims[2] = v[3];
    return {};
  }

 private:
  Status plan(const std::vector<TensorDesc>& in, const std::vector<TensorDesc>&,
              KernelPlan& plan) const override {
    const auto u = [](int64_t size) { return static_cast<uint64_t>(size); };
    plan.kernels.push_back(
        {kernel_name("PagedAttention", in[0].dtype),
         Tiling(AttentionTiling{u(in[0].dims[0]), u(in[0].dims[1]), u(in[1].dims[2]),
                                u(in[0].dims[2]), u(in[2].dims[3]), 1}),
         {},
         {}});
    return {};
  }

  Status launch(size_t, std::span<const Tensor> in, std::span<const Tensor> out,
                const Tiling& tiling) const override {
    const auto cut = tiling.as<AttentionTiling>();
    const DataType dtype = in[0].desc.dtype;
    const size_t bytes = element_bytes(dtype);
    const auto blocks = static_cast<size_t>(in[1].desc.dims[0]);
    const auto block_size = static_cast<size_t>(in[1].desc.dims[1]);
    const auto columns = static_cast<size_t>(in[3].desc.dims[1]);
    const kernels::AttentionHead head{dtype,
                                      cut.head_size,
                                      cut.value_size,
                                      cut.kv_heads * cut.head_size * bytes,
                                      cut.kv_heads * cut.value_size * bytes,
                                      param().qkScale};
    // The runs of each sequence, for head 0; checked before anything is read through them.
    std::vector<std::vector<kernels::KeyRun>> runs(cut.tokens);
    size_t longest = 0;
    for (size_t b = 0; b < cut.tokens; ++b) {
      const int32_t length = in[4].as<int32_t>()[b];
      if (length < 0 || static_cast<size_t>(length) > columns * block_size)
        return invalid_tensor("a length of PagedAttentionOperation exceeds its block table");
      longest = std::max(longest, static_cast<size_t>(length));
      for (size_t row = 0; row < static_cast<size_t>(length); row += block_size) {
        const int32_t block = in[3].as<int32_t>()[b * columns + row / block_size];
        if (block < 0 || static_cast<size_t>(block) >= blocks)
          return invalid_tensor("a block table of PagedAttentionOperation names no block");
        const size_t first = static_cast<size_t>(block) * block_size;
        runs[b].push_back({in[1].as<uint8_t>() + first * head.key_stride,
                           in[2].as<uint8_t>() + first * head.value_stride,
                           std::min(block_size, static_cast<size_t>(length) - row)});
      }
    }
    const size_t cost = 2 * cut.head_size * std::max<size_t>(1, longest);
    kernels::for_ranges(
        cut.tokens * cut.heads, kernels::grain_for(cost), [&](size_t begin, size_t end) {
          std::vector<float> scores, q(cut.head_size), row(cut.value_size);
          std::vector<kernels::KeyRun> own;
          for (size_t i = begin; i < end; ++i) {
            const size_t b = i / cut.heads;
            const size_t kv_head = i % cut.heads / (cut.heads / cut.kv_heads);
            own = runs[b];
            for (kernels::KeyRun& run : own) {
              run.keys += kv_head * cut.head_size * bytes;
              run.values += kv_head * cut.value_size * bytes;
            }
            kernels::widen(dtype, in[0].as<uint8_t>() + i * cut.head_size * bytes, cut.head_size,
                           q.data());
            kernels::attend(head, q.data(), own, static_cast<size_t>(in[4].as<int32_t>()[b]),
                            nullptr, scores, row.data());
            kernels::narrow(row.data(), cut.value_size, dtype,
                            out[0].as<uint8_t>() + i * cut.value_size * bytes);
          }
        });
    return {};
  }
};

}  // namespace

std::unique_ptr<Operation> make_self_attention() {
  return std::make_unique<SelfAttentionOperation>();
}
std::unique_ptr<Operation> make_paged_attention() {
  return std::make_unique<PagedAttentionOperation>();
}

}  // namespace atb
