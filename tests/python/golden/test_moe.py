"""Operations of mixtures of experts against torch and NumPy."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import torch.nn.functional as F
from golden_oracle import FLOATS, assert_agrees, assert_caught, assert_sound, golden, normal, to_fractal, whole
from mutants import mutants_of


def run(name, inputs, outputs=None, **param):
    return golden.run(f"{name}Operation", param, inputs, outputs=outputs)


def experts_of(tokens, count, per_token, seed=0):
    random = np.random.default_rng(seed)
    return np.concatenate([random.permutation(count)[:per_token] for _ in range(tokens)]).astype(np.int32)


@pytest.mark.parametrize("tokens,count,per_token", [(1, 4, 1), (9, 8, 2), (33, 64, 6), (5, 8, 8)])
def test_gating(tokens, count, per_token):
    topk = experts_of(tokens, count, per_token)
    slots = np.arange(len(topk), dtype=np.int32)
    token, sums, original = run("Gating", [topk, slots], topkExpertNum=per_token, cumSumNum=count)
    order = np.argsort(topk, kind="stable")
    assert_agrees(original, order, tolerance=0)
    assert_agrees(token, order // per_token, tolerance=0)
    assert_agrees(sums, np.bincount(topk, minlength=count).cumsum(), tolerance=0)
    assert original.undefined is None
    if tokens > 1:
        unstable = np.lexsort((-slots, topk))
        assert_caught(original, unstable, "int32")  # the last slot of an expert first
        assert_caught(token, order % per_token, "int32")
        assert_caught(sums, np.bincount(topk, minlength=count), "int32")  # counts, not their sums
        assert_caught(sums, np.bincount(topk, minlength=count).cumsum() - 1, "int32")


@pytest.mark.parametrize("mine", [[1, 2, 3], [6, 2, 5], [0, 63], [7]])
def test_gating_where_a_device_has_some_experts(mine):
    topk = experts_of(40, 64, 2)
    slots = np.arange(80, dtype=np.int32)
    token, sums, original, valid = run("Gating", [topk, slots], topkExpertNum=2, cumSumNum=64, deviceExpert=mine)
    order = np.argsort(topk, kind="stable")
    order = order[np.isin(topk[order], mine)]
    assert valid.values.tolist() == [len(order)]
    assert (original.values[: len(order)] == order).all() and (token.values[: len(order)] == order // 2).all()
    assert original.undefined[len(order) :].all() and not original.undefined[: len(order)].any()
    assert_agrees(sums, np.bincount(topk, minlength=64)[np.sort(mine)].cumsum(), tolerance=0)
    assert_caught(valid, np.array([len(order) + 1]), "int32")


def test_gating_without_sums_only_sorts():
    topk = experts_of(9, 64, 2)
    token, sums, original = run("Gating", [topk, np.arange(18, dtype=np.int32)], topkExpertNum=1, cumSumNum=0)
    assert_agrees(original, np.argsort(topk, kind="stable"), tolerance=0)
    assert token.undefined.all() and sums.undefined.all() and sums.values.shape == (1,)
    assert "cumSumNum is 0" in original.notes[0]


def best_groups(scores, groups, kept, summed):
    """Scores of experts, those of groups that are not kept set to 0."""
    tokens, experts = scores.shape
    cut = scores.reshape(tokens, groups, experts // groups)
    totals = cut.float().topk(summed).values.sum(-1)
    order = torch.from_numpy(np.argsort(-totals.numpy(), kind="stable"))
    out = cut.clone()
    for token in range(tokens):
        out[token, order[token, kept:]] = 0
    return out.reshape(tokens, experts)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("groups,kept,summed", [(8, 3, 1), (8, 3, 2), (4, 4, 3), (1, 1, 1), (16, 1, 4)])
def test_group_topk(groups, kept, summed, dtype):
    x = normal(50, 64, dtype=dtype)
    index = torch.arange(1024, dtype=torch.int32)
    param = {"groupNum": groups, "k": kept, "groupMultiFlag": int(summed > 1), "n": summed}
    (y,) = run("GroupTopk", [x, index], **param)
    oracle = best_groups(x, groups, kept, summed)
    assert_agrees(y, oracle, tolerance=0)
    assert_sound(y, oracle)
    assert y.undefined is None or y.undefined.mean() < 0.02
    assert golden.changed_inputs("GroupTopkOperation") == [0]
    if kept < groups:
        assert_caught(y, x)  # nothing dropped
        assert_caught(y, best_groups(x, groups, kept + 1, summed))  # one group too many
        assert_caught(y, best_groups(x.flip(0), groups, kept, summed))  # another token's
        other = {1: 2, 2: 1, 4: 1}[summed]
        assert_caught(y, best_groups(x, groups, kept, other))  # another way to score a group


def test_equal_groups_go_by_their_place_and_what_float32_cannot_tell_is_open():
    x = torch.tensor([[1, 2, 2, 1, 2, 0], [1, 1, 1, 1, 1, 1]]).half()
    (y,) = run("GroupTopk", [x], groupNum=3, k=1)
    assert y.values.tolist() == [[1, 2, 0, 0, 0, 0], [1, 1, 0, 0, 0, 0]] and y.undefined is None
    # 2048 + 2^-14 and 2048 + 2^-15 are one number in float32.
    x = torch.tensor([[2048, 2**-15, 2048, 2**-14, 0, 0]]).half()
    (y,) = run("GroupTopk", [x], groupNum=3, k=1, groupMultiFlag="SUM_MULTI_MAX", n=2)
    assert y.undefined.tolist() == [[True] * 4 + [False] * 2]
    x[0, 5] = float("nan")
    (y,) = run("GroupTopk", [x], groupNum=3, k=1)
    assert y.undefined.all()


def chosen(x, add, groups, kept, summed, count, norms, scale, dtype=torch.float32):
    """Weights and experts as a kernel in this type finds them."""
    sigmoid = torch.sigmoid(x.to(dtype))
    scores = best_groups(sigmoid + add.to(dtype), groups, kept, summed)
    index = torch.sort(scores, descending=True, stable=True).indices[:, :count]
    weights = sigmoid.gather(-1, index)
    if norms:
        weights = weights / weights.sum(-1, keepdim=True) * scale
    return weights, index


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("norms", [True, False])
@pytest.mark.parametrize("experts,groups,kept,summed,count", [(256, 8, 4, 2, 8), (6, 3, 2, 2, 4), (16, 1, 1, 1, 3)])
def test_fused_add_topk_div(experts, groups, kept, summed, count, norms, dtype):
    x, add = normal(60, experts, dtype=dtype, scale=3), normal(experts, dtype=dtype, seed=1)
    param = {"groupNum": groups, "groupTopk": kept, "n": summed, "k": count, "isNorm": norms, "scale": 2.5}
    outputs = [("float32", (60, count)), ("int32", (60, count))]
    y, index = run("FusedAddTopkDiv", [x, add], outputs, **param)
    arguments = (groups, kept, summed, count, norms, 2.5)
    weights, places = chosen(x, add, *arguments)
    assert_sound(y, weights)
    assert_sound(index, places)
    assert index.undefined is None or index.undefined.mean() < 0.02
    # The experts that float32 finds, and their weights in float64.
    exact = torch.sigmoid(x.double()).gather(-1, places)
    assert_agrees(y, exact / exact.sum(-1, keepdim=True) * 2.5 if norms else exact)

    def wrong(*changed, **kind):
        weights, places = chosen(*changed, **kind)
        assert_caught(y, weights)
        assert_caught(index, places)

    wrong(x, torch.zeros_like(add), *arguments)  # nothing added
    wrong(x, add.flip(0), *arguments)
    if groups > 1:
        wrong(x, add, 1, 1, 1, *arguments[3:])  # no groups
    assert_caught(y, (x.float().sigmoid() + add.float()).gather(-1, places))  # weights of the sums
    if norms:
        assert_caught(y, weights / 2.5)  # no scale
        assert_caught(y, weights * 1.0001)
    else:
        assert_caught(y, weights * 2.5)  # a scale that belongs to the norm
    if dtype == "float32":
        assert_caught(y, chosen(x.bfloat16(), add.bfloat16(), *arguments, dtype=torch.bfloat16)[0])  # all in bfloat16


def test_sigmoids_that_are_one_go_by_their_place():
    x = torch.tensor([[20.0, 30.0, 25.0, -3.0]])
    y, index = run("FusedAddTopkDiv", [x, torch.zeros(4)], [("float32", (1, 2)), ("int32", (1, 2))], k=2)
    assert index.values.tolist() == [[0, 1]] and index.undefined is None
    assert np.allclose(y.values, 0.5)
    # Equal inputs are equal in every kernel; nearly equal ones are not.
    y, index = run("FusedAddTopkDiv", [torch.tensor([[1.0, 1.0, 0.5]]), torch.zeros(3)], k=2)
    assert index.values.tolist() == [[0, 1]] and index.undefined is None
    near = torch.tensor([[1.0, np.nextafter(np.float32(1), np.float32(2)), 0.5]])
    y, index = run("FusedAddTopkDiv", [near, torch.zeros(3)], [("float32", (1, 3)), ("int32", (1, 3))], k=3)
    assert index.undefined.tolist() == [[True, True, False]]
    # Which of two is chosen changes the sum, and with it every weight.
    y, index = run("FusedAddTopkDiv", [torch.cat([near, torch.tensor([[2.0]])], 1), torch.zeros(4)], k=2)
    assert index.undefined.tolist() == [[False, True]] and y.undefined.tolist() == [[True, True]]
    y, index = run("FusedAddTopkDiv", [torch.cat([near, torch.tensor([[2.0]])], 1), torch.zeros(4)], k=2, isNorm=False)
    assert y.undefined.tolist() == [[False, True]]


def test_experts_with_copies():
    x, add = normal(20, 12), normal(12, seed=1)
    copies = whole(0, 4, 12, dtype=torch.int32)
    table = whole(100, 999, 12, 3, dtype=torch.int32, seed=2)
    _, index = run(
        "FusedAddTopkDiv",
        [x, add, copies, table],
        [("float32", (20, 4)), ("int32", (20, 4))],
        k=4,
        enableExpertMapping=True,
    )
    _, places = chosen(x, add, 1, 1, 1, 4, True, 1.0)
    token = torch.arange(20)[:, None]
    oracle = table[places, token % copies[places].clamp(min=1)]
    assert_agrees(index, oracle, tolerance=0)
    assert_caught(index, places, "int32")  # not mapped
    assert_caught(index, table[places, 0], "int32")  # always the first copy
    assert_caught(index, table[places, torch.arange(4) % copies[places].clamp(min=1)], "int32")  # by another count


def routed(tokens, experts, per_token, seed=0):
    """Sorted by expert: the token of each row, and where each expert's rows end."""
    topk = experts_of(tokens, experts, per_token, seed)
    topk[topk == 4] = 5  # one that nobody goes to
    order = np.argsort(topk, kind="stable")
    return (order // per_token).astype(np.int32), np.bincount(topk, minlength=experts).cumsum().astype(np.int32)


def products(x, weight, ends):
    """Rows in the order of experts, each times the weight of its expert."""
    begins = [0, *ends[:-1]]
    return torch.cat([x[begin:end] @ weight[e] for e, (begin, end) in enumerate(zip(begins, ends))])


def gathered(rows, index, tokens):
    return torch.zeros(tokens, rows.shape[1], dtype=rows.dtype).index_add_(0, torch.tensor(index).long(), rows)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("down", [False, True])
def test_grouped_matmul_with_routing(down, turned, dtype):
    index, ends = routed(10, 12, 3)
    x = normal(30 if down else 10, 24, dtype=dtype)
    weight = normal(12, 24, 16, dtype=dtype, seed=1)
    given = weight.transpose(1, 2).contiguous() if turned else weight
    param = {"transposeB": turned, "topK": 3, "moeType": int(down)}

    def kernel(x, weight, ends=ends, index=index):
        rows = products(x if down else x[index], weight, ends)
        return gathered(rows, index, 10) if down else rows

    (y,) = run("GroupedMatmulWithRouting", [x, given, ends, index], **param)
    assert_agrees(y, kernel(x.double(), weight.double()))
    single = (x.float(), weight.float())
    assert_sound(y, kernel(*single).to(x.dtype))
    assert_caught(y, kernel(single[0], single[1].roll(1, 0)).to(x.dtype))  # the next expert's weight
    assert_caught(y, kernel(*single, index=index[::-1].copy()).to(x.dtype))  # another order
    shifted = np.minimum(ends + 1, 30)
    assert_caught(y, kernel(*single, ends=shifted).to(x.dtype))  # experts end one row later
    if down:
        narrow = torch.zeros(10, 16).to(x.dtype)
        for row, token in zip(products(x.float(), weight.float(), ends), index):
            narrow[token] = row.to(x.dtype)  # the last expert in place of their sum
        assert_caught(y, narrow)
    stored = to_fractal(given, 16)  # fills up what the dimensions are short of
    outputs = [(dtype, y.values.shape)]
    (again,) = run("GroupedMatmulWithRouting", [x, stored, ends, index], outputs, **param)
    assert_agrees(again, y.values)
    spelled = {"transposeB": turned, "topK": 3, "groupedMatmulType": ["GROUPED_MATMUL_UP", "GROUPED_MATMUL_DOWN"][down]}
    (again,) = run("GroupedMatmulWithRouting", [x, given, ends, index], **spelled)
    assert_agrees(again, y.values)


@pytest.mark.parametrize("out", ["float16", "bfloat16"])
@pytest.mark.parametrize("down", [False, True])
def test_grouped_matmul_of_int8(down, out):
    index, ends = routed(10, 12, 3)
    x, weight = whole(-128, 128, 30 if down else 10, 32), whole(-128, 128, 12, 32, 16, seed=1)
    columns, rows = normal(12, 16, dtype="float32", scale=0.01).abs(), normal(len(x), 1, dtype="float32").abs()
    given = [x, weight.transpose(1, 2).contiguous(), ends, index, columns, rows]
    param = {"topK": 3, "moeType": int(down), "outDataType": 1 if out == "float16" else 27}

    def kernel(dtype, columns=columns, rows=rows):
        taken = (x if down else x[index]).to(dtype), (rows if down else rows[index]).to(dtype)
        scaled = products(taken[0], weight.to(dtype), ends) * taken[1]
        begins = [0, *ends[:-1]]
        for e, (begin, end) in enumerate(zip(begins, ends)):
            scaled[begin:end] *= columns[e].to(dtype)
        return gathered(scaled, index, 10) if down else scaled

    (y,) = run("GroupedMatmulWithRouting", given, [(out, (10 if down else 30, 16))], **param)
    assert_agrees(y, kernel(torch.float64))
    assert_sound(y, kernel(torch.float32).to(FLOATS[out]))
    assert_caught(y, kernel(torch.float32, rows=rows.flip(0)).to(FLOATS[out]))  # the scale of another row
    assert_caught(y, kernel(torch.float32, columns=columns.roll(1, 0)).to(FLOATS[out]))  # of another expert
    assert_caught(y, kernel(torch.float32, columns=torch.ones(12, 16)).to(FLOATS[out]))


def test_rows_that_no_expert_has_are_open():
    index, ends = routed(10, 12, 3)
    short = np.minimum(ends, 25)
    (y,) = run("GroupedMatmulWithRouting", [normal(10, 8), normal(12, 8, 6), short, index], topK=3, transposeB=False)
    assert y.undefined[25:].all() and not y.undefined[:25].any()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("turn_x", [False, True])
@pytest.mark.parametrize("turn_weight", [False, True])
def test_grouped_matmul_inplace_add(turn_weight, turn_x, dtype):
    x, weight = normal(5, 40, dtype=dtype), normal(40, 7, dtype=dtype, seed=1)
    ends = torch.tensor([3, 3, 30, 40])  # the second group has nothing
    accum = normal(20, 7, dtype="float32", seed=2)
    given = [x.T.contiguous() if turn_x else x, weight.T.contiguous() if turn_weight else weight, ends, accum]

    def kernel(dtype, ends=(3, 3, 30, 40)):
        begins = (0, *ends[:-1])
        return torch.cat([x[:, b:e].to(dtype) @ weight[b:e].to(dtype) for b, e in zip(begins, ends)])

    (y,) = run("GroupedMatmulInplaceAdd", given, [("float32", (20, 7))], transposeA=turn_x, transposeB=turn_weight)
    assert_agrees(y, accum.double() + kernel(torch.float64))
    assert_sound(y, accum + kernel(torch.float32))
    assert_caught(y, kernel(torch.float32), "float32")  # what was there is lost
    assert_caught(y, accum + kernel(torch.float32, (4, 4, 30, 40)))  # a group ends one later
    assert_caught(y, accum + kernel(torch.float32).to(x.dtype).float())  # rounded before it is added
    assert golden.changed_inputs("GroupedMatmulInplaceAddOperation") == [3]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_swiglu_quant(dtype):
    x = normal(7, 64, dtype=dtype, scale=2)
    q, scale = run("SwigluQuant", [x], [("int8", (7, 32)), ("float32", (7,))])

    def kernel(x):
        a, b = x.chunk(2, -1)
        y = F.silu(a) * b
        step = 127 / y.abs().amax(-1, keepdim=True)
        return y * step, 1 / step.squeeze(-1)

    steps, scales = kernel(x.double())
    assert_agrees(q, steps)
    assert_agrees(scale, scales)
    steps, scales = kernel(x.float())
    assert_sound(q, torch.round(steps), "int8")
    assert_sound(scale, scales, "float32")
    assert_caught(q, torch.round(steps * 126 / 127), "int8")
    assert_caught(q, torch.trunc(steps), "int8")  # cut off, not rounded
    assert_caught(scale, 1 / scales, "float32")  # its reciprocal
    assert_caught(scale, kernel(x.float().roll(32, -1))[1], "float32")  # halves swapped
    q, scale = run("SwigluQuant", [torch.zeros(2, 8).half()], [("int8", (2, 4)), ("float32", (2,))])
    assert (q.values == 0).all() and (scale.values == 0).all()


@mutants_of("GatingOperation")
def wrong_gatings(trial):
    topk, slots = experts_of(33, 64, 6), np.arange(198, dtype=np.int32)
    token, sums, original = trial.run({"topkExpertNum": 6, "cumSumNum": 64}, [topk, slots])
    order, counts = np.argsort(topk, kind="stable"), np.bincount(topk, minlength=64)
    trial.sound(original, order)
    trial.caught("the last slot of an expert first", original, np.lexsort((-slots, topk)), "int32")
    trial.caught("slots in place of tokens", token, order % 6, "int32")
    trial.caught("counts in place of their sums", sums, counts, "int32")
    trial.caught("sums that leave out the expert itself", sums, counts.cumsum() - counts, "int32")


@mutants_of("GroupTopkOperation")
def wrong_group_topks(trial):
    x = normal(50, 64)
    (y,) = trial.run({"groupNum": 8, "k": 3, "groupMultiFlag": 1, "n": 2}, [x, torch.arange(1024, dtype=torch.int32)])
    trial.sound(y, best_groups(x, 8, 3, 2))
    trial.caught("no group dropped", y, x)
    trial.caught("one group too many", y, best_groups(x, 8, 4, 2))
    trial.caught("groups by their largest alone", y, best_groups(x, 8, 3, 1))
    trial.caught("the groups of another token", y, best_groups(x.roll(1, 0), 8, 3, 2).roll(-1, 1))


@mutants_of("FusedAddTopkDivOperation")
def wrong_fused_topks(trial):
    x, add = normal(60, 256, dtype="float32", scale=3), normal(256, dtype="float32", seed=1)
    param = {"groupNum": 8, "groupTopk": 4, "n": 2, "k": 8, "isNorm": True, "scale": 2.5}
    y, index = trial.run(param, [x, add], outputs=[("float32", (60, 8)), ("int32", (60, 8))])
    arguments = (8, 4, 2, 8, True, 2.5)
    weights, places = chosen(x, add, *arguments)
    trial.sound(y, weights)
    trial.sound(index, places)
    trial.caught("nothing added", index, chosen(x, torch.zeros_like(add), *arguments)[1])
    trial.caught("no groups", index, chosen(x, add, 1, 1, 1, 8, True, 2.5)[1])
    trial.caught("weights of the sums", y, (x.sigmoid() + add).gather(-1, places))
    trial.caught("no scale", y, weights / 2.5)
    trial.caught("not normed", y, chosen(x, add, 8, 4, 2, 8, False, 2.5)[0])
    trial.caught("computed in bfloat16", y, chosen(x.bfloat16(), add.bfloat16(), *arguments, dtype=torch.bfloat16)[0])


@mutants_of("GroupedMatmulWithRoutingOperation")
def wrong_routings(trial):
    index, ends = routed(10, 12, 3)
    x, weight = normal(30, 24), normal(12, 24, 16, seed=1)
    (y,) = trial.run({"transposeB": False, "topK": 3, "moeType": 1}, [x, weight, ends, index])
    down = lambda weight, ends=ends, index=index: gathered(products(x.float(), weight.float(), ends), index, 10).half()
    trial.sound(y, down(weight))
    trial.caught("the weight of the next expert", y, down(weight.roll(1, 0)))
    trial.caught("experts end one row later", y, down(weight, ends=np.minimum(ends + 1, 30)))
    trial.caught("rows in another order", y, down(weight, index=index[::-1].copy()))
    last = torch.zeros(10, 16).half()
    for row, token in zip(products(x.float(), weight.float(), ends), index):
        last[token] = row.half()
    trial.caught("the last expert in place of their sum", y, last)


@mutants_of("GroupedMatmulInplaceAddOperation")
def wrong_grouped_sums(trial):
    x, weight, accum = normal(5, 40), normal(40, 7, seed=1), normal(20, 7, dtype="float32", seed=2)
    param = {"transposeA": False, "transposeB": False}
    ends = torch.tensor([3, 3, 30, 40])
    (y,) = trial.run(param, [x, weight, ends, accum], outputs=[("float32", (20, 7))])

    def each(*ends):
        return torch.cat([x[:, b:e].float() @ weight[b:e].float() for b, e in zip((0, *ends), ends)])

    trial.sound(y, accum + each(3, 3, 30, 40))
    trial.caught("what was there is lost", y, each(3, 3, 30, 40), "float32")
    trial.caught("a group ends one later", y, accum + each(4, 4, 30, 40))
    trial.caught("rounded to half before it is added", y, accum + each(3, 3, 30, 40).half().float())
    trial.caught("the empty group left out", y, accum + torch.cat([each(3, 30, 40), torch.zeros(5, 7)]))


@mutants_of("SwigluQuantOperation")
def wrong_swiglu_quants(trial):
    x = normal(7, 64, scale=2)
    q, scale = trial.run({}, [x], outputs=[("int8", (7, 32)), ("float32", (7,))])

    def kernel(x, largest=127.0):
        y = F.silu(x[:, :32]) * x[:, 32:]
        step = largest / y.abs().amax(-1, keepdim=True)
        return y * step, 1 / step.squeeze(-1)

    steps, scales = kernel(x.float())
    trial.sound(q, torch.round(steps), "int8")
    trial.sound(scale, scales, "float32")
    trial.caught("cut off in place of rounded", q, torch.trunc(steps), "int8")
    trial.caught("126 in place of 127 steps", q, torch.round(kernel(x.float(), 126.0)[0]), "int8")
    trial.caught("the reciprocal of the scale", scale, 1 / scales, "float32")
    trial.caught("halves swapped", scale, kernel(x.float().roll(32, -1))[1], "float32")
    trial.caught("the product rounded to half first", scale, kernel(x)[1].float(), "float32")


X, INDEX = normal(4, 12), np.arange(8, dtype=np.int32) % 4
ENDS = np.array([3, 5, 8], np.int32)


@pytest.mark.parametrize(
    "name,inputs,param,words",
    [
        ("Gating", [np.array([9], np.int32)] * 2, {"cumSumNum": 4}, "topk has the element 9, which is"),
        ("Gating", [np.array([-1], np.int32)] * 2, {"cumSumNum": 4}, "topk has the element -1"),
        ("Gating", [INDEX, INDEX[:3]], {"cumSumNum": 4}, "idxArr has 3 elements and topk 8"),
        ("Gating", [INDEX, INDEX], {"cumSumNum": 4, "deviceExpert": [4]}, "deviceExpert"),
        ("Gating", [INDEX, INDEX], {"cumSumNum": 4, "deviceExpert": [1, 1]}, "deviceExpert"),
        ("Gating", [INDEX, INDEX], {"cumSumNum": 4, "topkExpertNum": 0}, "topkExpertNum is 0"),
        ("Gating", [INDEX, INDEX], {"cumSumNum": 1 << 50}, "MiB"),
        ("GroupTopk", [X], {"groupNum": 5, "k": 1}, "12 experts cannot be cut into 5 groups"),
        ("GroupTopk", [X], {"groupNum": 3}, "0 of 3 groups"),
        ("GroupTopk", [X], {"groupNum": 3, "k": 4}, "4 of 3 groups"),
        ("GroupTopk", [X], {"groupNum": 3, "k": 1, "groupMultiFlag": 1, "n": 5}, "not 5 experts in a group of 4"),
        ("GroupTopk", [X[0]], {"k": 1}, "two dimensions"),
        ("FusedAddTopkDiv", [X, X[0, :5]], {}, "addNum has 5 elements"),
        ("FusedAddTopkDiv", [X, X[0]], {"k": 13}, "13 of 12 experts"),
        ("FusedAddTopkDiv", [X, X[0]], {"activationType": 4}, "activationType 4: no golden"),
        ("FusedAddTopkDiv", [X, X[0]], {"enableExpertMapping": True}, "mappingNum\\) was not recorded"),
        (
            "FusedAddTopkDiv",
            [X, X[0], np.full(12, 9, np.int32), np.ones((12, 2), np.int32)],
            {"enableExpertMapping": True},
            "more copies than the 2",
        ),
        ("GroupedMatmulWithRouting", [X, normal(3, 6, 12), ENDS, INDEX], {"topK": 0}, "topK is 0"),
        ("GroupedMatmulWithRouting", [X, normal(3, 6, 12), ENDS, INDEX[:7]], {"topK": 2}, "7 elements for 8 rows"),
        (
            "GroupedMatmulWithRouting",
            [X, normal(3, 6, 12), ENDS, INDEX + 1],
            {"topK": 2},
            "expertIndex has .* element 4",
        ),
        (
            "GroupedMatmulWithRouting",
            [X, normal(3, 6, 12), ENDS + 1, INDEX],
            {"topK": 2},
            "expertCount has .* element 9",
        ),
        ("GroupedMatmulWithRouting", [X, normal(3, 6, 12), ENDS[::-1].copy(), INDEX], {"topK": 2}, "falls from 8 to 5"),
        ("GroupedMatmulWithRouting", [X, normal(4, 6, 12), ENDS, INDEX], {"topK": 2}, "expertCount 3 for 4 experts"),
        ("GroupedMatmulWithRouting", [X, normal(3, 12, 6), ENDS, INDEX], {"topK": 2}, "whose rows have 12 numbers"),
        ("GroupedMatmulWithRouting", [X, normal(3, 6, 12), ENDS, INDEX], {"topK": 3, "moeType": 1}, "topK is 3 with x"),
        (
            "GroupedMatmulWithRouting",
            [X, normal(3, 6, 12), ENDS, INDEX, X, X],
            {"topK": 2, "outDataType": 1},
            "no golden",
        ),
        ("GroupedMatmulInplaceAdd", [X, normal(11, 5), ENDS, X], {}, "cannot be multiplied"),
        ("GroupedMatmulInplaceAdd", [X, normal(12, 5), ENDS + 5, X], {}, "groupList has the element 13"),
        ("GroupedMatmulInplaceAdd", [X, normal(12, 5), ENDS, X], {}, "does not hold 3 products of 4 x 5"),
        ("SwigluQuant", [normal(3, 5)], {}, "no two halves"),
        ("SwigluQuant", [X], {"quantType": 1}, "quantType"),
    ],
)
def test_what_cannot_be_computed_says_so(name, inputs, param, words):
    with pytest.raises(Exception, match=words):
        run(name, inputs, **param)
