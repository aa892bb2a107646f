"""Pairs of runs whose operations have to be recognised by their data: torch and a library, with the truth known by
construction. `KINDS` is what test_pairing.py draws cases from."""

import pathlib
import random

import torch
from atb_run import ELEWISE, Library
from pairing import Case
from torch_run import Names, TorchRecorder, make_model

DTYPES = ["float32", "float16", "bfloat16", "w8a8"]

# How far apart a healthy pair may be, relative to its size; unrelated data and rows in another order are 1 and more.
HEALTHY = 0.3


def pad_left(sequences):
    """Ids, mask and positions of sequences of different lengths as torch is given them."""
    longest = max(len(each) for each in sequences)
    ids = torch.zeros(len(sequences), longest, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for row, each in enumerate(sequences):
        ids[row, longest - len(each) :] = each
        mask[row, longest - len(each) :] = 1
    return ids, mask, (mask.cumsum(-1) - 1).clamp_min(0)


def generate(model, recorder, sequences, steps):
    """Greedy words of a batch whose shorter sequences are padded on the left; [step][sequence]."""
    ids, mask, positions = pad_left(sequences)
    is_padded = len({len(each) for each in sequences}) > 1
    words, cache = [], None
    with torch.no_grad():
        for _ in range(steps + 1):
            given = dict(attention_mask=mask, position_ids=positions) if is_padded else {}
            out = model(input_ids=ids, past_key_values=cache, use_cache=True, **given)
            cache = out.past_key_values
            ids = out.logits[:, -1].argmax(-1, keepdim=True)
            words.append(ids)
            mask = torch.cat([mask, torch.ones_like(ids)], -1)
            positions = positions[:, -1:] + 1
    recorder.write_tree()
    return words


class Arranged(Library):
    """A library that packs sequences of any lengths, and lays tensors out in other ways: `rows_by_position` has the
    rows of all sequences at a position beside each other, `heads_first` what has heads as [heads, tokens, size]."""

    def __init__(self, *arguments, rows_by_position=False, heads_first=False, odd_last=False, **options):
        super().__init__(*arguments, **options)
        self.rows_by_position, self.heads_first, self.odd_last = rows_by_position, heads_first, odd_last

    def begin(self, phase, part, kind):
        """With `odd_last` the last layer is built otherwise than the rest, and called otherwise."""
        is_odd = self.odd_last and part == self.config.num_hidden_layers - 1
        if is_odd:
            self.add_norm = not self.add_norm
        super().begin(phase, part, f"Last{kind}" if is_odd else kind)

    def finish(self, outputs, truth):
        super().finish(outputs, truth)
        if self.path[0].split("_", 1)[1].startswith("Last"):
            self.add_norm = not self.add_norm

    def run_sequences(self, sequences, words):
        self.warming, self.caches = False, None
        lengths, starts, ids = [len(each) for each in sequences], [0] * len(sequences), torch.cat(sequences)
        for token, following in enumerate(words):
            self.token, self.lengths = token, lengths
            self.step("prefill" if token == 0 else "decode", ids, lengths, starts)
            starts = [start + length for start, length in zip(starts, lengths)]
            ids, lengths = following.flatten(), [1] * len(sequences)
        self.write_topology()
        return self.truth

    def save(self, path, outputs, truth):
        super().save(path, [[self.arranged(path[-1], each) for each in shards] for shards in outputs], truth)

    def arranged(self, operation, tensor):
        tokens = sum(self.lengths)
        has_heads = any(each in operation for each in ("SelfAttentionOp", "PagedAttentionOp"))
        if self.heads_first and has_heads and tensor.shape[0] == tokens:
            return tensor.transpose(0, 1)
        if self.rows_by_position and tensor.dim() == 3 and tensor.shape[0] != tokens == tensor.shape[1]:
            return self.arranged(operation, tensor.transpose(0, 1)).transpose(0, 1)
        if self.rows_by_position and tensor.shape[0] == tokens and len(set(self.lengths)) == 1:
            return tensor.reshape(len(self.lengths), self.lengths[0], *tensor.shape[1:]).transpose(0, 1).flatten(0, 1)
        return tensor


class Gpt2(Arranged):
    """The same for a model with fused projections, LayerNorms, biases and learned positions."""

    def layer_norm(self, x, name):
        out = torch.nn.functional.layer_norm(
            x.float(), x.shape[-1:], self.weights[f"{name}.weight"], self.weights[f"{name}.bias"], 1e-5
        )
        return self.low(out)

    def conv(self, x, name, first=0, last=None):
        return self.linear(x, self.weights[f"{name}.weight"].T[first:last], self.weights[f"{name}.bias"][first:last])

    def step(self, phase, ids, lengths, position):
        c = self.config
        if self.caches is None:
            self.caches = [[[None] * len(lengths)] for _ in range(c.num_hidden_layers)]
        places = torch.cat([torch.arange(first, first + n) for first, n in zip(position, lengths)])
        self.begin(phase, "embed", "WordEmbedding")
        word = self.low(self.weights["transformer.wte.weight"][ids])
        truth = [[("root.transformer.wte", "output", 0)]]
        self.op("GatherOperation", [[word]], truth, ["table", "ids"], ["hidden"])
        self.finish([[word]], truth)
        self.begin(phase, "position", "PositionEmbedding")
        place = self.low(self.weights["transformer.wpe.weight"][places])
        truth = [[("root.transformer.wpe", "output", 0)]]
        self.op("GatherOperation", [[place]], truth, ["places"], ["place"])
        self.finish([[place]], truth)
        hidden = self.low(word.float() + place.float())
        for layer in range(c.num_hidden_layers):
            hidden = self.layer(phase, layer, hidden, None, None, lengths, c.hidden_size // c.num_attention_heads)
        self.begin(phase, "norm", "LayerNormOperation")
        normed = self.layer_norm(hidden, "transformer.ln_f")
        self.finish([[normed]], [[("root.transformer.ln_f", "output", 0)]])
        self.begin(phase, "head", "LmHead")
        rows = normed
        if self.last_only and (phase == "prefill" or not self.split_programs):
            rows = normed[torch.tensor(lengths).cumsum(0) - 1]
            truth = [[("root.transformer.ln_f", "output", 0)]]
            self.op("GatherOperation", [[rows]], truth, ["hidden", "rows"], ["last"])
        self.head(rows, self.weights["lm_head.weight"])

    def layer(self, phase, layer, hidden, cos, sin, lengths, head_size):
        c = self.config
        name, golden = f"transformer.h.{layer}", f"root.transformer.h.{layer}"
        self.begin(phase, layer, "Layer")
        normed = self.faulty(layer, "norm", self.layer_norm(hidden, f"{name}.ln_1"))
        self.op("LayerNormOperation", [[normed]], [[(f"{golden}.ln_1", "output", 0)]], ["hidden"], ["normed"])
        self.enter("Attention")
        width = c.hidden_size
        parts = [self.conv(normed, f"{name}.attn.c_attn", i * width, (i + 1) * width) for i in range(3)]
        truth = [[(f"{golden}.attn.c_attn", "output", 0)]]
        if self.fused_qkv:
            self.op("LinearOperation", [[torch.cat(parts, -1)]], truth, ["normed"], ["qkv"])
        else:
            for word, part in zip("qkv", parts):
                self.op("LinearOperation", [[part]], truth, ["normed"], [word])
        q, k, v = parts
        at = 0
        for s, new in enumerate(lengths):
            old = self.caches[layer][0][s]
            fresh = (k[at : at + new], v[at : at + new])
            self.caches[layer][0][s] = fresh if old is None else tuple(torch.cat(both) for both in zip(old, fresh))
            at += new
        heads = c.num_attention_heads
        context = self.faulty(layer, "attention", self.attend(q, k, v, self.caches[layer][0], lengths, heads, heads))
        shaped = context.reshape(context.shape[0], heads, -1)
        truth = [[(f"{golden}.attn.c_proj", "input_0", 0)]]
        self.op("SelfAttentionOperation", [[shaped]], truth, ["q", "k", "v"], ["context"])
        attended = self.faulty(layer, "o", self.conv(context, f"{name}.attn.c_proj"))
        truth = [[(f"{golden}.attn.c_proj", "output", 0)]]
        self.op("LinearOperation", [[attended]], truth, ["context"], ["attended"])
        self.leave([[attended]], truth)
        middle = self.faulty(layer, "residual", self.low(hidden.float() + attended.float()))
        add = {"elewiseType": ELEWISE["add"]}
        truth = [[(f"{golden}.ln_2", "input_0", 0)]]
        self.op("ElewiseOperation", [[middle]], truth, ["hidden", "attended"], ["middle"], add)
        after = self.faulty(layer, "norm2", self.layer_norm(middle, f"{name}.ln_2"))
        self.op("LayerNormOperation", [[after]], [[(f"{golden}.ln_2", "output", 0)]], ["middle"], ["after"])
        self.enter("Mlp")
        inner = self.conv(after, f"{name}.mlp.c_fc")
        self.op("LinearOperation", [[inner]], [[(f"{golden}.mlp.c_fc", "output", 0)]], ["after"], ["inner"])
        active = self.low(torch.nn.functional.gelu(inner.float(), approximate="tanh"))
        self.op("ActivationOperation", [[active]], [[(f"{golden}.mlp.act", "output", 0)]], ["inner"], ["active"])
        expanded = self.faulty(layer, "down", self.conv(active, f"{name}.mlp.c_proj"))
        truth = [[(f"{golden}.mlp.c_proj", "output", 0)]]
        self.op("LinearOperation", [[expanded]], truth, ["active"], ["expanded"])
        self.leave([[expanded]], truth)
        out = self.low(middle.float() + expanded.float())
        truth = [[(golden, "output", 0)]]
        self.op("ElewiseOperation", [[out]], truth, ["middle", "expanded"], ["out"], add)
        self.finish([[out]], truth)
        return out


class Linear(torch.nn.Module):
    """A projection with a low-rank adapter beside it, in the structure of the usual library for these."""

    def __init__(self, base, size, rank=4):
        super().__init__()
        self.base_layer = base
        self.lora_A = torch.nn.ModuleDict({"default": torch.nn.Linear(base.in_features, rank, bias=False)})
        self.lora_B = torch.nn.ModuleDict({"default": torch.nn.Linear(rank, base.out_features, bias=False)})
        with torch.no_grad():
            for each, columns in ((self.lora_A, base.in_features), (self.lora_B, rank)):
                each["default"].weight.normal_(0, columns**-0.5)
            self.lora_B["default"].weight *= size

    def forward(self, x):
        return self.base_layer(x) + self.lora_B["default"](self.lora_A["default"](x))

    def merged(self):
        """The weight that the whole amounts to."""
        return self.base_layer.weight + self.lora_B["default"].weight @ self.lora_A["default"].weight


def adapt(model, which, size):
    for layer in model.model.layers:
        for name in which:
            block = layer.mlp if name in ("gate_proj", "up_proj", "down_proj") else layer.self_attn
            setattr(block, name, Linear(getattr(block, name), size))


class OptimizedModule(torch.nn.Module):
    """What `torch.compile` makes of a module, as far as hooks see it: nothing inside of it is called."""

    def __init__(self, inner):
        super().__init__()
        self._inner = [inner]

    def forward(self, *arguments, **options):
        return self._inner[0](*arguments, **options)


# What a compiled module puts out is what the last projection in it made.
COMPILED = {".mlp.down_proj": (".mlp", "output"), ".self_attn.o_proj": (".self_attn", "output_0")}


class Unadapted:
    """An adapted model as a library sees it: plain weights under plain names, adapters merged or left out."""

    def __init__(self, model, merge):
        self.config, self._weights = model.config, {}
        for name, module in model.named_modules():
            if isinstance(module, Linear) and merge:
                self._weights[f"{name}.weight"] = module.merged()
        for name, value in model.state_dict().items():
            if "lora_" not in name:
                self._weights.setdefault(name.replace(".base_layer", ""), value)

    def state_dict(self):
        return self._weights


class Mistaken:
    """A model whose weights were loaded for a library with a mistake: `name` got those of `source` in some layers."""

    def __init__(self, model, name, source, layers):
        self.config, self._weights = model.config, dict(model.state_dict())
        for layer in layers:
            for what in ("weight", "bias"):
                at = f"model.layers.{layer}.{{}}.{what}"
                if at.format(source) in self._weights:
                    self._weights[at.format(name)] = self._weights[at.format(source)]

    def state_dict(self):
        return self._weights


class Negated:
    """A model whose embeddings were loaded for a library with the wrong sign: no row of one run is in the other."""

    def __init__(self, model):
        self.config, self._weights = model.config, dict(model.state_dict())
        self._weights["model.embed_tokens.weight"] = -self._weights["model.embed_tokens.weight"]

    def state_dict(self):
        return self._weights


class DataCase(Case):
    """A model run by torch on `lengths` tokens of each sequence, and by the library on the same or on `others`."""

    def __init__(
        self,
        folder,
        *,
        seed=0,
        family="llama",
        layers=2,
        steps=1,
        lengths=(7,),
        names=None,
        sizes=None,
        adapters=None,
        other_prompt=False,
        weights=None,
        compiled=None,
        mistaken=None,
        negated=False,
        library_kind=None,
        recorder=None,
        least=0.97,
        **library,
    ):
        self.folder, self.least = pathlib.Path(folder), least
        is_adapted_alike = (adapters or ("", 0, True))[2]
        is_sound = library.get("fault") is mistaken is None and not negated
        self.is_healthy = is_sound and not other_prompt and is_adapted_alike
        self.is_adapted = adapters is not None
        torch.set_num_threads(1)
        if family == "gpt2":
            model, kind = make_gpt2(layers, seed, **(sizes or {})), Gpt2
        else:
            model, kind = make_model(family, layers, seed, **(sizes or {})), Arranged
        if weights is not None:
            with torch.no_grad():
                for name, parameter in model.named_parameters():
                    weights(name, parameter)
        seen = model
        if adapters is not None:
            which, size, merge = adapters
            adapt(model, which, size)
            seen = Unadapted(model, merge)
        if compiled is not None:
            seen = Unadapted(model, False)
            name, layers_compiled = compiled
            for number in layers_compiled:
                layer = model.model.layers[number]
                setattr(layer, name, OptimizedModule(getattr(layer, name)))
        if mistaken is not None:
            seen = Mistaken(model, *mistaken)
        if negated:
            seen = Negated(model)
        draw = torch.Generator().manual_seed(seed + 1)
        sequences = [torch.randint(1, model.config.vocab_size, (n,), generator=draw) for n in lengths]
        self.recorder = TorchRecorder(model, self.golden, names=Names(names), **(recorder or {}))
        words = generate(model, self.recorder, sequences, steps)
        if other_prompt:
            sequences = [torch.randint(1, model.config.vocab_size, (n,), generator=draw) for n in lengths]
            words = [torch.randint(1, model.config.vocab_size, each.shape, generator=draw) for each in words]
        dtype = library.pop("dtype", "float16")
        if dtype == "w8a8":
            library["quantised"], dtype = True, "float16"
        run = (library_kind or kind)(seen, self.mine, random_names=names, dtype=dtype, **library)
        self.truth = run.run_sequences(sequences, words)

    def _is(self, row, token, module, stem):
        for inner, (outer, output) in COMPILED.items():
            if module.endswith(inner) and stem == "output" and (token, module, stem) not in self.recorder.tensors:
                module, stem = module.removesuffix(inner) + outer, output
        if (token, module, stem) not in self.recorder.tensors and not module.endswith("layernorm"):
            return False
        if super()._is(row, token, module, stem):
            return True
        # Without adapters the library's projection is the base layer by its data, and the whole by its work.
        base = f"{module}.base_layer"
        return self.is_adapted and (token, base, stem) in self.recorder.tensors and super()._is(row, token, base, stem)

    def judge(self, rows):
        wanted, found, wrong = super().judge(rows)
        for row in rows:
            if not row["golden_data_path"] or not row["my_data_path"]:
                continue
            apart = row["relative_euclidean_distance"]
            if self.is_healthy and (not apart or not float(apart) < HEALTHY):
                what = (row["cmp_fail_reason"], apart, row["my_transform"], row["golden_transform"])
                wrong.append(
                    (int(row["token_id"]), row["data_id"], what, row["golden_data_path"], row["pairing_reason"])
                )
        return wanted, found, wrong


def make_gpt2(layers, seed, **changes):
    import transformers

    sizes = dict(vocab_size=97, n_embd=64, n_layer=layers, n_head=4, n_positions=64, attn_implementation="eager")
    torch.manual_seed(seed)
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**{**sizes, **changes})).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("bias"):
                parameter.normal_(0, 0.1)
            elif parameter.dim() == 1:
                parameter.uniform_(0.5, 1.5)
            else:
                parameter.normal_(0, parameter.shape[0 if "c_" in name else -1] ** -0.5)
    return model


