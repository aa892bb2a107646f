#include "ops/registry.h"

#include <array>
#include <utility>

namespace atb {
namespace {

using Maker = std::unique_ptr<Operation> (*)();
constexpr std::array<std::pair<const char*, Maker>, 16> kMakers{{
    {"ActivationOperation", MakeActivation},
    {"AllGatherOperation", MakeAllGather},
    {"AllReduceOperation", MakeAllReduce},
    {"ConcatOperation", MakeConcat},
    {"ElewiseOperation", MakeElewise},
    {"GatherOperation", MakeGather},
    {"LayerNormOperation", MakeLayerNorm},
    {"LinearOperation", MakeLinear},
    {"PagedAttentionOperation", MakePagedAttention},
    {"ReshapeAndCacheOperation", MakeReshapeAndCache},
    {"RmsNormOperation", MakeRmsNorm},
    {"RopeOperation", MakeRope},
    {"SelfAttentionOperation", MakeSelfAttention},
    {"SoftmaxOperation", MakeSoftmax},
    {"SplitOperation", MakeSplit},
    {"TransposeOperation", MakeTranspose},
}};

}  // namespace

CreateResult CreateOperation(const std::string& type, const std::string& param_json) {
  for (const auto& [name, make] : kMakers) {
    if (type != name) continue;
    auto operation = make();
    if (auto status = operation->UpdateParam(param_json); !status.ok()) return {nullptr, status};
    return {std::move(operation), {}};
  }
  return {nullptr, InvalidParam("there is no operation type " + type)};
}

std::vector<std::string> OperationTypes() {
  std::vector<std::string> types;
  types.reserve(kMakers.size());
  for (const auto& maker : kMakers) types.emplace_back(maker.first);
  return types;
}

}  // namespace atb
