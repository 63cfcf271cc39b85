"""The catalogue: which servers an application supports, and which of them fit a need. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..errors import UsageError
from .port import McpCatalogueEntry, McpError

MOST_MATCHES = 10
SHORTEST_WORD = 3
"""Shorter words of a query ("an", "to") count only where it has no others."""
SHORTEST_STEM = 4
PHRASE_BONUS = 2.0

_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class Match:
    """An entry, and how well it fits: the more the better; 0 where nothing was asked for."""

    entry: McpCatalogueEntry
    score: float


class Catalogue(Mapping[str, McpCatalogueEntry]):
    """Entries by id. Raises UsageError when two ids differ only in case."""

    def __init__(self, entries: Sequence[McpCatalogueEntry]) -> None:
        self._entries = {entry.id: entry for entry in entries}
        if len({entry.id.lower() for entry in entries}) < len(entries):
            raise UsageError("entries: two ids are the same, case aside; give each its own")

    def __getitem__(self, entry_id: str) -> McpCatalogueEntry:
        return self._entries[entry_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def entry(self, entry_id: str) -> McpCatalogueEntry:
        """Raises McpError naming the ids that there are."""
        found = self._entries.get(entry_id)
        if found is None:
            known = ", ".join(self._entries) or "none"
            raise McpError(f"There is no capability {entry_id!r}. Ids: {known}.")
        return found

    def matches(self, query: str = "", tags: Sequence[str] = ()) -> list[Match]:
        """The best entries for a query that have all `tags`, at most MOST_MATCHES, best first.

        One point for each word of the query that occurs in name, description, id or tags, half
        for one that only begins alike, PHRASE_BONUS if all of it stands there in this order.
        """
        wanted = {tag.lower() for tag in tags}
        asked = _words(query)
        found: list[Match] = []
        for entry in self._entries.values():
            if not wanted <= {tag.lower() for tag in entry.tags}:
                continue
            score = _score(asked, entry)
            if score > 0 or not asked:
                found.append(Match(entry, score))
        return sorted(found, key=lambda match: -match.score)[:MOST_MATCHES]


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _score(asked: list[str], entry: McpCatalogueEntry) -> float:
    text = _words(" ".join([entry.id, entry.name, entry.description, *entry.tags]))
    counted = [word for word in asked if len(word) >= SHORTEST_WORD] or asked
    score = sum(_fit(word, text) for word in dict.fromkeys(counted))
    if len(asked) > 1 and f" {' '.join(asked)} " in f" {' '.join(text)} ":
        score += PHRASE_BONUS
    return score


def _fit(word: str, text: list[str]) -> float:
    if word in text:
        return 1.0
    stems = (one for one in text if min(len(one), len(word)) >= SHORTEST_STEM)
    return 0.5 if any(one.startswith(word) or word.startswith(one) for one in stems) else 0.0
