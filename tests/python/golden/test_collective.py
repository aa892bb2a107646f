"""Operations that several ranks do together, against torch on the inputs of all ranks."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from golden_oracle import FLOATS, assert_agrees, assert_caught, assert_sound, golden, normal, numbers, whole
from mutants import mutants_of


def run(name, ranks, rank, outputs=None, rank_params=(), **param):
    """The golden of one rank. Every entry of ranks holds the inputs of a rank."""
    param = {"rank": rank, "rankSize": len(ranks), "rankRoot": 0, "backend": "hccl", **param}
    return golden.run(f"{name}Operation", param, ranks[rank], outputs=outputs, ranks=ranks, rank_params=rank_params)


def parts(size, *shape, dtype="float16"):
    return [normal(*shape, dtype=dtype, seed=rank) for rank in range(size)]


@pytest.mark.parametrize("dtype", [*FLOATS, "int8", "int64"])
@pytest.mark.parametrize("size", [1, 2, 5])
def test_all_gather(size, dtype):
    given = [whole(-9, 9, 3, 4, dtype=getattr(torch, dtype), seed=rank) for rank in range(size)]
    (y,) = run("AllGather", [[x] for x in given], size - 1)
    assert_agrees(y, torch.stack(given), tolerance=0)
    assert (y.bound(dtype) == 0).all()
    if size > 1:
        assert_caught(y, torch.stack(given[::-1]), dtype)  # the ranks in another order
        assert_caught(y, torch.stack([given[0]] * size), dtype)  # its own in place of the others'
        assert_caught(y, torch.cat(given, -1).reshape(size, 3, 4), dtype)  # side by side


def test_all_gather_v():
    given = [normal(rows, 4, seed=rows) for rows in (3, 1, 2)]
    counts, places = torch.tensor([10, 4, 0]), torch.tensor([0, 10, 14])  # a part of the first, nothing of the last
    y = normal(5)
    ranks = [[x, count.reshape(1), counts, places, y] for x, count in zip(given, counts)]
    ranks[2][0] = None  # a tensor without elements
    for rank in (0, 1):
        (out,) = run("AllGatherV", ranks, rank)
        oracle = torch.zeros(20).half()
        oracle[:10], oracle[10:14] = given[0].flatten()[:10], given[1].flatten()
        assert_agrees(out, oracle.reshape(5, 4), tolerance=0)
        assert (out.undefined.flatten() == (np.arange(20) >= 14)).all()
        assert_caught(out, oracle.roll(1).reshape(5, 4))
    (out,) = run("AllGatherV", ranks, 2, outputs=[("float16", (5, 4))])
    assert_agrees(out, oracle.reshape(5, 4), tolerance=0)
    # The same where the lists were not recorded but are parameters, and parts go to other places.
    lists = {"recvCounts": [10, 4, 0], "rdispls": [4, 0, 0]}
    (out,) = run("AllGatherV", [[x, None, None, None, y] for x in given], 0, **lists)
    assert_agrees(out, torch.cat([given[1].flatten(), given[0].flatten()[:10], oracle[14:]]).reshape(5, 4), tolerance=0)


SUMS = {
    "sum": lambda given: sum(x.double() for x in given),
    "prod": lambda given: torch.stack([x.double() for x in given]).prod(0),
    "max": lambda given: torch.stack([x.double() for x in given]).amax(0),
    "min": lambda given: torch.stack([x.double() for x in given]).amin(0),
}


def by_steps(given, kind, wide=False):
    """As a device does it: rank after rank, rounded after each."""
    steps = {"sum": torch.add, "prod": torch.mul, "max": torch.maximum, "min": torch.minimum}
    total = given[0].float() if wide else given[0]
    for x in given[1:]:
        total = steps[kind](total, x.float() if wide else x)
    return total.to(given[0].dtype)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kind", SUMS)
@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_all_reduce(size, kind, dtype):
    given = parts(size, 40, 6, dtype=dtype)
    (y,) = run("AllReduce", [[x] for x in given], 0, allReduceType=kind)
    assert_agrees(y, SUMS[kind](given))
    for order in (given, given[::-1]):
        assert_sound(y, by_steps(order, kind))
        assert_sound(y, by_steps(order, kind, wide=True))
    if size > 1:
        assert_caught(y, by_steps(given[:-1], kind))  # one rank missing
        if kind in ("sum", "prod"):
            assert_caught(y, by_steps([*given, given[0]], kind))  # one of them twice
        other = {"sum": "prod", "prod": "sum", "max": "min", "min": "max"}[kind]
        assert_caught(y, by_steps(given, other))
    if size == 2 and kind == "sum":  # one rounding is all there is
        assert_caught(y, by_steps(given, kind) + given[0] * torch.finfo(given[0].dtype).eps * 2)


def test_integers_are_summed_exactly_and_open_where_they_overflow():
    given = [torch.tensor([100, 5, -100, 0], dtype=torch.int8), torch.tensor([100, -7, -28, 1], dtype=torch.int8)]
    (y,) = run("AllReduce", [[x] for x in given], 0, allReduceType="sum")
    assert y.values.tolist() == [200, -2, -128, 1]
    assert y.undefined.tolist() == [True, False, False, False] and (y.bound("int8") == 0).all()
    (y,) = run("AllReduce", [[x] for x in given], 0, allReduceType="max")
    assert y.values.tolist() == [100, 5, -28, 1] and y.undefined is None


def test_what_the_order_decides_is_open():
    given = [torch.tensor([60000.0, 1e-4, 1, 2]).half(), torch.tensor([60000.0, 1e-4, 1, float("nan")]).half()]
    given.append(torch.tensor([-60000.0, 1e4, 1, 1]).half())
    (y,) = run("AllReduce", [[x] for x in given], 0, allReduceType="sum")
    assert y.undefined.tolist() == [True, False, False, False]
    (y,) = run("AllReduce", [[x] for x in given], 0, allReduceType="prod")
    assert y.undefined.tolist() == [True, True, False, False]
    (y,) = run("AllReduce", [[x] for x in given], 0, allReduceType="max")
    assert y.undefined.tolist() == [False, False, False, True]


@pytest.mark.parametrize("kind", [1, 2])
@pytest.mark.parametrize("out", ["float16", "bfloat16"])
def test_all_reduce_of_int8(out, kind):
    given = [whole(-128, 128, 6, 16, seed=rank) for rank in range(3)]
    scale = normal(16 if kind == 2 else 1, seed=9, scale=0.1).abs()
    offset = torch.tensor([3.0]).half()
    ranks = [[x, scale, offset] for x in given]
    (y,) = run("AllReduce", ranks, 1, [(out, (6, 16))], quantType=kind, outDataType=1 if out == "float16" else 27)
    total = sum(numbers(x) for x in given)
    assert_agrees(y, (total + 9) * numbers(scale))
    assert_sound(y, torch.tensor((total + 9) * numbers(scale)).to(FLOATS[out]))
    each = [((x.float() + 3) * scale.float()).to(FLOATS[out]) for x in given]
    assert_sound(y, each[2] + each[1] + each[0])  # made real rank by rank
    assert_caught(y, torch.tensor((total + 3) * numbers(scale)).to(FLOATS[out]))  # the offset once
    assert_caught(y, torch.tensor(total * numbers(scale) + 9).to(FLOATS[out]))  # after the scale
    assert_caught(y, torch.tensor((total + 9) * numbers(scale.flip(0)) * 1.01).to(FLOATS[out]))


def test_broadcast_writes_to_its_input():
    given = parts(3, 4, 5)
    (y,) = run("Broadcast", [[x] for x in given], 0, rankRoot=2)
    assert_agrees(y, given[2], tolerance=0)
    assert y.written_input == 0 and golden.changed_inputs("BroadcastOperation") == [0]
    assert_caught(y, given[0])  # nothing arrived
    assert_caught(y, given[1])  # another root
    assert_caught(y, given[2].flip(0))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kind", SUMS)
def test_reduce_scatter(kind, dtype):
    given = parts(3, 6, 7, dtype=dtype)
    for rank in range(3):
        (y,) = run("ReduceScatter", [[x] for x in given], rank, reduceType=kind)
        oracle = SUMS[kind](given).chunk(3)
        assert_agrees(y, oracle[rank])
        assert_sound(y, by_steps(given, kind).chunk(3)[rank])
        assert_caught(y, by_steps(given, kind).chunk(3)[(rank + 1) % 3])  # another rank's rows
        assert_caught(y, given[rank].chunk(3)[rank])  # not reduced
        assert_caught(y, by_steps(given[1:], kind).chunk(3)[rank])  # a rank left out


def test_reduce_scatter_v():
    given = parts(2, 5, 4)
    counts, places = torch.tensor([7, 12]), torch.tensor([0, 8])
    ranks = [[x, counts, places, count.reshape(1), normal(3)] for x, count in zip(given, counts)]
    total = SUMS["sum"](given).flatten()
    (y,) = run("ReduceScatterV", ranks, 1, reduceType="sum")
    assert_agrees(y, total[8:20].reshape(3, 4))
    assert y.undefined is None
    assert_caught(y, by_steps(given, "sum").flatten()[7:19].reshape(3, 4))
    (y,) = run("ReduceScatterV", ranks, 0, reduceType="sum")
    assert y.undefined.flatten().tolist() == [False] * 7 + [True] * 5
    assert_agrees(y, torch.cat([total[:7], torch.zeros(5)]).reshape(3, 4))
    assert_sound(y, torch.cat([by_steps(given, "sum").flatten()[:7], torch.ones(5).half()]).reshape(3, 4))


def test_all_to_all():
    given = parts(3, 6, 9)
    for rank in range(3):
        ranks = [[x] for x in given]
        plain = torch.cat([x.flatten().chunk(3)[rank] for x in given]).reshape(6, 9)
        turned = torch.cat([x.chunk(3, 1)[rank] for x in given])
        (y,) = run("AllToAll", ranks, rank)
        assert_agrees(y, plain, tolerance=0)
        assert_caught(y, given[rank])
        (y,) = run("AllToAll", ranks, rank, transpose=True)
        assert_agrees(y, turned, tolerance=0)
        assert_caught(y, torch.cat([x.chunk(3, 1)[rank] for x in given[::-1]]))
        # The library does not write `transpose` down, but the shape tells.
        (y,) = run("AllToAll", ranks, rank, [("float16", (18, 3))])
        assert_agrees(y, turned, tolerance=0)
        assert "inferred" in y.notes[0]
        (y,) = run("AllToAll", ranks, rank, [("float16", (6, 9))])
        assert_agrees(y, plain, tolerance=0)


def lists_of_three():
    sent = np.array([[2, 0, 3], [1, 4, 0], [5, 1, 2]])  # from each to each
    begin = np.array([[0, 0, 5], [2, 3, 0], [3, 1, 9]])  # not one after another
    received = sent.T
    place = np.concatenate([np.zeros((3, 1), int), received.cumsum(1)[:, :-1]], 1)
    return sent, begin, received, place


def exchanged(given, rank):
    sent, begin, _, _ = lists_of_three()
    return torch.cat(
        [x.flatten()[begin[r, rank] : begin[r, rank] + sent[r, rank]] for r, x in enumerate(given)]
    ).reshape(1, -1)


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_all_to_all_with_the_lists_of_each_sender(rank):
    given = parts(3, 3, 4)
    _, begin, received, _ = lists_of_three()
    params = [
        {
            key: each[r].tolist()
            for key, each in zip(("sendCounts", "sdispls", "recvCounts", "rdispls"), lists_of_three())
        }
        for r in range(3)
    ]
    (y,) = run("AllToAllV", [[x] for x in given], rank, rank_params=params, **params[rank])
    assert_agrees(y, exchanged(given, rank), tolerance=0)
    assert y.undefined is None
    own = [x.flatten()[begin[rank, rank] : begin[rank, rank] + received[rank, r]] for r, x in enumerate(given)]
    if rank == 1:
        assert_caught(y, torch.cat(own).reshape(1, -1))  # the receiver's lists
    assert_caught(y, exchanged(given, rank).flip(-1))
    ranks = [[x, *(torch.tensor(each[r]) for each in lists_of_three()), normal(9)] for r, x in enumerate(given)]
    (y,) = run("AllToAllVV2", ranks, rank)
    assert_agrees(y, exchanged(given, rank), tolerance=0)
    with pytest.raises(Exception, match="lists of the other ranks"):
        run("AllToAllV", [[x] for x in given], rank, **params[rank])


def group(size, rank=1, **param):
    return {"rank": rank, "rankSize": size, "rankRoot": 0, "backend": "hccl", **param}


@mutants_of("AllGatherOperation")
def wrong_all_gathers(trial):
    given = parts(3, 4, 5)
    (y,) = trial.run(group(3), [given[1]], ranks=[[x] for x in given])
    trial.sound(y, torch.stack(given))
    trial.caught("ranks in another order", y, torch.stack(given[::-1]))
    trial.caught("its own part in place of the others'", y, torch.stack([given[1]] * 3))
    trial.caught("parts side by side", y, torch.cat(given, -1).reshape(3, 4, 5))
    trial.caught("the last rank not waited for", y, torch.stack([*given[:2], torch.zeros(4, 5).half()]))


@mutants_of("AllGatherVOperation")
def wrong_all_gather_vs(trial):
    given = [normal(12, seed=rank) for rank in range(2)]
    lists = [torch.tensor([7]), torch.tensor([7, 5]), torch.tensor([0, 7]), normal(12)]
    ranks = [[x.reshape(3, 4), torch.tensor([7 - 2 * r]), *lists[1:]] for r, x in enumerate(given)]
    (y,) = trial.run(group(2), ranks[1], ranks=ranks, outputs=[("float16", (12,))])
    values = y.values.reshape(-1)
    assert (values == numbers(torch.cat([given[0][:7], given[1][:5]]))).all()
    shaped = lambda *some: torch.cat(some).reshape(y.values.shape)
    trial.caught("ranks in another order", y, shaped(given[1][:5], given[0][:7]))
    trial.caught("places off by one", y, shaped(given[0][:7], given[1][:5]).roll(1))
    trial.caught("as many from each rank", y, shaped(given[0][:6], given[1][:6]))


@mutants_of("AllReduceOperation")
def wrong_all_reduces(trial):
    given = parts(3, 40, 6)
    ranks = [[x] for x in given]
    (y,) = trial.run(group(3, allReduceType="sum"), ranks[1], ranks=ranks)
    trial.sound(y, by_steps(given, "sum"))
    trial.caught("one rank missing", y, by_steps(given[:-1], "sum"))
    trial.caught("one rank twice", y, by_steps([*given, given[0]], "sum"))
    trial.caught("the average in place of the sum", y, by_steps(given, "sum") / 3)
    trial.caught("the largest in place of the sum", y, by_steps(given, "max"))
    trial.caught("added up in bfloat16", y, by_steps([x.bfloat16() for x in given], "sum"))
    trial.caught("not reduced", y, given[1])


@mutants_of("AllToAllOperation")
def wrong_all_to_alls(trial):
    given = parts(3, 6, 9)
    ranks = [[x] for x in given]
    (y,) = trial.run(group(3), ranks[1], ranks=ranks)
    received = lambda order, part: torch.cat([x.flatten().chunk(3)[part] for x in order]).reshape(6, 9)
    trial.sound(y, received(given, 1))
    trial.caught("nothing exchanged", y, given[1])
    trial.caught("the parts of another rank", y, received(given, 2))
    trial.caught("ranks in another order", y, received(given[::-1], 1))
    trial.caught("columns exchanged in place of rows", y, torch.cat([x.chunk(3, 1)[1] for x in given]).reshape(6, 9))


def wrong_all_to_all_vs(trial, inputs_and_params):
    given = parts(3, 3, 4)
    ranks, params = inputs_and_params(given)
    (y,) = trial.run(group(3, **params[1]), ranks[1], ranks=ranks, rank_params=params)
    sent, begin, _, _ = lists_of_three()
    taken = lambda r, first, count: given[r].flatten()[first : first + count]
    right = [taken(r, begin[r, 1], sent[r, 1]) for r in range(3)]
    trial.sound(y, torch.cat(right).reshape(1, -1))
    trial.caught("ranks in another order", y, torch.cat(right[::-1]).reshape(1, -1))
    by_receiver = torch.cat([taken(r, begin[1, 1], sent[r, 1]) for r in range(3)]).reshape(1, -1)
    trial.caught("the places of the receiver", y, by_receiver)
    late = torch.cat([taken(r, begin[r, 1] + 1, sent[r, 1]) for r in range(3)]).reshape(1, -1)
    trial.caught("places off by one", y, late)


def dicts_of_three():
    names = ("sendCounts", "sdispls", "recvCounts", "rdispls")
    return [{key: each[r].tolist() for key, each in zip(names, lists_of_three())} for r in range(3)]


@mutants_of("AllToAllVOperation")
def wrong_all_to_alls_by_parameters(trial):
    wrong_all_to_all_vs(trial, lambda given: ([[x] for x in given], dicts_of_three()))


@mutants_of("AllToAllVV2Operation")
def wrong_all_to_alls_by_inputs(trial):
    lists = lambda r: [torch.tensor(each[r]) for each in lists_of_three()]
    wrong_all_to_all_vs(trial, lambda given: ([[x, *lists(r), normal(9)] for r, x in enumerate(given)], [{}] * 3))


@mutants_of("BroadcastOperation")
def wrong_broadcasts(trial):
    given = parts(3, 4, 5)
    (y,) = trial.run(group(3, rankRoot=2), [given[1]], ranks=[[x] for x in given])
    trial.sound(y, given[2])
    trial.caught("nothing arrived", y, given[1])
    trial.caught("another root", y, given[0])
    trial.caught("the last row not sent", y, torch.cat([given[2][:3], given[1][3:]]))


@mutants_of("RecvOperation")
def wrong_recvs(trial):
    given = parts(3, 4, 5)
    (y,) = trial.run(group(3, srcRank=0), [given[1]], ranks=[[x] for x in given])
    trial.sound(y, given[0])
    trial.caught("nothing arrived", y, given[1])
    trial.caught("from another rank", y, given[2])
    trial.caught("the last row not received", y, torch.cat([given[0][:3], given[1][3:]]))


@mutants_of("ReduceScatterOperation")
def wrong_reduce_scatters(trial):
    given = parts(3, 6, 7)
    (y,) = trial.run(group(3, reduceType="sum"), [given[1]], ranks=[[x] for x in given])
    chunks = by_steps(given, "sum").chunk(3)
    trial.sound(y, chunks[1])
    trial.caught("the rows of another rank", y, chunks[2])
    trial.caught("not reduced", y, given[1].chunk(3)[1])
    trial.caught("one rank missing", y, by_steps(given[1:], "sum").chunk(3)[1])
    trial.caught("the largest in place of the sum", y, by_steps(given, "max").chunk(3)[1])


@mutants_of("ReduceScatterVOperation")
def wrong_reduce_scatter_vs(trial):
    given, counts, places = parts(2, 5, 4), torch.tensor([7, 12]), torch.tensor([0, 8])
    ranks = [[x, counts, places, count.reshape(1), normal(3)] for x, count in zip(given, counts)]
    (y,) = trial.run(group(2, reduceType="sum"), ranks[1], ranks=ranks)
    total = by_steps(given, "sum").flatten()
    trial.sound(y, total[8:20].reshape(3, 4))
    trial.caught("places off by one", y, total[7:19].reshape(3, 4))
    trial.caught("the part of another rank", y, total[:12].reshape(3, 4))
    trial.caught("not reduced", y, given[1].flatten()[8:20].reshape(3, 4))


def test_send_and_recv():
    given = parts(2, 3, 4)
    assert run("Send", [[x] for x in given], 0, destRank=1) == []
    (y,) = run("Recv", [[x] for x in given], 1, srcRank=0)
    assert_agrees(y, given[0], tolerance=0)
    assert_caught(y, given[1])


X = normal(4, 6)
TWO = [[X], [X]]
LISTS = {"recvCounts": [12, 12], "rdispls": [0, 12], "sendCounts": [12, 12], "sdispls": [0, 12]}


@pytest.mark.parametrize(
    "name,ranks,param,words",
    [
        ("AllReduce", TWO, {"rankSize": 3}, "Cannot find data on rank 2! AllReduceOperation needs tensors on all"),
        ("AllReduce", TWO, {"rankSize": 0}, "no rank 0 of 0"),
        ("AllReduce", TWO, {"rank": 2}, "no rank 2 of 2"),
        ("AllReduce", TWO, {"rankSize": 1 << 40}, "Cannot find data on rank 2"),
        ("AllReduce", [[X], [normal(4, 5)]], {}, "has the shape \\[4, 6\\] on rank 0 and \\[4, 5\\] on rank 1"),
        ("AllReduce", [[X], [X.float()]], {}, "type float32 on rank 1"),
        ("AllReduce", [[X], [None]], {}, "input 0 \\(x\\) was not recorded"),
        ("AllReduce", TWO, {"allReduceType": "mean"}, "allReduceType mean: no golden"),
        ("AllReduce", TWO, {"quantType": 3}, "quantType"),
        ("AllReduce", [[X, X[:1, 0], X[:1, 0]]] * 2, {"quantType": 1}, "quantised sum of float16"),
        ("AllReduce", [[X.char(), X[0], X[:2, 0]]] * 2, {"quantType": 2}, "offset 2 for x"),
        ("Broadcast", TWO, {"rankRoot": 2}, "no rank 2 of 2"),
        ("Recv", TWO, {"srcRank": -1}, "no rank -1 of 2"),
        ("ReduceScatter", [[normal(3, 4)]] * 2, {}, "cannot be dealt out to 2 ranks"),
        ("AllToAll", [[normal(3, 3)]] * 2, {}, "cannot be dealt out"),
        ("AllToAll", [[normal(4, 3)]] * 2, {"transpose": True}, "columns of x"),
        ("AllGatherV", [[X, None, None, None, None]] * 2, LISTS, "its size is open"),
        ("AllGatherV", [[X, None, None, None, normal(4)]] * 2, {"rdispls": [0, 1]}, "recvCounts has 0 numbers, not 2"),
        ("AllGatherV", [[X, None, None, None, X]] * 2, {**LISTS, "recvCounts": [25, 1]}, "25 of 24"),
        ("AllGatherV", [[X, None, None, None, X]] * 2, {**LISTS, "rdispls": [0, 13]}, "ends at element 25 of 24"),
        ("AllGatherV", [[X, None, None, None, X]] * 2, {**LISTS, "rdispls": [0, 11]}, "two ranks write"),
        ("AllGatherV", [[X, None, None, None, X]] * 2, {**LISTS, "rdispls": [0, -1]}, "not a number of elements"),
        ("AllGatherV", [[X, torch.tensor([3]), None, None, X]] * 2, LISTS, "sends 3 elements, but 12 are received"),
        ("ReduceScatterV", [[X, None, None, None, X]] * 2, {**LISTS, "sdispls": [13, 0]}, "ends at element 25 of 24"),
        ("ReduceScatterV", [[X, None, None, None, X[:1]]] * 2, LISTS, "does not hold 12 elements"),
        ("AllToAllVV2", TWO, {**LISTS, "recvCounts": [13, 12]}, "sends 12 elements, but 13 are received"),
        ("AllToAllVV2", TWO, {**LISTS, "recvCounts": [1 << 53, 1]}, "more than there can be"),
        ("AllToAllVV2", TWO, {**LISTS, "recvCounts": [1 << 50, 1]}, "MiB"),
    ],
)
def test_what_cannot_be_computed_says_so(name, ranks, param, words):
    with pytest.raises(Exception, match=words):
        golden.run(f"{name}Operation", {"rank": 0, "rankSize": len(ranks), **param}, ranks[0], ranks=ranks)
