"""Records torch runs of a model: `torch_runs.py MODEL_FOLDER 1,15,7 STEPS`; runs.sh says which."""

import sys

import torch
import transformers
from ait_llm import DumpConfig, register_hook

folder, tokens, steps = sys.argv[1], [int(token) for token in sys.argv[2].split(",")], int(sys.argv[3])


def record(name, dtype, fault=None, **options):
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).eval()
    if fault:
        model.model.layers[2].mlp.down_proj.register_forward_hook(lambda module, args, output: output * fault)
    prompt = torch.tensor([tokens])
    with register_hook(model, DumpConfig(name, token_range=list(range(steps)), **options)):
        model.generate(
            prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=steps, do_sample=False, pad_token_id=0
        )


record("golden_run", torch.float32)
record("my_run", torch.bfloat16, fault=1.2)
record("golden_in_bf16", torch.bfloat16)
record("statistics_run", torch.float32, dump_statistics_mode=1)
