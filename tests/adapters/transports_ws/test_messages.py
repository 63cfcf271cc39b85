"""What a client may say: every kind once right, every field once wrong, and noise."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxglove.adapters.transports.websocket_messages import (
    MAX_TEXT_CHARS,
    REQUIRED,
    BadMessage,
    RateWindow,
    check_frame,
    read_message,
)

GOOD: list[dict[str, object]] = [
    {"t": "say", "text": "hello"},
    {"t": "say", "text": "hello", "speaker": "user"},
    {"t": "playback", "epoch": 0, "pos": 16_000},
    {"t": "cleared", "epoch": 3, "pos": 0},
    {"t": "barge_in"},
    {"t": "mute", "on": True},
    {"t": "ptt", "down": False},
    {"t": "commit"},
    {"t": "interrupt"},
    {"t": "hangup"},
    {"t": "resolve", "id": "slot_1", "value": {"a": [1, None]}},
    {"t": "resolve", "id": "slot_1", "value": None},
    {"t": "reject", "id": "slot_1"},
    {"t": "reject", "id": "slot_1", "reason": "no"},
    {"t": "playback_done", "turnId": 4},
    {"t": "playback_done", "turnId": "t4"},
    {"t": "speaker", "speaker": "user"},
    {"t": "image", "mime": "image/png", "data": "aGVsbG8="},
    {"t": "image", "mime": "image/jpeg", "data": "aGVsbG8=", "live": True},
    {"t": "impair", "loss": 0.25, "burst": 3, "jitter_ms": 150, "down": False},
    {"t": "say", "text": "hello", "from_a_newer_client": 1},
]


@pytest.mark.parametrize("message", GOOD, ids=lambda m: str(m["t"]))
def test_a_good_message_is_read(message: dict[str, object]) -> None:
    assert read_message(json.dumps(message)) == message


def test_every_kind_of_the_table_stands_among_the_good_ones() -> None:
    assert {str(message["t"]) for message in GOOD} == set(REQUIRED)


BAD: list[tuple[str, str, str]] = [
    ("", "json", "no valid JSON"),
    ("{", "json", "no valid JSON"),
    ("[]", "json", "JSON object"),
    ("null", "json", "JSON object"),
    ("NaN", "json", "NaN"),
    ('{"t":"playback","epoch":0,"pos":Infinity}', "json", "Infinity"),
    ("[" * 60_000, "json", "nested"),
    ('{"t":"playback","epoch":' + "9" * 5_000 + ',"pos":0}', "json", "no valid JSON"),
    ('{"t":"say","text":"\\ud800"}', "json", "no valid JSON"),
    ("{}", "t", "send one of"),
    ('{"t":5}', "t", "send one of"),
    ('{"t":"frobnicate"}', "t", "frobnicate"),
    ('{"t":"say"}', "text", "needs the field"),
    ('{"t":"say","text":5}', "text", "string"),
    ('{"t":"say","text":"  "}', "text", "blank"),
    (json.dumps({"t": "say", "text": "x" * (MAX_TEXT_CHARS + 1)}), "text", "at most"),
    ('{"t":"say","text":"a","speaker":[]}', "speaker", "string"),
    ('{"t":"playback","epoch":true,"pos":0}', "epoch", "whole number"),
    ('{"t":"playback","epoch":0,"pos":1.5}', "pos", "whole number"),
    ('{"t":"playback","epoch":0,"pos":-1}', "pos", "0.."),
    ('{"t":"cleared","epoch":0}', "pos", "needs the field"),
    ('{"t":"mute","on":1}', "on", "true or false"),
    ('{"t":"ptt","down":"yes"}', "down", "true or false"),
    ('{"t":"resolve","id":"a"}', "value", "needs the field"),
    ('{"t":"resolve","id":"","value":1}', "id", "blank"),
    ('{"t":"reject","id":"a","reason":4}', "reason", "string"),
    ('{"t":"playback_done","turnId":{}}', "turnId", "whole number"),
    ('{"t":"image","mime":"text/html","data":""}', "mime", "image/png"),
    ('{"t":"image","mime":"image/png","data":"%%%"}', "data", "base64"),
    ('{"t":"image","mime":"image/png","data":7}', "data", "base64"),
    ('{"t":"image","mime":"image/png","data":"","live":1}', "live", "true or false"),
    ('{"t":"impair","burst":1,"jitter_ms":0,"down":true}', "loss", "needs the field"),
    ('{"t":"impair","loss":1.1,"burst":1,"jitter_ms":0,"down":true}', "loss", "0..1"),
    ('{"t":"impair","loss":0,"burst":1.5,"jitter_ms":0,"down":true}', "burst", "whole number"),
    ('{"t":"impair","loss":0,"burst":0,"jitter_ms":0,"down":true}', "burst", "1..10"),
    ('{"t":"impair","loss":0,"burst":1,"jitter_ms":301,"down":true}', "jitter_ms", "0..300"),
    ('{"t":"impair","loss":0,"burst":1,"jitter_ms":true,"down":true}', "jitter_ms", "number"),
    ('{"t":"impair","loss":0,"burst":1,"jitter_ms":0,"down":1}', "down", "true or false"),
]


@pytest.mark.parametrize(("text", "field", "why"), BAD, ids=lambda value: str(value)[:24])
def test_a_bad_message_names_its_field(text: str, field: str, why: str) -> None:
    with pytest.raises(BadMessage) as caught:
        read_message(text)
    assert caught.value.field == field
    assert why in str(caught.value)
    answer = caught.value.as_message()
    assert (answer["t"], answer["code"], answer["field"]) == ("error", "bad_message", field)
    assert len(json.dumps(answer)) < 500, "an answer never repeats what was sent"


NOISE = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(),
    lambda c: st.lists(c, max_size=3) | st.dictionaries(st.text(max_size=8), c, max_size=4),
    max_leaves=8,
) | st.fixed_dictionaries({"t": st.sampled_from(sorted(REQUIRED))})


@given(NOISE)
def test_noise_is_refused_or_read_and_nothing_else(value: object) -> None:
    try:
        message = read_message(json.dumps(value))
    except BadMessage as bad:
        assert bad.field
    else:
        assert message["t"] in REQUIRED


@pytest.mark.parametrize(("pcm", "fine"), [(b"", False), (b"a", False), (b"ab", True)])
def test_a_frame_holds_whole_samples(pcm: bytes, fine: bool) -> None:
    if fine:
        check_frame(pcm)
        return
    with pytest.raises(BadMessage) as caught:
        check_frame(pcm)
    assert (caught.value.code, caught.value.field) == ("bad_frame", "pcm")


def test_a_rate_window_is_full_at_one_too_many_and_forgets() -> None:
    window = RateWindow.of(3, 10.0)
    assert [window.full(now) for now in (0, 1, 2)] == [False] * 3
    assert window.full(9.0)
    assert not window.full(11.5), "the one at 0 and 1 are forgotten"
