"""Names and ids as a vendor's wire takes them, and the way back.

Ours may be anything (an MCP server's `files/read`, another vendor's `functions.look:0`); wires
bound their letters and length. A wire's word depends on our word alone, so that history stays the
same prefix in every request. Pure; owned by one request.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256

DIGEST_CHARS = 8


@dataclass(frozen=True, slots=True)
class WordRule:
    """What a wire takes: letters as the inside of a regular expression's `[...]`.

    letters  allowed anywhere
    first    allowed at the beginning
    longest  characters of the whole word
    """

    letters: str
    first: str
    longest: int

    def takes(self, word: str) -> bool:
        """Whether the wire takes `word` as it is."""
        pattern = rf"[{self.first}][{self.letters}]{{0,{self.longest - 1}}}"
        return re.fullmatch(pattern, word) is not None

    def wire(self, word: str) -> str:
        """`word` if the wire takes it, else a readable one with a digest that keeps it unique."""
        if self.takes(word):
            return word
        digest = sha256(word.encode(errors="surrogatepass")).hexdigest()[:DIGEST_CHARS]
        readable = re.sub(rf"[^{self.letters}]+", "_", word)[: self.longest - DIGEST_CHARS - 1]
        readable = f"{readable}_{digest}"
        if self.takes(readable):
            return readable
        return f"_{readable}"[: self.longest - DIGEST_CHARS - 1] + f"_{digest}"


class WireNames:
    """The tools a request shows, by the names its wire takes."""

    def __init__(self, rule: WordRule, names: Iterable[str]) -> None:
        self._rule = rule
        self._ours = {rule.wire(name): name for name in names}

    def wire(self, name: str) -> str:
        """The wire's name, also of a tool that this request does not show any more."""
        return self._rule.wire(name)

    def ours(self, name: str) -> str:
        """Our name; a name nobody was shown stays what it is."""
        return self._ours.get(name, name)
