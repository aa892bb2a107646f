"""How many calls of whole training steps pass the check of torch APIs on a device, as run_ut counts them.

    python bench/api_check_models.py                      on the CPU
    python bench/api_check_models.py --device cuda

A step of a llama and of a convolutional network is recorded on the device, in each type, and `ait api check` runs what
was recorded there again, with the CPU one precision up as the benchmark. Prints one line of a table for each.
"""

import argparse
import csv
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
from ait_llm.api_check.config import Config
from ait_llm.api_check.iterations import Control

TYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}


def llama(arguments):
    import transformers

    config = transformers.LlamaConfig(
        num_hidden_layers=arguments.layers,
        hidden_size=arguments.width,
        intermediate_size=arguments.width * 11 // 4,
        num_attention_heads=max(1, arguments.width // 64),
        num_key_value_heads=max(1, arguments.width // 128),
        vocab_size=arguments.vocabulary,
    )
    tokens = torch.randint(0, arguments.vocabulary, (1, arguments.tokens), device=arguments.device)
    model = transformers.LlamaForCausalLM(config)
    return model, lambda: model(input_ids=tokens, labels=tokens).loss


class Residual(torch.nn.Module):
    def __init__(self, channels, outputs, stride):
        super().__init__()
        self.first = torch.nn.Conv2d(channels, outputs, 3, stride, padding=1, bias=False)
        self.first_norm = torch.nn.BatchNorm2d(outputs)
        self.second = torch.nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.second_norm = torch.nn.BatchNorm2d(outputs)
        self.shortcut = torch.nn.Conv2d(channels, outputs, 1, stride, bias=False)

    def forward(self, x):
        inner = torch.relu(self.first_norm(self.first(x)))
        return torch.relu(self.second_norm(self.second(inner)) + self.shortcut(x))


class Convolutions(torch.nn.Module):
    """As residual networks for images are made."""

    def __init__(self):
        super().__init__()
        self.stem = torch.nn.Conv2d(3, 32, 7, 2, padding=3)
        self.blocks = torch.nn.Sequential(Residual(32, 32, 1), Residual(32, 64, 2), Residual(64, 128, 2))
        self.depthwise = torch.nn.Conv2d(128, 128, 3, groups=128)
        self.norm = torch.nn.GroupNorm(8, 128)
        self.head = torch.nn.Linear(128, 100)

    def forward(self, images):
        functional = torch.nn.functional
        x = self.blocks(functional.max_pool2d(self.stem(images), 3, 2, 1))
        x = functional.gelu(self.norm(self.depthwise(x)))
        x = functional.dropout(functional.adaptive_avg_pool2d(x, 1).flatten(1), 0.1, self.training)
        return self.head(x)


def convolutions(arguments):
    model = Convolutions()
    images = torch.rand(8, 3, 96, 96, device=arguments.device, dtype=TYPES[arguments.dtype])
    classes = torch.arange(8, device=arguments.device)
    return model, lambda: torch.nn.functional.cross_entropy(model(images), classes)


MODELS = {"llama": llama, "convolutions": convolutions}


def record(arguments):
    """Its second step, as the documents have it. Writes the files and ends."""
    torch.manual_seed(0)
    model, loss = MODELS[arguments.record](arguments)
    model.to(arguments.device, TYPES[arguments.dtype]).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    config = Config()
    config.update_config(dump_path=arguments.folder)
    control = Control(config)
    for switch in ("OFF", "ON"):
        control.set_dump_switch(switch)
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
    control.set_dump_switch("OFF")
    control._at_exit.clear()  # the end is no place for words


def check(arguments, name, dtype, folder):
    shape = [f"--{each}={getattr(arguments, each)}" for each in ("layers", "width", "tokens", "vocabulary", "device")]
    start = time.perf_counter()
    command = [sys.executable, __file__, "--record", name, "--dtype", dtype, "--folder", folder, *shape]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    recorded = time.perf_counter()
    (forward,), (backward,) = (Path(folder).glob(f"{kind}_info_*.json") for kind in ("forward", "backward"))
    command = [sys.executable, "-m", "ait_llm.api_check", "check", "-forward", forward, "-backward", backward]
    command += ["--device", arguments.device, "-o", folder]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    with open(os.path.join(folder, "accuracy_checking_result.csv"), newline="") as file:
        rows = list(csv.DictReader(file))
    return rows, recorded - start, time.perf_counter() - recorded


def is_passed(row, columns):
    return "False" not in [row[column] for column in columns]


RULE = ("Forward Test Success", "Backward Test Success")
ROUNDING = ("Forward Within Rounding", "Backward Within Rounding")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--vocabulary", type=int, default=32000)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--dtypes", default=",".join(TYPES))
    for option in ("--record", "--dtype", "--folder"):  # for its own processes
        parser.add_argument(option, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.record:
        record(arguments)
        return
    print("| model | type | calls | run | by the rule | within rounding | seconds |\n|---|---|---|---|---|---|---|")
    notes = []
    for name in arguments.models.split(","):
        for dtype in arguments.dtypes.split(","):
            with tempfile.TemporaryDirectory() as folder:
                rows, _, seconds = check(arguments, name, dtype, folder)
            run = [row for row in rows if row[RULE[0]] != "SKIP"]
            shares = [f"{100 * sum(is_passed(row, each) for row in run) / len(run):.1f} %" for each in (RULE, ROUNDING)]
            print(f"| {name} | {dtype} | {len(rows)} | {len(run)} | {' | '.join(shares)} | {seconds:.0f} |", flush=True)
            notes += [
                f"{name} {dtype} {row['API name']} {[row[each] for each in (*RULE, *ROUNDING)]}: {row['Message']}"
                for row in run
                if not is_passed(row, ROUNDING)
            ]
            reasons = {f"{row['API name'].split('*')[1]}: {row['Message']}" for row in rows if row[RULE[0]] == "SKIP"}
            notes += [f"{name} {dtype} not run: {reason}" for reason in sorted(reasons)]
    print("\n" + "\n".join(notes))


if __name__ == "__main__":
    main()
