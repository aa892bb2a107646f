"""All benchmarks in one run, as one table: `make bench`.

Every figure is a ratio of two things measured side by side here; the baseline is named in its row. With --write the
table goes to docs/benchmarks.md together with date, machine and command.
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
AIT = ROOT / "build/bin/ait"
WORK = ROOT / "build/bench"
sys.path.insert(0, str(ROOT / "bench"))

HEAD = "| work | figure | budget | baseline |"
CHINESE_HEAD = "| 工作 | 数值 | 预算 | 基线 |"

rows = []


def note(text):
    print(f"bench: {text}", file=sys.stderr, flush=True)


def add(work, figure, budget, baseline):
    rows.append((work, figure, budget, baseline))
    note(f"{work}: {figure}")


def median_seconds(call, repeats):
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def kernels(mebibytes):
    """Kernels on one core against raw reads, torch and numpy, on data of the same size and make."""
    out = subprocess.run(
        ["taskset", "-c", "0", ROOT / "build/bin/metrics_bench", str(mebibytes)],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    native = [json.loads(line) for line in out.splitlines()]
    out = subprocess.run(
        ["taskset", "-c", "0", ROOT / "build/bin/profile_bench"], check=True, capture_output=True, text=True
    ).stdout
    for one in map(json.loads, out.splitlines()):
        add(
            f"error profile, {one['dtype']} of {one['shape']} in cache, one core",
            f"{one['added']:+.0%} of the metrics with KL",
            "",
            f"{one['microseconds']:.1f} us without it",
        )
    os.sched_setaffinity(0, {0})
    import baseline_metrics as baseline
    import numpy as np
    import torch

    torch.set_num_threads(1)
    budgets = {
        "metrics_without_kl": ("all metrics but KL", 0.40),
        "metrics_with_kl": ("all metrics with KL", 0.20),
        "metrics_with_rows": ("all metrics, KL, worst row and KL by row", None),
        "statistics": ("statistics of one tensor", 0.60),
    }
    for one in native:
        dtype = getattr(torch, one["dtype"])
        elements = one["bytes"] // 2 // dtype.itemsize
        golden = torch.randn(elements).to(dtype)
        actual = (golden.float() * (1 + 1e-3 * torch.randn(elements))).to(dtype)
        peers = {"torch": (golden, actual, baseline.torch_metrics, baseline.torch_statistics)}
        if one["dtype"] != "bfloat16":  # numpy has none
            peers["numpy"] = (golden.numpy(), actual.numpy(), baseline.numpy_metrics, baseline.numpy_statistics)
        for key, (title, budget) in budgets.items():
            figure = f"{one[key]['of_bandwidth']:.2f} of read bandwidth (spread {one[key]['spread']:.2f})"
            names = [f"read {one['bytes'] / one['read']['seconds'] / 1e9:.1f} GB/s"]
            for name, (g, m, metrics, stats) in peers.items():
                if key == "metrics_with_rows":
                    continue
                if key == "statistics":
                    seconds = median_seconds(lambda: (stats(g), stats(m)), 3)
                else:
                    seconds = median_seconds(lambda: metrics(g, m, key == "metrics_with_kl"), 3)
                names.append(f"{name} takes {seconds / one[key]['seconds']:.0f} times as long")
            add(f"{title}, {one['dtype']}, one core", figure, f">= {budget:.2f}" if budget else "", "; ".join(names))
    os.sched_setaffinity(0, range(os.cpu_count()))
    del golden, actual, np


def real_dumps():
    """Llamas recorded from torch and on the engine: the whole command, warm and cold, and the kernels."""

    def pair_of(one):
        if one["golden"].startswith("engine-"):
            kinds = [one[side].removeprefix("engine-") for side in ("golden", "my")]
            return f"engine, llama 12 × 768, 512 tokens, {kinds[0]} against {kinds[1]}"
        return f"llama 24 × 1024, 512 tokens, {one['golden']} against {one['my']}"

    folder = WORK / "real"
    command = [sys.executable, ROOT / "bench/real_bench.py", folder]
    for arguments in ([], ["--cold"]):
        out = subprocess.run([*command, *arguments], check=True, capture_output=True, text=True).stdout
        for one in map(json.loads, out.splitlines()):
            size = f"{one['bytes'] / 1e9:.1f} GB"
            if one["work"] == "warm":
                add(
                    f"{pair_of(one)}, whole command, warm",
                    f"{one['speed']:.0f} times as fast (spread {one['spread']:.2f}), {one['seconds']:.2f} s for {size}",
                    ">= 15",
                    f"the formulas in torch float32, {one['threads']} threads, {one['torch']:.1f} s",
                )
            elif one["work"] == "cold":
                add(
                    f"{pair_of(one)}, whole command, cold, {size}",
                    f"{one['of_cat']:.2f} of the speed of cat (spread {one['spread']:.2f})",
                    ">= 0.90",
                    f"cat of the same files {one['cat']:.2f} s",
                )
            else:
                for key, title, budget in (
                    ("metrics_without_kl", "all metrics but KL", 0.40),
                    ("metrics_with_kl", "all metrics with KL", 0.20),
                    ("statistics", "statistics of each side", 0.60),
                ):
                    add(
                        f"{title}, tensors of {pair_of(one)}, one core",
                        f"{one[key]['of_bandwidth']:.2f} of read bandwidth (spread {one[key]['spread']:.2f})",
                        f">= {budget:.2f}",
                        f"read {one['bytes'] / one['read']['seconds'] / 1e9:.1f} GB/s",
                    )
    subprocess.run(["rm", "-rf", folder], check=True)


def watch_anonymous(process, peak):
    """Samples RssAnon of a child until it ends."""
    while process.poll() is None:
        try:
            for line in pathlib.Path(f"/proc/{process.pid}/status").read_text().splitlines():
                if line.startswith("RssAnon:"):
                    peak[0] = max(peak[0], int(line.split()[1]))
        except OSError:
            return
        time.sleep(0.005)


def run_watched(command):
    """Returns (seconds, peak RssAnon in MiB)."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    peak = [0]
    watcher = threading.Thread(target=watch_anonymous, args=(process, peak))
    watcher.start()
    code = process.wait()
    seconds = time.perf_counter() - start
    watcher.join()
    if code != 0:
        raise SystemExit(f"bench: {command} ended with status {code}")
    return seconds, peak[0] / 1024


