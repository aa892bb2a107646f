"""Pairs of torch runs whose modules have the same names in part: fused, wrapped, adapted, renamed, called again, or run
once. What corresponds is known from a run of my model without its fault, which nobody compares: a tensor of it
equals golden's wherever the two correspond.
"""

import pathlib
import random
import re

import torch
from ait_llm import DumpConfig, register_hook
from pairing import read_rows
from torch_run import leaves

WIDTH = 32
HEADS = 4
VOCABULARY = 50


class Norm(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(WIDTH))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class Attention(torch.nn.Module):
    def __init__(self, fused):
        super().__init__()
        self.fused = fused
        if fused:
            self.qkv_proj = torch.nn.Linear(WIDTH, 3 * WIDTH)
        else:
            self.q_proj = torch.nn.Linear(WIDTH, WIDTH)
            self.k_proj = torch.nn.Linear(WIDTH, WIDTH)
            self.v_proj = torch.nn.Linear(WIDTH, WIDTH)
        self.o_proj = torch.nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x):
        parts = self.qkv_proj(x).chunk(3, -1) if self.fused else (self.q_proj(x), self.k_proj(x), self.v_proj(x))
        q, k, v = (part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in parts)
        scores = (q @ k.transpose(-1, -2) / 8 + torch.full((x.shape[1],) * 2, -1e9).triu(1)).softmax(-1)
        return self.o_proj((scores @ v).transpose(1, 2).flatten(2))


class Mlp(torch.nn.Module):
    def __init__(self, fused):
        super().__init__()
        self.fused = fused
        if fused:
            self.gate_up_proj = torch.nn.Linear(WIDTH, 4 * WIDTH, bias=False)
        else:
            self.gate_proj = torch.nn.Linear(WIDTH, 2 * WIDTH, bias=False)
            self.up_proj = torch.nn.Linear(WIDTH, 2 * WIDTH, bias=False)
        self.act_fn = torch.nn.SiLU()
        self.down_proj = torch.nn.Linear(2 * WIDTH, WIDTH, bias=False)

    def forward(self, x):
        gate, up = self.gate_up_proj(x).chunk(2, -1) if self.fused else (self.gate_proj(x), self.up_proj(x))
        return self.down_proj(self.act_fn(gate) * up)


class Block(torch.nn.Module):
    residual = True  # False: the first addition is forgotten, a fault

    def __init__(self, fused):
        super().__init__()
        self.input_layernorm = Norm()
        self.self_attn = Attention(fused)
        self.post_attention_layernorm = Norm()
        self.mlp = Mlp(fused)

    def forward(self, x):
        attended = self.self_attn(self.input_layernorm(x))
        x = x + attended if self.residual else attended
        return x + self.mlp(self.post_attention_layernorm(x))


class Decoder(torch.nn.Module):
    """`shared`: all layers are one, called again. `once`: a module that only the first round needs."""

    def __init__(self, layers=3, fused=False, shared=False, once=False):
        super().__init__()
        self.embed_tokens = torch.nn.Embedding(VOCABULARY, WIDTH)
        self.layers = torch.nn.ModuleList(Block(fused) for _ in range(1 if shared else layers))
        self.norm = Norm()
        self.drop = torch.nn.Dropout(0.1)
        self.lm_head = torch.nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.times = layers if shared else 1
        if once:
            self.encoder = torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.Tanh())
        self.state = None

    def forward(self, words):
        x = self.drop(self.embed_tokens(words))
        if hasattr(self, "encoder"):
            if self.state is None:
                self.state = self.encoder(x).mean(1, keepdim=True)
            x = x + self.state
        for _ in range(self.times):
            for layer in self.layers:
                x = self.drop(layer(x))
        return self.lm_head(self.norm(x))


