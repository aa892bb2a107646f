"""Recording the calls of torch's functions in a training step."""

import collections
import contextlib

import pytest
import torch
from ait_llm.api_check.att_names import NAMES
from tensor_bytes import bytes_of
from torch.overrides import TorchFunctionMode
from training import MODELS, needs_cuda, needs_torch_2, read, record, recording, train

ACCESSORS = {"__get__", "__set__", "__delete__"}


class Oracle(TorchFunctionMode):
    """Counts outermost calls by the names that torch itself gives the functions."""

    def __init__(self):
        super().__init__()
        self.calls = collections.Counter()

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function.__name__ not in ACCESSORS:
            self.calls[function] += 1
        return function(*args, **(kwargs or {}))


def is_about_torch(function):
    """It has torch treat what follows in another way, and has nothing to do with tensors."""
    return function.__name__ == "_set_grad_enabled" or function.__name__.startswith("_record_function_")


def public(key):
    """The function that a key names, found by walking from torch."""
    group, name, _ = key.split("*")
    place = {"Functional": torch.nn.functional, "Tensor": torch.Tensor, "Torch": torch}[group]
    for part in name.split("."):
        place = getattr(place, part)
    return place


def state_of_torch():
    """Everything that a wrapper could be left in."""
    places = [torch, torch.Tensor, torch.nn.functional, torch.overrides, torch.autograd, torch.nn.Module]
    places += [torch.utils.data.dataloader._BaseDataLoaderIter]
    return [dict(vars(place)) for place in places], torch.overrides._get_current_function_mode_stack()


def same(some, others):
    return len(some) == len(others) and all(
        one.dtype == other.dtype and torch.equal(bytes_of(one), bytes_of(other)) for one, other in zip(some, others)
    )


@pytest.fixture
def repeatable(monkeypatch):
    """Functions that a GPU would compute in another order each time take one order."""
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(torch.cuda.is_available(), warn_only=True)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize(
    ("name", "device"),
    [
        *(pytest.param(name, "cpu", id=name) for name in MODELS),
        *(pytest.param(name, "cuda", id=f"{name}-cuda", marks=needs_cuda) for name in ("llama", "convolutions")),
    ],
)
def test_every_outermost_call_of_a_training_step_is_recorded_and_nothing_else_changes(
    name, device, tmp_path, repeatable
):
    plain = train(name, contextlib.nullcontext(), device=device)
    oracle = Oracle()
    assert same(train(name, oracle, device=device), plain)
    before = state_of_torch()
    recorded = train(name, recording(tmp_path), device=device)
    assert state_of_torch() == before
    assert same(recorded, plain)
    forward = read(tmp_path, "forward")
    found = collections.Counter(public(key) for key in forward)
    assert found == collections.Counter({each: n for each, n in oracle.calls.items() if not is_about_torch(each)})
    assert sum(found.values()) > 20  # on a GPU a step of the optimizer is one call for all parameters
    assert list(read(tmp_path, "stack")) == list(forward)
    backward = read(tmp_path, "backward")
    assert set(backward) < set(forward) and len(backward) > 10


def test_the_older_list_leaves_out_what_it_does_not_name(tmp_path):
    train("llama", recording(tmp_path, api_list="att"))
    found = {tuple(key.split("*")[:2]) for key in read(tmp_path, "forward")}
    assert found and all(name in NAMES[group] for group, name in found)
    assert ("Functional", "linear") in found and ("Functional", "scaled_dot_product_attention") not in found
    assert {group: len(names) for group, names in NAMES.items()} == {"Functional": 121, "Tensor": 415, "Torch": 441}


def test_a_white_list_leaves_out_everything_else(tmp_path):
    _, forward = record(tmp_path, lambda: torch.ones(2).mul(2).add(1), white_list=["mul"])
    assert list(forward) == ["Tensor*mul*0"]


def test_a_call_says_where_it_comes_from(tmp_path):
    def here():
        return torch.nn.functional.layer_norm(torch.ones(2, 3), (3,))

    record(tmp_path, here)
    texts = read(tmp_path, "stack")["Functional*layer_norm*0"]
    assert texts[0].startswith(f"File {__file__}, line ") and ", in here, \n return torch.nn.fun" in texts[0]
    assert not any("ait_llm/api_check" in text for text in texts)


def test_functions_that_the_script_took_before_are_heard(tmp_path):
    gelu, relu = torch.nn.functional.gelu, torch.relu
    _, forward = record(tmp_path, lambda: gelu(relu(torch.ones(2))))
    assert list(forward) == ["Torch*ones*0", "Torch*relu*0", "Functional*gelu*0"]


def test_calls_inside_a_call_are_not_heard_and_use_no_number(tmp_path):
    x = torch.ones(2, 4)
    _, forward = record(tmp_path, lambda: (torch.nn.functional.layer_norm(x, (4,)), torch.layer_norm(x, (4,))))
    assert list(forward) == ["Functional*layer_norm*0", "Torch*layer_norm*0"]


def test_numbers_go_on_over_pauses(tmp_path):
    record = recording(tmp_path)
    x = torch.ones(2)
    for _ in range(2):
        with record:
            x.add(1)
        x.add(1)
    assert list(read(tmp_path, "forward")) == ["Tensor*add*0", "Tensor*add*1"]


