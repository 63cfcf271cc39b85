"""What a stop leaves behind: late sound and words, a closed microphone, a hang-up anywhere."""

from __future__ import annotations

from functools import partial

import pytest

from tests.realtime.brain_calls import (
    ABLE_16,
    DEAF_16,
    RATE,
    REPLY,
    WORD,
    Does,
    Rung,
    Says,
    hold,
    voiced,
)
from tests.support.timeline_schema import faults
from voxglove.media import brain as port
from voxglove.media import events as call
from voxglove.media.pcm import Samples
from voxglove.media.vad.port import VadEvent
from voxglove.realtime.commands import RequestResponse
from voxglove.realtime.events import (
    Audio,
    ItemDone,
    RealtimeEvent,
    ResponseDone,
    ResponseStarted,
    UserTurn,
    Words,
)
from voxglove.realtime.port import Capabilities
from voxglove.realtime.scripted import Reply, ScriptedAdapter

QUESTION = Says(0.3, 0.9, "hello there")


def reports(*events: RealtimeEvent) -> list[Does]:
    """What a provider reports, 100 ms apart from 1.0 s on."""
    return [Does(1.0 + 0.1 * n, partial(_report, event)) for n, event in enumerate(events)]


def _report(event: RealtimeEvent, rung: Rung) -> None:
    rung.adapter.current.emit(event)


@pytest.mark.parametrize("able", [ABLE_16, DEAF_16], ids=["may cancel", "may not"])
async def test_late_sound_of_a_response_that_was_stopped_before_it_sounded_is_not_heard(
    able: Capabilities,
) -> None:
    """The first sound was on its way when the response was stopped."""
    late = voiced(REPLY, RATE)
    rung = await hold(
        does=[
            *reports(
                ResponseStarted("r1"),
                Words("assistant", "i1", REPLY),
                Audio("i1", late[:6_400]),
                Audio("i1", late[6_400:]),
                ItemDone("i1"),
                Audio("i2", late),
                ItemDone("i2"),
                ResponseDone("r1", "cancelled"),
                ResponseStarted("r2"),
                Audio("i3", voiced("ok kilo", RATE)),
                Words("assistant", "i3", "ok kilo", True),
                ItemDone("i3"),
                ResponseDone("r2"),
            ),
            Does(1.15, lambda rung: rung.command(port.Interrupt())),
            Does(0.1, lambda rung: rung.spoken.extend([REPLY, "ok kilo"])),
        ],
        adapter=ScriptedAdapter(capabilities=able),
        seconds=4.0,
    )
    assert rung.heard(REPLY) == 0, rung.told()
    assert rung.heard("ok kilo") == 2 * WORD, rung.told()
    assert [one.heard for one in rung.answers] == ["", "ok kilo"]
    assert rung.responses == [
        ("started", 1),
        ("cut", 1),
        ("started", 2),
        ("audio", 2),
        ("ended", 2),
    ]


@pytest.mark.parametrize("closing", [port.Mute(on=True), port.Narrate("please wait a moment")])
async def test_a_microphone_that_closes_ends_what_was_being_said(closing: port.Command) -> None:
    """The voice under the answer had paused it, and is not heard any more."""
    rung = await hold(
        [QUESTION, Says(2.0, 4.0, noticed=False)],
        does=[Does(2.2, lambda rung: rung.command(closing))],
        seconds=9.0,
    )
    assert rung.heard(REPLY) == 8 * WORD, rung.told()
    assert [one.event for one in rung.of(call.Interruption)] == ["paused", "resumed"]
    assert not rung.speaks_at_end, "the session still waits for the caller to stop"


async def test_late_words_of_the_answered_turn_do_not_cut_the_answer() -> None:
    """A recogniser's words come seconds after its turn was answered, just when somebody coughs."""
    rung = await hold(
        [Says(1.6, 1.78, noticed=False)],
        does=[
            Does(0.5, lambda rung: rung.adapter.current.emit(UserTurn("u1", 0, 400))),
            Does(0.6, lambda rung: rung.adapter.current.tell(RequestResponse())),
            Does(1.75, lambda rung: rung.adapter.current.emit(Words("user", "u1", "table", True))),
        ],
        seconds=5.0,
    )
    assert rung.heard(REPLY) == 8 * WORD, rung.told()
    assert [one.event for one in rung.of(call.Interruption)] == ["paused", "resumed"]


@pytest.mark.parametrize("when", [0.5, 1.0, 1.42, 1.5, 1.7, 2.2, 3.0])
async def test_a_hang_up_in_any_state_ends_everything_and_says_how_far_it_came(when: float) -> None:
    rung = await hold(
        [QUESTION, Says(2.0, 2.8, noticed=False)],
        does=[Does(when, Rung.hang_up)],
        seconds=9.0,
    )
    assert 0 <= rung.took_to_end < 2
    started = [gen for event, gen in rung.responses if event == "started"]
    assert started == [gen for event, gen in rung.responses if event in ("ended", "cut")]
    for answer in rung.answers:
        assert answer.playback == "settled", rung.told()
        assert abs(rung.heard(REPLY) / WORD - len((answer.heard or "").split())) <= 1
    modes = rung.modes
    assert modes[-1] == "idle" and "idle" not in modes[:-1], modes
    if when in (1.5, 1.7, 2.2):
        assert modes[-2:] == ["speaking", "idle"], modes
    assert not faults(rung.lines_told()), faults(rung.lines_told())


@pytest.mark.parametrize("length", [0.1, 0.6])
async def test_no_answer_begins_under_a_voice(length: float) -> None:
    """Somebody speaks while the model still thinks, and the provider has not noticed yet."""
    rung = await hold(
        [QUESTION, Says(1.6, 1.6 + length, noticed=False)],
        replies=[Reply(text=REPLY, after_s=0.35)],
        seconds=7.0,
    )
    over = [at for at, event in rung.events if isinstance(event, call.Vad)][-1]
    assert rung.pieces()[0].at >= over, rung.told()
    assert rung.heard(REPLY) == 8 * WORD
    assert not rung.of(call.Interruption), "nothing was to be heard that could be interrupted"


class _Broken:
    """A detector whose runtime fails."""

    prob, voiced, pause = 0.0, False, None

    def process(self, frame: Samples, at: int) -> list[VadEvent]:
        raise RuntimeError("no such model")

    def duck(self, on: bool) -> None: ...

    def reset(self) -> None: ...


async def test_a_broken_detector_is_told_and_the_call_goes_on_without() -> None:
    rung = await hold([QUESTION], vad=_Broken, seconds=4.5)
    assert rung.heard(REPLY) == 8 * WORD, rung.told()
    assert [one.code for one in rung.of(call.Problem)] == ["ERR_VAD"]
