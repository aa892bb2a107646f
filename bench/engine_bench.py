"""Decoding on the embedded acceleration library against torch on the same cores; used by bench/run.py.

A llama of 12 layers, 768 wide, seeded random weights, 64 tokens of prompt. Each side runs in a process of its own, in
turn: torch's threads go on spinning for a while after their work is done.

    engine_bench.py FOLDER PROGRAM      prints one line of JSON for each type
"""

import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

PROMPT = list(range(1, 65))
STEPS = 32
TURNS = 5
TYPES = {"fp32": "float32", "bf16": "bfloat16"}


def make_model(folder):
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        hidden_size=768,
        intermediate_size=2048,
        num_hidden_layers=12,
        num_attention_heads=12,
        vocab_size=32000,
        max_position_embeddings=1024,
    )
    LlamaForCausalLM(config).save_pretrained(folder)


def torch_seconds(folder, dtype):
    """One decoded token, median; runs in a child process."""
    import torch
    from transformers import LlamaForCausalLM

    torch.set_num_threads(os.cpu_count())
    model = LlamaForCausalLM.from_pretrained(folder, dtype=getattr(torch, dtype)).eval()
    with torch.inference_mode():
        out = model(torch.tensor([PROMPT]), use_cache=True)
        times = []
        for _ in range(STEPS):
            token = out.logits[:, -1:].argmax(-1)
            start = time.perf_counter()
            out = model(token, past_key_values=out.past_key_values, use_cache=True)
            times.append(time.perf_counter() - start)
    print(statistics.median(times))


def engine_seconds(program, folder, dtype):
    command = [program, "--model", folder, "--tokens", ",".join(map(str, PROMPT)), "--steps", str(STEPS + 1), "--time"]
    err = subprocess.run([*command, "--dtype", dtype], check=True, capture_output=True, text=True).stderr
    return float(re.search(r"decoding \d+ steps ([\d.]+) s", err).group(1)) / STEPS


def main():
    folder, program = sys.argv[1:3]
    if program == "--torch":
        return torch_seconds(folder, sys.argv[3])
    if not (pathlib.Path(folder) / "model.safetensors").exists():
        make_model(folder)
    for dtype, torch_name in TYPES.items():
        golden, own = [], []
        for _ in range(TURNS):
            out = subprocess.run(
                [sys.executable, __file__, folder, "--torch", torch_name], check=True, capture_output=True, text=True
            )
            golden.append(float(out.stdout.splitlines()[-1]))
            own.append(engine_seconds(program, folder, dtype))
        ratios = [g / o for g, o in zip(golden, own)]
        print(
            json.dumps(
                {
                    "dtype": dtype,
                    "torch": statistics.median(golden),
                    "engine": statistics.median(own),
                    "speed": statistics.median(golden) / statistics.median(own),
                    "spread": max(ratios) - min(ratios),
                }
            ),
            flush=True,
        )


if __name__ == "__main__":
    main()
