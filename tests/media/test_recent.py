"""The ring of a caller's last seconds gives what the whole stream would."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from voxglove.media.recent import Recent

LENGTH = 1_000


@given(
    st.lists(st.tuples(st.integers(0, 2_500), st.booleans()), max_size=30), st.integers(0, 1_200)
)
def test_the_ring_holds_the_end_of_the_stream_whatever_its_pieces(
    pieces: list[tuple[int, bool]], asked: int
) -> None:
    recent = Recent(LENGTH)
    stream, at, since = np.zeros(LENGTH, np.int16), 0, 0
    for size, hole in pieces:
        if hole:
            at += 17
            since = at
        piece = (np.arange(size) + at).astype(np.int16)
        recent.add(at, piece)
        stream, at = np.concatenate((stream, piece)), at + size
    assert recent.last().tolist() == stream[-LENGTH:].tolist()
    position, samples = recent.unbroken(asked)
    assert len(samples) == min(asked, at - since, LENGTH)
    assert position == at - len(samples)
    assert samples.tolist() == stream[len(stream) - len(samples) :].tolist()


def test_what_it_gives_is_a_copy() -> None:
    recent = Recent(LENGTH)
    recent.add(0, np.ones(10, np.int16))
    given_out = recent.last(10)
    recent.add(10, np.full(LENGTH, 7, np.int16))
    assert given_out.tolist() == [1] * 10
