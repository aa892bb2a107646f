"""The command line of run_ut, `python -m ait_llm.api_check check` and `ait api check`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from ait_llm._errors import AitError

GIB = 1 << 30
MAX_SHOWN = 10


def parser(program: str) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog=program, description=__doc__)
    add = made.add_argument
    add("-forward", "--forward_input_file", required=True, metavar="FILE", help="forward_info_{pid}.json")
    add(
        "-backward",
        "--backward_input_file",
        metavar="FILE",
        help="backward_info_{pid}.json; without it no gradient is checked",
    )
    add("-save_error_data", action="store_true", help="keep inputs and outputs of calls that fail")
    add("-o", "--out_path", default="./", metavar="DIR", help="folder for the two csv files; ./ if not given")
    add("--error_data_path", metavar="DIR", help="where ut_error_data is made; as update_config said, or ./")
    add("--data_path", metavar="DIR", help="where real data lie, if not below the folder of the records")
    add("-d", dest="device_number", type=int, default=0, metavar="ID", help="number of the device; 0 if not given")
    add(
        "--device", default="auto", metavar="DEVICE", help="cpu, cuda, cuda:N, npu, npu:N, auto, or several with commas"
    )
    add("--against", choices=["inductor"], help="check what torch.compile makes of each function")
    add("-j", "--jit_compile", action="store_true", help="compile mode of the NPU runtime")
    add("--raw_bench", action="store_true", help="do not round the benchmark to the device's type before comparing")
    add(
        "--seed", type=int, default=1234, metavar="N", help="seed of inputs that are drawn at random; 1234 if not given"
    )
    add("--resume", action="store_true", help="go on with the csv files in --out_path")
    add("-csv_path", "--result_csv_path", metavar="FILE", help="go on with this result csv")
    add("--timestamp", action="store_true", help="add the time to the names of the csv files")
    add("--time_limit", type=float, default=300.0, metavar="SECONDS", help="time for one call; 300 if not given")
    add("--max_memory", type=float, metavar="GIB", help="memory for one call; a third of the machine's if not given")
    add(
        "--fail_on",
        choices=["failed", "rounding"],
        help="end with status 1 if a call fails: failed, by the rule; rounding, if rounding does not explain it",
    )
    return made


def usual_memory() -> int:
    """Bytes that one call may take: a third of the machine's, since two may run side by side."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 3


def main(arguments: Sequence[str] | None = None, program: str = "run_ut.py") -> int:
    given = parser(program).parse_args(arguments)
    try:
        return _check(given)
    except AitError as error:
        print(f"ait: error: {error}", file=sys.stderr)
        return 2


def _check(given: argparse.Namespace) -> int:
    from ait_llm.api_check import checking
    from ait_llm.api_check.outcome import Settings

    if given.device.isdigit():  # the older tool's --device takes a number
        given.device_number, given.device = int(given.device), "auto"
    options = checking.Options(
        forward=given.forward_input_file,
        backward=given.backward_input_file,
        out_path=given.out_path,
        save_error_data=given.save_error_data,
        error_data_path=given.error_data_path,
        data_path=given.data_path,
        devices=tuple(given.device.split(",")),
        device_number=given.device_number,
        against=given.against,
        jit_compile=given.jit_compile,
        resume=given.resume,
        resumed=given.result_csv_path,
        timestamp=given.timestamp,
        time_limit_seconds=given.time_limit,
        settings=Settings(
            seed=given.seed & (1 << 64) - 1,
            raw_bench=given.raw_bench,
            max_bytes=int(given.max_memory * GIB) if given.max_memory else usual_memory(),
        ),
    )
    options, device = checking.resolved(options)
    run = checking.Run(options)
    checking.log("start UT test")
    if options.backward is None and len(run.backward) == 0:
        checking.log("without -backward no gradient is checked", "WARNING")
    try:
        run.run()
    except KeyboardInterrupt:
        print(f"ait: stopped; go on with --resume and --out_path {given.out_path}", file=sys.stderr)
        return 130
    checking.log("UT task completed.")
    print(summary(run, device))
    by = {"failed": run.reports.by_rule.failed, "rounding": run.reports.by_rounding.failed}
    return 1 if given.fail_on and by[given.fail_on] else 0


def summary(run: object, device: str) -> str:
    from ait_llm.api_check.checking import Run

    assert isinstance(run, Run)
    reports = run.reports
    lines = [f"\nDevice: {device}; benchmark: the CPU, one precision up", ""]
    rows = [
        ("Overall Statistics", "by the rule", "within rounding"),
        *(
            (title, str(by_rule), str(by_rounding))
            for title, by_rule, by_rounding in (
                ("Total Pass", reports.by_rule.passed, reports.by_rounding.passed),
                ("Total Fail", reports.by_rule.failed, reports.by_rounding.failed),
                ("Passing Rate", reports.by_rule.rate, reports.by_rounding.rate),
                ("Skipped", reports.by_rule.skipped, reports.by_rounding.skipped),
            )
        ),
        ("Detail Statistics", "", ""),
        *(
            (title, str(by_rule), str(by_rounding))
            for title, by_rule, by_rounding in (
                ("Only Forward Fail", reports.by_rule.only_forward, reports.by_rounding.only_forward),
                ("Only Backward Fail", reports.by_rule.only_backward, reports.by_rounding.only_backward),
                ("Both Forward & Backward Fail", reports.by_rule.both, reports.by_rounding.both),
            )
        ),
    ]
    lines += [f"{title:<30}{by_rule:>14}{by_rounding:>18}".rstrip() for title, by_rule, by_rounding in rows]
    if reports.explained:
        lines.append(f"\nThe two verdicts differ for {len(reports.explained)} calls; Message in the result says why.")
    if reports.failed:
        lines.append("\nOff by more than rounding explains:")
        lines += [f"  {key}" for key in reports.failed[:MAX_SHOWN]]
        if len(reports.failed) > MAX_SHOWN:
            lines.append(f"  and {len(reports.failed) - MAX_SHOWN} more")
    lines.append(f"\nResult: {os.path.abspath(reports.result)}\nDetails: {os.path.abspath(reports.details)}")
    if run.reproducers:
        lines.append(f"Error data: {os.path.abspath(run.error_folder)}")
        lines.append(f"Next: run one of them again: ait api check -forward {run.reproducers[0]} -o DIR")
    elif reports.failed:
        lines.append("Next: keep the data of the failing ones with -save_error_data")
    return "\n".join(lines)
