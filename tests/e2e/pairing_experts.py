"""Pairs of torch runs with mixtures of experts: each expert works on the tokens that a router gave to it. Libraries do
that in several forms, which all compute the same:

- `modules`: every expert is a module, called with its tokens;
- `eager`: one module for all experts, whose activation is called for one expert after the other;
- `grouped_mm`: its activation is called once, with the rows of all experts, one expert after the other;
- `batched_mm`: once, with the rows of all tokens, one token after the other.

The last three are those of transformers. What corresponds is known from the clean run of my model, as in
pairing_names.py, and by which expert a row of a tensor is of."""

import pathlib
import random

import torch
from ait_llm import DumpConfig, register_hook
from atb_run import ELEWISE
from pairing import read_rows
from pairing_data import Arranged, DataCase
from pairing_names import Watched, rename

EXPERTS = 4
CHOSEN = 2
WIDTH = 32
INNER = 24
VOCABULARY = 50


class Expert(torch.nn.Module):
    def __init__(self, gate_up, down):
        super().__init__()
        gate, up = gate_up.chunk(2)
        self.w1, self.w3, self.w2 = (
            torch.nn.Linear(WIDTH, INNER, bias=False),
            torch.nn.Linear(WIDTH, INNER, bias=False),
            torch.nn.Linear(INNER, WIDTH, bias=False),
        )
        self.act_fn = torch.nn.SiLU()
        for module, weight in ((self.w1, gate), (self.w3, up), (self.w2, down)):
            module.weight = torch.nn.Parameter(weight.detach().clone())

    def forward(self, x):
        return self.w2(self.act_fn(self.w1(x)) * self.w3(x))


class Mixture(torch.nn.Module):
    """Experts as modules, which are called in their order or in the opposite one."""

    def __init__(self, block, backwards):
        super().__init__()
        self.gate, self.backwards = block.gate, backwards
        experts = block.experts
        self.experts = torch.nn.ModuleList(
            Expert(experts.gate_up_proj[i], experts.down_proj[i]) for i in range(EXPERTS)
        )

    def forward(self, hidden):
        shape, hidden = hidden.shape, hidden.reshape(-1, WIDTH)
        _, weights, chosen = self.gate(hidden)
        out = torch.zeros_like(hidden)
        for number in reversed(range(EXPERTS)) if self.backwards else range(EXPERTS):
            tokens, places = torch.where(chosen == number)
            if len(tokens):
                out[tokens] += self.experts[number](hidden[tokens]) * weights[tokens, places, None]
        return out.reshape(shape)


def backwards_experts(self, hidden, chosen, weights):
    """As transformers' own loop does it, from the last expert to the first."""
    out = torch.zeros_like(hidden)
    for number in reversed(range(EXPERTS)):
        tokens, places = torch.where(chosen == number)
        if len(tokens):
            gate, up = torch.nn.functional.linear(hidden[tokens], self.gate_up_proj[number]).chunk(2, -1)
            inner = torch.nn.functional.linear(self.act_fn(gate) * up, self.down_proj[number])
            out.index_add_(0, tokens, inner * weights[tokens, places, None])
    return out


def make(seed, layers, form, backwards=False, is_tied=False):
    import transformers

    torch.manual_seed(seed)
    model = transformers.MixtralForCausalLM(
        transformers.MixtralConfig(
            vocab_size=VOCABULARY,
            hidden_size=WIDTH,
            intermediate_size=INNER,
            num_hidden_layers=layers,
            num_attention_heads=4,
            num_key_value_heads=2,
            num_local_experts=EXPERTS,
            num_experts_per_tok=CHOSEN,
            max_position_embeddings=64,
            attn_implementation="eager",
            experts_implementation="eager" if form == "modules" else form,
        )
    ).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.uniform_(0.5, 1.5)
            else:
                parameter.normal_(0, parameter.shape[-1] ** -0.5)
        for layer in model.model.layers:
            layer.mlp.gate.weight.normal_()  # who is chosen is clear
            if is_tied:
                layer.mlp.gate.weight[1] = layer.mlp.gate.weight[0] * (1 + 1e-5)
    for layer in model.model.layers:
        if form == "modules":
            layer.mlp = Mixture(layer.mlp, backwards)
        elif backwards:
            experts = type(layer.mlp.experts)
            layer.mlp.experts.__class__ = type(experts.__name__, (experts,), {"forward": backwards_experts})
    return model


