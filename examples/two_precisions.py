"""One torch model in float32 and in bfloat16: every tensor differs, and only the fault is named.

The first pair of runs is healthy: all differences are rounding, and ait says so. In the second, the down projection of
layer 2 is a tenth too large. Writes to ./two_precisions.
"""

import shutil
import subprocess

import torch
import transformers
from ait_llm import DumpConfig, register_hook

OUT = "two_precisions"
shutil.rmtree(OUT, ignore_errors=True)


def small_llama(dtype):
    torch.manual_seed(0)
    sizes = dict(vocab_size=97, hidden_size=64, intermediate_size=96, num_hidden_layers=4, num_attention_heads=4)
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes)).to(dtype).eval()


def record(name, dtype, factor=1.0):
    model = small_llama(dtype)
    model.model.layers[2].mlp.down_proj.register_forward_hook(lambda module, args, output: output * factor)
    with register_hook(model, DumpConfig(f"{OUT}/{name}")), torch.no_grad():
        model(torch.tensor([[1, 15, 7, 22, 3, 81]]))


def compare(name):
    command = ["ait", "llm", "compare", "-gp", f"{OUT}/golden/ait_dump", "-mp", f"{OUT}/{name}/ait_dump", "-o", OUT]
    subprocess.run(command, check=True)


record("golden", torch.float32)
record("healthy", torch.bfloat16)
record("faulty", torch.bfloat16, factor=1.1)
for name in ("healthy", "faulty"):
    print(f"\n== {name}", flush=True)
    compare(name)
