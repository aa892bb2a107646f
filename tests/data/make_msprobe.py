"""Records tests/e2e/msprobe_model.py with msprobe: its tensors, its statistics, and its checksums; and its tensors with
the functions between modules and the backward passes.

    python tests/data/make_msprobe.py        # needs mindstudio-probe, see packages/requirements-importers.txt

`stack.json`, which holds paths of the machine, is left out, and the folder that dump.json names is nowhere:
ait uses the one beside it.
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SETTINGS = {"tensor": {}, "mix": {}, "statistics": {"summary_mode": "statistics"}, "md5": {"summary_mode": "md5"}}


def record(kind, folder):
    """In a process of its own: msprobe changes torch for good."""
    sys.path.insert(0, str(HERE.parent / "e2e"))
    import msprobe_model
    from msprobe.pytorch import PrecisionDebugger

    task = "tensor" if kind in ("tensor", "mix") else "statistics"
    config = {"task": task, "dump_path": folder, "rank": [], "step": [], "level": "mix" if kind == "mix" else "L0"}
    config[task] = {"scope": [], "list": [], "data_mode": ["all"], **SETTINGS[kind]}
    path = pathlib.Path(folder + ".json")
    path.write_text(json.dumps(config))
    model = msprobe_model.make_model()
    debugger = PrecisionDebugger(config_path=str(path))
    debugger.start(model)
    msprobe_model.run(model, backward=kind == "mix")
    debugger.stop()
    debugger.step()


def main():
    for kind in SETTINGS:
        with tempfile.TemporaryDirectory() as temporary:
            subprocess.run([sys.executable, __file__, kind, f"{temporary}/dump"], check=True)
            (found,) = pathlib.Path(temporary, "dump").glob("step0/proc*")
            target = HERE / "msprobe" / kind / "step0" / "proc4711"
            shutil.rmtree(HERE / "msprobe" / kind, ignore_errors=True)
            shutil.copytree(found, target, ignore=shutil.ignore_patterns("stack.json"))
            dump = json.loads((target / "dump.json").read_text())
            if dump["dump_data_dir"]:
                dump["dump_data_dir"] = "/nowhere/dump_tensor_data"
            (target / "dump.json").write_text(json.dumps(dump, indent=1) + "\n")


if __name__ == "__main__":
    record(*sys.argv[1:]) if len(sys.argv) > 1 else main()
