"""The 977 names that the older tool records, by group. "x[_]" stands for x and its in-place twin x_.

Names that a version of torch does not have are never met there.
"""

from __future__ import annotations

_FUNCTIONAL = """
adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool1d_with_indices
adaptive_max_pool2d adaptive_max_pool2d_with_indices adaptive_max_pool3d adaptive_max_pool3d_with_indices
affine_grid alpha_dropout avg_pool1d avg_pool2d avg_pool3d batch_norm bilinear binary_cross_entropy
binary_cross_entropy_with_logits celu[_] channel_shuffle conv1d conv2d conv3d conv_tbc conv_transpose1d
conv_transpose2d conv_transpose3d cosine_embedding_loss cosine_similarity cross_entropy ctc_loss dropout dropout2d
dropout3d elu[_] embedding embedding_bag feature_alpha_dropout fold fractional_max_pool2d
fractional_max_pool2d_with_indices fractional_max_pool3d fractional_max_pool3d_with_indices gaussian_nll_loss gelu
glu grid_sample group_norm gumbel_softmax hardshrink hardsigmoid hardswish hardtanh[_] hinge_embedding_loss
instance_norm interpolate kl_div l1_loss layer_norm leaky_relu[_] linear local_response_norm log_softmax logsigmoid
lp_pool1d lp_pool2d margin_ranking_loss max_pool1d max_pool1d_with_indices max_pool2d max_pool2d_with_indices
max_pool3d max_pool3d_with_indices max_unpool1d max_unpool2d max_unpool3d mse_loss multi_head_attention_forward
multi_margin_loss multilabel_margin_loss multilabel_soft_margin_loss nll_loss normalize one_hot pad
pairwise_distance pdist pixel_shuffle pixel_unshuffle poisson_nll_loss prelu relu[_] relu6 rrelu[_] selu[_] sigmoid
silu smooth_l1_loss soft_margin_loss softmax softmin softplus softshrink softsign tanh tanhshrink threshold[_]
triplet_margin_loss triplet_margin_with_distance_loss unfold upsample upsample_bilinear upsample_nearest
"""

_TENSOR = """
__add__ __and__ __bool__ __div__ __eq__ __ge__ __gt__ __iadd__ __iand__ __idiv__ __ifloordiv__ __ilshift__ __imod__
__imul__ __ior__ __irshift__ __isub__ __ixor__ __lshift__ __matmul__ __mod__ __mul__ __nonzero__ __or__ __radd__
__rmul__ __rshift__ __sub__ __truediv__ __xor__
abs[_] absolute[_] acos[_] acosh[_] add[_] addbmm[_] addcdiv[_] addcmul[_] addmm[_] addmv[_] addr[_] align_as
align_to all allclose amax amin angle any arccos[_] arccosh[_] arcsin[_] arcsinh[_] arctan[_] arctanh[_] argmax
argmin argsort asin[_] asinh[_] atan[_] atan2[_] atanh[_] baddbmm[_] bernoulli[_] bincount bitwise_and[_]
bitwise_not[_] bitwise_or[_] bitwise_xor[_] bmm broadcast_to cauchy_ ceil[_] cholesky cholesky_inverse
cholesky_solve chunk clamp[_] clamp_max[_] clamp_min[_] clip[_] copysign[_] cos[_] cosh[_] count_nonzero cummax
cummin cumprod[_] cumsum[_] deg2rad[_] det diag diag_embed diagflat diagonal diff digamma[_] dist div[_] divide[_]
dot eig eq[_] equal erf[_] erfc[_] erfinv[_] exp[_] exp2[_] expm1[_] exponential_ fill_ fill_diagonal_ fix[_]
flatten flip fliplr flipud float_power[_] floor[_] floor_divide[_] fmax fmin fmod[_] frac[_] gather gcd[_] ge[_]
geometric_ geqrf ger greater[_] greater_equal[_] gt[_] hardshrink heaviside[_] histc hypot[_] igamma[_] igammac[_]
index_add[_] index_copy[_] index_fill[_] index_put[_] index_select inner inverse isclose isfinite isinf isnan
isneginf isposinf isreal kron kthvalue lcm[_] ldexp[_] le[_] lerp[_] less[_] less_equal[_] lgamma[_] log[_] log10[_]
log1p[_] log2[_] log_normal_ log_softmax logaddexp logaddexp2 logcumsumexp logdet logical_and[_] logical_not[_]
logical_or[_] logical_xor[_] logit[_] logsumexp lstsq lt[_] lu_solve map2_ map_ masked_fill[_] masked_scatter[_]
masked_select matmul matrix_exp matrix_power max maximum mean median min minimum mm mode msort mul[_] multinomial
multiply[_] mv mvlgamma[_] nansum narrow narrow_copy ne[_] neg[_] negative[_] nonzero normal_ not_equal[_] permute
pinverse polygamma[_] pow[_] prelu prod put_ rad2deg[_] ravel real reciprocal[_] relu[_] remainder[_] renorm[_]
repeat repeat_interleave reshape reshape_as resize_ resize_as_ roll rot90 round[_] rsqrt[_] scatter[_]
scatter_add[_] select sgn[_] sigmoid[_] sign[_] signbit sin[_] sinc[_] sinh[_] slogdet smm softmax solve sort
split_with_sizes sqrt[_] square[_] squeeze[_] sspaddmm std sub[_] sum sum_to_size svd symeig t[_] take tan[_]
tanh[_] tensor_split tile topk transpose[_] triangular_solve tril[_] triu[_] true_divide[_] trunc[_] type_as unbind
unflatten unfold unsafe_chunk unsafe_split unsafe_split_with_sizes unsqueeze[_] var vdot view_as where xlogy[_]
"""

