"""The tensor that `ait_llm.load` returns, and how foreign arrays are described to the extension."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from ait_llm import _native
from ait_llm._errors import UnsupportedError

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray

# What NumPy calls the types it knows, without the byte order.
_NUMPY_CODES = {
    "bool": "b1",
    "int8": "i1",
    "uint8": "u1",
    "int16": "i2",
    "uint16": "u2",
    "int32": "i4",
    "uint32": "u4",
    "int64": "i8",
    "uint64": "u8",
    "float16": "f2",
    "float32": "f4",
    "float64": "f8",
    "complex64": "c8",
    "complex128": "c16",
}
_PACKED = ("int4", "float4_e2m1fn_x2")
_NATIVE_ORDER, _OTHER_ORDER = ("<", ">") if sys.byteorder == "little" else (">", "<")


class Tensor:
    """A read-only look at a tensor in a file: type, shape and strides, and the way into NumPy and torch.

    The file stays mapped as long as the tensor, or anything made from it without copying, is alive. Do not
    truncate the file meanwhile.
    """

    __slots__ = ("_operand",)

    def __init__(self, operand: _native.Operand) -> None:
        self._operand = operand

    @property
    def dtype(self) -> str:
        """The element type in torch's words: "float16", "bfloat16", "float8_e4m3fn", "int4" (two in a byte)."""
        return self._operand.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self._operand.shape

    @property
    def strides(self) -> tuple[int, ...]:
        """Steps between neighbours of each dimension, in elements."""
        return self._operand.strides

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many elements there are."""
        return self._operand.elements

    @property
    def nbytes(self) -> int:
        return self._operand.elements * self._operand.itemsize

    def numpy(self) -> NDArray[Any]:
        """The values as a NumPy array.

        It shares the file's bytes, read-only and in the file's byte order, where NumPy knows the type. bfloat16
        and the 8-bit floats are widened to float32, complex32 to complex64: exact, but copies.
        """
        import numpy

        if self.dtype in _NUMPY_CODES:
            return self._look(_NUMPY_CODES[self.dtype])
        if self.dtype == "complex32":
            return self._look("f2", split=2).astype(numpy.float32).view(numpy.complex64)[..., 0]
        widened = numpy.empty(self.shape, numpy.float32)
        _native.widen(self._operand, widened.ctypes.data)
        return widened

    def bits(self) -> NDArray[Any]:
        """The elements as unsigned integers of the same width, sharing the file's bytes.

        Complex elements become pairs in a last dimension of their own.
        """
        return self._look(*self._bits_code())

    def torch(self, copy: bool = True) -> torch.Tensor:
        """The same tensor in torch, with its own type.

        With copy=False it shares the file's bytes, unless they are in the other byte order or not aligned as
        torch needs them. They are mapped read-only, which torch cannot know: writing to such a tensor kills the
        process.
        """
        import torch

        kind = getattr(torch, self.dtype, None)
        if kind is None or self.dtype == "int4":
            raise UnsupportedError(f"this torch has no type for {self.dtype}; take bits() instead")
        if self.size == 0:  # torch.from_numpy gives such arrays strides that views refuse
            return torch.empty(self.shape, dtype=kind)
        known = self.dtype in _NUMPY_CODES
        code, split = (_NUMPY_CODES[self.dtype], 1) if known else self._bits_code()
        # torch warns of every array that is marked read-only; the mapping is read-only whatever the mark says.
        array = self._look(code, split, readonly=False)
        aligned = self._operand.address % self._operand.itemsize == 0
        if copy or not aligned or not array.dtype.isnative:
            array = array.astype(array.dtype.newbyteorder("="), order="C")
        if known:
            return torch.from_numpy(array)
        # Signed, because old versions of torch have no wide unsigned types.
        raw = torch.from_numpy(array.view(array.dtype.str.replace("u", "i")))
        return torch.view_as_complex(raw.view(torch.float16)) if kind.is_complex else raw.view(kind)

    def _bits_code(self) -> tuple[str, int]:
        split = 2 if self.dtype.startswith("complex") else 1
        return f"u{self._operand.itemsize // split}", split

    def _look(self, code: str, split: int = 1, readonly: bool = True) -> NDArray[Any]:
        """An array over the file's bytes; `split` makes each element that many of `code` in a new dimension."""
        import numpy

        step = self._operand.itemsize
        shape, strides = self.shape, tuple(step * stride for stride in self.strides)
        if split > 1:
            shape, strides = (*shape, split), (*strides, step // split)
        order = _OTHER_ORDER if self._operand.byte_swapped else _NATIVE_ORDER
        return numpy.asarray(_ArrayInterface(self._operand, order + code, shape, strides, readonly))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        import numpy

        array = self.numpy()
        if copy is False and (array.base is None or (dtype is not None and array.dtype != dtype)):
            raise ValueError(f"{self.dtype} cannot become such an array without a copy")
        return numpy.array(array, dtype=dtype) if copy else numpy.asarray(array, dtype=dtype)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a tensor without dimensions")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"ait_llm.Tensor(dtype={self.dtype}, shape={list(self.shape)})"


class _ArrayInterface:
    """NumPy's array interface over an operand, which the array then keeps alive."""

    __slots__ = ("__array_interface__", "_owner")

    def __init__(
        self,
        operand: _native.Operand,
        code: str,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        readonly: bool,
    ) -> None:
        self._owner = operand
        self.__array_interface__ = {
            "version": 3,
            "typestr": code,
            "shape": shape,
            "strides": strides,
            "data": (operand.address, readonly),
        }


def operand_of(value: Any) -> _native.Operand:
    """Describes a tensor of ours, a torch tensor or anything that NumPy takes for an array. Copies only what
    cannot be described: strides that are no multiple of the element, and types that ait has no name for."""
    if isinstance(value, Tensor):
        return value._operand
    if _is_torch_tensor(value):
        return _operand_of_torch(value)
    import numpy

    return _operand_of_numpy(numpy.asarray(value))


def _is_torch_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")  # nothing is a torch tensor before somebody has imported torch
    return torch is not None and isinstance(value, torch.Tensor)


def _operand_of_torch(tensor: torch.Tensor) -> _native.Operand:
    import torch

    name = str(tensor.dtype).replace("torch.", "")
    # torch's own int4 is a type without operations, one value a byte: not the packed int4 of ait.
    if name not in _native.dtypes or name == "int4":
        raise UnsupportedError(f"ait does not compare torch tensors of type {name}")
    if tensor.layout != torch.strided or tensor.device.type == "meta":
        raise UnsupportedError(f"ait takes dense torch tensors with data, not {tensor.layout} on {tensor.device}")
    # Each of these returns the tensor itself where there is nothing to do.
    tensor = tensor.detach().cpu().resolve_conj().resolve_neg()
    return _native.Operand.over(tensor, tensor.data_ptr(), name, tuple(tensor.shape), tensor.stride(), False)


def _operand_of_numpy(array: NDArray[Any]) -> _native.Operand:
    import numpy

    name = array.dtype.name
    if array.dtype.kind not in "biufc":
        # The narrow types of ml_dtypes. Its int4 and the like are one value a byte, not packed like ait's.
        if array.dtype.type.__module__.split(".")[0] != "ml_dtypes":
            raise UnsupportedError(f"ait does not compare NumPy arrays of type {name}")
        if name not in _native.dtypes or name in _PACKED:
            array = array.astype(numpy.int8 if "int" in name else numpy.float32)
            name = array.dtype.name
    elif name not in _native.dtypes:
        raise UnsupportedError(f"ait does not compare NumPy arrays of type {name}; convert to float64 first")
    if any(stride % array.itemsize for stride in array.strides):
        array = numpy.ascontiguousarray(array)
    strides = tuple(stride // array.itemsize for stride in array.strides)
    address = array.__array_interface__["data"][0]
    return _native.Operand.over(array, address, name, array.shape, strides, not array.dtype.isnative)
