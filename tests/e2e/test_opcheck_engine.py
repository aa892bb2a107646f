"""`ait llm opcheck` on whole models of the engine: every operation of a sound run is within its bound, a kernel that is
wrong by four times its bound is not and stands alone, and wiring that is wrong leaves every operation right."""

import csv
import dataclasses
import json
import math
import os
import pathlib
import subprocess
import sys

import pytest
from conftest import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "tests" / "python"))

LLAMA = pathlib.Path(os.environ.get("AIT_LLAMA", REPOSITORY / "build/bin/ait-llama"))
TYPES = ["fp32", "fp16", "bf16", "w8a8"]
LAYERS = 4  # of the model that ait-llama makes
FIRST_LAYER = 2  # word and position embedding come before it, the last norm and the head after all layers
PHASE = FIRST_LAYER + LAYERS + 2


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model") / "llama"
    subprocess.run([LLAMA, "--make-model", folder], check=True)
    return folder


@pytest.fixture
def check(ait, tmp_path):
    """Records a prefill and a decoded token and checks them; the rows of the result."""

    def run(model, dtype, *more, prompts="1,15,7,3", faults=()):
        words = [f"{LLAMA} --model {model} --tokens '{prompts}' --steps 2 --dtype {dtype}", *more]
        words += [f"--fault {fault}" for fault in faults]
        out = tmp_path / "run"
        subprocess.run(["rm", "-rf", out], check=True)
        done = ait("llm", "dump", "--exec", " ".join(words), "-er", "0,0", "-time", "2", "-o", out, timeout=300)
        assert done.returncode == 0, done.stderr
        done = ait("llm", "opcheck", "-i", out / "ait_dump", "-o", out, "--json", timeout=300)
        assert done.returncode == 0, done.stderr
        document = json.loads(done.stdout)
        assert document["summary"]["not_checked"] == 0
        return list(csv.DictReader(open(document["report"], newline="")))

    return run


def place(row):
    """The id as numbers, which sort as the model ran, and the rank."""
    return tuple(map(int, row["op_id"].split("_"))), row["rank"]


def shares(rows):
    """How far each operation is off, as a share of the bound."""
    worst = {}
    for row in rows:
        worst[place(row)] = max(float(row["error_of_bound"]), worst.get(place(row), 0.0))
        assert (row["bound_result"] == "PASS") == (float(row["error_of_bound"]) <= 1)
    return worst


def outside(rows):
    """The operations that rounding does not explain."""
    return {where for where, share in shares(rows).items() if share > 1}


def assert_sound(rows):
    assert rows and not outside(rows)
    phases = {place(row)[0][0] >= PHASE for row in rows}
    assert phases == {False, True}, "prefill and decoding"


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    "more", ["", pytest.param("--padding left", marks=pytest.mark.slow), pytest.param("--tp 2", marks=pytest.mark.slow)]
)
def test_every_operation_of_a_sound_run_is_within_its_bound(check, small, dtype, more):
    rows = check(small, dtype, more, prompts="1,15,7,3,8,9,200,4,4,77;5,6")
    assert_sound(rows)
    names = {row["op_name"] for row in rows}
    assert names >= {"GatherOperation", "RmsNormOperation", "LinearOperation", "RopeOperation"}
    assert names >= {"ReshapeAndCacheOperation", "SelfAttentionOperation", "PagedAttentionOperation"}
    assert names >= {"ActivationOperation", "ElewiseOperation"}
    assert ("AllReduceOperation" in names) == ("--tp" in more)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("variant", ["llama", "llama-gqa-tied", "llama-3", "llama-biases", "qwen2", "mistral"])
def test_every_operation_of_every_family_is_within_its_bound(check, tmp_path, variant, dtype):
    engine_models = pytest.importorskip("engine_models")
    engine_models.make_model(variant).save_pretrained(tmp_path / "model")
    prompt = ",".join(str(1 + 7 * i % 190) for i in range(100))
    rows = check(tmp_path / "model", dtype, prompts=f"{prompt};5,6")
    assert rows and not outside(rows)


@dataclasses.dataclass
class Fault:
    kind: str
    op: str
    layer: int
    index: int
    round: int  # 0 is the prefill, 1 the decoded token
    size: float

    def text(self):
        return f"{self.kind}@op={self.op},layer={self.layer},index={self.index},round={self.round},size={self.size!r}"

    def place(self, rows):
        """Of the operation that is wrong: the one of this number among those of its type in its layer."""
        name = "PagedAttention" if self.op == "SelfAttention" and self.round == 1 else self.op
        first = FIRST_LAYER + self.layer + PHASE * self.round
        same = {place(row) for row in rows if row["op_name"] == f"{name}Operation"}
        return sorted(each for each in same if each[0][0] == first)[self.index]


