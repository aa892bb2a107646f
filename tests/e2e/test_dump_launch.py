"""The life of a recorded command: environment, terminal, signals, end; the manifest; why nothing was captured."""

import json
import os
import pathlib
import platform
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest
from atb_host import HOSTS, Asked, Host, Recording, read_tree
from conftest import PROGRAM, error_line
from dump_run import TIMEOUT_SECONDS, Run, assert_recorded, dump_command, host_program, record, run_to_the_end
from terminal import Terminal

PROBE = PROGRAM.parent.parent / "lib" / "ait" / "libatb_probe.so"


def environment_of(tmp_path, *words, command="env", **variables):
    """What the command finds, as a dictionary."""
    environment = {**os.environ, **variables}
    process = run_to_the_end(dump_command(command, *words, out="out"), cwd=tmp_path, env=environment)
    assert process.returncode == 0, process.stderr
    return dict(re.findall(r"^(\w+)=(.*)$", process.stdout, re.M))


def test_the_probe_is_preloaded_before_what_was_there(tmp_path):
    assert environment_of(tmp_path)["LD_PRELOAD"] == str(PROBE)
    assert environment_of(tmp_path, LD_PRELOAD="libm.so.6")["LD_PRELOAD"] == f"{PROBE}:libm.so.6"


def test_a_host_with_another_preloaded_library_is_recorded(tmp_path):
    run = record(tmp_path, env={**os.environ, "LD_PRELOAD": "libm.so.6"})
    assert_recorded(run)


def test_the_documented_variables(tmp_path):
    words = ["--type", "model", "tensor", "-ids", "2,", "3_1", "-er", "3,5,7,7", "-child", "f", "-time", "2"]
    words += ["-opname", "Self", "-tiling", "-stp", "1", "-device", "3", "-l", "warning", "-sd"]
    found = environment_of(tmp_path, *words)
    expected = {
        "ATB_SAVE_TENSOR": "2", "ATB_SAVE_TENSOR_TIME": "2", "ATB_SAVE_TENSOR_IDS": "2,3_1",
        "ATB_SAVE_TENSOR_RUNNER": "self", "ATB_OUTPUT_DIR": f"{tmp_path}/out/", "ATB_SAVE_CHILD": "0",
        "ATB_SAVE_TENSOR_RANGE": "3,5,7,7", "ATB_SAVE_TILING": "1", "ATB_SAVE_TENSOR_PART": "1",
        "ATB_SAVE_CPU_PROFILING": "0", "ATB_DEVICE_ID": "3", "ATB_AIT_LOG_LEVEL": "2",
    }  # fmt: skip
    assert found | expected == found
    assert set(found["ATB_DUMP_TYPE"].split("|")) == {"model", "layer", "tensor"}
    assert re.fullmatch(r"\d{8}_\d{6}", found["ATB_TIMESTAMP"])
    assert found["ATB_CUR_PID"].isdigit()


def test_the_defaults_as_variables(tmp_path):
    found = environment_of(tmp_path)
    expected = {
        "ATB_SAVE_TENSOR": "1", "ATB_SAVE_TENSOR_TIME": "1", "ATB_DUMP_TYPE": "tensor", "ATB_SAVE_CHILD": "1",
        "ATB_SAVE_TENSOR_RANGE": "0,0", "ATB_SAVE_TILING": "0", "ATB_SAVE_TENSOR_PART": "2", "ATB_AIT_LOG_LEVEL": "1",
    }  # fmt: skip
    assert found | expected == found


@pytest.mark.parametrize("words, seed", [(["-seed"], "2024"), (["-seed", "7"], "7"), (["--seed", "0", "-sd"], "0")])
def test_a_seed_asks_for_determinism(tmp_path, words, seed):
    found = environment_of(tmp_path, *words)
    expected = {
        "LCCL_DETERMINISTIC": "1", "HCCL_DETERMINISTIC": "true", "ATB_MATMUL_SHUFFLE_K_ENABLE": "0",
        "ATB_LLM_LCOC_ENABLE": "0", "PYTHONHASHSEED": seed,
    }  # fmt: skip
    assert found | expected == found
    manifest = json.loads((tmp_path / "out/ait_dump/manifest.json").read_text())
    assert manifest["options"]["seed"] == int(seed)