# What a fault makes of a tensor, from a trace to destruction.
def _noise(size):
    def spoil(tensor):
        return tensor + size * tensor.std() * torch.randn(tensor.shape, generator=torch.Generator().manual_seed(3))

    return spoil


FAULTS = {
    "a trace": _noise(1e-3),
    "noise": _noise(0.1),
    "much noise": _noise(0.5),
    "scaled": lambda tensor: tensor * 1.1,
    "scaled much": lambda tensor: tensor * 3,
    "negated": lambda tensor: -tensor,
    "overwritten": lambda tensor: _noise(1)(torch.zeros_like(tensor)) + _noise(1)(tensor * 0 + tensor.std()),
    "infinite": lambda tensor: tensor * float("inf"),
    "rows moved": lambda tensor: tensor.roll(1, 0),
    "columns moved": lambda tensor: tensor.roll(1, -1),
}
PLACES = ["norm", "attention", "o", "residual", "norm2", "down"]


def _library(draw, family):
    """A graph of any kind."""
    options = dict(
        dtype=draw.choice(DTYPES),
        nested=draw.random() < 0.7,
        topology=draw.random() < 0.8,
        split_programs=draw.random() < 0.6,
        last_only=draw.random() < 0.6,
    )
    if family == "gpt2":
        options["dtype"] = draw.choice(DTYPES[:3])
        return {**options, "fused_qkv": draw.random() < 0.5}
    fused = draw.random() < 0.5
    gate_up = draw.random() < 0.4
    ranks = draw.choice([1, 1, 2])
    return {
        **options,
        "ranks": ranks,
        "fused_qkv": fused,
        "interleaved": fused and draw.random() < 0.3,
        "fused_gate_up": gate_up,
        "swiglu": gate_up and draw.random() < 0.6,
        "add_norm": draw.random() < 0.3,
        "split_outputs": draw.random() < 0.5,
        "gathered_head": ranks == 2 and draw.random() < 0.5,
    }


