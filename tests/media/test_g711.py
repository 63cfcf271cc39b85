"""G.711 against the values the recommendation prints, and against itself."""

import numpy as np
import pytest

from voxglove.media.g711 import alaw_decode, alaw_encode, ulaw_decode, ulaw_encode

EVERY = np.arange(-32_768, 32_768, dtype=np.int32).astype(np.int16)

ULAW = {0xFF: 0, 0x7F: 0, 0x80: 32_124, 0x00: -32_124, 0xFE: 8, 0x7E: -8, 0x8F: 16_764, 0xEF: 132}
ALAW = {0xD5: 8, 0x55: -8, 0xAA: 32_256, 0x2A: -32_256, 0xD4: 24, 0x54: -24, 0xC5: 264, 0x45: -264}


@pytest.mark.parametrize(("code", "sample"), ULAW.items())
def test_mu_law_values_of_table_2b(code: int, sample: int) -> None:
    assert ulaw_decode(bytes([code])).tolist() == [sample]


@pytest.mark.parametrize(("code", "sample"), ALAW.items())
def test_a_law_values_of_table_1b(code: int, sample: int) -> None:
    assert alaw_decode(bytes([code])).tolist() == [sample]


def test_silence_and_polarity() -> None:
    assert ulaw_encode(np.array([0, 1_000, -1_000], np.int16)) == bytes([0xFF, 0xCE, 0x4E])
    assert alaw_encode(np.array([0, 1_000, -1_000], np.int16)) == bytes([0xD5, 0xFA, 0x7A])


def test_every_code_survives_a_round_trip() -> None:
    codes = bytes(range(256))
    assert alaw_encode(alaw_decode(codes)) == codes
    # 0x7F is minus zero: it sounds the same and is sent as plus zero
    assert ulaw_encode(ulaw_decode(codes)) == codes.replace(b"\x7f", b"\xff")


@pytest.mark.parametrize(
    ("coded", "clip"),
    [(ulaw_decode(ulaw_encode(EVERY)), 32_124), (alaw_decode(alaw_encode(EVERY)), 32_256)],
    ids=["mu-law", "a-law"],
)
def test_coding_is_monotone_and_close(coded: np.ndarray, clip: int) -> None:
    wide, source = coded.astype(np.int32), EVERY.astype(np.int32)
    assert np.all(np.diff(wide) >= 0)
    within = np.abs(source) <= clip
    assert np.all(np.abs(wide - source)[within] <= np.maximum(12, np.abs(source)[within] / 16))
