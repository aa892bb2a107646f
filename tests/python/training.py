"""Training steps of small models, for recording their calls of torch's functions."""

import json
from pathlib import Path

import pytest
import torch
from ait_llm.api_check.config import Config
from ait_llm.api_check.iterations import Control

needs_torch_2 = pytest.mark.skipif(not hasattr(torch, "compile"), reason="needs torch 2")
needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

SIZES = {"vocab_size": 61, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}


def _language_model(model_class, config_class, options):
    def build():
        transformers = pytest.importorskip("transformers")
        if not hasattr(transformers, model_class):
            pytest.skip(f"this transformers has no {model_class}")
        config = getattr(transformers, config_class)(**options, max_position_embeddings=64, pad_token_id=0)
        model = getattr(transformers, model_class)(config)
        tokens = torch.arange(24).reshape(2, 12) * 7 % 59 + 1
        return model, lambda device: _loss_of(model, tokens.to(device))

    return build


def _loss_of(model, tokens):
    return model(input_ids=tokens, labels=tokens).loss


class Network(torch.nn.Module):
    """Convolutions, norms, pools and a loss: what vision models are made of."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(8)
        self.depthwise = torch.nn.Conv2d(8, 8, 3, groups=8, stride=2)
        self.group = torch.nn.GroupNorm(2, 8)
        self.head = torch.nn.Linear(8, 5)

    def forward(self, image):
        x = torch.nn.functional.max_pool2d(torch.relu(self.norm(self.first(image))), 2)
        x = torch.nn.functional.interpolate(self.group(self.depthwise(x)), scale_factor=2.0)
        x = torch.nn.functional.dropout(x * torch.sigmoid(x), 0.25, self.training)
        return self.head(x.mean((2, 3)).clamp(-1, 1))


def _network():
    model, images = Network(), torch.linspace(-1, 1, 2 * 3 * 12 * 12).reshape(2, 3, 12, 12)
    return model, lambda device: torch.nn.functional.cross_entropy(
        model(images.to(device, model.head.weight.dtype)), torch.tensor([1, 3], device=device)
    )


GROUPED = {**SIZES, "num_key_value_heads": 2}
MODELS = {
    "llama": _language_model("LlamaForCausalLM", "LlamaConfig", GROUPED),
    "gpt2": _language_model(
        "GPT2LMHeadModel", "GPT2Config", {"vocab_size": 61, "n_embd": 32, "n_layer": 2, "n_head": 4}
    ),
    "bert": _language_model("BertForMaskedLM", "BertConfig", SIZES),
    "mixtral": _language_model("MixtralForCausalLM", "MixtralConfig", {**GROUPED, "num_local_experts": 4}),
    "convolutions": _network,
}


class Training:
    """Two steps of a seeded model; the second is the one that is looked at."""

    def __init__(self, name, dtype=torch.float32, device="cpu"):
        torch.manual_seed(5)
        self.model, self._loss = MODELS[name]()
        self.model.to(device, dtype).train()
        self._device = device
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05, momentum=0.9)
        self.losses = []

    def step(self):
        self.optimizer.zero_grad()
        loss = self._loss(self._device)
        loss.backward()
        self.optimizer.step()
        self.losses.append(loss.detach())

    @property
    def results(self):
        gradients = [each.grad for each in self.model.parameters() if each.grad is not None]
        return [*self.losses, *gradients, *(each.detach() for each in self.model.parameters())]


def train(name, around_the_second, dtype=torch.float32, device="cpu"):
    """What comes of both steps. `around_the_second` is a context in which the second runs."""
    training = Training(name, dtype, device)
    training.step()
    with around_the_second:
        training.step()
    return training.results


class recording:
    """Records what runs inside."""

    def __init__(self, folder, **settings):
        config = Config()
        config.update_config(dump_path=str(folder), **settings)
        self.control = Control(config)

    def __enter__(self):
        self.control.set_dump_switch("ON")
        return self

    def __exit__(self, *_):
        self.control.set_dump_switch("OFF")
        self.control._at_exit.clear()  # the end of all tests is no place for words


def read(folder, kind):
    """One of the files that a recording leaves."""
    (path,) = Path(folder).glob(f"{kind}_info_*.json")
    return json.loads(path.read_text())


def record(folder, function, **settings):
    with recording(folder, **settings):
        result = function()
    return result, read(folder, "forward")
