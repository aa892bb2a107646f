"""What an acceleration library makes of a transformers model: the same computation operation by operation, in the
graphs, fusions, shards and number formats such libraries use, written as their dump. Who corresponds to which tensor
of the torch run is known by construction."""

import json
import pathlib
import random
import string

import ml_dtypes
import numpy as np
import torch

CODES = {"float32": 0, "float16": 1, "int8": 2, "int32": 3, "int64": 9, "bfloat16": 27}
ELEWISE = {"add": 8, "mul": 9, "quant": 19}


def write_bin(path, tensor):
    dtype = str(tensor.dtype).replace("torch.", "")
    if dtype == "bfloat16":
        payload = tensor.float().numpy().astype(ml_dtypes.bfloat16).tobytes()
    else:
        payload = np.ascontiguousarray(tensor.numpy()).tobytes()
    dims = ",".join(str(size) for size in tensor.shape)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(
        f"$Version=1.0\n$Object.Count=1\n$Object.Length={len(payload)}\nformat=2\ndtype={CODES[dtype]}\n"
        f"dims={dims}\n$Object.data=0,{len(payload)}\n$End=1\n".encode()
        + payload
    )


class Truth:
    """Golden tensors that an output of the library is, each with the column at which it begins. None: no partner."""

    def __init__(self):
        self.of = {}  # (token, operation path, output) -> [(module, stem, first column)]


