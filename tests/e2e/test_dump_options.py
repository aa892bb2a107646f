"""Every option of `ait llm dump`: the tree, and each byte of it, is as the option says."""

import pytest
from atb_host import Asked, Host, Recording
from dump_run import Run, assert_recorded, assert_tensors_counted, dump_command, host_program, record, run_to_the_end

THREE_ROUNDS = Host(layers=1, rounds=4)

# (words of the command line, what they mean): each run records something else than the others.
SELECTIONS = {
    "nothing": ((), Asked()),
    "-sd": (("-sd",), Asked(describe_only=True)),
    "--only-save-desc": (("--only-save-desc",), Asked(describe_only=True)),
    "-ids one": (("-ids", "2"), Asked(ids=["2"])),
    "-ids of the seed": (("-ids", "2,", "3_1"), Asked(ids=["2", "3_1"])),
    "-ids quoted": (("-ids", "2, 3_1"), Asked(ids=["2", "3_1"])),
    "-ids kernel": (("-ids", "2_1_0"), Asked(ids=["2_1_0"])),
    "--save-operation-ids": (("--save-operation-ids", "2_2,0"), Asked(ids=["2_2", "0"])),
    "--ids": (("--ids", "1"), Asked(ids=["1"])),
    "-er range": (("-er", "1,2"), Asked(ranges=((1, 2),))),
    "-er ranges": (("-er", "0,0,2,2"), Asked(ranges=((0, 0), (2, 2)))),
    "-er with a blank": (("-er", "1, 1"), Asked(ranges=((1, 1),))),
    "--execute-range": (("--execute-range", "0,2"), Asked(ranges=((0, 2),))),
    "-child False": (("-ids", "2,3_2", "-child", "False"), Asked(ids=["2", "3_2"], child=False)),
    "-child n": (("-ids", "2_2", "-child", "n"), Asked(ids=["2_2"], child=False)),
    "-child True": (("-ids", "2_2", "-child", "True"), Asked(ids=["2_2"])),
    "--save-operation-child": (("-ids", "3", "--save-operation-child", "0"), Asked(ids=["3"], child=False)),
    "-child without -ids": (("-child", "False"), Asked(child=False)),
    "-time 0": (("-time", "0"), Asked(time=0)),
    "-time 1": (("-time", "1"), Asked(time=1)),
    "-time 2": (("-time", "2"), Asked(time=2)),
    "--save-time": (("--save-time", "2"), Asked(time=2)),
    "-opname": (("-opname", "self"), Asked(names=["self"])),
    "-opname in capitals": (("-opname", "SELF"), Asked(names=["self"])),
    "-opname list": (("-opname", "self,Linear"), Asked(names=["self", "linear"])),
    "--operation-name": (("--operation-name", "prefill"), Asked(names=["prefill"])),
    "-opname or -ids": (("-opname", "rms", "-ids", "0"), Asked(names=["rms"], ids=["0"])),
    "-tiling": (("-tiling",), Asked(tiling=True)),
    "--save-tiling": (("--save-tiling", "-er", "1,1"), Asked(tiling=True, ranges=((1, 1),))),
    "-tiling and -ids": (("-tiling", "-ids", "3_0"), Asked(tiling=True, ids=["3_0"])),
    "-stp 0": (("-stp", "0"), Asked(part=0)),
    "-stp 1": (("-stp", "1"), Asked(part=1)),
    "-stp 2": (("-stp", "2"), Asked(part=2)),
    "--save-tensor-part": (("--save-tensor-part", "0", "-time", "0"), Asked(part=0, time=0)),
    "-device 0": (("-device", "0"), Asked(device=0)),
    "--device-id": (("--device-id", "0"), Asked(device=0)),
    "--type tensor op": (("--type", "tensor", "op"), Asked(types=("tensor", "op"))),
    "--type op": (("--type", "op"), Asked(types=("op",))),
    "--type kernel": (("--type", "kernel"), Asked(types=("kernel",))),
    "--type layer": (("--type", "layer"), Asked(types=("layer",))),
    "--type layer tensor": (("--type", "layer", "tensor"), Asked(types=("layer", "tensor"))),
    "tables are not filtered": (
        ("--type", "op", "kernel", "tensor", "-ids", "2_0", "-er", "1,1", "-time", "0"),
        Asked(types=("op", "kernel", "tensor"), ids=["2_0"], ranges=((1, 1),), time=0),
    ),
    "all of them": (
        ("-sd", "-ids", "2", "-er", "0,1", "-time", "2", "-opname", "linear", "-tiling", "-stp", "1", "-device", "0"),
        Asked(describe_only=True, ids=["2"], ranges=((0, 1),), time=2, names=["linear"], tiling=True, part=1, device=0),
    ),
}


@pytest.mark.parametrize("words, asked", SELECTIONS.values(), ids=SELECTIONS.keys())
def test_an_option_selects_what_it_says(tmp_path, words, asked):
    run = record(tmp_path, *words, host=THREE_ROUNDS)
    expected = assert_recorded(run, THREE_ROUNDS, asked)
    assert expected, "the expectation is empty and proves nothing"
    assert_tensors_counted(run, expected)


def test_each_option_changes_the_result():
    """A value that would be ignored leaves the tree of the default, so none may have that tree."""
    default = Recording(THREE_ROUNDS, Asked(), 1).files()
    harmless = {"nothing", "-time 1", "-stp 2", "-child without -ids", "-device 0", "--device-id"}
    for name, (_, asked) in SELECTIONS.items():
        assert (Recording(THREE_ROUNDS, asked, 1).files() == default) == (name in harmless), name


