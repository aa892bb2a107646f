"""What the programs of the zoo call where a user of ait would call register_hook.

It does nothing unless AIT_ZOO names the folder to record in: a program that is run alone, or recorded from outside, has
nothing of ait in it.
"""

import os


def recorded(model):
    folder = os.environ.get("AIT_ZOO")
    if folder:
        from ait_llm import DumpConfig, register_hook

        register_hook(model, DumpConfig(folder, list(range(1000))))
