"""Which servers fit a need."""

from __future__ import annotations

import pytest

from tests.core.mcp.servers_rig import entry
from voxglove.core.errors import UsageError
from voxglove.core.mcp import McpError
from voxglove.core.mcp.catalogue import MOST_MATCHES, Catalogue

CATALOGUE = Catalogue(
    [
        entry("gmail", "Read and send e-mail", "mail", "google"),
        entry("calendar", "Plan meetings and read a shared calendar", "google", "time"),
        entry("notion", "Search pages and write meeting notes", "documents"),
        entry("big-query", "Ask a data warehouse", "google", "data"),
    ]
)


@pytest.mark.parametrize(
    ("query", "tags", "found"),
    [
        ("", (), ["gmail", "calendar", "notion", "big-query"]),
        ("", ("google",), ["gmail", "calendar", "big-query"]),
        ("", ("GOOGLE", "time"), ["calendar"]),
        ("meeting notes", (), ["notion", "calendar"]),
        ("send an e-mail", (), ["gmail"]),
        ("MAIL", (), ["gmail"]),
        ("big-query", (), ["big-query"]),
        ("a shared calendar", (), ["calendar"]),
        ("weather", (), []),
        ("mail", ("time",), []),
        ("a", (), ["calendar", "big-query"]),
    ],
)
def test_matches(query: str, tags: tuple[str, ...], found: list[str]) -> None:
    assert [match.entry.id for match in CATALOGUE.matches(query, tags)] == found


def test_a_phrase_counts_more_than_its_words() -> None:
    words, phrase = Catalogue(
        [entry("one", "notes of a meeting"), entry("two", "meeting notes")]
    ).matches("meeting notes")[::-1]
    assert (words.entry.id, phrase.entry.id) == ("one", "two")
    assert phrase.score > words.score == 2.0


def test_no_more_than_ten() -> None:
    many = Catalogue([entry(f"mail{at}") for at in range(30)])
    assert len(many.matches("does")) == MOST_MATCHES
    assert len(many) == 30


def test_an_unknown_id_is_answered_with_the_known_ones() -> None:
    with pytest.raises(McpError, match="gmail, calendar"):
        CATALOGUE.entry("gmall")
    with pytest.raises(UsageError, match="entries"):
        Catalogue([entry("a"), entry("A")])
