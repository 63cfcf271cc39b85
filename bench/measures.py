"""From the log of a call to the numbers of the table. Pure: no clock, no I/O.

Definitions are in docs/bench.md. Everything is in milliseconds unless a name says otherwise, and
every value is kept, so that whoever reads the JSON can compute other quantiles.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from bench.caller import LOUD, Log
from bench.clips import RATE, level_of

BREAK_S = 0.2
"""Loud sound that stays away longer has ended."""
GAP_SAMPLES = 16
"""A run of silence this long inside a tone is a hole (a sine crosses zero in one sample)."""
BUFFER_S = 0.04
"""What a careful client buffers before it plays: two frames."""
RECOVERED_S = 0.5

TALKED_OVER_S = 0.1

Times = np.ndarray[tuple[int], np.dtype[np.float64]]
Arrival = tuple[float, bytes, bool]


@dataclass(frozen=True, slots=True)
class Answer:
    """Messages [first loud, last loud] of one answer. `whole`: it was heard to its end."""

    arrivals: Sequence[Arrival]
    whole: bool = True

    @property
    def begin(self) -> float:
        return self.arrivals[0][0]

    @property
    def end(self) -> float:
        return self.arrivals[-1][0]

    @property
    def pcm(self) -> np.ndarray[tuple[int], np.dtype[np.int16]]:
        return np.frombuffer(b"".join(one[1] for one in self.arrivals), np.int16)


def answers(log: Log) -> list[Answer]:
    """The answer to each question that got one: from its first loud message to its last before
    the caller speaks again, whatever stalls lie between."""
    found: list[Answer] = []
    for number, mark in enumerate(log.marks):
        if mark.kind != "question":
            continue
        until = log.marks[number + 1].at if number + 1 < len(log.marks) else np.inf
        own = [
            index
            for index, (at, _, loud) in enumerate(log.arrivals)
            if loud and mark.time(mark.end) <= at < until
        ]
        if own:
            cut = number + 1 < len(log.marks) and log.marks[number + 1].kind != "question"
            whole = not cut and number + 1 < len(log.marks)
            found.append(Answer(log.arrivals[own[0] : own[-1] + 1], whole))
    return found


def overheads(log: Log, configured_ms: float) -> list[float]:
    """P4: from the last sample of a question to the first loud sample, less what was configured."""
    return [value - configured_ms for value in responses(log)]


def responses(log: Log) -> list[float]:
    """From the last sample of a question to the arrival of the first loud sample. Questions that
    got none before the next mark are counted by `unanswered`."""
    return [(first - end) * 1000 for end, first in _answered(log) if first is not None]


def unanswered(log: Log) -> int:
    """Questions without an answer of their own, be it that an earlier one still sounded; the last
    one may have been cut by the end of the round."""
    found = [first for _, first in _answered(log)]
    return sum(first is None for first in found[:-1])


def _answered(log: Log) -> Iterator[tuple[float, float | None]]:
    loud = np.array([at for at, _, is_loud in log.arrivals if is_loud])
    for number, mark in enumerate(log.marks):
        if mark.kind != "question":
            continue
        end = mark.time(mark.end)
        after = log.marks[number + 1].at if number + 1 < len(log.marks) else np.inf
        index = int(np.searchsorted(loud, end + TALKED_OVER_S))
        if index > np.searchsorted(loud, end - TALKED_OVER_S):
            yield end, None  # an earlier answer still sounds: this is none to this question
            continue
        found = float(loud[index]) if index < len(loud) else np.inf
        yield end, found if found < after else None


@dataclass(frozen=True, slots=True)
class Stop:
    """One interruption: onset to the last loud sample on the wire, and as the caller heard it.
    None: the agent spoke on to its end."""

    clip: str
    wire_ms: float | None
    heard_ms: float | None


def stops(log: Log, kind: str = "interruption") -> list[Stop]:
    """P5. An answer that had been silent for BREAK_S when the caller began is left out."""
    spans = _heard(log)
    found = []
    for mark in log.marks:
        if mark.kind != kind:
            continue
        onset = mark.time(mark.start)
        wire = _last_before_break([(at, at) for at, _, loud in log.arrivals if loud], onset)
        heard = _last_before_break(spans, onset)
        if wire is not None and heard is not None:
            found.append(Stop(mark.clip, (wire - onset) * 1000, (heard - onset) * 1000))
    return found


def _last_before_break(spans: Sequence[tuple[float, float]], onset: float) -> float | None:
    """The end of the sound that was going on at `onset`; None when there was none."""
    last: float | None = None
    for begin, end in spans:
        if end < onset - BREAK_S:
            continue
        if last is None:
            if begin > onset + BREAK_S:
                return None
        elif begin - last > BREAK_S:
            break
        last = end
    return last


def _heard(log: Log) -> list[tuple[float, float]]:
    """When loud messages sounded at a client that plays at once and obeys `clear`."""
    spans: list[tuple[float, float]] = []
    clears, ready = iter([*log.clears, np.inf]), 0.0
    clear = next(clears)
    for at, pcm, loud in log.arrivals:
        while clear <= at:
            spans = [(begin, min(end, clear)) for begin, end in spans if begin < clear]
            ready = min(ready, clear)
            clear = next(clears)
        begin = max(at, ready)
        ready = begin + len(pcm) / 2 / RATE
        if loud:
            spans.append((begin, ready))
    if clear < np.inf:
        spans = [(begin, min(end, clear)) for begin, end in spans if begin < clear]
    return spans


@dataclass(frozen=True, slots=True)
class Disturbance:
    """What a noise did to an answer: the longest silence it caused while the answer was due, and
    whether the agent went on afterwards."""

    clip: str
    silent_ms: float
    resumed: bool

    @property
    def stopped(self) -> bool:
        """The caller heard the agent stop."""
        return self.silent_ms > BREAK_S * 1000

    @property
    def recovered(self) -> bool:
        """It stopped and went on within half a second."""
        return self.stopped and self.resumed and self.silent_ms <= RECOVERED_S * 1000


def disturbances(log: Log, answer_ms: float) -> list[Disturbance]:
    """P6. An answer lasts `answer_ms`; what is missing at its end, with no sound after it until
    the next question, is an answer that was cut for nothing."""
    spans = _heard(log)
    found = []
    for number, mark in enumerate(log.marks):
        if mark.kind != "noise":
            continue
        asked = log.marks[number - 1].time(log.marks[number - 1].end)
        until = log.marks[number + 1].at if number + 1 < len(log.marks) else np.inf
        own = [(begin, end) for begin, end in spans if asked < begin < until]
        onset = mark.time(mark.start)
        if not own or not any(begin <= onset <= end + BREAK_S for begin, end in own):
            continue
        played = sum(end - begin for begin, end in own) * 1000
        pauses = [after[0] - before[1] for before, after in zip(own, own[1:], strict=False)]
        longest = max([pause for pause in pauses], default=0.0) * 1000
        resumed = played > answer_ms * 0.9
        missing = 0.0 if resumed else answer_ms - played
        found.append(Disturbance(mark.clip, max(longest, missing), resumed))
    return found


@dataclass(frozen=True, slots=True)
class Pacing:
    """P2, over all answers of a call: by how much gaps exceed 20 ms, how late frames were for a
    client that plays at once, and how often one with two frames of buffer ran dry."""

    excess_ms: Sequence[float]
    late_ms: Sequence[float]
    underruns: int


def pacing(log: Log) -> Pacing:
    """P2."""
    excess: list[float] = []
    late: list[float] = []
    dry = 0
    for answer in answers(log):
        times = np.array([at for at, _, _ in answer.arrivals])
        played = np.array([len(pcm) / 2 / RATE for _, pcm, _ in answer.arrivals])
        due = times[0] + np.concatenate(([0.0], np.cumsum(played)[:-1]))
        excess += list(np.maximum(0.0, np.diff(times) - played[:-1]) * 1000)
        late += list(np.maximum(0.0, times - due)[1:] * 1000)
        dry += _underruns(times, played)
    return Pacing(excess, late, dry)


def _underruns(times: Times, played: Times) -> int:
    ready, dry = times[0] + BUFFER_S, 0
    for at, length in zip(times, played, strict=True):
        if at > ready:
            dry, ready = dry + 1, at + BUFFER_S
        ready += length
    return dry


@dataclass(frozen=True, slots=True)
class Wholeness:
    """P13, of one answer that nobody interrupted: silence inside it, time a client with two
    frames of buffer had nothing to play, and its loud length against what was spoken."""

    silent_ms: float
    stalled_ms: float
    length_ms: float

    @property
    def gap_ms(self) -> float:
        return self.silent_ms + self.stalled_ms


def wholeness(log: Log, answer_ms: float) -> list[Wholeness]:
    """P13: answers that were heard to their end."""
    found = []
    for answer in answers(log):
        if not answer.whole:
            continue
        pcm = answer.pcm
        loud = np.flatnonzero(np.abs(pcm.astype(np.int32)) >= LOUD)
        runs = np.diff(loud) - 1
        silent = int(runs[runs >= GAP_SAMPLES].sum())
        length = int(loud[-1] - loud[0] + 1 - silent) * 1000 / RATE
        found.append(Wholeness(silent * 1000 / RATE, _stalled(answer) * 1000, length))
    return found


def _stalled(answer: Answer) -> float:
    ready, stalled = answer.begin + BUFFER_S, 0.0
    for at, pcm, _ in answer.arrivals:
        stalled += max(0.0, at - ready)
        ready = max(at, ready) + len(pcm) / 2 / RATE
    return stalled


def echoes(log: Log) -> tuple[list[float], int]:
    """P1: from sending a marked frame to the arrival of its first sample; and marks lost.

    A system may cut the stream anew: a mark is found by its level, wherever it begins in a message.
    """
    sent = [(index, log.sent[index]) for index in range(0, len(log.sent), 5)]
    waiting = iter(sent)
    expected = 0
    found: list[float] = []
    last = -1
    for at, pcm, loud in log.arrivals:
        if not loud:
            last = -1
            continue
        samples = np.frombuffer(pcm, np.int16)
        level = level_of(int(samples[np.argmax(np.abs(samples) >= LOUD)]))
        if level == last:
            continue
        last = level
        for index, when in waiting:
            expected += 1
            if index // 5 % 50 == level:
                found.append((at - when) * 1000)
                break
    return found, max(0, expected - len(found))


def first_loud(log: Log) -> float | None:
    """P10: from connecting to the first loud sample."""
    times = [at for at, _, loud in log.arrivals if loud]
    return (times[0] - log.connected) * 1000 if times else None


def lag_p99(logs: Sequence[Log]) -> float:
    """How late the generator itself was, over all its frames."""
    lags = np.concatenate([np.array(log.lags) for log in logs] or [np.zeros(1)])
    return float(np.quantile(lags, 0.99) * 1000) if lags.size else 0.0
