"""GPT-Live's speech as utterances: where they begin and end, and which words belong to which.

The model sends one endless stream of sound, silence included, and fragments of a transcript with
times; nothing says where an answer ends. A gate on loudness finds that out. The stream is also the
session's clock: it grows only with what was sent. Owned by the codec; pure, times in milliseconds.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import numpy as np

from ..events import (
    LOST,
    Audio,
    Interrupted,
    ItemDone,
    RealtimeEvent,
    ResponseDone,
    ResponseStarted,
    ResponseStatus,
    Words,
)

WINDOW_MS = 20
OPENS, CLOSES = 0.0006, 0.0004
"""RMS of full scale from which sound is speech, and below which it is none any more."""
LEAD_MS = 100
"""What sounds before the gate opens and goes along."""
HANG_MS = 600
"""An utterance ends after so much silence."""
WORDS_WAIT_MS = 1_200
"""... or this much, where its words lag so far behind its sound that they are still to come."""
FRAME_MS = 200
"""Times of fragments are multiples of this: an onset may be up to so much inside."""
HUSH_MS = 400
"""After a cut: a silence that ends what was cut. Its words may come for as long."""
REQUEST_MS = 10_000
"""Speech that begins later than this after a request was taken does not answer it: nobody waits for
it any more (asks.BEGIN_S)."""


@dataclass(frozen=True, slots=True)
class Fragment:
    """A piece of a transcript."""

    text: str
    start_ms: int
    end_ms: int


@dataclass(slots=True)
class Utterance:
    """One stretch of speech. `loud_ms` is where it was last heard, `words_ms` where its words end,
    `cut_ms` where our side cut it."""

    number: int
    loud_ms: int
    quiet_ms: int = 0
    words_ms: int = 0
    said: list[Fragment] = field(default_factory=list)
    cut_ms: int | None = None

    @property
    def item_id(self) -> str:
        return f"speech_{self.number}"

    def say(self, fragment: Fragment) -> Words:
        """Words of this utterance."""
        words = fragment.text if self.said else fragment.text.lstrip()
        self.said.append(fragment)
        self.words_ms = max(self.words_ms, fragment.end_ms)
        return Words("assistant", self.item_id, words, False, fragment.start_ms, fragment.end_ms)

    def done(self, status: ResponseStatus, reason: str) -> list[RealtimeEvent]:
        """The end: all its words once more, then nothing."""
        events: list[RealtimeEvent] = []
        if self.said:
            text = "".join(fragment.text for fragment in self.said).strip()
            first = min(fragment.start_ms for fragment in self.said)
            events.append(Words("assistant", self.item_id, text, True, first, self.words_ms))
        response_id = f"utterance_{self.number}"
        return [*events, ItemDone(self.item_id), ResponseDone(response_id, status, reason)]


class AgentSpeech:
    """The model's stream of sound and of words, made utterances.

    Silence inside an utterance goes out as it comes: held back until more is said, every pause
    would sound twice as long. So up to HANG_MS of the silence behind an utterance goes out too.
    """

    def __init__(self, rate: int) -> None:
        self._window = rate * WINDOW_MS // 1000
        self._windows = 0
        self._rest = b""
        self._lead: deque[bytes] = deque(maxlen=LEAD_MS // WINDOW_MS)
        self._now: Utterance | None = None
        self._hushed_ms: int | None = None
        """Silence since the last sound of a stretch that was cut; None: nothing is cut."""
        self._deaf_ms = 0
        """Words that begin before this were cut."""
        self._pending: list[Fragment] = []
        self._count = 0
        self._requests: deque[tuple[str, int]] = deque(maxlen=32)

    @property
    def clock_ms(self) -> int:
        """How far the session has come."""
        return self._windows * WINDOW_MS

    def audio(self, pcm: bytes) -> list[RealtimeEvent]:
        """What the next sound of the stream brings; any length."""
        size = 2 * self._window
        sound = self._rest + pcm
        count = len(sound) // size
        self._rest = sound[count * size :]
        samples = np.frombuffer(sound, np.int16, count * self._window).reshape(count, self._window)
        levels = np.sqrt(np.mean(np.square(samples, dtype=np.float64), axis=1)) / 32_768
        events: list[RealtimeEvent] = []
        for at, level in enumerate(levels):
            events += self._hear(sound[at * size : (at + 1) * size], float(level))
            events += self._settle()
        return _joined(events)

    def words(self, fragment: Fragment) -> list[RealtimeEvent]:
        """A fragment came; it may have to wait for its sound."""
        self._pending.append(fragment)
        return self._settle()

    def asked(self, request_id: str) -> None:
        """The provider took a request to speak: the next utterance answers it."""
        self._requests.append((request_id, self.clock_ms))

    def cut(self) -> list[RealtimeEvent]:
        """Our side fell silent: nothing more of the utterance that runs, but the words of what was
        said before."""
        now = self._now
        if now is None:
            return [Interrupted()]
        if now.cut_ms is None:
            now.cut_ms, self._deaf_ms, self._hushed_ms = self.clock_ms, self.clock_ms, now.quiet_ms
        return [Interrupted(now.item_id)]

    def end(self) -> list[RealtimeEvent]:
        """The connection is over: words that waited are told, what runs is closed."""
        events: list[RealtimeEvent] = []
        pending, self._pending = self._pending, []
        kept = [each for each in pending if self._now is None or not self._is_cut(each)]
        if kept and self._now is None:
            events += self._begin()
        if self._now is not None:
            events += [self._now.say(each) for each in kept]
            events += self._close("cancelled", LOST)
        return events

    def _hear(self, pcm: bytes, level: float) -> list[RealtimeEvent]:
        """One window of sound."""
        self._windows += 1
        speaking = self._now is not None or self._hushed_ms is not None
        loud = level >= (CLOSES if speaking else OPENS)
        if self._hushed_ms is not None:
            return self._hush(loud)
        now, events = self._now, list[RealtimeEvent]()
        if now is not None and loud and now.quiet_ms >= HANG_MS:
            events += self._close("completed")
        if self._now is None:
            self._lead.append(pcm)
            if loud:
                events += self._begin()
                events.append(Audio(f"speech_{self._count}", b"".join(self._lead)))
                self._lead.clear()
            return events
        return events + self._go_on(self._now, pcm, loud)

    def _go_on(self, now: Utterance, pcm: bytes, loud: bool) -> list[RealtimeEvent]:
        now.quiet_ms = 0 if loud else now.quiet_ms + WINDOW_MS
        now.loud_ms = self.clock_ms if loud else now.loud_ms
        complete = bool(now.said) and now.words_ms >= now.loud_ms - HANG_MS
        if now.quiet_ms >= (HANG_MS if complete else WORDS_WAIT_MS):
            return self._close("completed")
        if now.quiet_ms < HANG_MS:
            return [Audio(now.item_id, pcm)]
        self._lead.append(pcm)
        return []

    def _hush(self, loud: bool) -> list[RealtimeEvent]:
        """Drop a window of what was cut; after a silence, listen again."""
        self._hushed_ms = 0 if loud else (self._hushed_ms or 0) + WINDOW_MS
        if loud:
            self._deaf_ms = self.clock_ms
        elif self._hushed_ms >= HUSH_MS:
            self._hushed_ms = None
        now = self._now
        if now is None or now.cut_ms is None:
            return []
        if self._hushed_ms is None or self.clock_ms >= now.cut_ms + HUSH_MS:
            return self._settle() + self._close("cancelled", "cut")
        return []

    def _settle(self) -> list[RealtimeEvent]:
        """Tell the words whose utterance is known now."""
        events: list[RealtimeEvent] = []
        waiting, self._pending = self._pending, []
        for fragment in waiting:
            if self._is_cut(fragment):
                continue
            if self._now is not None and self._belongs(fragment, self._now):
                events.append(self._now.say(fragment))
            elif self._now is None and self.clock_ms > fragment.end_ms + HANG_MS:
                events += [*self._begin(), *self._say_alone(fragment)]
            else:
                self._pending.append(fragment)
        return events

    def _belongs(self, fragment: Fragment, now: Utterance) -> bool:
        if now.cut_ms is not None:
            return fragment.start_ms < now.cut_ms
        return fragment.start_ms <= now.loud_ms + FRAME_MS

    def _is_cut(self, fragment: Fragment) -> bool:
        """Whether it is of a stretch that was cut: then it is told to nobody."""
        if self._now is not None and self._now.cut_ms is not None:
            return self._now.cut_ms <= fragment.start_ms < self._deaf_ms
        return fragment.start_ms < self._deaf_ms

    def _say_alone(self, fragment: Fragment) -> list[RealtimeEvent]:
        """Words without sound, or too late for theirs: an utterance of their own."""
        assert self._now is not None
        return [self._now.say(fragment), *self._close("completed")]

    def _begin(self) -> list[RealtimeEvent]:
        self._count += 1
        self._now = Utterance(self._count, self.clock_ms)
        request_id = ""
        while self._requests and not request_id:
            oldest, at_ms = self._requests.popleft()
            request_id = oldest if self.clock_ms - at_ms <= REQUEST_MS else ""
        return [ResponseStarted(f"utterance_{self._count}", request_id)]

    def _close(self, status: ResponseStatus, reason: str = "") -> list[RealtimeEvent]:
        assert self._now is not None
        now, self._now = self._now, None
        return now.done(status, reason)


def _joined(events: list[RealtimeEvent]) -> list[RealtimeEvent]:
    """Neighbouring sound of one item as one event."""
    joined: list[RealtimeEvent] = []
    for event in events:
        last = joined[-1] if joined else None
        if isinstance(event, Audio) and isinstance(last, Audio) and last.item_id == event.item_id:
            joined[-1] = Audio(event.item_id, last.pcm + event.pcm)
        else:
            joined.append(event)
    return joined
