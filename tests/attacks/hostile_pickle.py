"""Hostile pickles, written by hand, instruction by instruction: the pickle module would refuse to."""

import pickle
import struct

from hostile_zip import Member, zip_file

MARKER = "ait_attack_was_run"
COMMAND = f"touch {MARKER}"
TEBI = 1 << 40
RUNS_COMMAND = f"cposix\nsystem\n(S'{COMMAND}'\ntR.".encode()


def value(plain):
    """Instructions that push a plain value."""
    return pickle.dumps(plain, 2)[2:-1]


def text4(text):
    """A short string of protocol 4."""
    return b"\x8c" + bytes([len(text)]) + text.encode()


def name(module, attribute):
    return f"c{module}\n{attribute}\n".encode()


def storage(kind="FloatStorage", key="0", elements=4, *more):
    parts = value("storage") + name("torch", kind) + value(key) + value("cpu") + value(elements)
    return b"(" + parts + b"".join(map(value, more)) + b"tQ"


ORDERED_DICT = name("collections", "OrderedDict") + b")R"
FALSE = b"\x89"


def tensor(stored=None, offset=0, shape=(4,), strides=(1,), metadata=b""):
    stored = storage() if stored is None else stored
    arguments = stored + value(offset) + value(shape) + value(strides) + FALSE + ORDERED_DICT + metadata
    return name("torch._utils", "_rebuild_tensor_v2") + b"(" + arguments + b"tR"


def whole(instructions, protocol=2):
    return b"\x80" + bytes([protocol]) + instructions + b"."


def torch_zip(pickled, *more):
    """An archive with this pickle, one storage of 16 bytes and more members."""
    pickled = pickled if isinstance(pickled, Member) else Member("archive/data.pkl", pickled)
    return zip_file([pickled, Member("archive/data/0", bytes(16)), *more])


def pickles_that_call():
    """(name, why, pickle, words, live): every way a pickle has to run something."""
    yield ("posix_system", "the classic: posix.system with a command", RUNS_COMMAND, "asks to run posix.system", True)
    yield (
        "builtins_eval",
        "an expression for eval",
        name("builtins", "eval") + f"(V__import__('os').system('{COMMAND}')\ntR.".encode(),
        "asks to run builtins.eval",
        True,
    )
    yield (
        "stack_global",
        "posix.system by STACK_GLOBAL, its name made of two strings",
        whole(text4("posix") + text4("system") + b"\x93" + text4(COMMAND) + b"\x85R", 4),
        "asks to run posix.system",
        True,
    )
    yield (
        "stack_global_from_memo",
        "the same with the strings fetched from the memo, far from the call",
        whole(text4("posix") + b"\x94" + text4("system") + b"\x940" + b"0h\0h\1\x93" + text4(COMMAND) + b"\x85R", 4),
        "asks to run posix.system",
        True,
    )
    yield (
        "getattr",
        "getattr on an imported module instead of a name",
        name("builtins", "getattr")
        + b"("
        + name("builtins", "__import__")
        + f"(S'os'\ntRS'system'\ntR(S'{COMMAND}'\ntR.".encode(),
        "asks to run builtins.getattr",
        True,
    )
    yield (
        "inst",
        "the INST instruction of protocol 0",
        f"(S'{COMMAND}'\niposix\nsystem\n.".encode(),
        "asks to run posix.system",
        True,
    )
    yield (
        "obj",
        "the OBJ instruction of protocol 1",
        b"(" + name("posix", "system") + f"S'{COMMAND}'\no.".encode(),
        "asks to run posix.system",
        True,
    )
    yield (
        "call_then_pop",
        "a call whose result is dropped, before a harmless tensor",
        whole(RUNS_COMMAND[:-1] + b"0" + tensor()),
        "asks to run posix.system",
        True,
    )
    yield (
        "call_in_a_dict_value",
        "a call hidden in the metadata of a tensor",
        whole(b"}" + value("k") + RUNS_COMMAND[:-1] + b"s"),
        "asks to run posix.system",
        True,
    )
    yield (
        "call_as_storage",
        "a call where a storage type is expected",
        whole(b"(" + value("storage") + RUNS_COMMAND[:-1] + value("0") + value("cpu") + value(4) + b"tQ"),
        "asks to run posix.system",
        True,
    )
    yield (
        "dotted_name",
        "a way from an allowed module to os.system by dots in the name",
        whole(text4("torch") + text4("serialization.os.system") + b"\x93" + text4(COMMAND) + b"\x85R", 4),
        "asks to run torch.serialization.os.system",
        False,
    )
    yield (
        "load_from_bytes",
        "torch's own function that unpickles bytes without any check",
        whole(
            name("torch.storage", "_load_from_bytes") + b"(" + b"C" + bytes([len(RUNS_COMMAND)]) + RUNS_COMMAND + b"tR"
        ),
        "asks to run torch.storage._load_from_bytes",
        False,
    )
    yield (
        "name_with_escapes",
        "a name that clears the terminal it is printed on",
        name("os\x1b[2J\x1b]0;owned\x07", "system") + b"(tR.",
        "asks to run os",
        False,
    )
    yield (
        "name_of_4_kb",
        "a name so long that it buries the message",
        name("m" * 3000, "n" * 1000) + b")R.",
        "asks to run mmm",
        False,
    )
    yield (
        "obj_of_allowed",
        "OBJ of a class that may be named",
        b"(" + name("collections", "OrderedDict") + b"o.",
        "asks to construct an object",
        False,
    )
    yield (
        "newobj_ex",
        "NEWOBJ_EX, which passes keyword arguments",
        whole(name("collections", "OrderedDict") + b")}\x92", 4),
        "asks to construct an object",
        False,
    )
    yield (
        "extension",
        "EXT1, a number that stands for a registered function",
        whole(b"\x82\x01"),
        "registered extension",
        False,
    )
    yield (
        "call_of_text",
        "a string as the function to call",
        f"S'os.system'\n(S'{COMMAND}'\ntR.".encode(),
        "asks to call a value that it made itself",
        False,
    )
    yield (
        "call_of_result",
        "a result as the function to call",
        whole(ORDERED_DICT + b")R"),
        "asks to call a value that it made itself",
        False,
    )