_TORCH = """
_adaptive_avg_pool2d _add_relu[_] _aminmax _batch_norm_impl_index _convolution abs[_] absolute acos[_] acosh[_]
adaptive_avg_pool1d adaptive_max_pool1d add addbmm addcdiv addcmul addmm addmv[_] addr affine_grid_generator
align_tensors all alpha_dropout[_] amax amin angle any arange arccos[_] arccosh[_] arcsin[_] arcsinh[_] arctan[_]
arctanh[_] argmax argmin argsort asin[_] asinh[_] atan[_] atan2 atanh[_] atleast_1d atleast_2d atleast_3d avg_pool1d
baddbmm bartlett_window batch_norm_backward_elemt batch_norm_backward_reduce batch_norm_elemt
batch_norm_gather_stats batch_norm_gather_stats_with_counts batch_norm_stats batch_norm_update_stats bernoulli
bilinear binary_cross_entropy_with_logits bincount binomial bitwise_and bitwise_not bitwise_or bitwise_xor
blackman_window block_diag bmm broadcast_tensors broadcast_to cartesian_prod cat cdist ceil[_] celu[_] chain_matmul
channel_shuffle cholesky cholesky_inverse cholesky_solve choose_qparams_optimized chunk clamp[_] clamp_max[_]
clamp_min[_] clip[_] clone column_stack combinations constant_pad_nd conv1d conv2d conv3d conv_tbc conv_transpose1d
conv_transpose2d conv_transpose3d convolution copysign cos[_] cosh[_] cosine_embedding_loss cosine_similarity
count_nonzero cross ctc_loss cummax cummin cumprod cumsum deg2rad[_] det diag diag_embed diagflat diagonal diff
digamma dist div divide dot dropout[_] dsmm dstack eig einsum embedding embedding_bag embedding_renorm_ eq equal
erf[_] erfc[_] erfinv exp[_] exp2[_] expm1[_] eye feature_alpha_dropout[_] feature_dropout[_] fill_ fix[_] flatten
flip fliplr flipud float_power floor[_] floor_divide fmax fmin fmod frac[_] frobenius_norm full full_like gather
gcd[_] ge geqrf ger greater greater_equal grid_sampler grid_sampler_2d grid_sampler_3d group_norm gru gru_cell gt
hamming_window hann_window hardshrink heaviside hinge_embedding_loss histc hsmm hspmm hstack hypot igamma igammac
index_add index_copy index_fill index_put[_] index_select inner instance_norm isclose isfinite isinf isnan isneginf
isposinf istft kaiser_window kl_div kron kthvalue layer_norm lcm[_] ldexp[_] le lerp less less_equal lgamma linspace
log[_] log10[_] log1p[_] log2[_] log_softmax logaddexp logaddexp2 logcumsumexp logdet logical_and logical_not
logical_or logical_xor logit[_] logspace logsumexp lstm lstm_cell lstsq lt lu_solve margin_ranking_loss masked_fill
masked_scatter masked_select matmul matrix_exp matrix_power matrix_rank max max_pool1d max_pool1d_with_indices
max_pool2d max_pool3d maximum mean median min minimum mm mode moveaxis movedim msort mul multinomial multiply mv
mvlgamma nan_to_num[_] nanmedian nansum narrow narrow_copy native_batch_norm native_group_norm native_layer_norm
native_norm ne neg[_] negative[_] nextafter nonzero norm_except_dim normal not_equal nuclear_norm pairwise_distance
pdist pinverse pixel_shuffle pixel_unshuffle poisson poisson_nll_loss polar polygamma pow prelu prod promote_types
rad2deg[_] range ravel real reciprocal[_] relu[_] remainder renorm repeat_interleave reshape resize_as_ roll rot90
round[_] row_stack rrelu[_] rsqrt[_] rsub saddmm scalar_tensor scatter scatter_add searchsorted select selu[_] sgn
sigmoid[_] sign signbit sin[_] sinc[_] sinh[_] slogdet smm softmax solve sort sparse_coo_tensor split_with_sizes
spmm sqrt[_] square[_] squeeze sspaddmm stack std std_mean sub subtract sum svd swapaxes swapdims symeig t take
tan[_] tanh[_] tensor_split tensordot threshold[_] tile topk transpose trapz triangular_solve tril tril_indices
triplet_margin_loss triu triu_indices true_divide trunc[_] unbind unique_consecutive unique_dim unsafe_chunk
unsafe_split unsafe_split_with_sizes unsqueeze vander var var_mean vdot vstack where xlogy[_]
"""


def _expanded(text: str) -> frozenset[str]:
    names: set[str] = set()
    for word in text.split():
        stem = word[:-3] if word.endswith("[_]") else word
        names.add(stem)
        if stem != word:
            names.add(f"{stem}_")
    return frozenset(names)


NAMES = {"Functional": _expanded(_FUNCTIONAL), "Tensor": _expanded(_TENSOR), "Torch": _expanded(_TORCH)}