class Lora(torch.nn.Module):
    """An adapter around a projection, as peft names its parts."""

    def __init__(self, base, size):
        super().__init__()
        self.base_layer = base
        self.lora_A = torch.nn.ModuleDict({"default": torch.nn.Linear(base.in_features, 4, bias=False)})
        self.lora_B = torch.nn.ModuleDict({"default": torch.nn.Linear(4, base.out_features, bias=False)})
        torch.nn.init.normal_(self.lora_B["default"].weight, 0, size)

    def forward(self, x):
        return self.base_layer(x) + self.lora_B["default"](self.lora_A["default"](x))


class Around(torch.nn.Module):
    """A model under another name: `path` is where it hangs, "base_model.model"."""

    def __init__(self, model, path):
        super().__init__()
        name, _, rest = path.partition(".")
        setattr(self, name, Around(model, rest) if rest else model)
        self._name = name

    def forward(self, words):
        return getattr(self, self._name)(words)


def make(seed, **options):
    torch.manual_seed(seed)
    model = Decoder(**options).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.uniform_(0.5, 1.5)
            else:
                parameter.normal_(0, 1.2 / parameter.shape[-1] ** 0.5)
    return model


def fuse(model):
    """The same model with fused projections."""
    fused = make(0, layers=len(model.layers), fused=True)
    weights = model.state_dict()
    for name in fused.state_dict():
        for whole, parts in (("qkv_proj", ("q_proj", "k_proj", "v_proj")), ("gate_up_proj", ("gate_proj", "up_proj"))):
            if whole in name:
                weights[name] = torch.cat([weights.pop(name.replace(whole, part)) for part in parts])
    fused.load_state_dict(weights)
    return fused


def rename(module, names):
    """Registers children under other names; forward methods find them by the old ones."""

    def hide(child, old, new):
        child._modules = {new if key == old else key: value for key, value in child._modules.items()}
        own = type(child)
        child.__class__ = type(own.__name__, (own,), {old: property(lambda self: self._modules[new])})

    for child in list(module.modules()):
        for old, new in names.items():
            if old in child._modules:
                hide(child, old, new)
    return module


class Watched:
    """All tensors of a model's calls: (round, operation, stem) -> tensor."""

    def __init__(self, model):
        self.tensors = {}
        self.round, self._calls = -1, {}
        for name, module in model.named_modules():
            full = f"root.{name}" if name else "root"
            module.register_forward_pre_hook(self._before(full), with_kwargs=True)
            module.register_forward_hook(self._after(full))
        self._open = []

    def _before(self, name):
        def hook(_module, args, kwargs):
            if name == "root":
                self.round, self._calls = self.round + 1, {}
            call = self._calls[name] = self._calls.get(name, -1) + 1
            self._open.append(f"{name}#{call}" if call else name)
            self._save(leaves(args, "input"))
            self._save(leaves(kwargs, "input"))

        return hook

    def _after(self, _name):
        def hook(_module, _args, output):
            self._save(leaves(output, "output"))
            self._open.pop()

        return hook

    def _save(self, found):
        for stem, tensor in found:
            self.tensors[self.round, self._open[-1], stem] = tensor.detach().clone()


