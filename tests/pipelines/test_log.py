"""The turn machine's inputs as lines: every event comes back as it was."""

from __future__ import annotations

import json
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voxglove.pipelines.log import TurnLogError, decode, encode
from voxglove.pipelines.vocabulary import Tick, TurnEvent, Verdict, Voice

LEVEL = st.floats(0, 1)
EVENTS = [
    st.builds(Tick, at=st.integers(0), prob=LEVEL, level=LEVEL) if kind is Tick else st.builds(kind)
    for kind in get_args(TurnEvent)
]


@settings(max_examples=50)
@given(st.one_of(EVENTS))
def test_an_event_survives_its_line(event: TurnEvent) -> None:
    line = json.dumps(encode(event), ensure_ascii=False)
    assert decode(json.loads(line)) == event


def test_a_line_says_what_happened_in_words() -> None:
    assert encode(Voice(at=320, kind="start", position=160)) == {
        "event": "Voice",
        "at": 320,
        "kind": "start",
        "position": 160,
    }


def test_fields_with_defaults_may_be_missing() -> None:
    assert decode({"event": "Verdict", "at": 1, "query": 2}) == Verdict(at=1, query=2)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ({"type": "vad", "at": 0}, "use a --record file"),
        ({"event": "Vad", "at": 0}, "'Vad' is no turn event"),
        ({"event": "Tick", "at": 0, "loud": 1}, "unknown field 'loud'"),
        ({"event": "Voice", "at": 0}, "kind"),
    ],
)
def test_what_is_no_event_is_named(line: dict[str, object], says: str) -> None:
    with pytest.raises(TurnLogError, match=says):
        decode(line)