def test_a_call_that_raises_is_left_out_and_ends_nothing(tmp_path):
    def calls():
        with contextlib.suppress(RuntimeError):
            torch.ones(2) @ torch.ones(3)
        return torch.ones(2).add(1)

    _, forward = record(tmp_path, calls)
    assert [key for key in forward if "ones" not in key] == ["Tensor*add*0"]


def test_inputs_are_those_before_the_call(tmp_path):
    x = torch.tensor([1.0, 2.0])
    _, forward = record(tmp_path, lambda: x.mul_(10))
    entry = forward["Tensor*mul_*0"]["args"][0]
    assert (entry["Max"], entry["Min"]) == (2.0, 1.0) and x.tolist() == [10.0, 20.0]


def test_the_gradients_of_every_output_are_recorded(tmp_path):
    x = torch.arange(6.0, requires_grad=True)

    def step():
        first, _ = x.chunk(2)
        (first * torch.tensor([1.0, 2.0, 3.0])).sum().backward()

    record(tmp_path, step)
    used, unused = read(tmp_path, "backward")["Tensor*chunk*0"]
    assert (used["shape"], used["Max"], used["Min"]) == ([3], 3.0, 1.0)
    assert unused["type"] == "NoneType" or unused["Max"] == 0.0  # versions of torch differ: nothing, or zeros


def test_a_function_that_hands_back_its_input_has_no_gradient_of_its_own(tmp_path):
    x = torch.ones(3, requires_grad=True)

    def step():
        y = x * 2
        torch.nn.functional.dropout(y, 0.5, training=False)
        y.contiguous().sum().backward()

    record(tmp_path, step)
    assert set(read(tmp_path, "backward")) == {"Tensor*mul*0", "Tensor*sum*0"}


@pytest.mark.parametrize("reentrant", [True, False])
def test_what_a_checkpoint_runs_again_in_the_backward_pass_is_heard(reentrant, tmp_path):
    from torch.utils.checkpoint import checkpoint

    weight = torch.ones(3, requires_grad=True)

    def step():
        checkpoint(
            lambda x: torch.tanh(x * weight), torch.ones(3, requires_grad=True), use_reentrant=reentrant
        ).sum().backward()
        return weight.grad

    plain, weight.grad = step(), None
    gradient, forward = record(tmp_path, step)
    assert torch.equal(gradient, plain)
    assert "Tensor*mul*1" in forward
    if reentrant:  # the other way ends inside the last function, as soon as it has what it needs
        assert "Torch*tanh*1" in forward and "Torch*tanh*1" in read(tmp_path, "backward")


def test_nothing_hangs_on_a_graph_that_outlives_the_recording(tmp_path):
    x = torch.ones(3, requires_grad=True)
    result, _ = record(tmp_path, lambda: (x * 2).sum())
    result.backward()
    assert read(tmp_path, "backward") == {}


def test_attention_takes_its_fast_path_as_without_a_recording(tmp_path):
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval()
    x = torch.rand(2, 5, 16)
    with torch.no_grad():
        plain = layer(x)
        output, forward = record(tmp_path, lambda: layer(x))
    assert torch.equal(output, plain)
    assert "Torch*_transformer_encoder_layer_fwd*0" in forward


def test_modes_of_the_script_come_and_go_as_they_like(tmp_path):
    control = recording(tmp_path).control
    outer, inner = Oracle(), Oracle()
    with outer:
        control.set_dump_switch("ON")
        torch.ones(1).add(1)
        with inner:
            torch.ones(1).add(1)
            control.set_dump_switch("OFF")
            torch.ones(1).mul(1)
        assert torch.overrides._get_current_function_mode_stack() == [outer]
    assert torch.overrides._get_current_function_mode_stack() == []
    assert [key for key in read(tmp_path, "forward") if "add" in key] == ["Tensor*add*0", "Tensor*add*1"]
    counts = [{each.__name__: n for each, n in mode.calls.items()} for mode in (outer, inner)]
    assert counts == [{"ones": 3, "add": 2, "mul": 1}, {"ones": 2, "add": 1, "mul": 1}]


@needs_torch_2
def test_a_compiled_function_runs_as_without_a_recording(tmp_path):
    graphs = []

    def backend(graph, _):
        graphs.append(graph.code)
        return graph

    compiled = torch.compile(lambda x: torch.tanh(x) * 2, backend=backend, fullgraph=True)
    x = torch.linspace(-1, 1, 9)
    plain = compiled(x)
    output, _ = record(tmp_path, lambda: compiled(x))
    assert torch.equal(output, plain)
    assert all("tanh = torch.tanh(l_x_)" in graph and "ait" not in graph for graph in graphs)


def test_a_trace_has_nothing_of_a_recording_in_it(tmp_path):
    def function(x):
        return torch.relu(x).add(1)

    plain = torch.jit.trace(function, torch.ones(2)).code
    traced, _ = record(tmp_path, lambda: torch.jit.trace(function, torch.ones(2), check_trace=False).code)
    assert traced == plain
