"""Asks `ait llm compare` what it makes of faults that were planted and of runs that are healthy. `make eval` runs it.

    python eval/run.py                       both suites: half of the cases are always the same, half are new
    python eval/run.py --seed 12             the new half of an earlier run
    python eval/run.py --case fault:scale/3  one case
    python eval/run.py --kinds scale,mask    only these kinds
    python eval/run.py --write               the tables go into docs/locate.md and its twin

It ends with status 1 where the tool is right less often than docs/locate.md promises.
"""

from __future__ import annotations

import argparse
import collections
import math
import multiprocessing
import os
import pathlib
import re
import secrets
import sys
import time

REPOSITORY = pathlib.Path(__file__).resolve().parents[1]
DOCUMENTS = (REPOSITORY / "docs" / "locate.md", REPOSITORY / "docs" / "zh" / "locate.md")
BEGIN, END = "<!-- make eval writes from here -->", "<!-- to here -->"

OPERATION_SHARE = 0.95
CAUSE_SHARE = 0.80
ACCUSED_SHARE = 0.05


def all_cases(seed: int, fixed_faults: int, fixed_healthy: int, kinds: set[str]) -> list[tuple[str, str]]:
    import engine_faults
    import healthy
    import torch_faults
    from cases import FAULT_PREFIX, HEALTHY_PREFIX

    cases = []
    for prefix, names, count in (
        (FAULT_PREFIX, [*torch_faults.KINDS, *engine_faults.KINDS], fixed_faults),
        (HEALTHY_PREFIX, [*healthy.KINDS], fixed_healthy),
    ):
        for name in names:
            if kinds and name not in kinds:
                continue
            for number in range(min(count, healthy.AT_MOST.get(name, count))):
                cases.append((f"{prefix}{name}/{number}", "fixed"))
                cases.append((f"{prefix}{name}/{seed}.{number}", "drawn"))
    return cases


def begin_worker() -> None:
    import torch

    torch.set_num_threads(1)


def work(task: tuple[str, str, pathlib.Path | None]):
    from cases import run_case

    return run_case(*task)


def run_all(tasks: list, workers: int):
    if workers == 1:
        begin_worker()
        yield from map(work, tasks)
        return
    pool = multiprocessing.get_context("spawn").Pool(workers, begin_worker)
    try:
        yield from pool.imap(work, tasks)
        pool.close()
    except BaseException:
        pool.terminate()
        raise
    finally:
        pool.join()


def _count(outcomes: list, right) -> str:
    return f"{sum(map(right, outcomes))}"


def fault_table(outcomes: list) -> list[str]:
    lines = ["| fault | cases | right operation | with a cause | right cause |", "|---|---|---|---|---|"]
    groups = collections.defaultdict(list)
    for each in outcomes:
        groups[each.kind].append(each)
    for name, some in [*groups.items(), ("**all**", outcomes)]:
        caused = [each for each in some if each.cause_right is not None]
        lines.append(
            f"| {name} | {len(some)} | {_count(some, lambda each: each.operation_right)} | {len(caused)} | "
            f"{_count(caused, lambda each: each.cause_right)} |"
        )
    return lines


SIZES = (
    (0, 10, "3 to 10, with a `--noise` run"),
    (10, 30, "10 to 30"),
    (30, 300, "30 to 300"),
    (300, math.inf, "above"),
)


def size_table(outcomes: list) -> list[str]:
    lines = ["| size of the fault, times a healthy run's error | cases | right operation |", "|---|---|---|"]
    groups = [(text, [each for each in outcomes if low <= each.ratio < high]) for low, high, text in SIZES]
    groups.append(
        ("no number: a choice, or values that are not finite", [each for each in outcomes if math.isinf(each.ratio)])
    )
    for text, some in groups:
        lines.append(f"| {text} | {len(some)} | {_count(some, lambda each: each.operation_right)} |")
    return lines


def healthy_table(outcomes: list) -> list[str]:
    lines = ["| pair | cases | falsely accused |", "|---|---|---|"]
    groups = collections.defaultdict(list)
    for each in outcomes:
        groups[each.kind].append(each)
    for name, some in [*groups.items(), ("**all**", outcomes)]:
        lines.append(f"| {name} | {len(some)} | {_count(some, lambda each: each.accused)} |")
    return lines


