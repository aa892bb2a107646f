"""Small seeded models of transformers, stored as folders, for the tests of the embedded acceleration library."""

import logging

import numpy as np
import torch
import transformers

logging.getLogger("transformers").setLevel(logging.ERROR)
transformers.utils.logging.disable_progress_bar()

COMMON = {
    "hidden_size": 64,
    "intermediate_size": 160,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "vocab_size": 200,
    "max_position_embeddings": 256,
}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 500000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
VARIANTS = {
    "llama": ("Llama", {"num_key_value_heads": 4}),
    "llama-gqa-tied": ("Llama", {"num_key_value_heads": 2, "tie_word_embeddings": True}),
    "llama-3": ("Llama", {"num_key_value_heads": 2, "rope_parameters": LLAMA3}),
    "llama-biases": ("Llama", {"num_key_value_heads": 2, "attention_bias": True, "mlp_bias": True, "head_dim": 24}),
    "llama-linear": ("Llama", {"rope_parameters": {"rope_type": "linear", "rope_theta": 10000.0, "factor": 2.0}}),
    "qwen2": ("Qwen2", {"num_key_value_heads": 2}),
    "mistral": ("Mistral", {"num_key_value_heads": 1, "rope_parameters": {"rope_type": "default", "rope_theta": 1e6}}),
}
DTYPES = {0: np.float32, 1: np.float16, 2: np.int8, 3: np.int32, 9: np.int64}
PROMPTS = [[1, 15, 7, 33, 98, 2, 5], [2, 9, 140]]


def make_model(variant, seed=1):
    """Weights large enough that every layer matters, norms around one, biases that are not zero."""
    family, own = VARIANTS[variant]
    config = getattr(transformers, family + "Config")(**{**COMMON, **own})
    model = getattr(transformers, family + "ForCausalLM")(config).eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            parameter.copy_(0.15 * noise if parameter.ndim > 1 else 0.1 * noise + ("norm" in name))
    return model


@torch.no_grad()
def generate(model, prompts, steps):
    """Greedy tokens (batch x steps) and logits (steps x batch x vocabulary) of transformers, padded on the left."""
    longest = max(map(len, prompts))
    ids = torch.zeros(len(prompts), longest, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for row, prompt in enumerate(prompts):
        ids[row, longest - len(prompt) :] = torch.tensor(prompt)
        mask[row, longest - len(prompt) :] = 1
    out = model.generate(
        input_ids=ids,
        attention_mask=mask,
        max_new_tokens=steps,
        do_sample=False,
        output_logits=True,
        return_dict_in_generate=True,
        eos_token_id=None,
        pad_token_id=0,
    )
    return out.sequences[:, longest:].numpy(), torch.stack(out.logits).float().numpy()


@torch.no_grad()
def forced(model, prompt, tokens):
    """Logits of transformers where each next token is given: steps x vocabulary."""
    out = model(torch.tensor([prompt]), use_cache=True)
    logits = [out.logits[0, -1]]
    for token in tokens:
        out = model(torch.tensor([[token]]), past_key_values=out.past_key_values, use_cache=True)
        logits.append(out.logits[0, -1])
    return torch.stack(logits).float().numpy()


def distance(actual, golden):
    """Largest difference, relative to the largest value."""
    return np.abs(actual - golden).max() / np.abs(golden).max()


def read_bin(path):
    """A tensor as the acceleration library stores it."""
    header, _, data = path.read_bytes().partition(b"$End=1\n")
    fields = dict(line.split("=") for line in header.decode().splitlines())
    shape = [int(size) for size in fields["dims"].split(",")]
    return np.frombuffer(data, DTYPES[int(fields["dtype"])]).reshape(shape)
