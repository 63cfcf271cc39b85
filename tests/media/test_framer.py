"""The framer: any chunks in, frames of one length out, nothing lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxglove.media.errors import MediaValueError
from voxglove.media.format import AudioFormat
from voxglove.media.framer import Framer
from voxglove.media.pcm import samples_of


@given(st.lists(st.binary(max_size=60), max_size=12), st.integers(1, 9), st.sampled_from([1, 2]))
def test_any_chunking_gives_whole_frames_in_order(
    chunks: list[bytes], samples: int, channels: int
) -> None:
    shape = AudioFormat(channels=channels)
    framer = Framer(samples, shape, at=1_000)
    frames = [frame for chunk in chunks for frame in framer.feed(chunk)]
    stream = b"".join(chunks)
    assert all(frame.samples == samples for frame in frames)
    assert [frame.at for frame in frames] == [1_000 + i * samples for i in range(len(frames))]
    length = samples * shape.bytes_per_sample
    assert b"".join(frame.pcm for frame in frames) == stream[: len(stream) // length * length]
    assert framer.pending == len(stream) % length
    tail = framer.flush()
    rest = len(stream) % length // shape.bytes_per_sample
    assert (tail.samples if tail else 0) == rest


def test_arrays_sources_and_reset() -> None:
    framer = Framer(2, source="ann")
    (frame,) = framer.feed(samples_of(b"\x01\x00\x02\x00\x03\x00"))
    assert (frame.array().tolist(), frame.source, framer.at) == ([1, 2], "ann", 2)
    framer.reset(at=50)
    assert framer.pending == 0
    assert framer.feed(b"\x00" * 4)[0].at == 50


def test_an_empty_frame_length_is_refused() -> None:
    with pytest.raises(MediaValueError, match="samples"):
        Framer(0)
