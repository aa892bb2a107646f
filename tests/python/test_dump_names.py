"""The names of files that the Python package writes are those that the C++ side knows (src/record/dump_names.h)."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
WRITTEN_BY_PYTHON = [
    "kDumpFolder",
    "kTorchTensorsFolder",
    "kManifestFile",
    "kModelTreeFile",
    "kGoldenTensorFolder",
    "kMetadataFile",
    "kLabelsSuffix",
]


def literals(folder: Path) -> set[str]:
    """Every text constant of the code below the folder, docstrings and pieces of f-strings included."""
    return {
        node.value
        for path in folder.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def test_python_writes_the_names_that_are_read():
    header = (ROOT / "src/record/dump_names.h").read_text()
    names = dict(re.findall(r'constexpr char (k\w+)\[\] = "([^"]+)";', header))
    used = literals(ROOT / "python/ait_llm/dump")
    assert [name for name in WRITTEN_BY_PYTHON if names[name] not in used] == []
