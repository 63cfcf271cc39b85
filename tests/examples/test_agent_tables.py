"""The tables of docs/agent.md say what the code does, and the docs name what the core exports."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import get_args

import pytest

import voxglove.core as core
from tests.examples.page import FENCE, ROOT, code, headings, rows, section, text
from voxglove.adapters.models.create import get_available_providers
from voxglove.core.context import Delivery
from voxglove.core.display import DisplayStrategy
from voxglove.core.events import Attributed, SubscriberEvent
from voxglove.core.external import ReceiptStatus
from voxglove.core.mesh import DeliveryMode
from voxglove.core.permissions import PermissionPolicy
from voxglove.core.requests import StopKind

EVENTS = SubscriberEvent.__args__
PLUMBING: dict[str, str] = {}
"""Exported names that no page explains, and why nobody needs them explained."""


def described() -> dict[str, list[str]]:
    return {code(row[0])[0]: row for row in rows("Subscribers and their events")}


def test_every_event_has_one_row_and_no_other_is_told_of() -> None:
    assert list(described()) == [event.wire for event in EVENTS]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: str(event.wire))
def test_a_row_has_the_class_and_its_fields(event: type[Attributed]) -> None:
    _, name, told, when = described()[event.wire]
    common = {field.name for field in fields(Attributed)}
    assert code(name) == [event.__name__]
    assert code(told) == [field.name for field in fields(event) if field.name not in common]
    assert when


def test_every_provider_is_named_with_its_model_and_key() -> None:
    told = {name: row for row in rows("Models") for name in code(row[0])}
    for provider in get_available_providers({}):
        _, model, key, _ = told.pop(provider.name)
        assert code(model) == ([provider.default_model] if provider.default_model else [])
        assert code(key)[:1] == ([provider.key_variable] if provider.key_variable else [])
    assert list(told) == ["RemoteModel(url)"]


@pytest.mark.parametrize(
    ("heading", "words"),
    [
        ("The shortest agent", StopKind),
        ("Permissions", PermissionPolicy.__args__[0]),
        ("Display", DisplayStrategy),
        ("What the model is told", Delivery),
        ("Events and wakes", ReceiptStatus),
        ("Goals, forms, mesh", DeliveryMode),
    ],
)
def test_a_section_names_every_word_of_its_vocabulary(heading: str, words: object) -> None:
    told = set(re.findall(r"[\w-]+", " ".join(code(section(heading)))))
    assert set(get_args(words)) <= told


def test_every_public_name_of_the_core_is_explained() -> None:
    words: set[str] = set()
    for page in (ROOT / "docs").glob("*.md"):
        fenced = [match[2] for match in FENCE.finditer(page.read_text())]
        plain = FENCE.sub("", page.read_text())
        words.update(re.findall(r"\w+", " ".join([*fenced, *code(plain)])))
    missing = set(core.__all__) - words
    assert missing == PLUMBING.keys(), "write of it in docs/agent.md, or say in PLUMBING why not"


def test_links_inside_the_page_lead_somewhere() -> None:
    anchors = {re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in headings()}
    assert set(re.findall(r"\]\(#([^)]+)\)", text())) <= anchors


def test_every_heading_is_in_the_contents() -> None:
    contents = " ".join(text().split("## The shortest agent", 1)[0].split())
    for heading in headings()[1:]:
        assert heading.split(",")[0] in contents, heading
