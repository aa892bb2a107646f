"""Runs of every kind, and what `ait llm compare` says of them."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import ait_llm
import numpy as np
import torch
from ait_llm import DumpConfig, register_hook
from ait_llm.dump.manual_dump import dump_data, flush
from hook_models import Model, X

PROGRAM = Path(sys.executable).with_name("ait")


def folders(root):
    """Several formats; a fault, a NaN, a missing, an extra and a corrupt file, and files of several tensors."""
    generator = np.random.default_rng(0)
    for side in ("golden", "my"):
        (root / side / "sub").mkdir(parents=True)
    for i in range(8):
        golden = generator.standard_normal((4, 64)).astype(np.float32)
        actual = golden * np.float32(1.5) if i == 3 else golden.copy()
        actual[0, 0] = np.nan if i == 5 else actual[0, 0]
        ait_llm.save(root / f"golden/t{i}.npy", golden)
        ait_llm.save(root / f"my/t{i}.{'pth' if i % 2 else 'bin'}", actual.astype(np.float16) if i == 6 else actual)
    (root / "golden/t7.npy").unlink()
    (root / "my/t4.bin").unlink()
    (root / "golden/broken.npy").write_bytes(b"\x93NUMPY\x01\x00")
    ait_llm.save(root / "my/broken.npy", np.arange(3))
    ait_llm.save(root / "golden/sub/many.safetensors", {"a": np.arange(4), "b": np.ones(3), "only_golden": np.ones(1)})
    ait_llm.save(root / "my/sub/many.safetensors", {"a": np.arange(4) + 1, "b": np.ones((1, 3))})
    return root / "golden", root / "my"


def checkpoints(root):
    weights = {f"model.layers.{i}.weight": torch.randn(8, 16) for i in range(12)}
    ait_llm.save(root / "model.safetensors", weights)
    weights["model.layers.2.weight"] = weights["model.layers.2.weight"] * 2
    del weights["model.layers.11.weight"]
    torch.save({**weights, "lm_head": torch.zeros(3)}, root / "state.pth")
    return root / "model.safetensors", root / "state.pth"


def mapping(root):
    for token in range(2):
        for data in (1, 10, 2):
            values = torch.arange(6.0).reshape(2, 3) * data + token
            if (token, data) != (1, 2):
                ait_llm.save(root / f"{token}_{data}.bin", values + (data == 10))
            dump_data(token, data, values, str(root / f"{token}_{data}.bin"), str(root))
    flush()
    (golden,) = root.glob("ait_dump/*")
    return golden, None


def recorded(root, side, scale=1.0, **config):
    torch.manual_seed(7)
    model = Model()
    with torch.no_grad():
        model.blocks[1].fc.weight *= scale
    with register_hook(model, DumpConfig(str(root / side), token_range=[0, 1], **config)):
        for _ in range(2):
            model(X)
    return root / side


def dumps(root):
    return recorded(root, "golden"), recorded(root, "my", scale=1.5)


def statistics(root):
    return recorded(root, "golden"), recorded(root, "my", scale=1.5, dump_statistics_mode=1)


def command(golden, actual, *options):
    """The csv of `ait llm compare` as dicts of text, its --json, and the path of its row store."""
    out = Path(golden).parent / f"out{len(list(Path(golden).parent.iterdir()))}"
    paths = ["-gp", golden, *(["-mp", actual] if actual else [])]
    done = subprocess.run(
        [PROGRAM, "llm", "compare", *paths, "-o", out, "--json", *options], capture_output=True, text=True, check=True
    )
    (report,) = out.glob("*.csv")
    with open(report, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file)), json.loads(done.stdout), report.with_suffix(".rows")
