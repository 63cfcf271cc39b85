"""Every fault has a test and a mutant that fits; the runner knows a kill from a crash."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

from tests.support import mutants
from tests.support.mutants import FOLDER, ROOT, BadMutant

DEFINED = re.compile(r"^ *(?:async )?def (test_\w+)\(", re.MULTILINE)
FAULT_TEST = re.compile(r"test_fault_(\d\d)(?:_and_(\d\d))?_\w+")


@cache
def functions() -> dict[Path, frozenset[str]]:
    """The test functions of every file of tests, by its path from the root, at any depth."""
    return {
        path.relative_to(ROOT): frozenset(DEFINED.findall(path.read_text()))
        for path in (ROOT / "tests").rglob("*.py")
    }


def faults_of(test: str) -> set[int]:
    """The faults that a test is named after."""
    match = FAULT_TEST.fullmatch(test.rpartition("::")[2])
    return {int(number) for number in match.groups() if number} if match else set()


def exists(test: str) -> bool:
    """Whether a node id names a function; one in a class may be inherited from any suite."""
    file, *inner = test.split("::")
    where = functions().values() if len(inner) > 1 else [functions().get(Path(file), frozenset())]
    return (ROOT / file).exists() and any(inner[-1] in names for names in where)


def test_every_fault_has_a_test_of_its_name() -> None:
    named = {fault for names in functions().values() for name in names for fault in faults_of(name)}
    assert sorted(set(mutants.FAULTS) - named) == []


def test_every_fault_has_a_mutant_and_one_of_its_own_tests_is_to_kill_it() -> None:
    found = mutants.all_mutants()
    assert mutants.missing(found) == []
    own = {one.fault for one in found for test in one.tests if one.fault in faults_of(test)}
    assert sorted(set(mutants.FAULTS) - own) == []


def test_every_mutant_names_tests_that_exist() -> None:
    gone = {
        one.name: lost
        for one in mutants.all_mutants()
        if (lost := [test for test in one.tests if not exists(test)])
    }
    assert gone == {}


def test_every_mutant_fits_the_code_as_it_is() -> None:
    """One that does not is written anew: what it put back is still a fault."""
    assert [one.name for one in mutants.all_mutants() if not mutants.fits(one)] == []


HEAD = "# Fault 8: it runs twice\n# Test: tests/test_it.py::test_fault_08_it\n"
DIFF = "--- a/core/it.py\n+++ b/core/it.py\n@@ -1 +1 @@\n-x\n+y\n"


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("fault_8_it.patch", HEAD + DIFF, "fault_NN_what.patch"),
        ("fault_09_it.patch", HEAD + DIFF, "# Fault 9"),
        ("fault_08_it.patch", DIFF, "# Fault 8"),
        ("fault_08_it.patch", "# Fault 8: it runs twice\n" + DIFF, "name its tests"),
        ("fault_08_it.patch", HEAD, "changes nothing"),
    ],
)
def test_a_header_must_be_complete(tmp_path: Path, name: str, text: str, complaint: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(BadMutant, match=re.escape(complaint)):
        mutants.read(tmp_path / name)


def test_a_header_is_read(tmp_path: Path) -> None:
    (tmp_path / "fault_08_it.patch").write_text(HEAD + DIFF)
    one = mutants.read(tmp_path / "fault_08_it.patch")
    assert (one.fault, one.title, one.files) == (8, "it runs twice", ("core/it.py",))
    assert one.tests == ("tests/test_it.py::test_fault_08_it",)
    assert mutants.missing([one], faults=(7, 8, 9)) == [7, 9]


REPORT = """<testsuites><testsuite>
<testcase classname="tests.test_it" name="test_a[1]"/>
<testcase classname="tests.test_it" name="test_a[2]"><failure message="assert 1 == 2"/></testcase>
<testcase classname="tests.test_it" name="test_b"><failure message="NameError: x"/></testcase>
<testcase classname="tests.test_it.TestC" name="test_c"/>
<testcase classname="tests.test_it" name="test_d"><error message="left a task behind"/></testcase>
<testcase classname="tests.test_it" name="test_e"><failure message="no"/><error/></testcase>
<testcase classname="tests.test_it" name="test_f"><skipped/></testcase>
</testsuite></testsuites>"""


@pytest.mark.parametrize(
    ("test", "result"),
    [
        ("test_a", "failed"),  # one of its parameters is enough
        ("test_a[1]", "passed"),
        ("test_b", "broke"),
        ("TestC::test_c", "passed"),
        ("test_c", "not run"),
        ("test_d", "error"),
        ("test_e", "failed"),
        ("test_f", "not run"),
    ],
)
def test_only_a_failure_counts(test: str, result: str) -> None:
    assert mutants.result_of(f"tests/test_it.py::{test}", REPORT) == result


CODE = "def half(n: int) -> int:\n    return n // 2\n"
TESTS = """
from voxglove.core.half import half

