#include "graph/atb_enums.h"

namespace ait::graph {

std::span<const AtbValue> values_of(ElewiseType) {
  static constexpr AtbValue kValues[] = {
      {0, "ELEWISE_UNDEFINED"},
      {1, "ELEWISE_CAST"},
      {2, "ELEWISE_MULS"},
      {3, "ELEWISE_COS"},
      {4, "ELEWISE_SIN"},
      {5, "ELEWISE_NEG"},
      {6, "ELEWISE_QUANT"},
      {7, "ELEWISE_LOGICAL_NOT"},
      {8, "ELEWISE_ADD"},
      {9, "ELEWISE_MUL"},
      {10, "ELEWISE_REALDIV"},
      {11, "ELEWISE_LOGICAL_AND"},
      {12, "ELEWISE_LOGICAL_OR"},
      {13, "ELEWISE_LESS"},
      {14, "ELEWISE_GREATER"},
      {15, "ELEWISE_SUB"},
      {16, "ELEWISE_EQUAL"},
      {17, "ELEWISE_QUANT_PER_CHANNEL"},
      {18, "ELEWISE_DEQUANT_PER_CHANNEL"},
      {19, "ELEWISE_DYNAMIC_QUANT"},
      {20, "ELEWISE_TANH"},
  };
  return kValues;
}

std::span<const AtbValue> values_of(ActivationType) {
  static constexpr AtbValue kValues[] = {
      {0, "ACTIVATION_UNDEFINED"},      {1, "ACTIVATION_RELU"},
      {2, "ACTIVATION_GELU"},           {3, "ACTIVATION_FAST_GELU"},
      {4, "ACTIVATION_SWISH"},          {5, "ACTIVATION_LOG"},
      {6, "ACTIVATION_SWIGLU_FORWARD"}, {7, "ACTIVATION_SWIGLU_BACKWARD"},
      {8, "ACTIVATION_SIGMOID"},        {9, "ACTIVATION_FASTER_GELU_FORWARD"},
  };
  return kValues;
}

std::span<const AtbValue> values_of(GeluMode) {
  static constexpr AtbValue kValues[] = {{0, "TANH_MODE"}, {1, "NONE_MODE"}};
  return kValues;
}

std::span<const AtbValue> values_of(MatmulType) {
  static constexpr AtbValue kValues[] = {{0, "MATMUL_UNDEFINED"}, {1, "MATMUL_EIN_SUM"}};
  return kValues;
}

std::span<const AtbValue> values_of(LinearQuantMode) {
  static constexpr AtbValue kValues[] = {
      {0, "QUANT_UNDEFINED"}, {1, "PER_CHANNEL"}, {2, "PER_TOKEN"}};
  return kValues;
}

std::span<const AtbValue> values_of(ParallelType) {
  static constexpr AtbValue kValues[] = {
      {-1, "UNDEFINED"},
      {0, "LINEAR_ALL_REDUCE"},
      {1, "LINEAR_REDUCE_SCATTER"},
      {2, "ALL_GATHER_LINEAR"},
      {3, "PURE_LINEAR"},
      {4, "ALL_GATHER_LINEAR_REDUCE_SCATTER"},
      {5, "ALLTOALLVC_ALL_GATHER_GMM"},
      {6, "GMM_REDUCE_SCATTER_ALLTOALLVC"},
  };
  return kValues;
}

std::span<const AtbValue> values_of(ParallelQuantType) {
  static constexpr AtbValue kValues[] = {
      {-1, "QUANT_TYPE_UNDEFINED"},  {-1, "QUANT_TYPE_UNQUANT"},  {0, "QUANT_TYPE_PER_TENSOR"},
      {1, "QUANT_TYPE_PER_CHANNEL"}, {2, "QUANT_TYPE_PER_GROUP"}, {3, "QUANT_TYPE_PER_TOKEN"},
  };
  return kValues;
}

std::span<const AtbValue> values_of(AllReduceQuantType) {
  static constexpr AtbValue kValues[] = {
      {0, "QUANT_TYPE_UNDEFINED"}, {1, "QUANT_TYPE_PER_TENSOR"}, {2, "QUANT_TYPE_PER_CHANNEL"}};
  return kValues;
}

std::span<const AtbValue> values_of(GroupMultiFlag) {
  static constexpr AtbValue kValues[] = {{0, "UNDEFINED"}, {1, "SUM_MULTI_MAX"}};
  return kValues;
}

std::span<const AtbValue> values_of(GroupedMatmulType) {
  static constexpr AtbValue kValues[] = {{0, "GROUPED_MATMUL_UP"}, {1, "GROUPED_MATMUL_DOWN"}};
  return kValues;
}

std::span<const AtbValue> values_of(SwigluQuantType) {
  static constexpr AtbValue kValues[] = {{0, "QUANT_TYPE_PER_TOKEN"}};
  return kValues;
}

std::span<const AtbValue> values_of(NormLayerType) {
  static constexpr AtbValue kValues[] = {
      {0, "RMS_NORM_UNDEFINED"}, {0, "LAYER_NORM_UNDEFINED"}, {1, "RMS_NORM_NORM"},
      {1, "LAYER_NORM_NORM"},    {2, "RMS_NORM_PRENORM"},     {2, "LAYER_NORM_PRENORM"},
      {3, "RMS_NORM_POSTNORM"},  {3, "LAYER_NORM_POSTNORM"},
  };
  return kValues;
}

std::span<const AtbValue> values_of(NormQuantType) {
  static constexpr AtbValue kValues[] = {
      {0, "QUANT_UNDEFINED"}, {0, "QUANT_UNQUANT"}, {1, "QUANT_INT4"},    {2, "QUANT_INT8"},
      {3, "QUANT_INT16"},     {4, "QUANT_FLOAT8"},  {5, "QUANT_FLOAT16"},
  };
  return kValues;
}

std::span<const AtbValue> values_of(DynamicQuantType) {
  static constexpr AtbValue kValues[] = {{0, "DYNAMIC_QUANT_UNDEFINED"},
                                         {1, "DYNAMIC_QUANT_SYMMETRIC"},
                                         {2, "DYNAMIC_QUANT_ASYMMETRIC"}};
  return kValues;
}

std::span<const AtbValue> values_of(NormPrecisionMode) {
  static constexpr AtbValue kValues[] = {{0, "HIGH_PRECISION_MODE"}, {1, "HIGH_PERFORMANCE_MODE"}};
  return kValues;
}

std::span<const AtbValue> values_of(NormModelType) {
  static constexpr AtbValue kValues[] = {{0, "LLAMA_MODEL"}, {1, "GEMMA_MODEL"}};
  return kValues;
}

std::span<const AtbValue> values_of(SelfAttentionCalcType) {
  static constexpr AtbValue kValues[] = {
      {0, "UNDEFINED"}, {1, "ENCODER"}, {2, "DECODER"}, {3, "PA_ENCODER"}, {4, "PREFIX_ENCODER"},
  };
  return kValues;
}

std::span<const AtbValue> values_of(SelfAttentionMaskType) {
  static constexpr AtbValue kValues[] = {
      {0, "MASK_TYPE_UNDEFINED"},
      {1, "MASK_TYPE_NORM"},
      {2, "MASK_TYPE_ALIBI"},
      {3, "MASK_TYPE_NORM_COMPRESS"},
      {4, "MASK_TYPE_ALIBI_COMPRESS"},
      {5, "MASK_TYPE_ALIBI_COMPRESS_SQRT"},
      {6, "MASK_TYPE_ALIBI_COMPRESS_LEFT_ALIGN"},
      {7, "MASK_TYPE_SLIDING_WINDOW_NORM"},
      {8, "MASK_TYPE_SLIDING_WINDOW_COMPRESS"},
      {9, "MASK_TYPE_CAUSAL_MASK"},
  };
  return kValues;
}

std::span<const AtbValue> values_of(SelfAttentionKernelType) {
  static constexpr AtbValue kValues[] = {
      {0, "KERNELTYPE_DEFAULT"}, {1, "KERNELTYPE_HIGH_PRECISION"}, {2, "KERNELTYPE_EXP_M8V2"}};
  return kValues;
}

std::span<const AtbValue> values_of(SelfAttentionClampType) {
  static constexpr AtbValue kValues[] = {{0, "CLAMP_TYPE_UNDEFINED"}, {1, "CLAMP_TYPE_MIN_MAX"}};
  return kValues;
}

std::span<const AtbValue> values_of(SelfAttentionKvCacheCfg) {
  static constexpr AtbValue kValues[] = {{0, "K_CACHE_V_CACHE"}, {1, "K_BYPASS_V_BYPASS"}};
  return kValues;
}

std::span<const AtbValue> values_of(SelfAttentionCacheType) {
  static constexpr AtbValue kValues[] = {{0, "CACHE_TYPE_NORM"}, {1, "CACHE_TYPE_SWA"}};
  return kValues;
}

std::span<const AtbValue> values_of(AttentionQuantType) {
  static constexpr AtbValue kValues[] = {
      {0, "TYPE_QUANT_UNDEFINED"},   {0, "TYPE_QUANT_UNQUANT"},    {1, "TYPE_DEQUANT_FUSION"},
      {2, "TYPE_QUANT_QKV_OFFLINE"}, {3, "TYPE_QUANT_QKV_ONLINE"},
  };
  return kValues;
}

std::span<const AtbValue> values_of(AttentionScaleType) {
  static constexpr AtbValue kValues[] = {{0, "SCALE_TYPE_TOR"}, {1, "SCALE_TYPE_LOGN"}};
  return kValues;
}

std::span<const AtbValue> values_of(AttentionInputLayout) {
  static constexpr AtbValue kValues[] = {{0, "TYPE_BSND"}, {1, "TYPE_BNSD"}};
  return kValues;
}

std::span<const AtbValue> values_of(PagedAttentionMaskType) {
  static constexpr AtbValue kValues[] = {
      {0, "UNDEFINED"},      {1, "MASK_TYPE_NORM"},      {2, "MASK_TYPE_ALIBI"},
      {3, "MASK_TYPE_SPEC"}, {4, "MASK_TYPE_MASK_FREE"}, {5, "MASK_TYPE_NORM_COMPRESS"},
  };
  return kValues;
}

std::span<const AtbValue> values_of(PagedAttentionCalcType) {
  static constexpr AtbValue kValues[] = {{0, "CALC_TYPE_UNDEFINED"}, {1, "CALC_TYPE_SPEC"}};
  return kValues;
}

std::span<const AtbValue> values_of(CompressType) {
  static constexpr AtbValue kValues[] = {{0, "COMPRESS_TYPE_UNDEFINED"},
                                         {1, "COMPRESS_TYPE_KVHEAD"},
                                         {2, "COMPRESS_TYPE_KVHEAD_ROPE"}};
  return kValues;
}

std::span<const AtbValue> values_of(LatentMaskType) {
  static constexpr AtbValue kValues[] = {
      {0, "UNDEFINED"},           {1, "MASK_TYPE_SPEC"},
      {2, "MASK_TYPE_MASK_FREE"}, {3, "MASK_TYPE_CAUSAL_MASK"},
      {4, "MASK_TYPE_SWA_NORM"},
  };
  return kValues;
}

std::span<const AtbValue> values_of(LatentCalcType) {
  static constexpr AtbValue kValues[] = {
      {0, "CALC_TYPE_UNDEFINED"},     {1, "CALC_TYPE_SPEC"},    {2, "CALC_TYPE_RING"},
      {3, "CALC_TYPE_SPEC_AND_RING"}, {4, "CALC_TYPE_PREFILL"},
  };
  return kValues;
}

std::span<const AtbValue> values_of(LatentCacheMode) {
  static constexpr AtbValue kValues[] = {
      {0, "KVCACHE"}, {1, "KROPE_CTKV"}, {2, "INT8_NZCACHE"}, {3, "NZCACHE"}};
  return kValues;
}

std::span<const AtbValue> values_of(LatentQuantMode) {
  static constexpr AtbValue kValues[] = {{0, "PER_TENSOR_QUANT_ASYMM"},
                                         {1, "PER_TOKEN_QUANT_SYMM"},
                                         {2, "PER_TOKEN_QUANT_ASYMM"},
                                         {3, "UNQUANT"}};
  return kValues;
}

std::span<const AtbValue> values_of(MaskUseStatusType) {
  static constexpr AtbValue kValues[] = {{0, "MASK_USE_STATUS_TYPE_UNDEFINED"},
                                         {1, "MASK_USE_STATUS_TYPE_BATCH_MASK"}};
  return kValues;
}

std::span<const AtbValue> values_of(RingCalcType) {
  // The library writes the second so.
  static constexpr AtbValue kValues[] = {
      {0, "CALC_TYPE_DEFAULT"}, {1, "CALC_TYPE_FISRT_RING"}, {1, "CALC_TYPE_FIRST_RING"}};
  return kValues;
}

std::span<const AtbValue> values_of(RingMaskType) {
  static constexpr AtbValue kValues[] = {{0, "NO_MASK"}, {1, "MASK_TYPE_TRIU"}};
  return kValues;
}

std::span<const AtbValue> values_of(ReshapeKvCacheCfg) {
  static constexpr AtbValue kValues[] = {
      {0, "K_CACHE_V_CACHE"}, {1, "K_CACHE_V_BYPASS"}, {2, "K_CACHE_V_CACHE_NZ"}};
  return kValues;
}

std::span<const AtbValue> values_of(TransdataType) {
  static constexpr AtbValue kValues[] = {
      {0, "UNDEFINED"}, {1, "FRACTAL_NZ_TO_ND"}, {2, "ND_TO_FRACTAL_NZ"}};
  return kValues;
}

std::span<const AtbValue> values_of(ReduceType) {
  static constexpr AtbValue kValues[] = {
      {0, "REDUCE_UNDEFINED"},
      {1, "REDUCE_MAX"},
      {2, "REDUCE_MIN"},
      {3, "REDUCE_SUM"},
  };
  return kValues;
}

std::span<const AtbValue> values_of(IndexAddType) {
  static constexpr AtbValue kValues[] = {
      {0, "INDEX_UNDEFINED"}, {1, "INDEX_ADD"}, {2, "INDEX_ADD_VALID"}};
  return kValues;
}

std::span<const AtbValue> values_of(ScatterReduction) {
  static constexpr AtbValue kValues[] = {{0, "NONE"}, {1, "ADD"}};
  return kValues;
}

std::span<const AtbValue> values_of(SamplingType) {
  static constexpr AtbValue kValues[] = {
      {-1, "SAMPLING_UNDEFINED"},
      {0, "SINGLE_TOPK_SAMPLING"},
      {1, "BATCH_TOPK_MULTINOMIAL_SAMPLING"},
      {2, "BATCH_TOPK_EXPONENTIAL_SAMPLING"},
      {3, "BATCH_TOPK_MULTINOMIAL_LOGPROBS_SAMPLING"},
      {4, "BATCH_TOPK_EXPONENTIAL_LOGPROBS_SAMPLING"},
  };
  return kValues;
}

}  // namespace ait::graph
