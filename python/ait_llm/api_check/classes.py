"""What kind of function an API is, as far as recording and running it again have to know."""

from __future__ import annotations

from ait_llm.api_check.apis import Api

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