def _depth(draw):
    return draw.choice([1, 1, 2, 2, 2, 3, 3, 4, 6, 12, 17] if draw.random() < 0.2 else [1, 2, 2, 3])


def _model(draw):
    family = draw.choice(["llama", "qwen2", "mistral", "gpt2"])
    sizes = {"vocab_size": draw.choice([96, 97, 302])}
    if family == "gpt2":
        sizes["n_embd"], sizes["n_head"] = draw.choice([(64, 4), (48, 4), (32, 2)])
    else:
        sizes["hidden_size"], sizes["num_attention_heads"], sizes["num_key_value_heads"] = draw.choice(
            [(64, 4, 2), (64, 4, 4), (48, 4, 2), (32, 2, 2)]
        )
        sizes["intermediate_size"] = draw.choice([96, 80, 128])
    return dict(seed=draw.randrange(10**6), family=family, layers=_depth(draw), sizes=sizes)


def _drawn(draw):
    model = _model(draw)
    names = None if draw.random() < 0.7 else draw.randrange(10**6)
    options = _library(draw, model["family"])
    if model["sizes"]["vocab_size"] % 2:
        options["gathered_head"] = False
    if model["family"] == "gpt2":
        options.pop("gathered_head", None)
    return dict(**model, names=names, steps=draw.choice([0, 1, 1, 2]), **options)


