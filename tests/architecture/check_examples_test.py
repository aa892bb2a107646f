"""The check of the examples must find what it is there to find."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from check_examples import violations

HEADER = """// Adds numbers.
//
//   int sum = add(1, 2);  // 3
//   return sum;
//
// tests/sum/example_test.cpp runs this
// example.
#pragma once
"""


class CheckExamples(unittest.TestCase):
    def tree(self, header, test):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        root = Path(folder.name)
        for path, text in (("src/sum/sum.h", header), ("tests/sum/example_test.cpp", test)):
            if text is not None:
                (root / path).parent.mkdir(parents=True)
                (root / path).write_text(text)
        return root

    def test_the_same_code_in_other_lines_passes(self):
        test = "int f() {\n  int sum =\n      add(1, 2);\n  return sum;\n}\n"
        self.assertEqual(violations(self.tree(HEADER, test)), [])

    def test_other_code_is_found(self):
        self.assertEqual(len(violations(self.tree(HEADER, "int sum = add(1, 2, 3);\nreturn sum;\n"))), 1)

    def test_a_claim_without_an_example_is_found(self):
        self.assertEqual(len(violations(self.tree(HEADER.replace("//   ", "// "), "int sum = add(1, 2);"))), 1)

    def test_a_missing_test_is_found(self):
        self.assertEqual(len(violations(self.tree(HEADER, None))), 1)

    def test_a_tree_without_examples_is_found(self):
        self.assertEqual(len(violations(self.tree("// Adds numbers.\n", "int x;\n"))), 1)


if __name__ == "__main__":
    unittest.main()
