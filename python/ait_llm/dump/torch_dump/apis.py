"""Functions of torch that a model calls itself, recorded like modules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

import torch
from torch.overrides import TorchFunctionMode

from ait_llm.dump.torch_dump.hindrance import is_compiling
from ait_llm.dump.torch_dump.selection import Selection, api_name

if TYPE_CHECKING:
    from ait_llm.dump.torch_dump.session import Session

_innermost: Callable[[], Any] | None = getattr(torch.overrides, "_get_current_function_mode", None)  # torch 2

# Questions about a tensor, and what returns it as it is: to record their inputs would be in vain.
_NO_COMPUTATION = frozenset(
    "__get__ __set__ __delete__ __repr__ __format__ __str__ __hash__ __bool__ __len__ __contains__ __iter__ __dir__ "
    "__reduce_ex__ __deepcopy__ __setstate__ __index__ __int__ __float__ __complex__ __array__ __array_wrap__ "
    "__dlpack__ __dlpack_device__ size dim ndimension numel nelement stride storage storage_offset untyped_storage "
    "element_size data_ptr get_device is_contiguous is_floating_point is_complex is_conj is_neg is_inference "
    "is_shared is_pinned is_signed is_same_size is_nonzero is_set_to item tolist numpy detach requires_grad_ "
    "retain_grad register_hook backward has_names get_default_dtype set_default_dtype is_tensor is_storage "
    "is_grad_enabled result_type can_cast promote_types".split()
)


class ApiRecorder:
    """Of one session."""

    def __init__(self, session: Session, selection: Selection) -> None:
        self.session = session
        self.selection = selection

    def listen(self) -> _Mode:
        """From now on, until `stop`, to the functions that this thread calls."""
        mode = _Mode(self)
        mode.__enter__()  # type: ignore[no-untyped-call]
        return mode


class _Mode(TorchFunctionMode):
    """Sees functions, methods and operators alike, but not what those call in turn."""

    def __init__(self, recorder: ApiRecorder) -> None:
        super().__init__()
        self._recorder = recorder

    def stop(self) -> None:
        if _innermost is None or _innermost() is self:
            self.__exit__(None, None, None)  # type: ignore[no-untyped-call]
        # Else the model has left a mode of its own behind, and to leave would end that one. This one does no harm.

    def __torch_function__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if is_compiling():  # torch.compile takes this for True, so that nothing of ours is in its graphs
            return function(*args, **kwargs)
        name = api_name(function)
        computes = name and function.__name__ not in _NO_COMPUTATION
        if not computes or not self._recorder.selection.wants_api(name):
            return function(*args, **kwargs)
        type_name = f"{getattr(function, '__module__', None) or 'torch'}.{name}"
        call = self._recorder.session.enter_api(name, type_name, args, kwargs)
        output = function(*args, **kwargs)
        if call is not None:
            self._recorder.session.leave_api(call, output)
        return output
