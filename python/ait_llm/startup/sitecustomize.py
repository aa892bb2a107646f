"""Records the torch models of a script that knows nothing of it, or the functions of torch that it calls.

Put the folder of this file first on PYTHONPATH and say what to record; `ait llm dump --probe torch` does both. Python
imports this module when it starts, before the script. It waits until the script imports torch, and a script that never
does pays nothing. The outermost module that a thread calls is the root of a recording, as if register_hook had been
called for it; see docs/torch_dump.md.

    AIT_TORCH_DUMP_PATH    the folder in which ait_dump/torch_tensors is made; without it nothing is recorded
    AIT_TORCH_TOKEN_RANGE  rounds to record, first and last of each stretch: "1,3,7,7" for 1, 2, 3 and 7; default "0,0";
                           "none" for nothing but model_tree.json, "all" for every round
    AIT_TORCH_MODULE_LIST  how the names of module classes to record begin, in upper or lower case: "linear,llamamlp"
    AIT_TORCH_LAYER_NAME   full name of what to record, * for anything: "root.model.layers.0.*"
    AIT_TORCH_TENSOR_PART  0 inputs, 1 outputs, 2 both (default)
    AIT_TORCH_DEVICE_ID    only models on this device; those on the CPU in any case
    AIT_TORCH_STATISTICS   0 tensors (default), 1 statistics in their place, 2 both
    AIT_TORCH_STATISTICS_PER_MODULE
                           1: a table of statistics for each call of a module, not one for each round
    AIT_TORCH_SKETCH       1: beside the statistics a sketch of each tensor
    AIT_TORCH_MODE         "module" (default), "api" or "module,api"
    AIT_TORCH_WEIGHTS      1: the parameters, too
    AIT_TORCH_STORE_AS     "bf16": float32 tensors are stored as bfloat16
    AIT_TORCH_SEED         an integer: deterministic computing with this seed
    AIT_TORCH_WHEN         "nan,inf,norm>X,every=N,spike=F": statistics of all rounds, tensors only around those in
                           which one of these holds
    AIT_TORCH_KEEP         how many rounds before and after; default 2
    AIT_TORCH_WRITERS, AIT_TORCH_MEMORY, AIT_TORCH_LINKS
                           threads that write, MiB that may wait to be written, 0: no hard links of the same bytes

    AIT_FX_DUMP_PATH       in place of AIT_TORCH_DUMP_PATH: the folder in which msit_fx_dump is made, with the graphs of
                           the script's torch.compile; see docs/torchair.md
    AIT_FX_TOKEN_RANGE     calls of each graph to record, as AIT_TORCH_TOKEN_RANGE

`ait api dump` has the calls of torch's functions in one iteration recorded instead; see docs/api-check.md.

    AIT_API_DUMP_PATH      the folder for forward_info_{pid}.json and its like; without it nothing is recorded
    AIT_API_ITERATION      the iteration, from 0; default 1. Several: "1,3"
    AIT_API_REAL_DATA      1: the tensors themselves
    AIT_API_LIST           "all" (default) or "att": the older tool's names
    AIT_API_KEEP_GOING     1: the script runs on behind the iteration

A sitecustomize that would have been imported without this one is imported, too. Whatever goes wrong here is one line on
stderr, and the script runs on. Nothing here may need a newer Python than the script's.
"""

import os
import sys

_FOLDER = os.path.dirname(os.path.abspath(__file__))


def _say(words):
    try:
        what = "torch models" if os.environ.get("AIT_TORCH_DUMP_PATH") else "calls of torch"
        sys.stderr.write("ait: %s of this process are not recorded: %s\n" % (what, words))
        sys.stderr.flush()
    except Exception:  # stderr is closed, say
        pass


class _Watch(object):
    """Stands first in sys.meta_path until a module is imported, and then calls a function."""

    def __init__(self, name, function):
        self._name = name
        self._function = function

    def find_spec(self, name, path=None, target=None):
        if name != self._name:
            return None
        sys.meta_path.remove(self)
        import importlib.util

        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            try:
                _run_after(spec.loader, self._function)
            except Exception as error:
                _say(error)
        return spec


def _run_after(loader, function):
    """Calls `function` when the loader has executed its module."""
    execute = loader.exec_module

    def exec_module(module):
        del loader.exec_module
        execute(module)
        function()

    loader.exec_module = exec_module


def _start_torch():
    from ait_llm.dump.torch_dump import zero_edit

    zero_edit.start(os.environ)


def _start_fx():
    from ait_llm.dump import fx_probe

    fx_probe.start(os.environ)


def _start_api():
    from ait_llm.api_check import zero_edit

    zero_edit.start(os.environ)


def _watch_for(name, start):
    """Calls `start` as soon as the module is there."""

    def guarded():
        try:
            _import_ait_llm()
            start()
        except Exception as error:
            _say("%s: %s" % (type(error).__name__, error))

    if name in sys.modules:
        guarded()
    else:
        sys.meta_path.insert(0, _Watch(name, guarded))


def _import_ait_llm():
    """The package that this file belongs to, without changing where the script finds its own."""
    if "ait_llm" in sys.modules:
        return
    try:
        _import_from(os.path.dirname(_FOLDER))
        return
    except ImportError as error:
        failure = error
    for name in [name for name in sys.modules if name.split(".")[0] == "ait_llm"]:
        del sys.modules[name]
    try:  # perhaps the script's Python has one that was built for it
        import ait_llm.dump.torch_dump  # noqa: F401
    except ImportError:
        version = "%d.%d" % sys.version_info[:2]
        raise ImportError("ait_llm cannot be imported by this Python %s (%s); install it there" % (version, failure))


def _import_from(folder):
    import importlib.util

    path = os.path.join(folder, "__init__.py")
    spec = importlib.util.spec_from_file_location("ait_llm", path, submodule_search_locations=[folder])
    module = importlib.util.module_from_spec(spec)
    sys.modules["ait_llm"] = module
    spec.loader.exec_module(module)


def _import_the_other():
    """The sitecustomize that this one hides, under its own name. What it raises is for Python to report, as always."""
    import importlib.machinery
    import importlib.util

    others = [entry for entry in sys.path if os.path.abspath(entry or ".") != _FOLDER]
    sys.path[:] = others
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


if os.environ.get("AIT_TORCH_DUMP_PATH"):
    _watch_for("torch", _start_torch)
if os.environ.get("AIT_FX_DUMP_PATH"):
    _watch_for("torch._dynamo.eval_frame", _start_fx)
if os.environ.get("AIT_API_DUMP_PATH"):
    _watch_for("torch", _start_api)
_import_the_other()
