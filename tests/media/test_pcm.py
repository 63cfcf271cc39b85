"""Sample conversions: exact both ways, clamped, and no byte of a base64 stream lost."""

import base64

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxglove.media.errors import MediaValueError
from voxglove.media.pcm import (
    SILENCE_DBFS,
    Base64Decoder,
    dbfs,
    downmix,
    encode_base64,
    pcm_of,
    rms,
    samples_of,
    to_float,
    to_int16,
)

EVERY = np.arange(-32_768, 32_768, dtype=np.int32).astype(np.int16)


def test_every_int16_survives_the_way_through_float() -> None:
    floats = to_float(EVERY)
    assert floats[0] == -1.0
    assert floats[-1] == 32_767 / 32_768
    assert np.array_equal(to_int16(floats), EVERY)


def test_floats_beyond_full_scale_are_clamped_and_nan_is_silence() -> None:
    assert to_int16(np.array([1.0, 7.0, -7.0, np.nan])).tolist() == [32_767, 32_767, -32_768, 0]


def test_bytes_are_little_endian_and_odd_lengths_refused() -> None:
    assert samples_of(b"\x01\x00\x00\x80").tolist() == [1, -32_768]
    assert pcm_of(np.array([258], np.int16)) == b"\x02\x01"
    with pytest.raises(MediaValueError, match="3 bytes"):
        samples_of(b"abc")


def test_downmix_takes_the_mean_without_overflow() -> None:
    stereo = np.array([[32_767, 32_767], [-32_768, -32_768], [100, 200], [7, -7]], np.int16)
    assert downmix(stereo).tolist() == [32_767, -32_768, 150, 0]
    mono = np.array([1, 2], np.int16)
    assert downmix(mono) is mono


def test_levels() -> None:
    square = np.array([16_384, -16_384] * 80, np.int16)
    assert rms(square) == pytest.approx(0.5)
    assert dbfs(square) == pytest.approx(-6.02, abs=0.01)
    assert dbfs(np.zeros(10, np.int16)) == dbfs(np.zeros(0, np.int16)) == SILENCE_DBFS


@given(st.binary(max_size=200).filter(lambda data: len(data) % 2 == 0), st.data())
def test_base64_messages_cut_anywhere_give_the_same_samples(
    pcm: bytes, data: st.DataObject
) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(pcm)), max_size=5)))
    decoder = Base64Decoder()
    heard = [
        decoder.feed(base64.b64encode(pcm[a:b]))
        for a, b in zip([0, *cuts], [*cuts, len(pcm)], strict=True)
    ]
    assert b"".join(map(pcm_of, heard)) == pcm
    assert decoder.pending == 0


def test_base64_round_trip_reset_and_garbage() -> None:
    decoder = Base64Decoder()
    assert decoder.feed(encode_base64(EVERY)).tolist() == EVERY.tolist()
    assert len(decoder.feed(base64.b64encode(b"a"))) == 0
    assert decoder.pending == 1
    decoder.reset()
    assert decoder.feed(base64.b64encode(b"\x01\x00")).tolist() == [1]
    with pytest.raises(MediaValueError, match="audio"):
        decoder.feed("not base64!")