def _unfuse(options):
    """Projections as golden has them: where data differ, nothing tells in which order a fused one has its parts."""
    if options["family"] == "gpt2":
        options["fused_qkv"] = True
    else:
        options.update(fused_qkv=False, interleaved=False, fused_gate_up=False, swiglu=False)


def ordinary(draw, folder):
    return DataCase(folder, lengths=[draw.randrange(2, 10)], **_drawn(draw))


def batch(draw, folder):
    return DataCase(folder, lengths=[draw.randrange(2, 8)] * draw.choice([2, 3]), **_drawn(draw))


def rows_by_position(draw, folder):
    return DataCase(folder, lengths=[draw.randrange(2, 8)] * draw.choice([2, 3]), rows_by_position=True, **_drawn(draw))


def padded(draw, folder):
    lengths = draw.sample(range(2, 10), draw.choice([2, 3]))
    return DataCase(folder, lengths=lengths, **_drawn(draw))


class Masked(DataCase):
    """Nothing but the mask tells which rows of a padded batch are which of the packed one; types and order tell the
    operations. Every pair can be measured, though nothing is the same."""

    def judge(self, rows):
        wanted, found, wrong = super().judge(rows)
        for row in rows:
            if row["golden_data_path"] and row["my_data_path"] and not row["cosine_similarity"]:
                wrong.append((row["token_id"], row["data_id"], row["golden_data_path"], row["cmp_fail_reason"]))
        return wanted, found, wrong


