"""FX and GE dumps of TorchAir, made from one FX graph: nothing of ait, no NPU.

    run = GraphRun(block, [prompt, word, word])         # executes an FX graph node by node
    write_fx([[run]], root, "A")                        # as TorchAir's FX mode would
    write_ge([[run]], root, "A", fused=True)            # as GE would, with an operation for each node

Lists are of ranks, and of graphs on a rank.
"""

import collections
import pathlib
import sys

import numpy as np
import torch
from torch.fx.experimental.proxy_tensor import make_fx

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
import ge_files

SESSION = "20240125031118"
FIRST_MICROSECOND = 1706152278000000


def weights(seed=0, width=32):
    generator = torch.Generator().manual_seed(seed)
    names = ("q", "k", "v", "o", "up", "gate", "down")
    return {name: torch.randn(width, width, generator=generator) / width**0.5 for name in names}


def block(x, w):
    """A layer of a transformer, written so that its graph has lists, several outputs and chains of small steps."""
    h = x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5)
    q, k = torch.split(torch.cat([h @ w["q"], h @ w["k"]], dim=-1), w["q"].shape[1], dim=-1)
    scores = torch.softmax((q @ k.t()) * 0.25, dim=-1)
    x = x + (scores @ (h @ w["v"])) @ w["o"]
    y = torch.nn.functional.silu(x @ w["gate"]) * (x @ w["up"])
    return x + torch.tanh((y @ w["down"]) * 0.5) * 2.0


def two_blocks(x, w):
    return block(block(x, w), w)


def is_dumped(node):
    return node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload)


class Call:
    """One node in one execution."""

    def __init__(self, node, args, result):
        self.node, self.args = node, args
        self.results = list(result) if isinstance(result, (tuple, list)) else [result]


class Executor(torch.fx.Interpreter):
    def run_node(self, node):
        self.node = node
        return super().run_node(node)

    def call_function(self, target, args, kwargs):
        result = super().call_function(target, args, kwargs)
        if is_dumped(self.node):
            self.calls.append(Call(self.node, args, result))
        return result

    def execute(self, *args):
        self.calls = []
        with torch.no_grad():
            self.run(*args)
        return self.calls


class GraphRun:
    """An FX graph and what its nodes computed for each input; `number` is the graph's."""

    def __init__(self, function, inputs, seed=0, number=1, first_token=0):
        self.weights = weights(seed)
        self.graph = make_fx(function)(inputs[0], self.weights)
        self.number = number
        flat = [torch.utils._pytree.tree_leaves((x, self.weights)) for x in inputs]
        self.tokens = {first_token + i: Executor(self.graph).execute(*args) for i, args in enumerate(flat)}


def inputs_like(seed, count, rows):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(rows, 32, generator=generator) for _ in range(count)]


def stamps(time, digits=20):
    return f"20240125031118{time:06d}" if digits == 20 else str(FIRST_MICROSECOND + time)


# FX -------------------------------------------------------------------------------------------------------------------


def as_array(value):
    if isinstance(value, torch.Tensor):
        value = value.detach()
        return value.float().numpy() if value.dtype == torch.bfloat16 else value.numpy()
    return np.array(value)


def fx_files(calls, time=0):
    """Names and arrays of one execution."""
    for call in calls:
        time += 1
        key = f"{call.node.name}-{call.node.target}"
        for i, arg in enumerate(call.args):
            if isinstance(arg, (list, tuple)) and arg and isinstance(arg[0], torch.Tensor):
                for j, each in enumerate(arg):
                    yield f"{key}.INPUT.{i}.{j}.{stamps(time)}.npy", as_array(each)
            else:
                yield f"{key}.INPUT.{i}.{stamps(time)}.npy", as_array(arg)
        for i, result in enumerate(call.results):
            yield f"{key}.OUTPUT.{i}.{stamps(time)}.npy", as_array(result)


def fx_folder(layout, world, rank, run, token):
    """Where the files of an execution lie, for PTA above 7.1.0 (A), at and below it (B), and version 1.0 (D)."""
    if layout == "A":
        return f"worldsize{world}_global_rank{rank}/graph_{run.number}/{token}"
    gm = f"gm_2024012503111800{run.number:04d}_dump"
    return f"{token + 1}/{gm}" if layout == "B" else str(token + 1)


def write_fx(ranks, root, layout="A", change=None):
    """`change(key, array)` may return another array for an output of a node."""
    time = 0
    for rank, runs in enumerate(ranks):
        for run in runs:
            for token, calls in run.tokens.items():
                folder = pathlib.Path(root) / fx_folder(layout, len(ranks), rank, run, token)
                folder.mkdir(parents=True)
                for name, array in fx_files(calls, time):
                    if change is not None and ".OUTPUT." in name:
                        array = change(name.rsplit(".", 2)[0], array)
                    np.save(folder / name, array, allow_pickle=True)
                time += len(calls)
    return pathlib.Path(root)


# GE -------------------------------------------------------------------------------------------------------------------

TYPES = {"mm": "MatMulV2", "cat": "ConcatV2", "split": "SplitV", "_softmax": "SoftmaxV2", "_unsafe_view": "Reshape"}
SMALL = {"add", "mul", "rsqrt", "tanh", "mean", "pow"}  # what GE fuses


def packet(node):
    return node.target.overloadpacket.__name__


class GeOp:
    """An operation of GE's graph: the FX node it does the work of, or `None` for one of its own."""

    def __init__(self, name, kind, node, inputs, sources, results, fx_names):
        self.name, self.kind, self.node = name, kind, node
        self.inputs, self.sources = inputs, sources
        self.results, self.fx_names = results, fx_names


