"""The include check must find what it is there to find."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from check_includes import violations


class CheckIncludes(unittest.TestCase):
    def tree(self, libraries):
        """Makes {library: (DEPS, source text)} into a source tree."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        src = Path(folder.name)
        for library, (dependencies, text) in libraries.items():
            (src / library).mkdir()
            deps = f"\n  DEPS {dependencies}" if dependencies else ""
            (src / library / "CMakeLists.txt").write_text(
                f"ait_library({library}\n  SOURCES x.cpp{deps}\n  LINK a::b)\n"
            )
            (src / library / "x.cpp").write_text(text)
        return src

    def test_declared_and_transitive_dependencies_pass(self):
        src = self.tree(
            {
                "base": ("", '#include "base/x.h"\n#include <vector>\n'),
                "tensor": ("base", '#include "base/x.h"\n'),
                "metrics": ("tensor", '#include "tensor/x.h"\n#include "base/x.h"\n'),
            }
        )
        self.assertEqual(violations(src), [])

    def test_undeclared_dependency_is_found(self):
        src = self.tree(
            {
                "base": ("", ""),
                "formats": ("base", ""),
                "metrics": ("base", '#include "base/x.h"\n  #  include "formats/x.h"\n'),
            }
        )
        found = violations(src)
        self.assertEqual(len(found), 1)
        self.assertIn("metrics/x.cpp includes formats/", found[0])

    def test_upward_dependency_is_found(self):
        src = self.tree({"base": ("", '#include "tensor/x.h"\n'), "tensor": ("base", "")})
        self.assertEqual(len(violations(src)), 1)

    def test_third_party_after_link_is_not_a_dependency(self):
        src = self.tree({"base": ("", '#include "a::b/x.h"\n')})
        self.assertEqual(len(violations(src)), 1)

    def test_commented_out_dependency_does_not_count(self):
        src = self.tree({"base": ("", ""), "tensor": ("", '#include "base/x.h"\n')})
        (src / "tensor/CMakeLists.txt").write_text("ait_library(tensor SOURCES x.cpp # DEPS base\n)\n")
        self.assertEqual(len(violations(src)), 1)

    def test_cycle_is_found(self):
        src = self.tree({"a": ("b", ""), "b": ("a", "")})
        self.assertEqual(len(violations(src)), 2)

    def test_sources_without_a_declaration_are_found(self):
        src = self.tree({"base": ("", "")})
        (src / "base/CMakeLists.txt").write_text("")
        self.assertEqual(len(violations(src)), 1)


if __name__ == "__main__":
    unittest.main()
