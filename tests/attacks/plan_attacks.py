"""Attacks on the readers of plans and of parts."""

from attack_list import attack
from hostile_plan import facts, pair, part, part_facts, part_row, plan, side
from hostile_rows import header, origin, record, text, whole

DAMAGED = "holds a damaged block of pairs"
FACTS = "says nothing that makes sense of its pairs"
FIT = "its facts do not fit its number of pairs"


def plan_attacks():
    def add(name, why, content, words=DAMAGED, **more):
        attack(f"plan/{name}.plan", why, content, words, **more)

    add("other_magic", "a store of rows", b"ait rows" + plan(pair())[8:], "is not a plan", code="Unsupported")
    add("version_3", "a version that does not exist", header(3, b"ait plan"), "pairs of version 3", code="Unsupported")
    add("without_end", "a plan that was cut short", plan(pair())[:-24], "was cut short")
    add("without_facts", "pairs of which nothing is said", plan(pair(), note=b""), FACTS)
    add("facts_checksum", "facts with another checksum", plan(pair(), checksum=1), "holds a damaged note")
    add("facts_cut", "facts that end early", plan(pair(), note=facts()[:-1]), FACTS)
    add("facts_left_over", "facts with bytes behind them", plan(pair(), note=facts() + b"more"), FACTS)
    add("kind_beyond", "a kind of run that does not exist", plan(pair(), note=facts(kind=whole(1) + whole(9))), FACTS)
    add(
        "billion_blocks",
        "2^30 blocks, to be made before they are read",
        plan(pair(), note=facts(blocks=())[:-1] + whole(1 << 30)),
        FACTS,
    )
    add("billion_tokens", "2^20 tokens said and none there", plan(pair(), note=facts(tokens=whole(1 << 20))), FACTS)
    long_token = text(b"t" * 8000) + text() * 2 + whole(0) * 2
    again = text(shared=8000) + text() * 2 + whole(0) * 2
    many = whole(1000) + long_token + again * 999
    add(
        "tokens_that_multiply",
        "a token of 8 KB, said again in nine bytes by each of a thousand",
        plan((pair() * 2, 2), note=facts(tokens=many)),
        FIT,
    )
    add("more_pairs_than_there_are", "2^60 pairs said to be in one", plan(pair(), note=facts(pairs=1 << 60)), FIT)
    add("block_of_no_node", "a block of a node that is not named", plan(pair(), note=facts(blocks=((5, 1, 0),))), FIT)
    add(
        "two_blocks_said", "two blocks said and one there", plan(pair(), note=facts(blocks=((0, 1, 0), (0, 1, 0)))), FIT
    )
    add(
        "blocks_not_in_order",
        "two blocks that begin with the same pair",
        plan(pair(), pair(), note=facts(pairs=2, blocks=((0, 1, 0), (0, 1, 0)))),
    )
    add("other_first", "a block that begins with another pair than is said", plan(pair(1), note=facts()))
    add("number_beyond", "a pair of a number that no pair has", plan(pair(9), note=facts(blocks=((0, 1, 9),))))
    add("numbers_twice", "two pairs of one number", plan((pair() * 2, 2), note=facts(pairs=2)))
    add(
        "weights_wrap",
        "weights whose sum is 0 modulo 2^64, and damaged pairs",
        plan(b"", b"", note=facts(pairs=2, blocks=((0, 1 << 63, 0), (0, 1 << 63, 1)))),
    )
    add("pairs_left_over", "bytes behind the last pair", plan(pair() + b"more"))
    add("join_beyond", "a way to join that does not exist", plan(pair(golden=side(transform=whole(0) * 5 + whole(3)))))
    add(
        "columns_negative", "a matrix of -1 columns", plan(pair(golden=side(transform=whole(2**64 - 1) + whole(0) * 5)))
    )
    add("scale_missing", "a quantised weight without its scale", plan(pair(my=side(dequantise=1))))
    chosen = whole(1) + whole(4) + whole(1) + whole(4) + whole(0)
    add("row_beyond", "row 4 chosen of 4 rows", plan(pair(my=side(rows=chosen))))
    last = whole(1) + whole(4) + whole(0) + whole(2) + whole(3) + whole(2**32 - 1 - 2)
    add(
        "last_row_wraps",
        "a last row that wraps to one before the first",
        plan(pair(my=side(rows=last[:-1] + whole(7)))),
    )
    add("rows_not_there", "rows that another pair is said to have", plan(pair(my=side(rows=whole(2)))))
    add(
        "billion_rows",
        "2^27 rows chosen in no bytes",
        plan(pair(my=side(rows=whole(1) + whole(1 << 27) + whole(1 << 27)))),
    )
    add("billion_bits", "2^27 rows of padding in no bytes", plan(pair(padding=whole(1) + whole(1 << 27))))
    add("source_before_the_first", "a pair made of one before the first", plan(pair(made=origin(sources=(1,)))))
    add(
        "billion_records", "2^30 records, to be made before they are read", plan(pair(golden=whole(1 << 30) + record()))
    )
    add(
        "part_of_another",
        "the plan of one part, which the others are asked of",
        plan(pair(), note=facts(only=whole(1) + whole(1) + whole(2))),
        "holds part 1 of 2 alone",
        code="Usage",
    )


def part_attacks():
    rows = "holds a damaged block of rows"
    says = "says nothing that makes sense of its rows"

    def add(name, why, content, words=rows, **more):
        attack(f"part/{name}.part", why, content, words, **more)

    add("other_magic", "a store of rows", b"ait rows" + part()[8:], "is not a part", code="Unsupported")
    add("version_2", "a version that does not exist", header(2, b"ait part"), "rows of version 2", code="Unsupported")
    add("without_end", "a part that was cut short", part()[:-24], "was cut short")
    add("without_facts", "rows of which nothing is said", part(note=b""), says)
    add("part_0", "a part before the first", part(note=part_facts(which=(0, 4))), says)
    add("part_beyond", "part 5 of 4", part(note=part_facts(which=(5, 4))), says)
    add("billion_parts", "one of 2^30 parts", part(note=part_facts(which=(1, 1 << 30))), says)
    add("runs_missing", "rows of no pairs", part(note=part_facts(runs=())), says)
    add("run_beyond", "a run that begins behind the last row", part(note=part_facts(runs=((0, 0), (9, 0)))), says)
    add(
        "run_late",
        "a run that does not begin with the first row",
        part(part_row() * 2, 2, note=part_facts(runs=((1, 0),))),
        says,
    )
    add(
        "runs_twice",
        "two runs that begin with one row",
        part(part_row() * 2, 2, note=part_facts(runs=((0, 0), (0, 1)))),
        says,
    )
    add(
        "billion_runs",
        "2^30 runs, to be made before they are read",
        part(note=part_facts(runs=())[:-1] + whole(1 << 30)),
        says,
    )
    add("row_cut", "a row that ends early", part(part_row()[:-1]))
    add("source_before_the_first", "a row made of one before the first pair", part(part_row(made=origin(sources=(1,)))))