class Case:
    """Golden and mine are (model, …) of one process each; `clean` are mine without their fault."""

    def __init__(self, folder, draw, golden, mine, clean):
        self.folder = pathlib.Path(folder)
        self.least = min(getattr(model, "least", 0.97) for model in mine)
        self.golden, self.mine = self.folder / "golden", self.folder / "mine"
        generator = torch.Generator().manual_seed(draw.randrange(1 << 30))
        rounds = [torch.randint(0, VOCABULARY, (1, length), generator=generator) for length in (9, 5)]
        torch.set_num_threads(1)
        self._record(golden, self.golden, rounds)
        self.folders = self._record(mine, self.mine, rounds)
        self.clean = []
        for model in clean:
            watched = Watched(model)
            self._run([model], rounds)
            self.clean.append(watched.tensors)

    @staticmethod
    def _run(models, rounds):
        with torch.no_grad():
            for words in rounds:
                for model in models:
                    model(words)

    def _record(self, models, folder, rounds):
        config = DumpConfig(str(folder), token_range=list(range(len(rounds))))
        handles = [register_hook(model, config) for model in models]
        self._run(models, rounds)
        for handle in handles:
            handle.remove()
        return [pathlib.Path(handle.folder).name for handle in handles]

    def compare(self, ait, *arguments):
        out = self.folder / "out"
        done = ait("llm", "compare", "-gp", self.golden, "-mp", self.mine, "-o", out, "--extended", *arguments)
        assert done.returncode == 0, done.stderr
        return done, read_rows(out)

    def _golden_outputs(self):
        """Of each round, golden's outputs of leaves and of others."""
        found = {}
        for path in sorted(self.golden.rglob("output*.pth")):
            found.setdefault(int(path.parts[-3]), []).append(torch.load(path).flatten(0, -2))
        return found

    def judge(self, rows):
        """(wanted, found, wrong): outputs of mine with a partner, those paired with it, and wrong pairs."""
        goldens = self._golden_outputs()
        wanted, found, wrong = set(), set(), []
        for number, tensors in enumerate(self.clean):
            for (token, operation, stem), tensor in tensors.items():
                # What an adapter is put around may or may not be found: its sum with the adapter has the name.
                if not stem.startswith("output") or operation.endswith(".base_layer"):
                    continue
                matrix = tensor.flatten(0, -2)
                for golden in goldens.get(token, []):
                    if golden.shape[0] != matrix.shape[0]:
                        continue
                    for first in range(0, max(matrix.shape[1] - golden.shape[1], 0) + 1, WIDTH):
                        part = matrix[:, first : first + golden.shape[1]]
                        if part.shape == golden.shape and torch.allclose(part, golden, atol=1e-4):
                            wanted.add((number, token, operation, stem, first))
                    for first in range(WIDTH, golden.shape[1] - matrix.shape[1] + 1, WIDTH):
                        part = golden[:, first : first + matrix.shape[1]]
                        if torch.allclose(part, matrix, atol=1e-4):
                            wanted.add((number, token, operation, stem, 0))
        for row in rows:
            if not row["golden_data_path"] or not row["my_data_path"]:
                continue
            path = pathlib.Path(row["my_data_path"])
            token, operation, stem = int(path.parts[-3]), row["my_operation"], path.stem
            first = int(re.search(r":(\d+)$", row["data_id"]).group(1)) if re.search(r":\d+$", row["data_id"]) else 0
            number = self.folders.index(path.parts[-4])
            if number < len(self.clean) and self._is(row, self.clean[number], token, operation, stem):
                found.add((number, token, operation, stem, first))
            else:
                wrong.append((token, operation, stem, row["golden_data_path"], row["pairing_reason"]))
        return wanted, found & wanted, wrong

    @staticmethod
    def _is(row, clean, token, operation, stem):
        """Whether the golden tensor of a row is what mine would be without its fault."""
        golden = sum(torch.load(path) for path in row["golden_data_path"].split(";"))
        mine = clean.get((token, operation, stem))
        if mine is None or not mine.is_floating_point():
            return mine is not None and torch.equal(mine, golden)
        golden, mine = (_columns(each, row[f"{side}_transform"]) for each, side in ((golden, "golden"), (mine, "my")))
        return golden.shape == mine.shape and torch.allclose(golden, mine, atol=1e-4)


def _columns(tensor, transform):
    matrix = tensor.flatten(0, -2)
    found = re.search(r"columns (\d+) to (\d+)", transform)
    return matrix[:, int(found.group(1)) : int(found.group(2)) + 1] if found else matrix


