"""A recogniser that knows what is said: text by audio span, for tests and keyless demonstrations.

Owned by one call. It reports only words whose audio it was really given, so a gate that cuts a
word, or a pipeline that feeds the wrong turn, shows up as wrong text. Answers come from
`loop.call_later`, never inside the call that asked for them, so no event re-enters its asker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import pairwise

from ...media.errors import MediaValueError
from ...media.format import PIPELINE
from ...media.frame import AudioFrame
from ..errors import ConnectionFailed
from .port import Closed, Final, Partial, Problem, SttEvent, SttSink

HEARD_SHARE = 0.5
"""A word counts as heard when at least this share of its samples was received."""

_INSTANT_S = 1e-6
"""Timers this close belong to one instant: a loop may run them together."""


@dataclass(frozen=True, slots=True)
class Word:
    """One word at input samples [start, end)."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Spoken:
    """`text`, said in samples [start, end) of the call.

    Without `words` its words are spread over the span by their length. Raises MediaValueError
    for an empty span or text.
    """

    start: int
    end: int
    text: str
    words: tuple[Word, ...] = ()

    def __post_init__(self) -> None:
        if self.end <= self.start:
            raise MediaValueError("end", f"{self.end} after {self.start}", "give a span")
        if not self.text.split():
            raise MediaValueError("text", repr(self.text), "give at least one word")

    def timed(self) -> tuple[Word, ...]:
        """The words with their places."""
        if self.words:
            return self.words
        texts = self.text.split()
        total = sum(len(text) for text in texts)
        edges, done = [self.start], 0
        for text in texts:
            done += len(text)
            edges.append(self.start + (self.end - self.start) * done // total)
        spans = pairwise(edges)
        return tuple(Word(text, *span) for text, span in zip(texts, spans, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class SttFaults:
    """What goes wrong. Finals are counted from 0 in the order in which they were due.

    `problems` come, and `closed_at` ends the recogniser, when audio at that sample is received.
    """

    failing_connects: int = 0
    problems: Sequence[tuple[int, Problem]] = ()
    closed_at: int | None = None
    blank_finals: AbstractSet[int] = frozenset()
    lost_finals: AbstractSet[int] = frozenset()
    double_finals: AbstractSet[int] = frozenset()
    late_finals_ms: Mapping[int, float] = field(default_factory=dict)
    final_texts: Mapping[int, str] = field(default_factory=dict)


class ScriptedStt:
    """A SpeechToText over `script`, in the order of its spans.

    `continuous`: partials come unasked after each word, and a final `segment_ms` of audio after
    an item's end. Otherwise it answers `flush` and `ask` from everything unsettled. Both take
    `final_ms` and `partial_ms` of loop time.
    """

    def __init__(
        self,
        script: Sequence[Spoken] = (),
        *,
        continuous: bool = False,
        final_ms: float = 0,
        partial_ms: float = 0,
        segment_ms: float = 300,
        faults: SttFaults | None = None,
    ) -> None:
        self._words = [word for item in script for word in item.timed()]
        self._continuous = continuous
        self._delay_s = {Final: final_ms / 1000, Partial: partial_ms / 1000}
        self._segments = _Segments(script, PIPELINE.samples(segment_ms))
        self._faults = faults or SttFaults()
        self._ear = _Ear()
        self._answers = _Answers()
        self._finals = 0
        self._connects = 0
        self.reported: list[SttEvent] = []
        """Every event given to the sink, in order."""

    @property
    def name(self) -> str:
        return "scripted"

    @property
    def continuous(self) -> bool:
        return self._continuous

    async def connect(self, sink: SttSink) -> None:
        """Fails the first `failing_connects` times."""
        self._connects += 1
        if self._connects <= self._faults.failing_connects:
            raise ConnectionFailed("ERR_STT_CONNECTION", "the scripted recogniser is unreachable")
        self._answers.open(sink, self.reported)

    def send_audio(self, frame: AudioFrame) -> None:
        """Remember which samples came; a continuous recogniser reports what they contain."""
        if not self._answers.is_open:
            return
        before = self._ear.end
        self._ear.take(frame.at, frame.end)
        self._misbehave(before, frame.end)
        if self._continuous:
            self._report_words(before, frame.end)

    def flush(self, end: int) -> None:
        """One Final for the unsettled words before `end`; a waiting `ask` is dropped."""
        self._answers.drop_partials()
        self._final(self._text(end), self._ear.first(end), end)
        if self._continuous:
            self._ear.settle(end)

    def ask(self, end: int) -> None:
        """One Partial for the unsettled words before `end`; the newest ask wins."""
        self._answers.drop_partials()
        event = Partial(self._text(end), self._ear.first(end), end)
        self._answers.later(self._delay_s[Partial], event)

    def speculate(self, end: int | None) -> None:
        """Nothing to make ready: the script is known."""

    def settle(self, end: int) -> None:
        self._ear.settle(end)

    async def aclose(self) -> None:
        self._answers.close()

    def unreported(self) -> list[str]:
        """Words of the script that were in no final's span: what the call never recognised."""
        spans = [(event.start, event.end) for event in self.reported if isinstance(event, Final)]
        return [
            word.text
            for word in self._words
            if not any(start <= _middle(word) < end for start, end in spans)
        ]

    def _text(self, end: int) -> str:
        heard = (word for word in self._words if _middle(word) < end and self._ear.has(word))
        return " ".join(word.text for word in heard)

    def _final(self, text: str, start: int, end: int) -> None:
        number, faults = self._finals, self._faults
        self._finals += 1
        text = "" if number in faults.blank_finals else faults.final_texts.get(number, text)
        delay = self._delay_s[Final] + faults.late_finals_ms.get(number, 0) / 1000
        copies = 0 if number in faults.lost_finals else 1 + (number in faults.double_finals)
        for _ in range(copies):
            self._answers.later(delay, Final(text, start, end))

    def _misbehave(self, before: int, until: int) -> None:
        for at, problem in self._faults.problems:
            if before <= at < until:
                self._answers.later(0, problem)
        closed_at = self._faults.closed_at
        if closed_at is not None and before <= closed_at < until:
            self._answers.last(Closed("the script closed the recogniser"))

    def _report_words(self, before: int, until: int) -> None:
        item = self._segments.with_word_ending(before, until)
        if item is not None:
            text = self._text(until)
            if text:
                event = Partial(text, item.start, min(until, item.end))
                self._answers.later(self._delay_s[Partial], event)
        for item in self._segments.ended(until):
            text = self._text(item.end)
            self._ear.settle(item.end)
            if text:
                self._final(text, item.start, item.end)


class _Segments:
    """The items of a script as a self-segmenting recogniser ends them."""

    def __init__(self, script: Sequence[Spoken], tail: int) -> None:
        self._open = list(script)
        self._tail = tail

    def with_word_ending(self, before: int, until: int) -> Spoken | None:
        """The item one of whose words ends in (before, until]."""
        for item in self._open:
            if any(before < word.end <= until for word in item.timed()):
                return item
        return None

    def ended(self, until: int) -> list[Spoken]:
        """Items whose end lies a segment's silence back; each is given once."""
        done = [item for item in self._open if item.end + self._tail <= until]
        self._open = [item for item in self._open if item.end + self._tail > until]
        return done


class _Ear:
    """Which samples were received, as merged spans."""

    def __init__(self) -> None:
        self._spans: list[tuple[int, int]] = []
        self._settled = 0
        self.end = 0

    def take(self, start: int, end: int) -> None:
        if self._spans and self._spans[-1][1] == start:
            start = self._spans.pop()[0]
        self._spans.append((start, end))
        self.end = max(self.end, end)

    def settle(self, end: int) -> None:
        self._settled = max(self._settled, end)
        self._spans = [span for span in self._spans if span[1] > self._settled]

    def first(self, end: int) -> int:
        """First unsettled sample received before `end`; `end` when there is none."""
        starts = [max(start, self._settled) for start, _ in self._spans]
        return min([*starts, end])

    def has(self, word: Word) -> bool:
        """Whether enough of an unsettled word was received."""
        if _middle(word) < self._settled:
            return False
        got = sum(max(0, min(end, word.end) - max(start, word.start)) for start, end in self._spans)
        return got >= HEARD_SHARE * (word.end - word.start)


class _Answers:
    """Events on their way to the sink, in order of their time, then of their asking.

    asyncio promises no order among timers of one instant, so each timer delivers whichever event
    is first, not its own.
    """

    def __init__(self) -> None:
        self._sink: SttSink | None = None
        self._log: list[SttEvent] = []
        self._waiting: dict[tuple[float, int], tuple[SttEvent, asyncio.TimerHandle]] = {}
        self._count = 0

    @property
    def is_open(self) -> bool:
        return self._sink is not None

    def open(self, sink: SttSink, log: list[SttEvent]) -> None:
        self._sink, self._log = sink, log

    def later(self, delay_s: float, event: SttEvent) -> None:
        """Report `event` after `delay_s`, if still open then."""
        if self._sink is None:
            return
        self._count += 1
        loop = asyncio.get_running_loop()
        when = loop.time() + delay_s
        self._waiting[when, self._count] = event, loop.call_at(when, self._report)

    def last(self, event: Closed) -> None:
        """Report `event` as the next thing, and nothing after it."""
        sink, log = self._sink, self._log
        self.close()
        if sink is not None:
            log.append(event)
            asyncio.get_running_loop().call_soon(sink, event)

    def drop_partials(self) -> None:
        """Forget the partials that are still on their way."""
        for key, (event, timer) in list(self._waiting.items()):
            if isinstance(event, Partial):
                timer.cancel()
                del self._waiting[key]

    def close(self) -> None:
        self._sink = None
        for _, timer in self._waiting.values():
            timer.cancel()
        self._waiting.clear()

    def _report(self) -> None:
        due = min(self._waiting, default=None)
        if due is None or due[0] > asyncio.get_running_loop().time() + _INSTANT_S:
            return  # the event of this timer was delivered by another, or dropped
        event, _ = self._waiting.pop(due)
        if self._sink is not None:
            self._log.append(event)
            self._sink(event)


def _middle(word: Word) -> int:
    return (word.start + word.end) // 2
