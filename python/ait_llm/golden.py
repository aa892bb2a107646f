"""What an operation of the acceleration library must give: goldens of single operations, in double precision.

    from ait_llm import golden

    expected = golden.run("RmsNormOperation", {"layerType": 1, "normParam": {"epsilon": 1e-6}}, [x, gamma])
    y = expected[0]
    assert (abs(kernel(x, gamma).double() - y.values) <= y.bound("float16")).all()

`values` are those of the definition, before they are rounded to the type of the output; `bound` is how far a sound
kernel that sums in float32 may be from them once it has rounded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ait_llm import _native
from ait_llm._tensor import operand_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Expected", "changed_inputs", "operations", "run"]

_MEMORY_BYTES = 4 << 30


@dataclass(frozen=True)
class Expected:
    """One output of an operation."""

    values: NDArray[Any]
    forms: dict[str, NDArray[Any]]
    """The same output as other devices give it, by name; empty where there is only one."""
    undefined: NDArray[Any] | None
    """True where the definition leaves a value open; None where it leaves none."""
    written_input: int | None
    """The input that holds this result after the operation."""
    places: NDArray[Any] | None
    """Where only a part of a tensor is written, such as a cache: the flat index in it of each of `values`, which then
    has one row for each stretch. Everything beside them stays as it was. None where the whole tensor is written."""
    ties: dict[int, tuple[float, ...]]
    """By flat index, values of which each is as good as the others: the places of equal numbers in a sorted list."""
    notes: tuple[str, ...]
    _native_output: _native.GoldenOutput
    _dtype: str | None

    def bound(self, dtype: str | None = None, form: str | None = None) -> NDArray[Any]:
        """How far a sound result in this type may be from `values`, or from those of the form of this name.

        Without a type, the one that was recorded or that the first input has.
        """
        if dtype is None and self._dtype is None:
            raise ValueError('say the type of the output, as in bound("float16")')
        place = 0 if form is None else list(self.forms).index(form)
        return _numbers(self._native_output.bounds(dtype or self._dtype or "", place), self.values.shape)


def run(
    type: str,
    params: Mapping[str, Any] | str | None,
    inputs: Sequence[Any],
    *,
    outputs: Sequence[tuple[str, Sequence[int]]] | None = None,
    fractal: Sequence[int] = (),
    ranks: Sequence[Sequence[Any]] = (),
    memory_bytes: int = _MEMORY_BYTES,
    threads: int = 0,
    reference_loops: bool = False,
) -> list[Expected]:
    """The outputs that an operation must give.

    type: "RmsNormOperation"; operations() lists them.
    params: the parameters as the library writes them to JSON; what is missing has the library's default.
    inputs: NumPy arrays or torch tensors in the library's order, None for one without elements.
    outputs: type and shape of what was recorded, where parameters alone do not say them: ("float16", (4, 8)).
    fractal: the numbers of inputs that are stored as FRACTAL_NZ.
    ranks: for operations that several ranks do together, the inputs of each.
    reference_loops: the plain loops in place of the faster way.

    UnsupportedError says that there is no golden for this mode, CorruptError that the tensors contradict each other.
    """
    recorded = [(dtype, [int(dim) for dim in shape]) for dtype, shape in outputs or ()]
    param = params if isinstance(params, str) else json.dumps(params or {})
    operands = _operands(inputs, fractal)
    expected = _native.run_golden(
        type,
        param,
        operands,
        recorded,
        [_operands(each, fractal) for each in ranks],
        memory_bytes,
        threads,
        reference_loops,
    )
    first = next((operand.dtype for operand, _ in operands if operand is not None), None)
    dtypes = [dtype for dtype, _ in recorded] + [first] * len(expected.outputs)
    return [_expected(output, dtype, expected.notes) for output, dtype in zip(expected.outputs, dtypes)]


def operations() -> list[str]:
    """The types of which there is a golden for some mode."""
    return _native.golden_types()


def changed_inputs(type: str, params: Mapping[str, Any] | str | None = None) -> list[int]:
    """The inputs that an operation writes to."""
    return _native.changed_inputs(type, params if isinstance(params, str) else json.dumps(params or {}))


def _operands(inputs: Sequence[Any], fractal: Sequence[int]) -> list[tuple[_native.Operand | None, bool]]:
    return [(None if value is None else operand_of(value), place in fractal) for place, value in enumerate(inputs)]


def _numbers(data: bytes, shape: Sequence[int]) -> NDArray[Any]:
    import numpy

    return numpy.frombuffer(data, numpy.float64).reshape(shape)


def _expected(output: _native.GoldenOutput, dtype: str | None, notes: Sequence[str]) -> Expected:
    import numpy

    part = output.part
    places = None if part is None else numpy.array(part[1], int).reshape(-1, 1) + numpy.arange(part[0])
    shape = output.shape if places is None else list(places.shape)
    forms = {form.name: _numbers(form.values(), shape) for form in output.forms}
    values = _numbers(output.values(), shape)
    if forms:
        forms = {output.form: values, **forms}
    undefined = numpy.array(output.undefined, bool).reshape(shape) if output.undefined else None
    sets = [tuple(each) for each in output.ties]
    ties = {index: sets[number] for index, number in output.tie_of}
    return Expected(values, forms, undefined, output.written_input, places, ties, tuple(notes), output, dtype)
