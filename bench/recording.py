"""P14: is what the recording shows where it was? Labels against both tracks, over stalls.

voxglove only: the peers record elsewhere, or not at all.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import soundfile as sf

from bench import measures
from bench.caller import Caller, Log, Script, silence
from bench.clips import MARK_EVERY, QUESTIONS, RATE, SAMPLES, clip, level_of, marked
from bench.processes import Place, Running, System
from bench.rounds import Round, Setting, call_all
from bench.scripts import until_answered, until_quiet

Track = np.ndarray[tuple[int], np.dtype[np.int16]]


def script_of(stalls_ms: Sequence[float], labels: list[int]) -> Script:
    """Marks before and after every stall, and an answered question between. `labels` gets the
    sample at which each mark was spoken."""

    def mark(caller: Caller) -> Iterator[bytes]:
        labels.append(len(caller.log.sent) * SAMPLES)
        yield marked()[(len(labels) - 1) * MARK_EVERY]
        yield from silence(500)

    def script(caller: Caller) -> Iterator[bytes]:
        yield from silence(500)
        yield from mark(caller)
        for number, stall in enumerate(stalls_ms):
            yield from caller.say("question", clip(QUESTIONS[number % len(QUESTIONS)]))
            yield from until_answered(caller)
            yield from until_quiet(caller)
            caller.holding = True
            yield from silence(stall)
            caller.holding = False
            yield from silence(500)
            yield from mark(caller)

    return script


async def alignment(
    system: System, place: Place, setting: Setting, seed: int, stalls_ms: Sequence[float]
) -> Round:
    """P14 of one call. `clock_ms`: how far each mark lies from its label, against the first: what
    the input clock gave way to a stall. `channels_ms`: how far each answer lies from where the
    caller heard it, against the caller's own mark before it."""
    found = Round("recording", system.name, 1, load=os.getloadavg()[0])
    labels: list[int] = []
    short = replace(setting, sentences=1, tone_ms=1_000)
    with tempfile.TemporaryDirectory() as folder:
        with Running(system, short.arguments | {"record": folder}, place) as running:
            logs = await call_all(running, [script_of(stalls_ms, labels)], Random(seed))
            await asyncio.sleep(1)
        left, right = _tracks(Path(folder))
    found.lag_ms = measures.lag_p99(logs)
    found.failures = [log.failed for log in logs if log.failed]
    marks = _marks(left)
    first = marks[0] if marks else 0
    clock = [
        (at - first - label + labels[0]) * 1000 / RATE
        for at, label in zip(marks, labels, strict=False)
    ]
    agent = _agent(right, logs[0], first - labels[0])
    found.values = {
        "marks": len(marks),
        "expected": len(labels),
        "clock_ms": clock,
        "channels_ms": [heard - ms for heard, ms in zip(agent, clock, strict=False)],
    }
    return found


def _tracks(folder: Path) -> tuple[Track, Track]:
    data, rate = sf.read(next(folder.glob("*.wav")), dtype="int16")
    if rate != RATE:
        raise ValueError(f"the recording runs at {rate} Hz, not {RATE}")
    return data[:, 0], data[:, 1]


def _marks(track: Track) -> list[int]:
    """Where frames of one constant level begin, in the order of their levels."""
    flat = np.flatnonzero(np.diff(track.astype(np.int32)) == 0)
    runs = np.split(flat, np.flatnonzero(np.diff(flat) > 1) + 1)
    found: list[int] = []
    for run in runs:
        if len(run) < SAMPLES // 2 or abs(int(track[run[0]])) < 1_900:
            continue
        if level_of(int(track[run[0]])) == len(found):
            found.append(int(run[0]))
    return found


def _agent(track: Track, log: Log, offset: int) -> list[float]:
    """Each answer's place on the agent's track, less where it was heard on the caller's clock."""
    loud = np.flatnonzero(np.abs(track.astype(np.int32)) >= 1_000)
    starts = [
        int(run[0]) for run in np.split(loud, np.flatnonzero(np.diff(loud) > 4_000) + 1) if len(run)
    ]
    answers = measures.answers(log)
    return [
        (start - offset) * 1000 / RATE - (answer.begin - log.sent[0] + 0.02) * 1000
        for start, answer in zip(starts, answers, strict=False)
    ]
