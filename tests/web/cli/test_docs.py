"""The reference pages and the README say what the code does."""

from __future__ import annotations

import re

import pytest

from tests.support.timeline_schema import SHAPES
from tests.web.cli.program import ROOT
from voxglove.adapters.transports.websocket_messages import OPTIONAL, REQUIRED
from voxglove.web.cli.program import program
from voxglove.web.config import Config
from voxglove.web.config_report import report

README = (ROOT / "README.md").read_text()


def rows(page: str, heading: str) -> list[list[str]]:
    """Cells of the table rows under a heading of a page in docs/, header left out."""
    text = (ROOT / "docs" / page).read_text()
    section = text.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in section.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def named(cell: str) -> set[str]:
    return set(re.findall(r"`(\w+)`", cell))


def test_the_timeline_page_has_every_type_with_its_fields() -> None:
    found: dict[str, set[str]] = {}
    kind = ""
    for name, fields, _ in rows("events.md", "The timeline"):
        kind = name.strip("`") or kind
        found[kind] = found.get(kind, set()) | named(fields)
    assert found == {kind: {*shape.must, *shape.may} for kind, shape in SHAPES.items()}


def test_the_protocol_page_has_every_client_message_with_its_fields() -> None:
    found: dict[str, set[str]] = {}
    for kinds, fields, _ in rows("protocol.md", "Messages from the client"):
        cells = fields.split("/") if "/" in fields else [fields]
        for kind, cell in zip(re.findall(r"`(\w+)`", kinds), cells, strict=True):
            found[kind] = named(cell)
    known = {kind: set(needed) | set(OPTIONAL.get(kind, {})) for kind, needed in REQUIRED.items()}
    known["say"] -= {"speaker"}  # accepted, without a meaning on this line
    assert found == known


def test_the_readme_shows_the_example_as_it_is() -> None:
    source = (ROOT / "examples" / "own_agent.py").read_text()
    body = source.split('"""', 2)[2].strip("\n")
    assert f"```python\n{body}\n```" in README
    for example in (ROOT / "examples").glob("*_agent.py"):
        assert len(example.read_text().splitlines()) < 30, example.name


def test_keys_in_the_readmes_table_exist() -> None:
    keys = {line.key for line in report(Config(), {}).lines}
    sections = {key.split(".")[0] for key in keys} | {"server.tls"}
    for row in re.findall(r"^\| (`[^|]*) \|", README.split("## Configuration")[1], re.MULTILINE):
        for key in re.findall(r"`([\w.]+)`", row):
            assert key in keys | sections or f"models{key}" in keys, key


@pytest.mark.parametrize("code", ["0 completed", "1 call failed", "2 usage", "3 model", "130 int"])
def test_the_readme_names_the_exit_codes(code: str) -> None:
    assert code in README


def test_the_readme_uses_commands_that_exist() -> None:
    names = {c.callback.__name__ for c in program().registered_commands if c.callback} | {"config"}
    assert set(re.findall(r"^voxglove (\w+)", README, re.MULTILINE)) <= names
