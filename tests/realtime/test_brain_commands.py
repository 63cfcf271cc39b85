"""Commands on a realtime call: told as the cascade tells them, done when their effect is over."""

from __future__ import annotations

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
)
from voxglove.media import brain as port
from voxglove.media import events as call
from voxglove.realtime.port import Capabilities
from voxglove.realtime.scripted import Reply, ScriptedAdapter

QUESTION = Says(0.3, 0.9, "hello there")


def gives(when: float, command: port.Command, done: list[int] | None = None) -> Does:
    """Give `command`; `done` takes the input sample at which its future was done."""

    def act(rung: Rung) -> None:
        future = rung.command(command)
        if done is not None:
            future.add_done_callback(lambda _: done.append(rung.live.at))

    return Does(when, act)


def told(rung: Rung) -> list[str]:
    """Cuts, turns and typed words, in order."""
    names = {call.Interruption: "interruption", call.Response: "response", call.Turn: "turn"}
    return [
        f"{names[type(event)]} {event.event} {event.turn}"
        for _, event in rung.events
        if isinstance(event, call.Interruption | call.Response | call.Turn)
    ]


async def test_what_is_typed_cuts_the_answer_first_and_is_done_when_its_own_was_heard() -> None:
    done: list[int] = []
    rung = await hold([QUESTION], does=[gives(2.2, port.Say("and this"), done)], seconds=5.0)
    assert told(rung) == [
        "turn committed 1",
        "response started 1",
        "response audio 1",
        "interruption cut 1",
        "response cut 1",
        "turn committed 2",
        "response started 2",
        "response audio 2",
        "response ended 2",
    ]
    assert [one.reason for one in rung.of(call.Interruption)] == ["command"]
    assert done == [rung.when(call.Response, event="ended", gen=2)], rung.told()


async def test_blank_text_is_no_turn() -> None:
    rung = await hold(does=[gives(0.5, port.Say("  "))], seconds=2.0)
    assert told(rung) == [] and not rung.of(call.Problem)
    assert rung.futures[0].done() and rung.futures[0].exception() is None


async def test_a_narration_is_no_answer_and_closes_the_microphone_only_for_itself() -> None:
    done: list[int] = []
    rung = await hold(
        [Says(1.0, 1.5, noticed=False), Says(3.0, 3.6, "hello there")],
        replies=["kilo lima mike november oscar papa", REPLY],
        does=[gives(0.5, port.Narrate("kilo lima mike november oscar papa"), done)],
        seconds=7.5,
    )
    first, *_ = rung.pieces()
    assert first.text.startswith("kilo") and abs(done[0] - first.stop) <= 2 * RATE // 50
    assert rung.when(call.Vad) > done[0], "the microphone was open under the narration"
    said = [one for one in rung.of(call.Transcript) if one.role == "assistant"]
    assert [(one.source, one.turn, one.gen) for one in said] == [
        ("narration", None, None),
        ("speech", 1, 1),
    ]
    assert rung.modes[:2] == ["listening", "thinking"], rung.told()
    assert [message.text for message in rung.answers] == [REPLY]


async def test_a_narration_after_an_answer_does_not_belong_to_it() -> None:
    rung = await hold([QUESTION], does=[gives(2.2, port.Narrate("wait"))], seconds=6.0)
    ended = rung.when(call.Response, event="ended", gen=1)
    assert ended < rung.when(call.Transcript, source="narration"), rung.told()
    assert rung.of(call.Response)[-1].text == REPLY
    assert rung.of(call.Transcript)[-1].gen is None


@pytest.mark.parametrize("after_s", [0.05, 0.5])
@pytest.mark.parametrize("able", [ABLE_16, DEAF_16], ids=["may cancel", "may not"])
async def test_an_answer_interrupted_before_it_begins_is_not_spoken(
    able: Capabilities, after_s: float
) -> None:
    rung = await hold(
        [QUESTION],
        replies=[Reply(text=REPLY, after_s=after_s)],
        does=[gives(1.43, port.Interrupt())],
        adapter=ScriptedAdapter(capabilities=able),
        seconds=5.0,
    )
    assert not rung.pieces(), rung.told()
    assert rung.responses == [("started", 1), ("cut", 1)]
    assert all(not one.heard for one in rung.answers), "stored as heard, and nothing was"


async def test_a_clients_own_reflex_cuts_what_is_audible_and_else_goes_on() -> None:
    does = [gives(2.2, port.ClientBargeIn()), gives(3.5, port.ClientBargeIn())]
    rung = await hold([QUESTION], does=does, seconds=5.0)
    assert [(one.event, one.reason) for one in rung.of(call.Interruption)] == [
        ("cut", "command"),
        ("resumed", "command"),
    ]
    assert 2 * WORD < rung.heard(REPLY) < 4 * WORD


@pytest.mark.parametrize("when", [0.0, 0.5, 1.43, 2.2, 4.0])
async def test_every_command_is_done_in_every_state(when: float) -> None:
    commands: list[port.Command] = [
        port.Respond("go on"),
        port.Inject("context", "it rains"),
        port.Inject("user", "tell me"),
        port.Narrate("kilo"),
        port.Mute(on=True),
        port.Mute(on=False),
        port.Commit(),
        port.PushToTalk(down=True),
        port.PushToTalk(down=False),
        port.ClientBargeIn(),
        port.Say("and this"),
        port.Interrupt(),
    ]
    rung = await hold([QUESTION], does=[gives(when, one) for one in commands], seconds=14.0)
    left = [c for c, f in zip(commands, rung.futures, strict=True) if f.cancelled() or not f.done()]
    assert not left, rung.told()
    started = [gen for event, gen in rung.responses if event == "started"]
    assert started == [gen for event, gen in rung.responses if event in ("ended", "cut")]
