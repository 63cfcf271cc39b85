"""docs/agent.md under test: its blocks by heading, run as they stand, and its tables' rows."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from voxglove.adapters.models.scripted import ScriptedModel, Step

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "agent.md"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Block:
    """A python block: the heading it stands under, and which one there."""

    heading: str
    number: int
    source: str
    line: int

    @property
    def name(self) -> str:
        return f"{self.heading} {self.number}"


@cache
def text() -> str:
    return PAGE.read_text()


def headings() -> list[str]:
    """Every heading, without those that stand inside a block."""
    return HEADING.findall(FENCE.sub("", text()))


def blocks() -> list[Block]:
    """In the order of the page; whatever else is fenced is no python and a mistake."""
    found: list[Block] = []
    for match in FENCE.finditer(text()):
        assert match[1] == "python", f"a block of {match[1] or 'no language'}"
        before = FENCE.sub("", text()[: match.start()])
        heading = HEADING.findall(before)[-1]
        number = 1 + sum(block.heading == heading for block in found)
        line = text().count("\n", 0, match.start()) + 1
        found.append(Block(heading, number, match[2], line))
    return found


def section(heading: str) -> str:
    """What stands under a heading, up to the next one, without its blocks."""
    return FENCE.sub("", text()).split(f"# {heading}\n", 1)[1].split("\n#", 1)[0]


def rows(heading: str) -> Iterator[list[str]]:
    """The cells of a section's tables, heads and rulers left out."""
    lines = section(heading).splitlines()
    for at, line in enumerate(lines):
        if not line.startswith("|") or set(line) <= set("|-: "):
            continue
        if at + 1 < len(lines) and set(lines[at + 1]) <= set("|-: ") and lines[at + 1]:
            continue
        yield [cell.strip() for cell in line.strip("|").split(" | ")]


def code(cell: str) -> list[str]:
    """What stands in back-ticks."""
    return re.findall(r"`([^`]+)`", cell)


def scripted(*steps: Step | str) -> ScriptedModel:
    return ScriptedModel(steps)


async def run(block: Block, **names: Any) -> dict[str, Any]:
    """Run a block as the body of a coroutine and return its names."""
    space: dict[str, Any] = {"__name__": "page", **names}
    source = "\n" * block.line + block.source
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    outcome = eval(compile(source, str(PAGE), "exec", flags, dont_inherit=True), space)
    if inspect.isawaitable(outcome):
        await outcome
    return space
