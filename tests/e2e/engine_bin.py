"""Files of the acceleration library as the tests read them, and as newer probes keep statistics in them."""

import numpy as np
import torch

TYPES = {0: np.float32, 1: np.float16, 2: np.int8, 3: np.int32, 9: np.int64, 12: np.bool_}


def split(path):
    """The lines of the header by name, and the data."""
    header, _, data = path.read_bytes().partition(b"$End=1\n")
    return dict(line.split("=", 1) for line in header.decode().splitlines()), data


def read_bin(path):
    lines, data = split(path)
    shape = [int(size) for size in lines["dims"].split(",") if size]
    return torch.from_numpy(np.frombuffer(data, TYPES[int(lines["dtype"])]).reshape(shape).copy())


def statistics_bin(path):
    """The same file with four numbers of six decimals in place of its data."""
    lines, _ = split(path)
    values = read_bin(path).double()
    numbers = {"max": values.max(), "min": values.min(), "mean": values.mean(), "l2norm": values.norm()}
    out = [
        "$Version=1.0",
        "$Object.Count=0",
        "$Object.Length=0",
        f"format={lines['format']}",
        f"dtype={lines['dtype']}",
    ]
    out += [f"dims={lines['dims']}", *(f"{name}={float(number):.6f}" for name, number in numbers.items()), "$End=1", ""]
    return "\n".join(out).encode()