class Library:
    """One run. Options choose what kinds of graphs it has."""

    def __init__(
        self,
        model,
        root,
        *,
        dtype="float16",
        ranks=1,
        fused_qkv=False,
        fused_gate_up=False,
        add_norm=False,
        nested=True,
        swiglu=False,
        quantised=False,
        topology=True,
        split_programs=True,
        random_names=None,
        last_only=True,
        old_rank_names=False,
        inputs=False,
        fault=None,
        warm_up=0,
        split_outputs=True,
        suffix="",
        shared_embedding=False,
        gathered_head=False,
        bias_add=False,
        interleaved=False,
        pid=900,
    ):
        self.model, self.config, self.dtype = model, model.config, getattr(torch, dtype)
        self.ranks, self.fused_qkv, self.fused_gate_up, self.add_norm = ranks, fused_qkv, fused_gate_up, add_norm
        self.nested, self.swiglu, self.quantised, self.topology = nested, swiglu, quantised, topology
        self.split_programs, self.last_only, self.inputs, self.fault = split_programs, last_only, inputs, fault
        self.warm_up, self.split_outputs, self.suffix = warm_up, split_outputs, suffix
        self.shared_embedding, self.gathered_head = shared_embedding, gathered_head
        self.bias_add, self.interleaved = bias_add, interleaved
        self.random = None if random_names is None else random.Random(random_names)
        self.known_names = {}
        self.root, self.pid, self.old = pathlib.Path(root), pid, old_rank_names
        self.truth = Truth()
        self.weights = {k: v.detach().float().to(self.dtype).float() for k, v in model.state_dict().items()}
        layers = self.config.num_hidden_layers
        self.ids = {}
        for phase in ["prefill", "decode"] if split_programs else ["both"]:
            for part in ["embed", "position", *range(layers), "norm", "head"]:
                shared = shared_embedding and part in ("embed", "position")
                self.ids.setdefault(("shared" if shared else phase, part), len(self.ids))
        self.rounds = {}
        self.graphs = {}
        self.model_nodes = {}

    # Writing

    def name(self, word):
        if self.random is None:
            return word
        if word not in self.known_names:
            self.known_names[word] = "".join(self.random.choices(string.ascii_letters, k=8))
        return self.known_names[word]

    def rank_folder(self, rank):
        name = f"{self.pid + rank}_{rank}" if self.old else f"{rank}_{self.pid + rank}"
        return self.root / "tensors" / name

    def begin(self, phase, part, kind):
        shared = self.shared_embedding and part in ("embed", "position")
        key = ("shared" if shared else phase if self.split_programs else "both", part)
        number = self.ids[key]
        self.round = self.rounds.get(key, 0)
        self.rounds[key] = self.round + 1
        self.path = [f"{number}_{self.name(kind)}"]
        self.counts = [0]
        self.top = number
        self.node_path = [
            self.graphs.setdefault(
                number, {"opName": f"{self.name(kind)}_{number}", "opType": self.name(kind), "nodes": []}
            )
        ]
        self.first_time = self.round == 0
        self.written = []

    def enter(self, kind):
        if not self.nested:
            return
        index = self.counts[-1]
        self.counts[-1] += 1
        self.path.append(f"{index}_{self.name(kind)}")
        self.counts.append(0)
        node = {"opName": f"{self.name(kind)}_{self.text_ids()}", "opType": self.name(kind), "param": "", "nodes": []}
        if self.first_time:
            self.node_path[-1]["nodes"].append(node)
        self.node_path.append(node)

    def leave(self, outputs, truth):
        if not self.nested:
            return
        self.save(self.path, outputs, truth)
        self.node_path[-1]["outTensors"] = list(self.last_names)[: len(outputs)]
        self.path.pop()
        self.counts.pop()
        self.node_path.pop()

    def finish(self, outputs, truth):
        """The top-level graph's own outputs: what its last operations wrote."""
        self.save(self.path, outputs, truth)
        if self.written:
            self.node_path[0]["outTensors"] = self.written[-len(outputs) :]

    def text_ids(self):
        return "_".join(part.split("_", 1)[0] for part in self.path)

    def save(self, path, outputs, truth):
        folder = "/".join(path)
        for index in range(len(outputs)):
            if self.warming:
                continue
            self.truth.of[self.token, folder, index] = truth[index] if truth else None
        for index, shards in enumerate(outputs):
            for rank in range(self.ranks):
                file = f"outtensor{index}{self.suffix}.bin"
                write_bin(self.rank_folder(rank) / str(self.round) / folder / "after" / file, shards[rank])

    def op(self, kind, outputs, truth=None, reads=(), writes=(), param=None, inputs=()):
        """One operation. `outputs` are lists of one tensor for each rank; `truth` one entry for each output."""
        index = self.counts[-1]
        self.counts[-1] += 1
        path = [*self.path, f"{index}_{self.name(kind)}"]
        self.save(path, outputs, truth)
        if self.inputs:
            for number, shards in enumerate(inputs):
                for rank in range(self.ranks):
                    target = self.rank_folder(rank) / str(self.round) / "/".join(path) / "after"
                    write_bin(target / f"intensor{number}.bin", shards[rank])
        self.last_names = [f"t{self.top}_{name}" for name in writes]
        self.written += self.last_names
        if self.first_time:
            ids = self.text_ids() + f"_{index}"
            self.node_path[-1]["nodes"].append(
                {
                    "opName": f"{self.name(kind)}_{ids}",
                    "opType": self.name(kind),
                    "param": param or {},
                    "inTensors": [f"t{self.top}_{name}" for name in reads],
                    "outTensors": self.last_names,
                }
            )
        return outputs

    def write_topology(self):
        if not self.topology:
            return
        for rank in range(self.ranks):
            folder = self.root / "model" / str(self.pid + rank)
            folder.mkdir(parents=True, exist_ok=True)
            for phase in ["prefill", "decode"] if self.split_programs else ["both"]:
                nodes = [
                    self.graphs[number]
                    for (p, part), number in self.ids.items()
                    if p == phase and number in self.graphs
                ]
                (folder / f"{phase}.json").write_text(json.dumps({"modelName": self.name(phase), "nodes": nodes}))

    # Computing

    def low(self, tensor):
        return tensor.float().to(self.dtype)

    def same(self, tensor):
        return [tensor] * self.ranks

    def cut(self, weight, rank, dim):
        return weight.chunk(self.ranks, dim)[rank]

    def linear(self, x, weight, bias=None):
        """Rounded as a device would."""
        x = x.float()
        if self.quantised and weight.shape[0] != self.config.vocab_size:
            scale_x = x.abs().amax(-1, keepdim=True).clamp_min(1e-8) / 127
            scale_w = weight.abs().amax(-1, keepdim=True).clamp_min(1e-8) / 127
            out = ((x / scale_x).round() @ (weight / scale_w).round().T) * scale_x * scale_w.T
        else:
            out = x @ weight.T
        return self.low(out + (0 if bias is None else bias))

    def quant(self, x, reads):
        if not self.quantised:
            return
        scales = [each.float().abs().amax(-1, keepdim=True).clamp_min(1e-8) / 127 for each in x]
        ints = [(each.float() / scale).round().to(torch.int8) for each, scale in zip(x, scales)]
        self.op(
            "ElewiseOperation",
            [ints, [self.low(s) for s in scales]],
            [None, None],
            [reads],
            [reads + ".q", reads + ".s"],
            {"elewiseType": ELEWISE["quant"]},
        )

    def norm(self, x, weight):
        x = x.float()
        return self.low(x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.config.rms_norm_eps) * weight)

    def rotate(self, x, cos, sin, heads):
        n = x.shape[0]
        x = x.float().reshape(n, heads, -1)
        half = x.shape[-1] // 2
        turned = torch.cat([-x[..., half:], x[..., :half]], -1)
        return self.low((x * cos.float()[:, None] + turned * sin.float()[:, None]).reshape(n, -1))

    def attend(self, q, k, v, sequences, lengths, heads, kv_heads):
        """Over each sequence for itself; `lengths` new tokens at the end of each cached sequence."""
        size = q.shape[-1] // heads
        out, at = [], 0
        for (keys, values), new in zip(sequences, lengths):
            queries = q[at : at + new].float().reshape(new, heads, size).transpose(0, 1)
            grown = lambda t: (
                t.float().reshape(-1, kv_heads, size).transpose(0, 1).repeat_interleave(heads // kv_heads, 0)
            )
            scores = queries @ grown(keys).transpose(1, 2) / size**0.5
            total = keys.shape[0]
            mask = torch.ones(new, total).tril(total - new)
            weights = scores.masked_fill(mask == 0, float("-inf")).softmax(-1)
            out.append((weights @ grown(values)).transpose(0, 1).reshape(new, -1))
            at += new
        return self.low(torch.cat(out))

    def run(self, prompt, words, token_offset=0):
        """The prompt and the words that followed, as the torch run had them."""
        batch, _length = prompt.shape
        self.warming = False
        for _ in range(self.warm_up):
            self.warming, self.token = True, -1
            self.caches = None
            self.step("prefill", torch.ones(batch, 3, dtype=torch.long), [3] * batch, 0)
        self.warming = False
        self.caches, position = None, 0
        given = prompt
        for token in range(len(words)):
            self.token = token + token_offset
            self.step("prefill" if token == 0 else "decode", given, [given.shape[1]] * batch, position)
            position += given.shape[1]
            given = words[token]
        self.write_topology()
        return self.truth

    def step(self, phase, ids, lengths, position):
        c = self.config
        head_size = getattr(c, "head_dim", None) or c.hidden_size // c.num_attention_heads
        if self.caches is None:
            self.caches = [[[None] * len(lengths) for _ in range(self.ranks)] for _ in range(c.num_hidden_layers)]
        flat = ids.reshape(-1)
        self.begin(phase, "embed", "WordEmbedding")
        hidden = self.low(self.weights["model.embed_tokens.weight"][flat])
        truth = [[("root.model.embed_tokens", "output", 0)]]
        given = [self.same(self.low(self.weights["model.embed_tokens.weight"])), self.same(flat)]
        self.op("GatherOperation", [self.same(hidden)], truth, ["table", "ids"], ["hidden"], inputs=given)
        self.finish([self.same(hidden)], truth)

        self.begin(phase, "position", "PositionEmbedding")
        theta = (getattr(c, "rope_parameters", None) or {}).get("rope_theta", 10000.0)
        inverse = 1.0 / theta ** (torch.arange(0, head_size, 2).float() / head_size)
        starts = position if isinstance(position, list) else [position] * len(lengths)
        places = torch.cat([torch.arange(first, first + n) for first, n in zip(starts, lengths)]).float()
        angles = torch.cat([places[:, None] * inverse, places[:, None] * inverse], -1)
        cos, sin = self.low(angles.cos()), self.low(angles.sin())
        table = ([[("root.model.rotary_emb", "output_0", 0)]], [[("root.model.rotary_emb", "output_1", 0)]])
        given = [self.same(angles), self.same(places.long())]
        self.op("GatherOperation", [self.same(cos)], table[0], ["cos_table"], ["cos"], inputs=given)
        self.op("GatherOperation", [self.same(sin)], table[1], ["sin_table"], ["sin"], inputs=given)
        self.finish([self.same(cos), self.same(sin)], [table[0][0], table[1][0]])

        for layer in range(c.num_hidden_layers):
            hidden = self.layer(phase, layer, hidden, cos, sin, lengths, head_size)

        self.begin(phase, "norm", "RmsNormOperation")
        normed = self.norm(hidden, self.weights["model.norm.weight"])
        self.finish([self.same(normed)], [[("root.model.norm", "output", 0)]])

        self.begin(phase, "head", "LmHead")
        rows = normed
        if self.last_only and (phase == "prefill" or not self.split_programs):
            rows = normed[torch.tensor(lengths).cumsum(0) - 1]
            self.op(
                "GatherOperation", [self.same(rows)], [[("root.model.norm", "output", 0)]], ["hidden", "rows"], ["last"]
            )
        self.head(rows, self.weights.get("lm_head.weight", self.weights["model.embed_tokens.weight"]))

    def head(self, rows, weight):
        logits, truth = self.linear(rows, weight), [[("root.lm_head", "output", 0)]]
        if self.gathered_head:
            parts = list(logits.chunk(self.ranks, -1))
            self.op("LinearOperation", [parts], truth, ["last"], ["part"])
            gathered = torch.stack(parts)
            self.op("AllGatherOperation", [self.same(gathered)], truth, ["part"], ["gathered"])
            self.op("TransposeOperation", [self.same(gathered.transpose(0, 1))], truth, ["gathered"], ["logits"])
        else:
            self.op("LinearOperation", [self.same(logits)], truth, ["last"], ["logits"])
        self.finish([self.same(logits)], truth)

    def faulty(self, layer, op, tensor):
        if self.fault is None or self.fault[:2] != (layer, op):
            return tensor
        return self.low(self.fault[2](tensor.float()))

    def layer(self, phase, layer, hidden, cos, sin, lengths, head_size):
        c, R = self.config, self.ranks
        w = lambda name: self.weights[f"model.layers.{layer}.{name}"]
        b = lambda name: self.weights.get(f"model.layers.{layer}.{name}")
        torch_name = f"root.model.layers.{layer}"
        heads, kv_heads = c.num_attention_heads // R, c.num_key_value_heads // R
        self.begin(
            phase,
            layer,
            "Layer" if not self.split_programs else "Prefill_layer" if phase == "prefill" else "Decoder_layer",
        )
        normed = self.faulty(layer, "norm", self.norm(hidden, w("input_layernorm.weight")))
        self.op(
            "RmsNormOperation",
            [self.same(normed)],
            [[(f"{torch_name}.input_layernorm", "output", 0)]],
            ["hidden"],
            ["normed"],
        )

        self.enter("Attention")
        self.quant(self.same(normed), "normed")
        parts = {}
        for name in ("q", "k", "v"):
            weight, bias = w(f"self_attn.{name}_proj.weight"), b(f"self_attn.{name}_proj.bias")
            parts[name] = [
                self.linear(normed, self.cut(weight, r, 0), None if bias is None else self.cut(bias, r, 0))
                for r in range(R)
            ]
            parts[name] = [self.faulty(layer, name, each) for each in parts[name]]
        modules = {name: f"{torch_name}.self_attn.{name}_proj" for name in parts}
        if self.fused_qkv:
            # One group of columns, or one for each head of keys: its queries, its keys, its values.
            groups = kv_heads if self.interleaved else 1
            cut = {n: [each.reshape(each.shape[0], groups, -1) for each in parts[n]] for n in parts}
            fused = [torch.cat([cut[n][r] for n in ("q", "k", "v")], -1).flatten(1) for r in range(R)]
            starts = np.cumsum([0, *(cut[n][0].shape[-1] for n in ("q", "k"))])
            self.op(
                "LinearOperation",
                [fused],
                [[(modules[n], "output", int(s)) for n, s in zip(("q", "k", "v"), starts)]],
                ["normed"],
                ["qkv"],
            )
            if self.split_outputs:
                self.op(
                    "SplitOperation",
                    [parts[n] for n in ("q", "k", "v")],
                    [[(modules[n], "output", 0)] for n in ("q", "k", "v")],
                    ["qkv"],
                    ["q", "k", "v"],
                )
        else:
            for name in ("q", "k", "v"):
                truth = [[(modules[name], "output", 0)]]
                self.op("LinearOperation", [parts[name]], truth, ["normed"], [name])
                if self.bias_add:  # of zeros: the result is what it was before
                    add = {"elewiseType": ELEWISE["add"]}
                    self.op("ElewiseOperation", [parts[name]], truth, [name], [name + ".biased"], add)
        q = [self.rotate(parts["q"][r], cos, sin, heads) for r in range(R)]
        k = [self.rotate(parts["k"][r], cos, sin, kv_heads) for r in range(R)]
        self.op("RopeOperation", [q, k], [None, None], ["q", "k", "cos", "sin"], ["q.rope", "k.rope"])
        context = []
        for r in range(R):
            at = 0
            for s, new in enumerate(lengths):
                old = self.caches[layer][r][s]
                fresh = (k[r][at : at + new], parts["v"][r][at : at + new])
                self.caches[layer][r][s] = fresh if old is None else tuple(torch.cat(pair) for pair in zip(old, fresh))
                at += new
            context.append(
                self.faulty(
                    layer,
                    "attention",
                    self.attend(q[r], k[r], parts["v"][r], self.caches[layer][r], lengths, heads, kv_heads),
                )
            )
        shaped = [each.reshape(each.shape[0], heads, -1) for each in context]
        self.op(
            "SelfAttentionOperation" if phase == "prefill" or not self.split_programs else "PagedAttentionOperation",
            [shaped],
            [[(f"{torch_name}.self_attn.o_proj", "input_0", 0)]],
            ["q.rope", "k.rope", "v"],
            ["context"],
        )
        self.quant(context, "context")
        attended = self.reduced(
            context, w("self_attn.o_proj.weight"), f"{torch_name}.self_attn.o_proj", "context", "attended"
        )
        attended = self.faulty(layer, "o", attended)
        self.leave([self.same(attended)], [[(f"{torch_name}.self_attn.o_proj", "output", 0)]])

        middle = self.faulty(layer, "residual", self.low(hidden.float() + attended.float()))
        middle_truth = [(f"{torch_name}.post_attention_layernorm", "input_0", 0)]
        after = self.faulty(layer, "norm2", self.norm(middle, w("post_attention_layernorm.weight")))
        after_truth = [(f"{torch_name}.post_attention_layernorm", "output", 0)]
        if self.add_norm:
            self.op(
                "RmsNormOperation",
                [self.same(after), self.same(middle)],
                [after_truth, middle_truth],
                ["attended", "hidden"],
                ["after", "middle"],
            )
        else:
            self.op(
                "ElewiseOperation",
                [self.same(middle)],
                [middle_truth],
                ["hidden", "attended"],
                ["middle"],
                {"elewiseType": ELEWISE["add"]},
            )
            self.op("RmsNormOperation", [self.same(after)], [after_truth], ["middle"], ["after"])

        expanded = self.feed_forward(layer, after)
        out = self.low(middle.float() + expanded.float())
        out_truth = [[(torch_name, "output", 0)]]
        self.op(
            "ElewiseOperation",
            [self.same(out)],
            out_truth,
            ["middle", "expanded"],
            ["out"],
            {"elewiseType": ELEWISE["add"]},
        )
        self.finish([self.same(out)], out_truth)
        return out

    def feed_forward(self, layer, after):
        R, torch_name = self.ranks, f"root.model.layers.{layer}"
        w = lambda name: self.weights[f"model.layers.{layer}.{name}"]
        self.enter("Mlp")
        self.quant(self.same(after), "after")
        gate = [self.linear(after, self.cut(w("mlp.gate_proj.weight"), r, 0)) for r in range(R)]
        up = [self.linear(after, self.cut(w("mlp.up_proj.weight"), r, 0)) for r in range(R)]
        names = {n: f"{torch_name}.mlp.{n}_proj" for n in ("gate", "up", "down")}
        if self.fused_gate_up:
            both = [torch.cat([gate[r], up[r]], -1) for r in range(R)]
            self.op(
                "LinearOperation",
                [both],
                [[(names["gate"], "output", 0), (names["up"], "output", gate[0].shape[-1])]],
                ["after"],
                ["gate_up"],
            )
            if not self.swiglu and self.split_outputs:
                self.op(
                    "SplitOperation",
                    [gate, up],
                    [[(names["gate"], "output", 0)], [(names["up"], "output", 0)]],
                    ["gate_up"],
                    ["gate", "up"],
                )
        else:
            self.op("LinearOperation", [gate], [[(names["gate"], "output", 0)]], ["after"], ["gate"])
            self.op("LinearOperation", [up], [[(names["up"], "output", 0)]], ["after"], ["up"])
        active = [self.low(torch.nn.functional.silu(each.float())) for each in gate]
        inner = [self.low(a.float() * u.float()) for a, u in zip(active, up)]
        inner_truth = [(names["down"], "input_0", 0)]
        if self.swiglu:
            self.op("ActivationOperation", [inner], [inner_truth], ["gate_up"], ["inner"], {"activationType": 8})
        else:
            self.op(
                "ActivationOperation",
                [active],
                [[(f"{torch_name}.mlp.act_fn", "output", 0)]],
                ["gate"],
                ["active"],
                {"activationType": 4},
            )
            self.op(
                "ElewiseOperation", [inner], [inner_truth], ["active", "up"], ["inner"], {"elewiseType": ELEWISE["mul"]}
            )
        self.quant(inner, "inner")
        expanded = self.reduced(inner, w("mlp.down_proj.weight"), names["down"], "inner", "expanded")
        expanded = self.faulty(layer, "down", expanded)
        self.leave([self.same(expanded)], [[(names["down"], "output", 0)]])
        return expanded

    def reduced(self, x, weight, module, reads, writes):
        """A product whose ranks hold partial sums, and what adds them up."""
        if self.ranks == 1:
            whole = self.linear(x[0], weight)
            self.op("LinearOperation", [[whole]], [[(module, "output", 0)]], [reads], [writes])
            return whole
        parts = [self.linear(x[r], self.cut(weight, r, 1)) for r in range(self.ranks)]
        self.op("LinearOperation", [parts], [[(module, "output", 0)]], [reads], [writes + ".part"])
        whole = self.low(sum(part.float() for part in parts))
        self.op("AllReduceOperation", [self.same(whole)], [[(module, "output", 0)]], [writes + ".part"], [writes])
        return whole
