"""Attacks on the reader of msprobe's dump.json. A tensor that makes no sense is left out and counted."""

import json

from attack_list import attack


def tensor(**changes):
    fields = {
        "type": "torch.Tensor",
        "dtype": "torch.float32",
        "shape": [4],
        "Max": 1,
        "Min": 0,
        "Mean": 0.5,
        "Norm": 2,
    }
    return {key: value for key, value in {**fields, **changes}.items() if value != "left out"}


def dump(data):
    return {"task": "statistics", "level": "L0", "dump_data_dir": None, "data": data}


def call(value):
    return {"Module.fc.Linear.forward.0": {"input_args": [value]}}


def msprobe_json_attacks():
    def add(name, why, content, words, **more):
        content = content if isinstance(content, bytes) else json.dumps(content).encode()
        attack(f"msprobe_json/{name}.json", why, content, words, **more)

    whole = json.dumps(dump(call(tensor()))).encode()
    add("cut", "cut in the middle", whole[:-40], "cut short")
    add("no_data", "no data at all", {"dump_data_dir": None}, "cut short")
    add("data_is_list", "a list for the calls", dump([]), "cut short")
    add("call_is_text", "a text for a call", dump({"Module.fc.Linear.forward.0": "x"}), "cut short")
    deep = b'{"a":' * 400 + b"1" + b"}" * 400
    add(
        "nested", "arguments 400 deep", b'{"dump_data_dir": 0, "data": {"k": {"output": [' + deep + b"]}}}", "cut short"
    )
    brackets = b'{"dump_data_dir": 0, "data": {"k": {"output": ' + b"[" * 8000
    add("brackets", "8000 brackets for a recursive reader", brackets, "cut short")
    add("long_names", "a place of 4000 bytes", dump({"k": {"output": {"x" * 4000: tensor()}}}), "cut short")
    add("bad_utf8", "bytes that are no text", whole.replace(b"fc", b"\xff\xfe"), "cut short")

    def left_out(name, why, **changes):
        """The only tensor of a file."""
        add(name, why, dump(call(tensor(**changes))), "none of its 1 tensors")

    def no_data(name, why, **changes):
        add(name, why, dump(call(tensor(**changes))), "tensor has no data.", code="Unsupported")

    left_out("negative_size", "a size of -1", shape=[-1])
    left_out("elements_overflow", "sizes whose product is beyond 64 bits", shape=[2**40, 2**40])
    left_out("hundred_dimensions", "more dimensions than anybody has", shape=[1] * 100)
    left_out("shape_is_text", "a text for a shape", shape="4")
    left_out("unknown_type", "a type that does not exist", dtype="torch.float3")
    no_data("number_of_digits", "a maximum of 400 digits", Max=int("9" * 400))
    no_data("data_elsewhere", "data in a file of its choice", data_name="../../etc/passwd")
    no_data("exbibyte", "a shape whose data no machine could hold", shape=[1 << 60])
