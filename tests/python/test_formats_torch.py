"""Files written by torch.save, read by ait."""

import collections

import ait_llm
import numpy as np
import pytest
import torch

DTYPES = [
    torch.bool,
    torch.int8,
    torch.uint8,
    torch.int16,
    torch.uint16,
    torch.int32,
    torch.uint32,
    torch.int64,
    torch.uint64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
    torch.float8_e4m3fnuz,
    torch.float8_e5m2fnuz,
    torch.float8_e8m0fnu,
    torch.complex32,
    torch.complex64,
    torch.complex128,
]
# The classes of storage that the pre-zip form can name.
LEGACY_DTYPES = [
    torch.bool,
    torch.int8,
    torch.uint8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.complex64,
    torch.complex128,
]
SHAPES = [(), (1,), (5,), (0,), (2, 0, 3), (2, 3, 4)]


def filled(dtype, shape):
    """Any bits at all; 0 and 1 for bool."""
    generator = torch.Generator().manual_seed(2)
    count = int(np.prod(shape)) * torch.empty(0, dtype=dtype).element_size()
    raw = torch.randint(0, 2 if dtype == torch.bool else 256, (count,), generator=generator, dtype=torch.uint8)
    return raw.view(dtype).reshape(shape)


@pytest.fixture(params=["zip", "legacy"])
def saved(request, tmp_path):
    """torch.save in both of its forms."""

    def write(value, **options):
        path = tmp_path / "x.pth"
        torch.save(value, path, _use_new_zipfile_serialization=request.param == "zip", **options)
        return path

    write.form = request.param
    return write


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_bare_tensor_of_every_type_and_shape(tmp_path, same, dtype):
    for shape in SHAPES:
        tensor = filled(dtype, shape)
        torch.save(tensor, tmp_path / "x.pt")
        same.torch(ait_llm.load(tmp_path / "x.pt"), tensor)


@pytest.mark.parametrize("dtype", LEGACY_DTYPES, ids=str)
def test_the_pre_zip_form_of_every_type_and_shape(tmp_path, same, dtype):
    for shape in SHAPES:
        tensor = filled(dtype, shape)
        torch.save(tensor, tmp_path / "x.pt", _use_new_zipfile_serialization=False)
        same.torch(ait_llm.load(tmp_path / "x.pt"), tensor)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_every_pickle_protocol(tmp_path, same, protocol):
    value = {"a": filled(torch.float32, (2, 3)), "deep": [filled(torch.int64, (4,))]}
    torch.save(value, tmp_path / "x.pt", pickle_protocol=protocol)
    loaded = ait_llm.load(tmp_path / "x.pt")
    assert len(loaded) == 2
    same.torch(loaded["a"], value["a"])


def test_strided_views_keep_offset_and_strides(saved, same):
    base = torch.arange(120, dtype=torch.float32).reshape(4, 5, 6)
    views = [
        base[1],
        base[:, 2],
        base.permute(2, 0, 1),
        base[1:3, ::2, 1::3],
        base[0, 0, 0],
        base[3, 4, 5:],
        base[0, 0].expand(3, 6),
        torch.as_strided(base, (3, 3), (1, 2), 7),
    ]
    for view in views:
        tensor = ait_llm.load(saved(view))
        same.torch(tensor, view)
        assert tensor.strides == view.stride()


def test_shared_storage_is_read_by_each_of_its_views(saved, same):
    base = torch.arange(20, dtype=torch.int32)
    value = {"all": base, "even": base[::2], "tail": base[15:]}
    loaded = ait_llm.load(saved(value))
    for name, tensor in value.items():
        same.torch(loaded[name], tensor)


def test_nested_containers_give_one_name_for_each_tensor(saved, same):
    value = {
        "model": collections.OrderedDict(weight=torch.ones(2), bias=torch.zeros(3)),
        "list": [torch.full((1,), 4.0), (torch.full((2,), 5.0), {"mask": torch.tensor([True, False])})],
        "step": 17,
        "name": "adam",
        "nothing": None,
        3: torch.full((3,), 6.0),
    }
    loaded = ait_llm.load(saved(value))
    assert set(loaded) == {"model.weight", "model.bias", "list[0]", "list[1][0]", "list[1][1].mask", "3"}
    same.torch(loaded["model.weight"], value["model"]["weight"])
    same.torch(loaded["list[1][1].mask"], value["list"][1][1]["mask"])
    same.torch(loaded["3"], value[3])