def test_without_a_seed_the_command_is_asked_for_nothing(tmp_path, monkeypatch):
    names = {"LCCL_DETERMINISTIC", "ATB_LLM_LCOC_ENABLE"}
    for name in names:  # another test may have seeded this process
        monkeypatch.delenv(name, raising=False)
    assert not set(environment_of(tmp_path)) & names


def test_settings_of_another_run_are_not_inherited(tmp_path):
    names = "ATB_CHECK_TYPE ATB_EXIT ATB_SAVE_TENSOR_IDS ATB_SAVE_TENSOR_RUNNER ATB_DEVICE_ID AIT_DRY_RUN"
    foreign = dict.fromkeys(names.split(), "1")
    assert not set(foreign) & set(environment_of(tmp_path, **foreign))
    run = record(tmp_path, env={**os.environ, **foreign, "ATB_SAVE_TENSOR_TIME": "0"}, out="again")
    assert_recorded(run)


@pytest.mark.parametrize("end, status", [("return", 0), ("return", 7), ("abort", 134), ("segv", 139), ("kill", 137)])
def test_the_status_is_the_commands(tmp_path, end, status):
    given = status if status < 128 else 0
    run = record(tmp_path, more=["--end", end, "--status", str(given)], status=status)
    assert run.manifest["exit_status"] == status
    assert run.manifest["signal"] == (status - 128 if status > 128 else None)
    assert run.manifest["complete"] is (status < 128)


@pytest.mark.parametrize(
    "command, part",
    [("", "--exec"), ("   ", "--exec"), ("no-such-program", "no-such-program"), ("sh run.sh > log", "script"),
     ("sh run.sh | cat", "script"), ("sh run.sh; true", "script"), ("sh 'run.sh", "quote")],
)  # fmt: skip
def test_a_command_that_cannot_be_run(ait, tmp_path, command, part):
    assert part in error_line(ait("llm", "dump", "--exec", command, "-o", "out"))
    assert not (tmp_path / "out").exists()


def test_quotes_are_those_of_a_shell_and_nothing_is_expanded(ait, tmp_path):
    process = ait("llm", "dump", "--exec", "printf '[%s]' 'a b' \"c>d\" $HOME *", "-o", "out")
    assert "[a b][c>d][$HOME][*]" in process.stdout


def test_input_is_the_users(tmp_path):
    process = subprocess.run(
        dump_command([host_program(), "--chat"], out="out"), cwd=tmp_path, input="one\ntwo\nquit\n",
        capture_output=True, text=True, timeout=TIMEOUT_SECONDS,
    )  # fmt: skip
    assert process.returncode == 0
    assert "no terminal\n> answer 0 to one\n> answer 1 to two\n> host" in process.stdout


def test_a_conversation_on_a_terminal_while_it_is_recorded(tmp_path):
    with Terminal(dump_command([host_program(), "--chat"], "-er", "0,9", out="out"), tmp_path) as terminal:
        assert "a terminal is listening" in terminal.read_until("> ")
        terminal.write("hello\n")
        assert "answer 0 to hello" in terminal.read_until("> ")
        terminal.write("and again\n")
        assert "answer 1 to and again" in terminal.read_until("> ")
        terminal.write("quit\n")
        text, status = terminal.finish()
    assert status == 0
    run = Run(subprocess.CompletedProcess([], 0, terminal.text, ""), tmp_path / "out")
    assert_recorded(run, asked=Asked(ranges=((0, 9),)))
    assert "Next: " in text


def test_control_c_reaches_the_command_and_the_summary_comes_all_the_same(tmp_path):
    command = [host_program(), "--rounds", "500", "--pause-ms", "20", "--on-interrupt", "5"]
    with Terminal(dump_command(command, "-er", "0,999", out="out"), tmp_path) as terminal:
        terminal.read_until("device 0")
        time.sleep(0.3)
        terminal.write("\x03")
        text, status = terminal.finish()
    assert status == 5
    run = Run(subprocess.CompletedProcess([], 5, terminal.text, ""), tmp_path / "out")
    assert run.manifest["complete"] is True
    assert run.manifest["tensors"]["written"] == sum(path.endswith(".bin") for path in run.files())
    assert run.manifest["tensors"]["lost"] == 0
    assert "Next: " in text


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_sent_to_ait_is_passed_on(tmp_path, number):
    command = dump_command([host_program(), "--rounds", "500", "--pause-ms", "20"], "-er", "0,999", out="out")
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        line = process.stdout.readline()
        process.send_signal(number)
        rest, _ = process.communicate(timeout=TIMEOUT_SECONDS)
    run = Run(subprocess.CompletedProcess(command, process.returncode, line + rest, ""), tmp_path / "out")
    assert process.returncode == 128 + number
    assert not pathlib.Path(f"/proc/{run.pid}").exists()
    assert run.manifest["signal"] == number