class Plain(torch.nn.Module):
    """A model that is given words and nothing else."""

    def __init__(self, model):
        super().__init__()
        self.net = model

    def forward(self, words):
        return self.net(input_ids=words, use_cache=False).logits


def in_order(tensor):
    """Rows of experts may lie in any order."""
    matrix = tensor.flatten(0, -2)
    return matrix[matrix[:, 0].argsort()]


def is_routed(name):
    return ".experts." in name or ".xexperts." in name


class ExpertCase:
    """`forms` are golden's and mine. Truth are the outputs of my model without its fault, which are golden's."""

    def __init__(self, folder, draw, forms, *, fault=None, renamed=False, backwards=False):
        self.folder, self.least = pathlib.Path(folder), 0.97
        self.golden, self.mine = self.folder / "golden", self.folder / "mine"
        self.fault = fault  # (layer, "gate" or the number of an expert)
        torch.set_num_threads(1)
        seed, layers = draw.randrange(1 << 20), draw.randint(1, 3)
        if fault is not None:
            fault = self.fault = (draw.randrange(layers), fault)
            self.least = 0.97 if fault[0] else 0.90
        generator = torch.Generator().manual_seed(seed + 1)
        rounds = [
            torch.randint(0, VOCABULARY, (1, length), generator=generator) for length in (draw.randint(5, 9), 1, 1)
        ]
        # A module for each expert can be told by its rows. What one run does for one expert after the other, and the
        # other one for all at once, from the last to the first, or for other experts, cannot.
        in_calls = [form == "eager" for form in forms]
        has_modules = [form == "modules" for form in forms]
        is_other_router = fault is not None and fault[1] == "gate"
        is_other_call = in_calls[1] and (backwards or is_other_router)
        self.are_alike = has_modules[0] == has_modules[1] and in_calls[0] == in_calls[1] and not is_other_call
        # Where the only router gives tokens to other experts, their data differ, too: nothing but a name tells which
        # expert is which, and a number alone is no name, as experts may be numbered otherwise.
        self.are_alike &= not (renamed and is_other_router and layers == 1)

        is_tied = fault is not None and fault[1] == "tie"

        def mine(fault):
            model = Plain(make(seed, layers, forms[1], backwards, is_tied))
            if fault is not None:
                self._spoil(model.net.model.layers[fault[0]].mlp, fault[1])
            names = (
                "net model layers mlp gate experts w1 w2 w3 act_fn self_attn q_proj k_proj v_proj o_proj norm lm_head "
            )
            names += "input_layernorm post_attention_layernorm embed_tokens rotary_emb"
            return rename(model, {name: f"x{name}" for name in names.split()}) if renamed else model

        self._record(Plain(make(seed, layers, forms[0], is_tied=is_tied)), self.golden, rounds)
        self._record(mine(fault), self.mine, rounds)
        watched = Watched(clean := mine(None))
        self._run(clean, rounds)
        self.clean = watched.tensors

    @staticmethod
    def _spoil(block, what):
        with torch.no_grad():
            if what == "gate":  # other experts are chosen
                block.gate.weight.mul_(-1)
            elif what == "tie":  # the same are chosen in another order
                block.gate.weight[:2] = block.gate.weight[:2].flip(0).clone()
            elif isinstance(block.experts, torch.nn.ModuleList):
                block.experts[what].w2.weight.mul_(1.5)
            else:
                block.experts.down_proj[what].mul_(1.5)

    @staticmethod
    def _run(model, rounds):
        with torch.no_grad():
            for words in rounds:
                model(words)

    def _record(self, model, folder, rounds):
        handle = register_hook(model, DumpConfig(str(folder), token_range=list(range(len(rounds)))))
        self._run(model, rounds)
        handle.remove()

    def compare(self, ait, *arguments):
        out = self.folder / "out"
        done = ait("llm", "compare", "-gp", self.golden, "-mp", self.mine, "-o", out, "--extended", *arguments)
        assert done.returncode == 0, done.stderr
        return done, read_rows(out)

    def _is(self, golden, mine, name):
        if golden.shape[-1:] != mine.shape[-1:] or golden.numel() != mine.numel() or golden.dtype != mine.dtype:
            return False
        if not mine.is_floating_point():
            return torch.equal(golden.flatten(), mine.flatten())
        if is_routed(name):
            golden, mine = in_order(golden), in_order(mine)
        return torch.allclose(golden.flatten(), mine.flatten(), atol=1e-4)

    def judge(self, rows):
        goldens = {}
        for path in sorted(self.golden.rglob("output*.pth")):
            goldens.setdefault(int(path.parts[-3]), []).append(torch.load(path))
        wanted, found, wrong = set(), set(), []
        for (token, operation, stem), tensor in self.clean.items():
            if not stem.startswith("output") or (is_routed(operation) and not self.are_alike):
                continue
            was_run = (*next(iter(self.mine.rglob("torch_tensors"))).glob(f"*/{token}/{operation}/{stem}.pth"),)
            if was_run and any(self._is(golden, tensor, operation) for golden in goldens[token]):
                wanted.add((token, operation, stem))
        for row in rows:
            if not row["golden_data_path"] or not row["my_data_path"]:
                continue
            path = pathlib.Path(row["my_data_path"])
            key = (int(path.parts[-3]), row["my_operation"], path.stem)
            golden = torch.load(row["golden_data_path"])
            if key not in self.clean or not self._is(golden, self.clean[key], key[1]):
                wrong.append((*key, row["golden_data_path"], row["pairing_reason"]))
                continue
            found.add(key)
            # Before the fault, and where the router of its layer chose others, what both have is the same.
            apart = row["relative_euclidean_distance"]
            layer = self._layer_of(key[1])
            is_before = self.fault is None or (layer is not None and layer < self.fault[0])
            is_before |= self.fault is not None and (layer, "tie") == self.fault and is_routed(key[1])
            is_before |= self.fault is not None and (layer, "gate") == self.fault and key[1].endswith("act_fn")
            if is_before and apart and float(apart) > 1e-3:
                wrong.append((*key, apart, row["pairing_reason"], row["cmp_fail_reason"]))
        return wanted, found, wrong

    @staticmethod
    def _layer_of(name):
        parts = name.split(".")
        at = next((i for i, part in enumerate(parts) if part in ("layers", "xlayers")), None)
        return None if at is None else int(parts[at + 1])


