"""Recorded calls run again: both verdicts, the older one against an implementation of the tests' own."""

import collections

import api_rule
import pytest
import torch
from ait_llm.api_check import judging
from ait_llm.api_check.devices import Device, open_device
from ait_llm.api_check.outcome import Settings, check
from training import MODELS, needs_cuda, needs_torch_2, read, record, recording, train

slow = pytest.mark.slow
TYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
FAST = {*((name, "float32") for name in MODELS), ("llama", "bfloat16"), ("convolutions", "float16")}
HEALTHY = [
    *(
        pytest.param(name, kind, "cpu", marks=[*([] if (name, kind) in FAST else [slow]), *needed])
        for name in MODELS
        for kind, needed in (("float32", []), ("bfloat16", []), ("float16", [needs_torch_2]))
    ),
    *(pytest.param(name, kind, "cuda", marks=needs_cuda) for name in ("llama", "convolutions") for kind in TYPES),
]


NOT_RUN = set(
    "size dim numel item backward __len__ __bool__ is_contiguous is_complex data_ptr is_floating_point tolist stride "
    "element_size is_nested requires_grad_ __contains__ storage_offset empty empty_like".split()
)


class Seen:
    """What was judged: each pair of tensors with the verdict on it."""

    def __init__(self, monkeypatch):
        self.pairs = []
        judge = judging.Judge._tensors

        def watched(judge_itself, bench, device):
            output = judge(judge_itself, bench, device)
            self.pairs.append((bench, device, output))
            return output

        monkeypatch.setattr(judging.Judge, "_tensors", watched)


