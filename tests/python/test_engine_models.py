"""Whole models on the embedded acceleration library against transformers, which nobody here wrote."""

import json
import shutil

import numpy as np
import pytest
import torch
from engine_library import ait_engine
from engine_models import PROMPTS, VARIANTS, distance, forced, generate, make_model

STEPS = 11  # the prefill's token and ten decoded ones
FP32_LIMIT = 1e-4  # of the largest logit; about 1e-6 is usual
ROUNDING_FACTOR = 2  # how much further from fp32 than torch's own fp16 or bf16 run


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """{variant: (transformers model, its folder)}, made when first asked for."""
    made = {}

    def get(variant):
        if variant not in made:
            model = make_model(variant)
            folder = tmp_path_factory.mktemp(variant)
            model.save_pretrained(folder)
            made[variant] = model, folder
        return made[variant]

    return get


@pytest.mark.parametrize("variant", VARIANTS)
def test_fp32_agrees_in_prefill_and_ten_decoded_tokens(folders, variant):
    model, folder = folders(variant)
    tokens, logits = generate(model, PROMPTS, STEPS)
    for padding in ("none", "left"):
        own_tokens, own_logits = ait_engine.Model(folder, padding=padding).generate(PROMPTS, STEPS)
        np.testing.assert_array_equal(own_tokens, tokens)
        for step in range(STEPS):
            assert distance(own_logits[step], logits[step]) < FP32_LIMIT


@pytest.mark.parametrize("variant", ["llama-gqa-tied", "qwen2"])
@pytest.mark.parametrize("dtype", ["fp16", "bf16"])
def test_rounding_stays_within_what_torch_shows(folders, variant, dtype):
    model, folder = folders(variant)
    prompt, following = PROMPTS[0], [3, 150, 77, 8, 199, 0]
    golden = forced(model, prompt, following)
    half = make_model(variant).to(torch.float16 if dtype == "fp16" else torch.bfloat16)
    torch_error = forced(half, prompt, following) - golden
    engine = ait_engine.Model(folder, dtype=dtype)
    logits = [engine.prefill([prompt], len(following))] + [engine.decode([token]) for token in following]
    error = np.concatenate(logits) - golden
    for measure in (lambda e: np.sqrt((e**2).mean()), lambda e: np.abs(e).max()):
        assert 0 < measure(error) < ROUNDING_FACTOR * measure(torch_error)


@pytest.mark.parametrize("variant", ["llama", "qwen2"])
def test_w8a8_is_near_fp32(folders, variant):
    model, folder = folders(variant)
    golden = forced(model, PROMPTS[0], [3])
    engine = ait_engine.Model(folder, dtype="w8a8")
    logits = np.concatenate([engine.prefill([PROMPTS[0]], 1), engine.decode([3])])
    # One part in 127 of the largest value of every row, on weights and activations, through 21 products.
    assert 1e-4 < distance(logits, golden) < 0.15
    cosine = (logits * golden).sum() / np.sqrt((logits**2).sum() * (golden**2).sum())
    assert cosine > 0.995


