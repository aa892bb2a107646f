// The enumerations in parameters of the acceleration library: which number means what, and the name
// that some of its tools write instead of the number. One place for everybody who reads them
// (atb_param.h); engine/ has its own on purpose, as it stands in for the library itself.
//
// Numbers are the library's, so an enumerator's value is the number in the file. To add one: the
// enumeration here, its names in atb_enums.cpp, and a values_of for it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace ait::graph {

// Of ElewiseOperation. Three of them quantise (6 with one scale for the whole tensor, 17 with one
// for each channel, 19 with one for each row, which it finds itself), and 18 goes back.
enum class ElewiseType : int8_t {
  kUndefined = 0,
  kCast = 1,
  kMuls = 2,  // by one number
  kCos = 3,
  kSin = 4,
  kNeg = 5,
  kQuant = 6,
  kLogicalNot = 7,
  kAdd = 8,
  kMul = 9,
  kRealDiv = 10,
  kLogicalAnd = 11,
  kLogicalOr = 12,
  kLess = 13,
  kGreater = 14,
  kSub = 15,
  kEqual = 16,
  kQuantPerChannel = 17,
  kDequantPerChannel = 18,
  kDynamicQuant = 19,
  kTanh = 20,
};

// Of ActivationOperation, and as activationType of FusedAddTopkDivOperation.
enum class ActivationType : int8_t {
  kUndefined = 0,
  kRelu = 1,
  kGelu = 2,
  kFastGelu = 3,
  kSwish = 4,
  kLog = 5,
  kSwigluForward = 6,
  kSwigluBackward = 7,
  kSigmoid = 8,
  kFasterGeluForward = 9,
};
enum class GeluMode : int8_t { kTanh = 0, kNone = 1 };

// Of LinearOperation.
enum class MatmulType : int8_t { kUndefined = 0, kEinSum = 1 };
enum class LinearQuantMode : int8_t { kUndefined = 0, kPerChannel = 1, kPerToken = 2 };

// Of LinearParallelOperation. No quantisation is -1 here, 0 everywhere else.
enum class ParallelType : int8_t {
  kUndefined = -1,
  kLinearAllReduce = 0,
  kLinearReduceScatter = 1,
  kAllGatherLinear = 2,
  kPureLinear = 3,
  kAllGatherLinearReduceScatter = 4,
  kAllToAllVcAllGatherGmm = 5,
  kGmmReduceScatterAllToAllVc = 6,
};
enum class ParallelQuantType : int8_t {
  kUndefined = -1,
  kPerTensor = 0,
  kPerChannel = 1,
  kPerGroup = 2,
  kPerToken = 3,
};

// Of AllReduceOperation.
enum class AllReduceQuantType : int8_t { kUndefined = 0, kPerTensor = 1, kPerChannel = 2 };

// Of mixtures of experts: GroupTopkOperation, GroupedMatmulWithRoutingOperation and
// SwigluQuantOperation.
enum class GroupMultiFlag : int8_t { kUndefined = 0, kSumMultiMax = 1 };
enum class GroupedMatmulType : int8_t { kUp = 0, kDown = 1 };
enum class SwigluQuantType : int8_t { kPerToken = 0 };

// Of RmsNormOperation and LayerNormOperation.
enum class NormLayerType : int8_t { kUndefined = 0, kNorm = 1, kPreNorm = 2, kPostNorm = 3 };
enum class NormQuantType : int8_t {
  kUndefined = 0,
  kInt4 = 1,
  kInt8 = 2,
  kInt16 = 3,
  kFloat8 = 4,
  kFloat16 = 5,
};
enum class DynamicQuantType : int8_t { kUndefined = 0, kSymmetric = 1, kAsymmetric = 2 };
enum class NormPrecisionMode : int8_t { kHighPrecision = 0, kHighPerformance = 1 };
enum class NormModelType : int8_t { kLlama = 0, kGemma = 1 };

// Of SelfAttentionOperation; what begins with Attention is PagedAttentionOperation's, too.
enum class SelfAttentionCalcType : int8_t {
  kUndefined = 0,
  kEncoder = 1,
  kDecoder = 2,
  kPaEncoder = 3,
  kPrefixEncoder = 4,
};
enum class SelfAttentionMaskType : int8_t {
  kUndefined = 0,
  kNorm = 1,
  kAlibi = 2,
  kNormCompress = 3,
  kAlibiCompress = 4,
  kAlibiCompressSqrt = 5,
  kAlibiCompressLeftAlign = 6,
  kSlidingWindowNorm = 7,
  kSlidingWindowCompress = 8,
  kCausal = 9,
};
enum class SelfAttentionKernelType : int8_t { kDefault = 0, kHighPrecision = 1, kExpM8V2 = 2 };
enum class SelfAttentionClampType : int8_t { kUndefined = 0, kMinMax = 1 };
enum class SelfAttentionKvCacheCfg : int8_t { kCaches = 0, kBypass = 1 };
enum class SelfAttentionCacheType : int8_t { kNorm = 0, kSwa = 1 };
enum class AttentionQuantType : int8_t {
  kUndefined = 0,
  kDequantFusion = 1,
  kQkvOffline = 2,
  kQkvOnline = 3,
};
enum class AttentionScaleType : int8_t { kTor = 0, kLogN = 1 };
enum class AttentionInputLayout : int8_t { kBsnd = 0, kBnsd = 1 };

