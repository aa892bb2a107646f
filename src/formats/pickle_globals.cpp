#include "formats/pickle_globals.h"

#include <iterator>

namespace ait::formats::pickle {
namespace {

using enum GlobalKind;

constexpr Global kGlobals[] = {
    {"collections", "OrderedDict", kOrderedDict, {}},
    {"collections", "defaultdict", kDefaultDict, {}},
    {"collections", "Counter", kHarmless, {}},
    {"builtins", "set", kSet, {}},
    {"builtins", "frozenset", kSet, {}},
    {"__builtin__", "set", kSet, {}},  // protocol 2 speaks Python 2
    {"__builtin__", "frozenset", kSet, {}},

    {"torch._utils", "_rebuild_tensor", kRebuildTensor, {}},
    {"torch._utils", "_rebuild_tensor_v2", kRebuildTensorV2, {}},
    {"torch._utils", "_rebuild_tensor_v3", kRebuildTensorV3, {}},
    // torch_npu saves a copy that the CPU made, in plain layout; the format beside it is of no
    // interest.
    {"torch_npu.utils.storage", "_rebuild_npu_tensor", kRebuildTensor, {}},
    {"torch._utils", "_rebuild_parameter", kRebuildWrapped, {}},
    {"torch._utils", "_rebuild_parameter_with_state", kRebuildWrapped, {}},
    {"torch._utils", "_rebuild_device_tensor_from_cpu_tensor", kRebuildWrapped, {}},
    {"torch._tensor", "_rebuild_from_type", kRebuildFromType, {}},
    {"torch._tensor", "_rebuild_from_type_v2", kRebuildFromType, {}},
    {"torch", "Tensor", kTensorType, {}},
    {"torch.nn.parameter", "Parameter", kTensorType, {}},
    {"torch.nn.parameter", "Buffer", kTensorType, {}},

    {"torch._utils", "_rebuild_qtensor", kUnsupportedTensor, {}},
    {"torch._utils", "_rebuild_sparse_tensor", kUnsupportedTensor, {}},
    {"torch._utils", "_rebuild_sparse_csr_tensor", kUnsupportedTensor, {}},
    {"torch._utils", "_rebuild_nested_tensor", kUnsupportedTensor, {}},
    {"torch._utils", "_rebuild_meta_tensor_no_storage", kUnsupportedTensor, {}},
    {"torch._utils", "_rebuild_wrapper_subclass", kUnsupportedTensor, {}},
    {"torch._utils", "_rebuild_device_tensor_from_numpy", kUnsupportedTensor, {}},
    {"torch.nested._internal.nested_tensor", "_rebuild_njt", kUnsupportedTensor, {}},
    {"torch.nested._internal.nested_tensor", "NestedTensor", kUnsupportedTensor, {}},
    {"numpy.core.multiarray", "_reconstruct", kNumpyArray, {}},
    {"numpy._core.multiarray", "_reconstruct", kNumpyArray, {}},
    {"numpy._core.numeric", "_frombuffer", kNumpyBuffer, {}},
    {"numpy.core.numeric", "_frombuffer", kNumpyBuffer, {}},

    {"torch", "Size", kHarmless, {}},
    {"torch", "device", kHarmless, {}},
    {"torch.serialization", "_get_layout", kHarmless, {}},
    {"torch", "per_tensor_affine", kHarmless, {}},
    {"torch", "per_tensor_symmetric", kHarmless, {}},
    {"torch", "per_channel_affine", kHarmless, {}},
    {"torch", "per_channel_symmetric", kHarmless, {}},
    {"torch", "per_channel_affine_float_qparams", kHarmless, {}},
    {"torch._dynamo.decorators", "_DimRange", kHarmless, {}},
    {"torch_npu.npu._format", "Format", kHarmless, {}},
    {"_codecs", "encode", kHarmless, {}},  // bytes in protocol 2
    {"builtins", "bytes", kHarmless, {}},  // none, in protocol 2
    {"__builtin__", "bytes", kHarmless, {}},
    {"builtins", "bytearray", kHarmless, {}},
    {"__builtin__", "bytearray", kHarmless, {}},
    {"builtins", "complex", kHarmless, {}},
    {"__builtin__", "complex", kHarmless, {}},
    // Types, as the factory of a defaultdict.
    {"builtins", "dict", kHarmless, {}},
    {"__builtin__", "dict", kHarmless, {}},
    {"builtins", "list", kHarmless, {}},
    {"__builtin__", "list", kHarmless, {}},
    {"builtins", "int", kHarmless, {}},
    {"__builtin__", "int", kHarmless, {}},
    {"builtins", "float", kHarmless, {}},
    {"__builtin__", "float", kHarmless, {}},
    {"numpy", "dtype", kNumpyDType, {}},
    {"numpy", "ndarray", kHarmless, {}},
    {"numpy.core.multiarray", "scalar", kNumpyScalar, {}},
    {"numpy._core.multiarray", "scalar", kNumpyScalar, {}},

    {"torch.storage", "UntypedStorage", kStorage, DType::kUInt8},
    {"torch.storage", "_UntypedStorage", kStorage, DType::kUInt8},
    {"torch", "UntypedStorage", kStorage, DType::kUInt8},
    {"torch", "ByteStorage", kStorage, DType::kUInt8},
    {"torch", "CharStorage", kStorage, DType::kInt8},
    {"torch", "ShortStorage", kStorage, DType::kInt16},
    {"torch", "IntStorage", kStorage, DType::kInt32},
    {"torch", "LongStorage", kStorage, DType::kInt64},
    {"torch", "BoolStorage", kStorage, DType::kBool},
    {"torch", "HalfStorage", kStorage, DType::kFloat16},
    {"torch", "BFloat16Storage", kStorage, DType::kBFloat16},
    {"torch", "FloatStorage", kStorage, DType::kFloat32},
    {"torch", "DoubleStorage", kStorage, DType::kFloat64},
    {"torch", "ComplexFloatStorage", kStorage, DType::kComplex64},
    {"torch", "ComplexDoubleStorage", kStorage, DType::kComplex128},
    {"torch", "QInt8Storage", kStorage, {}},
    {"torch", "QUInt8Storage", kStorage, {}},
    {"torch", "QInt32Storage", kStorage, {}},
    {"torch", "QUInt4x2Storage", kStorage, {}},
    {"torch", "QUInt2x4Storage", kStorage, {}},
    {"torch.storage", "TypedStorage", kStorage, {}},

    {"torch", "bool", kDType, DType::kBool},
    {"torch", "int8", kDType, DType::kInt8},
    {"torch", "uint8", kDType, DType::kUInt8},
    {"torch", "int16", kDType, DType::kInt16},
    {"torch", "uint16", kDType, DType::kUInt16},
    {"torch", "int32", kDType, DType::kInt32},
    {"torch", "uint32", kDType, DType::kUInt32},
    {"torch", "int64", kDType, DType::kInt64},
    {"torch", "uint64", kDType, DType::kUInt64},
    {"torch", "float16", kDType, DType::kFloat16},
    {"torch", "bfloat16", kDType, DType::kBFloat16},
    {"torch", "float32", kDType, DType::kFloat32},
    {"torch", "float64", kDType, DType::kFloat64},
    {"torch", "float8_e4m3fn", kDType, DType::kFloat8E4M3FN},
    {"torch", "float8_e5m2", kDType, DType::kFloat8E5M2},
    {"torch", "float8_e4m3fnuz", kDType, DType::kFloat8E4M3FNUZ},
    {"torch", "float8_e5m2fnuz", kDType, DType::kFloat8E5M2FNUZ},
    {"torch", "float8_e8m0fnu", kDType, DType::kFloat8E8M0FNU},
    {"torch", "complex32", kDType, DType::kComplex32},
    {"torch", "complex64", kDType, DType::kComplex64},
    {"torch", "complex128", kDType, DType::kComplex128},
    {"torch", "float4_e2m1fn_x2", kDType, DType::kFloat4Packed},
    // Shell types: torch itself can do little more than carry them.
    {"torch", "qint8", kDType, {}},
    {"torch", "quint8", kDType, {}},
    {"torch", "qint32", kDType, {}},
    {"torch", "quint4x2", kDType, {}},
    {"torch", "quint2x4", kDType, {}},
    {"torch", "bits1x8", kDType, {}},
    {"torch", "bits2x4", kDType, {}},
    {"torch", "bits4x2", kDType, {}},
    {"torch", "bits8", kDType, {}},
    {"torch", "bits16", kDType, {}},
    {"torch", "int1", kDType, {}},
    {"torch", "int2", kDType, {}},
    {"torch", "int3", kDType, {}},
    {"torch", "int4", kDType, {}},
    {"torch", "int5", kDType, {}},
    {"torch", "int6", kDType, {}},
    {"torch", "int7", kDType, {}},
    {"torch", "uint1", kDType, {}},
    {"torch", "uint2", kDType, {}},
    {"torch", "uint3", kDType, {}},
    {"torch", "uint4", kDType, {}},
    {"torch", "uint5", kDType, {}},
    {"torch", "uint6", kDType, {}},
    {"torch", "uint7", kDType, {}},
};
static_assert(std::size(kGlobals) <= 256);

}  // namespace

std::optional<uint8_t> find_global(std::string_view module, std::string_view name) {
  for (size_t i = 0; i < std::size(kGlobals); ++i)
    if (kGlobals[i].name == name && kGlobals[i].module == module) return static_cast<uint8_t>(i);
  return std::nullopt;
}

const Global& global_at(uint8_t index) { return kGlobals[index]; }

std::string Global::text() const { return std::string(module) + "." + std::string(name); }

}  // namespace ait::formats::pickle
