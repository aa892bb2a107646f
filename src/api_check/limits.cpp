#include "api_check/limits.h"

#include <algorithm>
#include <array>
#include <string>

namespace ait::api_check {
namespace {

// A list of words between blanks; " add " is in " add sub ".
constexpr std::string_view kExact =
    " H T mH mT abs absolute adaptive_max_pool1d adaptive_max_pool1d_with_indices "
    "adaptive_max_pool2d adaptive_max_pool2d_with_indices adaptive_max_pool3d "
    "adaptive_max_pool3d_with_indices adjoint alias all amax amin aminmax and any argmax argmin "
    "argsort argwhere as_strided as_strided_copy as_tensor asarray atleast_1d atleast_2d "
    "atleast_3d "
    "bfloat16 bincount bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift "
    "bitwise_xor block_diag bool broadcast_tensors broadcast_to bucketize byte cartesian_prod cat "
    "ceil channel_shuffle char chunk clamp clamp_max clamp_min clip clone column_stack "
    "combinations "
    "concat concatenate conj conj_physical constant_pad_nd contiguous copy copysign count_nonzero "
    "cummax cummin detach diag diag_embed diagflat diagonal diagonal_scatter double dsplit dstack "
    "embedding empty_like eq equal expand expand_as eye fill fill_diagonal fix flatten flip fliplr "
    "flipud float floor fmax fmin fmod full full_like gather ge getitem greater greater_equal gt "
    "half hardshrink hardtanh heaviside hsplit hstack imag index_copy index_fill index_put "
    "index_select int invert isclose isfinite isin isinf isnan isneginf isposinf isreal kthvalue "
    "le "
    "less less_equal logical_and logical_not logical_or logical_xor long lt masked_fill "
    "masked_scatter masked_select max max_pool1d max_pool1d_with_indices max_pool2d "
    "max_pool2d_with_indices max_pool3d max_pool3d_with_indices max_unpool1d max_unpool2d "
    "max_unpool3d maximum median meshgrid min minimum mode moveaxis movedim msort nan_to_num "
    "nanmedian narrow narrow_copy ne neg negative new_full new_ones new_tensor new_zeros nonzero "
    "not_equal numpy_T one_hot ones ones_like or pad permute permute_copy pixel_shuffle "
    "pixel_unshuffle positive put ravel real relu relu6 repeat repeat_interleave reshape "
    "reshape_as resolve_conj resolve_neg roll rot90 round row_stack scalar_tensor scatter "
    "searchsorted select select_scatter setitem sgn short sign signbit slice slice_scatter sort "
    "split split_with_sizes squeeze stack swapaxes swapdims t take take_along_dim tensor "
    "tensor_split threshold tile to topk transpose tril tril_indices triu triu_indices trunc type "
    "type_as unbind unflatten unique unique_consecutive unsafe_chunk unsafe_split "
    "unsafe_split_with_sizes unsqueeze view view_as view_as_complex view_as_real vsplit vstack "
    "where xor zero zeros zeros_like ";

constexpr std::string_view kRounded =
    " add arange div divide ldexp mul multiply outer ger kron rdiv rsub rtruediv sqrt square sub "
    "subtract true_divide truediv ";

constexpr std::string_view kFunction =
    " acos acosh addcdiv addcmul arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin asinh "
    "atan atan2 atanh celu cos cosh deg2rad elu erf erfc erfinv exp exp2 expm1 frac gelu "
    "hardsigmoid "
    "hardswish hypot leaky_relu lerp linspace log log10 log1p log2 logit logsigmoid mish pow "
    "prelu rad2deg reciprocal rpow rsqrt selu sigmoid silu sin sinc sinh softplus softshrink "
    "softsign special.expit special.expm1 special.exp2 special.log1p tan tanh tanhshrink xlogy ";

constexpr std::string_view kProduct =
    " _grouped_mm addbmm addmm addmv addr baddbmm bilinear bmm chain_matmul conv1d conv2d conv3d "
    "conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d convolution cumsum dot einsum "
    "grouped_mm inner linalg.matmul linalg.multi_dot linalg.norm linalg.vecdot linalg.vector_norm "
    "linear matmul mean mm mv nanmean nansum norm scaled_dot_product_attention sum sum_to_size "
    "tensordot trace vdot ";

// Of the first three kinds: differences, and what kernels compute as one, as gelu by 1 + erf(x).
constexpr std::string_view kSums = " add sub subtract rsub gelu tanhshrink ";

// Limits in roundings: of results in float32 and float64, whose kernels add up in the same type, and
// of narrower ones, whose kernels compute in float32 and round at the end. Derived from what sound
// kernels of CPUs and GPUs reach over the models of docs/api-check.md, with a factor of two to four.
struct Limit {
  double full;
  double narrow;
};
constexpr std::array<Limit, 5> kLimits = {{{0, 0}, {4, 4}, {16, 4}, {128, 8}, {256, 32}}};

bool has_word(std::string_view list, std::string_view word) {
  return list.find(" " + std::string(word) + " ") != std::string_view::npos;
}

// Without in-place endings and the underscores of operators.
std::string_view plain_name(std::string_view name) {
  if (name.starts_with("__") && name.ends_with("__") && name.size() > 4) {
    name = name.substr(2, name.size() - 4);
    // __iadd__ is add_, but __invert__ is no nvert.
    if (name.starts_with('i') &&
        (has_word(kExact, name.substr(1)) || has_word(kRounded, name.substr(1))) &&
        !has_word(kExact, name))
      name.remove_prefix(1);
    if (name.starts_with('r') && has_word(kRounded, name.substr(1))) name.remove_prefix(1);
  } else if (name.ends_with('_')) {
    name.remove_suffix(1);
  }
  return name;
}

}  // namespace

Kind kind_of(std::string_view name) {
  name = plain_name(name);
  if (has_word(kExact, name)) return Kind::kExact;
  if (has_word(kRounded, name)) return Kind::kRounded;
  if (has_word(kFunction, name)) return Kind::kFunction;
  return has_word(kProduct, name) ? Kind::kProduct : Kind::kComposite;
}

bool adds_up(std::string_view name, Direction direction) {
  if (direction == Direction::kBackward || kind_of(name) >= Kind::kProduct) return true;
  return has_word(kSums, plain_name(name));
}

double limit_of(std::string_view name, Direction direction, DType dtype) {
  const Kind kind = direction == Direction::kBackward ? Kind::kComposite : kind_of(name);
  const Limit& limit = kLimits[static_cast<size_t>(kind)];
  return size_bytes(dtype) >= size_bytes(DType::kFloat32) ? limit.full : limit.narrow;
}

}  // namespace ait::api_check
