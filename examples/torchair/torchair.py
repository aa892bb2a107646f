"""A stand-in for TorchAir on machines without an NPU, for following docs/scenarios/torchair.md.

It checks every option as the real one does, and runs graphs on the CPU without recording anything. Put this folder on
PYTHONPATH.
"""

import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "python"))
import torchair_stand_in


class Modules:
    @staticmethod
    def setitem(modules, name, module):
        modules[name] = module


torchair_stand_in.install(Modules)
