"""What breaks under a call, and the call that goes on: carriers, recognisers, voices, models.

Spec/voice 10 (codes), rows 1, 2, 4, 5, 9; field faults 2, 12, 34; DESIGN invariants 1, 4, 10.
"""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from tests.support.calls import RATE, CallScript, Does, Held, Live, Says, SpanVad, at, hold_call
from tests.support.invariants import check_all
from voxglove.adapters.models.scripted import Fail, ScriptedModel, Text, say
from voxglove.adapters.stt.port import Problem as SttProblem
from voxglove.adapters.stt.scripted import ScriptedStt, Spoken, SttFaults
from voxglove.adapters.transports.fixture import FixtureTransport
from voxglove.adapters.tts.scripted import ScriptedVoice, Timing, TtsFaults
from voxglove.core.builder import Glove
from voxglove.core.errors import ModelError
from voxglove.media import brain, events
from voxglove.media.call import Call, CallPolicy
from voxglove.media.format import AudioFormat
from voxglove.media.transport import CallInfo
from voxglove.pipelines.machine import MachineConfig
from voxglove.pipelines.pipeline import PipelineParts, VoicePipeline

HELLO = Says(0.3, 0.9, "Hello?")
REPLY = "alpha bravo charlie delta echo foxtrot golf hotel."


def problems(held: Held) -> list[str]:
    """Codes of the problems told."""
    return [event.code for event in held.of(events.Problem)]


# ---- carriers


@pytest.mark.parametrize("lost", [1.3, 1.7, 2.2, 2.9, 3.5])
async def test_an_answer_goes_on_where_it_stopped_on_the_next_carrier(lost: float) -> None:
    held = await hold_call(
        CallScript(
            caller=[HELLO],
            model=[REPLY],
            seconds=20,
            does=[
                Does(0.0, lambda live: live.line.fail_at(at(lost))),
                Does(lost + 2.0, lambda live: live.reattach(5.0)),
            ],
        )
    )
    check_all(held)
    assert [event.state for event in held.of(events.LineEvent)] == [
        "attached",
        "detached",
        "attached",
        "closed",
    ]
    assert held.answers[0].heard == REPLY, held.told()
    assert not held.answers[0].interrupted
    held.model.verify()


async def test_a_second_carrier_of_another_rate_goes_on_with_the_answer() -> None:
    held = await hold_call(
        CallScript(
            caller=[HELLO],
            model=[REPLY],
            seconds=20,
            does=[
                Does(0.0, lambda live: live.line.fail_at(at(2.0))),
                Does(3.0, lambda live: live.reattach(5.0, AudioFormat(rate=24_000))),
            ],
        )
    )
    assert held.answers[0].heard == REPLY, held.told()
    second = held.lines[1].heard()
    before = held.pieces(0)[-1].end
    loud = np.flatnonzero(second)
    rest = (8 * 0.3 * RATE - before) / RATE
    assert abs((loud[-1] - loud[0]) / 24_000 - rest) < 0.01


async def test_a_caller_who_does_not_come_back_ends_the_call() -> None:
    held = await hold_call(
        CallScript(
            caller=[HELLO],
            model=[REPLY],
            seconds=20,
            policy=CallPolicy(linger_s=3),
            does=[Does(0.0, lambda live: live.line.fail_at(at(2.2)))],
        )
    )
    check_all(held)
    assert held.reason == "linger"
    answer = held.answers[0]
    assert answer.interrupted and answer.heard and answer.heard.split() != REPLY.split()


@pytest.mark.parametrize("output", [8_000, 24_000, 48_000])
async def test_the_whole_answer_sounds_on_a_carrier_of_any_rate(output: int) -> None:
    held = await hold_call(
        CallScript(caller=[HELLO], model=[REPLY], seconds=5, output=AudioFormat(rate=output))
    )
    assert held.answers[0].heard == REPLY
    loud = np.flatnonzero(np.abs(held.lines[0].heard()) > 200)
    assert abs((loud[-1] - loud[0]) / output - 8 * 0.3) < 0.01


STATES = {
    "listening": 0.1,
    "tentative": 0.42,
    "user speaking": 0.7,
    "holding": 1.05,
    "thinking": 1.5,
    "speaking": 2.4,
    "paused": 2.75,
    "after a cut": 3.0,
    "second holding": 3.3,
}


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("continuous", [False, True], ids=["gated", "continuous"])
async def test_a_hang_up_in_any_state_leaves_nothing(state: str, continuous: bool) -> None:
    """The leak check of every test watches tasks, timers and sockets."""
    held = await hold_call(
        CallScript(
            caller=[HELLO, Says(2.6, 3.1, "Tell me more?")],
            model=[say(Text(REPLY, 90)), "echo."],
            seconds=STATES[state],
            continuous=continuous,
        )
    )
    check_all(held)
    assert held.took_to_end <= 0.1, held.took_to_end


async def test_voice_row_004_cancelling_a_call_mid_turn_ends_idle_and_keeps_the_truth() -> None:
    live = Rig(model=[REPLY])
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(2.5):
            await live.call.run()
    modes = [event.mode for _, event in live.timeline if isinstance(event, events.Mode)]
    assert modes == ["listening", "thinking", "speaking", "idle"], live.timeline
    stored = await live.agent.store.get_messages()
    assert stored[1].interrupted and stored[1].heard
    assert live.agent.subscriber_statistics() == []


