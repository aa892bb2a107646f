"""`ait llm compare` on what a model really computes: a llama recorded in three precisions, another one on the engine.

    python bench/real_bench.py FOLDER [--layers N] [--repeats N] [--cold]

Each pair of precisions, warm, is held against bench/plain_compare.py on as many threads, turn by turn; the kernels
(metrics_bench) run on the same tensors. With --cold FOLDER must lie on a disk: the files are read once by `cat` and
once by ait, each time with none of them in memory. Prints one JSON line for each figure. The engine's model is that of
engine_bench.py with 512 tokens of prompt.
"""

import argparse
import copy
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
AIT = pathlib.Path(os.environ.get("AIT_BIN", ROOT / "build/bin/ait"))
TENSORS = (".pth", ".bin")
ENGINE = ("engine-fp16", "engine-bf16")
PAIRS = (("float32", "bfloat16"), ("float16", "bfloat16"), ("bfloat16", "bfloat16-changed"), ENGINE)
COLD_PAIRS = (PAIRS[0], ENGINE)


def record(folder: pathlib.Path, layers: int) -> None:
    import torch
    import transformers
    from ait_llm import DumpConfig, register_hook

    config = transformers.LlamaConfig(
        hidden_size=1024,
        intermediate_size=2816,
        num_hidden_layers=layers,
        num_attention_heads=16,
        num_key_value_heads=8,
        vocab_size=32000,
    )
    words = torch.randint(0, 32000, (1, 512), generator=torch.Generator().manual_seed(0))
    for name in ("float32", "float16", "bfloat16", "bfloat16-changed"):
        torch.manual_seed(0)
        model = transformers.LlamaForCausalLM(config).eval()
        if name.endswith("-changed"):  # another order of rounding from the first layer on
            model.model.embed_tokens.weight.data *= 1 + 2.0**-7
        rotary = copy.deepcopy(model.model.rotary_emb)
        model.to(getattr(torch, name.partition("-")[0]))
        model.model.rotary_emb = rotary  # its frequencies stay in float32, as from_pretrained leaves them
        with torch.no_grad(), register_hook(model, DumpConfig(str(folder / name), token_range=[0])):
            model(input_ids=words, use_cache=False)


def record_engine(folder: pathlib.Path) -> None:
    from engine_bench import make_model

    make_model(folder / "model")
    tokens = ",".join(str(word) for word in range(1, 513))
    for name in ENGINE:
        words = f"{AIT.with_name('ait-llama')} --model {folder / 'model'} --tokens {tokens} --steps 1"
        words += f" --dtype {name.partition('-')[2]}"
        command = [AIT, "llm", "dump", "--exec", words, "-er", "0,0", "-child", "true", "-stp", "1"]
        subprocess.run([*command, "-o", folder / name], check=True, capture_output=True)
        for kernel in [*folder.glob(f"{name}/**/*Kernel")]:  # compared only where somebody asks for them
            shutil.rmtree(kernel)
    shutil.rmtree(folder / "model")


def dump(folder: pathlib.Path, name: str) -> pathlib.Path:
    return folder / name / "ait_dump"


def size_of(*folders: pathlib.Path) -> int:
    return sum(path.stat().st_size for folder in folders for path in folder.rglob("*") if path.suffix in TENSORS)


def seconds_of(command: list, **options: object) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)
    return time.perf_counter() - start


def compare(golden: pathlib.Path, actual: pathlib.Path, out: pathlib.Path) -> float:
    seconds = seconds_of([AIT, "llm", "compare", "-gp", golden, "-mp", actual, "-o", out])
    shutil.rmtree(out)
    return seconds


def plain(golden: pathlib.Path, actual: pathlib.Path, threads: int) -> float:
    command = [sys.executable, ROOT / "bench/plain_compare.py", golden, actual, "--threads", str(threads)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(said)["seconds"][0]


def warm(folder: pathlib.Path, repeats: int, threads: int) -> None:
    for pair in PAIRS:
        golden, actual = (dump(folder, name) for name in pair)
        compare(golden, actual, folder / "out")  # so that it is warm
        turns = []
        for _ in range(repeats):
            before = compare(golden, actual, folder / "out")
            turns.append((min(before, compare(golden, actual, folder / "out")), plain(golden, actual, threads)))
        ratios = [of_torch / of_ait for of_ait, of_torch in turns]
        seconds = statistics.median(of_ait for of_ait, _ in turns)
        print(
            json.dumps(
                {
                    "work": "warm",
                    "golden": pair[0],
                    "my": pair[1],
                    "bytes": size_of(golden, actual),
                    "seconds": seconds,
                    "threads": threads,
                    "torch": statistics.median(of_torch for _, of_torch in turns),
                    "speed": statistics.median(ratios),
                    "spread": (max(ratios) - min(ratios)) / statistics.median(ratios),
                }
            ),
            flush=True,
        )


def forget(*folders: pathlib.Path) -> None:
    """Takes all files out of the page cache."""
    os.sync()
    for folder in folders:
        for path in folder.rglob("*"):
            if path.is_file():
                with path.open("rb") as file:
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def cold(folder: pathlib.Path, repeats: int) -> None:
    for pair in COLD_PAIRS:
        cold_pair(pair, *(dump(folder, name) for name in pair), folder / "out", repeats)


def cold_pair(pair: tuple, golden: pathlib.Path, actual: pathlib.Path, out: pathlib.Path, repeats: int) -> None:
    files = sorted(path for root in (golden, actual) for path in root.rglob("*") if path.is_file())
    turns = []
    for _ in range(repeats):
        forget(golden, actual)
        of_cat = seconds_of(["cat", *files])
        forget(golden, actual)
        turns.append((of_cat, compare(golden, actual, out)))
    ratios = [of_cat / of_ait for of_cat, of_ait in turns]
    print(
        json.dumps(
            {
                "work": "cold",
                "golden": pair[0],
                "my": pair[1],
                "bytes": size_of(golden, actual),
                "seconds": statistics.median(of_ait for _, of_ait in turns),
                "cat": statistics.median(of_cat for of_cat, _ in turns),
                "of_cat": statistics.median(ratios),
                "spread": (max(ratios) - min(ratios)) / statistics.median(ratios),
            }
        ),
        flush=True,
    )


def kernels(folder: pathlib.Path) -> None:
    for pair in PAIRS:
        command = ["taskset", "-c", "0", ROOT / "build/bin/metrics_bench", "--dumps"]
        command += [next(dump(folder, name).glob("*tensors/*")) for name in pair]
        said = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        print(json.dumps({**said, "golden": pair[0], "my": pair[1]}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--layers", type=int, default=24)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--cold", action="store_true")
    options = parser.parse_args()
    if not dump(options.folder, "bfloat16-changed").exists():
        record(options.folder, options.layers)
    if not dump(options.folder, ENGINE[1]).exists():
        record_engine(options.folder)
    if options.cold:
        return cold(options.folder, options.repeats)
    warm(options.folder, options.repeats, options.threads)
    return kernels(options.folder)


if __name__ == "__main__":
    main()
