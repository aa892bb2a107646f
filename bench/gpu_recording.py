"""What recording costs a model on a GPU: statistics, tensors and hooks that have nothing to do, beside the same forward
without them.

    python bench/gpu_recording.py                     on the first CUDA device, as docs/benchmarks.md has it
    python bench/gpu_recording.py --device cpu --small   to try the program

Ways are measured in turn, so that a machine that becomes slower does so for all. A ratio is the median of the ratios of
each run to the plain one beside it, with the first and third quartile. "returns" ends with the forward, the device
synchronised; "12 rounds" is so many forwards on end until every file is complete, to as many plain ones.
"""

import argparse
import concurrent.futures
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
ROUNDS = 12
EVERY = list(range(100_000))


class Forward:
    """One forward of a whole prompt."""

    def __init__(self, name, model, tokens):
        self.name, self.model, self._tokens = name, model, tokens

    def prepare(self):
        pass

    def step(self):
        self.model(self._tokens, use_cache=False)


class Decode(Forward):
    """One token behind those before it, with a cache of keys and values."""

    def prepare(self):
        self._cache = self.model(self._tokens, use_cache=True).past_key_values
        self._next = self._tokens[:, -1:]

    def step(self):
        self.model(self._next, past_key_values=self._cache, use_cache=True)


