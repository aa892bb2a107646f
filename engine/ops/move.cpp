// Operations that only move elements: GatherOperation, ConcatOperation, SplitOperation,
// TransposeOperation. Any element type, exact.
#include <fmt/format.h>

#include <array>
#include <cstring>

#include "kernels/loops.h"
#include "ops/params.h"
#include "ops/registry.h"

namespace atb {
namespace {

// The axis a parameter means, or -1 where there is none.
int64_t axis_of(int64_t axis, const Dims& dims) {
  const auto rank = static_cast<int64_t>(dims.size());
  if (axis < 0) axis += rank;
  return axis >= 0 && axis < rank ? axis : -1;
}

uint64_t count_before(const Dims& dims, int64_t axis) {
  uint64_t count = 1;
  for (int64_t i = 0; i < axis; ++i) count *= static_cast<uint64_t>(dims[static_cast<size_t>(i)]);
  return count;
}

struct GatherParam {
  int64_t axis = 0, batchDims = 0;
  void visit(ParamFields& fields) {
    fields.field("axis", axis);
    fields.field("batchDims", batchDims);
  }
  Status check() const {
    return batchDims == 0 ? Status() : invalid_param("batchDims other than 0 are not supported");
  }
};

struct GatherTiling {
  uint64_t outer, axis, row_bytes, indices;
};

class GatherOperation final : public ParamOperation<GatherParam> {
 public:
  GatherOperation() : ParamOperation("GatherOperation") {}
  size_t GetInputNum() const override { return 2; }
  size_t GetOutputNum() const override { return 1; }

  Status InferShape(const std::vector<TensorDesc>& in,
                    std::vector<TensorDesc>& out) const override {
    const int64_t axis = axis_of(param().axis, in[0].dims);
    if (axis < 0) return invalid_param("axis of GatherOperation is no dimension of x");
    if (in[1].dtype != DataType::kInt32 && in[1].dtype != DataType::kInt64)
      return invalid_tensor("the indices of GatherOperation are int32 or int64");
    if (in[0].dims.size() + in[1].dims.size() - 1 > Dims::kMax)
      return invalid_tensor("the result of GatherOperation has too many dimensions");
    TensorDesc result{in[0].dtype, {}};
    for (size_t i = 0; i < in[0].dims.size(); ++i) {
      if (static_cast<int64_t>(i) != axis)
        result.dims.push_back(in[0].dims[i]);
      else
        for (const int64_t size : in[1].dims) result.dims.push_back(size);
    }
    out = {result};
    return {};
  }

 private:
  bool only_moves() const override { return true; }
  Status plan(const std::vector<TensorDesc>& in, const std::vector<TensorDesc>&,
              KernelPlan& plan) const override {
    const int64_t axis = axis_of(param().axis, in[0].dims);
    const auto place = static_cast<size_t>(axis);
    const GatherTiling tiling{
        count_before(in[0].dims, axis), static_cast<uint64_t>(in[0].dims[place]),
        static_cast<uint64_t>(in[0].dims.count(place + 1)) * element_bytes(in[0].dtype),
        static_cast<uint64_t>(in[1].dims.count())};
    plan.kernels.push_back({kernel_name("Gather", in[0].dtype), Tiling(tiling), {}, {}});
    return {};
  }

  Status launch(size_t, std::span<const Tensor> in, std::span<const Tensor> out,
                const Tiling& tiling) const override {
    const auto cut = tiling.as<GatherTiling>();
    const bool wide = in[1].desc.dtype == DataType::kInt64;
    for (size_t i = 0; i < cut.indices; ++i) {
      const int64_t index = wide ? in[1].as<int64_t>()[i] : in[1].as<int32_t>()[i];
      if (index < 0 || static_cast<uint64_t>(index) >= cut.axis)
        return invalid_tensor(fmt::format("index {} of GatherOperation is outside 0..{}", index,
                                          static_cast<int64_t>(cut.axis) - 1));
      for (size_t o = 0; o < cut.outer; ++o)
        std::memcpy(
            out[0].as<uint8_t>() + (o * cut.indices + i) * cut.row_bytes,
            in[0].as<uint8_t>() + (o * cut.axis + static_cast<uint64_t>(index)) * cut.row_bytes,
            cut.row_bytes);
    }
    return {};
  }
};

// Pieces of an axis, for concatenation and its reverse.
struct PieceTiling {
  uint64_t outer, whole_bytes;
};

struct ConcatParam {
  int64_t concatDim = 0;
  void visit(ParamFields& fields) { fields.field("concatDim", concatDim); }
  Status check() const { return {}; }
};

class ConcatOperation final : public ParamOperation<ConcatParam> {
 public:
  ConcatOperation() : ParamOperation("ConcatOperation") {}
  size_t GetInputNum() const override { return 2; }
  size_t GetOutputNum() const override { return 1; }