# ---- a bare rig: the brain's own life, without a script's end


class Rig:
    """One pipeline on one call, started by the test."""

    def __init__(self, model: list[str], stt_faults: SttFaults | None = None) -> None:
        self.timeline: list[tuple[int, events.CallEvent]] = []
        self.connects: list[ScriptedStt] = []
        self.agent = Glove(model=ScriptedModel(model)).build()

        def stt() -> ScriptedStt:
            faults = stt_faults if not self.connects else None
            self.connects.append(ScriptedStt([Spoken(at(0.3), at(0.9), "Hello?")], faults=faults))
            return self.connects[-1]

        self.brain = VoicePipeline(
            PipelineParts(
                agent=self.agent,
                stt=stt,
                tts=ScriptedVoice(timing=Timing(word_ms=300)),
                vad=lambda: SpanVad([(at(0.3), at(0.9), 0.9)]),
                echo_guard=False,
            ),
            MachineConfig(detector=False),
        )
        self.call = self.make()

    def make(self) -> Call:
        """A fresh call over the same brain."""
        call = Call(self.brain, CallInfo(call_id="rig"))
        call.subscribe(lambda sample, event: self.timeline.append((sample, event)))
        call.attach(FixtureTransport(np.zeros(at(3.0), np.int16), hangup_after_s=2.0))
        return call


async def test_voice_row_001_a_pipeline_serves_one_line_at_a_time() -> None:
    rig = Rig(model=[REPLY])
    async with asyncio.TaskGroup() as group:
        group.create_task(rig.call.run())
        await asyncio.sleep(0.5)
        second = rig.make()
        assert await second.run() == "error"
        assert any(
            isinstance(event, events.Problem) and "runs already" in event.message
            for _, event in rig.timeline
        )
    assert "ended" in [e.event for _, e in rig.timeline if isinstance(e, events.Response)]


async def test_voice_row_005_after_a_failed_connect_a_second_run_works_once() -> None:
    rig = Rig(model=[REPLY], stt_faults=SttFaults(failing_connects=1))
    assert await rig.call.run() == "error"
    told = [e for _, e in rig.timeline if isinstance(e, events.Problem)]
    assert [e.code for e in told] == ["ERR_STT_CONNECTION"] and told[0].fatal
    assert rig.agent.turn_queue.current_hold is None
    rig.timeline.clear()
    assert await rig.make().run() == "remote_hangup"
    turns = [e.text for _, e in rig.timeline if isinstance(e, events.Turn)]
    assert turns == ["Hello?"]
    assert [e.mode for _, e in rig.timeline if isinstance(e, events.Mode)][-1] == "idle"


async def test_voice_row_002_the_order_of_a_start() -> None:
    held = await hold_call(CallScript(seconds=0.5))
    kinds = [(type(e).__name__, getattr(e, "state", getattr(e, "mode", ""))) for e in
             (event for _, event in held.timeline)]  # fmt: skip
    assert kinds[:2] == [("LineEvent", "attached"), ("Mode", "listening")], kinds


def test_voice_row_050_a_command_before_the_call_raises() -> None:
    rig = Rig(model=[])
    with pytest.raises(RuntimeError, match="not running"):
        rig.call.command(brain.Narrate("too early"))


# ---- recognisers


async def test_voice_row_049_a_recogniser_that_closes_is_told_and_revived() -> None:
    held = await hold_call(
        CallScript(
            caller=[Says(4.0, 4.6, "Hello?")],
            model=[REPLY],
            seconds=9,
            stt_faults=SttFaults(closed_at=at(0.5), failing_connects=0),
            continuous=True,
        )
    )
    check_all(held)
    assert "ERR_STT_DISCONNECTED" in problems(held)
    assert held.turns == ["Hello?"], held.told()


async def test_a_problem_of_the_recogniser_is_told_and_the_call_lives() -> None:
    faults = SttFaults(problems=[(at(0.2), SttProblem("ERR_STT_RATE", "slow down"))])
    held = await hold_call(
        CallScript(caller=[HELLO], model=[REPLY], seconds=5, stt_faults=faults, continuous=True)
    )
    check_all(held)
    assert problems(held) == ["ERR_STT_RATE"]
    assert held.answers[0].heard == REPLY


@pytest.mark.parametrize("late_ms", [200, 1_000, 3_500, 5_000])
async def test_a_late_final_commits_its_turn_and_is_answered(late_ms: float) -> None:
    """Field faults 11, 12."""
    held = await hold_call(
        CallScript(
            caller=[HELLO],
            model=[REPLY],
            seconds=11,
            stt_faults=SttFaults(late_finals_ms={0: late_ms}),
        )
    )
    check_all(held)
    assert held.turns == ["Hello?"], held.told()
    assert held.answers[0].heard == REPLY


