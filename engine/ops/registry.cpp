#include "ops/registry.h"

#include <array>
#include <utility>

namespace atb {
namespace {

#define AIT_LIST_MAKER(name, maker) OperationMaker{#name "Operation", make_##maker},
constexpr std::array kMakers = {AIT_ENGINE_OPERATIONS(AIT_LIST_MAKER)};
#undef AIT_LIST_MAKER

}  // namespace

CreateResult CreateOperation(const std::string& type, const std::string& param_json,
                             std::span<const OperationMaker> among) {
  for (const auto& [name, make] : among) {
    if (type != name) continue;
    auto operation = make();
    if (auto status = operation->UpdateParam(param_json); !status.ok()) return {nullptr, status};
    return {std::move(operation), {}};
  }
  return {nullptr, invalid_param("there is no operation type " + type)};
}

CreateResult CreateOperation(const std::string& type, const std::string& param_json) {
  return CreateOperation(type, param_json, kMakers);
}

std::vector<std::string> operation_types() {
  std::vector<std::string> types;
  types.reserve(kMakers.size());
  for (const OperationMaker& maker : kMakers) types.emplace_back(maker.type);
  return types;
}

}  // namespace atb