// Of PagedAttentionOperation. Its masks are numbered unlike SelfAttentionOperation's.
enum class PagedAttentionMaskType : int8_t {
  kUndefined = 0,
  kNorm = 1,
  kAlibi = 2,
  kSpec = 3,
  kMaskFree = 4,
  kNormCompress = 5,
};
enum class PagedAttentionCalcType : int8_t { kUndefined = 0, kSpec = 1 };

// Of PagedAttentionOperation and ReshapeAndCacheOperation.
enum class CompressType : int8_t { kUndefined = 0, kKvHead = 1, kKvHeadRope = 2 };

// Of MultiLatentAttentionOperation.
enum class LatentMaskType : int8_t {
  kUndefined = 0,
  kSpec = 1,
  kMaskFree = 2,
  kCausal = 3,
  kSlidingWindow = 4,
};
enum class LatentCalcType : int8_t {
  kUndefined = 0,
  kSpec = 1,
  kRing = 2,
  kSpecAndRing = 3,
  kPrefill = 4,
};
enum class LatentCacheMode : int8_t { kKvCache = 0, kSplit = 1, kSplitInt8Nz = 2, kSplitNz = 3 };
// Of MlaPreprocessOperation, whose cacheMode is that of MultiLatentAttentionOperation.
enum class LatentQuantMode : int8_t {
  kPerTensorAsymmetric = 0,
  kPerTokenSymmetric = 1,
  kPerTokenAsymmetric = 2,
  kUnquantised = 3,
};
enum class MaskUseStatusType : int8_t { kUndefined = 0, kBatchMask = 1 };

// Of RingMLAOperation.
enum class RingCalcType : int8_t { kDefault = 0, kFirstRing = 1 };
enum class RingMaskType : int8_t { kNoMask = 0, kTriangle = 1 };

// Of ReshapeAndCacheOperation.
enum class ReshapeKvCacheCfg : int8_t { kCaches = 0, kKeyCacheOnly = 1, kCachesNz = 2 };

// Of TransdataOperation and ReduceOperation.
enum class TransdataType : int8_t { kUndefined = 0, kNzToNd = 1, kNdToNz = 2 };
enum class ReduceType : int8_t { kUndefined = 0, kMax = 1, kMin = 2, kSum = 3 };

// Of IndexAddOperation and ScatterElementsV2Operation.
enum class IndexAddType : int8_t { kUndefined = 0, kAdd = 1, kAddValid = 2 };
enum class ScatterReduction : int8_t { kNone = 0, kAdd = 1 };

// Of TopkToppSamplingOperation.
enum class SamplingType : int8_t {
  kUndefined = -1,
  kSingleTopk = 0,
  kMultinomial = 1,
  kExponential = 2,
  kMultinomialLogprobs = 3,
  kExponentialLogprobs = 4,
};

struct AtbValue {
  int64_t number;
  std::string_view name;
};

// All values of the argument's type, whatever the argument is, by number. A number may have several
// names.
std::span<const AtbValue> values_of(ElewiseType);
std::span<const AtbValue> values_of(ActivationType);
std::span<const AtbValue> values_of(GeluMode);
std::span<const AtbValue> values_of(MatmulType);
std::span<const AtbValue> values_of(LinearQuantMode);
std::span<const AtbValue> values_of(ParallelType);
std::span<const AtbValue> values_of(ParallelQuantType);
std::span<const AtbValue> values_of(AllReduceQuantType);
std::span<const AtbValue> values_of(GroupMultiFlag);
std::span<const AtbValue> values_of(GroupedMatmulType);
std::span<const AtbValue> values_of(SwigluQuantType);
std::span<const AtbValue> values_of(NormLayerType);
std::span<const AtbValue> values_of(NormQuantType);
std::span<const AtbValue> values_of(DynamicQuantType);
std::span<const AtbValue> values_of(NormPrecisionMode);
std::span<const AtbValue> values_of(NormModelType);
std::span<const AtbValue> values_of(SelfAttentionCalcType);
std::span<const AtbValue> values_of(SelfAttentionMaskType);
std::span<const AtbValue> values_of(SelfAttentionKernelType);
std::span<const AtbValue> values_of(SelfAttentionClampType);
std::span<const AtbValue> values_of(SelfAttentionKvCacheCfg);
std::span<const AtbValue> values_of(SelfAttentionCacheType);
std::span<const AtbValue> values_of(AttentionQuantType);
std::span<const AtbValue> values_of(AttentionScaleType);
std::span<const AtbValue> values_of(AttentionInputLayout);
std::span<const AtbValue> values_of(PagedAttentionMaskType);
std::span<const AtbValue> values_of(PagedAttentionCalcType);
std::span<const AtbValue> values_of(CompressType);
std::span<const AtbValue> values_of(LatentMaskType);
std::span<const AtbValue> values_of(LatentCalcType);
std::span<const AtbValue> values_of(LatentCacheMode);
std::span<const AtbValue> values_of(LatentQuantMode);
std::span<const AtbValue> values_of(MaskUseStatusType);
std::span<const AtbValue> values_of(RingCalcType);
std::span<const AtbValue> values_of(RingMaskType);
std::span<const AtbValue> values_of(ReshapeKvCacheCfg);
std::span<const AtbValue> values_of(TransdataType);
std::span<const AtbValue> values_of(ReduceType);
std::span<const AtbValue> values_of(IndexAddType);
std::span<const AtbValue> values_of(ScatterReduction);
std::span<const AtbValue> values_of(SamplingType);

}  // namespace ait::graph
