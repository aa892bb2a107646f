// AllReduceOperation and AllGatherOperation. Like ATB's they have no kernels: the communication
// library does the work, so there is no kernel level below them in a dump.
#include <fmt/format.h>

#include "atb/communicator.h"
#include "ops/params.h"
#include "ops/registry.h"

namespace atb {
namespace {

struct CollectiveParam {
  int64_t rank = 0, rankSize = 0, rankRoot = 0, commMode = 0;
  std::string backend = "lccl", rankTableFile, commDomain;

  void visit(ParamFields& fields) {
    fields.field("rank", rank);
    fields.field("rankSize", rankSize);
    fields.field("rankRoot", rankRoot);
    fields.field("backend", backend);
    fields.field("commMode", commMode);
    fields.field("rankTableFile", rankTableFile);
    fields.field("commDomain", commDomain);
  }
  Status check() const {
    if (rankSize < 1 || rank < 0 || rank >= rankSize)
      return invalid_param("rank is at least 0 and below rankSize");
    return {};
  }
};

struct AllReduceParam : CollectiveParam {
  int64_t quantType = 0, outDataType = -1;
  std::string allReduceType = "sum";

  void visit(ParamFields& fields) {
    CollectiveParam::visit(fields);
    fields.field("allReduceType", allReduceType);
    fields.field("quantType", quantType);
    fields.field("outDataType", outDataType);
  }
  Status check() const {
    if (quantType != 0) return invalid_param("quantised reduction is not supported");
    if (allReduceType != "sum" && allReduceType != "max" && allReduceType != "min" &&
        allReduceType != "prod")
      return invalid_param("allReduceType is sum, max, min or prod");
    return CollectiveParam::check();
  }
};

Status check_ranks(const std::string& name, const CollectiveParam& param,
                   const Communicator* communicator) {
  if (communicator == nullptr)
    return {ErrorType::kRtFail, name + " needs a context with a communicator"};
  if (static_cast<size_t>(param.rank) != communicator->rank() ||
      static_cast<size_t>(param.rankSize) != communicator->size())
    return invalid_param(fmt::format("{} is for rank {} of {}, but this is rank {} of {}", name,
                                     param.rank, param.rankSize, communicator->rank(),
                                     communicator->size()));
  return {};
}

class AllReduceOperation final : public ParamOperation<AllReduceParam, Operation> {
 public:
  AllReduceOperation() : ParamOperation("AllReduceOperation") {}
  size_t GetInputNum() const override { return 1; }
  size_t GetOutputNum() const override { return 1; }
  Status InferShape(const std::vector<TensorDesc>& in,
                    std::vector<TensorDesc>& out) const override {
    if (!is_floating(in[0].dtype))
      return invalid_tensor("AllReduceOperation takes a floating tensor");
    out = {in[0]};
    return {};
  }

 private:
  Status prepare(const VariantPack&, uint64_t& workspace_bytes, Context&) override {
    workspace_bytes = 0;
    return {};
  }
  Status run(const VariantPack& pack, uint8_t*, Context& context) override {
    Communicator* communicator = context.communicator();
    if (auto status = check_ranks(GetName(), param(), communicator); !status.ok()) return status;
    using Reduction = Communicator::Reduction;
    const std::string& type = param().allReduceType;
    const Reduction reduction = type == "max"    ? Reduction::kMax
                                : type == "min"  ? Reduction::kMin
                                : type == "prod" ? Reduction::kProd
                                                 : Reduction::kSum;
    return communicator->all_reduce(pack.inTensors[0], pack.outTensors[0], reduction);
  }
};

class AllGatherOperation final : public ParamOperation<CollectiveParam, Operation> {
 public:
  AllGatherOperation() : ParamOperation("AllGatherOperation") {}
  size_t GetInputNum() const override { return 1; }
  size_t GetOutputNum() const override { return 1; }
  Status InferShape(const std::vector<TensorDesc>& in,
                    std::vector<TensorDesc>& out) const override {
    if (in[0].dims.size() == Dims::kMax)
      return invalid_tensor("AllGatherOperation adds a dimension, and x has eight already");
    TensorDesc result{in[0].dtype, {param().rankSize}};
    for (const int64_t size : in[0].dims) result.dims.push_back(size);
    out = {result};
    return {};
  }

 private:
  Status prepare(const VariantPack&, uint64_t& workspace_bytes, Context&) override {
    workspace_bytes = 0;
    return {};
  }
  Status run(const VariantPack& pack, uint8_t*, Context& context) override {
    Communicator* communicator = context.communicator();
    if (auto status = check_ranks(GetName(), param(), communicator); !status.ok()) return status;
    return communicator->all_gather(pack.inTensors[0], pack.outTensors[0]);
  }
};

}  // namespace

std::unique_ptr<Operation> make_all_reduce() { return std::make_unique<AllReduceOperation>(); }
std::unique_ptr<Operation> make_all_gather() { return std::make_unique<AllGatherOperation>(); }

}  // namespace atb
