"""The three tables: every way that is in them, none that is not, and the page drawn from them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from voxglove.pipelines.floors import AGENT, LINE, MODES, USER, Table, page
from voxglove.pipelines.machine import MachineConfig, initial
from voxglove.pipelines.state import Step

PAGE = Path(__file__).parents[2] / "docs" / "turns.md"

Plain = dict[str, dict[str, str]]


def plain(table: Table) -> Plain:
    return {str(floor): {way: str(to) for way, to in ways.items()} for floor, ways in table.items()}


TABLES: dict[str, Plain] = {"line": plain(LINE), "user": plain(USER), "agent": plain(AGENT)}
TRIGGERS = {
    name: {way for ways in table.values() for way in ways} for name, table in TABLES.items()
}
PAIRS = [
    (name, floor, trigger)
    for name, table in TABLES.items()
    for floor in table
    for trigger in sorted(TRIGGERS[name])
]


@pytest.mark.parametrize(("name", "floor", "trigger"), PAIRS)
def test_a_floor_moves_by_its_table_and_counts_what_is_illegal(
    name: str, floor: str, trigger: str
) -> None:
    step = Step(initial(MachineConfig()), MachineConfig(), 320)
    step.put(**{name: floor})
    target = TABLES[name][floor].get(trigger)
    moved = getattr(step, f"move_{name}")(trigger)
    assert moved is (target is not None)
    assert getattr(step.state, name) == (target or floor)
    assert step.state.ignored == (0 if target else 1)
    assert step.effects == []


@pytest.mark.parametrize("name", TABLES)
def test_every_floor_is_reached_and_only_the_closed_line_is_final(name: str) -> None:
    table = TABLES[name]
    reached = {target for ways in table.values() for target in ways.values()}
    first = getattr(initial(MachineConfig()), name)
    assert reached | {first} == set(table)
    assert [floor for floor, ways in table.items() if not ways] == (
        ["closed"] if name == "line" else []
    )


def test_every_agent_floor_has_a_public_mode() -> None:
    assert set(MODES) == set(AGENT)
    assert MODES["paused"] == "speaking"


def test_the_page_is_drawn_from_the_tables() -> None:
    """Run with UPDATE_PAGES=1 after changing a table."""
    if os.environ.get("UPDATE_PAGES"):
        PAGE.write_text(page())
    assert PAGE.read_text() == page(), "run this test once with UPDATE_PAGES=1"