def experts(draw, folder):
    """The same form twice, another one, other names, another order; an expert or a router may be at fault."""
    form = draw.choice(["modules", "eager", "grouped_mm", "batched_mm"])
    how = draw.choice(["same", "same", "other form", "renamed", "backwards", "renamed and backwards"])
    other = draw.choice(["modules", "eager", "grouped_mm", "batched_mm"]) if how == "other form" else form
    fault = draw.choice([None, None, "gate", draw.randrange(EXPERTS)])
    backwards = "backwards" in how and other in ("modules", "eager")
    return ExpertCase(folder, draw, (form, other), fault=fault, renamed="renamed" in how, backwards=backwards)


def tied_experts(draw, folder):
    """Two experts are nearly tied, and chosen in another order by the other run: rows may lie in that order."""
    form = draw.choice(["modules", "eager", "grouped_mm", "batched_mm"])
    return ExpertCase(folder, draw, (form, form), fault="tie", renamed=draw.random() < 0.3)


class MixtureLibrary(Arranged):
    """What a library makes of a mixture: the rows of all experts in one operation, one expert after the other."""

    def feed_forward(self, layer, after):
        name, golden = f"model.layers.{layer}.mlp", f"root.model.layers.{layer}.mlp"
        count = self.config.num_experts_per_tok
        self.enter("Moe")
        logits = self.linear(after, self.weights[f"{name}.gate.weight"])
        self.op("LinearOperation", [[logits]], [[(f"{golden}.gate", "output_0", 0)]], ["after"], ["logits"])
        weights, chosen = logits.float().softmax(-1).topk(count, -1)
        weights = self.low(weights / weights.sum(-1, keepdim=True))
        truth = [[(f"{golden}.gate", "output_1", 0)], [(f"{golden}.gate", "output_2", 0)]]
        self.op("MoeTopkOperation", [[weights], [chosen.int()]], truth, ["logits"], ["weights", "chosen"])
        numbers, order = chosen.flatten().sort()
        rows = after[order // count]
        self.op("MoeGatherOperation", [[rows]], [None], ["after", "chosen"], ["rows"])
        gate_up, down = self.weights[f"{name}.experts.gate_up_proj"], self.weights[f"{name}.experts.down_proj"]
        each = [self.linear(rows[i : i + 1], gate_up[expert]) for i, expert in enumerate(numbers)]
        both = torch.cat(each)
        truth = [[(f"{golden}.experts.act_fn", "input_0", 0)]]
        self.op("GroupedLinearOperation", [[both]], truth, ["rows"], ["both"])
        gate, up = both.chunk(2, -1)
        active = self.low(torch.nn.functional.silu(gate.float()))
        truth = [[(f"{golden}.experts.act_fn", "output", 0)]]
        self.op("ActivationOperation", [[active]], truth, ["both"], ["active"])
        inner = self.low(active.float() * up.float())
        self.op("ElewiseOperation", [[inner]], [None], ["active", "both"], ["inner"], {"elewiseType": ELEWISE["mul"]})
        out = torch.cat([self.linear(inner[i : i + 1], down[expert]) for i, expert in enumerate(numbers)])
        self.op("GroupedLinearOperation", [[out]], [None], ["inner"], ["out"])
        sums = torch.zeros(after.shape).index_add_(
            0, order // count, out.float() * weights.flatten()[order, None].float()
        )
        truth = [[(f"{golden}.experts", "output", 0)]]
        self.op("MoeFinalizeOperation", [[self.low(sums)]], truth, ["out", "weights"], ["expanded"])
        self.leave([[self.low(sums)]], [[(golden, "output", 0)]])
        return self.low(sums)


class LibraryCase(DataCase):
    """Rows of all experts correspond where torch computed them at once, too."""

    def __init__(self, *arguments, form, **options):
        self.form = form
        super().__init__(*arguments, **options)

    def _is(self, row, token, module, stem):
        if not is_routed(module):
            return super()._is(row, token, module, stem)
        path = pathlib.Path(row["golden_data_path"])
        have, want = (self.recorder.tensors[token, name, stem] for name in (path.parent.name, module))
        return (path.parent.name, path.stem) == (module, stem) and have.shape == want.shape

    def judge(self, rows):
        wanted, found, wrong = super().judge(rows)
        if self.form != "grouped_mm":  # torch has these rows in several calls, or by token
            wanted = {each for each in wanted if "Activation" not in each[1] and "GroupedLinear" not in each[1]}
        return wanted, found, wrong


def experts_of_a_library(draw, folder):
    form = draw.choice(["eager", "grouped_mm", "batched_mm"])
    sizes = dict(num_local_experts=EXPERTS, num_experts_per_tok=CHOSEN, experts_implementation=form)
    return LibraryCase(
        folder,
        form=form,
        family="mixtral",
        library_kind=MixtureLibrary,
        seed=draw.randrange(10**6),
        layers=draw.choice([1, 2, 3]),
        lengths=[draw.randrange(2, 10)],
        steps=draw.choice([0, 1, 2]),
        sizes=sizes,
        dtype="float32",  # in others a router may choose other experts
        nested=draw.random() < 0.7,
        topology=draw.random() < 0.8,
        split_programs=draw.random() < 0.6,
        fused_qkv=draw.random() < 0.3,
    )


KINDS = {"experts": experts, "tied experts": tied_experts, "experts of a library": experts_of_a_library}


if __name__ == "__main__":  # one case by hand: pairing_experts.py SEED FOLDER
    import sys

    experts(random.Random(f"experts/{sys.argv[1]}"), pathlib.Path(sys.argv[2]))
