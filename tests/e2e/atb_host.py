"""What the stand-in host (tests/atb) does, and what `ait llm dump` is to record of it.

    host = Host(layers=2, rounds=3)
    asked = Asked(time=2, ids=["2", "3_1"])
    files = Recording(host, asked, pid=4711).files()      # {path below ait_dump: bytes}

Nothing here looks at the probe: paths, ids and calls follow the library, the selection follows the documentation of
the options, and contents are computed from the same hash with NumPy.
"""

import dataclasses
import functools
import json

import numpy as np
from conftest import PROGRAM

# The build folder of tests/atb.
HOSTS = PROGRAM.parent.parent / "tests" / "atb"

ELEMENT_BYTES = {0: 4, 1: 2, 2: 1, 3: 4, 4: 1, 6: 2, 7: 2, 8: 4, 9: 8, 10: 8, 11: 8, 27: 2}
DTYPE_NAMES = {
    0: "float", 1: "float16", 2: "int8", 3: "int32", 4: "uint8", 6: "int16", 7: "uint16", 8: "uint32", 9: "int64",
    10: "uint64", 11: "double", 27: "bf16",
}  # fmt: skip
FLOATING = {0, 1, 11, 27}
FORMAT_NAMES = {0: "nchw", 1: "nhwc", 2: "nd", 29: "fractal_nz"}

TABLE_HEADER = (
    "CaseNum|CaseName|OpName|OpParam|InNum|InDType|InFormat|InShape|OutNum|OutDType|OutFormat|OutShape|DataGenType|"
    "DataGenRange|InTensorFile|OutTensorFile|TestType|TestLevel|FromModel|SocVersion|ExpectedError"
)
SETUP_KEYS = (
    "totalTime runnerCreateTime runnerSetupTime runnerFillHostTilingTime setupTotalCount setupCacheHitCount "
    "setupCacheMissCount opsInitLuanchBufferTime tilingCacheHitCount tilingCacheMissCount tilingLocalCacheHitCount "
    "tilingGlobalCacheHitCount kernelCacheGetTilingTime kernelCacheAddTilingTime kernelCacheCompareRunInfoTime "
    "kernelCacheGetRunInfoTime"
).split()
EXECUTE_KEYS = "totalTime streamSyncTime tillingCopyTime kernelExecuteTime launchTime preLaunchTime".split()


