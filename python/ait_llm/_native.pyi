"""The extension; ait_llm is its public face."""

import enum
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, overload

from ait_llm._errors import AitError

__version__: str
dtypes: tuple[str, ...]

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
    def shape(self) -> tuple[int, ...]: ...
    @property
    def strides(self) -> tuple[int, ...]: ...
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
    def passes(self) -> list[int]:
        """Elements whose relative error is below each of the thresholds."""
    @property
    def golden(self) -> Side: ...
    @property
    def actual(self) -> Side: ...
    @property
    def row(self) -> RowFinding | None: ...

class Record:
    """One tensor as it was recorded: the file, and what the folder says of it."""

    @property
    def path(self) -> str: ...
    @property
    def member(self) -> str:
        """Its name inside a file that holds several; else empty."""
    @property
    def rank(self) -> str: ...
    @property
    def round(self) -> str: ...
    @property
    def operation(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def is_kernel(self) -> bool: ...
    @property
    def is_before(self) -> bool:
        """Recorded before the operation ran, not after."""
    @property
    def is_input(self) -> bool: ...
    @property
    def index(self) -> int:
        """Which of the operation's inputs or outputs."""
    @property
    def call(self) -> int:
        """Which of its calls in this round."""

class Subject:
    """What a row is about. str() of it is the column data_id. Texts are empty where they do not apply."""

    @property
    def name(self) -> str:
        """An operation, a file, a weight, a label."""
    @property
    def tensor(self) -> str:
        """Of an operation: "output_0"."""
    @property
    def member(self) -> str:
        """One of several tensors in two files that were paired as a whole."""
    @property
    def rank(self) -> str:
        """Where every rank is compared for itself: which of them."""
    @property
    def first_column(self) -> int | None:
        """Where only the columns from this one on are compared."""
    @property
    def layer(self) -> int | None:
        """Of the model, from 0."""

class RowSide:
    """One of the two sides of a row. dtype, shape and statistics are None where nothing could be read."""

    @property
    def is_missing(self) -> bool:
        """The run has no such tensor."""
    @property
    def records(self) -> list[Record]:
        """What the side is made of: several where shards were put together."""
    @property
    def paths(self) -> list[str]:
        """The files of the records."""
    @property
    def operation(self) -> str: ...
    @property
    def type(self) -> str:
        """Of the operation; empty where the run does not say."""
    @property
    def ranks(self) -> list[str]: ...
    @property
    def transform(self) -> str:
        """What was done to make the sides comparable: "columns 64 to 95 of each"; empty for nothing."""
    @property
    def kept(self) -> str:
        """What there was to look at: "bytes", "statistics" or "description" (type and shape alone)."""
    @property
    def dtype(self) -> str | None: ...
    @property
    def shape(self) -> tuple[int, ...] | None: ...
    @property
    def statistics(self) -> Side | None: ...

class Row:
    """What was found out about one pair. The metrics are None where they could not be measured; `reason` says why."""

    @property
    def token(self) -> str: ...
    @property
    def phase(self) -> str | None:
        """ "prefill" or "decode", where it is known."""
    @property
    def subject(self) -> Subject: ...
    @property
    def data_id(self) -> str:
        """The subject as the reports write it."""
    @property
    def certainty(self) -> str | None:
        """How sure it is that the sides belong together, "certain" or "likely"; None where one is missing."""
    @property
    def certainty_reason(self) -> str: ...
    @property
    def golden(self) -> RowSide: ...
    @property
    def actual(self) -> RowSide: ...
    @property
    def comparison(self) -> Comparison | None:
        """All that was measured, where elements stood against elements. Without `passes`."""
    @property
    def cosine_similarity(self) -> float | None: ...
    @property
    def max_relative_error(self) -> float | None: ...
    @property
    def mean_relative_error(self) -> float | None: ...
    @property
    def max_absolute_error(self) -> float | None: ...
    @property
    def mean_absolute_error(self) -> float | None: ...
    @property
    def kl_divergence(self) -> float | None: ...
    @property
    def relative_euclidean_distance(self) -> float | None: ...
    @property
    def distance_at_least(self) -> float | None:
        """Where a side has statistics alone: the relative euclidean distance cannot be smaller."""
    @property
    def reason(self) -> str:
        """Why something could not be measured; empty when there is nothing to say."""
    def as_dict(self, extended: bool = False) -> dict[str, Any]:
        """The columns of the csv report, by name, as values; with `extended` those of --extended."""

class Coverage:
    """How much of one run has a partner, in operations."""

    @property
    def operations(self) -> int: ...
    @property
    def paired(self) -> int: ...
    @property
    def copies(self) -> int:
        """Operations that hold the same as one that is paired."""
    @property
    def alone(self) -> dict[str, int]:
        """Why the others are not, and how many each."""

class AlignedToken:
    """Which round of each run belongs to a token."""

    @property
    def token(self) -> str: ...
    @property
    def golden_round(self) -> str: ...
    @property
    def actual_round(self) -> str: ...
    @property
    def is_prefill(self) -> bool: ...
    @property
    def phase_is_known(self) -> bool: ...

class Pairing:
    """What was found out about two dumps before anything was measured."""

    @property
    def golden(self) -> Coverage: ...
    @property
    def actual(self) -> Coverage: ...
    @property
    def golden_layers(self) -> int: ...
    @property
    def actual_layers(self) -> int: ...
    @property
    def certain(self) -> int:
        """Of my operations, how many are paired for certain."""
    @property
    def likely(self) -> int: ...
    @property
    def method(self) -> str: ...
    @property
    def tokens(self) -> list[AlignedToken]: ...
    @property
    def notes(self) -> list[str]: ...

class RowIterator:
    """One run over the pairs. It ends with the object."""

    def __iter__(self) -> RowIterator: ...
    def __next__(self) -> Row: ...

class Rows:
    """The pairs of two runs; each loop over it measures them anew, a little ahead of the loop."""

    def __len__(self) -> int:
        """The number of pairs. Two files of several tensors that were paired as a whole give more rows than one."""
    def __iter__(self) -> RowIterator: ...
    @property
    def kind(self) -> str:
        """ "dumps", "checkpoints", "folders" or "mapping"."""
    @property
    def what(self) -> str:
        """In words: "two folders, by file name"."""
    @property
    def problems(self) -> list[AitError]:
        """What could not be read while looking for tensors; not raised."""
    @property
    def pairing(self) -> Pairing | None:
        """Of two dumps."""

class RowStore:
    """The rows of a report in their file."""

    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> list[Row]: ...
    def __iter__(self) -> Iterator[Row]: ...
    @property
    def is_complete(self) -> bool:
        """False where the writer was killed; the rows before that are there."""

def pair_runs(
    golden: bytes,
    actual: bytes,
    mapping_file: bytes,
    token_map: str,
    metric_compat: str | None,
    rows: bool,
    threads: int,
) -> Rows | None:
    """None where the paths are two files of one tensor each."""

def open_rows(path: bytes) -> RowStore: ...
def load_one(path: bytes, name: str, dtype: str | None, shape: Sequence[int] | None) -> Operand: ...
def load_all(path: bytes, dtype: str | None, shape: Sequence[int] | None) -> list[tuple[str, Operand]]: ...
def save(path: bytes, tensors: Sequence[tuple[str, Operand]]) -> None: ...
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
def sketch(tensor: Operand) -> str:
    """As statistics.csv has it."""

def simd_targets() -> list[str]: ...
def simd_target() -> str: ...
def set_simd_target(target: str | None) -> None: ...
def json_text(value: Any, width: int) -> bytes:
    """As `json.dumps(value, indent=width, ensure_ascii=False)`, encoded; file names that are no UTF-8 as they were."""

def atb_json_to_onnx(json_path: bytes, level: int) -> tuple[bytes, str | None]:
    """The path of the file written, and why it has no shapes although there is a table of operations."""

class AccountKind(enum.Enum):
    """Under which heading `ait llm dump` counts the files, if it is what started the process."""

    PRIVATE = ...
    TENSORS = ...
    RECORDS = ...

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
    def linked(self) -> int:
        """Of those written: they share the file of one with the same bytes."""
    @property
    def linked_bytes(self) -> int: ...
    @property
    def removed(self) -> int:
        """Of those written: taken away again by remove_tensors."""
    @property
    def removed_bytes(self) -> int: ...
    @property
    def first_failure(self) -> str | None: ...

class LentMemory:
    """Parts of one block of memory, lent until they are written. The block has to outlive them."""

    alignment: ClassVar[int]
    def __init__(self, address: int, bytes: int) -> None: ...
    def reserve(self, bytes: int) -> int | None:
        """Where in the block so many bytes are free; None if they are not at the moment."""
    def give_back(self, offset: int, bytes: int) -> None: ...
    def wait(self) -> None:
        """Until a part has come back from the writer, if it has any."""
    @property
    def bytes(self) -> int: ...

# Data id, token id, path of the golden file, path of mine.
_MappedPair = tuple[bytes, bytes, bytes, bytes]

class Recorder:
    """Writes in the background by one or several threads, each file whole or not at all."""

    def __init__(self, max_queued_bytes: int, writers: int = 1, links: bool = False) -> None:
        """With `links`, a torch file whose bytes are those of a file written before is a hard link of it."""
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
    def submit_again(self, files: Sequence[tuple[Account, bytes, bytes, int]]) -> None:
        """(account, path, first, bytes of the tensor): `path` becomes a link to the file `first`, or a copy of it, when
        all that was submitted before is written."""
    def remove_tensors(self, account: Account, folder: bytes) -> None:
        """Takes {folder}/*/*.pth away when all that was submitted before is written."""
    def flush(self) -> None: ...
    @property
    def missing_mappings(self) -> int:
        """Files that were written and have no entry in metadata.json, or none yet."""
    @property
    def first_mapping_failure(self) -> str | None: ...

class TriggerEvent:
    """That a condition began to hold."""

    @property
    def round(self) -> int: ...
    @property
    def condition(self) -> str: ...
    @property
    def module(self) -> str: ...
    @property
    def tensor(self) -> str: ...
    @property
    def statistic(self) -> str: ...
    @property
    def value(self) -> float: ...
    @property
    def median(self) -> float | None:
        """Of the rounds before, for a spike."""

class Trigger:
    """Of which rounds tensors are kept: those around one in which a condition begins to hold."""

    max_keep: ClassVar[int]
    def __init__(self, conditions: str, keep: int) -> None: ...
    def see(self, table: RoundTable, kind: str) -> None:
        """The numbers of tensors whose names begin with `kind`, as far as they are known."""
    def end_round(self, round: int) -> list[int]:
        """The rounds whose tensors nobody wants, now that this one has ended."""
    def finish(self) -> list[int]: ...
    @property
    def events(self) -> list[TriggerEvent]: ...
    @property
    def more_events(self) -> int: ...
    @property
    def kept(self) -> list[tuple[int, int]]: ...
    @property
    def rounds_seen(self) -> int: ...

def add_to_metadata(folder: bytes, entries: Sequence[_MappedPair]) -> None: ...
def note_round(number: int, wanted: bool) -> None:
    """For the summary of `ait llm dump`, as the next."""

def note_end() -> None:
    """Everything that was announced has been dealt with."""

def draw_reals(
    address: int, dtype: str, elements: int, low: float, high: float, seed: int, key: str, tensor: int
) -> bool:
    """Fills the memory evenly over the range, the same on every machine. False: not for this type, as the next two."""

def draw_either(
    address: int, dtype: str, elements: int, low: float, high: float, seed: int, key: str, tensor: int
) -> bool: ...
def draw_integers(
    address: int, dtype: str, elements: int, low: int, high: int, seed: int, key: str, tensor: int
) -> bool: ...
def move_reals(address: int, dtype: str, elements: int, size: float, seed: int, tensor: int) -> None: ...
def draw_mask(address: int, elements: int, true_count: int, seed: int, key: str, tensor: int) -> None: ...

class ApiOutput:
    """One output of a function of torch, judged by the older tool's rule and by what rounding explains."""

    @property
    def name(self) -> str: ...
    @name.setter
    def name(self, text: str) -> None: ...
    @property
    def passes(self) -> bool: ...
    @property
    def within(self) -> bool: ...
    @within.setter
    def within(self, verdict: bool) -> None: ...
    @property
    def message(self) -> str: ...
    @message.setter
    def message(self, text: str) -> None: ...
    @property
    def wants_moved(self) -> bool:
        """Not within; but what the inputs' own roundings do may explain it."""
    @property
    def roundings(self) -> float: ...
    @property
    def typical(self) -> float: ...
    @property
    def limit(self) -> float: ...
    def texts(self) -> list[str]:
        """The cells of its line in accuracy_checking_details.csv."""

def judge_tensors(
    function: str, backward: bool, bench: Operand, device: Operand, raw_bench: bool, moved: Operand | None
) -> ApiOutput:
    """`moved` is the benchmark's result for inputs that are off by one rounding."""

def judge_values(type: str, equal: bool, message: str) -> ApiOutput: ...
def judge_mismatch(bench_type: str, device_type: str, message: str) -> ApiOutput: ...
def judge_dropout(
    p: float, scaled: bool, groups: int, input: Operand, bench: Operand, device: Operand
) -> ApiOutput: ...

class CsvLines:
    """A csv that grows by whole lines."""

    def __init__(self, path: bytes, is_new: bool) -> None: ...
    def append(self, cells: Sequence[str]) -> None: ...

def api_result_header() -> list[str]: ...
def api_output_header() -> list[str]: ...
def api_overflow_header() -> list[str]: ...
def api_overflow_texts(
    name: str, verdict: str, on_cpu: str, on_device: str, raised: str, high: str, low: str, message: str
) -> list[str]: ...
def api_result_texts(
    name: str, forward: str, backward: str, message: str, forward_within: str, backward_within: str
) -> list[str]: ...

class ObjectFile:
    """A JSON object in a file that grows by members and is whole after each of them."""

    @staticmethod
    def create(path: bytes) -> ObjectFile | None:
        """Makes the file with an object without members. None where the name is taken."""
    def add(self, member: bytes) -> None:
        """A key, a colon and a value."""

class Ear:
    """Hears of the calls of a function of Python, seen by nobody.

    Before a call it calls begin(first argument, other arguments, named arguments, whether it is an outermost call), and
    behind it end(what begin returned, the output, whether it raised), unless begin returned None. It keeps none of the
    three functions alive. A function has at most one.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        begin: Callable[[Any, tuple[Any, ...], dict[str, Any], bool], Any],
        end: Callable[[Any, Any, bool], None],
    ) -> None: ...
    @property
    def outermost(self) -> bool:
        """Whether it hears of every call that a thread makes outside any other."""

    @outermost.setter
    def outermost(self, on: bool) -> None: ...
    @property
    def everything(self) -> bool:
        """Whether it hears of every call."""

    @everything.setter
    def everything(self, on: bool) -> None: ...
    def add(self, subject: int, tap: NativeTap | None = None) -> None:
        """From now on it hears of calls whose first argument is the object of this id; `tap`, where it can."""
    def discard(self, subject: int) -> None: ...

class RoundTable:
    """The statistics of one round."""

    def __init__(self, number: int, captured: bool = False, sketches: bool = False) -> None:
        """`captured`: of calls while a CUDA graph is captured, which have no numbers before it is replayed."""
    @property
    def number(self) -> int: ...
    def begin_call(self, name: str, type_name: str, folder: str) -> tuple[int, str]:
        """The number of the call in this table, and the folder of its files."""
    def begin_function(self, name: str, type_name: str, place: str) -> int: ...
    def end_call(self, call: int) -> None: ...
    def set(self, row: int, maximum: float, minimum: float, mean: float, l2_norm: float) -> None: ...
    def append_replay(self, captured: RoundTable, stream: int) -> None:
        """What was captured has run on that stream: the same rows with the numbers of this time."""
    def forget_tensors(self) -> None:
        """From now on no tensor is known to be in the table already."""
    def calls(self) -> dict[str, list[int]]:
        """Of each module its calls' places in the order of all calls."""
    def ended(self) -> list[str]:
        """Modules whose calls have returned, each once."""
    @property
    def ended_print(self) -> int:
        """The same number where these are the same."""
    @property
    def module_calls(self) -> int: ...
    def take_unstored(self) -> list[tuple[str, int, str]]:
        """Reasons, how often each was noted, and of what first; each is given once."""
    def ways(self) -> dict[str, int]:
        """How many tensors were measured in which way."""
    def failure(self) -> str | None:
        """What a device had to say."""
    def wait(self) -> None:
        """Until the devices have measured every tensor so far."""
    def rows(self) -> list[tuple[str, float | None, float | None, float | None, float | None, int, int]]:
        """File, maximum, minimum, mean, norm, NaN and Inf of each tensor; None where nothing is known."""

class TableWriter:
    """Writes tables in a thread of its own."""

    def __init__(self) -> None: ...
    def submit(self, table: RoundTable, account: Account, folder: bytes, per_module: bool) -> None:
        """Unless the table is what it was the last time."""
    def flush(self) -> None: ...

class Recording:
    """Finds and measures the tensors of calls. Functions are called for what native code cannot do; see
    ait_llm/dump/torch_dump/measuring.py."""

    def __init__(
        self,
        parts: int,
        kind: Callable[[Any], str],
        leaves: Callable[[Any, str, int], list[tuple[str, Any]]],
        name: Callable[[Any], str],
        plain: Callable[[Any, str], Any],
        elsewhere: Callable[[int, int, Any], tuple[float, float, float, float] | None],
        trouble: Callable[[BaseException, str], None],
        copied: Callable[[Any, str], Any] | None = None,
    ) -> None:
        """`copied` brings a tensor to the CPU, for its sketch; without it there are no sketches."""
    def close(self) -> None:
        """Nothing is measured from now on, and no function held."""
    def set_current(self, table: RoundTable | None) -> None:
        """The round that this thread is in."""
    def arguments(self, table: RoundTable, call: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None: ...
    def output(self, table: RoundTable, call: int, value: Any) -> None: ...
    def tensor(self, table: RoundTable, call: int, stem: str, tensor: Any) -> None: ...

class NativeTap:
    """Hears of the calls of one module for a Recording, while `functions` return None and `flags` are false."""

    def __init__(
        self,
        recording: Recording,
        module: Any,
        name: str,
        type_name: str,
        folder: str,
        functions: list[Callable[[], Any]],
        flags: list[tuple[dict[str, Any], str]],
    ) -> None: ...

def print_of_modules(model: Any) -> int | None:
    """The same number as long as a model has the same modules of the same classes under the same names. None if they
    are kept in another way than torch's."""

def busy() -> bool:
    """Whether this thread runs code of ours."""

def set_busy(now: bool) -> None: ...
def set_torch(
    types: dict[Any, str],
    plain: tuple[type, type],
    tensor_base: type,
    raw_stream: Any | None,
    inference_mode: Any | None,
    exchange: Any | None = None,
) -> None:
    """What native code needs of torch: its types, classes and functions."""

def open_cuda_driver(library: str) -> str:
    """What is missing, in words; empty if all is well."""

def load_kernel(device: int, image: bytes) -> str:
    """What went wrong, in words; empty if all is well."""

def capture_on(stream: int) -> int:
    """The number of the capture of a CUDA graph that a stream takes part in; 0 if there is none."""

def has_kernel(device: int) -> bool: ...
def number_text(value: float) -> str:
    """As the reports write numbers: the fewest digits that give the float32 back."""

class GoldenForm:
    @property
    def name(self) -> str: ...
    def values(self) -> bytes: ...

class GoldenOutput:
    @property
    def shape(self) -> list[int]: ...
    @property
    def form(self) -> str: ...
    @property
    def forms(self) -> list[GoldenForm]: ...
    @property
    def undefined(self) -> list[bool]: ...
    @property
    def written_input(self) -> int | None: ...
    @property
    def part(self) -> tuple[int, list[int]] | None:
        """Elements of a stretch, and where each begins; None where the whole tensor is written."""
    @property
    def ties(self) -> list[list[float]]: ...
    @property
    def tie_of(self) -> list[tuple[int, int]]:
        """The values that are in a set of ties, and the number of that set."""
    def values(self) -> bytes: ...
    def bounds(self, dtype: str, form: int) -> bytes: ...

class Golden:
    @property
    def outputs(self) -> list[GoldenOutput]: ...
    @property
    def notes(self) -> list[str]: ...

def run_golden(
    type: str,
    param: str,
    inputs: Sequence[tuple[Operand | None, bool]],
    outputs: Sequence[tuple[str, Sequence[int]]],
    ranks: Sequence[Sequence[tuple[Operand | None, bool]]],
    rank_params: Sequence[str],
    memory_bytes: int,
    threads: int,
    reference_loops: bool,
) -> Golden: ...
def golden_types() -> list[str]: ...
def changed_inputs(type: str, param: str) -> list[int]: ...
def round_to(dtype: str, value: float) -> float: ...
