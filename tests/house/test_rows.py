"""The row table: rows are found by name, the worst result wins, a row without a test shows."""

from __future__ import annotations

from functools import cache

from tests.support import rows

all_tests = cache(rows.all_tests)

TEXT = """
async def test_voice_row_024_stop_word_cuts(): ...
class TestX:
    def test_core_row_019_abort_during_tool(self): ...
def test_voice_row_24_too_few_digits(): ...
def helper_voice_row_001_x(): ...
"""
REPORT = """<testsuites><testsuite>
<testcase classname="tests.a" name="test_voice_row_024_stop_word_cuts[virtual-1]"/>
<testcase classname="tests.a" name="test_voice_row_024_stop_word_cuts[virtual-2]">
  <failure message="x"/></testcase>
<testcase classname="tests.a.TestX" name="test_core_row_019_abort_during_tool"><skipped/></testcase>
</testsuite></testsuites>"""


def test_rows_are_found_by_name() -> None:
    found = rows.tests_in(TEXT, "tests.a")
    assert [(test.row, test.name) for test in found] == [
        (("voice", 24), "test_voice_row_024_stop_word_cuts"),
        (("core", 19), "test_core_row_019_abort_during_tool"),
    ]


def test_the_worst_result_of_a_parametrised_test_counts() -> None:
    found, known = rows.tests_in(TEXT, "tests.a"), rows.results(REPORT)
    assert [rows.result_of(test, known) for test in found] == ["failed", "skipped"]
    assert rows.result_of(found[0], {}) == "not run"
    assert rows.table(found, known)[0] == (
        "voice   24  failed   tests/a.py::test_voice_row_024_stop_word_cuts"
    )


def test_a_bound_row_without_a_test_is_missing() -> None:
    found = rows.tests_in(TEXT, "tests.a")
    assert rows.missing(found, bound=(23, 24, 19)) == [23, 19]
    assert rows.missing(found, "core", bound=(19, 24)) == [24]


def test_every_bound_row_has_a_test() -> None:
    assert rows.missing(all_tests()) == []
    assert rows.missing(all_tests(), "core") == []
