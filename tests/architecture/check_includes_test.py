"""The include check must find what it is there to find."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from check_includes import violations


class CheckIncludes(unittest.TestCase):
    def tree(self, libraries):
        """Makes {library: (DEPS, source text)} into a source tree in which each library offers x.h."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        root = Path(folder.name)
        for library, (dependencies, text) in libraries.items():
            (root / "src" / library).mkdir(parents=True)
            deps = f"\n  DEPS {dependencies}" if dependencies else ""
            (root / "src" / library / "CMakeLists.txt").write_text(
                f"ait_library({library}\n  SOURCES x.cpp\n  HEADERS x.h{deps}\n  LINK a::b)\n"
            )
            (root / "src" / library / "x.cpp").write_text(text)
        return root

    def part(self, root, name, cmake, text):
        """Adds a folder beside src/."""
        (root / name / "deeper").mkdir(parents=True)
        (root / name / "CMakeLists.txt").write_text(cmake)
        (root / name / "deeper/x.cpp").write_text(text)

    def found(self, root, *parts):
        return violations(root, parts)

    def test_declared_dependencies_pass(self):
        root = self.tree(
            {
                "base": ("", '#include "base/x.h"\n#include "base/own.h"\n#include <vector>\n#include <sys/mman.h>\n'),
                "tensor": ("base", '#include "base/x.h"\n'),
                "metrics": ("tensor base", '#include "tensor/x.h"\n#include "base/x.h"\n'),
            }
        )
        self.assertEqual(self.found(root), [])

    def test_undeclared_dependency_is_found(self):
        root = self.tree(
            {
                "base": ("", ""),
                "formats": ("base", ""),
                "metrics": ("base", '#include "base/x.h"\n  #  include "formats/x.h"\n'),
            }
        )
        found = self.found(root)
        self.assertEqual(len(found), 1)
        self.assertIn("metrics/x.cpp includes formats/x.h", found[0])

    def test_dependency_of_a_dependency_is_found(self):
        root = self.tree(
            {
                "base": ("", ""),
                "tensor": ("base", ""),
                "metrics": ("tensor", '#include "tensor/x.h"\n#include "base/x.h"\n'),
            }
        )
        found = self.found(root)
        self.assertEqual(len(found), 1)
        self.assertIn("metrics does not declare base", found[0])

    def test_upward_dependency_is_found(self):
        root = self.tree({"base": ("", '#include "tensor/x.h"\n'), "tensor": ("base", "")})
        self.assertEqual(len(self.found(root)), 1)

    def test_private_header_of_a_dependency_is_found(self):
        root = self.tree({"base": ("", ""), "tensor": ("base", '#include "base/own.h"\n')})
        found = self.found(root)
        self.assertEqual(len(found), 1)
        self.assertIn("base/own.h, which base keeps to itself", found[0])

    def test_other_spellings_of_an_include_are_found(self):
        for include in ("<base/own.h>", '"../base/own.h"', '"../../src/base/own.h"'):
            root = self.tree({"base": ("", ""), "tensor": ("base", f"#include {include}\n")})
            self.assertEqual(len(self.found(root)), 1, include)

    def test_offered_header_that_includes_a_private_one_is_found(self):
        root = self.tree({"base": ("", "")})
        (root / "src/base/x.h").write_text('#include "base/own.h"\n')
        found = self.found(root)
        self.assertEqual(len(found), 1)
        self.assertIn("base/x.h is offered but includes base/own.h", found[0])

    def test_third_party_after_link_is_not_a_dependency(self):
        root = self.tree({"base": ("", '#include "a::b/x.h"\n')})
        self.assertEqual(len(self.found(root)), 1)

    def test_commented_out_dependency_does_not_count(self):
        root = self.tree({"base": ("", ""), "tensor": ("", '#include "base/x.h"\n')})
        (root / "src/tensor/CMakeLists.txt").write_text("ait_library(tensor SOURCES x.cpp # DEPS base\n)\n")
        self.assertEqual(len(self.found(root)), 1)

    def test_cycle_is_found(self):
        root = self.tree({"a": ("b", ""), "b": ("a", "")})
        self.assertEqual(len(self.found(root)), 2)

    def test_sources_without_a_declaration_are_found(self):
        root = self.tree({"base": ("", "")})
        (root / "src/base/CMakeLists.txt").write_text("")
        self.assertEqual(len(self.found(root)), 1)

    def test_part_may_include_what_its_targets_name(self):
        root = self.tree({"base": ("", ""), "tensor": ("base", "")})
        text = '#include "tensor/x.h"\n#include "base/x.h"\n#include "atb/own.h"\n#include "own.h"\n'
        self.part(root, "engine", "target_link_libraries(e PRIVATE ait::tensor ait::base)\n", text)
        self.assertEqual(self.found(root, "engine"), [])

    def test_undeclared_dependency_of_a_part_is_found(self):
        root = self.tree({"base": ("", ""), "tensor": ("base", "")})
        cmake = "target_link_libraries(e PRIVATE ait::tensor)  # ait::base\n"
        self.part(root, "python/bindings", cmake, '#include "base/x.h"\n')
        found = self.found(root, "python/bindings")
        self.assertEqual(len(found), 1)
        self.assertIn("python/bindings/deeper/x.cpp includes base/x.h", found[0])

    def test_private_header_in_a_part_is_found(self):
        root = self.tree({"base": ("", "")})
        self.part(root, "probe", "target_link_libraries(p PRIVATE ait::base)\n", '#include "base/own.h"\n')
        self.assertEqual(len(self.found(root, "probe")), 1)


if __name__ == "__main__":
    unittest.main()
