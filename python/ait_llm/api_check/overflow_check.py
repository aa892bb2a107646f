"""run_overflow_check: whether a recorded overflow is the mathematics' or the device's."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any, Callable, NamedTuple

from ait_llm import _native
from ait_llm._errors import AitError

NORMAL, ABNORMAL, NOT_REPRODUCED, SKIP = "normal", "abnormal", "not reproduced", "SKIP"
RESULT = "overflow_check_result.csv"


class Verdict(NamedTuple):
    key: str
    verdict: str
    on_cpu: str = ""
    on_device: str = ""
    raised: str = ""
    high: str = ""
    low: str = ""
    message: str = ""

    @property
    def sentence(self) -> str:
        if self.verdict == NOT_REPRODUCED:
            return f"The {self.key} overflow could not be reproduced."
        if self.verdict == SKIP:
            return f"Run {self.key} UT Error: {self.message}"
        return f"The {self.key} overflow is {'a' if self.verdict == NORMAL else 'an'} {self.verdict} overflow."


def judge(key: str, record: Any, device: Any, settings: Any) -> Verdict:
    """Never raises."""
    from ait_llm.api_check.inputs import Skip
    from ait_llm.api_check.legs import run_bench, run_device
    from ait_llm.api_check.outcome import one_line, prepare
    from ait_llm.api_check.overflow_watch import overflows

    try:
        call, source = prepare(key, record, None, settings)
        notes = ["its inputs were drawn, not recorded: they need not overflow"] if source.is_drawn else []
        outputs = run_device(call, device).outputs
        on_device: bool | None = overflows(outputs)
        raised = overflows(run_bench(call).outputs, saturation=False)
        call.is_raised = False
        on_cpu: bool | None
        try:
            on_cpu = overflows(run_bench(call).outputs, saturation=False)
        except (RuntimeError, NotImplementedError) as error:
            if "not implemented for" not in str(error):
                raise
            on_cpu = raised
            notes.append(f"API {call.api.name} not support half tensor in CPU: the raised precision stands in for it")
        high, low = _extremes(outputs)
        if on_cpu != on_device:
            verdict = ABNORMAL
            notes.append("only the device overflows" if on_device else "only the CPU overflows")
        else:
            verdict = NORMAL if on_device else NOT_REPRODUCED
        if verdict == NORMAL and not raised:
            notes.append("in a higher precision it does not overflow: the true value is beyond the type's range")
        return Verdict(key, verdict, str(on_cpu), str(on_device), str(raised), high, low, "; ".join(notes))
    except Skip as skip:
        return Verdict(key, SKIP, message=str(skip))
    except Exception as error:
        return Verdict(key, SKIP, message=one_line(f"{type(error).__name__}: {error}"))


def _extremes(outputs: Any) -> tuple[str, str]:
    """Of all floating-point outputs together."""
    import torch

    from ait_llm.api_check.recording import tensors_of

    found = [each.double() for each in tensors_of(outputs) if each.is_floating_point() and each.numel()]
    if not found:
        return "", ""
    every = torch.cat([each.reshape(-1) for each in found])
    return str(every.max().item()), str(every.min().item())


def parser(program: str) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog=program, description=__doc__)
    add = made.add_argument
    add("-forward", "--forward_input_file", required=True, metavar="FILE", help="forward_info_{pid}.json")
    add("-o", "--out_path", default="./", metavar="DIR", help=f"folder for {RESULT}; ./ if not given")
    add("-d", dest="device_number", type=int, default=0, metavar="ID", help="number of the device; 0 if not given")
    add("--device", default="auto", metavar="DEVICE", help="cpu, cuda, cuda:N, npu, npu:N or auto")
    add("-j", "--jit_compile", action="store_true", help="compile mode of the NPU runtime")
    add("--data_path", metavar="DIR", help="where real data lie, if not below the folder of the records")
    add("--time_limit", type=float, default=300.0, metavar="SECONDS", help="time for one call; 300 if not given")
    return made


def main(arguments: Sequence[str] | None = None, program: str = "run_overflow_check.py") -> int:
    given = parser(program).parse_args(arguments)
    try:
        return _check(given)
    except AitError as error:
        print(f"ait: error: {error}", file=sys.stderr)
        return 2


def _check(given: argparse.Namespace) -> int:
    from ait_llm._folders import make_folders
    from ait_llm.api_check import checking
    from ait_llm.api_check.check_command import usual_memory
    from ait_llm.api_check.devices import open_device
    from ait_llm.api_check.outcome import Settings
    from ait_llm.api_check.workers import limit_memory, run_all

    if given.device.isdigit():
        given.device_number, given.device = int(given.device), "auto"
    records, _ = checking.read_both(given.forward_input_file, None)
    folder = os.path.dirname(os.path.abspath(given.forward_input_file))
    folders = [given.data_path, folder] if given.data_path else [folder]
    settings = Settings(max_bytes=usual_memory(), data_folders=tuple(folders))
    options = checking.Options(
        given.forward_input_file,
        devices=(given.device,),
        device_number=given.device_number,
        jit_compile=given.jit_compile,
    )
    options, device_text = checking.resolved(options)

    def start() -> Callable[[Any], Verdict]:
        device = open_device(options.devices[0], given.device_number, None, given.jit_compile)
        device.prepare(settings.seed)
        limit_memory(settings.max_bytes)
        return lambda job: judge(job[0], job[1], device, settings)

    make_folders(os.path.abspath(given.out_path))
    path = os.path.join(given.out_path, RESULT)
    if os.path.lexists(path):
        raise AitError(f"file {path} already exists, please remove it first or use a new dump path")
    lines = _native.CsvLines(os.fsencode(path), True)
    lines.append(_native.api_overflow_header())
    checking.log("start UT test")
    results = run_all(
        list(records.items()), [start], lambda job, how: Verdict(job[0], SKIP, message=how), given.time_limit
    )
    counts: dict[str, int] = {}
    for verdict in results:
        counts[verdict.verdict] = counts.get(verdict.verdict, 0) + 1
        lines.append(_native.api_overflow_texts(*verdict))
        checking.log(verdict.sentence, "ERROR" if verdict.verdict == SKIP else "WARNING")
    checking.log("UT task completed.")
    words = ", ".join(f"{count} {verdict}" for verdict, count in counts.items()) or "nothing was recorded"
    print(f"\nDevice: {device_text}; compared with the CPU in the same precision\nOverflows: {words}")
    print(f"Result: {os.path.abspath(path)}")
    return 0
