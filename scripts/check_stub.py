"""Holds the stub of a nanobind extension against the extension: `scripts/check_stub.py ait_llm._native`.

This is mypy's stubtest, told what nanobind's classes and functions are. Without that it would take the functions for
something else and never look at their arguments.
"""

import inspect
import re
import sys

from mypy import stubtest

# What nanobind gives to enumerations, and to classes that have no constructor.
WITHOUT_CONSTRUCTOR = [
    *("Comparison", "Operand", "RowFinding", "Side", "Statistics", "AlignedToken", "Coverage", "Pairing", "Record"),
    *("Row", "RowIterator", "RowSide", "RowStore", "Rows", "Subject", "Golden", "GoldenForm", "GoldenOutput"),
    *("ApiOutput", "ObjectFile", "TriggerEvent"),
]
NOT_FOR_A_STUB = [r".*\.__nb_enum__", rf".*\.({'|'.join(WITHOUT_CONSTRUCTOR)})\.__init__"]

is_function = stubtest.is_probably_a_function
mistakes_of_method = stubtest._verify_static_class_methods
signature_of = stubtest.safe_inspect_signature


def is_any_function(thing):
    return type(thing).__name__ == "nb_func" or is_function(thing)


def mistakes_of_any_method(stub, runtime, static_runtime, path):
    if type(static_runtime).__name__ == "nb_func":  # in a class it is always a static method
        return iter([] if stub.is_static or not stub.info else ["runtime is a staticmethod but stub is not"])
    return mistakes_of_method(stub, runtime, static_runtime, path)


def signature_of_any(function):
    overloads = getattr(function, "__nb_signature__", [])
    if len(overloads) != 1:
        return signature_of(function)
    text, _, defaults = overloads[0]
    text = re.sub(r"\\(\d+)", r"defaults[\1]", text)  # a default is a backslash and its number
    names = {"defaults": defaults}
    exec(f"from __future__ import annotations\n{text}: ...", names)
    return inspect.signature(names[function.__name__])


stubtest.is_probably_a_function = is_any_function
stubtest._verify_static_class_methods = mistakes_of_any_method
stubtest.safe_inspect_signature = signature_of_any
stubtest._verify_metaclass = lambda *_, **__: iter([])  # nanobind's own
stubtest.get_allowlist_entries = lambda _: NOT_FOR_A_STUB

options = ["--concise", "--ignore-disjoint-bases", "--allowlist", "NOT_FOR_A_STUB", *sys.argv[1:]]
sys.exit(stubtest.test_stubs(stubtest.parse_options(options)))