def report(outcomes: list, seed: int) -> list[str]:
    lines = []
    for half, title in (("fixed", "Fixed cases"), ("drawn", f"Cases drawn from seed {seed}")):
        some = [each for each in outcomes if each.half == half]
        if not some:
            continue
        lines += [f"### {title}", ""]
        faulty, healthy = [each for each in some if each.faulty], [each for each in some if not each.faulty]
        if faulty:
            lines += [*fault_table(faulty), "", *size_table(faulty), ""]
        if healthy:
            lines += [*healthy_table(healthy), ""]
    failed = [each for each in outcomes if each.failed]
    lines += ["### What failed", ""]
    lines += [f"- {each.verdict}: `{each.case}`, {each.line()}" for each in failed] or ["Nothing."]
    return lines


def shares_met(outcomes: list) -> list[str]:
    """Sentences on what was promised and is not met; empty where all is."""
    wrong = []
    for half in ("fixed", "drawn"):
        some = [each for each in outcomes if each.half == half]
        broken = [each for each in some if each.error]
        if broken:
            wrong.append(f"{half}: {len(broken)} cases could not be run")
        faulty = [each for each in some if each.faulty]
        caused = [each for each in faulty if each.cause_right is not None]
        healthy = [each for each in some if not each.faulty]
        for name, group, right, least in (
            ("right operation", faulty, lambda each: each.operation_right, OPERATION_SHARE),
            ("right cause", caused, lambda each: each.cause_right, CAUSE_SHARE),
            ("not accused", healthy, lambda each: not each.accused and not each.error, 1 - ACCUSED_SHARE),
        ):
            if group:
                share = sum(map(bool, map(right, group))) / len(group)
                if share < least:
                    wrong.append(f"{half}: {name} in {share:.1%} of {len(group)}, promised {least:.0%}")
    return wrong


# Headings of the tables in the Chinese page; everything else in them is what the program prints.
CHINESE = (("Fixed cases", "固定用例"), ("Cases drawn from seed", "抽取的用例，种子"), ("What failed", "未通过的用例"))


def write_documents(lines: list[str]) -> None:
    pattern = re.compile(re.escape(BEGIN) + ".*?" + re.escape(END), re.S)
    for document in DOCUMENTS:
        text = document.read_text()
        if not pattern.search(text):
            sys.exit(f"{document} has no lines {BEGIN} and {END} between which the tables go")
        tables = "\n".join([BEGIN, "", *lines, "", END])
        if document.parent.name == "zh":
            for english, chinese in CHINESE:
                tables = tables.replace(f"### {english}", f"### {chinese}")
        document.write_text(pattern.sub(lambda _, tables=tables: tables, text))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, help="of the new half; a fresh one if not given")
    parser.add_argument("--case", action="append", default=[], help="run this one, as failures are listed")
    parser.add_argument("--kinds", default="", help="only these kinds, a comma list")
    parser.add_argument("--half", choices=("fixed", "drawn"), help="only this half")
    parser.add_argument("--faults", type=int, default=3, help="cases of each kind of fault in each half")
    parser.add_argument("--healthy", type=int, default=6, help="cases of each healthy kind in each half")
    parser.add_argument("--keep", type=pathlib.Path, help="keep the recordings of each case in this folder")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--write", action="store_true", help="put the tables into docs/locate.md, in both languages")
    parser.add_argument("-v", "--verbose", action="store_true", help="a line for each case, not only for failures")
    options = parser.parse_args()
    program = pathlib.Path(os.environ.get("AIT_BIN", REPOSITORY / "build" / "bin" / "ait"))
    if not program.is_file():
        sys.exit(f"{program} is not there; run `make build`, or name another by AIT_BIN")
    seed = secrets.randbelow(10**6) if options.seed is None else options.seed
    kinds = set(filter(None, options.kinds.split(",")))
    cases = [(case, "fixed") for case in options.case] or all_cases(seed, options.faults, options.healthy, kinds)
    cases = [case for case in cases if options.half in (None, case[1])]
    print(f"seed {seed}, {len(cases)} cases", flush=True)
    begin = time.monotonic()
    outcomes = []
    workers = min(options.workers, len(cases))
    for outcome in run_all([(*case, options.keep) for case in cases], workers):
        outcomes.append(outcome)
        if options.verbose or options.case or outcome.failed:
            print(f"{outcome.verdict:15} {outcome.case}: {outcome.line()}", flush=True)
    lines = report(outcomes, seed)
    print()
    print("\n".join(lines[: lines.index("### What failed")]))
    wrong = shares_met(outcomes)
    print(f"{time.monotonic() - begin:.0f} s; seed {seed}; {sum(each.failed for each in outcomes)} cases failed")
    print("\n".join(wrong) if wrong else "what docs/locate.md promises is met")
    if options.write:
        write_documents(lines)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
