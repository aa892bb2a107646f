"""Small models of transformers with seeded weights, recorded as a torch dump by hooks of the tests' own."""

import json
import pathlib
import random
import string

import torch
import transformers

FAMILIES = {
    "llama": (transformers.LlamaConfig, transformers.LlamaForCausalLM),
    "qwen2": (transformers.Qwen2Config, transformers.Qwen2ForCausalLM),
    "mistral": (transformers.MistralConfig, transformers.MistralForCausalLM),
    "mixtral": (transformers.MixtralConfig, transformers.MixtralForCausalLM),
}


def make_model(family, layers, seed=0, **changes):
    """A float32 model whose norms and biases are not the ones and zeros that a fresh model has."""
    config_class, model_class = FAMILIES[family]
    sizes = dict(
        vocab_size=97,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        attn_implementation="eager",
        tie_word_embeddings=False,
    )
    torch.manual_seed(seed)
    model = model_class(config_class(**{**sizes, **changes})).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("bias"):
                parameter.normal_(0, 0.1)
            elif parameter.dim() == 1:
                parameter.uniform_(0.5, 1.5)
            else:
                parameter.normal_(0, 1.0 / parameter.shape[-1] ** 0.5)
    return model


def leaves(value, stem):
    if isinstance(value, torch.Tensor):
        yield stem, value
    elif isinstance(value, (tuple, list)):
        for index, each in enumerate(value):
            yield from leaves(each, f"{stem}_{index}")
    elif hasattr(value, "items"):
        for key, each in value.items():
            yield from leaves(each, f"{stem}_{key}")


class Names:
    """Names of modules as they are, or random ones in their place: of attributes and of classes."""

    def __init__(self, seed=None):
        self._random = None if seed is None else random.Random(seed)
        self._known = {}

    def _other(self, word):
        if self._random is None or word.isdigit():
            return word
        if word not in self._known:
            self._known[word] = "".join(self._random.choices(string.ascii_lowercase, k=6))
        return self._known[word]

    def module(self, name):
        return ".".join(self._other(word) for word in name.split("."))

    def type(self, name):
        return self._other(name)


class TorchRecorder:
    """Writes {root}/torch_tensors/cpu_{pid}/{token}/{module}/… of each call of the model."""

    def __init__(self, model, root, names=None, inputs=True, order=True, pid=4711):
        self.folder = pathlib.Path(root) / "torch_tensors" / f"cpu_{pid}"
        self.names = names or Names()
        self.token = -1
        self.tensors = {}  # (token, module's real name, stem) -> tensor
        self._inputs = inputs
        self._order = {}
        self._write_order = order
        self._model = model
        for name, module in model.named_modules():
            full = "root" + ("." + name if name else "")
            module.register_forward_pre_hook(self._before(full), with_kwargs=True)
            module.register_forward_hook(self._after(full))
        self.folder.mkdir(parents=True)

    def _before(self, name):
        def hook(_module, args, kwargs):
            if name == "root":
                self.token += 1
            self._order.setdefault(name, len(self._order))
            if self._inputs:
                for index, value in enumerate(args):
                    self._save(name, leaves(value, f"input_{index}"))
                for key, value in kwargs.items():
                    self._save(name, leaves(value, f"input_{key}"))

        return hook

    def _after(self, name):
        def hook(_module, _args, output):
            self._save(name, leaves(output, "output"))

        return hook

    def _save(self, name, found):
        for stem, tensor in found:
            tensor = tensor.detach().clone()
            self.tensors[self.token, name, stem] = tensor
            path = self.folder / str(self.token) / self.names.module(name) / f"{stem}.pth"
            path.parent.mkdir(parents=True, exist_ok=True)
            torch.save(tensor, path)

    def write_tree(self):
        def node(name, module):
            full = "root" + ("." + name if name else "")
            out = {"name": self.names.module(full), "type": self.names.type(type(module).__name__)}
            if self._write_order and full in self._order:
                out["order"] = self._order[full]
            out["children"] = [node(f"{name}.{key}" if name else key, child) for key, child in module.named_children()]
            return out

        (self.folder / "model_tree.json").write_text(json.dumps(node("", self._model)))


def record(model, root, prompt, steps, **options):
    """A prompt ([batch, length]) and `steps` new words, greedily. Returns the recorder and the words."""
    recorder = TorchRecorder(model, root, **options)
    with torch.no_grad():
        words, cache, given = [], None, prompt
        for _ in range(steps + 1):
            out = model(input_ids=given, past_key_values=cache, use_cache=True)
            cache = out.past_key_values
            given = out.logits[:, -1].argmax(-1, keepdim=True)
            words.append(given)
    recorder.write_tree()
    return recorder, words
