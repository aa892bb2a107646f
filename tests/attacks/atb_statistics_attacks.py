"""Attacks on the reader of msprobe's tables of statistics."""

from attack_list import attack

HEADER = (
    b"Device and PID,Execution Count,Op Name,Op Type,Op Id,Input/Output,Index,Dtype,Format,Shape,Max,Min,Mean,Norm,"
    b"Tensor Path\n"
)


def line(
    name="Layer/Linear", ids="13_6", direction="output", index="0", dtype="float16", shape="2x3", numbers="1,0,0.5,2"
):
    return f"0_4711,0,{name},Linear,{ids},{direction},{index},{dtype},nd,{shape},{numbers},N/A\n".encode()


def atb_statistics_attacks():
    def nothing(name, why, content):
        """A table without a single line that makes sense."""
        attack(f"atb_statistics/{name}.csv", why, HEADER + content, "lines describes a tensor")

    def no_data(name, why, content):
        attack(f"atb_statistics/{name}.csv", why, HEADER + content, "tensor has no data.", code="Unsupported")

    attack("atb_statistics/header_only.csv", "nothing but the header", HEADER, "holds no tensor", code="Usage")
    nothing("shape_overflows", "a shape that is 0 modulo 2^64", line(shape="4294967296x4294967296"))
    nothing("size_negative", "two negative sizes whose product is positive", line(shape="-2x-3"))
    nothing("size_beyond_64_bits", "a size of 40 digits", line(shape="9" * 40))
    nothing("hundred_dimensions", "100 dimensions", line(shape="x".join("1" * 100)))
    nothing("shape_ends_in_x", "a size that is missing", line(shape="2x"))
    nothing("type_unknown", "a type that does not exist", line(dtype="float3"))
    nothing("name_leads_up", "an operation that is a way out of the dump", line("../..", "1_2"))
    nothing("index_leads_up", "a number that is a path", line(index="/../../x"))
    nothing("more_ids_than_names", "numbers and names that do not fit", line("Layer", "1_2"))
    nothing("ids_are_words", "words for numbers", line(ids="a_b"))
    nothing("no_direction", "neither input nor output", line(direction="both"))
    nothing("few_cells", "a line of three cells", b"0_4711,0,Layer\n")
    nothing("many_cells", "15 000 cells in a line", b"," * 15000)
    nothing("quote_never_ends", "a quote that swallows every line after it", b'"' + line() * 50)
    no_data("numbers_beyond_double", "numbers that no double holds", line(numbers="1e999999,-1e999999,1e-999999,1e400"))
    no_data("numbers_are_words", "no numbers at all", line(numbers="N/A,N/A,N/A,N/A"))
    no_data("exbibyte", "a shape whose data no machine could hold", line(shape=str(1 << 60)))
    no_data("escape_sequence", "a name that clears the terminal it is printed on", line("\x1b[2J\x07", "1"))
    no_data("deep", "an operation 1000 levels down", line("/".join("a" * 1000), "_".join("1" * 1000)))
