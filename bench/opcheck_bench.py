"""`ait llm opcheck` on a dump of the engine against a plain loop in torch (torch_opcheck.py); used by bench/run.py.

The llama of engine_bench.py: 12 layers, 768 wide, float16, 64 tokens of prompt and four decoded ones, every operation
with its tensors before and after it. The command is measured as a whole, the loop without the time torch takes to load.
Both count by the best of several turns: beside other work torch's threads wait for each other many times as long.

    opcheck_bench.py FOLDER PROGRAM_FOLDER      prints one line of JSON
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

from engine_bench import PROMPT, make_model

STEPS = 5
TURNS = 7


def make_dump(folder, programs):
    model = folder / "model"
    if not model.exists():
        make_model(model)
    tokens = ",".join(map(str, PROMPT))
    words = f"{programs / 'ait-llama'} --model {model} --tokens {tokens} --steps {STEPS} --dtype fp16"
    command = [programs / "ait", "llm", "dump", "--exec", words, "-er", f"0,{STEPS}", "-time", "2", "-o", folder]
    subprocess.run(command, check=True, capture_output=True)
    return folder / "ait_dump"


def opcheck_seconds(programs, dump, folder):
    """On the clock and of all cores together, and how many outputs were compared."""
    command = [programs / "ait", "llm", "opcheck", "-i", dump, "-o", folder / "result"]
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    text = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    if status != 0:
        raise SystemExit(f"opcheck_bench: ait llm opcheck ended with status {status}")
    return seconds, usage.ru_utime + usage.ru_stime, int(re.search(r"(\d+) outputs checked", text).group(1))


def main():
    folder, programs = map(pathlib.Path, sys.argv[1:3])
    dump = make_dump(folder, programs)
    loop = [sys.executable, pathlib.Path(__file__).with_name("torch_opcheck.py"), dump / "tensors"]
    golden, own = [], []
    opcheck_seconds(programs, dump, folder)  # reads all files once
    for _ in range(TURNS):
        done = subprocess.run(loop, check=True, capture_output=True, text=True)
        golden.append(json.loads(done.stdout.splitlines()[-1]))
        own.append(opcheck_seconds(programs, dump, folder))
        if golden[-1]["outputs"] != own[-1][2]:
            raise SystemExit(f"opcheck_bench: {golden[-1]['outputs']} outputs in torch, {own[-1][2]} in ait")
    best = min(g["seconds"] for g in golden)
    best_own = min(seconds for seconds, _, _ in own)
    print(
        json.dumps(
            {
                "outputs": own[0][2],
                "torch": best,
                "opcheck": best_own,
                "speed": best / best_own,
                "cpu_speed": min(g["cpu"] for g in golden) / min(used for _, used, _ in own),
            }
        )
    )
    shutil.rmtree(folder / "result")
    shutil.rmtree(dump)


if __name__ == "__main__":
    main()
