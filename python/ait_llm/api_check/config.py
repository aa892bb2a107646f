"""What is to be recorded, and where to. The older tool's msCheckerConfig."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

ALL, ATT = "all", "att"


class Config:
    """Settings of one process. To be changed before recording begins."""

    def __init__(self) -> None:
        self.dump_path = "./"
        self.real_data = False
        self.enable_dataloader = True
        self.target_iter: int | list[int] = 1
        self.error_data_path: str | None = None
        self.white_list: list[str] = []
        self.api_list = ALL

    def update_config(
        self,
        dump_path: str | None = None,
        real_data: bool | None = None,
        enable_dataloader: bool | None = None,
        target_iter: int | Sequence[int] | None = None,
        error_data_path: str | None = None,
        white_list: Sequence[str] | None = None,
        api_list: str | None = None,
    ) -> None:
        """Changes what is given and leaves the rest as it is. ValueError for what makes no sense.

        dump_path          an existing folder for the three files; the current one if never given
        real_data          store the tensors themselves, not only their extremes
        enable_dataloader  begin and end by what a DataLoader fetches, and stop the training behind the last target_iter
        target_iter        the iteration to record, from 0; or a list of them, each in a folder step{N}
        error_data_path    where a later run_ut of these files is to put the data of failing APIs
        white_list         record these names alone
        api_list           "all" that torch lets others override, or "att": the older tool's 977 names
        """
        given: dict[str, Any] = {
            "dump_path": dump_path,
            "real_data": real_data,
            "enable_dataloader": enable_dataloader,
            "target_iter": target_iter,
            "error_data_path": error_data_path,
            "white_list": white_list,
            "api_list": api_list,
        }
        given = {name: value for name, value in given.items() if value is not None}
        for name, value in given.items():
            _check(name, value)
        for name, value in given.items():
            setattr(self, name, list(value) if isinstance(value, (list, tuple)) else value)

    @property
    def targets(self) -> list[int]:
        return self.target_iter if isinstance(self.target_iter, list) else [self.target_iter]


_KINDS: dict[str, tuple[type, ...]] = {
    "dump_path": (str,),
    "real_data": (bool,),
    "enable_dataloader": (bool,),
    "target_iter": (int, list, tuple),
    "error_data_path": (str,),
    "white_list": (list, tuple),
    "api_list": (str,),
}


def _check(name: str, value: Any) -> None:
    kinds = _KINDS[name]
    if not isinstance(value, kinds) or (name == "target_iter" and isinstance(value, bool)):
        raise ValueError(f"{name} must be {kinds[0].__name__} type")
    if name == "target_iter":
        _check_iterations(value)
    elif name == "white_list":
        _check_names(value)
    elif name == "api_list" and value not in (ALL, ATT):
        raise ValueError(f'api_list must be "{ALL}" or "{ATT}", not {value!r}')


def _check_iterations(value: Any) -> None:
    if isinstance(value, int):
        if value < 0:
            raise ValueError("target_iter must be greater than 0")
        return
    if any(isinstance(each, bool) for each in value):
        raise ValueError("target_iter cannot contain boolean values")
    if not value or not all(isinstance(each, int) for each in value):
        raise ValueError("All elements in target_iter must be of int type")
    if any(each < 0 for each in value):
        raise ValueError("All elements in target_iter must be greater than or equal to 0")


def _check_names(value: Any) -> None:
    from ait_llm.api_check import apis, att_names

    if not all(isinstance(each, str) for each in value):
        raise ValueError("All elements in white_list must be of str type")
    known = {api.name for api in apis.every()}.union(*att_names.NAMES.values())
    unknown = [each for each in value if each not in known]
    if unknown:
        raise ValueError(f"{', '.join(unknown)} is not in support_wrap_ops.yaml, please check the white_list")


config = Config()
"""Of this process."""