def limited(command, limit, before=""):
    """The command under `ulimit -f`: no file may become larger."""
    return ["sh", "-c", f'{before} ulimit -f {limit}; exec "$@"', "sh", *map(str, command)]


@pytest.mark.parametrize("limit", [0, 1, 8])
def test_a_limit_on_the_size_of_files_does_not_end_ait(tmp_path, limit):
    command = [host_program(), *Host(layers=1, dims=(100, 100)).words(), "--end", "return", "--status", "7"]
    process = run_to_the_end(limited(dump_command(command, out="out"), limit), cwd=tmp_path)
    assert process.returncode == 7, process.stderr
    assert "Next: " in process.stdout
    assert "not complete" in process.stdout
    assert list((tmp_path / "out").rglob(".*")) == []


@pytest.mark.parametrize("before", ["", "trap '' XFSZ PIPE;"])
@pytest.mark.parametrize("script", ["head -c 5000 /dev/zero >big", "yes | head -1"])
def test_a_command_meets_its_limits_as_it_would_alone(tmp_path, before, script):
    (tmp_path / "run.sh").write_text(
        f"{script}\necho ${{PIPESTATUS[@]}} >>statuses\nexec head -c 5000 /dev/zero >big\n"
    )
    alone = run_to_the_end(limited(["bash", "run.sh"], 1, before), cwd=tmp_path)
    recorded = run_to_the_end(limited(dump_command("bash run.sh", out="out"), 1, before), cwd=tmp_path)
    status = alone.returncode if alone.returncode >= 0 else 128 - alone.returncode
    assert recorded.returncode == status
    first, second = (tmp_path / "statuses").read_text().splitlines()
    assert first == second


def test_the_manifest_says_what_was_asked_and_what_came(tmp_path):
    host = Host(layers=1)
    words = ["--type", "tensor", "model", "op", "onnx", "-er", "0,1", "-stp", "1", "-ids", "2, 3_1"]
    before = int(time.time())
    run = record(tmp_path, *words, host=host)
    manifest = run.manifest
    asked = Asked(types=("tensor", "model", "op", "onnx"), ranges=((0, 1),), part=1, ids=["2", "3_1"])
    tensors = [make() for path, make in Recording(host, asked, run.pid).tensors.items() if path.endswith(".bin")]

    assert manifest["complete"] is True and manifest["incomplete_because"] == []
    assert manifest["command"] == [str(host_program()), *host.words()]
    assert manifest["options"]["save_operation_ids"] == "2,3_1"
    assert manifest["options"]["execute_range"] == "0,1"
    assert manifest["options"]["save_tensor_part"] == 1
    assert set(manifest["options"]["type"]) == {"tensor", "model", "layer", "op", "onnx"}
    version = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True).stdout
    assert manifest["version"] in version
    assert manifest["versions"]["glibc"] == platform.libc_ver()[1]
    start, end = (time.mktime(time.strptime(manifest[key][:19], "%Y-%m-%dT%H:%M:%S")) for key in ("start", "end"))
    assert before <= start <= end <= time.time()
    counts = manifest["tensors"]
    assert counts["announced"] == counts["written"] == len(tensors)
    assert counts["announced_bytes"] == counts["written_bytes"] == sum(map(len, tensors))
    assert counts["failed"] == counts["lost"] == 0
    assert [process["pid"] for process in manifest["processes"]] == [run.pid]
    files = {path for paths in manifest["written_files"].values() for path in paths}
    assert files == {path for path in run.files() if not path.startswith("tensors/")}
    # A folder that travels names no place of the machine it was made on, but for the command.
    del manifest["command"]
    assert str(tmp_path) not in json.dumps(manifest)


def test_json_is_alone_on_standard_output(tmp_path):
    run = record(tmp_path, "--json", host=Host(layers=1))
    assert json.loads(run.process.stdout) == run.manifest
    assert re.search(r"^host \d+ device 0$", run.process.stderr, re.M)


