"""Goldens of a 4096-wide layer with 1024 tokens against torch in float64 on the same cores; used by bench/run.py.

Both sides start from the recorded float16 tensors and end with float64 results; a golden also says how far each of them
may be off. Each side runs in a process of its own, in turn: torch's threads go on spinning when their work is done.

    golden_bench.py      prints one line of JSON for each operation
"""

import json
import os
import statistics
import subprocess
import sys
import time

TOKENS, WIDTH, HEADS = 1024, 4096, 32
REPEATS = 5
TURNS = 5


def tensors():
    import torch

    generator = torch.Generator().manual_seed(0)

    def normal(*shape):
        return torch.randn(*shape, generator=generator).half()

    weight = normal(WIDTH, WIDTH)
    heads = [normal(TOKENS, HEADS, WIDTH // HEADS) for _ in range(3)]
    mask = torch.full((TOKENS, TOKENS), -10000.0).triu(1).half()
    return normal(TOKENS, WIDTH), weight, heads, mask


def torch_calls():
    import torch
    from torch.nn.functional import linear, scaled_dot_product_attention

    torch.set_num_threads(os.cpu_count())
    x, weight, heads, mask = tensors()

    def attention(**options):
        q, k, v = (each.double().transpose(0, 1)[None] for each in heads)
        return scaled_dot_product_attention(q, k, v, **options)

    return {
        "linear": lambda: linear(x.double(), weight.double()),
        "causal attention": lambda: attention(is_causal=True),
        "attention with a mask": lambda: attention(attn_mask=mask.double()),
    }


def golden_calls():
    import torch
    from ait_llm import golden

    x, weight, heads, mask = tensors()
    lengths = torch.tensor([TOKENS], dtype=torch.int32)
    param = {"headNum": HEADS, "kvHeadNum": HEADS, "qkScale": (WIDTH // HEADS) ** -0.5, "calcType": 3}

    def run(type, param, inputs, *shape):
        return golden.run(type, param, inputs, outputs=[("float16", shape)])

    def attention(mask_type, *masks):
        inputs = [*heads, *masks, lengths]
        return run("SelfAttentionOperation", {**param, "maskType": mask_type}, inputs, *heads[0].shape)

    return {
        "linear": lambda: run("LinearOperation", {"hasBias": False}, [x, weight], TOKENS, WIDTH),
        "causal attention": lambda: attention(9),
        "attention with a mask": lambda: attention(1, mask),
    }


def measure(side):
    """Median seconds of each operation, on the clock and of all cores together; runs in a child process."""
    out = {}
    for name, call in (torch_calls if side == "torch" else golden_calls)().items():
        call()
        walls, used = [], []
        for _ in range(REPEATS):
            start, start_used = time.perf_counter(), time.process_time()
            call()
            walls.append(time.perf_counter() - start)
            used.append(time.process_time() - start_used)
        out[name] = (statistics.median(walls), statistics.median(used))
    print(json.dumps(out))


def main():
    if len(sys.argv) > 1:
        return measure(sys.argv[1])
    turns = []
    for _ in range(TURNS):
        turn = {}
        for side in ("torch", "golden"):
            done = subprocess.run([sys.executable, __file__, side], check=True, capture_output=True, text=True)
            turn[side] = json.loads(done.stdout.splitlines()[-1])
        turns.append(turn)
    for name in turns[0]["torch"]:
        ratios = [turn["golden"][name][0] / turn["torch"][name][0] for turn in turns]
        cpu_ratios = [turn["golden"][name][1] / turn["torch"][name][1] for turn in turns]
        print(
            json.dumps(
                {
                    "operation": name,
                    "torch": statistics.median(turn["torch"][name][0] for turn in turns),
                    "time": statistics.median(ratios),
                    "spread": max(ratios) - min(ratios),
                    "cpu_time": statistics.median(cpu_ratios),
                }
            ),
            flush=True,
        )


if __name__ == "__main__":
    main()
