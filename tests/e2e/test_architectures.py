"""Models of many families, recorded by register_hook and compared with themselves: what ran is there, and in its place.

The smallest that transformers builds of each class; those of one decoder are many, since that is what people compare.
"""

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from ait_llm import DumpConfig, register_hook
from pairing import read_rows

# What configurations call the same things, as far as a class knows the word.
SMALL = dict(
    **dict.fromkeys(
        ("hidden_size", "d_model", "n_embd", "dim", "embedding_size", "emb_dim", "word_embed_proj_dim"), 32
    ),
    **dict.fromkeys(("num_hidden_layers", "num_layers", "n_layer", "n_layers", "num_decoder_layers"), 2),
    **dict.fromkeys(("encoder_layers", "decoder_layers"), 2),
    **dict.fromkeys(("num_attention_heads", "n_head", "n_heads", "num_heads"), 4),
    **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), 4),
    **dict.fromkeys(("intermediate_size", "ffn_dim", "d_ff", "n_inner", "hidden_dim"), 48),
    **dict.fromkeys(("encoder_ffn_dim", "decoder_ffn_dim"), 48),
    **dict.fromkeys(("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len"), 64),
    **dict.fromkeys(("max_source_positions", "max_target_positions"), 64),
    **dict.fromkeys(("num_local_experts", "num_experts", "n_routed_experts"), 4),
    **dict.fromkeys(("moe_intermediate_size", "shared_expert_intermediate_size"), 24),
    **dict.fromkeys(("head_dim", "d_kv", "state_size"), 8),
    vocab_size=99,
    num_key_value_heads=2,
    num_experts_per_tok=2,
    rotary_dim=4,
    attention_types=[[["global", "local"], 1]],
    image_size=32,
    patch_size=8,
    num_mel_bins=16,
    pad_token_id=0,
    bos_token_id=1,
    eos_token_id=None,
    decoder_start_token_id=0,
    forced_eos_token_id=None,
    forced_bos_token_id=None,
)

LATENT = dict(
    q_lora_rank=16, kv_lora_rank=16, qk_rope_head_dim=8, qk_nope_head_dim=8, v_head_dim=8, first_k_dense_replace=1,
    n_group=1, topk_group=1, num_key_value_heads=4,
)  # fmt: skip

FAST = {
    "GPT2LMHeadModel": {},
    "T5ForConditionalGeneration": dict(decoder_start_token_id=0),
    "AlbertModel": dict(num_hidden_layers=3),
    "ViTModel": {},
    "MambaForCausalLM": {},
    "MixtralForCausalLM": {},
}

SLOW = {
    "LlamaForCausalLM": {},
    "DeepseekV2ForCausalLM": LATENT,
    "DeepseekV3ForCausalLM": LATENT,
    "CLIPTextModel": dict(eos_token_id=2),
    "BartForConditionalGeneration": {},
    "WhisperForConditionalGeneration": {},
    **{
        name: {}
        for name in "BertLMHeadModel RobertaForCausalLM DistilBertModel ElectraForCausalLM MPNetModel OPTForCausalLM "
        "GPTNeoForCausalLM GPTNeoXForCausalLM GPTJForCausalLM BloomForCausalLM Qwen2ForCausalLM Qwen2MoeForCausalLM "
        "Qwen3ForCausalLM Qwen3MoeForCausalLM MistralForCausalLM GemmaForCausalLM Gemma2ForCausalLM "
        "Gemma3ForCausalLM PhiForCausalLM Phi3ForCausalLM PhimoeForCausalLM OlmoForCausalLM Olmo2ForCausalLM "
        "OlmoeForCausalLM CohereForCausalLM StableLmForCausalLM Starcoder2ForCausalLM GraniteForCausalLM "
        "GraniteMoeForCausalLM GlmForCausalLM Glm4ForCausalLM CodeGenForCausalLM GPTBigCodeForCausalLM "
        "XGLMForCausalLM CTRLLMHeadModel OpenAIGPTLMHeadModel BioGptForCausalLM PersimmonForCausalLM "
        "FalconMambaForCausalLM RwkvForCausalLM MBartForConditionalGeneration PegasusForConditionalGeneration "
        "MarianMTModel M2M100ForConditionalGeneration BlenderbotForConditionalGeneration "
        "MT5ForConditionalGeneration UMT5ForConditionalGeneration "
        "LongT5ForConditionalGeneration SwitchTransformersForConditionalGeneration LEDForConditionalGeneration "
        "PLBartForConditionalGeneration CLIPVisionModel SiglipVisionModel "
        "DeiTModel BeitModel Dinov2Model SqueezeBertModel DebertaModel DebertaV2Model NystromformerModel "
        "XLMWithLMHeadModel LongformerModel ConvBertModel IBertModel MobileBertModel "
        "MegatronBertForCausalLM RoFormerForCausalLM Data2VecTextForCausalLM EsmModel NemotronForCausalLM "
        "MptForCausalLM JetMoeForCausalLM HeliumForCausalLM ArceeForCausalLM SmolLM3ForCausalLM Exaone4ForCausalLM "
        "Ernie4_5ForCausalLM GptOssForCausalLM MiniMaxForCausalLM Lfm2ForCausalLM RecurrentGemmaForCausalLM "
        "ViTMAEModel ViTMSNModel IJepaModel ModernBertModel NomicBertModel".split()
    },
}


