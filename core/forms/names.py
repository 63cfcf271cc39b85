"""Names as people and models write them: normalised look-up and suggestions.

Pure. A name is compared without case and punctuation, so `full_name`, `Full name` and `fullName`
are one; a definition whose names would then be the same is refused when it is built, so a look-up
never guesses.
"""

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches

_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_-]*\Z")
_SUGGESTIONS = 3
_CLOSENESS = 0.6


def normalised(name: str) -> str:
    """Letters and digits only, without case."""
    return "".join(char for char in name.casefold() if char.isalnum())


def is_identifier(name: str) -> bool:
    """Whether `name` may be an id: it becomes part of keys such as `instance:hook:occurrence`."""
    return _IDENTIFIER.match(name) is not None


class NameIndex:
    """Finds an id by its id or its label, however it is spelled. Immutable after construction."""

    def __init__(self, labels: Mapping[str, str]) -> None:
        """`labels` maps ids to labels. `collisions` tells what could not be told apart."""
        owners: dict[str, str] = {}
        collisions: list[tuple[str, str]] = []
        for identity, label in labels.items():
            for spelling in {normalised(identity), normalised(label)} - {""}:
                owner = owners.setdefault(spelling, identity)
                if owner != identity:
                    collisions.append((owner, identity))
        self._owners: Mapping[str, str] = owners
        self.collisions: tuple[tuple[str, str], ...] = tuple(collisions)

    def find(self, name: str) -> str | None:
        """The id, or None if the name is nobody's."""
        return self._owners.get(normalised(name))

    def suggestions(self, name: str) -> list[str]:
        """Ids whose spelling is near, the nearest first; may be empty."""
        wanted = normalised(name)
        near = get_close_matches(wanted, self._owners, n=2 * _SUGGESTIONS, cutoff=_CLOSENESS)
        within = [one for one in self._owners if wanted and (one in wanted or wanted in one)]
        return _unique(self._owners[one] for one in [*near, *within])[:_SUGGESTIONS]


def _unique(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
