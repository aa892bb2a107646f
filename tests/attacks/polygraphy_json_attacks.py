"""Attacks on the reader of Polygraphy's JSON."""

import base64
import io
import json

import numpy as np
from attack_list import attack
from hostile_pickle import RUNS_COMMAND, torch_zip


def npy(array):
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def array(content, key="array"):
    content = content if isinstance(content, str) else base64.b64encode(content).decode()
    return {"values": {key: content, "polygraphy_class": "ndarray"}, "polygraphy_class": "LazyArray"}


def results(*outputs, runner="onnxrt"):
    iterations = [{"outputs": each, "runtime": 0.1, "polygraphy_class": "IterationResult"} for each in outputs]
    return {"lst": [[runner, iterations]], "polygraphy_class": "RunResults"}


def polygraphy_json_attacks():
    good = npy(np.arange(4, dtype=np.float32))

    def add(name, why, content, words, **more):
        content = content if isinstance(content, bytes) else json.dumps(content).encode()
        attack(f"polygraphy_json/{name}.json", why, content, words, **more)

    def one(name, why, tensor, words, code="Corrupt", **more):
        add(name, why, results({"bad": tensor, "good": array(good)}), words, code=code, outcome="listed", **more)

    one("not_base64", "text that is no base64", array("####"), "not base64")
    one("escaped", "an escape in the text", array('AAA"AAAA'), "not base64")
    one("three_characters", "base64 cut short", array("AAA"), "not base64")
    one("only_padding", "nothing but padding", array("===="), "not base64")
    one("no_array", "base64 of something else", array(b"GIF89a"), "does not start like")
    one("cut_array", "an array that ends early", array(good[:-1]), "cut short")
    one("huge_array", "a header that promises 2 TiB", array(good.replace(b"(4,)", b"(9999999999,)")), "promises")
    one("pickled_objects", "an object array", array(npy(np.array([None], object))), "object array", code="Refused")
    torch_file = array(torch_zip(RUNS_COMMAND), "tensor")
    one("torch_runs_command", "a torch file that runs a command", torch_file, "posix.system", code="Refused")
    one("torch_is_numpy", "an array where a torch file is expected", array(good, "tensor"), "zip")
    add(
        "cut",
        "cut in the middle",
        json.dumps(results({"x": array(good)})).encode()[:-60] + b'"polygraphy_class"',
        "cut short",
    )
    add("lst_is_number", "a number for a list", {"lst": 7, "polygraphy_class": "RunResults"}, "cut short")
    add("runner_is_list", "a list for a name", {"lst": [[[], []]], "polygraphy_class": "RunResults"}, "cut short")
    add("outputs_missing", "iterations without outputs", {"lst": [["r", [{}]]], "polygraphy_class": "x"}, "cut short")
    wrapped = b'{"values":' * 50 + b"1" + b"}" * 50
    deep = b'{"lst": [["r", [{"outputs": {"x": ' + wrapped + b'}}]]], "polygraphy_class": "RunResults"}'
    add("wrapped_50_times", "values in values", deep, "cut short")
    add("nested", "8000 brackets for a recursive reader", b"[" * 8000 + b'"polygraphy_class"', "cut short")