def make_model(name, changes):
    model_class = getattr(transformers, name)
    known = model_class.config_class()
    config = model_class.config_class(**{key: value for key, value in SMALL.items() if hasattr(known, key)} | changes)
    torch.manual_seed(0)
    return model_class(config).eval()


def word(_, before):
    return [5 + len(before) % 7]


def run(model):
    """A prompt and two new words, or two calls where the model makes none."""
    draw = torch.Generator().manual_seed(1)
    inputs = {
        "pixel_values": lambda: torch.randn(2, 3, 32, 32, generator=draw).to(model.dtype),
        "input_features": lambda: torch.randn(1, 16, 128, generator=draw).to(model.dtype),
        "input_ids": lambda: torch.randint(3, 90, (1, 6), generator=draw),
    }
    torch.manual_seed(2)  # some draw what they mask
    with torch.no_grad():
        given = {model.main_input_name: inputs[model.main_input_name]()}
        if model.can_generate():
            # Another type may choose other words, and then nothing of them could be compared.
            model.generate(**given, max_new_tokens=3, min_new_tokens=3, do_sample=False, prefix_allowed_tokens_fn=word)
        else:
            model(**given)
            model(**given)


def record(name, changes, dtype, folder):
    model = make_model(name, changes).to(dtype)
    with register_hook(model, DumpConfig(str(folder), token_range=[0, 1, 2])) as handle:
        run(model)
    return handle


@pytest.fixture
def rows_of(ait, tmp_path):
    def compare(golden, mine):
        out = tmp_path / f"{golden}_{mine}"
        done = ait("llm", "compare", "-gp", tmp_path / golden, "-mp", tmp_path / mine, "-o", out, "--extended")
        assert done.returncode == 0, done.stderr
        return read_rows(out)

    return compare


def check(rows_of, tmp_path, name, changes):
    handles = {dtype: record(name, changes, dtype, tmp_path / str(dtype)) for dtype in (torch.float32, torch.bfloat16)}
    for dtype, handle in handles.items():
        rows = rows_of(str(dtype), str(dtype))
        bad = [row for row in rows if row["identical"] != "True" or row["pairing"] != "certain"]
        assert not bad, bad[:3]
        outputs = {path.relative_to(handle.folder) for path in tmp_path.glob(f"{dtype}/**/output*.pth")}
        compared = {tuple(row["my_data_path"].split("/")[-3:]) for row in rows}
        assert {path.parts for path in outputs} <= compared
    for row in rows_of(str(torch.float32), str(torch.bfloat16)):
        # Experts are chosen by their scores, and a narrow type may choose others.
        # Complex numbers are compared by their bytes alone.
        if ".experts." not in row["data_id"] and "complex" not in row["golden_dtype"]:
            assert row["my_data_path"] and row["golden_data_path"] and not row["cmp_fail_reason"], row


@pytest.mark.parametrize("name", FAST)
def test_a_model_is_compared_with_itself(rows_of, tmp_path, name):
    check(rows_of, tmp_path, name, FAST[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_every_kind_of_model_is_compared_with_itself(rows_of, tmp_path, name):
    check(rows_of, tmp_path, name, SLOW[name])
