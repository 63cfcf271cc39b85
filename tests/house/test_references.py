"""Whoever has only the repository can look up what a docstring cites: docs/references.md."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "references.md"
PARTS = ("core", "media", "adapters", "pipelines", "realtime", "web", "tests", "bench", "examples")

HEADINGS = {
    "DESIGN": "design",
    "Invariants": "invariant",
    "CONTRACTS": "contract",
    "Chapters of spec/voice": "voice chapter",
    "Voice rows": "voice row",
    "Chapters of spec core": "core chapter",
    "Core rows": "core row",
    "Core faults": "core fault",
    "Field faults": "field fault",
    "Weaknesses": "weakness",
    "Measurements": "measurement",
}

NUMBERS = r"(\d+(?:\s*(?:,| and |-|–|\.\.)\s*\d+)*)"
CITATIONS = (
    (re.compile(r"DESIGN(?:'s)? (?:section )?(\d+)(?!\.?\d)"), "design"),
    (re.compile(r"DESIGN 5\.(\d+)"), "invariant"),
    (re.compile(rf"[Ii]nvariants? {NUMBERS}"), "invariant"),
    (re.compile(r"CONTRACTS ([A-Z])\b"), "contract"),
    (re.compile(rf"[Ss]pec/voice {NUMBERS}"), "voice chapter"),
    (re.compile(rf"[Ss]pec core {NUMBERS}"), "core chapter"),
    (re.compile(rf"(?:test_)field_(?:fault_)?(\d+)|[Ff]ield[- ]faults? {NUMBERS}"), "field fault"),
    (re.compile(r"test_fault_(\d+)"), "core fault"),
    (re.compile(r"test_voice_row_(\d+)"), "voice row"),
    (re.compile(r"test_core_row_(\d+)"), "core row"),
    (re.compile(rf"\b(?:voice )rows? {NUMBERS}"), "voice row"),
    (re.compile(rf"\bcore rows? {NUMBERS}"), "core row"),
    (re.compile(rf"(?<!voice )(?<!core )\brows? {NUMBERS}"), "row"),
    (re.compile(r"\bW-(\d+)"), "weakness"),
    (re.compile(r"findings/((?:local-speech|spine-checks|transports) \w+)"), "measurement"),
)

Citation = tuple[str, str]
"""(kind, number)."""


def entries() -> set[Citation]:
    """What the page explains."""
    found: set[Citation] = set()
    kind = ""
    for line in PAGE.read_text().splitlines():
        if line.startswith("## "):
            kind = HEADINGS.get(line.removeprefix("## "), "")
        elif kind and (cell := re.match(r"\| ([\w -]*\w) \| \S", line)):
            found.add((kind, cell[1]))
    return found


def citations(text: str, *, core: bool) -> Iterator[Citation]:
    """What a text cites. A bare "row 7" is of the part that it stands in."""
    plain = re.sub(r"\n\s*(?:# ?)?", " ", text)
    for pattern, kind in CITATIONS:
        named = ("core row" if core else "voice row") if kind == "row" else kind
        for match in pattern.finditer(plain):
            yield from ((named, number) for number in _each(next(filter(None, match.groups()))))


def _each(numbers: str) -> Iterator[str]:
    for piece in re.split(r"\s*(?:,| and )\s*", numbers):
        ends = re.split(r"\s*(?:-|–|\.\.)\s*", piece)
        if len(ends) == 2 and all(end.isdigit() for end in ends):
            yield from (str(number) for number in range(int(ends[0]), int(ends[1]) + 1))
        else:
            yield piece.lstrip("0") if piece.isdigit() else piece


def cited() -> dict[Citation, Path]:
    """Every citation of the repository, and one place where it stands."""
    found: dict[Citation, Path] = {}
    files = [path for part in PARTS for path in (ROOT / part).rglob("*.py")]
    for path in [*files, *(ROOT / "docs").rglob("*.md")]:
        if path in (PAGE, Path(__file__)) or path.name == "test_rows.py":
            continue
        inside = path.relative_to(ROOT).parts
        core = inside[0] == "core" or inside[:2] == ("tests", "core")
        found |= {each: path for each in citations(path.read_text(), core=core)}
    return found


def test_every_citation_has_an_entry() -> None:
    missing = {f"{kind} {number}": str(at) for (kind, number), at in cited().items()}
    for kind, number in entries():
        missing.pop(f"{kind} {number}", None)
    assert not missing, "explain these in docs/references.md"


def test_the_lists_are_whole() -> None:
    known = entries()
    for kind, last in (("voice row", 98), ("core row", 94), ("invariant", 12), ("core fault", 28)):
        missing = [n for n in range(1, last + 1) if (kind, str(n)) not in known]
        assert not missing, (kind, missing)


@pytest.mark.parametrize(
    ("text", "core", "wanted"),
    [
        ("see DESIGN 5.6 and DESIGN\n    4.", False, {("invariant", "6"), ("design", "4")}),
        ("# (spec core 7,\n# row 9)", True, {("core chapter", "7"), ("core row", "9")}),
        ("rows 22-24, 31", False, {("voice row", n) for n in ("22", "23", "24", "31")}),
        ("field faults 9, 35", False, {("field fault", "9"), ("field fault", "35")}),
        ("def test_field_083_the_cap", False, {("field fault", "83")}),
        ("findings/local-speech 5", False, {("measurement", "local-speech 5")}),
    ],
)
def test_a_citation_is_read(text: str, core: bool, wanted: set[Citation]) -> None:
    assert set(citations(text, core=core)) == wanted
