"""`ait llm compare` on dumps of TorchAir that are made from one FX graph: who is paired with whom is known."""

import csv
import pathlib
import shutil

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("google.protobuf")

import ge_run
from conftest import error_line
from ge_run import GraphRun, fx_name, ge_operations, inputs_like, is_dumped, two_blocks, write_fx, write_ge

PROMPT, WORD = 5, 1


@pytest.fixture(scope="module")
def run():
    """One graph, three executions."""
    return GraphRun(two_blocks, inputs_like(1, 3, PROMPT))


@pytest.fixture(scope="module")
def two_ranks():
    """Two graphs on each of two ranks, which work on different data."""
    return [
        [
            GraphRun(two_blocks, inputs_like(10 * rank + 1, 1, PROMPT), seed=rank, number=1),
            GraphRun(two_blocks, inputs_like(10 * rank + 2, 2, WORD), seed=rank, number=2),
        ]
        for rank in range(2)
    ]


def rows_of(folder):
    (path,) = pathlib.Path(folder).glob("*.csv")
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def compared(ait, tmp_path):
    """Rows of `ait llm compare --my-path my --golden-path golden`, and what it said."""

    def run_it(golden, mine, *arguments):
        out = tmp_path / "out"
        shutil.rmtree(out, ignore_errors=True)
        done = ait(
            "llm", "compare", "--my-path", mine, "--golden-path", golden, "--output", out, "--extended", *arguments
        )
        assert done.returncode == 0, done.stderr
        return rows_of(out), done

    return run_it


def is_pair(row):
    return row["golden_data_path"] and row["my_data_path"]


def differs(row):
    return is_pair(row) and float(row["max_absolute_error"] or 0) > 0


def nodes_of(run):
    return [node for node in run.graph.graph.nodes if is_dumped(node)]


def inner_nodes(run):
    """Nodes whose results only a fused operation has seen."""
    operations = list(ge_operations(next(iter(run.tokens.values()))))
    return {op.node.name for group in ge_run.fused_groups(operations) for op in group[:-1]}


def outputs(rows):
    """(rank, graph and node, output, token) of every golden output that has a partner."""
    return sorted(
        (row["golden_rank"], row["golden_operation"], row["golden_data_path"].split(".OUTPUT.")[1][0], row["token_id"])
        for row in rows
        if is_pair(row) and ".OUTPUT." in row["golden_data_path"]
    )


def expected_outputs(ranks, fused):
    """The same, by the graphs."""
    out = []
    for rank, runs in enumerate(ranks):
        for run in runs:
            hidden = inner_nodes(run) if fused else set()
            prefix = f"graph_{run.number}/" if len(runs) > 1 else ""
            for token, calls in run.tokens.items():
                for call in calls:
                    if call.node.name not in hidden:
                        out += [
                            (str(rank), prefix + call.node.name, str(i), str(token)) for i in range(len(call.results))
                        ]
    return sorted(out)


# GE against FX --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fused", [True, False], ids=["fused", "unfused"])
def test_every_node_that_ge_shows_is_paired_with_its_operation(compared, tmp_path, run, fused):
    rows, done = compared(write_fx([[run]], tmp_path / "fx"), write_ge([[run]], tmp_path / "ge", fused=fused))
    assert outputs(rows) == expected_outputs([[run]], fused)
    pairs = [row for row in rows if is_pair(row)]
    assert not any(differs(row) for row in pairs)
    assert all(row["cosine_similarity"] == "1.0" for row in pairs)
    alone = {row["data_id"]: row["cmp_fail_reason"] for row in rows if not is_pair(row) and row["token_id"] == "1"}
    inside = {f"{name}/output_0" for name in (inner_nodes(run) if fused else ())}
    assert {
        name for name, why in alone.items() if "computed inside a fused operation of my-path. It is " in why
    } == inside
    assert {name for name in alone if name not in inside} == {"Sigmoid/output_0", "Sigmoid_1/output_0"}
    assert f"of {len(nodes_of(run))} operations paired" in done.stdout


