"""Whatever a tool returns or a caller types, history can be written (core/encoding.py)."""

from __future__ import annotations

import datetime
import json
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from tests.core.store_values import LONE_SURROGATE, MENDED_SURROGATE
from voxglove.core import Message, ToolCall, decode_message, encode_message
from voxglove.core.encoding import DEEPEST, LEFT_OUT, json_bytes, whole_text


class Colour(Enum):
    RED = "red"


class Booking(BaseModel):
    seats: int = 1


@dataclass
class Table:
    number: int = 7
    note: object = None


class Odd:
    def __str__(self) -> str:
        return f"odd {LONE_SURROGATE}"


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (Booking(), {"seats": 1}),
        (Table(), {"number": 7, "note": None}),
        (datetime.date(2025, 3, 1), "2025-03-01"),
        (Decimal("1.50"), "1.50"),
        (Colour.RED, "red"),
        (b"text", "text"),
        (b"\xff\x00", "/wA="),
        ({1: (2, {3})}, {"1": [2, [3]]}),
        (float("inf"), None),
        (2**70, 2**70),
        ("split \ud83d\ude00 pair", "split \U0001f600 pair"),
        (LONE_SURROGATE, MENDED_SURROGATE),
        (Booking.model_construct(seats=LONE_SURROGATE), {"seats": MENDED_SURROGATE}),
        (Odd(), f"odd {MENDED_SURROGATE}"),
    ],
    ids=repr,
)
def test_a_value_is_written_as_near_as_it_can_be(value: object, wanted: object) -> None:
    assert json.loads(json_bytes(value)) == wanted
    # Beside something that takes the slow way, it is written the same.
    beside = json.loads(json_bytes({LONE_SURROGATE: [value], "in": Table(note=value)}))
    assert beside == {MENDED_SURROGATE: [wanted], "in": {"number": 7, "note": wanted}}


def test_what_contains_itself_is_left_out_there() -> None:
    ring: dict[str, Any] = {"a": 1}
    ring["self"] = [ring]
    assert json.loads(json_bytes(ring)) == {"a": 1, "self": [LEFT_OUT]}
    twice = [1]
    assert json.loads(json_bytes([twice, twice])) == [[1], [1]]


@pytest.mark.parametrize("depth", [100, 150, 200, 250, 300, 5_000])
def test_what_is_deep_can_be_read_again(depth: int) -> None:
    deep: object = "end"
    for _ in range(depth):
        deep = [deep]
    message = Message(sender="agent", id="m", tool_calls=(ToolCall("t", deep, "c"),))
    (call,) = decode_message(encode_message(message)).tool_calls
    assert call.input_args == deep if depth < DEEPEST else "[[[[" in str(call.input_args)


def test_a_list_is_long_and_not_deep() -> None:
    rows = [{"n": [n]} for n in range(1_000)]
    assert json.loads(json_bytes(rows)) == rows


@given(text=st.text(alphabet=st.characters(codec=None), max_size=20))
def test_text_is_mended_only_where_it_must(text: str) -> None:
    mended = whole_text(text)
    mended.encode()
    assert whole_text(mended) == mended
    if not any("\ud800" <= char <= "\udfff" for char in text):
        assert mended == text