def faults_of(phase):
    """One in each type of operation, and several in Linear; each has a layer or an operation of its own."""
    return [
        Fault("scale", "Linear", 0, 0, phase, 0.1),
        Fault("row", "Linear", 1, 3, phase, 0.5),
        Fault("scale", "Linear", 2, 6, phase, 0.1),
        Fault("epsilon", "RmsNorm", 1, 0, phase, 1.0),
        Fault("epsilon", "RmsNorm", 3, 1, phase, 1.0),
        Fault("scale", "RmsNorm", 2, 0, phase, 0.1),
        Fault("scale", "Rope", 3, 0, phase, 0.1),
        Fault("row", "SelfAttention", 2, 0, phase, 0.5),
        Fault("scale", "SelfAttention", 0, 0, phase, 0.1),
        Fault("scale", "Activation", 1, 0, phase, 0.1),
        Fault("row", "Elewise", 3, 0, phase, 0.5),
    ]


# What a fault does is in proportion to its size only where it is small, and other faults change its inputs.
MOST_RUNS = 6


def both_phases():
    """Each type in one of the phases, and in the other one where there is time."""
    for place, dtype in enumerate(TYPES):
        yield pytest.param(dtype, place % 2)
        yield pytest.param(dtype, 1 - place % 2, marks=pytest.mark.slow)


@pytest.mark.parametrize(("dtype", "phase"), list(both_phases()))
def test_wrong_kernels_stand_alone_down_to_four_times_their_bound(check, small, dtype, phase):
    """Every operation is checked by itself, so that many can be wrong at a time."""
    faults = faults_of(phase)
    for run in range(MOST_RUNS):
        rows = check(small, dtype, faults=[fault.text() for fault in faults])
        planted = [fault.place(rows) for fault in faults]
        assert outside(rows) <= set(planted)
        reached = [shares(rows)[where] for where in planted]
        if run == 0 or all(2 < share < 8 for share in reached):
            assert outside(rows) == set(planted)
            if run > 0:
                return
        for fault, share in zip(faults, reached):
            usual = 1e-5 if fault.kind == "epsilon" else 0
            if not 2 < share < 8:
                fault.size = usual + (fault.size - usual) * 4 / min(max(share, 0.1), 1e9)
    raise AssertionError(f"no faults of four times the bound: {reached}")


@pytest.mark.parametrize("dtype", TYPES)
def test_a_cache_with_other_numbers_stands_alone(check, small, dtype):
    """What is moved must not change at all."""
    fault = Fault("scale", "ReshapeAndCache", 1, 0, 1, {"fp32": 2e-7, "bf16": 0.005}.get(dtype, 0.0006))
    rows = check(small, dtype, faults=[fault.text()])
    assert outside(rows) == {fault.place(rows)}


@pytest.mark.parametrize("dtype", TYPES)
def test_infinities_are_laid_to_the_kernel_that_made_them(check, small, dtype):
    """One number too large for half is enough, and what is made of it afterwards is right."""
    fault = Fault("overflow", "Linear", 1, 5, 0, 1e5)
    rows = check(small, dtype, faults=[fault.text()])
    assert outside(rows) == {fault.place(rows)}
    assert math.isinf(shares(rows)[fault.place(rows)])


WIRING = {
    "rope-pairing": "rope-pairing@layer=1,round=all",
    "residual": "residual@layer=2,index=1,round=all",
    "head-mapping": "head-mapping@layer=0,round=all",
    "position": "position@layer=3,size=5,round=all",
}


@pytest.mark.parametrize("fault", WIRING)
def test_wrong_wiring_leaves_every_operation_right(check, small, fault):
    assert_sound(check(small, "fp16", faults=[WIRING[fault]]))


@pytest.mark.parametrize("dtype", TYPES)
def test_all_of_the_wiring_wrong_leaves_every_operation_right(check, small, dtype):
    assert_sound(check(small, dtype, faults=WIRING.values()))


def test_all_faults_of_the_engine_are_tried():
    listed = subprocess.run([LLAMA, "--list-faults"], check=True, capture_output=True, text=True).stdout
    kinds = {line.split()[0]: line.split()[1] for line in listed.splitlines()}
    tried = {fault.kind for fault in faults_of(0)} | {"overflow"}
    assert {kind for kind, what in kinds.items() if what == "kernel"} == tried
    assert {kind for kind, what in kinds.items() if what == "wiring"} == set(WIRING)