def test_rows_come_in_the_order_in_which_operations_ran(compared, tmp_path, run):
    rows, _ = compared(write_fx([[run]], tmp_path / "fx"), write_ge([[run]], tmp_path / "ge"))
    mine = [row for row in rows if row["my_data_path"]]
    assert [row["token_id"] for row in mine] == sorted(row["token_id"] for row in mine)
    times = [int(row["my_data_path"].split(":")[0].rsplit(".", 1)[1]) for row in mine]
    assert times == sorted(times)


def test_inputs_are_paired_by_their_places(compared, tmp_path, run):
    rows, done = compared(write_fx([[run]], tmp_path / "fx"), write_ge([[run]], tmp_path / "ge"))
    paired = {row["data_id"]: pathlib.Path(row["golden_data_path"]).name for row in rows if is_pair(row)}
    assert paired["ConcatV2/input_1"].startswith("cat-aten.cat.default.INPUT.0.1.")
    assert paired["MatMulV2/input_1"].startswith("mm-aten.mm.default.INPUT.1.")
    assert paired["Mul_2/input_1"].startswith("mul_2-aten.mul.Tensor.INPUT.1.")  # a number
    assert "inputs of paired operations of golden have no counterpart and are not compared" in done.stdout


LAYOUTS = {
    # seed 003, PTA above 7.1.0; at 7.1.0; below it; seed 001
    "above 7.1.0": ("dump/msit_ge_dump", "A", "dump/msit_fx_dump", "A"),
    "at 7.1.0": ("dump/msit_ge_dump", "B", "dump/msit_fx_dump/data_dump", "B"),
    "below 7.1.0": ("dump/msit_ge_dump", "B", "data_dump", "B"),
    "version 1.0": ("dump/dump_20241114_113410", "B", "gm_20240125031118000001_dump", "D"),
    "a rank's folder against none": ("dump/msit_ge_dump", "B", "dump/msit_fx_dump", "A"),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_the_same_report(compared, tmp_path, run, layout):
    wanted, _ = compared(write_fx([[run]], tmp_path / "fx"), write_ge([[run]], tmp_path / "ge"))
    ge, ge_layout, fx, fx_layout = LAYOUTS[layout]
    rows, _ = compared(write_fx([[run]], tmp_path / fx, fx_layout), write_ge([[run]], tmp_path / ge, ge_layout))
    paths = ("golden_data_path", "my_data_path")
    facts = [{name: value for name, value in row.items() if name not in paths} for row in rows]
    assert facts == [{name: value for name, value in row.items() if name not in paths} for row in wanted]


def test_what_holds_a_dump_is_taken_for_it(compared, tmp_path, run):
    write_fx([[run]], tmp_path / "dump" / "msit_fx_dump")
    write_ge([[run]], tmp_path / "dump" / "msit_ge_dump")
    rows, _ = compared(tmp_path / "dump", tmp_path / "dump")
    assert outputs(rows) == expected_outputs([[run]], True)


def test_ranks_and_graphs_are_paired_each_with_its_own(compared, tmp_path, two_ranks):
    rows, done = compared(write_fx(two_ranks, tmp_path / "fx"), write_ge(two_ranks, tmp_path / "ge"))
    assert outputs(rows) == expected_outputs(two_ranks, True)
    assert not any(differs(row) for row in rows)
    assert {row["data_id"].split("/")[0] for row in rows} == {"graph_1", "graph_2"}
    assert {row["data_id"][-2:] for row in rows} == {"@0", "@1"}
    assert "graph_2/1" in done.stdout


def test_the_first_row_that_differs_is_where_the_error_is(compared, tmp_path, two_ranks):
    """On one rank, in one graph and token, and in nothing that was computed before."""
    golden = write_fx(two_ranks, tmp_path / "fx")
    calls = two_ranks[1][1].tokens[1]
    operation = next(op for op in ge_operations(calls) if op.node is not None and op.node.name == "mm_5")
    wrong = operation.results[0].numpy().copy()
    wrong[0, 3] += 0.5

    def change(name, array):
        return wrong if array.shape == wrong.shape and np.array_equal(array, operation.results[0].numpy()) else array

    rows, done = compared(golden, write_ge(two_ranks, tmp_path / "ge", change=change))
    assert [row["data_id"] for row in rows if differs(row)] == [f"graph_2/{operation.name}/output_0@1"]
    (row,) = [row for row in rows if differs(row)]
    assert (row["token_id"], row["my_rank"], row["golden_operation"]) == ("1", "1", "graph_2/mm_5")
    assert float(row["max_absolute_error"]) == pytest.approx(0.5, rel=1e-6)
    assert f"graph_2/{operation.name}/output_0@1" in done.stdout


def test_a_fused_operation_shows_the_error_of_its_last_part(compared, tmp_path, run):
    golden = write_fx([[run]], tmp_path / "fx")
    fused = "Mul_5TanhMul_6Add_2"
    rows, _ = compared(
        golden, write_ge([[run]], tmp_path / "ge", change=lambda n, a: a * 2 if n.startswith(fused) else a)
    )
    assert {row["data_id"] for row in rows if differs(row)} == {f"{fused}/output_0"}
    assert {row["golden_operation"] for row in rows if differs(row)} == {"add_2"}


def test_nodes_and_operations_without_a_file_are_listed(compared, tmp_path, run):
    golden = write_fx([[run]], tmp_path / "fx")
    for path in golden.rglob("mm_3-*"):
        path.unlink()
    (gone,) = golden.rglob("*/1/mm_4-*.OUTPUT.0.*")
    gone.unlink()
    rows, _ = compared(golden, write_ge([[run]], tmp_path / "ge", skip=("MatMulV2_8", "Mul_7Mean_1Add_3Rsqrt_1Mul_8")))
    why = {(row["token_id"], row["data_id"]): row["cmp_fail_reason"] for row in rows if not is_pair(row)}
    assert why["0", "MatMulV2_3/output_0"] == (
        "golden-path lacks the node that it computes. It is mm_3-aten.mm.default."
    )
    assert why["0", "mm_8/output_0"] == "nothing of my-path has its name: it was fused, folded or left out."
    assert why["0", "mean_1/output_0"] == why["0", "mm_8/output_0"]
    assert "mm_4/output_0 of golden-path was not recorded in this round" in why["1", "MatMulV2_4/output_0"]
    assert ("0", "MatMulV2_4/output_0") not in why


def test_a_copy_that_ge_put_in_is_held_against_itself(compared, tmp_path, run):
    golden = write_fx([[run]], tmp_path / "fx")
    rows, _ = compared(golden, write_ge([[run]], tmp_path / "ge", change=lambda n, a: a + 1 if "trans_" in n else a))
    wrong = [row for row in rows if differs(row)]
    assert [row["data_id"] for row in wrong] == ["trans_TransData_0/output_0"] * 3
    assert all(row["golden_data_path"] == row["my_data_path"].replace("output", "input") for row in wrong)


def test_shapes_that_do_not_fit_stay_and_say_so(compared, tmp_path, run):
    golden = write_fx([[run]], tmp_path / "fx")
    rows, _ = compared(
        golden, write_ge([[run]], tmp_path / "ge", change=lambda n, a: a[:3] if n.startswith("T/") else a)
    )
    (row,) = [row for row in rows if row["data_id"] == "T/output_0" and row["token_id"] == "0"]
    assert row["cmp_fail_reason"] == "data shape doesn't match."
    assert (row["golden_shape"], row["my_shape"]) == ("[32, 5]", "[3, 5]")


def test_damaged_files_are_rows_with_a_reason(compared, tmp_path, run):
    golden = write_fx([[run]], tmp_path / "fx")
    mine = write_ge([[run]], tmp_path / "ge")
    (short,) = mine.rglob("1/MatMulV2.MatMulV2.*")
    short.write_bytes(short.read_bytes()[:-40])
    (broken,) = mine.rglob("1/ConcatV2.ConcatV2.*")
    broken.write_bytes(broken.read_bytes()[:40])
    rows, _ = compared(golden, mine)
    why = {row["data_id"]: row["cmp_fail_reason"] for row in rows if row["token_id"] == "1" and row["cmp_fail_reason"]}
    assert "tensor output_0 of 2048 bytes reaches beyond the end of the file" in why["MatMulV2/output_0"]
    assert "cut short" in why["ConcatV2/output_0"]
    assert "MatMulV2/input_0" not in why


def test_tokens_of_one_side_stand_alone(compared, tmp_path, run):
    golden = write_fx([[run]], tmp_path / "fx")
    mine = write_ge([[run]], tmp_path / "ge")
    shutil.rmtree(golden / "worldsize1_global_rank0/graph_1/1")
    rows, done = compared(golden, mine)
    assert {row["cmp_fail_reason"] for row in rows if row["token_id"] == "1"} == {"golden-path has nothing of token 1."}
    assert "my side alone has token 1" in done.stdout


def test_a_rank_that_only_one_side_has_stands_alone(compared, ait, tmp_path, two_ranks):
    golden = write_fx(two_ranks, tmp_path / "fx")
    mine = write_ge(two_ranks, tmp_path / "ge")
    shutil.rmtree(golden / "worldsize2_global_rank0")
    rows, _ = compared(golden, mine)
    assert {row["golden_rank"] for row in rows if is_pair(row)} == {"1"}
    assert {row["cmp_fail_reason"] for row in rows if row["data_id"].endswith("@0")} == {"golden-path has no rank 0."}
    shutil.rmtree(mine / "worldsize2_global_rank1")
    (golden / "worldsize2_global_rank1").rename(golden / "worldsize4_global_rank3")
    rows, _ = compared(golden, mine)  # one rank each: there is no doubt
    write_fx(two_ranks[:1] * 2, tmp_path / "fx2")
    (tmp_path / "fx2/worldsize2_global_rank0").rename(tmp_path / "fx2/worldsize2_global_rank7")
    done = ait("llm", "compare", "-mp", mine, "-gp", tmp_path / "fx2")
    assert "no common rank: golden has [1, 7] and my side [0]" in error_line(done)


def test_tokens_that_do_not_correspond_are_an_error_that_says_so(ait, tmp_path, run):
    golden = write_fx([[run]], tmp_path / "fx")
    late = GraphRun(two_blocks, inputs_like(1, 1, PROMPT), first_token=7)
    mine = write_ge([[late]], tmp_path / "ge")
    line = error_line(ait("llm", "compare", "-mp", mine, "-gp", golden))
    assert "golden has the tokens [0, 1, 2] and my side [7]" in line
    assert "plus one" in line


def test_a_map_of_tokens_is_followed(compared, tmp_path, run):
    golden = write_fx([[run]], tmp_path / "fx")
    late = GraphRun(two_blocks, inputs_like(1, 3, PROMPT), first_token=7)
    rows, _ = compared(golden, write_ge([[late]], tmp_path / "ge"), "--token-map", "0:7,2:9")
    assert {row["token_id"] for row in rows} == {"0", "2"}
    assert not any(differs(row) for row in rows)


# GE against GE --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["A", "B"])
def test_fused_and_unfused_runs_are_paired_completely(compared, tmp_path, two_ranks, layout):
    golden = write_ge(two_ranks, tmp_path / "off", layout, fused=False)
    rows, _ = compared(golden, write_ge(two_ranks, tmp_path / "on", layout))
    assert not any(row["cmp_fail_reason"] for row in rows if row["my_data_path"])
    assert all(is_pair(row) for row in rows if row["my_data_path"])
    assert not any(differs(row) for row in rows)
    inner = {
        op.name
        for run in two_ranks[0]
        for op in ge_operations(run.tokens[0])
        if op.node and op.node.name in inner_nodes(run)
    }
    alone = {row["data_id"].split("/")[1] for row in rows if not is_pair(row)}
    assert alone == inner
    fused = {
        row["data_id"]: row
        for row in rows
        if row["data_id"].startswith("graph_1/Mul_5TanhMul_6Add_2/") and row["my_rank"] == "0"
    }
    assert [row["golden_operation"] for row in fused.values()] == [
        f"graph_1/{n}" for n in ("Mul_5", "Mul_5", "Mul_6", "Add_2", "Add_2")
    ]


def test_an_error_in_a_fused_operation_is_in_its_row(compared, tmp_path, run):
    golden = write_ge([[run]], tmp_path / "off", fused=False)
    fused = "Mul_7Mean_1Add_3Rsqrt_1Mul_8"
    mine = write_ge([[run]], tmp_path / "on", change=lambda n, a: a * 1.5 if n.startswith(fused) else a)
    rows, _ = compared(golden, mine)
    assert {row["data_id"] for row in rows if differs(row)} == {f"{fused}/output_0"}
    assert {row["golden_operation"] for row in rows if differs(row)} == {"Mul_8"}


def test_parts_that_the_unfused_run_lacks_are_said(compared, tmp_path, run):
    golden = write_ge([[run]], tmp_path / "off", fused=False, skip=("Add_2", "Mul_7", "MatMulV2_8"))
    rows, _ = compared(golden, write_ge([[run]], tmp_path / "on"))
    why = {row["data_id"]: row["cmp_fail_reason"] for row in rows if row["token_id"] == "0" and not is_pair(row)}
    assert why["Mul_5TanhMul_6Add_2/output_0"] == (
        "golden data missing: golden-path lacks the last operation that it was made of. It is Add_2."
    )
    assert why["Mul_7Mean_1Add_3Rsqrt_1Mul_8/input_0"].startswith("golden data missing: golden-path has nothing of")
    assert why["MatMulV2_8/output_0"] == ("golden-path lacks the node that it computes. It is mm_8-aten.mm.default.")
    paired = {row["data_id"] for row in rows if is_pair(row)}
    assert "Mul_7Mean_1Add_3Rsqrt_1Mul_8/output_0" in paired


def test_without_the_graph_texts_equal_names_are_still_paired(compared, tmp_path, run):
    sides = []
    for name in ("off", "on"):
        sides.append(write_ge([[run]], tmp_path / name, fused=False))
        for text in sides[-1].glob("*.txt"):
            text.unlink()
    rows, done = compared(*sides)
    assert all(is_pair(row) for row in rows)
    assert "holds no dynamo_original_graph_" in done.stderr


# FX against FX --------------------------------------------------------------------------------------------------------


def test_fx_runs_are_paired_by_node_and_the_error_is_where_it_was_planted(compared, tmp_path, two_ranks):
    golden = write_fx(two_ranks, tmp_path / "a")
    wrong = fx_name(nodes_of(two_ranks[0][1])[7], 0)
    mine = write_fx(two_ranks, tmp_path / "b", change=lambda name, array: array + 1 if name == wrong else array)
    rows, _ = compared(golden, mine)
    assert all(is_pair(row) for row in rows)
    node = wrong.split("-")[0]
    assert {row["data_id"] for row in rows if differs(row)} == {
        f"graph_{graph}/{node}/output_0@{rank}" for graph in (1, 2) for rank in (0, 1)
    }


def test_graphs_with_other_numbers_are_paired_in_their_order(compared, tmp_path, two_ranks):
    golden = write_fx(two_ranks, tmp_path / "a")
    mine = write_fx(two_ranks, tmp_path / "b")
    for rank in mine.iterdir():
        (rank / "graph_2").rename(rank / "graph_3")
        (rank / "graph_1").rename(rank / "graph_2")
    rows, done = compared(golden, mine)
    assert all(is_pair(row) and not differs(row) for row in rows)
    assert {(row["golden_operation"].split("/")[0], row["my_operation"].split("/")[0]) for row in rows} == {
        ("graph_1", "graph_2"),
        ("graph_2", "graph_3"),
    }
    assert "paired in their order" in done.stdout


def test_values_that_are_no_tensors_are_rows_with_a_reason(compared, tmp_path, run):
    golden = write_fx([[run]], tmp_path / "a")
    mine = write_fx([[run]], tmp_path / "b")
    (path,) = mine.rglob("0/_softmax-*.INPUT.2.*")
    np.save(path, np.array(None), allow_pickle=True)
    rows, _ = compared(golden, mine)
    (row,) = [row for row in rows if row["data_id"] == "_softmax/input_2" and row["token_id"] == "0"]
    assert "object" in row["cmp_fail_reason"]


# Everything is in one file --------------------------------------------------------------------------------------------


def test_one_report_holds_all_ranks_and_graphs(compared, tmp_path, two_ranks):
    rows, _ = compared(write_fx(two_ranks, tmp_path / "fx"), write_ge(two_ranks, tmp_path / "ge"))
    assert len(list((tmp_path / "out").glob("*.csv"))) == 1
    assert {(row["my_rank"], row["data_id"].split("/")[0]) for row in rows if row["my_data_path"]} == {
        (rank, graph) for rank in "01" for graph in ("graph_1", "graph_2")
    }
