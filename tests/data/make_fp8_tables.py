"""Writes fp8_tables.txt: what ml_dtypes makes of the 8-bit floats. torch must agree except where numbers overflow.

    decode TYPE BYTE FLOAT32      every byte of every type ("e4m3fn"); NaN as 7fc00000 whatever its sign and payload
    encode TYPE FLOAT32 BYTE      each value, each midpoint between neighbours and the floats next to it

Numbers are hexadecimal bit patterns.
"""

from pathlib import Path

import ml_dtypes
import numpy as np
import torch

DECODED = ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"]
ENCODED = ["float8_e4m3fn", "float8_e5m2"]


def decode(name):
    every_byte = np.arange(256, dtype=np.uint8)
    by_ml_dtypes = every_byte.view(getattr(ml_dtypes, name)).astype(np.float32)
    by_torch = torch.from_numpy(every_byte).view(getattr(torch, name)).to(torch.float32).numpy()
    np.testing.assert_array_equal(by_ml_dtypes, by_torch)
    return by_torch


def encode(name, floats):
    by_ml_dtypes = floats.astype(getattr(ml_dtypes, name)).view(np.uint8)
    by_torch = torch.from_numpy(floats).to(getattr(torch, name)).view(torch.uint8).numpy()
    # Newer versions of torch saturate e4m3fn, older ones and ml_dtypes overflow to NaN; and there are several NaN.
    in_range = np.isfinite(by_ml_dtypes.view(getattr(ml_dtypes, name)).astype(np.float32))
    differ = in_range & (by_ml_dtypes != by_torch)
    assert not differ.any(), (name, floats[differ], by_ml_dtypes[differ], by_torch[differ])
    return by_ml_dtypes


def interesting_floats(name):
    magnitudes = np.unique(np.abs(decode(name)))
    magnitudes = magnitudes[np.isfinite(magnitudes)]
    beyond = magnitudes[-1] + (magnitudes[-1] - magnitudes[-2])  # where the next value would be
    midpoints = (magnitudes + np.append(magnitudes[1:], beyond)) / 2
    floats = np.concatenate(
        [
            magnitudes,
            midpoints,
            np.nextafter(midpoints, np.float32(0)),
            np.nextafter(midpoints, np.float32(np.inf)),
            [beyond, 1e30, 1e-45, np.inf, np.nan],
        ]
    ).astype(np.float32)
    return np.concatenate([floats, -floats])


def main():
    lines = []
    for name in DECODED:
        for byte, value in enumerate(decode(name)):
            bits = 0x7FC00000 if np.isnan(value) else int(np.float32(value).view(np.uint32))
            lines.append(f"decode {name[7:]} {byte:02x} {bits:08x}")
    for name in ENCODED:
        floats = interesting_floats(name)
        for value, byte in zip(floats, encode(name, floats)):
            lines.append(f"encode {name[7:]} {int(value.view(np.uint32)):08x} {byte:02x}")
    Path(__file__).with_name("fp8_tables.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