def test_fault_01_half():
    assert half(8) == 4

def test_fault_02_is_blind():
    half(2)
"""
PATCH = (
    "--- a/core/half.py\n+++ b/core/half.py\n@@ -1,2 +1,2 @@\n {}\n-    return n // 2\n+    {}\n"
)
HALF, WRONG = "def half(n: int) -> int:", "return n // 2 + 1"
PATCHES = {
    "fault_01_adds": ("test_fault_01_half", PATCH.format(HALF, WRONG)),
    "fault_02_survives": ("test_fault_02_is_blind", PATCH.format(HALF, WRONG)),
    "fault_03_import": ("test_fault_01_half", PATCH.format(HALF, "return (")),
    "fault_04_elsewhere": ("test_fault_01_half", PATCH.format("def third():", WRONG)),
}


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A house of one function, with a test that sees and one that does not, and its mutants."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # they take longer than all the rest
    files = {
        "pyproject.toml": "[tool.pytest.ini_options]\naddopts = ['--import-mode=importlib']\n",
        "core/__init__.py": "",
        "core/half.py": CODE,
        "tests/test_half.py": TESTS,
    }
    for name, (test, diff) in PATCHES.items():
        head = f"# Fault {int(name[6:8])}: half is wrong\n# Test: tests/test_half.py::{test}\n"
        files[f"{FOLDER}/{name}.patch"] = head + diff
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / ".src" / "voxglove").mkdir(parents=True)
    (tmp_path / ".src" / "voxglove" / "core").symlink_to(Path("..", "..", "core"))
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    return tmp_path


def test_a_run_is_sound_only_when_tests_fail_with_every_mutant(house: Path) -> None:
    lines: list[str] = []
    assert not mutants.check(house, lines.append)
    told = [line[5:].partition(" fault_")[0].strip() for line in lines[:-1]]
    assert told[:3] == ["killed", "SURVIVED", "no proof: test not run"]
    assert told[3].startswith("does not apply")
    assert lines[-1].startswith("no mutant for faults 5, 6, 7")
    assert (house / "core" / "half.py").read_text() == CODE
    assert mutants.check(house, lines.append, only=["fault_01"])


def test_a_named_test_must_pass_without_its_mutant(house: Path) -> None:
    (house / "core" / "half.py").write_text(CODE.replace("n // 2", "n"))
    lines: list[str] = []
    assert not mutants.check(house, lines.append, only=["fault_01"])
    assert "should pass" in lines[0] and "test_fault_01_half: failed" in lines[0]


def test_another_voxglove_than_the_copy_is_noticed(house: Path) -> None:
    (house / ".src" / "voxglove" / "core").unlink()
    (house / "tests" / "test_half.py").write_text(
        "import voxglove.adapters\ndef test_fault_01_half():\n    assert voxglove.adapters\n"
    )
    found = [one for one in mutants.all_mutants(house) if one.fault == 1]
    assert "another voxglove" in mutants.green(found, house)
