"""ait_llm.common.tool under an old name."""

from ait_llm.common.tool import (
    DEFAULT_PARSE_DTYPE,
    convert_bin_data_to_npy,
    convert_bin_data_to_pt,
    get_bin_data_from_dir,
    read_bin_data,
    read_dump_data,
    save_npy_data,
    save_torch_data,
)

__all__ = [
    "DEFAULT_PARSE_DTYPE",
    "convert_bin_data_to_npy",
    "convert_bin_data_to_pt",
    "get_bin_data_from_dir",
    "read_bin_data",
    "read_dump_data",
    "save_npy_data",
    "save_torch_data",
]
