"""A page of docs/ under test: its blocks by heading, run as they stand, and its tables' rows."""

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
    """A block: the heading it stands under, and which one there."""

    heading: str
    number: int
    source: str
    line: int
    page: Path = PAGE

    @property
    def name(self) -> str:
        return f"{self.heading} {self.number}"


@cache
def text(page: Path = PAGE) -> str:
    return page.read_text()


def headings() -> list[str]:
    """Every heading, without those that stand inside a block."""
    return HEADING.findall(FENCE.sub("", text()))


def blocks(page: Path = PAGE, language: str = "python", *others: str) -> list[Block]:
    """Those of one language, in the order of the page; what is fenced and in none of the `others`
    is a mistake."""
    found: list[Block] = []
    for match in FENCE.finditer(text(page)):
        assert match[1] in (language, *others), f"a block of {match[1] or 'no language'}"
        if match[1] != language:
            continue
        before = FENCE.sub("", text(page)[: match.start()])
        heading = HEADING.findall(before)[-1]
        number = 1 + sum(block.heading == heading for block in found)
        line = text(page).count("\n", 0, match.start()) + 1
        found.append(Block(heading, number, match[2], line, page))
    return found


def section(heading: str, page: Path = PAGE) -> str:
    """What stands under a heading, up to the next one, without its blocks."""
    return FENCE.sub("", text(page)).split(f"# {heading}\n", 1)[1].split("\n#", 1)[0]


def rows(heading: str, page: Path = PAGE) -> Iterator[list[str]]:
    """The cells of a section's tables, heads and rulers left out."""
    lines = section(heading, page).splitlines()
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
    outcome = eval(compile(source, str(block.page), "exec", flags, dont_inherit=True), space)
    if inspect.isawaitable(outcome):
        await outcome
    return space