def fx_name(node, index):
    return f"{node.name}-{node.target}.OUTPUT.{index}"


def ge_operations(calls):
    """An operation for each node; SiLU becomes two, of which the second has the node's name."""
    counts = collections.Counter()
    made = {}  # node -> name of the operation that has its results

    def new_name(kind):
        counts[kind] += 1
        return f"{kind}_{counts[kind] - 1}" if counts[kind] > 1 else kind

    def source(node):
        if node in made:
            return f"{made[node]}:0"
        if node.op == "call_function" and node.args and node.args[0] in made:  # getitem
            return f"{made[node.args[0]]}:{node.args[1]}"
        return f"{node.name}:0"

    for call in calls:
        node = call.node
        kind = TYPES.get(packet(node), packet(node).title().replace("_", ""))
        flat = [v for arg in call.args for v in (arg if isinstance(arg, (list, tuple)) else [arg])]
        tensors = [value for value in flat if isinstance(value, torch.Tensor)]
        sources = [
            source(n)
            for arg in node.args
            for n in (arg if isinstance(arg, (list, tuple)) else [arg])
            if isinstance(n, torch.fx.Node)
        ]
        assert len(sources) == len(tensors), node
        fx_names = [fx_name(node, i) for i in range(len(call.results))]
        if packet(node) == "silu":
            sigmoid = new_name("Sigmoid")
            yield GeOp(sigmoid, "Sigmoid", None, tensors, sources, [torch.sigmoid(tensors[0])], [""])
            tensors, sources = [*tensors, torch.sigmoid(tensors[0])], [*sources, f"{sigmoid}:0"]
            kind = "Mul"
        elif packet(node) == "mul" and not isinstance(call.args[1], torch.Tensor):
            # A number is an input of its own in GE's graph.
            const = new_name("Const")
            tensors, sources = [*tensors, torch.tensor(call.args[1])], [*sources, f"{const}:0"]
        name = new_name(kind)
        made[node] = name
        yield GeOp(name, kind, node, tensors, sources, call.results, fx_names)


def fused_groups(operations):
    """Neighbours that feed each other and nobody else, as GE fuses them; every other operation for itself."""
    used = collections.Counter(s for op in operations for s in op.sources)
    groups = []
    for op in operations:
        before = groups[-1][-1] if groups else None
        joins = (
            before is not None
            and all(o.node is not None and packet(o.node) in SMALL for o in (before, op))
            and f"{before.name}:0" in op.sources
            and used[f"{before.name}:0"] == op.sources.count(f"{before.name}:0")
        )
        if joins:
            groups[-1].append(op)
        else:
            groups.append([op])
    return groups


def as_ge(array, blocks=True):
    """Matrices as a device keeps them, in blocks."""
    array = as_array(array)
    return ge_files.to_nz(array) if blocks and array.ndim == 2 else ge_files.Stored(array)


class Dumper:
    def __init__(self, folder, time, change, skip):
        self.folder, self.time, self.change, self.skip = folder, time, change, skip

    def write(self, kind, name, inputs, results):
        self.time += 1
        if name in self.skip:
            return
        results = [self.change(f"{name}/output_{i}", as_array(r)) for i, r in enumerate(results)]
        file = f"{kind}.{name.replace('/', '_').replace('.', '_')}.{self.time}.6.{stamps(self.time, 16)}"
        ge_files.write(self.folder / file, name, [as_ge(i, False) for i in inputs], [as_ge(r) for r in results])

    def operation(self, op):
        self.write(op.kind, op.name, op.inputs, op.results)

    def group(self, group):
        if len(group) == 1:
            return self.operation(group[0])
        names = {op.name for op in group}
        outside = [t for op in group for t, s in zip(op.inputs, op.sources) if s.rsplit(":", 1)[0] not in names]
        self.write("AutomaticBufferFusionOp", "".join(op.name for op in group), outside, group[-1].results)


def ge_folder(layout, world, rank, run, token):
    below = f"{SESSION}/{rank if layout == 'B' else 0}/graph_{run.number}/{run.number}/{token}"
    return f"worldsize{world}_global_rank{rank}/{below}" if layout == "A" else below


def same(_name, array):
    return array


def write_ge(ranks, root, layout="A", fused=True, change=same, skip=(), copies=True):
    """`change(tensor, array)` may return another array for an output; operations in `skip` leave no file."""
    root = pathlib.Path(root)
    root.mkdir(parents=True, exist_ok=True)
    time = 0
    for rank, runs in enumerate(ranks):
        for run in runs:
            operations = list(ge_operations(next(iter(run.tokens.values()))))
            text = ge_files.graph_text(
                f"graph_{run.number}", [(o.name, o.kind, o.sources, o.fx_names) for o in operations]
            )
            for word, content in (("original", text), ("optimized", "something else")):
                stamp = f"20240125031118{run.number:06d}"
                (root / f"dynamo_{word}_graph_{run.number}_rank_{rank}_pid_7_ts_{stamp}.txt").write_text(content)
            for token, calls in run.tokens.items():
                dumper = Dumper(root / ge_folder(layout, len(ranks), rank, run, token), time, change, skip)
                operations = list(ge_operations(calls))
                for group in fused_groups(operations) if fused else [[o] for o in operations]:
                    dumper.group(group)
                if copies:
                    first = operations[0].results[0]
                    dumper.write("TransData", "trans_TransData_0", [first], [first])
                time = dumper.time
    return root