def pickles_that_break():
    """(name, why, pickle, words): breaches of the stack machine's rules."""
    cut_off = "ends in the middle of an instruction"
    yield "marks_2000_deep", "2 000 open groups", b"(" * 2000 + b".", "nests its values too deeply"
    yield (
        "tuples_5000_deep",
        "5 000 tuples inside each other, for a recursive walk",
        whole(b"N" + b"\x85" * 5000),
        "nested too deeply",
    )
    lists = b"".join(
        b"](" + (b"h" + bytes([level - 1]) if level else tensor()) * 10 + b"eq" + bytes([level]) for level in range(10)
    )
    yield (
        "billion_laughs",
        "ten lists, each holding the last one ten times: 10^10 tensors",
        whole(lists),
        "shared too often",
    )
    yield "list_in_itself", "a list that holds itself", whole(b"]q\0h\0a"), "nested too deeply"
    yield (
        "list_in_itself_thousandfold",
        "a list that holds itself 1 000 times: the walk branches at each level",
        whole(b"]q\0(" + b"h\0" * 1000 + b"e"),
        "nested too deeply",
    )
    yield (
        "dict_in_itself",
        "a dict that is its own value",
        whole(b"}q\x09" + value("k") + b"h\x09s"),
        "nested too deeply",
    )
    yield (
        "memo_index_4_gib",
        "a memo slot of number 4 294 967 280",
        whole(b"Nr\xf0\xff\xff\xff"),
        "numbers its values in an impossible way",
    )
    yield (
        "memo_index_in_text",
        "a memo slot of number 10^19 in text form",
        whole(b"Np" + b"1" + b"0" * 19 + b"\n"),
        "numbers its values in an impossible way",
    )
    yield "memo_never_set", "a memo slot that was never filled", whole(b"h\7"), "recalls a value that it never made"
    yield "memo_negative", "a memo slot of number -1", whole(b"Np-1\n"), "malformed number"
    yield "long4_of_2_gib", "an integer of 2 GiB", whole(b"\x8b\xff\xff\xff\x7f\0"), cut_off
    yield "text_of_2_to_63", "a string of 2^63 bytes", whole(b"\x8d" + struct.pack("<Q", 1 << 63), 4), cut_off
    yield (
        "bytes_of_minus_1",
        "bytes whose length is all ones, one less than nothing",
        whole(b"\x8e" + b"\xff" * 8, 4),
        cut_off,
    )
    yield "frame_beyond_end", "a frame of 2^62 bytes", whole(b"\x95" + struct.pack("<Q", 1 << 62) + b"N", 4), cut_off
    yield "no_stop", "no STOP at the end", whole(tensor())[:-1], cut_off
    yield "nothing", "no instruction at all", b"", cut_off
    yield "line_without_end", "a number of 5 000 digits", b"I" + b"1" * 5000 + b"\n.", "endless line"
    yield "stop_on_empty_stack", "a STOP with nothing on the stack", whole(b""), "uses values that it never made"
    yield "call_on_empty_stack", "a call with nothing on the stack", whole(b"R"), "uses values that it never made"
    yield (
        "reach_below_mark",
        "a tuple that takes values from below the innermost mark",
        whole(b"NN(\x86"),
        "uses values that it never made",
    )
    yield (
        "group_never_opened",
        "a tuple that closes a group that was never opened",
        whole(b"Nt"),
        "closes a group that it never opened",
    )
    yield "append_to_none", "an item appended to None", whole(b"NNa"), "not a container"
    yield (
        "items_into_call",
        "items set on a tensor that is still to be rebuilt",
        whole(tensor() + b"NNs"),
        "not a container",
    )
    yield "key_without_value", "a dict of three halves of items", whole(b"(NNNd"), "dict key without value"
    yield (
        "ordered_dict_of_numbers",
        "an OrderedDict made of a number",
        whole(name("collections", "OrderedDict") + b"K\7\x85R"),
        "not a list",
    )
    yield "build_of_none", "attributes for None", whole(b"N}b"), "sets attributes of what has none"
    yield "protocol_255", "a protocol of the far future", whole(b"N", 255), "unknown protocol"
    yield "instruction_255", "an instruction that does not exist", whole(b"\xff"), "where an instruction is expected"
    yield "name_of_numbers", "STACK_GLOBAL with numbers for names", whole(b"K\1K\2\x93", 4), "a name that is not text"