def masked(draw, folder):
    options = {**_drawn(draw), "names": None, "ranks": 1}
    if options["family"] == "gpt2":
        options.update(_library(draw, "llama"), family="llama", sizes={}, gathered_head=False)
    _unfuse(options)
    return Masked(folder, lengths=draw.sample(range(2, 10), draw.choice([2, 3])), negated=True, least=0.90, **options)


def heads_first(draw, folder):
    return DataCase(folder, lengths=[draw.randrange(2, 8)], heads_first=True, **{**_drawn(draw), "names": None})


def one_token(draw, folder):
    """What turns queries does nothing at the first position, so that data alone cannot tell it from what it turns; its
    table is all ones and zeros, which only types tell from other ones and zeros."""
    return DataCase(folder, lengths=[1], **{**_drawn(draw), "names": None})


def zeros(draw, folder):
    """Biases, or what comes out of a block, are zeros, so that operations have the results of those before them."""
    options = _drawn(draw)
    what = draw.choice(["bias", "o_proj.weight", "down_proj.weight"])

    def weights(name, parameter):
        if name.endswith(what):
            parameter.zero_()

    if what == "bias" and options["family"] != "gpt2":
        options.update(family="qwen2", bias_add=True, fused_qkv=False, interleaved=False)
    options["names"] = None  # nothing but names tell zeros apart
    return DataCase(folder, lengths=[draw.randrange(2, 8)], weights=weights, **options)


