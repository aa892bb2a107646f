"""Small models of transformers that behave like trained ones: channels that stand out, norms far from one, biases."""

from __future__ import annotations

import copy
import dataclasses
import importlib
import math
import random

import torch
import transformers

transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

TYPES = {"fp64": torch.float64, "fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
UNIT_ROUNDOFF = {"fp32": 2.0**-24, "bf16": 2.0**-8, "fp16": 2.0**-11, "w8a8": 2.0**-8}
VOCABULARY = 97
LAYERS = (2, 2, 3, 4, 6, 8, 12, 16, 24, 40)


@dataclasses.dataclass(frozen=True)
class Names:
    """What the parts of a family are called."""

    modeling: str
    layers: str
    attention: str
    output_projection: str
    norms: tuple[str, str]
    mlp_out: str
    activation: str
    embedding: str
    final_norm: str
    linears: tuple[str, ...]


_LLAMA = Names(
    modeling="transformers.models.llama.modeling_llama",
    layers="model.layers",
    attention="self_attn",
    output_projection="self_attn.o_proj",
    norms=("input_layernorm", "post_attention_layernorm"),
    mlp_out="mlp.down_proj",
    activation="mlp.act_fn",
    embedding="model.embed_tokens",
    final_norm="model.norm",
    linears=(
        "self_attn.q_proj",
        "self_attn.k_proj",
        "self_attn.v_proj",
        "self_attn.o_proj",
        "mlp.gate_proj",
        "mlp.up_proj",
        "mlp.down_proj",
    ),
)


def _like_llama(family: str, **changes: object) -> Names:
    return dataclasses.replace(_LLAMA, modeling=f"transformers.models.{family}.modeling_{family}", **changes)


FAMILIES = {
    "llama": _LLAMA,
    "qwen2": _like_llama("qwen2"),
    "gemma": _like_llama("gemma"),
    "phi3": _like_llama(
        "phi3",
        linears=("self_attn.qkv_proj", "self_attn.o_proj", "mlp.gate_up_proj", "mlp.down_proj"),
        activation="mlp.activation_fn",
    ),
    "mixtral": _like_llama(
        "mixtral",
        linears=("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj"),
        activation="mlp.experts.act_fn",
        mlp_out="mlp.experts",
    ),
    "gpt2": Names(
        modeling="transformers.models.gpt2.modeling_gpt2",
        layers="transformer.h",
        attention="attn",
        output_projection="attn.c_proj",
        norms=("ln_1", "ln_2"),
        mlp_out="mlp.c_proj",
        activation="mlp.act",
        embedding="transformer.wte",
        final_norm="transformer.ln_f",
        linears=("attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj"),
    ),
    "mistral": _like_llama("mistral"),
}


@dataclasses.dataclass(frozen=True)
class Shape:
    """What a model is made from; the same shape is the same model to the bit."""

    family: str
    layers: int
    hidden: int
    heads: int
    key_heads: int
    seed: int
    norm_spread: float  # of the logarithm of the norms' weights
    norm_centre: float
    outliers: int  # channels that stand out
    outlier_size: float
    embedding: float  # usual size of an embedding's element
    sharpness: float  # how far attention looks at few positions
    growth: float  # what all layers together add to the residual
    epsilon: float = 1e-5

    @property
    def names(self) -> Names:
        return FAMILIES[self.family]

    @property
    def intermediate(self) -> int:
        return 4 * self.hidden if self.family == "gpt2" else 2 * self.hidden + 32

    def __str__(self) -> str:
        return f"{self.family} of {self.layers} layers of {self.hidden}"


def draw_shape(rng: random.Random, families: tuple[str, ...], **fixed: object) -> Shape:
    family = rng.choice(families)
    hidden = rng.choice((32, 48, 64, 64, 96, 128))
    layers = rng.choice(LAYERS)
    if layers <= 4 and rng.random() < 0.1:
        hidden = 512
    heads = rng.choice((4, 4, 8)) if hidden >= 64 else 4
    key_heads = heads if family == "gpt2" else heads // rng.choice((1, 2, 2, 4))
    drawn = dict(
        family=family,
        layers=layers,
        hidden=hidden,
        heads=heads,
        key_heads=max(1, key_heads),
        seed=rng.randrange(2**31),
        norm_spread=rng.choice((0.05, 0.3, 0.3, 0.7, 1.0)),
        norm_centre=rng.choice((1.0, 1.0, 1.0, 0.3, 0.05, 6.0)),
        outliers=rng.choice((0, 1, 2, 4)),
        outlier_size=rng.choice((5.0, 20.0, 60.0)),
        embedding=rng.choice((1.0, 1.0, 0.1, 0.02)),
        sharpness=rng.choice((1.0, 2.0, 4.0)),
        growth=rng.choice((0.5, 1.0, 3.0)),
    )
    return Shape(**{**drawn, **fixed})


def _config(shape: Shape, attention: str) -> transformers.PreTrainedConfig:
    common = dict(vocab_size=VOCABULARY, attn_implementation=attention, tie_word_embeddings=False, pad_token_id=0)
    if shape.family == "gpt2":
        return transformers.GPT2Config(
            n_embd=shape.hidden,
            n_layer=shape.layers,
            n_head=shape.heads,
            n_positions=128,
            layer_norm_epsilon=shape.epsilon,
            **common,
        )
    common.update(
        hidden_size=shape.hidden,
        intermediate_size=shape.intermediate,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.key_heads,
        head_dim=shape.hidden // shape.heads,
        max_position_embeddings=128,
        rms_norm_eps=shape.epsilon,
    )
    if shape.family == "mixtral":
        common.update(num_local_experts=4, num_experts_per_tok=2, intermediate_size=shape.hidden, sliding_window=None)
        common.update(experts_implementation="eager")
    if shape.family == "mistral":
        common.update(sliding_window=None)
    name = {"phi3": "Phi3", "gpt2": "GPT2"}.get(shape.family, shape.family.capitalize())
    return getattr(transformers, name + "Config")(**common)


def make_model(shape: Shape, attention: str = "eager") -> torch.nn.Module:
    """In float32. Branches are added to the residual so that every layer matters as much as in a trained model."""
    config = _config(shape, attention)
    name = type(config).__name__.removesuffix("Config")
    with torch.random.fork_rng():
        torch.manual_seed(shape.seed)
        head = "LMHeadModel" if shape.family == "gpt2" else "ForCausalLM"
        model = getattr(transformers, name + head)(config).eval()
    generator = torch.Generator().manual_seed(shape.seed)
    outliers = torch.randperm(shape.hidden, generator=generator)[: shape.outliers]
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            _fill(shape, name, parameter, outliers, generator)
    return model


def _fill(shape: Shape, name: str, parameter: torch.Tensor, outliers: torch.Tensor, generator: torch.Generator) -> None:
    noise = torch.randn(parameter.shape, generator=generator)
    if name.endswith("bias"):
        parameter.copy_(0.1 * noise)
    elif "norm" in name or ".ln_" in name:
        weight = shape.norm_centre * torch.exp(shape.norm_spread * noise)
        weight[outliers] *= 0.2  # what stands out is held down again, as training does it
        parameter.copy_(weight - 1 if shape.family == "gemma" else weight)
    elif "embed_tokens" in name or "wte" in name or "wpe" in name:
        values = shape.embedding * noise
        values[:, outliers] *= shape.outlier_size
        parameter.copy_(values)
    else:
        is_conv1d = shape.family == "gpt2" and "lm_head" not in name
        inputs = parameter.shape[0] if is_conv1d else parameter.shape[-1]
        scale = 1 / math.sqrt(inputs)
        norm = shape.norm_centre * math.exp(shape.norm_spread**2)
        if any(part in name for part in ("o_proj", "down_proj", "c_proj")):
            scale *= shape.growth * shape.embedding / math.sqrt(shape.layers)
        elif "lm_head" not in name:
            scale /= norm
        parameter.copy_(scale * noise)
        if "q_proj" in name:
            parameter.mul_(shape.sharpness)
        elif "qkv_proj" in name:
            parameter[: shape.hidden] *= shape.sharpness
        elif "c_attn" in name:
            parameter[:, : shape.hidden] *= shape.sharpness


def clone(model: torch.nn.Module, dtype: str, attention: str | None = None) -> torch.nn.Module:
    copied = copy.deepcopy(model).to(TYPES[dtype])
    if attention is not None:
        copied.set_attn_implementation(attention)
    return copied


def modeling(shape: Shape):
    return importlib.import_module(shape.names.modeling)


@dataclasses.dataclass
class Words:
    """What a model is fed: a prompt, padded on the left where its sequences have different lengths, and next words."""

    prompt: torch.Tensor
    mask: torch.Tensor
    following: torch.Tensor  # [batch, steps]

    @property
    def is_padded(self) -> bool:
        return not bool(self.mask.all())


def draw_words(rng: random.Random, lengths: list[int], steps: int) -> Words:
    longest = max(lengths)
    draw = lambda count: [rng.randrange(1, VOCABULARY) for _ in range(count)]
    prompt = torch.tensor([[0] * (longest - length) + draw(length) for length in lengths])
    mask = torch.tensor([[0] * (longest - length) + [1] * length for length in lengths])
    return Words(prompt, mask, torch.tensor([draw(steps) for _ in lengths]).reshape(len(lengths), steps))


class Clock:
    """Which round a model is in; faults of one round ask it."""

    token = -1


@torch.no_grad()
def feed(model: torch.nn.Module, words: Words, clock: Clock | None = None, cached: bool = True) -> None:
    """The prompt and each following word, which is given and not chosen: all runs see the same words."""
    clock = clock or Clock()
    cache, given, mask = None, words.prompt, words.mask
    for token in range(words.following.shape[1] + 1):
        clock.token = token
        if token and cached:
            given = words.following[:, token - 1 : token]
        elif token:
            given = torch.cat((given, words.following[:, token - 1 : token]), dim=1)
        if token:
            mask = torch.cat((mask, torch.ones_like(mask[:, :1])), dim=1)
        options = {}
        if words.is_padded:
            positions = (mask.cumsum(-1) - 1).clamp(min=0)[:, -given.shape[1] :]
            options = dict(attention_mask=mask, position_ids=positions)
        out = model(input_ids=given, past_key_values=cache, use_cache=cached, **options)
        cache = out.past_key_values if cached else None