def llama(layers, width, device, dtype):
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        hidden_size=width,
        intermediate_size=4 * width,
        num_hidden_layers=layers,
        num_attention_heads=max(1, width // 64),
        num_key_value_heads=max(1, width // 256),
        vocab_size=32000,
        max_position_embeddings=8192,
    )
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    with torch.device(device):
        model = transformers.LlamaForCausalLM(config).eval()
    torch.set_default_dtype(before)
    return model


def recording(model, folder, **config):
    with contextlib.redirect_stderr(io.StringIO()):  # it says where it records to, each time
        handle = register_hook(model, DumpConfig(folder, **config))
    handle.flush()
    return handle


class Bench:
    def __init__(self, work, folder, synchronize):
        self._work, self._folder, self._synchronize = work, folder, synchronize
        self.facts = {}

    def once(self, config, rounds=1):
        """Seconds until the last forward returns, and until all is on disk."""
        self._work.prepare()
        handle = None if config is None else recording(self._work.model, self._folder, **config)
        self._synchronize()
        start = time.perf_counter()
        for _ in range(rounds):
            self._work.step()
        self._synchronize()
        returned = time.perf_counter() - start
        if handle is not None:
            handle.flush()
        on_disk = time.perf_counter() - start
        if handle is not None:
            handle.remove()
            with open(os.path.join(handle.folder, "manifest.json")) as file:
                self.facts = json.load(file)
            shutil.rmtree(self._folder)
        return returned, on_disk

    def ratios(self, config, repeats, rounds=1, warm=2):
        """Of both to a plain run beside each; and the plain runs' seconds."""
        returned, on_disk, plain = [], [], []
        for repeat in range(repeats + warm):
            base, _ = self.once(None, rounds)
            one, other = self.once(config, rounds)
            if repeat >= warm:
                plain.append(base / rounds)
                returned.append(one / base)
                on_disk.append(other / base)
        return returned, on_disk, plain

    def tensors(self, repeats, threads):
        """Bytes a second, of what recording tensors writes and of plain writes of the same bytes beside it."""
        ours, plain = [], []
        for repeat in range(repeats + 1):
            _, seconds = self.once({})
            written = self.facts["tensors"]["written_bytes"]
            files = self.facts["tensors"]["written"]
            if repeat > 0:
                ours.append(written / seconds)
                plain.append(written / write_plainly(self._folder, written, files, threads))
        return ours, plain, files, written


def write_plainly(folder, total, files, threads):
    """Seconds for as many bytes in as many files of one size."""
    os.makedirs(folder)
    content = memoryview(os.urandom(1 << 20) * max(1, total // files >> 20) or b"\0")
    size = total // files

    def write(index):
        with open(os.path.join(folder, str(index)), "wb", buffering=0) as file:
            file.write(content[:size])

    start = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        list(pool.map(write, range(files)))
    seconds = time.perf_counter() - start
    shutil.rmtree(folder)
    return seconds


def spread(values, digits=2):
    if len(values) < 4:
        return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f}–{max(values):.{digits}f})"
    first, _, third = statistics.quantiles(values, n=4)
    return f"{statistics.median(values):.{digits}f} ({first:.{digits}f}–{third:.{digits}f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--small", action="store_true", help="small models, few repeats")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--cases", default="16,32,decode", help="a comma list of these")
    parser.add_argument("--without-tensors", action="store_true")
    parser.add_argument("--folder", help="where to record to; a temporary folder if not given")
    parser.add_argument("--json", help="also write the numbers to this file")
    arguments = parser.parse_args()
    on_gpu = arguments.device.startswith("cuda")
    synchronize = torch.cuda.synchronize if on_gpu else (lambda: None)
    dtype = torch.bfloat16 if on_gpu else torch.float32
    sizes = {"16": (16, 2048, 512), "32": (32, 4096, 2048), "decode": (16, 2048, 128)}
    if arguments.small:
        sizes = {"16": (4, 128, 16), "32": (6, 128, 32), "decode": (4, 128, 8)}
        arguments.repeats = min(arguments.repeats, 4)
    device = torch.cuda.get_device_name() if on_gpu else f"CPU, {torch.get_num_threads()} threads"
    print(
        f"{device}; torch {torch.__version__}, transformers {transformers.__version__}, Python "
        f"{platform.python_version()}; {dtype}; {arguments.repeats} repeats; ratio to plain (quartiles)\n"
    )
    print(
        "| llama | plain, ms | statistics, returns | statistics, on disk | 12 rounds, returns | 12 rounds, on disk "
        "| hooks out of range |"
    )
    print("|---|---|---|---|---|---|---|")
    results, tensors = [], []
    threads = min(16, os.cpu_count() or 1)
    model = None
    for case in arguments.cases.split(","):
        layers, width, count = sizes[case]
        if model is None or model.config.num_hidden_layers != layers or model.config.hidden_size != width:
            del model
            model = llama(layers, width, arguments.device, dtype)
        tokens = torch.randint(0, 32000, (1, count), device=arguments.device)
        kind = Decode if case == "decode" else Forward
        name = f"{layers} × {width}, " + ("decoding" if case == "decode" else f"{count} tokens")
        with tempfile.TemporaryDirectory(dir=arguments.folder) as folder, torch.no_grad():
            bench = Bench(kind(name, model, tokens), os.path.join(folder, "dump"), synchronize)
            one = {"token_range": EVERY[:2], "dump_statistics_mode": 1}
            returned, on_disk, plain = bench.ratios(one, arguments.repeats)
            facts = bench.facts["statistics"]
            many = {"token_range": EVERY[:ROUNDS], "dump_statistics_mode": 1}
            later, all_on_disk, _ = bench.ratios(many, max(3, arguments.repeats // 3), ROUNDS, 1)
            idle, _, _ = bench.ratios({"token_range": [NEVER], "dump_statistics_mode": 1}, arguments.repeats)
            row = {"case": name, "plain_s": plain, "returned": returned, "on_disk": on_disk, "rounds": later}
            row.update(rounds_on_disk=all_on_disk, idle=idle, statistics=facts)
            results.append(row)
            cells = [spread(values) for values in (returned, on_disk, later, all_on_disk)]
            print(
                f"| {name} | {spread([s * 1e3 for s in plain], 1)} | {' | '.join(cells)} | {spread(idle, 3)} |",
                flush=True,
            )
            if case != "decode" and not arguments.without_tensors:
                ours, others, files, written = bench.tensors(7, threads)
                row["tensors"] = {"ours": ours, "plain": others, "files": files, "bytes": written}
                share = [one / other for one, other in zip(ours, others)]
                tensors.append(
                    f"| {name} | {files} | {written / 1e9:.2f} | {spread([each / 1e9 for each in ours])} | "
                    f"{spread([each / 1e9 for each in others])} | {spread(share)} |"
                )
    print(f"\nmeasured: {results[0]['statistics']}")
    if tensors:
        print(f"\n| llama | tensors | GB | recorded, GB/s | plain writes by {threads} threads, GB/s | share |")
        print("|---|---|---|---|---|---|")
        print("\n".join(tensors))
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"arguments": vars(arguments), "device": device, "cases": results}, file, indent=1)


if __name__ == "__main__":
    main()
