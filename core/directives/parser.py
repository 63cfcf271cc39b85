"""Directives in a user's words: `/name` tokens that name a hook or a skill (spec core 13.1).

Pure. A directive stands at the start or after white space and ends at white space or the end, so
paths and fractions are left alone. `@name` is never looked at.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

TOKEN = re.compile(r"(?<!\S)/([A-Za-z][\w-]*)(?!\S)")
Kind = Literal["hook", "skill"]


@dataclass(frozen=True, slots=True)
class Directive:
    """One bound token, in document order."""

    kind: Kind
    name: str


@dataclass(frozen=True, slots=True)
class Parsed:
    """The text with each bound token replaced by a placeholder, which never binds again."""

    text: str
    directives: tuple[Directive, ...]


def parse(text: str, hooks: Collection[str], skills: Collection[str]) -> Parsed:
    """Bind tokens, hooks first, then skills; anything else stays as the user wrote it."""
    found: list[Directive] = []

    def bind(match: re.Match[str]) -> str:
        name = match[1]
        kind: Kind
        if name in hooks:
            kind = "hook"
        elif name in skills:
            kind = "skill"
        else:
            return match[0]
        found.append(Directive(kind, name))
        return f"[invoked_extension__{kind}_{name}]"

    return Parsed(TOKEN.sub(bind, text), tuple(found))