def equal_projections(draw, folder):
    """Two projections of a layer have the same results: in both runs, or in the library's by mistake, which has loaded
    one for the other in some layers or in all. Order alone tells them apart, which it does not in a fused one."""
    options = {**_drawn(draw), "names": None}
    if options["family"] == "gpt2":
        options.update(_library(draw, "llama"), family="llama", sizes={}, gathered_head=False)
    _unfuse(options)
    one, other = (
        draw.sample(["k_proj", "v_proj"], 2) if draw.random() < 0.5 else draw.sample(["gate_proj", "up_proj"], 2)
    )
    block = "self_attn" if one in ("k_proj", "v_proj") else "mlp"
    number = options["layers"]
    which = list(range(number)) if draw.random() < 0.5 else [draw.randrange(number)]
    if draw.random() < 0.5:
        places = [f"model.layers.{layer}.{block}" for layer in which]
        first = {}

        def weights(name, parameter):
            """The same for both, in some layers of both runs."""
            place, _, rest = name.rpartition(f"{block}.")
            if place + block in places and rest.startswith((one, other)):
                key = name.replace(other, one)
                parameter.copy_(first.setdefault(key, parameter))

        return DataCase(folder, lengths=[draw.randrange(2, 8)], weights=weights, **options)
    mistake = (f"{block}.{one}", f"{block}.{other}", which)
    return DataCase(
        folder, lengths=[draw.randrange(2, 8)], mistaken=mistake, least=0.97 if min(which) else 0.90, **options
    )


def faulty(draw, folder):
    options = _drawn(draw)
    layer = draw.randrange(options["layers"])
    name = draw.choice(list(FAULTS))
    options["names"] = None  # nothing but names tell the operations of a run apart whose data are all wrong
    if 2 * layer <= options["layers"]:
        _unfuse(options)
    return DataCase(
        folder,
        lengths=[draw.randrange(2, 8)],
        fault=(layer, draw.choice(PLACES), FAULTS[name]),
        least=0.97 if layer else 0.90,
        **options,
    )


def other_prompt(draw, folder):
    """Nothing but types and order tell who corresponds to whom."""
    options = {**_drawn(draw), "names": None}
    _unfuse(options)
    return DataCase(folder, lengths=[draw.randrange(2, 8)], other_prompt=True, **options)


def adapted(draw, folder):
    options = {**_drawn(draw), "names": None}
    if options["family"] == "gpt2":
        options = {**options, "family": "llama", "sizes": {}}
    if options["family"] == "qwen2":
        options["family"] = "llama"  # without biases
    which = draw.choice([["q_proj", "v_proj"], ["q_proj", "k_proj", "v_proj", "o_proj"], ["gate_proj", "down_proj"]])
    merge = draw.random() < 0.5
    if not merge:
        # All data differ that the missing adapters change, but what goes into the projections of the first layer. That
        # this is one of three is enough to tell in which order a fused one has its parts.
        if options["layers"] > 3:
            _unfuse(options)
        options.update(fused_gate_up=False, swiglu=False)
    return DataCase(
        folder,
        lengths=[draw.randrange(2, 8)],
        adapters=(which, draw.choice([0.02, 0.2, 1, 3]), merge),
        least=0.97 if merge else 0.90,
        **options,
    )