@pytest.mark.parametrize("how", ["folder", "link"])
def test_a_dump_folder_of_another_user_is_refused(ait, tmp_path, how):
    if os.geteuid() != 0:
        pytest.skip("only root can make folders of another user")
    planted = tmp_path / "out/ait_dump"
    (tmp_path / "out/elsewhere").mkdir(parents=True)
    if how == "folder":
        planted.mkdir()
    else:
        planted.symlink_to("elsewhere")
    os.chown(planted, 65534, 65534, follow_symlinks=False)
    line = error_line(ait("llm", "dump", "--exec", "touch ran", "-o", "out"))
    assert "ait_dump: belongs to user 65534" in line and "-o" in line
    assert not (tmp_path / "ran").exists() and list(planted.iterdir()) == []


def test_a_dump_can_travel(tmp_path):
    """Two dumps, moved elsewhere: files are read and compared, and no path leads back."""
    words = ["--type", "tensor", "op", "layer"]
    runs = [record(tmp_path, *words, out=name, host=Host(layers=1)) for name in ("one", "two")]
    place = tmp_path / "far" / "away"
    place.mkdir(parents=True)
    tensor = "0/2_PrefillLayer/1_SelfAttentionOperation/after/outtensor0.bin"
    paths = []
    for run in runs:
        for path, data in read_tree(run.root).items():
            if path != "manifest.json":
                assert str(tmp_path).encode() not in data, path
        shutil.move(run.root, place / run.out.name)
        paths.append(place / run.out.name / "tensors" / f"0_{run.pid}" / tensor)
    shown = subprocess.run([PROGRAM, "show", paths[0]], capture_output=True, text=True, cwd=place)
    assert shown.returncode == 0 and "float16" in shown.stdout
    command = [PROGRAM, "llm", "compare", "-gp", paths[0], "-mp", paths[1], "--json"]
    compared = subprocess.run(command, capture_output=True, text=True, cwd=place)
    assert compared.returncode == 0, compared.stderr
    # Each process has contents of its own.
    assert "cosine_similarity" in compared.stdout


def test_two_dumps_into_one_folder(tmp_path):
    first = record(tmp_path, host=Host(layers=1))
    kept = first.files()
    first_manifest = first.manifest
    second = record(tmp_path, "-time", "0", host=Host(layers=1))
    assert "earlier dump" in second.process.stderr
    expected = kept | Recording(Host(layers=1), Asked(time=0), second.pid).files()
    files = second.files()
    manifests = [path for path in files if re.fullmatch(r"manifest_\d{8}_\d{6}\.json", path)]
    assert [json.loads(files.pop(path)) for path in manifests] == [first_manifest]
    assert files == expected
    assert second.manifest["options"]["save_time"] == 0
    assert second.manifest["tensors"]["written"] == first_manifest["tensors"]["written"]


def test_files_are_for_the_owner_and_the_group(tmp_path):
    run = record(tmp_path, "--type", "tensor", "op", "model", "onnx", "cpu_profiling", "-tiling", umask=0o000)
    for path in run.root.rglob("*"):
        assert oct(path.stat().st_mode & 0o777) == ("0o750" if path.is_dir() else "0o640"), path


def test_a_folder_with_a_blank_in_its_name(tmp_path):
    run = record(tmp_path, "--type", "tensor", "op", out="two words/ä")
    assert_recorded(run, asked=Asked(types=("tensor", "op")))


def test_a_process_that_outlives_the_command_a_little_is_waited_for(tmp_path):
    (tmp_path / "run.sh").write_text(f"{host_program()} --layers 1 --pause-ms 100 > log &\nsleep 0.2\n")
    process = run_to_the_end(dump_command("sh run.sh", out="out"), cwd=tmp_path)
    assert process.returncode == 0
    process.stdout += (tmp_path / "log").read_text()
    run = Run(process, tmp_path / "out")
    assert_recorded(run, Host(layers=1))
    assert run.manifest["complete"] is True


def why_not(run):
    """The sentences of the summary and of the manifest, which are the same."""
    manifest = run.manifest
    assert manifest["complete"] is False
    assert manifest["tensors"]["written"] == 0
    assert run.files() == {}
    for sentence in manifest["incomplete_because"]:
        assert sentence in run.process.stdout
    assert len(manifest["incomplete_because"]) == 1
    return manifest["incomplete_because"][0]


def dump_anything(tmp_path, command, *words):
    environment = {name: value for name, value in os.environ.items() if name != "ATB_HOME_PATH"}
    process = run_to_the_end(dump_command(command, *words, out="out"), cwd=tmp_path, env=environment)
    assert process.returncode == 0, process.stderr
    return Run(process, tmp_path / "out")


