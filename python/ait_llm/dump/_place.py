"""Who a process is among those of a parallel job: the same as src/record/place.h."""

from __future__ import annotations

import os
import socket

# One launcher may have been started by another: the innermost knows best.
_LAUNCHERS = (
    ("RANK", "LOCAL_RANK", "WORLD_SIZE"),  # torchrun
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE"),  # MPICH and its kin
    ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"),
)


def place() -> dict[str, str | int | None]:
    """As torchrun, mpirun and Slurm say it in the environment; None where nobody does."""
    found = next((each for each in _LAUNCHERS if _number(each[0]) is not None), _LAUNCHERS[0])
    rank, local_rank, world_size = map(_number, found)
    return {"host": socket.gethostname(), "rank": rank, "local_rank": local_rank, "world_size": world_size}


def _number(variable: str) -> int | None:
    text = os.environ.get(variable, "")
    return int(text) if text.isascii() and text.isdigit() else None
