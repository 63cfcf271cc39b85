"""What a caller really heard, read from the sound alone: which samples of which scripted response.

The scripted voice gives each word a sound of its own, so the recording itself says what was played
and when; nothing of the code under test is asked. Owned by the call tests. Exact output clocks at
16 kHz only: another rate is resampled and matches nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from voxglove.adapters.tts.scripted import ScriptedTts, Timing, render
from voxglove.media.pcm import Samples

KEY = 6
"""Samples that identify a place in a render: noise and tone together never repeat so long."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Samples [start, end) of response `response` sounded from input sample `at` on."""

    at: int
    response: int
    start: int
    end: int


@dataclass(slots=True)
class _Render:
    sound: Samples
    windows: np.ndarray[tuple[int, int], np.dtype[np.int16]]

    def places(self, key: Samples) -> list[int]:
        if len(self.windows) == 0:
            return []
        first = np.flatnonzero(self.windows[:, 0] == key[0])
        return [int(at) for at in first if np.array_equal(self.windows[at], key)]

    def common(self, at: int, sound: Samples) -> int:
        """How many samples `sound` has in common with this render from `at` on."""
        count = min(len(self.sound) - at, len(sound))
        differs = np.flatnonzero(self.sound[at : at + count] != sound[:count])
        return int(differs[0]) if len(differs) else count


def _rendered(voice: ScriptedTts, timing: Timing) -> _Render:
    sound, _ = render(voice.texts, timing)
    if len(sound) < KEY:
        return _Render(sound, np.zeros((0, KEY), np.int16))
    return _Render(sound, np.lib.stride_tricks.sliding_window_view(sound, KEY))


def pieces(heard: Samples, voices: Sequence[ScriptedTts], timing: Timing) -> list[Piece]:
    """Everything in `heard` that is not silence, in order, joined where it is continuous.

    Raises AssertionError where a sound is no scripted word at all (a click, half a sample).
    """
    renders = [_rendered(voice, timing) for voice in voices]
    found: list[Piece] = []
    loud = np.flatnonzero(heard)
    at = 0
    while len(rest := loud[np.searchsorted(loud, at) :]):
        at = int(rest[0])
        piece = _identify(heard, at, renders, found[-1] if found else None)
        if piece is None:
            raise AssertionError(f"a sound at sample {at} is of no scripted word")
        found.append(piece)
        at += piece.end - piece.start
    return _joined(found)


def _identify(
    heard: Samples, at: int, renders: Sequence[_Render], last: Piece | None
) -> Piece | None:
    """The longest match; going on where the last piece stopped wins over the same word again."""
    block = heard[at : at + 320]
    if last is not None:
        render_ = renders[last.response]
        lead = _zeros(render_.sound[last.end :])
        length = _loud(block[: render_.common(last.end + lead, block)])
        if length:
            return Piece(at - lead, last.response, last.end, last.end + lead + length)
    best: Piece | None = None
    key = block[:KEY]
    for index, candidate in enumerate(renders):
        for place in candidate.places(key) if len(key) == KEY else []:
            length = _loud(block[: candidate.common(place, block)])
            if best is None or length > best.end - best.start:
                best = Piece(at, index, place, place + length)
    if best is not None and best.start == _zeros(renders[best.response].sound):
        return Piece(best.at - best.start, best.response, 0, best.end)
    return best


def _zeros(sound: Samples) -> int:
    """Leading samples that are silence by chance of the waveform."""
    loud = np.flatnonzero(sound[:320])
    return int(loud[0]) if len(loud) else 0


def _loud(sound: Samples) -> int:
    """Length up to the last sample that is not zero."""
    loud = np.flatnonzero(sound)
    return int(loud[-1]) + 1 if len(loud) else 0


def _joined(found: Sequence[Piece]) -> list[Piece]:
    joined: list[Piece] = []
    for piece in found:
        last = joined[-1] if joined else None
        if (
            last is not None
            and last.response == piece.response
            and last.end == piece.start
            and last.at + last.end - last.start == piece.at
        ):
            joined[-1] = Piece(last.at, last.response, last.start, piece.end)
        else:
            joined.append(piece)
    return joined


def heard_samples(found: Sequence[Piece], response: int) -> int:
    """How many different samples of a response were heard."""
    return sum(piece.end - piece.start for piece in found if piece.response == response)


def heard_words(voice: ScriptedTts, timing: Timing, samples: int) -> list[str]:
    """The words of which at least half was within the first `samples`.

    A word cut in half is told as heard from its middle on (media/turns/heard); a test that wants
    the other reading allows one word.
    """
    text = "".join(voice.texts)
    _, spans = render(voice.texts, timing)
    return [
        text[span.text_start : span.text_end]
        for span in spans
        if 2 * samples >= span.sample_start + span.sample_end
    ]