  Status InferShape(const std::vector<TensorDesc>& in,
                    std::vector<TensorDesc>& out) const override {
    const int64_t axis = axis_of(param().concatDim, in[0].dims);
    if (axis < 0) return invalid_param("concatDim of ConcatOperation is no dimension of x");
    const auto place = static_cast<size_t>(axis);
    TensorDesc other = in[1];
    if (other.dims.size() == in[0].dims.size()) other.dims[place] = in[0].dims[place];
    if (!(other == in[0]))
      return invalid_tensor(fmt::format("ConcatOperation cannot join [{}] and [{}]",
                                        in[0].dims.text(), in[1].dims.text()));
    out = {in[0]};
    out[0].dims[place] += in[1].dims[place];
    return {};
  }

 private:
  bool only_moves() const override { return true; }
  Status plan(const std::vector<TensorDesc>& in, const std::vector<TensorDesc>& out,
              KernelPlan& plan) const override {
    const uint64_t outer = count_before(in[0].dims, axis_of(param().concatDim, in[0].dims));
    plan.kernels.push_back(
        {kernel_name("Concat", in[0].dtype),
         Tiling(PieceTiling{outer, out[0].bytes() / std::max<uint64_t>(1, outer)}),
         {},
         {}});
    return {};
  }

  Status launch(size_t, std::span<const Tensor> in, std::span<const Tensor> out,
                const Tiling& tiling) const override {
    const auto cut = tiling.as<PieceTiling>();
    for (size_t o = 0; o < cut.outer; ++o) {
      uint64_t at = o * cut.whole_bytes;
      for (const Tensor& piece : in) {
        const uint64_t bytes = piece.desc.bytes() / cut.outer;
        std::memcpy(out[0].as<uint8_t>() + at, piece.as<uint8_t>() + o * bytes, bytes);
        at += bytes;
      }
    }
    return {};
  }
};

struct SplitParam {
  int64_t splitDim = 0, splitNum = 2;
  std::vector<int64_t> splitSizes;
  void visit(ParamFields& fields) {
    fields.field("splitDim", splitDim);
    fields.field("splitNum", splitNum);
    fields.field("splitSizes", splitSizes);
  }
  Status check() const {
    if (splitNum != 2 && splitNum != 3) return invalid_param("splitNum is 2 or 3");
    if (!splitSizes.empty() && static_cast<int64_t>(splitSizes.size()) != splitNum)
      return invalid_param("splitSizes has one size for each part");
    return {};
  }
};

class SplitOperation final : public ParamOperation<SplitParam> {
 public:
  SplitOperation() : ParamOperation("SplitOperation") {}
  size_t GetInputNum() const override { return 1; }
  size_t GetOutputNum() const override { return static_cast<size_t>(param().splitNum); }

  Status InferShape(const std::vector<TensorDesc>& in,
                    std::vector<TensorDesc>& out) const override {
    const int64_t axis = axis_of(param().splitDim, in[0].dims);
    if (axis < 0) return invalid_param("splitDim of SplitOperation is no dimension of x");
    const auto place = static_cast<size_t>(axis);
    const int64_t whole = in[0].dims[place];
    out.assign(GetOutputNum(), in[0]);
    int64_t sum = 0;
    for (size_t i = 0; i < out.size(); ++i) {
      const int64_t size =
          param().splitSizes.empty() ? whole / param().splitNum : param().splitSizes[i];
      if (size < 0 || size > whole)
        return invalid_param("splitSizes of SplitOperation do not fit x");
      out[i].dims[place] = size;
      sum += size;
    }
    if (sum != whole)
      return invalid_tensor(fmt::format("SplitOperation cannot cut {} into these parts", whole));
    return {};
  }