def test_a_list_and_a_tuple_of_tensors(saved, same):
    for value in ([torch.ones(2), torch.zeros(3)], (torch.ones(2), torch.zeros(3))):
        loaded = ait_llm.load(saved(value))
        assert len(loaded) == 2
        for tensor, expected in zip(loaded.values(), value):
            same.torch(tensor, expected)


@pytest.mark.parametrize("requires_grad", [True, False])
def test_parameters(saved, same, requires_grad):
    parameter = torch.nn.Parameter(torch.randn(3, 4), requires_grad=requires_grad)
    same.torch(ait_llm.load(saved(parameter)), parameter)
    same.torch(ait_llm.load(saved({"p": parameter}))["p"], parameter)


def test_tensors_that_require_grad(saved, same):
    tensor = torch.randn(3, requires_grad=True)
    same.torch(ait_llm.load(saved(tensor)), tensor)


def test_buffers(saved, same):
    buffer = torch.nn.Buffer(torch.arange(3.0)) if hasattr(torch.nn, "Buffer") else torch.arange(3.0)
    same.torch(ait_llm.load(saved({"b": buffer}))["b"], buffer)


def test_state_dicts_of_real_modules(saved, same):
    model = torch.nn.Sequential(
        torch.nn.Linear(3, 4),
        torch.nn.BatchNorm1d(4),
        torch.nn.LSTM(4, 2),
        torch.nn.MultiheadAttention(4, 2),
        torch.nn.Embedding(5, 4).to(torch.bfloat16),
    )
    state = model.state_dict()
    loaded = ait_llm.load(saved(state))
    assert list(loaded) == list(state)
    for name, tensor in state.items():
        same.torch(loaded[name], tensor)


def test_a_checkpoint_with_optimizer_state(saved, same):
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.randn(4, 3)).sum().backward()
    optimizer.step()
    loaded = ait_llm.load(saved({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}))
    same.torch(loaded["model.weight"], model.weight)
    assert any("exp_avg" in name for name in loaded)


def test_conjugated_and_negated_views_read_as_their_values(saved, same):
    numbers = torch.randn(4, dtype=torch.complex64)
    for value in (numbers.conj(), numbers.conj().imag):
        try:
            tensor = ait_llm.load(saved(value))
        except ait_llm.UnsupportedError as error:  # honest, if it says what to do
            assert "resolve" in str(error)
        else:
            same.torch(tensor, value)


def test_a_large_storage_is_mapped_not_copied(tmp_path):
    torch.save(torch.arange(100_000), tmp_path / "x.pt")
    tensor = ait_llm.load(tmp_path / "x.pt")
    assert not tensor.numpy().flags.owndata
    assert not tensor.numpy().flags.writeable
    assert tensor.numpy()[99_999] == 99_999


def test_names_pick_one_tensor(saved, same):
    value = {"a": torch.ones(2), "b": {"c": torch.zeros(3)}}
    same.torch(ait_llm.load(saved(value), name="b.c"), value["b"]["c"])


class Evil:
    def __reduce__(self):
        return print, ("executed",)


def test_code_in_a_pickle_is_refused_and_not_run(saved, capfd):
    with pytest.raises(ait_llm.RefusedError, match="print"):
        ait_llm.load(saved({"x": Evil()}))
    assert "executed" not in capfd.readouterr().out


def test_a_whole_module_is_refused(saved):
    with pytest.raises(ait_llm.RefusedError, match="Linear"):
        ait_llm.load(saved(torch.nn.Linear(2, 2)))


def test_sparse_tensors_are_an_error_that_says_what(saved):
    with pytest.raises(ait_llm.AitError):
        ait_llm.load(saved(torch.eye(3).to_sparse()))
