"""Mutants: every fault of spec core 19 put back by a small patch, which its tests must notice.

`make mutants` runs it. Each patch in tests/mutants is applied to a copy of the checkout, where only
the tests it names run. Nothing in the checkout is changed; nothing but these copies is imported.

    # Fault 8: a failed summary runs the tool again
    # Test: tests/core/test_executor.py::test_fault_08_a_failing_summary_does_not_run_the_tool_again
    --- a/core/executor.py
    +++ b/core/executor.py
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parents[2]
FOLDER = Path("tests", "mutants")
FAULTS = range(1, 29)
PROCESSES = 2
LIMIT_S = 300

NAME = re.compile(r"fault_(\d\d)_\w+\.patch")
TITLE = re.compile(r"^# Fault (\d+): (\S.*)$", re.MULTILINE)
TEST = re.compile(r"^# Test: (\S+::\S+)$", re.MULTILINE)
TOUCHED = re.compile(r"^\+\+\+ b/(\S+)", re.MULTILINE)
NOT_RUNNING = re.compile(r"(ImportError|ModuleNotFoundError|SyntaxError|NameError)\b")
"""How a test ends that did not get to look at the fault."""

ELSEWHERE = 64
WITNESS = "voxglove_is_from_here"
WITNESS_TEXT = f'''"""A pytest plugin: what ran as voxglove lies in the tree this file lies in."""

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parents[1]


def pytest_sessionfinish(session: pytest.Session) -> None:
    ours = [m for name, m in list(sys.modules.items()) if name.startswith("voxglove.")]
    files = [Path(m.__file__).resolve() for m in ours if getattr(m, "__file__", None)]
    away = [str(path) for path in files if not path.is_relative_to(HERE)]
    if away or not files:
        pytest.exit(f"voxglove is not the copy in {{HERE}}: {{away[:3]}}", returncode={ELSEWHERE})
'''


class BadMutant(Exception):
    """A patch that cannot be used; the message says what is missing."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One patch. `tests` are node ids, all of which must fail with it; `files` it changes."""

    fault: int
    name: str
    title: str
    tests: tuple[str, ...]
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a mutant at one test. `text` is `killed`, or why that cannot be said."""

    mutant: Mutant
    test: str
    text: str

    @property
    def killed(self) -> bool:
        return self.text == "killed"


def read(path: Path) -> Mutant:
    """A patch file's header. Raises BadMutant."""
    name, text = NAME.fullmatch(path.name), path.read_text("utf-8")
    title, tests, files = TITLE.search(text), TEST.findall(text), TOUCHED.findall(text)
    if name is None:
        raise BadMutant(f"{path.name}: name it fault_NN_what.patch")
    if title is None or int(title[1]) != int(name[1]):
        raise BadMutant(f"{path.name}: begin with `# Fault {int(name[1])}: what it is`")
    if not tests:
        raise BadMutant(f"{path.name}: name its tests, `# Test: tests/….py::test_…`")
    if not files:
        raise BadMutant(f"{path.name}: no `+++ b/…`, so it changes nothing")
    return Mutant(int(name[1]), path.name, title[2], tuple(tests), tuple(files))


def all_mutants(root: Path = ROOT) -> list[Mutant]:
    """Every patch, by name. Raises BadMutant for one that is wrong."""
    return [read(path) for path in sorted((root / FOLDER).glob("*.patch"))]


def missing(mutants: Iterable[Mutant], faults: Iterable[int] = FAULTS) -> list[int]:
    """Faults that no mutant puts back."""
    have = {mutant.fault for mutant in mutants}
    return [fault for fault in faults if fault not in have]


def copy(root: Path, tree: Path) -> None:
    """The working tree's own files without what git ignores; links stay links."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        check=True,
        text=True,
    )
    for name in set(filter(None, listing.stdout.split("\0"))):
        if os.path.lexists(root / name):
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / name, tree / name, follow_symlinks=False)
    (tree / ".src").mkdir(exist_ok=True)
    (tree / ".src" / f"{WITNESS}.py").write_text(WITNESS_TEXT, "utf-8")


def apply(mutant: Mutant, root: Path, tree: Path) -> str:
    """Why the patch does not fit the tree; empty when it is applied."""
    before = {name: _content(tree / name) for name in mutant.files}
    done = subprocess.run(
        ["git", "apply", str(root / FOLDER / mutant.name)],
        cwd=tree,
        capture_output=True,
        text=True,
        # A tree inside somebody's checkout is patched all the same.
        env=os.environ | {"GIT_CEILING_DIRECTORIES": str(tree.resolve().parent)},
    )
    if done.returncode:
        return f"does not apply: {done.stderr.strip().splitlines()[-1]}"
    same = [name for name, text in before.items() if _content(tree / name) == text]
    return f"changes nothing in {', '.join(same)}" if same else ""


def fits(mutant: Mutant, root: Path = ROOT) -> bool:
    """Whether the patch applies to the checkout as it is now, which is not changed."""
    patch = root / FOLDER / mutant.name
    done = subprocess.run(["git", "apply", "--check", str(patch)], cwd=root, capture_output=True)
    return done.returncode == 0


def run(tests: Sequence[str], tree: Path) -> tuple[int, Mapping[str, str]]:
    """pytest's exit code in the tree, and per test: passed, failed, broke, error or not run."""
    report = tree / "mutant-report.xml"
    report.unlink(missing_ok=True)
    ours = {"PYTHONPATH": str(tree / ".src"), "PYTHONDONTWRITEBYTECODE": "1", "PYTEST_ADDOPTS": ""}
    options = ("-q", "-p", WITNESS, "-p", "no:cacheprovider", f"--junitxml={report}")
    try:
        code = subprocess.run(
            [str(Path(sys.executable).with_name("pytest")), *options, *tests],
            cwd=tree,
            capture_output=True,
            env=os.environ | ours,
            timeout=LIMIT_S,
        ).returncode
    except subprocess.TimeoutExpired:
        return -1, {}
    text = report.read_text("utf-8") if report.exists() else "<none/>"
    return code, {test: result_of(test, text) for test in tests}


