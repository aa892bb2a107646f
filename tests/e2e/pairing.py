"""Runs of torch and of an acceleration library whose pairs are known, and what `ait llm compare` made of them."""

import csv
import pathlib
import re

import torch
from atb_run import Library
from torch_run import Names, make_model, record


class Case:
    """A model run by torch and by the library in `folder`; `names` is the seed of random names."""

    def __init__(self, folder, family="llama", layers=2, steps=2, batch=1, names=None, recorder=None, **library):
        self.folder = pathlib.Path(folder)
        torch.set_num_threads(1)
        model = make_model(family, layers)
        prompt = torch.randint(1, 97, (batch, 7), generator=torch.Generator().manual_seed(1))
        self.recorder, words = record(model, self.golden, prompt, steps, names=Names(names), **(recorder or {}))
        self.truth = Library(model, self.mine, random_names=names, **library).run(prompt, words)

    @property
    def golden(self):
        return self.folder / "torch" / "ait_dump"

    @property
    def mine(self):
        return self.folder / "library" / "ait_dump"

    def compare(self, ait, *arguments):
        """The finished process and its rows."""
        out = self.folder / "out"
        done = ait("llm", "compare", "-gp", self.golden, "-mp", self.mine, "-o", out, "--extended", *arguments)
        assert done.returncode == 0, done.stderr
        return done, read_rows(out)

    def _residual(self, token, module):
        """What goes into a norm where inputs were not recorded."""
        layer = int(module.split(".")[3])
        before = "root.model.embed_tokens" if layer == 0 else f"root.model.layers.{layer - 1}"
        attended = f"root.model.layers.{layer}.self_attn.o_proj"
        return self.recorder.tensors[token, before, "output"] + self.recorder.tensors[token, attended, "output"]

    def _is(self, row, token, module, stem):
        """Whether the golden tensor of a row is this one."""
        real = {self.recorder.names.module(name): name for (_, name, _) in self.recorder.tensors}
        parts = []
        for path in map(pathlib.Path, row["golden_data_path"].split(";")):
            parts.append(self.recorder.tensors[token, real[path.parent.name], path.stem])
        have = sum(parts)
        want = self.recorder.tensors.get((token, module, stem))
        if want is None:
            want = self._residual(token, module)
        return want.numel() == have.numel() and torch.allclose(want.flatten(), have.flatten(), atol=1e-5)

    def judge(self, rows):
        """(wanted, found, wrong): outputs with a partner, those paired with it, and rows that pair anything else."""
        wanted, found, wrong = set(), set(), []
        for (token, operation, output), expected in self.truth.of.items():
            for module, stem, first in expected or []:
                if (token, module, stem) in self.recorder.tensors or module.endswith("layernorm"):
                    wanted.add((token, operation, output, first))
        for row in rows:
            if not row["golden_data_path"] or not row["my_data_path"]:
                continue
            token, operation = int(row["token_id"]), row["my_operation"]
            output = int(re.search(r"outtensor(\d+)", row["data_id"]).group(1))
            first = int(row["data_id"].rsplit(":", 1)[1]) if ":" in row["data_id"] else 0
            expected = self.truth.of.get((token, operation, output)) or []
            if any(at == first and self._is(row, token, module, stem) for module, stem, at in expected):
                found.add((token, operation, output, first))
            else:
                wrong.append((token, operation, output, row["golden_data_path"], row["pairing_reason"]))
        return wanted, found, wrong


def read_rows(folder):
    (path,) = pathlib.Path(folder).glob("*.csv")
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
