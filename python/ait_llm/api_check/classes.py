"""What kind of function an API is, as far as recording and running it again have to know."""

from __future__ import annotations

from typing import Any

from ait_llm.api_check.apis import FUNCTIONAL, TORCH, Api, is_refused

# Questions about a tensor, and what changes nothing but how torch treats it: there is nothing to compute.
_ASKS = frozenset(
    "__len__ __contains__ __bool__ __nonzero__ __index__ __int__ __float__ __complex__ __hash__ __repr__ __str__ "
    "__format__ __iter__ __dir__ size dim ndimension numel nelement stride storage storage_offset untyped_storage "
    "element_size data_ptr get_device is_contiguous is_floating_point is_complex is_conj is_neg is_inference is_shared "
    "is_pinned is_signed is_same_size is_nonzero is_set_to is_coalesced is_distributed is_storage is_tensor item "
    "tolist numpy requires_grad_ retain_grad register_hook register_post_accumulate_grad_hook backward has_names "
    "dim_order sparse_dim dense_dim names can_cast result_type promote_types get_default_dtype is_grad_enabled "
    "is_autocast_enabled _is_view _version _has_compatible_shallow_copy_type _nested_tensor_size".split()
)


def asks(api: Api) -> bool:
    """Whether a call computes nothing that could be compared."""
    return api.name in _ASKS


# What these give depends on numbers that no two devices draw alike.
_RANDOM = frozenset(
    "bernoulli bernoulli_ multinomial normal normal_ rand rand_like randint randint_like randn randn_like randperm "
    "random_ uniform_ poisson binomial cauchy_ exponential_ geometric_ log_normal_ rrelu rrelu_ rrelu_with_noise "
    "gumbel_softmax "
    "fractional_max_pool2d fractional_max_pool2d_with_indices fractional_max_pool3d "
    "fractional_max_pool3d_with_indices native_dropout _standard_gamma _sample_dirichlet nn.init.uniform_ "
    "nn.init.normal_ nn.init.trunc_normal_ nn.init.xavier_uniform_ nn.init.xavier_normal_ nn.init.kaiming_uniform_ "
    "nn.init.kaiming_normal_ nn.init.orthogonal_ nn.init.sparse_".split()
)
_UNINITIALISED = frozenset(
    "empty empty_like empty_strided empty_permuted empty_quantized new_empty new_empty_strided new resize_ resize_as_ "
    "_resize_output_ _empty_affine_quantized _empty_per_channel_affine_quantized".split()
)
_MOVES = frozenset("cpu cuda npu xpu ipu pin_memory is_pinned record_stream".split())
# The type of their results is what they are called for: a benchmark in another precision would do something else.
_CASTS = frozenset(
    "to type type_as float double half bfloat16 int long short char byte bool cfloat cdouble chalf".split()
)
_FACTORIES = frozenset(
    "arange as_tensor bartlett_window blackman_window eye full hamming_window hann_window kaiser_window linspace "
    "logspace ones range scalar_tensor tensor tril_indices triu_indices zeros".split()
)


def why_not(api: Api) -> str | None:
    """Why a function is never run again."""
    if asks(api):
        return "it computes nothing: it asks about a tensor, or changes how torch treats it"
    if api.name in _RANDOM:
        return "its result is drawn at random"
    if is_uninitialised(api):
        return "its result is memory that was never written to"
    if api.name in _MOVES:
        return "it moves a tensor from one device to another"
    if is_refused(api):
        return "such a function is never run because a file asks for it"
    return None


def is_uninitialised(api: Api) -> bool:
    return api.name in _UNINITIALISED


def casts(api: Api) -> bool:
    return api.name in _CASTS


def makes_tensors(api: Api) -> bool:
    """Without being given any: it has to be told where."""
    return api.group == TORCH and api.name in _FACTORIES


def changes_inputs(api: Api, args: list[Any], kwargs: dict[str, Any]) -> bool:
    """Whether it may write to what it is given, which leaves of a graph do not allow."""
    name = api.name
    if name == "__setitem__" or (name.startswith("__i") and name not in ("__invert__", "__int__", "__index__")):
        return True
    if name.endswith("_") and not name.endswith("__"):
        return True
    # inplace=True; torch.nn.functional hands it on by name, older versions in its place.
    return kwargs.get("inplace") is True or (api.group == FUNCTIONAL and any(each is True for each in args))
