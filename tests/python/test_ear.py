"""The native part that hears of calls of a function. It changes how functions are called, so each test is a process."""

import subprocess
import sys

COMMON = """
import gc, traceback
from ait_llm import _native

class Module:
    def wrapped(self, *args, **kwargs):
        return self.called(*args, **kwargs)
    def called(self, *args, **kwargs):
        return self.forward(*args, **kwargs)
    __call__ = wrapped

class Leaf(Module):
    def forward(self, x, *, begin=0):
        self.stack = [(frame.name, frame.lineno) for frame in traceback.extract_stack()]
        if x < 0:
            raise ValueError(x)
        return x + begin

class Outer(Module):
    def __init__(self):
        self.leaf = Leaf()
    def forward(self, x):
        return self.leaf(x, begin=1)

def begin(module, args, kwargs, outermost):
    log.append((type(module).__name__, args, kwargs, outermost))
    return answer and [module]

def end(begun, output, raised):
    log.append((type(begun[0]).__name__, output, raised))

def frames_of_failure():
    try:
        outer(-1)
    except ValueError as error:
        return [frame.name for frame in traceback.extract_tb(error.__traceback__)]

log, answer, outer = [], True, Outer()
for _ in range(100):  # until the interpreter has found faster ways
    outer(1)
"""


def run(code):
    done = subprocess.run([sys.executable, "-c", COMMON + code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_it_hears_of_its_subjects_and_nobody_sees_it():
    run("""
before, stack, frames = dict(vars(Module)), outer.leaf.stack, frames_of_failure()
ear = _native.Ear(Module.called, begin, end)
outer(1)
assert log == []
ear.add(id(outer.leaf))
for _ in range(100):
    log.clear()
    assert outer(1) == 2
assert log == [("Leaf", (1,), {"begin": 1}, False), ("Leaf", 2, False)]
assert vars(Module) == before and [name for name, _ in outer.leaf.stack] == [name for name, _ in stack]
assert frames_of_failure() == frames and log[-1] == ("Leaf", None, True)
ear.discard(id(outer.leaf))
log.clear()
assert outer(1) == 2 and log == []
""")


def test_it_holds_nothing_while_a_function_runs():
    run("""
import sys
class Counting(Module):
    def forward(self, x, *, named):
        return sys.getrefcount(x), sys.getrefcount(named), sys.getrefcount(self)
def quiet(*_):
    return True
counting, x = Counting(), object()
alone = counting(x, named=x)
ear = _native.Ear(Module.called, quiet, quiet)
ear.add(id(counting))
assert counting(x, named=x) == alone
""")


def test_it_hears_of_outermost_calls():
    run("""
ear = _native.Ear(Module.called, begin, end)
ear.outermost = True
for _ in range(2):
    frames_of_failure()
    outer(1)
    assert log == [("Outer", (-1,), {}, True), ("Outer", None, True), ("Outer", (1,), {}, True), ("Outer", 2, False)]
    log.clear()
ear.add(id(outer.leaf))
outer(1)
assert [entry[0] for entry in log] == ["Outer", "Leaf", "Leaf", "Outer"] and log[1][-1] is False
""")


def test_a_call_that_is_begun_with_none_has_no_end():
    run("""
answer = None
ear = _native.Ear(Module.called, begin, end)
ear.add(id(outer))
assert outer(1) == 2 and log == [("Outer", (1,), {}, False)]
""")


def test_what_begin_and_end_raise_reaches_the_caller_and_spoils_nothing():
    run("""
def refuse(*_):
    raise KeyboardInterrupt
for functions in ((refuse, end), (begin, refuse)):
    ear = _native.Ear(Module.called, *functions)
    ear.outermost = True
    for x in (1, -1):
        try:
            outer(x)
            raise SystemExit("not raised")
        except KeyboardInterrupt:
            pass
    del ear, functions
""")


def test_a_function_has_one_and_it_goes_with_its_last_owner():
    run("""
ear = _native.Ear(Module.called, begin, end)
for function, error in ((Module.called, ValueError), (len, TypeError)):
    try:
        _native.Ear(function, begin, end)
        raise SystemExit("not refused")
    except error:
        pass
ear.outermost = True
del ear
gc.collect()
assert outer(1) == 2 and log == []
""")
