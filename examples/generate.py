"""Generates tokens with transformers, greedily: `generate.py MODEL_FOLDER 1,15,7 STEPS`. Knows nothing of ait."""

import sys

import torch
import transformers

folder, tokens, steps = sys.argv[1], [int(token) for token in sys.argv[2].split(",")], int(sys.argv[3])
model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
prompt = torch.tensor([tokens])
made = model.generate(
    prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=steps, do_sample=False, pad_token_id=0
)
print(",".join(str(token) for token in made[0, len(tokens) :].tolist()))
