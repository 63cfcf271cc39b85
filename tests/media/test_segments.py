"""What was given, sent and heard of a segment, and which numbers are dead."""

from __future__ import annotations

import numpy as np
import pytest

from voxglove.media.errors import MediaValueError
from voxglove.media.playback import Chunk
from voxglove.media.rebase import rebase
from voxglove.media.segments import Segments, note_played, note_unplayed


def opened(segments: Segments, key: int, rate: int = 16_000, out_rate: int = 16_000):  # type: ignore[no-untyped-def]
    segment = segments.get(key, rate, out_rate)
    assert segment is not None
    return segment


def test_late_write_of_a_cut_number_opens_nothing() -> None:
    segments = Segments()
    opened(segments, 3)
    assert [dead.key for dead in segments.cut()] == [3]
    assert segments.get(3, 16_000, 16_000) is None
    assert segments.get(2, 16_000, 16_000) is None, "older numbers died with it"
    assert segments.get(4, 16_000, 16_000) is not None


def test_ended_number_opens_nothing_but_its_sound_is_not_dead() -> None:
    segments = Segments()
    segments.end(opened(segments, 1))
    assert segments.get(1, 16_000, 16_000) is None
    assert segments.alive(Chunk(1, 0, b""))
    segments.cut()
    assert not segments.alive(Chunk(1, 0, b""))


def test_a_segment_keeps_its_rate() -> None:
    segments = Segments()
    opened(segments, 1, 24_000)
    with pytest.raises(MediaValueError, match="24000 Hz"):
        segments.get(1, 16_000, 16_000)


def test_heard_counts_in_the_speakers_samples_without_the_resamplers_delay() -> None:
    segment = opened(Segments(), 1, 24_000, 16_000)
    segment.given, segment.sent, segment.heard = 24_000, 16_000, 8_000
    report = segment.report(estimated=False)
    assert report.samples == 12_000 - 72, "3 ms of the output belong to no input yet"
    assert (report.total, report.complete) == (24_000, False)


def test_complete_means_all_of_it_and_no_more_to_come() -> None:
    segment = opened(Segments(), 1)
    segment.given = segment.sent = segment.heard = 320
    assert not segment.report(estimated=False).complete
    segment.finished = True
    assert segment.report(estimated=False).complete


def test_rebase_keeps_the_heard_share() -> None:
    segment = opened(Segments(), 1, 24_000, 16_000)
    segment.given, segment.sent, segment.heard = 24_000, 16_000, 4_000
    before = segment.report(estimated=True).samples
    segment.rebase(48_000)
    assert (segment.sent, segment.heard, segment.resampler.dst) == (48_000, 12_000, 48_000)
    assert before - 72 == segment.report(estimated=True).samples


def test_heard_moves_both_ways_with_the_truth() -> None:
    segments = Segments()
    segment = opened(segments, 1)
    note_played([segment], [Chunk(1, 0, bytes(200)), Chunk(9, 0, bytes(200))])
    assert segment.heard == 100
    note_unplayed([segment], [Chunk(1, 40, bytes(120)), Chunk(9, 0, bytes(200))])
    assert segment.heard == 40


def test_rebase_brings_out_what_the_resampler_kept_even_when_all_else_was_played() -> None:
    segments = Segments()
    starved, waiting = opened(segments, 1, 24_000), opened(segments, 2, 16_000)
    starved.given = 2_400
    starved.sent = starved.heard = len(starved.resampler.feed(np.full(2_400, 5_000, np.int16)))
    waiting.given = waiting.sent = 400
    held = [Chunk(2, 0, bytes(640)), Chunk(2, 320, bytes(160))]
    pieces = rebase(held, segments.all(), 16_000, 48_000)
    assert [(piece.segment, piece.offset, piece.samples) for piece in pieces] == [
        (1, 4_800, 144),
        (2, 0, 960),
        (2, 960, 240),
    ]
    assert np.abs(np.frombuffer(pieces[0].pcm, np.int16)).max() > 4_000
    assert (starved.sent, starved.heard, waiting.sent) == (4_944, 4_800, 1_200)
