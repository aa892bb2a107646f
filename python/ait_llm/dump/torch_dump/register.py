"""register_hook and what it returns."""

from __future__ import annotations

import copy
import logging
from typing import TYPE_CHECKING, Any

from ait_llm.dump.torch_dump.dump_config import DumpConfig

if TYPE_CHECKING:
    import torch

    from ait_llm.dump.torch_dump.session import Session

_logger = logging.getLogger("ait_llm")


class HookHandle:
    """The recording of one model. `remove` ends it; so does leaving a `with` block.

    with register_hook(model, config) as handle:
        model(tokens)
    print(handle.folder)
    """

    def __init__(self, session: Session | None = None) -> None:
        self._session = session

    @property
    def folder(self) -> str | None:
        """Where the files are: {dump_path}/ait_dump/torch_tensors/{device_id}_{PID}. None if nothing is recorded."""
        return None if self._session is None else self._session.folder

    def flush(self) -> None:
        """Waits until everything recorded so far is on disk, manifest.json included."""
        if self._session is not None:
            self._session.flush()

    def remove(self) -> None:
        """Ends the recording and waits until everything recorded is on disk. Later calls do nothing."""
        if self._session is not None:
            self._session.close()

    def __enter__(self) -> HookHandle:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


def register_hook(
    model: torch.nn.Module,
    config: DumpConfig,
    hook_name: str = "dump_data",
    *,
    hook_type: str | None = None,
    perturb: str | float | None = None,
    when: str | None = None,
    keep: int = 2,
) -> HookHandle:
    """Records what goes into and comes out of each module of `model`, as `config` says, from now on.

    `model` should be the outermost module: each call of it is one round ("token"), counted from 0. The only
    `hook_name` there is is "dump_data"; `hook_type` is another name of that parameter. Results of the model are the
    same to the bit with and without hooks. Whatever goes wrong while recording is a warning of the logger "ait_llm"
    and noted in manifest.json, never an exception.

    `perturb` makes a run that shows how large noise is, for `ait llm compare --noise`: until the recording ends, what
    each module without parts returns is off by up to one rounding unit of "bf16", "fp16" or "fp32", or by up to a
    share from 0 to 1. The results of the model change, then. The seed is the one of `config`, or 0.

    `when` watches a long run: statistics are kept of all rounds, and tensors only of the `keep` rounds before and after
    one in which a condition begins to hold. It is a comma list of "nan", "inf", "norm>X", "every=N" and "spike=F" (a
    statistic F times its running median), any of which is enough. Unless `config` has a token_range, every round is
    watched.
    """
    fault = _fault(model, config, hook_name if hook_type is None else hook_type, perturb)
    if fault is None:
        from ait_llm.dump.torch_dump import trigger

        fault = trigger.fault(when, keep, config)
    if fault is not None:
        _logger.error("register_hook: %s; nothing will be recorded", fault)
        return HookHandle()
    from ait_llm.dump.torch_dump import process, session

    config = copy.copy(config)
    config.perturb = perturb
    trigger.prepare(config, when, keep if when is not None else 0)
    already = process.find(model, config)
    if already is not None:
        _logger.warning("dump_data has been register in model.")
        return HookHandle(already)
    return HookHandle(session.begin(model, config))


def _fault(model: Any, config: Any, hook: Any, perturb: Any) -> str | None:
    import torch

    from ait_llm.dump.torch_dump import perturbation

    if not isinstance(model, torch.nn.Module):
        return f"model must be a torch.nn.Module, not {type(model).__name__}"
    if not isinstance(config, DumpConfig):
        return f"config must be a DumpConfig, not {type(config).__name__}"
    if hook != "dump_data":
        return f'the only hook is "dump_data", not {hook!r}'
    if perturb is not None and perturbation.unit_of(perturb) is None:
        return f'perturb must be "bf16", "fp16", "fp32" or a number above 0 and up to 1, not {perturb!r:.200}'
    return None
