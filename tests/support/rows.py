"""Spec row -> test -> result. The name of a test says which row it proves.

Run by `make rows`. The rows are found in the test files' text, so a test that cannot be imported
still shows; the results come from the JUnit report of the last run. Prints; changes nothing.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parents[2]
ROW_TEST = re.compile(r"test_(voice|core)_row_(\d{3})_\w+")
CASES = "*_cases_*.py"
"""Where suites keep tests that others inherit."""
BOUND_VOICE = (*range(1, 35), *range(41, 44), *range(50, 74), *range(77, 94), 98)
BOUND_CORE = (*range(1, 81), 92, 93, 94)
"""Rows of the two specs that must have a test. Others are bound as they land."""

Row = tuple[str, int]
BOUND: dict[str, tuple[int, ...]] = {"voice": BOUND_VOICE, "core": BOUND_CORE}
_SEVERITY = ("passed", "not run", "skipped", "failed")


@dataclass(frozen=True, slots=True)
class RowTest:
    """One test function that proves a row; `module` is dotted from the root, as JUnit writes it."""

    row: Row
    module: str
    name: str


def tests_in(text: str, module: str) -> list[RowTest]:
    """The row tests of one test file, at any depth."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            match = ROW_TEST.fullmatch(node.name)
            if match:
                found.append(RowTest((match[1], int(match[2])), module, node.name))
    return found


def all_tests(root: Path = ROOT) -> list[RowTest]:
    """The row tests of the whole suite, ordered by row."""
    found: list[RowTest] = []
    paths = [path for pattern in ("test_*.py", CASES) for path in (root / "tests").rglob(pattern)]
    for path in sorted(paths):
        module = ".".join(path.relative_to(root).with_suffix("").parts)
        found += tests_in(path.read_text(), module)
    return sorted(found, key=lambda test: (test.row[0] != "voice", test.row[1], test.name))


def missing(
    found: Iterable[RowTest], kind: str = "voice", bound: Iterable[int] | None = None
) -> list[int]:
    """Bound rows of a spec, by default all of them, that no test is named after."""
    have = {number for of, number in (test.row for test in found) if of == kind}
    return [number for number in (BOUND[kind] if bound is None else bound) if number not in have]


def results(report: str) -> dict[tuple[str, str], str]:
    """(module, function) -> the worst result among its parameters, from JUnit XML text."""
    worst: dict[tuple[str, str], str] = {}
    for case in ElementTree.fromstring(report).iter("testcase"):
        name = case.get("name", "").partition("[")[0]
        result = "passed"
        if case.find("failure") is not None or case.find("error") is not None:
            result = "failed"
        elif case.find("skipped") is not None:
            result = "skipped"
        key = (case.get("classname", ""), name)
        worst[key] = max(worst.get(key, "passed"), result, key=_SEVERITY.index)
    return worst


def result_of(test: RowTest, known: Mapping[tuple[str, str], str]) -> str:
    """The result of one row test; a class around it lengthens JUnit's class name, and what a suite
    inherits has been run elsewhere, once for each subject: the worst counts."""
    shared = fnmatch(f"{test.module.rpartition('.')[2]}.py", CASES)
    found = [
        result
        for (classname, name), result in known.items()
        if name == test.name and (shared or f"{classname}.".startswith(f"{test.module}."))
    ]
    return max(found, key=_SEVERITY.index, default="not run")


def table(found: Iterable[RowTest], known: Mapping[tuple[str, str], str]) -> list[str]:
    """One printed line per row test."""
    return [
        f"{test.row[0]:<6}{test.row[1]:>4}  {result_of(test, known):<8}"
        f" {test.module.replace('.', '/')}.py::{test.name}"
        for test in found
    ]


def main() -> int:
    """Print the table. 1 when a bound row has no test or a row's test failed, else 0."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--report", type=Path, required=True, help="JUnit XML of the last run")
    report: Path = parser.parse_args().report
    known = results(report.read_text()) if report.exists() else {}
    if not known:
        print(f"No results in {report}: run `make test` first. Tests by name:")
    found = all_tests()
    print("\n".join(table(found, known)))
    gone = {kind: lost for kind in BOUND if (lost := missing(found, kind))}
    for kind, bound in BOUND.items():
        proved = len(bound) - len(gone.get(kind, ()))
        more = {test.row for test in found if test.row[0] == kind and test.row[1] not in bound}
        print(f"{kind}: {proved} of {len(bound)} bound rows have a test, and {len(more)} others")
    for kind, lost in gone.items():
        print(f"no test for {kind} rows {', '.join(map(str, lost))}")
    failed = [test.name for test in found if result_of(test, known) == "failed"]
    if failed:
        print("failed: " + ", ".join(failed))
    return 1 if gone or failed else 0


if __name__ == "__main__":
    sys.exit(main())
