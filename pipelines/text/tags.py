"""`<speech>` tags in a token stream: only what stands inside them is spoken.

One `SpeechTagParser` per reply, owned by the reply task; pure. It holds back whatever may still
become a tag, so no part of a tag is ever spoken however the tokens fall. It never drops text
silently: `raw` keeps everything and `stats` count what was not spoken. Spec/voice 6 and 17.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

TAG = "speech"

_TAG = re.compile(rf"<\s*(/?)\s*{TAG}(?:\s[^<>]*)?/?>", re.IGNORECASE)
_MAX_TAG_CHARS = 80
_SPACES = re.compile(r"\s+")
_CALL_MARKERS = re.compile(r"[{}]|<\s*/?\s*(?:tool|function|invoke|parameter)|<\|", re.IGNORECASE)
_WRAPPERS = ("assistant", "reply", "response", "answer", "say")


@dataclass(frozen=True, slots=True)
class SpeechStats:
    """What became of the text: characters spoken and discarded (tags are neither), blocks opened,
    and whether the text ended inside one."""

    spoken_chars: int = 0
    discarded_chars: int = 0
    blocks: int = 0
    unclosed: bool = False


@dataclass(frozen=True, slots=True)
class FinishedSpeech:
    """End of a reply: `tail` is still to be spoken, `text` is all that was, spaces collapsed."""

    tail: str
    text: str
    stats: SpeechStats


class SpeechTagParser:
    """Feed `push` with tokens and speak what it returns; `finish` when the reply is complete."""

    def __init__(self) -> None:
        self._raw: list[str] = []
        self._held = ""
        self._spoken: list[str] = []
        self._inside = False
        self._discarded = 0
        self._blocks = 0

    @property
    def raw(self) -> str:
        """Everything that was pushed."""
        return "".join(self._raw)

    @property
    def inside(self) -> bool:
        """Whether a block is open."""
        return self._inside

    def push(self, token: str) -> str:
        """Add text; what of it may be spoken now, without tags and stray angle brackets."""
        self._raw.append(token)
        self._held += token
        return self._release(self._safe_end())

    def finish(self) -> FinishedSpeech:
        """No more text. An open block is spoken up to a tag that never became whole."""
        cut = _partial_tag(self._held)
        unclosed = self._inside
        tail = self._release(len(self._held) if cut is None else cut)
        if not self._inside:
            self._discarded += len(self._held)
        self._held = ""
        text = "".join(self._spoken)
        stats = SpeechStats(len(text), self._discarded, self._blocks, unclosed and self._inside)
        return FinishedSpeech(tail, _SPACES.sub(" ", text).strip(), stats)

    def _safe_end(self) -> int:
        cut = _partial_tag(self._held)
        return len(self._held) if cut is None else cut

    def _release(self, end: int) -> str:
        """Take `end` held characters through the tags in them; what is to be spoken of them."""
        out: list[str] = []
        index = 0
        for match in _TAG.finditer(self._held, 0, end):
            out.append(self._route(self._held[index : match.start()]))
            self._cross(closing=bool(match.group(1)))
            index = match.end()
        out.append(self._route(self._held[index:end]))
        self._held = self._held[end:]
        return "".join(out)

    def _route(self, text: str) -> str:
        if not self._inside:
            self._discarded += len(text)
            return ""
        clean = text.replace("<", "").replace(">", "")
        self._spoken.append(clean)
        return clean

    def _cross(self, *, closing: bool) -> None:
        """A nested opening tag is stripped; a stray closing one changes nothing."""
        if closing:
            self._inside = False
        elif not self._inside:
            self._inside = True
            self._blocks += 1
            if self._spoken and not self._spoken[-1][-1:].isspace():
                self._spoken.append(" ")


def _partial_tag(text: str) -> int | None:
    """Where a suffix begins that may still become a speech tag; None if none does."""
    start = text.rfind("<")
    if start < 0 or len(text) - start > _MAX_TAG_CHARS or ">" in text[start:]:
        return None
    body = text[start + 1 :].lstrip().lower()
    body = body[1:].lstrip() if body.startswith("/") else body
    if len(body) <= len(TAG):
        return start if TAG.startswith(body) else None
    follows = body[len(TAG)]
    return start if body.startswith(TAG) and (follows.isspace() or follows == "/") else None


def salvage_wrapped_speech(raw: str, participants: Iterable[str] = ()) -> str | None:
    """Speech in a tag named after a participant or an answer, from a reply without speech tags.

    None when there is no such tag, or when its text holds braces or marks of a tool call: that is
    machinery, not speech.
    """
    names = "|".join(re.escape(name) for name in (*_WRAPPERS, *participants) if name)
    match = re.search(rf"<\s*({names})\s*>(.*?)(?:</\s*\1\s*>|$)", raw, re.IGNORECASE | re.DOTALL)
    if match is None or _CALL_MARKERS.search(match.group(2)):
        return None
    text = _SPACES.sub(" ", match.group(2).replace("<", "").replace(">", "")).strip()
    return text or None
