"""What recording costs a forward of a 16-layer, 2048-wide llama on 512 tokens, against the same forward without it.

    python bench/torch_hooks.py                              on the CPU
    python bench/torch_hooks.py --device cuda --dtype bfloat16

Ways are measured in turn, so that a machine that becomes slower does so for all; the numbers are medians with the
distance between the quartiles. "until it returns" ends with the forward, the device synchronised; "until it is on disk"
ends when every file is complete.
"""

import argparse
import contextlib
import io
import json
import os
import platform
import shutil
import statistics
import tempfile
import time

import torch
import transformers
from ait_llm import DumpConfig, register_hook

NEVER = 10**9
"""A round that does not come: the hooks are there and have nothing to do."""


def llama(arguments):
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        hidden_size=arguments.width,
        intermediate_size=4 * arguments.width,
        num_hidden_layers=arguments.layers,
        num_attention_heads=arguments.width // 64,
        num_key_value_heads=max(1, arguments.width // 256),
        vocab_size=arguments.vocabulary,
        use_cache=False,
    )
    previous = torch.get_default_dtype()
    torch.set_default_dtype(getattr(torch, arguments.dtype))
    with torch.device(arguments.device):
        model = transformers.LlamaForCausalLM(config).eval()
    torch.set_default_dtype(previous)
    tokens = torch.randint(0, arguments.vocabulary, (1, arguments.tokens), device=arguments.device)
    return model, tokens


class Way:
    """One row of the table."""

    def __init__(self, name, config=None):
        self.name = name
        self._config = config
        self.returned = []
        self.on_disk = []
        self.files = (0, 0)

    def run(self, model, tokens, folder, synchronize):
        handle = None
        if self._config is not None:
            with contextlib.redirect_stderr(io.StringIO()):  # it says where it records to, each time
                handle = register_hook(model, DumpConfig(folder, **self._config))
            handle.flush()
        synchronize()
        start = time.perf_counter()
        model(tokens)
        synchronize()
        self.returned.append(time.perf_counter() - start)
        if handle is not None:
            handle.flush()
        self.on_disk.append(time.perf_counter() - start)
        if handle is not None:
            handle.remove()
            with open(os.path.join(handle.folder, "manifest.json")) as file:
                tensors = json.load(file)["tensors"]
            self.files = (tensors["written"], tensors["written_bytes"])
            shutil.rmtree(folder)


def quartile_distance(values):
    if len(values) < 4:
        return max(values) - min(values)
    first, _, third = statistics.quantiles(values, n=4)
    return third - first


def median_ratio(values, base):
    """Of each run to the plain run beside it, so that the machine's moods cancel out."""
    return statistics.median(value / other for value, other in zip(values, base))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--layers", type=int, default=16)
    parser.add_argument("--width", type=int, default=2048)
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--vocabulary", type=int, default=32000)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--ways", default="plain,idle,statistics,tensors", help="a comma list of these")
    parser.add_argument("--folder", help="where to record to; a temporary folder if not given")
    parser.add_argument("--json", help="also write the numbers to this file")
    arguments = parser.parse_args()

    ways = {
        "plain": Way("no hooks"),
        "idle": Way("hooks, round out of range", {"token_range": [NEVER]}),
        "statistics": Way("statistics", {"dump_statistics_mode": 1}),
        "tensors": Way("tensors", {}),
    }
    chosen = [ways[name] for name in arguments.ways.split(",")]
    synchronize = torch.cuda.synchronize if arguments.device.startswith("cuda") else (lambda: None)
    model, tokens = llama(arguments)
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder, torch.no_grad():
        for repeat in range(arguments.repeats + 2):
            for way in chosen:
                way.run(model, tokens, os.path.join(folder, "dump"), synchronize)
            if repeat == 1:  # two rounds to warm up
                for way in chosen:
                    way.returned.clear()
                    way.on_disk.clear()

    on_gpu = arguments.device.startswith("cuda")
    device = torch.cuda.get_device_name() if on_gpu else f"CPU, {torch.get_num_threads()} threads"
    print(
        f"llama, {arguments.layers} layers, {arguments.width} wide, {arguments.tokens} tokens, {arguments.dtype}; "
        f"{device}; torch {torch.__version__}, transformers {transformers.__version__}, "
        f"Python {platform.python_version()}; {arguments.repeats} repeats\n"
    )
    print(
        "| way | until it returns, ms (quartiles) | ratio | until it is on disk, ms (quartiles) | ratio | tensors "
        "| MB |"
    )
    print("|---|---|---|---|---|---|---|")
    base = chosen[0]
    results = []
    for way in chosen:
        row = {"way": way.name, "tensors": way.files[0], "bytes": way.files[1]}
        for key, values, plain in (("returned", way.returned, base.returned), ("on_disk", way.on_disk, base.on_disk)):
            row[key] = {
                "median_s": statistics.median(values),
                "quartiles_s": quartile_distance(values),
                "ratio": median_ratio(values, plain),
            }
        results.append(row)
        print(
            "| {} | {:.1f} ({:.1f}) | {:.3f} | {:.1f} ({:.1f}) | {:.3f} | {} | {:.0f} |".format(
                way.name,
                row["returned"]["median_s"] * 1e3,
                row["returned"]["quartiles_s"] * 1e3,
                row["returned"]["ratio"],
                row["on_disk"]["median_s"] * 1e3,
                row["on_disk"]["quartiles_s"] * 1e3,
                row["on_disk"]["ratio"],
                way.files[0],
                way.files[1] / 1e6,
            )
        )
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"arguments": vars(arguments), "device": device, "ways": results}, file, indent=1)


if __name__ == "__main__":
    main()
