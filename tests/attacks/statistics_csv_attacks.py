"""Attacks on the reader of tables of statistics."""

from attack_list import attack

HEADER = b"NodeName,NodeType,InputOutput,Index,DataType,Shape,Max,Min,Mean,L2Norm,File\r\n"


def line(shape="(2, 3)", dtype="torch.float32", numbers="1.0,0.0,0.5,2.0", file="output", index="0"):
    return f'root.x,Linear,Output,{index},{dtype},"{shape}",{numbers},{file}\r\n'.encode()


def statistics_csv_attacks():
    def nothing(name, why, content):
        """A table without a single line that makes sense."""
        attack(f"statistics_csv/{name}.csv", why, HEADER + content, "lines describes a tensor")

    def no_data(name, why, content):
        attack(f"statistics_csv/{name}.csv", why, HEADER + content, "tensor has no data.", code="Unsupported")

    attack(
        "statistics_csv/header_only.csv",
        "nothing but the names of the columns",
        HEADER,
        "holds no tensor",
        code="Usage",
    )
    nothing("shape_overflows", "a shape that is 0 modulo 2^64", line("(4294967296, 4294967296)"))
    nothing("zero_hides_overflow", "a zero dimension beside two that overflow", line(f"(0, {2**62}, {2**62})"))
    nothing("dimension_beyond_64_bits", "a size of 40 digits", line(f"({'9' * 40},)"))
    nothing("dimension_negative", "two negative sizes whose product is positive", line("(-2, -3)"))
    nothing("hundred_dimensions", "100 dimensions", line("(" + "1, " * 100 + ")"))
    nothing(
        "nested_parentheses", "10 000 open parentheses for a recursive parser", line("(" * 10000 + ")" * 10000)[:17000]
    )
    nothing("parenthesis_alone", "a shape of one character that opens and closes", line("("))
    nothing("nul_in_shape", "a NUL that ends the number early for C's functions", line("(2\0000000,)"))
    nothing(
        "expression_as_shape",
        "a shape that runs a command in a reader that evaluates it",
        line("__import__('os').abort()"),
    )
    nothing("type_unknown", "a type that does not exist", line(dtype="torch.Tensor"))
    nothing("quote_never_ends", "a quote that swallows every line after it", b'"' + line("()").replace(b'"', b"") * 50)
    nothing("quotes_only", "10 000 quotes", b'"' * 10000)
    nothing("commas_only", "15 000 cells in a line", b"," * 15000)
    nothing("line_cut", "a file that ends inside a line", line()[:30])
    no_data("many_cells", "15 000 cells behind the last one", line()[:-2] + b"," * 15000)
    no_data("escape_sequence", "a name that clears the terminal it is printed on", line(file="\x1b[2J\x07"))
    no_data("name_leads_elsewhere", "a name that is a path out of the dump", line(file="../../../../etc/passwd"))
    no_data("formula", "a name that a spreadsheet would run", line(file="\"=cmd|'/c calc'!A1\""))
    no_data("name_of_15_kb", "a name of 15 KB", line(file="n" * 15000))
    no_data("numbers_beyond_double", "numbers that no double holds", line(numbers="1e999999,-1e999999,1e-999999,1e400"))
    no_data("numbers_of_other_kinds", "numbers that other parsers take", line(numbers="0x10,1_000,١,+1"))
    no_data("numbers_long", "a number of 15 000 digits", line(numbers="1" * 15000 + ",0,0,0"))
    no_data("tensor_of_an_exbibyte", "a shape whose data no machine could hold", line(f"({1 << 60},)"))

    def of_round(name, why, columns, cells):
        header = HEADER.replace(b",File\r\n", f",{columns}\r\n".encode())
        content = header + line(file=cells)
        attack(f"statistics_csv/{name}.csv", why, content, "tensor has no data.", code="Unsupported")

    of_round(
        "columns_twice", "columns of the same name", "File,File,NaN,NaN,Inf,Inf", "root.x/output,root.y/output,1,2,3,4"
    )
    of_round("columns_hidden", "a column behind 3 000 others", "x," * 3000 + "File,Sketch", "x," * 3000 + "a/b,1:AAAA")
    of_round("counts_beyond_64_bits", "counts that no integer holds", "File,NaN,Inf", f"a/output,{2**64},-{2**63}")
    of_round(
        "counts_above_elements", "more NaN than the tensor has elements", "File,NaN,Inf", f"a/output,{2**64 - 1},9"
    )
    of_round("same_as_itself", "a row that refers to itself", "File,NaN,Inf,SameAs", "a/output,0,0,a/output")
    of_round("name_leads_up", "a module that is a folder further up", "File,NaN,Inf,SameAs", "../output,0,0,../../x")
    of_round("sketch_of_no_base64", "a sketch that is no base64", "File,Sketch", "output,1:\x1b[2J====")
    of_round("sketch_of_later_version", "a sketch of a version to come", "File,Sketch", "output,99:AAAA")
    of_round("sketch_long", "a sketch of 12 KB for six elements", "File,Sketch", "output,1:" + "A" * 12000)
