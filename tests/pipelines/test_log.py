"""The turn machine's inputs as lines: every event comes back as it was."""

from __future__ import annotations

import json
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voxglove.media.turns.bargein import BargeInConfig
from voxglove.pipelines.commit import TurnConfig
from voxglove.pipelines.detectors.heuristic import Tiers
from voxglove.pipelines.log import (
    TurnLogError,
    decode,
    decode_config,
    encode,
    encode_config,
    read_log,
)
from voxglove.pipelines.state import MachineConfig
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


CHANGED = MachineConfig(
    turn=TurnConfig(fresh_ms=7, start_muted=True, tiers=Tiers(statement_ms=1)),
    barge_in=BargeInConfig(by_request=True),
    continuous=True,
)


@pytest.mark.parametrize("config", [MachineConfig(), CHANGED])
def test_a_log_holds_what_the_machine_decided_by(config: MachineConfig) -> None:
    lines = [encode_config(config), encode(Tick(at=320))]
    found, events = read_log(json.loads(json.dumps(line)) for line in lines)
    assert found == config
    assert list(events) == [Tick(at=320)]


def test_numbers_that_a_log_does_not_name_have_their_defaults() -> None:
    assert decode_config({"config": {"turn": {"fresh_ms": 7}}}).turn == TurnConfig(fresh_ms=7)


@pytest.mark.parametrize(
    "line",
    [
        {},
        {"event": "Tick", "at": 0},
        {"config": 1},
        {"config": {"mood": 1}},
        {"config": {"turn": {"fresh_ms": -1}}},
    ],
)
def test_a_log_without_a_usable_config_is_refused(line: dict[str, object]) -> None:
    with pytest.raises(TurnLogError, match="config"):
        read_log([line])