def big_pair(gibibytes):
    import numpy as np

    WORK.mkdir(parents=True, exist_ok=True)
    paths = [WORK / "golden.npy", WORK / "my.npy"]
    elements = gibibytes * 2**29
    block = np.random.default_rng(0).standard_normal(2**22).astype(np.float16)
    for path, factor in zip(paths, (1.0, 1.001)):
        out = np.lib.format.open_memmap(path, mode="w+", dtype=np.float16, shape=(elements // 4096, 4096))
        flat = out.reshape(-1)
        for at in range(0, elements, block.size):
            flat[at : at + block.size] = block * np.float16(factor)
        del out, flat
    command = [AIT, "llm", "compare", "-gp", paths[0], "-mp", paths[1], "-l", "error"]
    seconds, peak = min(run_watched(command) for _ in range(2))
    add(
        f"one pair of {gibibytes} GiB fp16 files, all cores, whole command",
        f"{seconds:.2f} s, {2 * gibibytes * 2**30 / seconds / 1e9:.1f} GB/s, peak RssAnon {peak:.0f} MiB",
        "<= 300 MiB",
        "warm page cache",
    )
    for path in paths:
        path.unlink()


def many_pairs(count):
    """Folders of small pairs, warm: the whole command, report included."""
    import shutil

    import numpy as np

    array = np.random.default_rng(0).standard_normal(8192).astype(np.float16)
    for side, factor in (("g", 1.0), ("m", 1.001)):
        folder = WORK / side
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        np.save(WORK / "one.npy", array * np.float16(factor))
        content = (WORK / "one.npy").read_bytes()
        for i in range(count):
            (folder / f"{i}.npy").write_bytes(content)
    command = [AIT, "llm", "compare", "-gp", WORK / "g", "-mp", WORK / "m", "-o", WORK / "out", "-l", "error"]
    seconds, peak = min(run_watched(command) for _ in range(3))
    add(
        f"{count} pairs of 16 KiB fp16 files, all cores, whole command",
        f"{seconds:.1f} s, peak RssAnon {peak:.0f} MiB",
        "<= 8 s, <= 300 MiB",
        "warm page cache",
    )
    for name in ("g", "m", "out"):
        shutil.rmtree(WORK / name)


def compiled_graphs(files, tokens=10):
    """Two GE dumps of one graph, warm: listed, paired by name and compared, inputs and outputs."""
    import shutil

    import numpy as np

    sys.path.insert(0, str(ROOT / "tests" / "python"))
    import ge_files

    count = files // tokens
    nodes = [(f"Add_{i}", "Add", [f"Add_{i - 1}:0"], [f"add_{i}-aten.add.Tensor.OUTPUT.0"]) for i in range(count)]
    array = np.random.default_rng(0).standard_normal((64, 128)).astype(np.float16)
    for side, factor in (("g", 1.0), ("m", 1.001)):
        root = WORK / side
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir(parents=True)
        text = ge_files.graph_text("graph_1", nodes)
        (root / "dynamo_original_graph_1_rank_0_pid_1_ts_1.txt").write_text(text)
        # Without a name in its header, an operation has that of its file.
        content = ge_files.encode("", [ge_files.Stored(array)], [ge_files.Stored(array * np.float16(factor))])
        for token in range(tokens):
            folder = root / f"20240125031118/0/graph_1/1/{token}"
            folder.mkdir(parents=True)
            for i in range(count):
                (folder / f"Add.Add_{i}.1.6.{10**15 + token * count + i}").write_bytes(content)
    command = [AIT, "llm", "compare", "-gp", WORK / "g", "-mp", WORK / "m", "-o", WORK / "out", "-l", "error"]
    seconds, peak = min(run_watched(command) for _ in range(3))
    add(
        f"{files} GE files a side, {2 * files} pairs of 16 KiB, all cores, whole command",
        f"{seconds:.1f} s, peak RssAnon {peak:.0f} MiB",
        "<= 8 s, <= 300 MiB",
        "warm page cache",
    )
    for name in ("g", "m", "out"):
        shutil.rmtree(WORK / name)


def recording():
    """The writer, alone and in the probe, against a plain loop that creates, writes and renames the same files."""
    programs = (
        [ROOT / "build/bin/record_bench"],
        [ROOT / "build/bin/probe_bench", ROOT / "build/lib/ait/libatb_probe.so"],
    )
    for title, folder in (("tmpfs", pathlib.Path("/dev/shm/ait-bench")), ("disk", WORK / "record")):
        folder.mkdir(parents=True, exist_ok=True)
        for program in programs:
            out = subprocess.run([*program, folder], check=True, capture_output=True, text=True).stdout
            for line in out.splitlines():
                one = json.loads(line)
                add(
                    f"recording {one['bytes'] // 1024} KiB tensors as {one['format']}, {title}",
                    f"{one['writer']['of_plain']:.2f} of the plain loop (spread {one['writer']['spread']:.2f})",
                    ">= 0.80",
                    "create, write, rename",
                )
        subprocess.run(["rm", "-rf", folder], check=True)


def converting():
    """Statistics of a dump while it is written at 500 MB/s, on one core."""
    for title, folder in (("tmpfs", pathlib.Path("/dev/shm/ait-bench")), ("disk", WORK / "convert")):
        command = [sys.executable, ROOT / "bench/convert_bench.py", folder, AIT]
        for line in subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines():
            one = json.loads(line)
            add(
                f"`ait llm convert --to-stats --watch`, {one['files']}, {title}, one core",
                f"{one['per_cpu_second'] / 1e6:.0f} MB a second of CPU time; done {one['lag']:.1f} s after the last",
                ">= 500 MB",
                f"a dump that is written at {one['written'] / 1e6:.0f} MB/s, with half a second for each file to rest",
            )
        subprocess.run(["rm", "-rf", folder], check=True)


def cluster():
    """Parts on a cluster of this machine against one process, where `make test-cluster` has put Ray."""
    python = ROOT / "build/cluster-venv/bin/python"
    if not python.exists():
        print("bench: build/cluster-venv is missing, so --on ray is not measured; run `make test-cluster` first")
        return
    folder = pathlib.Path("/dev/shm/ait-cluster-bench")
    command = [python, ROOT / "bench/cluster_bench.py", folder, AIT]
    one = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    add(
        f"`ait llm compare --on ray`, two workers, {one['pairs']:,} pairs of 1 MiB",
        f"{one['times']:.2f} times the time of one process with two threads",
        "<= 1.15",
        f"{one['alone_gb_per_second']:.1f} GB/s, the cluster's start aside",
    )
    add(
        f"memory of its coordinator, {one['many_pairs']:,} pairs against {one['pairs']:,}",
        f"{one['coordinator_mib_of_many']:.0f} MiB against {one['coordinator_mib']:.0f} MiB",
        "flat",
        "",
    )
    subprocess.run(["rm", "-rf", folder], check=True)


def engine():
    """The embedded acceleration library against torch: one decoded token of a 12-layer, 768-wide llama."""
    command = [sys.executable, ROOT / "bench/engine_bench.py", WORK / "llama", ROOT / "build/bin/ait-llama"]
    (WORK / "llama").mkdir(parents=True, exist_ok=True)
    for line in subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines():
        one = json.loads(line)
        add(
            f"decoding on the engine, 12 layers, 768 wide, {one['dtype']}, all cores",
            f"{one['speed']:.2f} of torch's speed (spread {one['spread']:.2f})",
            ">= 0.50" if one["dtype"] == "fp32" else "",
            f"torch {one['torch'] * 1e3:.0f} ms a token",
        )
    subprocess.run(["rm", "-rf", WORK / "llama"], check=True)


def goldens():
    """Goldens of single operations against torch in float64, and a whole dump against a loop over its files."""
    command = [sys.executable, ROOT / "bench/golden_bench.py"]
    for line in subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines():
        one = json.loads(line)
        add(
            f"golden of {one['operation']}, 4096 wide, 1024 tokens, float16, all cores",
            f"{one['time']:.2f} of torch's time (spread {one['spread']:.2f}), {one['cpu_time']:.2f} of its CPU time",
            "<= 1.50",
            f"torch in float64 {one['torch'] * 1e3:.0f} ms",
        )
    folder = WORK / "opcheck"
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, ROOT / "bench/opcheck_bench.py", folder, ROOT / "build/bin"]
    one = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    add(
        f"`ait llm opcheck` of a dump of the engine, 12 layers, 768 wide, fp16, {one['outputs']} outputs, all cores",
        f"{one['speed']:.1f} times as fast, in CPU time {one['cpu_speed']:.1f}, best of several turns",
        ">= 3.0",
        f"a loop in torch float64, {one['torch']:.1f} s",
    )
    subprocess.run(["rm", "-rf", folder], check=True)


def api_check():
    """Recording the calls of a training step, and running them again, against the step and the functions alone."""
    command = [sys.executable, ROOT / "bench/api_check.py"]
    one = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    add(
        "recording the torch APIs of a step of a llama, 4 layers, 512 wide, 256 tokens",
        f"{one['recording_ratio']:.2f} of the plain step (spread {one['recording_spread']:.2f})",
        "<= 3.00",
        f"{one['plain_seconds'] * 1e3:.0f} ms",
    )
    add(
        "`ait api check` of that recording, workers and files included",
        f"{one['rerun_ratio']:.2f} of the functions alone (spread {one['rerun_spread']:.2f}), "
        f"{one['rerun_cpu_ratio']:.2f} of their CPU time",
        "<= 2.00",
        f"on the device and in the benchmark's precision {one['bare_seconds']:.1f} s",
    )


def make_dump(folder, rounds, layers=40, operations=20):
    """A dump of one rank with an empty file for each operation."""
    for round_ in range(rounds):
        for layer in range(layers):
            path = f"{folder}/tensors/0_1/{round_}/{layer}_Layer"
            os.makedirs(path)
            for operation in range(operations):
                os.makedirs(f"{path}/{operation}_LinearOperation/after")
                open(f"{path}/{operation}_LinearOperation/after/outtensor0.bin", "wb").close()


def matching():
    """Pairing of dumps with many rounds and ranks, and listing them, which has to see every folder."""
    program = ROOT / "build/bin/match_bench"

    def seconds(*arguments):
        return json.loads(subprocess.run([program, *arguments], check=True, capture_output=True, text=True).stdout)

    whole, half = (
        min((seconds("match", ranks, "200", "40") for _ in range(3)), key=lambda one: one["seconds"])
        for ranks in ("8", "4")
    )
    add(
        f"pairing 40 layers × 20 operations × 200 tokens × 8 ranks, {whole['pairs']} pairs",
        f"{whole['seconds']:.2f} s",
        "<= 10 s",
        f"4 ranks take {half['seconds'] / whole['seconds']:.2f} of that",
    )
    times = {}
    for rounds in (50, 100):
        folder = WORK / "dump"
        make_dump(folder, rounds)
        times[rounds] = min(seconds("list", folder)["seconds"] for _ in range(3))
        folders = rounds * 40 * (1 + 2 * 20)
        subprocess.run(["rm", "-rf", folder], check=True)
    add(
        f"listing a dump of {folders} folders, warm cache",
        f"{folders / times[100]:.0f} folders a second",
        "",
        f"half of it takes {times[50] / times[100]:.2f} of the time",
    )


def start_up():
    def helped():
        subprocess.run([AIT, "--help"], check=True, stdout=subprocess.DEVNULL)

    helped()
    add("`ait --help`", f"{median_seconds(helped, 30) * 1e3:.1f} ms", "<= 20 ms", "median of 30")


def machine():
    cpu = "unknown CPU"
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            cpu = line.split(":")[1].strip()
            break
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    return f"{cpu}, {os.cpu_count()} cores, {memory:.0f} GiB, {platform.system()} {platform.release().split('-')[0]}"


def table():
    lines = [HEAD, "|---|---|---|---|"]
    lines += [f"| {work} | {figure} | {budget} | {baseline} |" for work, figure, budget, baseline in rows]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mebibytes", type=int, default=128, help="size of each side for the kernels")
    parser.add_argument("--gibibytes", type=int, default=4, help="size of each file of the big pair")
    parser.add_argument("--pairs", type=int, default=100_000, help="how many small pairs")
    parser.add_argument("--write", action="store_true", help="put the table into docs/benchmarks.md")
    options = parser.parse_args()
    start_up()
    kernels(options.mebibytes)
    real_dumps()
    big_pair(options.gibibytes)
    many_pairs(options.pairs)
    compiled_graphs(options.pairs // 2)
    recording()
    converting()
    cluster()
    matching()
    engine()
    goldens()
    api_check()
    print(f"{datetime.date.today()}, {machine()}\n\n{table()}")
    if options.write:
        for page, title in ((ROOT / "docs/benchmarks.md", HEAD), (ROOT / "docs/zh/benchmarks.md", CHINESE_HEAD)):
            head, marker, _ = page.read_text().partition("<!-- table -->\n")
            rows_below = table().replace(HEAD, title, 1)
            page.write_text(f"{head}{marker}\n{datetime.date.today()}, {machine()}, `make bench`\n\n{rows_below}\n")


if __name__ == "__main__":
    main()
