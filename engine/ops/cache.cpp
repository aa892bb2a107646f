// ReshapeAndCacheOperation: puts new keys and values into the blocks of a cache.
#include <fmt/format.h>

#include <cstring>

#include "ops/params.h"
#include "ops/registry.h"

namespace atb {
namespace {

struct CacheParam {
  int64_t compressType = 0, kvCacheCfg = 0;

  void visit(ParamFields& fields) {
    fields.field("compressType", compressType);
    fields.field("kvCacheCfg", kvCacheCfg);
  }
  Status check() const {
    if (compressType != 0 || kvCacheCfg != 0)
      return invalid_param("compressed, key-only and NZ caches are not supported");
    return {};
  }
};

struct CacheTiling {
  uint64_t tokens, slots, key_row_bytes, value_row_bytes;
};

class ReshapeAndCacheOperation final : public ParamOperation<CacheParam> {
 public:
  ReshapeAndCacheOperation() : ParamOperation("ReshapeAndCacheOperation") {}

  size_t GetInputNum() const override { return 5; }   // key, value, keyCache, valueCache, slots
  size_t GetOutputNum() const override { return 2; }  // the caches, written in place

  Status InferShape(const std::vector<TensorDesc>& in,
                    std::vector<TensorDesc>& out) const override {
    for (size_t i = 0; i < 2; ++i) {
      const TensorDesc &row = in[i], &cache = in[2 + i];
      const bool fits = row.dims.size() == 3 && cache.dims.size() == 4 &&
                        row.dtype == cache.dtype && row.dims[0] == in[4].dims.count() &&
                        row.dims[1] == cache.dims[2] && row.dims[2] == cache.dims[3] &&
                        cache.dims[0] == in[2].dims[0] && cache.dims[1] == in[2].dims[1];
      if (!fits)
        return invalid_tensor(fmt::format("{} rows [{}] do not fit their cache [{}] and {} slots",
                                          i == 0 ? "key" : "value", row.dims.text(),
                                          cache.dims.text(), in[4].dims.count()));
    }
    if (in[4].dtype != DataType::kInt32)
      return invalid_tensor("the slots of ReshapeAndCacheOperation are int32");
    out = {in[2], in[3]};
    return {};
  }

 private:
  bool only_moves() const override { return true; }
  Status plan(const std::vector<TensorDesc>& in, const std::vector<TensorDesc>&,
              KernelPlan& plan) const override {
    const auto row_bytes = [&](size_t i) {
      return static_cast<uint64_t>(in[i].dims.count(1)) * element_bytes(in[i].dtype);
    };
    const CacheTiling tiling{static_cast<uint64_t>(in[4].dims.count()),
                             static_cast<uint64_t>(in[2].dims[0] * in[2].dims[1]), row_bytes(0),
                             row_bytes(1)};
    plan.kernels.push_back({"ReshapeAndCacheNdKernel", Tiling(tiling), {}, {}});
    return {};
  }

  Status launch(size_t, std::span<const Tensor> in, std::span<const Tensor> out,
                const Tiling& tiling) const override {
    const auto cut = tiling.as<CacheTiling>();
    const auto* slots = in[4].as<int32_t>();
    for (size_t i = 0; i < 2; ++i)
      if (out[i].data != in[2 + i].data)
        std::memcpy(out[i].data, in[2 + i].data, in[2 + i].desc.bytes());
    for (size_t token = 0; token < cut.tokens; ++token) {
      if (slots[token] < 0) continue;  // padding has no place in the cache
      const auto slot = static_cast<size_t>(slots[token]);
      if (slot >= cut.slots)
        return invalid_tensor(fmt::format("slot {} of token {} lies outside the cache of {}", slot,
                                          token, cut.slots));
      std::memcpy(out[0].as<uint8_t>() + slot * cut.key_row_bytes,
                  in[0].as<uint8_t>() + token * cut.key_row_bytes, cut.key_row_bytes);
      std::memcpy(out[1].as<uint8_t>() + slot * cut.value_row_bytes,
                  in[1].as<uint8_t>() + token * cut.value_row_bytes, cut.value_row_bytes);
    }
    return {};
  }
};

}  // namespace

std::unique_ptr<Operation> make_reshape_and_cache() {
  return std::make_unique<ReshapeAndCacheOperation>();
}

}  // namespace atb