def test_sharded_checkpoints_are_read(folders, tmp_path):
    model, folder = folders("llama-gqa-tied")
    model.save_pretrained(tmp_path, max_shard_size="100KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    np.testing.assert_array_equal(
        ait_engine.Model(tmp_path).prefill(PROMPTS), ait_engine.Model(folder).prefill(PROMPTS)
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_checkpoints_in_half_precision_are_read(tmp_path, dtype):
    model = make_model("llama").to(dtype)
    model.save_pretrained(tmp_path)
    # Not model.float(): the frequencies of its rotary embedding have been rounded too.
    golden = forced(type(model).from_pretrained(tmp_path, dtype=torch.float32), PROMPTS[0], [])
    assert distance(ait_engine.Model(tmp_path).prefill(PROMPTS[:1]), golden) < FP32_LIMIT


def test_older_spelling_of_the_rope_settings(folders, tmp_path):
    """Before transformers 5: "rope_theta" at the top and "rope_scaling" beside it."""
    folder = folders("llama-3")[1]
    shutil.copytree(folder, tmp_path / "old")
    config = json.loads((folder / "config.json").read_text())
    scaling = config.pop("rope_parameters")
    config["rope_theta"] = scaling.pop("rope_theta")
    config["rope_scaling"] = scaling
    (tmp_path / "old/config.json").write_text(json.dumps(config))
    np.testing.assert_array_equal(
        ait_engine.Model(tmp_path / "old").prefill(PROMPTS), ait_engine.Model(folder).prefill(PROMPTS)
    )


def test_a_sequence_does_not_depend_on_its_neighbours(folders):
    folder = folders("llama")[1]
    model = ait_engine.Model(folder)
    both = model.prefill(PROMPTS, 1)
    both_next = model.decode([4, 5])
    for row, prompt in enumerate(PROMPTS):
        np.testing.assert_allclose(model.prefill([prompt], 1)[0], both[row], rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(model.decode([4 + row])[0], both_next[row], rtol=1e-5, atol=1e-5)


def test_long_prompts_cross_blocks_of_the_cache(folders):
    model, folder = folders("qwen2")
    prompt = np.random.default_rng(3).integers(0, 200, 70).tolist()
    golden = forced(model, prompt, list(range(20)))
    engine = ait_engine.Model(folder)
    logits = [engine.prefill([prompt], 20)] + [engine.decode([token]) for token in range(20)]
    assert distance(np.concatenate(logits), golden) < FP32_LIMIT


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda model: model.prefill([[1, 200]]), "outside the vocabulary of 200"),
        (lambda model: model.prefill([[]]), "no tokens"),
        (lambda model: model.prefill([]), "1 to"),
        (lambda model: model.prefill([[1] * 250], 10), "exceed the 256"),
        (lambda model: (model.prefill([[1]], 0), model.decode([1])), "room for 1"),
        (lambda model: (model.prefill([[1]], 1), model.decode([1, 2])), "one token for each of the 1"),
    ],
)
def test_bad_requests_are_refused(folders, call, words):
    model = ait_engine.Model(folders("llama")[1])
    with pytest.raises(ait_engine.EngineError, match=words):
        call(model)


def edited(folder, target, **changes):
    shutil.copytree(folder, target)
    config = json.loads((target / "config.json").read_text())
    config.update(changes)
    (target / "config.json").write_text(json.dumps(config))
    return target


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model_type": "gpt2"}, "only llama, qwen2 and mistral"),
        ({"hidden_act": "gelu"}, '"hidden_act" should be silu'),
        ({"num_hidden_layers": 4}, 'no weight "model.layers.3.input_layernorm.weight"'),
        ({"num_hidden_layers": -1}, "positive integer"),
        ({"intermediate_size": 161}, r"\[160, 64\] where config.json means \[161,64\]"),
        ({"vocab_size": 2**40}, "possible size"),
        ({"num_key_value_heads": 3}, "multiple of num_key_value_heads"),
        ({"rope_parameters": {"rope_type": "yarn", "rope_theta": 1e4}}, "only default, linear and llama3"),
        ({"rope_parameters": 3}, "an object"),
        ({"hidden_size": None}, '"hidden_size" should be there'),
    ],
    ids=lambda value: str(value)[:40],
)
def test_configs_that_do_not_fit_are_refused(folders, tmp_path, changes, words):
    with pytest.raises(ait_engine.EngineError, match=words):
        ait_engine.Model(edited(folders("llama")[1], tmp_path / "bad", **changes))


def test_sliding_windows_are_refused_where_they_matter(folders, tmp_path):
    folder = edited(folders("mistral")[1], tmp_path / "window", sliding_window=8)
    model = ait_engine.Model(folder)
    model.prefill([[1] * 8])
    with pytest.raises(ait_engine.EngineError, match="sliding window"):
        model.prefill([[1] * 9])


def test_broken_folders_are_refused(folders, tmp_path):
    folder = folders("llama")[1]
    with pytest.raises(ait_engine.EngineError, match="config.json"):
        ait_engine.Model(tmp_path)
    no_weights = tmp_path / "no_weights"
    no_weights.mkdir()
    shutil.copy(folder / "config.json", no_weights)
    with pytest.raises(ait_engine.EngineError, match="model.safetensors"):
        ait_engine.Model(no_weights)
    (no_weights / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes()[:5000])
    with pytest.raises(ait_engine.EngineError, match="model.safetensors"):
        ait_engine.Model(no_weights)
    (no_weights / "model.safetensors.index.json").write_text('{"weight_map": {"a": "../secret.safetensors"}}')
    with pytest.raises(ait_engine.EngineError, match="outside the folder"):
        ait_engine.Model(no_weights)
    (no_weights / "config.json").write_text("{")
    with pytest.raises(ait_engine.EngineError, match="not a JSON object"):
        ait_engine.Model(no_weights)
