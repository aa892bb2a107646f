"""One case: recorded, compared and judged. A case is its kind and its seed; the same two are the same case anywhere."""

from __future__ import annotations

import dataclasses
import math
import pathlib
import random
import re
import shutil
import time

import engine_faults
import faults
import healthy
import runs
import torch_faults

FAULT_PREFIX, HEALTHY_PREFIX = "fault:", "healthy:"
ATTEMPTS = 40  # until what is drawn has a fault that is large enough
NOISE_SHARE = 0.25  # of the faults of the embedded acceleration library
ACCUSING = ("fault", "broken")  # verdicts


@dataclasses.dataclass
class Outcome:
    case: str
    kind: str
    half: str  # fixed or drawn
    faulty: bool
    description: str = ""
    operation_right: bool = False
    cause_right: bool | None = None  # None where the list of causes has none for it
    accused: bool = False
    found: str = ""
    expected: str = ""
    ratio: float = math.nan
    error: str = ""
    seconds: float = 0.0

    @property
    def verdict(self) -> str:
        if self.error:
            return "did not run"
        if not self.faulty:
            return "accused" if self.accused else "right"
        if not self.operation_right:
            return "wrong operation" if self.found else "not found"
        return "wrong cause" if self.cause_right is False else "right"

    @property
    def failed(self) -> bool:
        return self.verdict != "right"

    def line(self) -> str:
        ratio = "" if math.isnan(self.ratio) else f", {self.ratio:.3g} times a healthy run's error"
        if self.error:
            return f"{self.error} ({self.description})"
        if not self.faulty:
            return f"{self.found or 'nothing'} ({self.description})"
        return f"found {self.found or 'nothing'}; planted {self.expected} ({self.description}{ratio})"


def findings_of(document: dict) -> list[dict]:
    """What the tool reports, the most important first; before it had findings, where the error jumps."""
    if "findings" in document:
        return [each for each in document["findings"] if each["verdict"] in ACCUSING]
    if not document.get("jump"):
        return []
    operation, tensor = document["jump"].rsplit("/", 1)
    return [{"operation": operation, "data_id": document["jump"], "verdict": "fault", "causes": [], "tensor": tensor}]


def _describe(finding: dict) -> str:
    causes = ", ".join(cause["name"] for cause in finding["causes"][:2])
    return f"{finding['operation']} ({causes or 'no cause'}) at {finding['data_id']}"


def run_case(case: str, half: str, keep: pathlib.Path | None = None) -> Outcome:
    begin = time.monotonic()
    kind, seed = case.rsplit("/", 1)
    faulty = kind.startswith(FAULT_PREFIX)
    outcome = Outcome(case, kind.split(":", 1)[1], half, faulty)
    rng = random.Random(f"{kind} {seed}")
    try:
        with runs.own_folder(case.replace(":", "_"), keep) as folder:
            (_run_fault if faulty else _run_healthy)(outcome, rng, folder)
    except Exception as error:  # a case that cannot be run is a failure of its own, and the others go on
        text = re.sub(r"/[^\s']*/", "", str(error))  # where it was run is nobody's business
        outcome.error = f"{type(error).__name__}: {text}"
    outcome.seconds = time.monotonic() - begin
    return outcome


def _run_fault(outcome: Outcome, rng: random.Random, folder: pathlib.Path) -> None:
    if outcome.kind in engine_faults.KINDS:
        _run_engine_fault(outcome, rng, folder)
        return
    kind = torch_faults.KINDS[outcome.kind]
    with_noise = rng.random() < kind.noise_share and runs.takes_noise()
    for _ in range(ATTEMPTS):
        setup = faults.draw_setup(kind, rng, with_noise)
        fault = kind.make(setup)
        models = faults.build(setup, fault)
        if models is not None:
            break
    else:
        raise RuntimeError(f"no setup of {ATTEMPTS} has a fault that is large enough")
    third = f"golden perturbed by {models.perturb}" if models.perturb else f"golden in {setup.my_type}"
    outcome.description = setup.describe() + (f", with a third run, {third}" if with_noise else "")
    outcome.ratio = models.ratio
    golden = runs.record_torch(models.golden, folder / "golden", setup.words)
    mine = runs.record_torch(models.mine, folder / "mine", setup.words, models.clock)
    noise = None
    if models.noise is not None:
        options = {"perturb": models.perturb} if models.perturb else {}
        noise = runs.record_torch(models.noise, folder / "noise", setup.words, **options)
    document = runs.compare(golden, mine, noise, folder / "out")
    _judge_fault(outcome, fault.operations, fault.causes, document)
    if fault.second is not None:
        outcome.expected += f" and {' or '.join(sorted(fault.second.operations))}"
        others = findings_of(document)[1:]
        outcome.found += "".join(f" and {_describe(each)}" for each in others)
        outcome.operation_right &= any(each["operation"] in fault.second.operations for each in others)


def _run_engine_fault(outcome: Outcome, rng: random.Random, folder: pathlib.Path) -> None:
    with_noise = rng.random() < NOISE_SHARE and runs.takes_noise()
    for _ in range(ATTEMPTS):
        case = engine_faults.draw_case(outcome.kind, rng, folder, with_noise)
        if case is not None:
            break
        shutil.rmtree(folder)
        folder.mkdir()
    else:
        raise RuntimeError(f"no setup of {ATTEMPTS} has a fault that is large enough")
    outcome.description = case.description + (", with a third run" if with_noise else "")
    outcome.ratio = case.ratio
    document = runs.compare(case.golden, case.mine, case.noise, folder / "out")
    _judge_fault(outcome, case.operations, case.causes, document)


def _judge_fault(outcome: Outcome, operations: set[str], causes: set[str], document: dict) -> None:
    outcome.expected = f"{' or '.join(sorted(operations))} ({' or '.join(sorted(causes)) or 'no cause'})"
    found = findings_of(document)
    if causes:
        outcome.cause_right = False
    if not found:
        return
    outcome.found = _describe(found[0])
    outcome.operation_right = found[0]["operation"] in operations
    if causes:
        outcome.cause_right = any(cause["name"] in causes for cause in found[0]["causes"][:2])


def _run_healthy(outcome: Outcome, rng: random.Random, folder: pathlib.Path) -> None:
    pair = healthy.KINDS[outcome.kind](rng, folder)
    outcome.description = pair.description
    found = findings_of(runs.compare(pair.golden, pair.mine, pair.noise, folder / "out"))
    outcome.accused = bool(found)
    outcome.found = _describe(found[0]) if found else ""