class OneOfBatch(Case):
    """A sequence by itself against the same one in a batch that is padded on the left, both of torch."""

    def __init__(self, draw, folder):
        self.folder, self.least = pathlib.Path(folder), 0.97
        torch.set_num_threads(1)
        sizes = {"vocab_size": draw.choice([11, 97])}  # of few words several sequences often have the same
        seed, layers, steps = draw.randrange(10**6), draw.choice([1, 2, 3]), draw.choice([0, 2])
        model = make_model(draw.choice(["llama", "qwen2"]), layers, seed, **sizes)
        sequences = [torch.tensor(draw.choices(range(1, 11), k=n)) for n in draw.sample(range(3, 10), 3)]
        chosen = draw.randrange(3)
        self.recorder = TorchRecorder(model, self.golden)
        words = generate(model, self.recorder, [sequences[chosen]], steps)
        for module in model.modules():
            module._forward_hooks.clear()
            module._forward_pre_hooks.clear()
        batch_words = generate(model, TorchRecorder(model, self.mine, pid=4712), sequences, steps)
        self.is_same = [torch.equal(one[0], many[chosen]) for one, many in zip(words, batch_words)]

    def judge(self, rows):
        wanted, found, wrong = set(), set(), []
        for token, module, stem in self.recorder.tensors:
            fed_the_same = all(self.is_same[:token])
            # Weights of an attention have a column for each token that it sees, padding included.
            is_row = "past_key" not in stem and not (module.endswith("self_attn") and stem == "output_1")
            if stem.startswith("output") and fed_the_same and is_row:
                wanted.add((token, module, stem))
        for row in rows:
            if not row["golden_data_path"] or not row["my_data_path"]:
                continue
            golden, mine = pathlib.Path(row["golden_data_path"]), pathlib.Path(row["my_data_path"])
            key = (int(row["token_id"]), golden.parent.name, golden.stem)
            apart = row["relative_euclidean_distance"]
            if (golden.parent.name, golden.stem) != (mine.parent.name, mine.stem):
                wrong.append((*key, str(mine)))
            elif key in wanted and (not apart or float(apart) > 1e-3):
                wrong.append((*key, row["cmp_fail_reason"], apart))
            elif key in wanted:
                found.add(key)
        return wanted, found, wrong


def one_of_batch(draw, folder):
    return OneOfBatch(draw, folder)


def compiled(draw, folder):
    """Some layers of the torch model are compiled in part, so that hooks see nothing in there."""
    options = {**_drawn(draw), "layers": draw.choice([1, 2, 3])}
    if options["family"] == "gpt2":
        options.update(family="llama", sizes={})
    number = options["layers"]
    which = list(range(number)) if draw.random() < 0.5 else [draw.randrange(number)]
    return DataCase(
        folder, lengths=[draw.randrange(2, 8)], compiled=(draw.choice(["mlp", "self_attn"]), which), **options
    )


def odd_last(draw, folder):
    options = {**_drawn(draw), "layers": draw.choice([3, 6]), "names": None}
    if options["family"] == "gpt2":
        options.update(family="llama", sizes={})
    return DataCase(folder, lengths=[draw.randrange(2, 8)], odd_last=True, **options)


KINDS = {
    "ordinary": ordinary,
    "batch": batch,
    "rows by position": rows_by_position,
    "padded": padded,
    "masked": masked,
    "heads first": heads_first,
    "one token": one_token,
    "zeros": zeros,
    "equal projections": equal_projections,
    "faulty": faulty,
    "other prompt": other_prompt,
    "adapted": adapted,
    "compiled": compiled,
    "odd last layer": odd_last,
    "one of a batch": one_of_batch,
}

if __name__ == "__main__":  # python pairing_data.py KIND SEED FOLDER: makes one case to look at
    import sys

    KINDS[sys.argv[1]](random.Random(int(sys.argv[2])), pathlib.Path(sys.argv[3]))