def try_out(mutant: Mutant, root: Path) -> list[Verdict]:
    """Apply a mutant to a copy of its own and run its tests."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        tree = Path(folder)
        copy(root, tree)
        problem = apply(mutant, root, tree)
        if problem:
            return [Verdict(mutant, test, problem) for test in mutant.tests]
        code, results = run(mutant.tests, tree)
    return [Verdict(mutant, test, _judge(code, results.get(test))) for test in mutant.tests]


def green(mutants: Iterable[Mutant], root: Path) -> str:
    """Why the named tests prove nothing: one that fails without a mutant. Empty when all pass."""
    tests = sorted({test for mutant in mutants for test in mutant.tests})
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        copy(root, Path(folder))
        code, results = run(tests, Path(folder))
    bad = [f"{test}: {result}" for test, result in results.items() if result != "passed"]
    if code == ELSEWHERE:
        return "the tests import another voxglove than the copy"
    return "\n".join(bad) or (f"pytest ended with {code}" if code else "")


def check(root: Path, say: Callable[[str], None], only: Sequence[str] = ()) -> bool:
    """All of it, told line by line. True when every fault has a mutant and none survives."""
    mutants = all_mutants(root)
    chosen = [one for one in mutants if not only or any(part in one.name for part in only)]
    problem = green(chosen, root)
    if problem:
        say(f"without a mutant these should pass:\n{problem}")
        return False
    sound = True
    with ThreadPoolExecutor(PROCESSES) as pool:
        for verdicts in pool.map(partial(try_out, root=root), chosen):
            for one in verdicts:
                say(f"{one.mutant.fault:>3}  {one.text:<9} {one.mutant.name:<56} {one.test}")
                sound = sound and one.killed
    gone = [] if only else missing(mutants)
    if gone:
        say("no mutant for faults " + ", ".join(map(str, gone)))
    return sound and not gone


def main() -> int:
    """Print fault, verdict, mutant, test. 1 for a survivor, a fault without mutant, a bad patch."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("only", nargs="*", help="parts of patch names, such as fault_08")
    say = partial(print, flush=True)
    try:
        sound = check(ROOT, say, parser.parse_args().only)
    except BadMutant as error:
        say(str(error))
        return 1
    return 0 if sound else 1


def _content(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


def _judge(code: int, result: str | None) -> str:
    if code == ELSEWHERE:
        return "imports another voxglove"
    if code == -1:
        return f"no end within {LIMIT_S} s"
    if code == 1 and result == "failed":
        return "killed"
    return "SURVIVED" if result == "passed" else f"no proof: test {result or 'not run'}"


def result_of(test: str, report: str) -> str:
    """Of a test with all its parameters, from JUnit XML text.

    One that failed is enough; one that could not even look (an import, a fixture) proves nothing.
    """
    found: set[str] = set()
    for case in ElementTree.fromstring(report).iter("testcase"):
        if not _is_case(test, case.get("classname", ""), case.get("name", "")):
            continue
        failure = case.find("failure")
        if failure is not None:
            broke = NOT_RUNNING.match(failure.get("message", ""))
            found.add("broke" if broke else "failed")
        elif case.find("error") is not None:
            found.add("error")
        elif case.find("skipped") is None:
            found.add("passed")
    return next((one for one in ("broke", "failed", "error", "passed") if one in found), "not run")


def _is_case(test: str, classname: str, name: str) -> bool:
    file, *inner = test.split("::")
    dotted = ".".join((*Path(file).with_suffix("").parts, *inner[:-1]))
    return classname == dotted and inner[-1] in (name, name.partition("[")[0])


if __name__ == "__main__":
    sys.exit(main())
