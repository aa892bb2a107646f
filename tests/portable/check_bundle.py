"""Unpacks a bundle somewhere and uses it as its reader would; compares what it says with another bundle's answers.

    check_bundle.py BUNDLE REFERENCE

Prints a line for each thing that was done, and fails if anything is wrong. Values that docs/metrics.md calls exact have
to be equal, others within what it says. Under scripts/emulated, BUNDLE may be of another machine.
"""

import csv
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tarfile
import tempfile

TOKENS = "1,15,7,22,3,81"
# Sums of another instruction set, shown with the digits of float32; KL is promised to 1e-5 of its value.
LIMITS = {
    **dict.fromkeys(["golden_mean_value", "my_mean_value", "mean_relative_error", "mean_absolute_error"], 1e-6),
    **dict.fromkeys(["cosine_similarity", "relative_euclidean_distance"], 1e-6),
    "kl_divergence": 1e-5,
}
# Two runs of the engine in fp32, on machines of which one multiplies and adds in one step.
ENGINE_LIMIT = 1e-4


class Bundle:
    def __init__(self, archive, folder):
        with tarfile.open(archive) as packed:
            # Python 3.9 has no filters, and 3.14 no extraction without.
            packed.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
        (self.root,) = folder.iterdir()
        self.folder = folder

    def run(self, name, *words):
        command = [str(self.root / "bin" / name), *map(str, words)]
        # As a new user has it: no variables of ours, and the home of nobody.
        environment = {"PATH": f"{self.root}/bin:{os.environ['PATH']}", "HOME": str(self.folder), "LC_ALL": "C.UTF-8"}
        environment.update({name: value for name, value in os.environ.items() if name.startswith("QEMU_")})
        process = subprocess.run(
            command, capture_output=True, text=True, env=environment, cwd=self.folder, timeout=1800
        )
        if process.returncode != 0:
            raise AssertionError(f"{shlex.join(command)} ended with {process.returncode}: {process.stderr}")
        return process.stdout


def close(a, b, limit):
    return a == b or abs(a - b) <= limit * max(abs(a), abs(b))


def rows(folder):
    (report,) = folder.glob("ait_cmp_report_*.csv")
    with open(report, newline="") as file:
        return list(csv.DictReader(file))


def compare_rows(found, expected):
    assert [row["data_id"] for row in found] == [row["data_id"] for row in expected]
    same = 0
    for row, other in zip(found, expected):
        for column in row:
            if row[column] == other[column]:
                same += 1
            elif column in LIMITS:
                a, b = float(row[column]), float(other[column])
                small = column == "kl_divergence" and abs(a - b) <= 1e-12
                assert small or close(a, b, LIMITS[column]), f"{row['data_id']}: {column} {a} {b}"
            else:
                raise AssertionError(f"{row['data_id']}: {column} {row[column]!r} {other[column]!r}")
    cells = sum(map(len, found))
    rest = ", the rest within the stated limits" if same < cells else ""
    return f"{len(found)} rows, {same} of {cells} cells equal{rest}"


def dump(bundle, model, output, dtype):
    host = f"ait-llama --model {shlex.quote(str(model))} --tokens {TOKENS} --steps 2 --dtype {dtype}"
    said = bundle.run("ait", "llm", "dump", "--exec", host, "-er", "0,1", "-o", output)
    assert re.search(r"^capture +complete$", said, re.MULTILINE), said
    return output / "ait_dump", re.search(r"^[\d,]+$", said, re.MULTILINE).group()


def names_below(dump):
    (process,) = (dump / "tensors").iterdir()  # called by its number
    return sorted(str(path.relative_to(process)) for path in process.rglob("*"))


def steps(bundle, reference, folder):
    """What is done, as pairs of its name and what it showed."""
    yield "ait --version", bundle.run("ait", "--version").strip()
    facts = json.loads(bundle.run("ait", "doctor", "--json"))
    yield "ait doctor", f"{facts['machine']['simd']}, glibc {facts['machine']['glibc']}"

    model = folder / "model"
    bundle.run("ait-llama", "--make-model", model)
    reference.run("ait-llama", "--make-model", folder / "reference_model")
    for path in sorted(model.iterdir()):
        assert path.read_bytes() == (folder / "reference_model" / path.name).read_bytes(), path.name
    yield "ait-llama --make-model", "the same bytes"

    golden, _ = dump(reference, model, folder / "golden", "fp32")
    half, _ = dump(reference, model, folder / "half", "fp16")
    tensor = next(half.rglob("0_RmsNormOperation/after/outtensor0.bin"))
    shown, expected = (json.loads(each.run("ait", "show", tensor, "--json")) for each in (bundle, reference))
    (one,), (other,) = shown.pop("tensors"), expected.pop("tensors")
    assert shown == expected and one.keys() == other.keys()
    for name in one:
        is_sum = name in ("mean", "l1_norm", "l2_norm")
        assert one[name] == other[name] or (is_sum and close(one[name], other[name], 1e-6)), name
    yield "ait show", "the same"

    for name, each in ("report", bundle), ("reference_report", reference):
        each.run("ait", "llm", "compare", "-gp", golden, "-mp", half, "-o", folder / name)
    yield "ait llm compare", compare_rows(rows(folder / "report"), rows(folder / "reference_report"))

    mine, tokens = dump(bundle, model, folder / "mine", "fp32")
    _, expected_tokens = dump(reference, model, folder / "again", "fp32")
    assert tokens == expected_tokens, (tokens, expected_tokens)
    assert names_below(mine) == names_below(golden)
    reference.run("ait", "llm", "compare", "-gp", golden, "-mp", mine, "-o", folder / "engines")
    worst = 0.0
    measured = rows(folder / "engines")
    for row in measured:
        assert not row["cmp_fail_reason"], row
        worst = max(worst, float(row["relative_euclidean_distance"]))
    assert measured and worst <= ENGINE_LIMIT, worst
    yield "ait llm dump", f"the same {len(names_below(mine))} names and tokens; tensors up to {worst:.1g} apart"

    fault = "Fault: token 0, 4_Prefill_layer/0_RmsNormOperation (layer 2)"
    assert fault in bundle.run("ait", "demo", "-o", folder / "demo")
    assert (folder / "demo" / "report.html").stat().st_size > 0
    yield "ait demo", "the planted fault is found"


def main(archive, reference):
    with tempfile.TemporaryDirectory(prefix="bundle-") as name:
        folder = pathlib.Path(name).resolve()
        for part in ("bundle", "reference", "work"):
            (folder / part).mkdir()
        done = steps(Bundle(archive, folder / "bundle"), Bundle(reference, folder / "reference"), folder / "work")
        for what, result in done:
            print(f"{what}: {result}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
