"""Real architectures, recorded: every tensor is what the module really got and gave, and the model does not notice."""

import json

import pytest
import torch
from ait_llm import DumpConfig, register_hook
from torch_models import GENERATING, MODELS, build
from torch_oracle import Watcher, assert_recorded

pytest.importorskip("transformers")


def tensors_of(output):
    return {key: value for key, value in output.items() if isinstance(value, torch.Tensor)}


def manifest_of(handle):
    with open(f"{handle.folder}/manifest.json") as file:
        return json.load(file)


@pytest.mark.parametrize("name", MODELS)
def test_a_call_is_recorded_bit_for_bit_and_its_result_is_the_same(name, tmp_path):
    model, inputs = build(name)
    with torch.no_grad():
        before = tensors_of(model(**inputs))
        with register_hook(model, DumpConfig(str(tmp_path), token_range=[0, 1])) as handle, Watcher(model) as watcher:
            during = [tensors_of(model(**inputs)) for _ in range(3)]
        after = tensors_of(model(**inputs))
    for output in [*during, after]:
        assert output.keys() == before.keys()
        for key, value in output.items():
            assert torch.equal(value, before[key]), key
    assert_recorded(handle.folder, watcher.calls, rounds=[0, 1])
    manifest = manifest_of(handle)
    assert manifest["state"] == "complete" and manifest["root_calls"] == 3
    assert manifest["tensors"]["written"] == sum(len(files) for n in (0, 1) for files in watcher.calls[n].values())
    assert manifest["tensors"]["failed"] == 0 and manifest["errors"] == []


@pytest.mark.parametrize("name", MODELS)
def test_the_manifest_names_exactly_the_modules_that_never_ran(name, tmp_path):
    model, inputs = build(name)
    with register_hook(model, DumpConfig(str(tmp_path))) as handle, Watcher(model) as watcher, torch.no_grad():
        model(**inputs)
    ran = {folder.split("#")[0] for folder in watcher.calls[0]}
    callable_ones = {
        name
        for name, module in ((watcher.names[id(m)], m) for m in model.modules())
        if not isinstance(module, (torch.nn.ModuleList, torch.nn.ModuleDict))
    }
    found = manifest_of(handle)["rounds"]["0"]
    assert found["expected"] == len(callable_ones)
    assert set(found["never_ran"]) == callable_ones - ran
    assert found["seen"] == len(ran)


@pytest.mark.parametrize("name", GENERATING)
def test_generation_is_recorded_round_by_round_and_gives_the_same_tokens(name, tmp_path):
    model, inputs = build(name)
    options = {**inputs, "max_new_tokens": 4, "do_sample": False}
    options["attention_mask"] = torch.ones_like(inputs["input_ids"])
    without = model.generate(**options)
    with register_hook(model, DumpConfig(str(tmp_path), token_range=[0, 2, 3])) as handle, Watcher(model) as watcher:
        tokens = model.generate(**options)
    assert torch.equal(tokens, without)
    assert watcher.root_calls == 4
    assert_recorded(handle.folder, watcher.calls, rounds=[0, 2, 3])


def test_what_generate_calls_beside_the_model_belongs_to_the_latest_round(tmp_path):
    model, inputs = build("whisper")
    options = {"input_features": inputs["input_features"], "max_new_tokens": 3, "do_sample": False}
    with register_hook(model, DumpConfig(str(tmp_path), token_range=[0, 1])) as handle, Watcher(model) as watcher:
        model.generate(**options)
    assert "root.model.encoder" in watcher.calls[0]
    assert_recorded(handle.folder, watcher.calls, rounds=[0, 1])


@pytest.mark.parametrize("name", ["llama", "gpt2", "bloom", "mixtral", "bert", "vit"])
def test_training_has_the_same_gradients_and_no_graph_is_kept(name, tmp_path):
    def train(hooked):
        model, inputs = build(name)
        model.train()
        torch.manual_seed(7)  # dropout
        if hooked:
            handle = register_hook(model, DumpConfig(str(tmp_path), token_range=[0, 1], dump_statistics_mode=2))
            with handle, Watcher(model) as watcher:
                losses = [step(model, inputs) for _ in range(2)]
            assert_recorded(handle.folder, watcher.calls, rounds=[0, 1])
        else:
            losses = [step(model, inputs) for _ in range(2)]
        return losses, {key: value.grad for key, value in model.named_parameters()}

    def step(model, inputs):
        loss = sum(
            value.float().square().mean() for value in tensors_of(model(**inputs)).values() if value.is_floating_point()
        )
        loss.backward()
        return loss.detach()

    losses, gradients = train(hooked=False)
    hooked_losses, hooked_gradients = train(hooked=True)
    assert all(torch.equal(*pair) for pair in zip(losses, hooked_losses))
    for key, gradient in gradients.items():
        assert (gradient is None and hooked_gradients[key] is None) or torch.equal(gradient, hooked_gradients[key]), key


@pytest.mark.parametrize("name", ["llama", "mixtral"])
@pytest.mark.parametrize("kind", ["inference mode", "autocast", "bfloat16"])
def test_modes_of_inference_are_recorded_alike(name, kind, tmp_path):
    model, inputs = build(name)
    if kind == "bfloat16":
        model = model.bfloat16()
    context = {
        "inference mode": torch.inference_mode(),
        "autocast": torch.autocast("cpu", torch.bfloat16),
        "bfloat16": torch.no_grad(),
    }[kind]
    with context:
        expected = model(**inputs).logits
        with register_hook(model, DumpConfig(str(tmp_path))) as handle, Watcher(model) as watcher:
            assert torch.equal(model(**inputs).logits, expected)
    assert_recorded(handle.folder, watcher.calls, rounds=[0])


needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@needs_gpu
@pytest.mark.parametrize("name", ["llama", "mixtral"])
@pytest.mark.parametrize("kind", ["call", "generate", "train"])
def test_models_on_a_gpu_are_recorded_alike(name, kind, tmp_path):
    def run(hooked):
        model, inputs = build(name)
        model = model.to("cuda", torch.bfloat16).train(kind == "train")
        inputs = {key: value.cuda() for key, value in inputs.items()}
        config = DumpConfig(str(tmp_path), token_range=[0, 1], dump_statistics_mode=2)
        handle = register_hook(model, config) if hooked else None
        with Watcher(model) as watcher:
            if kind == "generate":
                result = [
                    model.generate(
                        **inputs, attention_mask=torch.ones_like(inputs["input_ids"]), max_new_tokens=3, do_sample=False
                    )
                ]
            elif kind == "train":
                for _ in range(2):
                    model(**inputs).logits.float().square().mean().backward()
                result = [value.grad for value in model.parameters()]
            else:
                with torch.no_grad():
                    result = [model(**inputs).logits for _ in range(2)]
        if hooked:
            handle.remove()
            assert handle.folder.rsplit("/", 1)[1].startswith("0_")
            assert_recorded(handle.folder, watcher.calls, rounds=[0, 1])
        return result

    torch.use_deterministic_algorithms(True, warn_only=True)  # scatters of experts add up in any order otherwise
    try:
        first, second = run(hooked=False), run(hooked=False)
        if not all(torch.equal(*pair) for pair in zip(first, second)):
            pytest.skip("this model does not give the same results twice here")
        for plain, hooked in zip(first, run(hooked=True)):
            assert torch.equal(plain, hooked)
    finally:
        torch.use_deterministic_algorithms(False)