def _fault(draw, model):
    """Something goes wrong by any factor in a projection or a norm, or nothing does."""
    places = {name: each for name, each in model.named_modules() if name.endswith(("proj", "layernorm"))}
    name = draw.choice(list(places))
    factor = draw.choice([1, 1, 1.001, 1.5, 30])
    with torch.no_grad():
        places[name].weight.mul_(factor)
    model.least = 0.90 if "layers.0." in name and factor > 1.1 else 0.97
    return model


def _seed(draw):
    return draw.randrange(1 << 20)


def _same(folder, draw, change, **options):
    """Golden is a decoder, mine what `change` makes of it."""
    seed = _seed(draw)
    options = {"layers": draw.randint(2, 4)} | options
    mine = change(make(seed, **options))
    return Case(folder, draw, [make(seed, **options)], [_fault(draw, mine)], [change(make(seed, **options))])


def fused(draw, folder):
    return _same(folder, draw, fuse)


def split(draw, folder):
    seed, layers = _seed(draw), draw.randint(2, 4)
    models = [make(seed, layers=layers) for _ in range(3)]
    return Case(folder, draw, [fuse(models[0])], [_fault(draw, models[1])], [models[2]])


def adapted(draw, folder):
    """Adapters of any size around some projections, in a wrapper or not."""
    size = draw.choice([0.0, 0.01, 0.2, 2.0])
    chosen = draw.sample(["q_proj", "v_proj", "o_proj", "down_proj"], 2)
    path = draw.choice(["", "base_model.model"])

    def adapt(model, size):
        torch.manual_seed(5)
        for child in list(model.modules()):
            for name in chosen:
                if hasattr(child, name):
                    setattr(child, name, Lora(getattr(child, name), size))
        return Around(model, path) if path else model

    seed, layers = _seed(draw), draw.randint(2, 4)
    models = [make(seed, layers=layers) for _ in range(3)]
    return Case(folder, draw, [models[0]], [adapt(models[1], size)], [adapt(models[2], 0.0)])


def wrapped(draw, folder):
    """Either side under another name."""
    path = draw.choice(["module", "model.language_model"])
    if draw.random() < 0.5:
        return _same(folder, draw, lambda model: Around(model, path))
    seed, layers = _seed(draw), draw.randint(2, 4)
    models = [make(seed, layers=layers) for _ in range(3)]
    return Case(folder, draw, [Around(models[0], path)], [_fault(draw, models[1])], [models[2]])


def renamed(draw, folder):
    """Some modules have other names, the rest keep theirs."""
    old = draw.sample(["q_proj", "o_proj", "down_proj", "norm", "lm_head", "act_fn", "post_attention_layernorm"], 3)
    names = {name: "x" + "".join(draw.choices("abcdef", k=4)) for name in old}
    return _same(folder, draw, lambda model: rename(model, names))


def called_again(draw, folder):
    return _same(folder, draw, lambda model: model, shared=True, layers=draw.randint(2, 4))


def run_once(draw, folder):
    return _same(folder, draw, lambda model: model, once=True)


def several(draw, folder):
    """Two models of one class and another one in each process; mine may have one more."""
    seeds, layers = [_seed(draw) for _ in range(3)], draw.randint(2, 3)

    def models():
        return [
            make(seeds[0], layers=layers),
            make(seeds[1], layers=layers),
            Around(make(seeds[2], layers=layers), "net"),
        ]

    mine = models()
    _fault(draw, mine[draw.randrange(3)])
    more = [torch.nn.Sequential(torch.nn.Embedding(VOCABULARY, WIDTH), torch.nn.Linear(WIDTH, 3))]
    return Case(folder, draw, models(), mine + (more if draw.random() < 0.5 else []), models())


KINDS = {
    f"names: {each.__name__.replace('_', ' ')}": each
    for each in (fused, split, adapted, wrapped, renamed, called_again, run_once, several)
}


if __name__ == "__main__":  # one case by hand: pairing_names.py KIND SEED FOLDER
    import sys

    KINDS[sys.argv[1]](random.Random(int(sys.argv[2])), pathlib.Path(sys.argv[3]))