def tensors_that_lie():
    """(name, why, pickle, words, code): a sound pickle that describes impossible tensors."""
    vast = 1 << 62

    def add(name, why, instructions, words, code="Corrupt"):
        return name, why, whole(instructions), words, code

    yield add(
        "storage_id_is_text",
        "a storage known only by a string",
        tensor(value("0") + b"Q"),
        "not described as torch.save does",
    )
    yield add(
        "storage_id_is_empty",
        "a storage described by an empty tuple",
        tensor(b")Q"),
        "not described as torch.save does",
    )
    yield add(
        "storage_id_in_itself",
        "a storage whose id is a list that holds itself",
        tensor(b"]q\0h\0aQ"),
        "not described as torch.save does",
    )
    yield add(
        "storage_type_is_dict",
        "a storage of the type OrderedDict",
        tensor(
            b"(" + value("storage") + name("collections", "OrderedDict") + value("0") + value("cpu") + value(4) + b"tQ"
        ),
        "not described as torch.save does",
    )
    yield add(
        "storage_of_2_to_62",
        "a storage said to hold 2^62 elements",
        tensor(storage(elements=vast)),
        "should hold 4611686018427387904 elements",
    )
    yield add(
        "storage_of_minus_1",
        "a storage said to hold -1 elements",
        tensor(storage(elements=-1)),
        "not described as torch.save does",
    )
    yield add(
        "storage_of_2_to_80",
        "a storage said to hold 2^80 elements",
        tensor(storage(elements=1 << 80)),
        "not described as torch.save does",
    )
    yield add(
        "storage_key_climbs",
        "a storage key that leaves the archive",
        tensor(storage(key="../../../../etc/passwd")),
        "is missing from the archive",
    )
    yield add(
        "storage_missing",
        "a storage that is not in the archive",
        tensor(storage(key="7")),
        "is missing from the archive",
    )
    yield add(
        "storage_is_the_pickle",
        "a storage key that names the pickle itself",
        tensor(storage(key="../data.pkl")),
        "is missing from the archive",
    )
    yield add(
        "storage_window",
        "a window onto a storage, which zip files do not have",
        tensor(storage("FloatStorage", "0", 4, ("0", 2, 2))),
        "only the older format has",
    )
    yield add(
        "storage_shorter_than_said",
        "a storage of 16 bytes said to hold 5 floats",
        tensor(storage(elements=5)),
        "should hold 5 elements",
    )
    yield add("negative_stride", "a stride that leads in front of the storage", tensor(strides=(-1,)), "impossible")
    yield add("negative_size", "a size of -1", tensor(shape=(-1,)), "impossible")
    yield add("negative_offset", "an offset in front of the storage", tensor(offset=-1), "lacks its storage or offset")
    yield add(
        "stride_overflows",
        "a stride that is 0 modulo 2^64 once multiplied",
        tensor(shape=(5,), strides=(vast,)),
        "too many elements",
    )
    yield add(
        "strides_sum_overflows",
        "strides that only overflow together",
        tensor(shape=(2, 2, 2, 2), strides=(vast,) * 4),
        "too many elements",
    )
    yield add(
        "offset_beyond", "an offset past the end of the storage", tensor(offset=vast), "4611686018427387908 elements"
    )
    yield add(
        "offset_and_shape_beyond",
        "an offset inside the storage with a shape that leaves it by one",
        tensor(offset=1),
        "needs 5 elements",
    )
    yield add("shape_overflows", "2^63-1 by 2 elements", tensor(shape=(2**63 - 1, 2), strides=(0, 0)), "impossible")
    yield add(
        "hundred_dimensions",
        "100 dimensions",
        tensor(shape=(1,) * 100, strides=(1,) * 100),
        "not a short list of numbers",
    )
    yield add("more_sizes_than_strides", "two sizes and one stride", tensor(shape=(2, 2)), "impossible")
    yield add("shape_of_text", "a shape of strings", tensor(shape=("4",)), "not a short list of numbers")
    yield add(
        "size_beyond_64_bits",
        "a size of 2^64 + 4, which is 4 when cut to 64 bits",
        tensor(shape=(2**64 + 4,)),
        "not a short list of numbers",
    )
    yield add(
        "too_few_arguments",
        "a tensor without strides",
        name("torch._utils", "_rebuild_tensor_v2") + b"(" + storage() + b"tR",
        "lacks its storage",
    )
    wrap = name("torch._utils", "_rebuild_parameter") + b"("
    yield add(
        "parameters_of_parameters",
        "100 parameters around each other",
        wrap * 100 + tensor() + b"\x89}tR" * 100,
        "wrapped too often",
    )
    yield add("parameter_of_nothing", "a parameter without a tensor", wrap + b"tR", "a parameter lacks its tensor")
    yield add(
        "expanded_to_tebibytes",
        "one element expanded by a stride of 0 to 4 TiB: hours of work for 4 bytes",
        tensor(shape=(TEBI,), strides=(0,)),
        "it is expanded to",
        "Unsupported",
    )
    yield add(
        "expanded_and_conjugate",
        "the same, lazily conjugated, so that a copy of 8 TiB is asked for",
        tensor(storage("ComplexFloatStorage", "0", 2), shape=(TEBI,), strides=(0,), metadata=value({"conj": True})),
        "it is expanded to",
        "Unsupported",
    )
    yield add(
        "expanded_conjugate_overflows",
        "2^61 expanded complex numbers, whose size in bytes is 0 modulo 2^64",
        tensor(storage("ComplexFloatStorage", "0", 2), shape=(1 << 61,), strides=(0,), metadata=value({"conj": True})),
        "is impossible",
    )
    yield add(
        "conjugate_integers",
        "integers marked as lazily conjugated",
        tensor(storage("IntStorage"), metadata=value({"conj": True})),
        "marked as conjugate",
    )


LEGACY_DATA = struct.pack("<Q", 4) + bytes(16)


def legacy(pickled, keys=("0",), data=LEGACY_DATA, version=1001, system=None):
    head = pickle.dumps(0x1950A86A20F9469CFC6C, 2) + pickle.dumps(version, 2)
    head += pickle.dumps({"little_endian": True}, 2) if system is None else system
    return head + pickled + (keys if isinstance(keys, bytes) else pickle.dumps(list(keys), 2)) + data
