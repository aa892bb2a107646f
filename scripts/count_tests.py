"""Adds up JUnit reports into one line, "N passed, N failed"; fails when a report is missing or counts a failure."""

import argparse
import sys
from pathlib import Path
from xml.etree import ElementTree


def count(report):
    """(passed, failed, skipped) of the outermost suites of one report."""
    root = ElementTree.parse(report).getroot()
    suites = [root] if root.tag == "testsuite" else root.findall("testsuite")
    total = failed = skipped = 0
    for suite in suites:
        total += int(suite.get("tests", 0))
        failed += int(suite.get("failures", 0)) + int(suite.get("errors", 0))
        skipped += int(suite.get("skipped", 0)) + int(suite.get("disabled", 0))
    return total - failed - skipped, failed, skipped


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("reports", nargs="+")
    parser.add_argument(
        "--checks", nargs=2, type=int, default=[0, 0], help="checks that passed and failed, to be added"
    )
    arguments = parser.parse_args()
    (passed, failed), skipped = arguments.checks, 0
    for report in arguments.reports:
        if not Path(report).is_file():
            print(f"{report} was not written: that suite did not run to its end", file=sys.stderr)
            failed += 1
            continue
        numbers = count(report)
        passed, failed, skipped = passed + numbers[0], failed + numbers[1], skipped + numbers[2]
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
