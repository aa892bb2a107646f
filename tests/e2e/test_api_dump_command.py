"""`ait api dump`: scripts that know nothing of it. What stands in the document is in test_seed_004.py."""

import json
import subprocess
import sys

import pytest

TRAINING = """
import torch
{imports}
torch.manual_seed(0)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = torch.utils.data.DataLoader(torch.arange(20.0).reshape(5, 4), batch_size=1)
for step, batch in {loop}:
    {inside}
    loss = torch.tanh(model(batch)).sum() * (step + 1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("step", step, loss.item(), flush=True)
"""
LOADER, PLAIN = "enumerate(loader)", "enumerate(torch.arange(20.0).reshape(5, 1, 4))"


def script(folder, imports="", loop=LOADER, inside="pass"):
    path = folder / "train.py"
    path.write_text(TRAINING.format(imports=imports, loop=loop, inside=inside))
    return path


def calls(folder, kind="forward"):
    (path,) = folder.glob(f"{kind}_info_*.json")
    return json.loads(path.read_text())


def step_of(folder):
    """The factor of the loss says which step was recorded."""
    (call,) = (call for key, call in calls(folder).items() if key.startswith("Tensor*mul*"))
    return call["args"][1]["value"] - 1


@pytest.mark.parametrize("loop", [LOADER, PLAIN], ids=["loader", "optimizer"])
def test_a_script_without_a_word_of_it_is_recorded(ait, tmp_path, loop):
    path = script(tmp_path, loop=loop)
    done = ait("api", "dump", "--exec", f"{sys.executable} {path}", "-o", "out")
    assert done.returncode == 0, done.stderr
    assert step_of(tmp_path / "out") == 1 and "Functional*linear*0" in calls(tmp_path / "out", "backward")
    (forward,) = (tmp_path / "out").glob("forward_info_*.json")
    assert (
        f"Recorded: {forward}\n" in done.stdout and f"Next: ait api check -forward {forward} -backward" in done.stdout
    )
    assert "iteration 1 is recorded, and the script ends here" in done.stderr
    steps = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("step")]
    assert steps == (["0", "1"] if loop is LOADER else ["0"])


def test_a_script_may_run_on(ait, tmp_path):
    plain = subprocess.run([sys.executable, script(tmp_path)], capture_output=True, text=True, check=True).stdout
    command = f"{sys.executable} {tmp_path / 'train.py'}"
    done = ait("api", "dump", "--exec", command, "--iteration", "0,3", "--keep-going")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(plain)
    assert [step_of(tmp_path / folder) for folder in ("step0", "step3")] == [0, 3]
    assert done.stdout.count("Recorded: ") == 2


def test_the_status_is_the_commands_own_and_nothing_recorded_is_said(ait, tmp_path):
    done = ait("api", "dump", "--exec", f"{sys.executable} -c 'import torch; exit(3)'", "-o", "out")
    assert done.returncode == 3 and "Nothing was recorded" in done.stdout
    assert done.stderr == "" and not (tmp_path / "out").exists()


def test_an_iteration_that_is_none_is_refused(ait):
    done = ait("api", "dump", "--exec", "true", "--iteration", "x")
    assert done.returncode == 2 and "--iteration takes numbers from 0" in done.stderr