def test_nothing_is_captured_of_a_static_program(tmp_path):
    run = dump_anything(tmp_path, [HOSTS / "static_host"])
    assert "static" in why_not(run)
    assert "static host" in run.process.stdout


def test_nothing_is_captured_without_the_acceleration_library(tmp_path):
    assert "libatb" in why_not(dump_anything(tmp_path, "true"))


def test_nothing_is_captured_of_onnx_alone(tmp_path):
    assert "--type onnx alone" in why_not(record(tmp_path, "--type", "onnx"))


def test_nothing_is_captured_where_the_filter_matches_nothing(tmp_path):
    assert "-ids 99" in why_not(record(tmp_path, "-ids", "99"))
    assert "-opname conv" in why_not(record(tmp_path, "-opname", "Conv", out="other"))


@pytest.mark.parametrize("words, missing", [(["-ids", "2,99"], "id 99"), (["-opname", "self,conv"], "conv")])
def test_a_filter_that_matches_only_in_part_is_not_complete(tmp_path, words, missing):
    run = record(tmp_path, *words)
    assert run.manifest["tensors"]["written"] > 0
    (why,) = run.manifest["incomplete_because"]
    assert missing in why and why in run.process.stdout


def test_nothing_is_captured_of_rounds_that_are_not_reached(tmp_path):
    sentence = why_not(record(tmp_path, "-er", "50,60", host=Host(rounds=4)))
    assert "50,60" in sentence and "round 2" in sentence


def test_nothing_is_captured_of_a_device_that_is_not_used(tmp_path):
    assert "-device 5: no operation ran on that device" in why_not(record(tmp_path, "-device", "5"))


def test_nothing_is_captured_of_a_setuid_program(tmp_path):
    program = tmp_path / "setuid_true"
    shutil.copy("/bin/true", program)
    if os.geteuid() != 0:
        pytest.skip("only root can make a program of another user")
    os.chown(program, 65534, 65534)
    program.chmod(0o6755)
    assert re.search("setuid|rights", why_not(dump_anything(tmp_path, [program])))


def test_a_dry_run_counts_and_writes_nothing(tmp_path):
    host = Host(layers=1, rounds=4, dims=(64, 64))
    dry = record(tmp_path, "--dry-run", "-er", "0,2", "--type", "tensor", "op", "layer", host=host, out="dry")
    assert not dry.root.exists()
    assert read_tree(tmp_path) == {}
    words = ["--dry-run", "--json", "-er", "0,2"]
    document = json.loads(record(tmp_path, *words, host=host).process.stdout)
    round_zero = [make() for path, make in Recording(host, Asked(), 1).tensors.items() if path.endswith(".bin")]
    forecast = document["forecast"]
    assert forecast["round_tensors"] == len(round_zero)
    # Pids of other lengths change no byte count: they are in no file.
    assert forecast["round_bytes"] == sum(map(len, round_zero))
    assert forecast["rounds_requested"] == 3 and forecast["rounds_reached"] == 3
    assert forecast["tensors"] == 3 * len(round_zero)
    assert forecast["fits"] is True and forecast["seconds"] > 0
    for text in (str(len(round_zero)), "forecast"):
        assert text in dry.process.stdout


def test_a_python_program_that_loads_the_library_itself(tmp_path):
    """As models do: through dlopen, privately, in a process that has long been running."""
    script = tmp_path / "model.py"
    script.write_text(
        "import ctypes\n"
        f"library = ctypes.CDLL({str(HOSTS / 'abi1/lib/libatb_host.so')!r})\n"
        "words = (ctypes.c_char_p * 3)(b'model', b'--layers', b'1')\n"
        "library.atb_host_run(3, words)\n"
    )
    run = dump_anything(tmp_path, [sys.executable, script])
    assert_recorded(run, Host(layers=1))


def test_a_command_in_several_shells(tmp_path):
    """Processes that record nothing leave nothing."""
    (tmp_path / "inner.sh").write_text(f"true; {host_program()} --layers 1; true\n")
    (tmp_path / "outer.sh").write_text("ls / >/dev/null; sh inner.sh | cat; exit 3\n")
    process = run_to_the_end(dump_command("sh outer.sh", out="out"), cwd=tmp_path)
    assert process.returncode == 3
    run = Run(process, tmp_path / "out")
    assert_recorded(run, Host(layers=1))
    assert [one["pid"] for one in run.manifest["processes"]] == [run.pid]