class Looking(Device):
    """Keeps the first argument of every call."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def call(self, function, args, kwargs):
        self.seen.append(args[0])
        return super().call(function, args, kwargs)


def check_all(forward, backward, device=None, **settings):
    device = device or Device()
    return [check(key, each, backward.get(key), device, Settings(**settings)) for key, each in forward.items()]


def check_one(folder, function, device=None, settings=None, **recording_settings):
    """The only call of a function that is not about making its inputs."""
    _, forward = record(folder, function, **recording_settings)
    key = list(forward)[-1] if not any("backward" in key for key in forward) else next(iter(forward))
    return check(key, forward[key], read(folder, "backward").get(key), device or Device(), settings or Settings())


@pytest.mark.parametrize(("name", "kind", "device"), HEALTHY)
def test_healthy_kernels_are_within_rounding_and_the_rule_is_the_documents(name, kind, device, tmp_path, monkeypatch):
    train(name, recording(tmp_path), TYPES[kind], device)
    forward, backward = read(tmp_path, "forward"), read(tmp_path, "backward")
    seen = Seen(monkeypatch)
    under_test = open_device(device)
    under_test.prepare(1234)
    outcomes = check_all(forward, backward, under_test)
    # Every call is run, or says why not.
    skipped = {outcome.key.split("*")[1]: outcome.message for outcome in outcomes if outcome.forward == "SKIP"}
    reasons = ("it computes nothing", "its result is memory that was never written to", "it moves a tensor")
    assert all(message.startswith(reasons) for message in skipped.values()), skipped
    assert device != "cpu" or set(skipped) <= NOT_RUN
    run = [outcome for outcome in outcomes if outcome.forward != "SKIP"]
    assert len(run) > 20 and sum(outcome.backward in ("True", "False") for outcome in run) > 10
    # By our verdict all but a few pass, and those say why not.
    off = [outcome for outcome in run if "False" in (outcome.forward_within, outcome.backward_within)]
    assert len(off) <= 0.02 * len(run) and all(outcome.message for outcome in off)
    # By the rule each pair is judged as NumPy judges it.
    dropouts = [output for *_, output in seen.pairs if "dropout" in output.message]
    wrong = [
        output.name
        for bench, device, output in seen.pairs
        if output not in dropouts and output.passes != api_rule.passes(bench, device)
    ]
    assert wrong == [] and len(seen.pairs) > 40


def test_without_rounding_the_benchmark_most_bfloat16_results_fail(tmp_path, monkeypatch):
    train("llama", recording(tmp_path), torch.bfloat16)
    forward, backward = read(tmp_path, "forward"), read(tmp_path, "backward")
    chosen = {key: each for key, each in forward.items() if "linear" in key or "mul" in key}
    seen = Seen(monkeypatch)
    raw = check_all(chosen, backward, raw_bench=True)
    assert all(out.passes == api_rule.passes(b, n, rounded=False) for b, n, out in seen.pairs)
    rounded = check_all(chosen, backward)
    failed = [sum(outcome.forward == "False" for outcome in outcomes) for outcomes in (raw, rounded)]
    assert failed[0] > len(chosen) / 2 > failed[1]


@needs_torch_2
def test_the_benchmark_is_one_precision_up(tmp_path):
    types = collections.defaultdict(set)
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        x = torch.linspace(0, 1, 8, dtype=dtype)
        (tmp_path / str(dtype)).mkdir()
        outcome = check_one(tmp_path / str(dtype), lambda x=x: x.exp())
        types[outcome.lines[0][2]].add(outcome.lines[0][1])
    assert types == {
        "torch.float16": {"torch.float32"},
        "torch.bfloat16": {"torch.float32"},
        "torch.float32": {"torch.float64"},
        "torch.float64": {"torch.float64"},
    }


def test_a_call_alone_has_the_same_inputs_as_among_others(tmp_path):
    _, forward = record(tmp_path, lambda: torch.linspace(0, 1, 100).mul(3).cos().mul(2))
    key = "Tensor*mul*1"
    alone, among, other = Looking(), Looking(), Looking()
    check(key, forward[key], None, alone, Settings())
    check_all(forward, {}, among)
    check(key, forward[key], None, other, Settings(seed=5))
    assert torch.equal(alone.seen[-1], among.seen[-1]) and not torch.equal(alone.seen[-1], other.seen[-1])


def test_inputs_have_the_recorded_range_shape_and_strides(tmp_path):
    x = torch.linspace(-3, 7, 24).reshape(4, 6).t()
    device = Looking()
    check_one(tmp_path, lambda: x.exp(), device)
    (drawn,) = device.seen
    assert (drawn.shape, drawn.stride()) == (x.shape, x.stride())
    assert (drawn.min().item(), drawn.max().item()) == (-3.0, 7.0) and len(drawn.unique()) == 24


def test_real_data_are_what_is_run(tmp_path):
    x, device = torch.tensor([[1.0, 5.0], [2.0, 9.0]]).t(), Looking()
    settings = Settings(data_folders=(str(tmp_path),))
    assert check_one(tmp_path, lambda: x.exp(), device, settings, real_data=True).forward == "True"
    assert torch.equal(device.seen[0], x) and device.seen[0].stride() == x.stride()


def test_gradients_of_in_place_functions_are_those_of_the_inputs(tmp_path):
    class Wrong(Device):
        """Multiplies rightly, and has half the gradient."""

        def call(self, function, args, kwargs):
            if function is torch.Tensor.mul_:
                return _HalfGradient.apply(args[0].clone(), args[1])
            return super().call(function, args, kwargs)

    class _HalfGradient(torch.autograd.Function):
        @staticmethod
        def forward(context, x, factor):
            context.factor = factor
            return x * factor

        @staticmethod
        def backward(context, gradient):
            return gradient * context.factor / 2, None

    x = torch.linspace(1, 2, 50, requires_grad=True)

    def step():
        y = x * 1.5
        y.mul_(2.0)
        y.sum().backward()

    _, forward = record(tmp_path, step)
    backward = read(tmp_path, "backward")
    key = "Tensor*mul_*0"
    assert check(key, forward[key], backward[key], Device(), Settings()).backward == "True"
    wrong = check(key, forward[key], backward[key], Wrong(), Settings())
    assert (wrong.forward, wrong.backward, wrong.backward_within) == ("True", "False", "False")


def test_gradients_reach_lists_and_keyword_arguments(tmp_path):
    x, y = (torch.linspace(low, 2, 12, requires_grad=True) for low in (0, 1))
    weight = torch.rand(3, 4, requires_grad=True)

    def step():
        joined = torch.cat([x, y])
        torch.nn.functional.linear(joined.reshape(6, 4), weight=weight).sum().backward()

    _, forward = record(tmp_path, step)
    backward = read(tmp_path, "backward")
    for key, count in (("Torch*cat*0", 2), ("Functional*linear*0", 2)):
        outcome = check(key, forward[key], backward[key], Device(), Settings())
        assert (outcome.forward, outcome.backward) == ("True", "True")
        assert sum(".backward.output." in line[0] for line in outcome.lines) == count


def test_a_function_that_returns_nothing_is_judged_by_what_it_changed(tmp_path):
    def calls():
        x = torch.zeros(4, 4)
        x[1:3, [0, 2]] = torch.ones(2, 2)

    outcome = check_one(tmp_path, calls)
    assert outcome.key == "Tensor*__setitem__*0" and (outcome.forward, outcome.forward_within) == ("True", "True")


@needs_torch_2
def test_functions_of_several_outputs_and_masks_are_run_forward_and_backward(tmp_path):
    x = torch.linspace(-1, 1, 24).reshape(4, 6).requires_grad_()
    mask = torch.arange(24).reshape(4, 6) % 5 == 0

    def step():
        first, second = x.chunk(2, dim=1)
        values, _ = first.topk(2, dim=1)
        (values.sum() + second.max(dim=1).values.sum() + x[mask].sum() + x.masked_select(mask).sum()).backward()

    _, forward = record(tmp_path, step)
    outcomes = {outcome.key: outcome for outcome in check_all(forward, read(tmp_path, "backward"))}
    for key in ("Tensor*chunk*0", "Tensor*topk*0", "Tensor*max*0", "Tensor*__getitem__*0", "Tensor*masked_select*0"):
        assert (outcomes[key].forward, outcomes[key].backward) == ("True", "True"), outcomes[key]


def test_dropout_is_judged_by_its_zeros(tmp_path):
    x = torch.linspace(1, 2, 1000, requires_grad=True)
    outcome = check_one(tmp_path, lambda: torch.nn.functional.dropout(x, 0.3).sum().backward())
    assert (outcome.forward, outcome.backward, outcome.forward_within, outcome.backward_within) == ("True",) * 4
    assert "a share of 0." in outcome.lines[0][-1] and "0.3 expected" in outcome.lines[0][-1]

    class Wrong(Device):
        def call(self, function, args, kwargs):
            return args[0] * (torch.rand_like(args[0]) > 0.8)

    (tmp_path / "wrong").mkdir()
    wrong = check_one(tmp_path / "wrong", lambda: torch.nn.functional.dropout(x, 0.3).sum().backward(), Wrong())
    assert (wrong.forward, wrong.forward_within) == ("False", "False")


def test_dropout_that_is_switched_off_is_compared_as_anything_else(tmp_path):
    outcome = check_one(tmp_path, lambda: torch.nn.functional.dropout(torch.ones(200), 0.3, training=False))
    assert "dropout:" not in outcome.lines[0][-1] and outcome.forward == "True"


@needs_torch_2
def test_attention_is_compared_without_its_dropout(tmp_path):
    q = torch.linspace(-1, 1, 2 * 4 * 8).reshape(1, 2, 4, 8)
    outcome = check_one(tmp_path, lambda: torch.nn.functional.scaled_dot_product_attention(q, q, q, dropout_p=0.5))
    assert (outcome.forward, outcome.forward_within) == ("True", "True")


def test_places_of_equal_values_may_differ(tmp_path):
    class LastPlace(Device):
        def call(self, function, args, kwargs):
            values = function(*args, **kwargs).values
            places = (args[0] == values.unsqueeze(1)).int().cumsum(1).argmax(1)
            return values, places

    x = torch.tensor([[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]])
    outcome = check_one(tmp_path, lambda: x.max(dim=1), LastPlace())
    assert (outcome.forward, outcome.forward_within) == ("False", "True")
    assert "the places differ, the values there are equal" in outcome.message


def test_classes_are_never_negative(tmp_path):
    scores = torch.rand(6, 5, requires_grad=True)
    target = torch.tensor([0, 4, -100, 2, -100, 1])
    outcome = check_one(tmp_path, lambda: torch.nn.functional.cross_entropy(scores, target).backward())
    assert (outcome.forward, outcome.backward) == ("True", "True")


def test_what_is_not_finite_is_drawn_finite_and_planted(tmp_path):
    scores = torch.rand(8, 16)
    mask = torch.zeros(8, 16).masked_fill(torch.ones(8, 16).triu(1).bool(), float("-inf"))
    outcome = check_one(tmp_path, lambda: torch.add(scores, mask))
    assert (outcome.forward, outcome.forward_within) == ("True", "True")
    (tmp_path / "mask").mkdir()
    lowest = torch.zeros(8, 16).masked_fill(mask < 0, torch.finfo(torch.float32).min)
    outcome = check_one(tmp_path / "mask", lambda: torch.nn.functional.softmax(scores + lowest, -1))
    assert (outcome.forward, outcome.forward_within) == ("True", "True")


def test_a_recording_under_autocast_is_run_under_it(tmp_path):
    x, w = torch.rand(4, 8), torch.rand(3, 8)

    def step():
        with torch.autocast("cpu", torch.bfloat16):
            return torch.nn.functional.linear(x, w)

    outcome = check_one(tmp_path, step)
    assert outcome.lines[0][1:3] == ["torch.float64", "torch.bfloat16"]
    assert outcome.forward_within == "True"


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("Torch*cat", "not the name of a call"),
        ("Nothing*cat*0", "unknown API group"),
        ("Torch*no_such_function*0", "not in this torch version"),
        ("Tensor*size*0", "computes nothing"),
        ("Torch*randn*0", "at random"),
        ("Torch*empty*0", "never written"),
        ("Torch*from_file*0", "never run because a file asks for it"),
        ("Tensor*map_*0", "never run because a file asks for it"),
    ],
)
def test_what_is_not_run_says_why(key, reason):
    outcome = check(key, {"args": [], "kwargs": {}}, None, Device(), Settings())
    assert (outcome.forward, outcome.backward) == ("SKIP", "SKIP") and reason in outcome.message


def test_a_key_of_an_overflow_dump_is_run_as_well():
    tensor = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [3], "Max": 1, "Min": 0}
    outcome = check("Tensor___add___2_forward", {"args": [tensor, tensor], "kwargs": {}}, None, Device(), Settings())
    assert outcome.forward == "True"


@pytest.mark.parametrize("where", [{"type": "str", "value": "npu:3"}, {"type": "torch.device", "value": "npu:3"}])
def test_a_tensor_that_was_moved_elsewhere_stays_where_calls_are_run(where):
    tensor = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [3], "Max": 1, "Min": 0}
    outcome = check("Tensor*to*0", {"args": [tensor, where], "kwargs": {}}, None, Device(), Settings())
    assert (outcome.forward, outcome.forward_within) == ("True", "True"), outcome
