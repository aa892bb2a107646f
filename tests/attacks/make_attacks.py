"""Writes the hostile files beside it, one folder for each reader, and manifest.tsv, which says of each why it is here.

    python tests/attacks/make_attacks.py

Files in rows/, plan/ and part/ are stores of rows, plans and parts, all others files of tensors. Columns of
manifest.tsv:

    file      below this folder
    outcome   error: the file gives nothing; listed: its other tensors are still shown, its other rows still read
    code      the ErrorCode, without its k
    words     part of the message
    options   of `ait show`, or -
    live      yes: a reader that obeyed the file would run a command that makes the file MARKER
    why       what the file tries
"""

import pathlib

from atb_bin_attacks import atb_bin_attacks
from atb_statistics_attacks import atb_statistics_attacks
from attack_list import COLUMNS, attacks
from ge_dump_attacks import ge_dump_attacks
from ge_statistics_attacks import ge_statistics_attacks
from gguf_attacks import gguf_attacks
from msprobe_json_attacks import msprobe_json_attacks
from npy_attacks import npy_attacks
from npz_attacks import npz_attacks
from onnx_tensor_attacks import onnx_tensor_attacks
from plan_attacks import part_attacks, plan_attacks
from polygraphy_json_attacks import polygraphy_json_attacks
from raw_attacks import attacks_on_all, raw_attacks
from rows_attacks import rows_attacks
from safetensors_attacks import safetensors_attacks
from statistics_csv_attacks import statistics_csv_attacks
from torch_attacks import torch_legacy_attacks, torch_zip_attacks

HERE = pathlib.Path(__file__).parent


def main():
    for make in (
        npy_attacks,
        npz_attacks,
        torch_zip_attacks,
        torch_legacy_attacks,
        safetensors_attacks,
        atb_bin_attacks,
        statistics_csv_attacks,
        ge_dump_attacks,
        ge_statistics_attacks,
        gguf_attacks,
        onnx_tensor_attacks,
        polygraphy_json_attacks,
        msprobe_json_attacks,
        atb_statistics_attacks,
        rows_attacks,
        plan_attacks,
        part_attacks,
        raw_attacks,
        attacks_on_all,
    ):
        make()
    lines = ["\t".join(COLUMNS)]
    for row, content in attacks:
        path = HERE / row["file"]
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        lines.append("\t".join(row.values()))
    (HERE / "manifest.tsv").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
