"""The extension; ait_llm is its public face."""

import enum
from typing import Any, List, Optional, Sequence, Tuple

__version__: str
dtypes: Tuple[str, ...]

class Operand:
    """A tensor in a file's mapping or in memory that another object owns."""

    @staticmethod
    def over(
        owner: Any,
        address: int,
        dtype: str,
        shape: Sequence[int],
        strides: Sequence[int],
        byte_swapped: bool,
    ) -> Operand: ...
    @property
    def dtype(self) -> str: ...
    @property
    def itemsize(self) -> int: ...
    @property
    def shape(self) -> Tuple[int, ...]: ...
    @property
    def strides(self) -> Tuple[int, ...]: ...
    @property
    def address(self) -> int: ...
    @property
    def elements(self) -> int: ...
    @property
    def byte_swapped(self) -> bool: ...

class Side:
    """Values of one tensor. minimum, maximum and mean are NaN where the tensor holds a NaN."""

    @property
    def elements(self) -> int: ...
    @property
    def nan(self) -> int: ...
    @property
    def positive_inf(self) -> int: ...
    @property
    def negative_inf(self) -> int: ...
    @property
    def minimum(self) -> float: ...
    @property
    def maximum(self) -> float: ...
    @property
    def mean(self) -> float: ...
    @property
    def l2_norm(self) -> float: ...

class Statistics(Side):
    @property
    def l1_norm(self) -> float: ...

class RowFinding:
    """What was found taking the last dimension of golden row by row."""

    @property
    def rows(self) -> int: ...
    @property
    def worst_row(self) -> int: ...
    @property
    def worst_row_cosine(self) -> float: ...
    @property
    def kl_mean(self) -> float: ...
    @property
    def kl_max(self) -> float: ...

class Comparison:
    """Everything measured of two tensors."""

    @property
    def elements(self) -> int: ...
    @property
    def compared(self) -> int:
        """Positions that are finite on both sides."""
    @property
    def identical(self) -> bool: ...
    @property
    def withheld(self) -> bool: ...
    @property
    def cosine_similarity(self) -> float: ...
    @property
    def max_relative_error(self) -> float: ...
    @property
    def mean_relative_error(self) -> float: ...
    @property
    def max_absolute_error(self) -> float: ...
    @property
    def mean_absolute_error(self) -> float: ...
    @property
    def kl_divergence(self) -> float: ...
    @property
    def relative_euclidean_distance(self) -> float: ...
    @property
    def differing(self) -> int: ...
    @property
    def zero_golden_mismatch(self) -> int: ...
    @property
    def non_finite_agree(self) -> bool: ...
    @property
    def worst_index(self) -> int: ...
    @property
    def worst_golden(self) -> float: ...
    @property
    def worst_actual(self) -> float: ...
    @property
    def golden_zero(self) -> bool: ...
    @property
    def actual_zero(self) -> bool: ...
    @property
    def passes(self) -> List[int]:
        """Elements whose relative error is below each of the thresholds."""
    @property
    def golden(self) -> Side: ...
    @property
    def actual(self) -> Side: ...
    @property
    def row(self) -> Optional[RowFinding]: ...

def load_one(path: bytes, name: str, dtype: Optional[str], shape: Optional[Sequence[int]]) -> Operand: ...
def load_all(path: bytes, dtype: Optional[str], shape: Optional[Sequence[int]]) -> List[Tuple[str, Operand]]: ...
def save(path: bytes, tensors: Sequence[Tuple[str, Operand]]) -> None: ...
def widen(operand: Operand, address: int) -> None: ...
def compare(
    golden: Operand,
    actual: Operand,
    kl: bool,
    rows: bool,
    threads: int,
    relative: str,
    epsilon: float,
    thresholds: Sequence[float],
    non_finite: str,
    mask_absolute: bool,
) -> Comparison: ...
def statistics(tensor: Operand, threads: int) -> Statistics: ...
def simd_targets() -> List[str]: ...
def simd_target() -> str: ...
def set_simd_target(target: Optional[str]) -> None: ...

def atb_json_to_onnx(json_path: bytes, level: int) -> Tuple[bytes, Optional[str]]:
    """The path of the file written, and why it has no shapes although there is a table of operations."""

class AccountKind(enum.Enum):
    """Under which heading `ait llm dump` counts the files, if it is what started the process."""

    PRIVATE: AccountKind
    TENSORS: AccountKind
    RECORDS: AccountKind

class Account:
    """What became of the files submitted on it."""

    def __init__(self, kind: AccountKind = AccountKind.PRIVATE) -> None: ...
    @property
    def submitted(self) -> int: ...
    @property
    def submitted_bytes(self) -> int: ...
    @property
    def written(self) -> int: ...
    @property
    def written_bytes(self) -> int:
        """Of tensors or texts, without the headers of their files."""
    @property
    def failed(self) -> int: ...
    @property
    def first_failure(self) -> Optional[str]: ...

class LentMemory:
    """Parts of one block of memory, lent until they are written. The block has to outlive them."""

    def __init__(self, address: int, bytes: int) -> None: ...
    def reserve(self, bytes: int) -> Optional[int]:
        """Where in the block so many bytes are free; None if they are not at the moment."""
    def give_back(self, offset: int, bytes: int) -> None: ...
    def wait(self) -> None:
        """Until a part has come back from the writer, if it has any."""
    @property
    def bytes(self) -> int: ...

# Data id, token id, path of the golden file, path of mine.
_MappedPair = Tuple[bytes, bytes, bytes, bytes]

class Recorder:
    """Writes in the background by one or several threads, each file whole or not at all."""

    def __init__(self, max_queued_bytes: int, writers: int = 1) -> None: ...
    def submit(self, account: Account, path: bytes, tensor: Operand) -> None:
        """The name's ending is the format: .bin, .npy, .pt, .pth. The memory may change as soon as this returns."""
    def submit_mapped(self, account: Account, tensor: Operand, folder: bytes, entry: _MappedPair) -> None:
        """Writes the entry's golden file, and when that is there, the entry into metadata.json in `folder`."""
    def submit_lent(
        self, account: Account, path: bytes, lent: LentMemory, offset: int, dtype: str, shape: Sequence[int]
    ) -> None:
        """The memory is given back when the file is written."""
    def submit_text(self, account: Account, path: bytes, text: bytes) -> None:
        """Of several texts for one path the last wins."""
    def flush(self) -> None: ...
    @property
    def first_mapping_failure(self) -> Optional[str]: ...

def add_to_metadata(folder: bytes, entries: Sequence[_MappedPair]) -> None: ...

def note_round(number: int, wanted: bool) -> None:
    """For the summary of `ait llm dump`, as the next."""

def note_end() -> None:
    """Everything that was announced has been dealt with."""

def number_text(value: float) -> str:
    """As the reports write numbers: the fewest digits that give the float32 back."""
