"""One turn of a call on its way into history: what the user said, or one answer of the model.

Values that the ledger (`history`) owns and orders. They collect words and sound as the provider
sends them; they write nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeGuard

from ..media.turns.heard import Heard, SegmentText
from .events import Words
from .playback import Played
from .session_events import AnswerHeard


@dataclass(slots=True)
class Writing:
    """How far an entry is on its way into the store. `tried`: a write of it was begun. `done`: it
    is there, or need not be. `words` of the user that are there; None: he is not."""

    tried: bool = False
    done: bool = False
    words: str | None = None


@dataclass(slots=True)
class UserEntry:
    """`start`, `end`: input samples of the session. `taken`: the provider has the whole turn.

    `closed`: no more words are awaited. `acted`: tools were called for it, so it must never be
    heard a second time. `since`: loop time at which it was taken, before that of its last words.
    """

    item_id: str
    message_id: str
    text: str = ""
    closed: bool = False
    taken: bool = False
    acted: bool = False
    start: int | None = None
    end: int | None = None
    since: float = 0.0
    writing: Writing = field(default_factory=Writing)

    @property
    def stored(self) -> bool:
        """Nothing of it is still to be written."""
        return self.writing.done

    def hear(self, words: Words) -> None:
        """Words of it came."""
        if self.closed and not words.final:
            return
        if not words.final:
            self.text += words.text
        elif words.text or not words.failed:
            self.text = words.text
        self.closed = self.closed or words.final

    @property
    def ready(self) -> bool:
        """Everything is known that will be."""
        return self.closed


@dataclass(slots=True)
class Hearing:
    """What was heard of an answer: `played` when its sound ended or was stopped, for good once
    `settled`; `told` is what history says of that, `reported` that the host knows.
    `partial`: it was stopped before all of it had come, so its length says nothing of its words."""

    played: Played | None = None
    settled: bool = False
    told: tuple[str, Played] | None = None
    reported: bool = False
    partial: bool = False


@dataclass(slots=True)
class AnswerEntry:
    """One item of the model. `kept` off: it is no history (text that was read aloud on command).

    `rate` in Hz of its sound, `samples` that came of it. `done`: no more of it comes.
    """

    item_id: str
    message_id: str
    rate: int
    kept: bool = True
    text: str = ""
    words_closed: bool = False
    samples: int = 0
    done: bool = False
    writing: Writing = field(default_factory=Writing)
    hearing: Hearing = field(default_factory=Hearing)

    @property
    def stored(self) -> bool:
        """It was written, or came to nothing."""
        return self.writing.done

    def hear(self, words: Words) -> None:
        """Words of it came. After a cut the model may still send what nobody hears: it is part of
        the text, as unheard."""
        if self.words_closed:
            return
        if not words.final:
            self.text += words.text
        elif words.text:
            self.text = words.text
        self.words_closed = words.final

    @property
    def ready(self) -> bool:
        """Everything is known that will be."""
        return self.done

    @property
    def cut(self) -> bool:
        """Its sound was stopped before its end."""
        played = self.hearing.played
        return played is not None and not played.complete

    def heard(self, played: Played) -> Heard:
        """The text up to what was played of the sound, in proportion."""
        if played.complete:
            return Heard(self.text, "", estimated=played.estimated)
        segment = SegmentText(self.rate)
        segment.add(self.text)
        segment.sound(self.samples)
        if self.done and (self.words_closed or not self.hearing.partial):
            segment.close()
        found = segment.heard(played.ms * self.rate // 1000)
        return Heard(found.text, found.unheard, estimated=True)


Entry = UserEntry | AnswerEntry


def untaken(entry: Entry) -> bool:
    """The user's, and not the provider's yet."""
    return isinstance(entry, UserEntry) and not entry.taken


def spoken(entry: Entry) -> TypeGuard[UserEntry]:
    """The user said it, as far as anybody can tell."""
    return isinstance(entry, UserEntry) and (entry.taken or bool(entry.text.strip()))


def told(entry: AnswerEntry, heard: Heard, *, interrupted: bool) -> AnswerHeard:
    """What a host is told of an answer of which this was heard."""
    return AnswerHeard(
        entry.item_id,
        entry.message_id,
        entry.text,
        heard.text,
        heard.unheard,
        interrupted,
        heard.estimated,
        entry.kept,
    )
