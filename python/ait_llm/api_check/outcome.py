"""One recorded call from its record to its lines in the reports. Runs in a worker process."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from ait_llm import _native
from ait_llm.api_check import apis
from ait_llm.api_check.classes import why_not
from ait_llm.api_check.devices import Device
from ait_llm.api_check.inputs import DTYPES, Skip, Slot, Source
from ait_llm.api_check.judging import Judge
from ait_llm.api_check.legs import Call, Result, raised_dtype, run_bench, run_device
from ait_llm.api_check.records import Unreadable
from ait_llm.dump.torch_dump.store import dtype_names

PASS, FAIL, SKIP, NOTHING = "True", "False", "SKIP", "N/A"

# Half of the largest relative change that a rounding makes: about what it is on average.
_ROUNDING = {torch.bfloat16: 2.0**-9, torch.float16: 2.0**-12, torch.float32: 2.0**-25, torch.float64: 2.0**-54}


class Settings(NamedTuple):
    """What is the same for all calls of a run."""

    seed: int = 1234
    raw_bench: bool = False
    max_bytes: int = 8 << 30
    keep_data: bool = True  # of calls that fail
    data_folders: tuple[str, ...] = ()


class Outcome(NamedTuple):
    """Goes from a worker to the process that writes."""

    key: str
    forward: str
    backward: str
    message: str = ""
    forward_within: str = SKIP
    backward_within: str = SKIP
    lines: tuple[list[str], ...] = ()
    error_data: Any = None  # of a call that failed

    @property
    def cells(self) -> list[str]:
        return _native.api_result_texts(
            self.key, self.forward, self.backward, self.message, self.forward_within, self.backward_within
        )

    @property
    def failed(self) -> bool:
        return FAIL in (self.forward, self.backward, self.forward_within, self.backward_within)


def skipped(key: str, reason: str) -> Outcome:
    return Outcome(key, SKIP, SKIP, reason)


def check(key: str, forward: Any, backward: Any, device: Device, settings: Settings) -> Outcome:
    """Never raises; what cannot be run says why."""
    try:
        call, source = prepare(key, forward, backward, settings)
        return _compare(key, call, source, device, settings)
    except Skip as skip:
        return skipped(key, str(skip))
    except Exception as error:
        device.release()
        return skipped(key, one_line(f"{type(error).__name__}: {error}"))


def prepare(key: str, forward: Any, backward: Any, settings: Settings) -> tuple[Call, Source]:
    """The call with its arguments."""
    for record in (forward, backward):
        if isinstance(record, Unreadable):
            raise Skip(f"the record {record.reason}")
    parsed = apis.parse_key(key)
    if parsed is None:
        raise Skip("this is not the name of a call, such as Torch*cat*0")
    api = parsed.api
    if api.group not in apis.GROUPS:
        raise Skip("unknown API group")
    function = apis.find(api)
    if function is None:
        raise Skip("not in this torch version")
    reason = why_not(api)
    if reason is not None:
        raise Skip(reason)
    source = Source(key, settings.seed, settings.max_bytes, list(settings.data_folders))
    args, kwargs = source.arguments(api, forward)
    gradients = [] if backward is None else _gradients(source, backward)
    call = Call(api, function, args, kwargs, gradients, _autocast(forward))
    _without_dropout(call)
    return call, source


def _gradients(source: Source, backward: Any) -> list[Slot | None]:
    if not isinstance(backward, list):
        raise Skip("the record of gradients is not a list")
    made = [source.value(each) for each in backward]
    return [each if isinstance(each, Slot) else None for each in made]


def _autocast(record: dict[str, Any]) -> torch.dtype | None:
    name = record.get("autocast")
    return DTYPES.get(name) if isinstance(name, str) else None


def _without_dropout(call: Call) -> None:
    """Attention is worth comparing, and can be where nothing is dropped."""
    if call.api.name == "scaled_dot_product_attention":
        if len(call.args) > 4:
            call.args[4] = 0.0
        elif "dropout_p" in call.kwargs:
            call.kwargs["dropout_p"] = 0.0
    elif call.api.name == "multi_head_attention_forward":
        call.kwargs["training"] = False
    elif call.api.name in ("lstm", "gru", "rnn_tanh", "rnn_relu") and any(
        isinstance(each, float) and each > 0 for each in call.args
    ):
        raise Skip("its result is drawn at random, because it drops some values")


def _compare(key: str, call: Call, source: Source, device: Device, settings: Settings) -> Outcome:
    notes = []
    try:
        bench = run_bench(call)  # before the device: it is twice as wide, and what it gives back is enough for both
    except (RuntimeError, TypeError, NotImplementedError, ValueError) as error:
        if raised_dtype(call) is None:
            raise
        call.is_raised = False
        bench = run_bench(call)
        notes.append(f"the benchmark has the recorded precision: {one_line(str(error))[:200]}")
    with_device = run_device(call, device)
    moved = _Moved(call, with_device, settings.seed)
    forward = Judge(call, key, False, settings.raw_bench, lambda: moved.result.outputs)
    forward.compare(bench.outputs, with_device.outputs)
    backward = Judge(call, key, True, settings.raw_bench, lambda: moved.result.gradients)
    verdict, within = NOTHING, NOTHING
    if call.wants_gradients:
        reason = with_device.no_gradients or bench.no_gradients
        if reason is None:
            backward.compare(bench.gradients, with_device.gradients)
            verdict, within = _word(backward.passes), _word(backward.within)
        else:
            verdict = within = SKIP
            notes.append(f"backward: {reason}")
    elif any(call.gradients) and "out" in call.kwargs:
        notes.append(f"{key} function with out=... arguments don't support automatic differentiation, skip backward.")
    notes += _differences(forward, backward)
    outcome = Outcome(
        key,
        _word(forward.passes),
        verdict,
        "; ".join(notes),
        _word(forward.within),
        within,
        tuple(output.texts() for output in [*forward.outputs, *backward.outputs]),
    )
    if outcome.failed and settings.keep_data:
        from ait_llm.api_check import error_data

        return outcome._replace(error_data=error_data.gather(call, bench, with_device))
    return outcome


class _Moved:
    """The benchmark with inputs that are off by one rounding of the device's type. Run when it is asked for."""

    def __init__(self, call: Call, with_device: Result, seed: int) -> None:
        self._call = call
        self._seed = seed
        self._result: Result | None = None
        types = _dtypes(with_device.outputs) | {slot.tensor.dtype for slot in call.slots}
        self._size = max((_ROUNDING.get(each, 0.0) for each in types), default=0.0)

    @property
    def result(self) -> Result:
        if self._result is None:
            self._result = run_bench(self._call, self._move)
        return self._result

    def _move(self, tensor: torch.Tensor, number: int) -> torch.Tensor:
        moved = tensor if tensor.is_contiguous() else tensor.clone()  # a clone has no gaps
        if moved.dtype in (torch.float32, torch.float64):
            name = dtype_names[moved.dtype]
            _native.move_reals(moved.data_ptr(), name, moved.numel(), self._size, self._seed, number)
        return moved


def _dtypes(value: Any) -> set[torch.dtype]:
    if isinstance(value, torch.Tensor):
        return {value.dtype}
    if isinstance(value, list):
        return set().union(*map(_dtypes, value))
    return set().union(*map(_dtypes, value.values())) if isinstance(value, dict) else set()


def _differences(*judges: Judge) -> list[str]:
    """Why the two verdicts differ, where they do; what is wrong, where both say so."""
    notes = []
    for judge in judges:
        for output in judge.outputs:
            if output.message and not (output.passes and output.within):
                notes.append(f"{output.name.split('.', 1)[1] if '.' in output.name else output.name}: {output.message}")
    return notes[:4]


def _word(verdict: bool) -> str:
    return PASS if verdict else FAIL


def one_line(text: str) -> str:
    return " ".join(text.split())[:500]