 private:
  bool only_moves() const override { return true; }
  Status plan(const std::vector<TensorDesc>& in, const std::vector<TensorDesc>&,
              KernelPlan& plan) const override {
    const uint64_t outer = count_before(in[0].dims, axis_of(param().splitDim, in[0].dims));
    plan.kernels.push_back(
        {kernel_name("Split", in[0].dtype),
         Tiling(PieceTiling{outer, in[0].bytes() / std::max<uint64_t>(1, outer)}),
         {},
         {}});
    return {};
  }

  Status launch(size_t, std::span<const Tensor> in, std::span<const Tensor> out,
                const Tiling& tiling) const override {
    const auto cut = tiling.as<PieceTiling>();
    for (size_t o = 0; o < cut.outer; ++o) {
      uint64_t at = o * cut.whole_bytes;
      for (const Tensor& piece : out) {
        const uint64_t bytes = piece.desc.bytes() / cut.outer;
        std::memcpy(piece.as<uint8_t>() + o * bytes, in[0].as<uint8_t>() + at, bytes);
        at += bytes;
      }
    }
    return {};
  }
};

struct TransposeParam {
  std::vector<int64_t> perm;
  void visit(ParamFields& fields) { fields.field("perm", perm); }
  Status check() const {
    std::array<bool, Dims::kMax> seen{};
    for (const int64_t axis : perm) {
      if (axis < 0 || axis >= static_cast<int64_t>(perm.size()) || seen[static_cast<size_t>(axis)])
        return invalid_param("perm names every dimension once");
      seen[static_cast<size_t>(axis)] = true;
    }
    return {};
  }
};

struct TransposeTiling {
  uint64_t rank, element_bytes;
  std::array<int64_t, Dims::kMax> size, step;  // of the result; steps in elements of the input
};

class TransposeOperation final : public ParamOperation<TransposeParam> {
 public:
  TransposeOperation() : ParamOperation("TransposeOperation") {}
  size_t GetInputNum() const override { return 1; }
  size_t GetOutputNum() const override { return 1; }

  Status InferShape(const std::vector<TensorDesc>& in,
                    std::vector<TensorDesc>& out) const override {
    if (in[0].dims.size() != param().perm.size() || param().perm.empty())
      return invalid_tensor(fmt::format("perm of TransposeOperation has {} entries, but x is [{}]",
                                        param().perm.size(), in[0].dims.text()));
    out = {in[0]};
    for (size_t i = 0; i < param().perm.size(); ++i)
      out[0].dims[i] = in[0].dims[static_cast<size_t>(param().perm[i])];
    return {};
  }

 private:
  bool only_moves() const override { return true; }
  Status plan(const std::vector<TensorDesc>& in, const std::vector<TensorDesc>& out,
              KernelPlan& plan) const override {
    TransposeTiling tiling{out[0].dims.size(), element_bytes(in[0].dtype), {}, {}};
    for (size_t i = 0; i < tiling.rank; ++i) {
      tiling.size[i] = out[0].dims[i];
      tiling.step[i] = in[0].dims.count(static_cast<size_t>(param().perm[i]) + 1);
    }
    plan.kernels.push_back({kernel_name("Transpose", in[0].dtype), Tiling(tiling), {}, {}});
    return {};
  }

  Status launch(size_t, std::span<const Tensor> in, std::span<const Tensor> out,
                const Tiling& tiling) const override {
    const auto cut = tiling.as<TransposeTiling>();
    const auto elements = static_cast<uint64_t>(out[0].desc.dims.count());
    std::array<int64_t, Dims::kMax> place{};
    int64_t from = 0;
    for (uint64_t to = 0; to < elements; ++to) {
      std::memcpy(out[0].as<uint8_t>() + to * cut.element_bytes,
                  in[0].as<uint8_t>() + static_cast<uint64_t>(from) * cut.element_bytes,
                  cut.element_bytes);
      for (size_t i = cut.rank; i-- > 0;) {
        from += cut.step[i];
        if (++place[i] < cut.size[i]) break;
        from -= cut.step[i] * cut.size[i];
        place[i] = 0;
      }
    }
    return {};
  }
};

}  // namespace

std::unique_ptr<Operation> make_gather() { return std::make_unique<GatherOperation>(); }
std::unique_ptr<Operation> make_concat() { return std::make_unique<ConcatOperation>(); }
std::unique_ptr<Operation> make_split() { return std::make_unique<SplitOperation>(); }
std::unique_ptr<Operation> make_transpose() { return std::make_unique<TransposeOperation>(); }

}  // namespace atb