def content(key, byte_count, dtype):
    """The bytes of the memory named `key` (tests/atb/content.h)."""
    with np.errstate(over="ignore"):
        seed = np.uint64(0xCBF29CE484222325)
        for letter in key.encode():
            seed = (seed ^ np.uint64(letter)) * np.uint64(0x100000001B3)
        words = seed + np.uint64(0x9E3779B97F4A7C15) * np.arange(1, byte_count // 8 + 2, dtype=np.uint64)
        words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        words ^= words >> np.uint64(31)
    data = words.astype("<u8").view(np.uint8)[:byte_count].copy()
    if dtype in FLOATING:
        data[ELEMENT_BYTES[dtype] - 1 :: ELEMENT_BYTES[dtype]] &= 0xBF
    return data.tobytes()


@dataclasses.dataclass(frozen=True)
class Tensor:
    dtype: int
    format: int
    dims: tuple

    @property
    def bytes(self):
        return ELEMENT_BYTES[self.dtype] * int(np.prod(self.dims, dtype=np.int64))

    @property
    def shape_text(self):
        return ",".join(map(str, self.dims))

    def file(self, data):
        """The .bin file; None for a description alone."""
        length = 0 if data is None else len(data)
        header = f"$Version=1.0\n$Object.Count={0 if data is None else 1}\n$Object.Length={length}\n"
        header += f"format={self.format}\ndtype={self.dtype}\ndims={self.shape_text}\n"
        if data is not None:
            header += f"$Object.data=0,{length}\n"
        return (header + "$End=1\n").encode() + (data or b"")


@dataclasses.dataclass
class Operation:
    type: str
    inputs: list
    outputs: list
    param: str = ""
    kernels: list = dataclasses.field(default_factory=list)  # (name, bytes of tiling)
    nodes: list = dataclasses.field(default_factory=list)  # (operation, in ids, out ids)
    internals: int = 0
    in_place: bool = False
    names: tuple = ((), ())


@dataclasses.dataclass
class Host:
    model: str = "llama"
    layers: int = 2
    rounds: int = 2
    dims: tuple = (2, 3)
    dtype: int = 1
    format: int = 2
    names: bool = False
    param: str = '{"elewiseType":"ELEWISE_ADD"}'
    warm: int = 0
    setups: int = 1
    executions: int = 1
    device: int = 0
    first_id: int = 0
    old_statistics: bool = False

    def words(self):
        """The host's own options, as far as they are not the default."""
        words = []
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value == field.default:
                continue
            words.append("--" + field.name.replace("_", "-"))
            if value is not True:
                words.append(",".join(map(str, value)) if isinstance(value, tuple) else str(value))
        return words

    def models(self, suffix=""):
        """Warm-up operations, then (model name, operations) for the first round and for the later ones."""
        main = Tensor(self.dtype, self.format, tuple(self.dims))
        tokens = Tensor(3, 2, (4,))
        empty = Tensor(self.dtype, self.format, (0, 3))
        x_gamma = (("x", "gamma"), ("output",)) if self.names else ((), ())
        x_weight = (("x", "weight"), ("output",)) if self.names else ((), ())

        def linear():
            return Operation("LinearOperation", [main, main], [main], '{"hasBias":false,"transposeB":true}',
                             [("MatMulKernel", 16)], names=x_weight)  # fmt: skip

        def elewise(kernels):
            return Operation("ElewiseOperation", [main, main], [main], self.param, kernels)

        def layer(kind):
            norm = Operation("RmsNormOperation", [main, main], [main],
                             '{"epsilon":1e-05,"layerType":"RMS_NORM_NORM"}', [("RmsNormKernel", 48)],
                             names=x_gamma)  # fmt: skip
            attention = Operation("SelfAttentionOperation", [main, empty, tokens], [main],
                                  '{"headNum":2,"maskType":"MASK_TYPE_NORM","qScale":0}',
                                  [("FlashAttentionKernel", 64), ("UnpadKernel", 0)])  # fmt: skip
            swish = Operation("ActivationOperation", [main], [main], kernels=[("SwishKernel", 8)], in_place=True)
            mlp = Operation("ParallelMlp", [main, main], [main],
                            nodes=[(linear(), [0, 1], [2]), (swish, [2], [2])])  # fmt: skip
            nodes = [
                (norm, [0, 1], [5]), (attention, [5, 3, 2], [6]), (mlp, [6, 1], [7]),
                (elewise([("AddF16Kernel", 24)]), [7, 0], [4]),
            ]  # fmt: skip
            return Operation(kind + suffix, [main, main, tokens, empty], [main], nodes=nodes, internals=3)

        def positions(kind):
            return Operation(kind + suffix, [tokens], [main])

        warm = [positions("WarmOperation") for _ in range(self.warm)]
        if self.model == "spec":
            nodes = [
                (linear(), [0, 1], [4]),
                (elewise([("CastF16Kernel", 0), ("AddF16Kernel", 24)]), [4, 2], [3]),
            ]
            layer = Operation("TinyLayer" + suffix, [main] * 3, [main], nodes=nodes, internals=1)
            spec = ("SpecModel" + suffix, [layer])
            return warm, spec, spec
        words = Operation("WordEmbeddingOperation" + suffix, [tokens, main], [main], '{"axis":0,"batchDims":1}',
                          [("Gather16Kernel", 32)])  # fmt: skip
        prefill = [words, positions("PositionEmbeddingOperation")]
        prefill += [layer("PrefillLayer") for _ in range(self.layers)]
        decode = [layer("DecodeLayer") for _ in range(self.layers)]
        return warm, ("TinyPrefillModel" + suffix, prefill), ("TinyDecodeModel" + suffix, decode)


@dataclasses.dataclass
class Asked:
    """The options of `ait llm dump`, with their defaults."""

    types: tuple = ("tensor",)
    describe_only: bool = False
    ids: list = None
    ranges: tuple = ((0, 0),)
    child: bool = True
    time: int = 1
    names: list = None
    tiling: bool = False
    part: int = 2
    device: int = None

    def wants_operation(self, ids, kind):
        if "tensor" not in self.types:
            return False
        if self.ids is None and self.names is None:
            return True
        query = "_".join(map(str, ids))
        by_id = any(query == one or (self.child and query.startswith(one + "_")) for one in self.ids or [])
        return by_id or any(kind.lower().startswith(name.lower()) for name in self.names or [])

    def wants_round(self, count):
        return any(first <= count <= last for first, last in self.ranges)

    def environment(self, output):
        """What the launcher tells the probe, for tests that do without it."""
        variables = {
            "ATB_OUTPUT_DIR": f"{output}/",
            "ATB_DUMP_TYPE": "|".join(self.types),
            "ATB_SAVE_TENSOR": "2" if self.describe_only else "1",
            "ATB_SAVE_TENSOR_TIME": str(self.time),
            "ATB_SAVE_CHILD": str(int(self.child)),
            "ATB_SAVE_TENSOR_RANGE": ",".join(f"{first},{last}" for first, last in self.ranges),
            "ATB_SAVE_TILING": str(int(self.tiling)),
            "ATB_SAVE_TENSOR_PART": str(self.part),
            "ATB_TIMESTAMP": "20240102_030405",
            "AIT_PROBE_SCRATCH": f"{output}/scratch",
        }
        if self.ids is not None:
            variables["ATB_SAVE_TENSOR_IDS"] = ",".join(self.ids)
        if self.names is not None:
            variables["ATB_SAVE_TENSOR_RUNNER"] = ",".join(self.names).lower()
        if self.device is not None:
            variables["ATB_DEVICE_ID"] = str(self.device)
        return variables

    def moments(self):
        return {0: ["before"], 1: ["after"], 2: ["before", "after"]}[self.time]


class Recording:
    """What is recorded of one process, or of one of its threads (`suffix`).

    `ids`: the numbers that the top-level operations got, where threads race for them. `first_round`: rounds before it
    ran in the process that this one was forked from.
    """

    def __init__(self, host, asked, pid, device=None, suffix="", ids=None, first_round=0):
        self.host, self.asked, self.pid = host, asked, pid
        self.device = host.device if device is None else device
        self.first_round = first_round
        self.tensors, self.tiling = {}, {}  # {path: function that computes the bytes}
        self.operation_rows, self.kernel_rows, self.statistics = {}, {}, {}
        self.layers, self.models = {}, {}

        warm, first, later = host.models(suffix)
        everything = warm + first[1] + (later[1] if later is not first else [])
        if host.rounds < 2 and later is not first:
            everything = everything[: -len(later[1])]
        self.top_level = everything
        if ids is None:
            ids = range(host.first_id, host.first_id + len(everything))
        assert len(ids) == len(everything)
        numbers = {id(operation): number for operation, number in zip(everything, ids)}

        counts = {id(operation): [0, 0] for operation in everything}
        for step in range(host.rounds):
            recorded = step >= first_round
            name, operations = later if step else first
            for operation in (warm if step == 0 else []) + operations:
                self._run(operation, numbers[id(operation)], counts[id(operation)], recorded)
            if recorded:
                self.models[name] = self._model(name, step == 0, [(op, numbers[id(op)]) for op in operations])

    def _run(self, operation, number, counts, recorded):
        setups, executions = counts
        name = f"{operation.type}_{number}"
        if recorded and setups == 0:
            self.layers[name] = layer_json(operation, [number])
        for _ in range(self.host.setups):
            if recorded:
                old = self.host.old_statistics
                values = [setups + 10 * k if old else 0 for k in range(len(SETUP_KEYS))]
                self._statistic(setups if old else setups + 1, name, "setup", SETUP_KEYS, values)
                self._setup_tiling(operation, [number], f"{setups}", executions)
            setups += 1
        for _ in range(self.host.executions):
            if recorded:
                self._execute(operation, [number], f"{setups - 1}", executions)
                if self.host.old_statistics:
                    values = [executions + 7 * k for k in range(len(EXECUTE_KEYS))]
                    self._statistic(executions, name, "execute", EXECUTE_KEYS, values)
            executions += 1
        counts[:] = setups, executions

    def _statistic(self, count, name, kind, keys, values):
        text = ", ".join(f"{key}:{value}" for key, value in zip(keys, values))
        self.statistics.setdefault(count, {}).setdefault(name, {})[kind] = text

    def _device_matches(self):
        return self.asked.device is None or self.asked.device == self.device

    def _setup_tiling(self, operation, ids, setups, executions, parent=""):
        path = f"{parent}{ids[-1]}_{operation.type}"
        for index, (node, _, _) in enumerate(operation.nodes):
            self._setup_tiling(node, ids + [index], setups, executions, path + "/")
        if not (self.asked.tiling and self.asked.wants_round(executions) and self._device_matches()):
            return
        for index, (kernel, tiling_bytes) in enumerate(operation.kernels):
            if tiling_bytes and self.asked.wants_operation(ids + [index], operation.type):
                folder = f"{path}/{index}_{kernel}"
                key = f"{self.device}_{self.pid}/{executions}/{folder}|tiling"
                target = f"{self.device}_{self.pid}/{setups}/{folder}/kernel_tilingdata.bin"
                self.tiling[target] = functools.partial(content, key, tiling_bytes, -1)

    def _execute(self, operation, ids, setups, executions, parent=""):
        path = f"{parent}{ids[-1]}_{operation.type}"
        for index, (node, _, _) in enumerate(operation.nodes):
            self._execute(node, ids + [index], setups, executions, path + "/")
        root = f"{self.device}_{self.pid}"
        for index, (kernel, _) in enumerate(operation.kernels):
            if "kernel" in self.asked.types:
                rows = self.kernel_rows.setdefault(executions, [])
                rows.append(self._row(operation, operation.type, f"kernel: {kernel}", f"{root}/{setups}/{path}", rows))
            if self.asked.wants_operation(ids + [index], operation.type) and self.asked.wants_round(executions):
                self._save(operation, setups, executions, f"{path}/{index}_{kernel}", ((), ()))
        if self.asked.wants_operation(ids, operation.type) and self.asked.wants_round(executions):
            self._save(operation, setups, executions, path, operation.names)
            if operation.param and not operation.nodes and self._device_matches():
                text = operation.param.encode() + b"\n"
                self.tensors[f"{root}/{setups}/{path}/op_param.json"] = lambda text=text: text
        if "op" in self.asked.types and not operation.nodes:
            rows = self.operation_rows.setdefault(executions, [])
            name = f"{operation.type}_{'_'.join(map(str, ids))}"
            rows.append(self._row(operation, name, operation.param or "{}", f"{root}/{setups}/{path}", rows))

    def _save(self, operation, setups, executions, path, names):
        if not self._device_matches():
            return
        root = f"{self.device}_{self.pid}"
        for when in self.asked.moments():
            for kind, tensors, part in (("in", operation.inputs, 0), ("out", operation.outputs, 1)):
                if self.asked.part not in (part, 2):
                    continue
                for index, tensor in enumerate(tensors):
                    if tensor.bytes == 0:
                        continue
                    if kind == "out" or (operation.in_place and index == 0):
                        key = f"{root}/{executions}/{path}|{when}|out{index}"
                    else:
                        key = f"{root}/{executions}/{path}|before|in{index}"
                    given = names[part]
                    name = f"_{given[index]}" if index < len(given) else ""
                    target = f"{root}/{setups}/{path}/{when}/{kind}tensor{index}{name}.bin"
                    self.tensors[target] = functools.partial(self._bin_file, tensor, key)

    def _bin_file(self, tensor, key):
        return tensor.file(None if self.asked.describe_only else content(key, tensor.bytes, tensor.dtype))

    def _row(self, operation, name, param, folder, rows):
        number = len(rows) + 1
        when = "after" if self.asked.time == 1 else "before"
        param = param.replace("|", "\\u007c")

        def described(tensors):
            return [
                str(len(tensors)), ";".join(DTYPE_NAMES[tensor.dtype] for tensor in tensors),
                ";".join(FORMAT_NAMES[tensor.format] for tensor in tensors),
                ";".join(tensor.shape_text for tensor in tensors),
            ]  # fmt: skip

        def files(tensors, kind):
            return ";".join(f"tensors/{folder}/{when}/{kind}{i}.bin" for i in range(len(tensors)))

        cells = [str(number), f"{name}{number}", name, param]
        cells += [*described(operation.inputs), *described(operation.outputs)]
        cells += [";".join(["customize"] * len(operation.inputs)), " "]
        cells += [files(operation.inputs, "intensor"), files(operation.outputs, "outtensor")]
        cells += [" ", " ", " ", " ", "NO_ERROR"]
        return "|".join(cells)

    def _model(self, name, is_first, operations):
        """The model file, each node with its layer inside, its tensors named by the model."""
        layers = self.host.layers

        def tensors(kind, count):
            return [f"{name}_{kind}_{i}" for i in range(count)]

        def renamed(operation, number, inputs, outputs):
            document = {"opName": f"{operation.type}_{number}", "opType": operation.type}
            document = _node(operation, [number], inputs, outputs, document)
            del document["param"]  # models report none, and that of the layer stays in the layer's file
            return document

        if self.host.model == "spec":
            inputs, outputs = tensors("input", 3), tensors("output", 1)
            nodes = [renamed(*operations[0], inputs, outputs)]
            return {"modelName": name, "inTensors": inputs, "outTensors": outputs, "nodes": nodes}
        weights = tensors("weight", layers + 1 if is_first else layers)
        inputs = tensors("input", 2 if is_first else 3)
        (output,) = tensors("output", 1)
        nodes = []
        if is_first:
            internals = tensors("internal", layers + 1)
            nodes.append(renamed(*operations[0], [inputs[0], weights[0]], [internals[0]]))
            nodes.append(renamed(*operations[1], [inputs[0]], [internals[1]]))
            links = [internals[0], *internals[2:], output]
        else:
            internals = tensors("internal", layers - 1)
            links = [inputs[2], *internals, output]
        for k in range(layers):
            weight = weights[k + 1] if is_first else weights[k]
            operation, number = operations[k + (2 if is_first else 0)]
            nodes.append(renamed(operation, number, [links[k], weight, inputs[0], inputs[1]], [links[k + 1]]))
        document = {
            "modelName": name, "inTensors": inputs, "outTensors": [output], "internalTensors": internals,
            "weightTensors": weights, "nodes": nodes,
        }  # fmt: skip
        return {key: value for key, value in document.items() if value}

    def files(self):
        """{path below ait_dump: bytes}, but for what the launcher adds (manifest, statistics, model topologies)."""
        found = {f"tensors/{path}": make() for path, make in self.tensors.items()}
        found.update({f"tiling/{path}": make() for path, make in self.tiling.items()})
        for kind, tables in (("operation", self.operation_rows), ("kernel", self.kernel_rows)):
            for count, rows in tables.items():
                path = f"{kind}_io_tensors/{self.pid}/{kind}_tensors_{count}.csv"
                found[path] = "".join(line + "\n" for line in [TABLE_HEADER, *rows]).encode()
        if "layer" in self.asked.types or "model" in self.asked.types:
            for name, document in self.layers.items():
                text = json.dumps(document, separators=(",", ":")) + "\n"
                found[f"layer/{self.pid}/{name}.json"] = text.encode()
        return found

    def statistics_files(self):
        """{file name: text} as the launcher leaves them."""
        found = {}
        for count, operations in self.statistics.items():
            found[f"operation_statistic_{count}.txt"] = "".join(
                f"{name}:\n[execute] {texts.get('execute', '')}\n[setup] {texts.get('setup', '')}\n\n"
                for name, texts in operations.items()
            )
        return found


def read_tree(folder):
    """{path below the folder: bytes} of all files."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def differences(actual, expected):
    """One line for each file that is missing, is there for no reason, or has other bytes."""
    lines = [f"missing: {path}" for path in sorted(set(expected) - set(actual))]
    lines += [f"unexpected: {path}" for path in sorted(set(actual) - set(expected))]
    for path in sorted(set(actual) & set(expected)):
        if actual[path] != expected[path]:
            lines.append(f"different: {path}\n   actual: {actual[path][:400]}\n expected: {expected[path][:400]}")
    return lines


def _node(operation, ids, inputs, outputs, document):
    document["param"] = "" if operation.nodes else json.loads(operation.param or "null")
    name = document["opName"]
    internals = [f"{name}_internal_{i}" for i in range(operation.internals)]
    for key, tensors in (("inTensors", inputs), ("outTensors", outputs), ("internalTensors", internals)):
        if tensors:
            document[key] = tensors
    known = inputs + outputs + internals
    children = []
    for index, (child, in_ids, out_ids) in enumerate(operation.nodes):
        child_ids = ids + [index]
        start = {"opName": f"{child.type}_{'_'.join(map(str, child_ids))}", "opType": child.type}
        children.append(_node(child, child_ids, [known[i] for i in in_ids], [known[i] for i in out_ids], start))
    if children:
        document["nodes"] = children
    return document


def layer_json(operation, ids):
    """The layer file's document: indices replaced by names, keys in the documented order."""
    name = f"{operation.type}_{ids[0]}"
    inputs = [f"{name}_input_{i}" for i in range(len(operation.inputs))]
    outputs = [f"{name}_output_{i}" for i in range(len(operation.outputs))]
    return _node(operation, ids, inputs, outputs, {"opName": name, "opType": operation.type})
