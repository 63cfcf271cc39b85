"""What callers do: conversations, interruptions, noises, echoes.

Generators of frames (see `caller.Script`), each with a random generator of its own, so that a
round can be repeated with the same choices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from time import perf_counter

from bench.caller import Caller, Script, silence
from bench.clips import INTERRUPTIONS, QUESTIONS, SILENCE, Clip, clip, marked

QUIET_S = 0.3
"""An answer is over when nothing loud came for so long (longer than any pause inside one)."""
PATIENCE_S = 8.0


def conversation(seconds: float, random: Random, *, barge_in: bool = True) -> Script:
    """Questions, every second answer interrupted after 0.8 to 1.8 s; about `seconds` long."""

    def script(caller: Caller) -> Iterator[bytes]:
        until = perf_counter() + seconds
        yield from silence(400)
        turn = random.randrange(2)
        while perf_counter() < until:
            yield from caller.say("question", clip(random.choice(QUESTIONS)))
            yield from until_answered(caller)
            turn += 1
            if barge_in and turn % 2:
                yield from silence(random.uniform(800, 1_800))
                yield from caller.say("interruption", clip(random.choice(INTERRUPTIONS)))
                yield from until_answered(caller, QUIET_S)
            yield from until_quiet(caller)
            yield from silence(random.uniform(300, 800))

    return script


def once(random: Random) -> Script:
    """One question; gone when the answer begins."""

    def script(caller: Caller) -> Iterator[bytes]:
        yield from silence(400)
        yield from caller.say("question", clip(random.choice(QUESTIONS)))
        yield from until_answered(caller)
        yield from silence(400)

    return script


def noise(clips: Sequence[Clip], random: Random) -> Script:
    """For each clip: a question, and the clip 0.8 to 1.2 s into its answer."""

    def script(caller: Caller) -> Iterator[bytes]:
        yield from silence(400)
        for sound in clips:
            yield from caller.say("question", clip(random.choice(QUESTIONS)))
            yield from until_answered(caller)
            yield from silence(random.uniform(800, 1_200))
            yield from caller.say("noise", sound)
            yield from until_quiet(caller, 2.5)
            yield from silence(500)

    return script


def marks(seconds: float) -> Script:
    """Frames that tell themselves apart, for an echo."""

    def script(caller: Caller) -> Iterator[bytes]:
        frames, until, at = marked(), perf_counter() + seconds, 0
        while perf_counter() < until:
            yield frames[at % len(frames)]
            at += 1
        yield from silence(500)

    return script


def listening(seconds: float) -> Script:
    """Nothing said."""
    return lambda caller: silence(1_000 * seconds)


def until_answered(caller: Caller, after_s: float = 0.0) -> Iterator[bytes]:
    """Silence until sound comes that began `after_s` after now."""
    began = perf_counter()
    quiet = 0.0
    while perf_counter() < began + PATIENCE_S:
        last, now = caller.last_loud, perf_counter()
        if after_s and now - last > after_s:
            quiet = now
        if last > (quiet if after_s else began) and (not after_s or quiet):
            return
        yield SILENCE


def until_quiet(caller: Caller, quiet_s: float = QUIET_S) -> Iterator[bytes]:
    """Silence until nothing loud came for `quiet_s`."""
    began = perf_counter()
    while perf_counter() < began + 2 * PATIENCE_S and perf_counter() < caller.last_loud + quiet_s:
        yield SILENCE