@pytest.mark.parametrize("abi", [0, 1])
def test_both_string_abis(tmp_path, abi):
    host = Host(rounds=3, names=True)
    asked = Asked(types=("tensor", "op", "kernel", "layer"), tiling=True, time=2, ranges=((0, 9),))
    run = record(tmp_path, "--type", *asked.types, "-tiling", "-time", "2", "-er", "0,9", host=host, abi=abi)
    expected = assert_recorded(run, host, asked)
    assert_tensors_counted(run, expected)


@pytest.mark.parametrize(
    "host",
    [
        Host(dtype=0, dims=(3, 5, 7)),
        Host(dtype=27, format=29, dims=(1, 16)),
        Host(dtype=9, dims=(1,) * 8),
        Host(dtype=2, dims=(300_000,)),
        Host(names=True),
        Host(warm=2, first_id=10),
        Host(model="spec", rounds=3),
        Host(param='{"text":"blank, comma; bar | and \\u00fc","list":[1,2.5,-3]}'),
        Host(setups=2, rounds=3),
    ],
    ids=lambda host: " ".join(host.words()),
)
def test_any_host(tmp_path, host):
    asked = Asked(types=("tensor", "op"), ranges=((0, 5),), time=2)
    run = record(tmp_path, "--type", "tensor", "op", "-er", "0,5", "-time", "2", host=host)
    assert_tensors_counted(run, assert_recorded(run, host, asked))


def test_of_two_executions_after_one_setup_the_later_stays(tmp_path):
    """Both have the same paths, since the library's folders follow the setups."""
    host, asked = Host(executions=2, rounds=3), Asked(ranges=((0, 5),))
    assert_recorded(record(tmp_path, "-er", "0,5", host=host), host, asked)
    assert_recorded(record(tmp_path, "-er", "0,2", host=host, out="odd"), host, Asked(ranges=((0, 2),)))


@pytest.mark.parametrize("option", ["-device", "--device-id"])
def test_only_the_chosen_device_is_recorded(tmp_path, option):
    """Two processes on devices 3 and 4; tables know no device."""
    host = Host(layers=1, device=3)
    more = ["--processes", "2"]
    run = record(tmp_path, option, "4", "-tiling", "--type", "tensor", "op", host=host, more=more)
    asked = Asked(device=4, tiling=True, types=("tensor", "op"))
    expected = {}
    for pid, device in run.devices.items():
        expected.update(Recording(host, asked, pid, device).files())
    assert sorted(run.devices.values()) == [3, 4]
    assert run.files() == expected
    assert {path.split("/")[1] for path in expected if path.startswith("tensors/")} == {f"4_{max(run.devices)}"}


def test_a_device_nobody_uses(tmp_path):
    run = record(tmp_path, "-device", "7")
    assert run.files() == {}


def test_output_is_the_current_folder_unless_said(tmp_path):
    run = record(tmp_path, host=Host(rounds=1), out=None)
    assert_recorded(run, Host(rounds=1))
    assert [path.name for path in tmp_path.iterdir()] == ["ait_dump"]


@pytest.mark.parametrize("option", ["-o", "--output"])
def test_output_goes_to_a_new_folder(tmp_path, option):
    run = record(tmp_path, option, "aasx/sss", host=Host(rounds=1), out=None)
    run.out = tmp_path / "aasx/sss"
    assert_recorded(run, Host(rounds=1))


def test_a_host_that_changes_its_folder_writes_to_the_same_place(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    script = tmp_path / "run.sh"
    script.write_text(f"cd elsewhere && exec {host_program()}\n")
    process = run_to_the_end(dump_command("sh run.sh", out="out"), cwd=tmp_path)
    assert process.returncode == 0, process.stderr
    assert_recorded(Run(process, tmp_path / "out"))
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_log_level_debug_says_more(tmp_path):
    quiet = record(tmp_path, "-l", "error", out="quiet")
    loud = record(tmp_path, "--log-level", "debug", out="loud")
    assert_recorded(quiet)
    assert_recorded(loud)
    assert f"process {loud.pid}" in loud.process.stderr
    assert f"process {quiet.pid}" not in quiet.process.stderr
    assert len(loud.process.stderr) > len(quiet.process.stderr)


@pytest.mark.parametrize("level", ["debug", "info", "warning", "error", "fatal", "critical"])
def test_every_log_level_is_known(tmp_path, level):
    assert_recorded(record(tmp_path, "-l", level, host=Host(rounds=1)), Host(rounds=1))


@pytest.mark.parametrize(
    "words, complaint",
    [
        (("--type", "tensors"), "--type"),
        (("-ids", "2,,3"), "-ids"),
        (("-ids", "2_"), "-ids"),
        (("-ids", "a"), "-ids"),
        (("-er", "3"), "-er"),
        (("-er", "1,2,3"), "-er"),
        (("-er", "5,3"), "-er"),
        (("-er", "-1,3"), "-er"),
        (("-er", "0,9223372036854775808"), "-er"),
        (("-child", "perhaps"), "-child"),
        (("-time", "3"), "-time"),
        (("-time", "x"), "-time"),
        (("-opname", "a$b"), "-opname"),
        (("-stp", "3"), "-stp"),
        (("-device", "-1"), "-device"),
        (("-device", "one"), "-device"),
        (("-l", "loud"), "-l"),
        (("-o", "run.sh/x"), "run.sh"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_a_wrong_value_stops_before_the_command(ait, tmp_path, words, complaint):
    (tmp_path / "run.sh").write_text("touch ran\n")
    process = ait("llm", "dump", "--exec", "sh run.sh", *words)
    assert process.returncode == 2
    assert complaint in process.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["run.sh"]
