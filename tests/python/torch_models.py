"""Small models of real architectures, with seeded random weights and inputs to call them with."""

import pytest
import torch

BASE = {"vocab_size": 99, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
GROUPED = {**BASE, "num_key_value_heads": 2}


def _tokens(length=7, batch=2):
    return {"input_ids": torch.arange(batch * length).reshape(batch, length) * 5 % 97 + 1}


def _causal(model_class, config_class, options):
    def build():
        import transformers

        if not hasattr(transformers, model_class):
            pytest.skip(f"this transformers has no {model_class}")
        tokens = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": None}
        config = getattr(transformers, config_class)(**tokens, **options)
        return getattr(transformers, model_class)(config), _tokens()

    return build


def _bert():
    import transformers

    model = transformers.BertModel(transformers.BertConfig(**BASE, max_position_embeddings=64))
    return model, {**_tokens(), "attention_mask": torch.tensor([[1] * 7, [1] * 5 + [0] * 2])}


def _vit():
    import transformers

    config = transformers.ViTConfig(
        hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, image_size=16, patch_size=8
    )
    return transformers.ViTForImageClassification(config), {"pixel_values": torch.rand(2, 3, 16, 16)}


def _whisper():
    import transformers

    config = transformers.WhisperConfig(
        vocab_size=99,
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=48,
        decoder_ffn_dim=48,
        num_mel_bins=8,
        max_source_positions=10,
        max_target_positions=20,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=3,
        suppress_tokens=None,
        begin_suppress_tokens=None,
    )
    model = transformers.WhisperForConditionalGeneration(config)
    return model, {"input_features": torch.rand(1, 8, 20), "decoder_input_ids": torch.tensor([[3, 4, 5]])}


MODELS = {
    "llama": _causal("LlamaForCausalLM", "LlamaConfig", GROUPED),
    "qwen2": _causal("Qwen2ForCausalLM", "Qwen2Config", GROUPED),
    "qwen3": _causal("Qwen3ForCausalLM", "Qwen3Config", {**GROUPED, "head_dim": 8}),
    "mistral": _causal("MistralForCausalLM", "MistralConfig", GROUPED),
    "gpt2": _causal(
        "GPT2LMHeadModel", "GPT2Config", {"vocab_size": 99, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}
    ),
    "bloom": _causal(
        "BloomForCausalLM", "BloomConfig", {"vocab_size": 99, "hidden_size": 32, "n_layer": 2, "n_head": 4}
    ),
    "glm": _causal("GlmForCausalLM", "GlmConfig", {**GROUPED, "head_dim": 8}),
    "mixtral": _causal(
        "MixtralForCausalLM", "MixtralConfig", {**GROUPED, "num_local_experts": 4, "num_experts_per_tok": 2}
    ),
    "bert": _bert,
    "vit": _vit,
    "whisper": _whisper,
}
GENERATING = ["llama", "qwen2", "qwen3", "mistral", "gpt2", "bloom", "glm", "mixtral"]


def build(name, seed=0):
    """The model in evaluation mode and keyword arguments for a call."""
    torch.manual_seed(seed)
    model, inputs = MODELS[name]()
    return model.eval(), inputs