async def test_a_late_final_never_leaks_into_the_next_turn() -> None:
    held = await hold_call(
        CallScript(
            caller=[HELLO, Says(1.5, 2.1, "Anyone there?")],
            model=["alpha.", "bravo.", "charlie."],
            seconds=9,
            stt_faults=SttFaults(late_finals_ms={0: 900}),
        )
    )
    check_all(held)
    said = [message.text for message in held.history if message.is_user_turn]
    assert " ".join(said) == "Hello? Anyone there?", held.told()


@pytest.mark.parametrize("fault", ["blank_finals", "lost_finals"])
async def test_voice_row_010_a_blank_or_lost_final_makes_no_turn(fault: str) -> None:
    faults = SttFaults(**{fault: {0}})  # type: ignore[arg-type]
    held = await hold_call(
        CallScript(
            caller=[HELLO, Says(7.0, 7.6, "Are you there?")],
            model=[REPLY],
            seconds=11,
            stt_faults=faults,
        )
    )
    check_all(held)
    assert "Are you there?" in held.turns[-1], held.told()
    assert len(held.turns) == 1


# ---- voices


async def test_voice_row_009_a_voice_that_cannot_be_opened_is_told_and_the_call_lives() -> None:
    held = await hold_call(
        CallScript(
            caller=[HELLO, Says(3.0, 3.6, "Again?")],
            model=[REPLY, "kilo lima."],
            # The one that was made ready ahead of time fails unnoticed, then the answer's own.
            tts_faults={0: TtsFaults(open_fails=True), 1: TtsFaults(open_fails=True)},
            seconds=7,
        )
    )
    check_all(held)
    assert problems(held) == ["ERR_TTS_CONNECTION"], held.told()
    assert held.modes[:3] == ["listening", "thinking", "listening"]
    assert held.history[1].heard == "" and held.history[1].interrupted
    assert held.answers[-1].heard == "kilo lima."


async def test_a_voice_that_breaks_off_ends_the_answer_with_what_was_heard() -> None:
    held = await hold_call(
        CallScript(
            caller=[HELLO, Says(5.0, 5.6, "Again?")],
            model=[REPLY, "kilo lima."],
            tts_faults={0: TtsFaults(fails_at=at(1.2))},
            seconds=9,
        )
    )
    check_all(held)
    assert problems(held) == ["ERR_TTS_CONNECTION"]
    assert held.history[1].interrupted
    heard = (held.history[1].heard or "").split()
    assert heard == REPLY.split()[: len(heard)] and 3 <= len(heard) <= 4, held.told()


async def test_a_voice_that_gives_no_sound_is_noticed_and_not_history() -> None:
    """Field fault 34."""
    held = await hold_call(
        CallScript(
            caller=[HELLO],
            model=[REPLY],
            tts_faults={0: TtsFaults(stalls_at=0)},
            seconds=16,
        )
    )
    check_all(held)
    assert problems(held) == ["ERR_TTS_STALLED"], held.told()
    assert held.history[1].heard == ""
    assert held.when(events.Problem) <= at(1.3 + 12.1)


async def test_a_voice_that_stalls_after_all_its_sound_is_taken_as_done() -> None:
    held = await hold_call(
        CallScript(
            caller=[HELLO],
            model=[REPLY],
            tts_faults={0: TtsFaults(never_done=True)},
            seconds=18,
        )
    )
    check_all(held)
    assert problems(held) == []
    assert held.answers[0].heard == REPLY


@pytest.mark.parametrize("silent_s", [25.0])
async def test_voice_row_036_a_model_that_is_slow_between_sentences_is_no_stall(
    silent_s: float,
) -> None:
    held = await hold_call(
        CallScript(
            caller=[HELLO],
            model=[say("alpha bravo. ", Text("charlie delta.", silent_s * 500))],
            seconds=30,
        )
    )
    check_all(held)
    assert problems(held) == []
    assert held.answers[0].heard == "alpha bravo. charlie delta.", held.told()


# ---- models


async def test_a_model_that_fails_is_told_and_the_next_turn_is_answered() -> None:
    held = await hold_call(
        CallScript(
            caller=[HELLO, Says(3.0, 3.6, "Again?")],
            model=[say("alpha bravo. ", Fail(ModelError("overloaded"), 1_500)), "kilo lima."],
            seconds=7,
        )
    )
    check_all(held)
    assert problems(held) == ["ERR_GLOVE_REQUEST"], held.told()
    assert held.history[1].text.strip() == "alpha bravo."
    assert held.answers[-1].heard == "kilo lima."
    assert held.modes[-2] == "listening"


async def test_a_live_call_stays_alive_after_every_problem_in_a_row() -> None:
    def again(live: Live) -> None:
        live.line.push_data({"t": "noise"})

    held = await hold_call(
        CallScript(
            caller=[HELLO, Says(4.0, 4.6, "Two?"), Says(8.0, 8.6, "Three?")],
            model=[say(Fail(ModelError("down"))), REPLY, "kilo lima."],
            tts_faults={0: TtsFaults(open_fails=True), 1: TtsFaults(open_fails=True)},
            does=[Does(1.0, again)],
            seconds=12,
        )
    )
    check_all(held)
    assert held.answers[-1].heard == "kilo lima.", held.told()
