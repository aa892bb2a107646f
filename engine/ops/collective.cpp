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

  void Visit(ParamFields& fields) {
    fields.Field("rank", rank);
    fields.Field("rankSize", rankSize);
    fields.Field("rankRoot", rankRoot);
    fields.Field("backend", backend);
    fields.Field("commMode", commMode);
    fields.Field("rankTableFile", rankTableFile);
    fields.Field("commDomain", commDomain);
  }
  Status Check() const {
    if (rankSize < 1 || rank < 0 || rank >= rankSize)
      return InvalidParam("rank is at least 0 and below rankSize");
    return {};
  }
};

struct AllReduceParam : CollectiveParam {
  int64_t quantType = 0, outDataType = -1;
  std::string allReduceType = "sum";

  void Visit(ParamFields& fields) {
    CollectiveParam::Visit(fields);
    fields.Field("allReduceType", allReduceType);
    fields.Field("quantType", quantType);
    fields.Field("outDataType", outDataType);
  }
  Status Check() const {
    if (quantType != 0) return InvalidParam("quantised reduction is not supported");
    if (allReduceType != "sum" && allReduceType != "max" && allReduceType != "min" &&
        allReduceType != "prod")
      return InvalidParam("allReduceType is sum, max, min or prod");
    return CollectiveParam::Check();
  }
};

Status CheckRanks(const std::string& name, const CollectiveParam& param,
                  const Communicator* communicator) {
  if (communicator == nullptr)
    return {ErrorType::kRtFail, name + " needs a context with a communicator"};
  if (static_cast<size_t>(param.rank) != communicator->rank() ||
      static_cast<size_t>(param.rankSize) != communicator->size())
    return InvalidParam(fmt::format("{} is for rank {} of {}, but this is rank {} of {}", name,
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
    if (!IsFloating(in[0].dtype))
      return InvalidTensor("AllReduceOperation takes a floating tensor");
    out = {in[0]};
    return {};
  }

 private:
  Status Prepare(const VariantPack&, uint64_t& workspace_bytes, Context&) override {
    workspace_bytes = 0;
    return {};
  }
  Status Run(const VariantPack& pack, uint8_t*, Context& context) override {
    Communicator* communicator = context.communicator();
    if (auto status = CheckRanks(GetName(), param(), communicator); !status.ok()) return status;
    using Reduction = Communicator::Reduction;
    const std::string& type = param().allReduceType;
    const Reduction reduction = type == "max"    ? Reduction::kMax
                                : type == "min"  ? Reduction::kMin
                                : type == "prod" ? Reduction::kProd
                                                 : Reduction::kSum;
    return communicator->AllReduce(pack.inTensors[0], pack.outTensors[0], reduction);
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
      return InvalidTensor("AllGatherOperation adds a dimension, and x has eight already");
    TensorDesc result{in[0].dtype, {param().rankSize}};
    for (const int64_t size : in[0].dims) result.dims.push_back(size);
    out = {result};
    return {};
  }

 private:
  Status Prepare(const VariantPack&, uint64_t& workspace_bytes, Context&) override {
    workspace_bytes = 0;
    return {};
  }
  Status Run(const VariantPack& pack, uint8_t*, Context& context) override {
    Communicator* communicator = context.communicator();
    if (auto status = CheckRanks(GetName(), param(), communicator); !status.ok()) return status;
    return communicator->AllGather(pack.inTensors[0], pack.outTensors[0]);
  }
};

}  // namespace

std::unique_ptr<Operation> MakeAllReduce() { return std::make_unique<AllReduceOperation>(); }
std::unique_ptr<Operation> MakeAllGather() { return std::make_unique<AllGatherOperation>(); }

}  // namespace atb
