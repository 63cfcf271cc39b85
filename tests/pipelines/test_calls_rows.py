"""The behaviour rows of spec/voice 21 (as amended by 24) that need a whole call, one by one."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.calls import RATE, CallScript, Does, Held, Live, Says, at, hold_call
from tests.support.invariants import check_all
from voxglove.adapters.models.scripted import Call, Step, Text, say
from voxglove.adapters.transports.fixture import Estimate
from voxglove.adapters.tts.scripted import Timing, TtsFaults
from voxglove.core.config import AgentConfig, CompactionConfig
from voxglove.core.external import AgentEvent
from voxglove.core.tool import Tool, ToolContext
from voxglove.core.usage import Usage
from voxglove.media import brain, events
from voxglove.pipelines import vocabulary as voc
from voxglove.pipelines.commit import TurnConfig
from voxglove.pipelines.speech import SpeechFailed

HELLO = Says(0.3, 0.9, "Hello?")
REPLY = "alpha bravo charlie delta echo foxtrot golf hotel."
SCHEMA = {"type": "object", "properties": {}}
BOTH = pytest.mark.parametrize("continuous", [False, True], ids=["gated", "continuous"])


def sleeper(seconds: float, name: str = "look") -> Tool:
    """A tool that takes `seconds`."""

    async def do(value: object) -> str:
        await asyncio.sleep(seconds)
        return "found"

    return Tool(name=name, description="Look.", do=do, json_schema=SCHEMA)


def given(held: Held) -> list[tuple[int, int]]:
    """Spans of audio the recogniser was given, as far as it has not settled them."""
    return held.stt[0]._ear._spans  # noqa: SLF001


# ---- state


@BOTH
async def test_voice_row_006_modes_of_a_plain_turn(continuous: bool) -> None:
    held = await hold_call(
        CallScript(caller=[HELLO], model=[REPLY], seconds=5, continuous=continuous)
    )
    check_all(held)
    assert held.modes == ["listening", "thinking", "speaking", "listening", "idle"]


async def test_voice_row_007_a_turn_without_text_opens_no_voice() -> None:
    held = await hold_call(
        CallScript(
            caller=[HELLO], model=[say(Call("look")), say("")], tools=[sleeper(0.5)], seconds=4
        )
    )
    check_all(held)
    assert held.modes == ["listening", "thinking", "listening", "idle"]
    assert not any(voice.texts for voice in held.voices)


async def test_voice_row_008_never_listening_between_preamble_and_the_end_of_the_request() -> None:
    held = await hold_call(
        CallScript(
            caller=[HELLO],
            model=[say("alpha bravo.", Call("look")), "charlie delta."],
            tools=[sleeper(10)],
            seconds=15,
        )
    )
    check_all(held)
    modes = ["listening", "thinking", "speaking", "thinking", "speaking", "listening", "idle"]
    assert held.modes == modes, held.told()


@BOTH
async def test_voice_row_011_partials_while_the_agent_speaks_come_after_the_cut(
    continuous: bool,
) -> None:
    held = await hold_call(
        CallScript(
            caller=[HELLO, Says(2.0, 3.0, "please change that now?")],
            model=[REPLY, "kilo."],
            seconds=6,
            continuous=continuous,
        )
    )
    check_all(held)
    cut = held.when(events.Interruption, event="cut")
    partials = [
        sample
        for sample, event in held.timeline
        if isinstance(event, events.Transcript) and event.partial and event.role == "user"
    ]
    during = [sample for sample in partials if sample > held.when(events.Response, event="audio")]
    assert during and all(sample >= cut for sample in during), held.told()


async def test_voice_row_012_two_model_responses_are_one_response_with_the_full_text() -> None:
    held = await hold_call(
        CallScript(
            caller=[HELLO],
            model=[say("alpha bravo.", Call("look")), "charlie delta."],
            tools=[sleeper(0.2)],
            seconds=6,
        )
    )
    check_all(held)
    ended = [event for event in held.of(events.Response) if event.event == "ended"]
    assert len(ended) == 1
    assert (ended[0].text or "").split() == ["alpha", "bravo.", "charlie", "delta."]
    assert ended[0].text == "alpha bravo. charlie delta.", ended[0].text


# ---- the gate


async def test_voice_row_013_a_noise_burst_gives_the_recogniser_nothing() -> None:
    held = await hold_call(CallScript(caller=[Says(1.0, 1.2, "")], seconds=3))
    check_all(held)
    assert given(held) == []
    assert [event.event for event in held.of(events.Vad)] == ["start", "misfire"]


async def test_voice_row_014_confirmed_speech_is_given_once_in_order_with_pre_roll() -> None:
    held = await hold_call(CallScript(caller=[Says(2.0, 3.0, "alpha bravo?")], seconds=3.1))
    ((start, end),) = given(held)
    onset = held.of(events.Vad)[0].position
    assert start == onset - at(0.8), (start, onset)
    assert end >= at(3.0)


async def test_voice_row_015_speech_that_is_never_confirmed_fails_open_after_5_s() -> None:
    """Loud enough to begin, then too faint for a decision either way."""
    unsure = [Says(1.0, 1.13, ""), Says(1.13, 7.5, "alpha bravo?", prob=0.4)]
    held = await hold_call(CallScript(caller=unsure, seconds=7))
    assert [event.event for event in held.of(events.Vad)] == ["start"], held.told()
    (span,) = given(held)
    assert span[0] <= at(1.0) and span[1] >= at(6.9), span


async def test_voice_row_016_speech_end_flushes_once_and_closes_the_gate() -> None:
    held = await hold_call(
        CallScript(caller=[Says(2.0, 3.0, "alpha bravo?")], model=["kilo."], seconds=6)
    )
    check_all(held)
    flushes = [one for _, one in held.effects() if isinstance(one, voc.FlushStt)]
    assert len(flushes) == 1
    closes = [one for _, one in held.effects() if isinstance(one, voc.Gate) and one.move == "close"]
    assert closes
    assert held.stt[0].unreported() == []


async def test_voice_row_017_without_a_gate_a_misfire_is_flushed() -> None:
    held = await hold_call(CallScript(caller=[Says(1.0, 1.2, "")], seconds=3, gating=False))
    check_all(held)
    assert [one for _, one in held.effects() if isinstance(one, voc.FlushStt)], held.told()


# ---- barge-in


@BOTH
async def test_voice_row_022_confirmed_speech_stops_sound_and_request_at_once(
    continuous: bool,
) -> None:
    """The same on a 50 ms grid: test_calls_sweeps."""
    held = await hold_call(
        CallScript(
            caller=[HELLO, Says(2.0, 2.8, "please change that?")],
            model=[say(Text(f"{REPLY} India ", 40), Text("never said.", 3_000)), "kilo."],
            seconds=6,
            continuous=continuous,
        )
    )
    check_all(held)
    decided = held.when(events.Interruption, event="cut")
    first = held.pieces()[0]
    assert first.at + first.end <= decided + at(0.06)
    assert "never" not in held.history[1].text, "the request went on"


@BOTH
async def test_voice_row_023_tentative_speech_pauses_and_a_misfire_resumes(
    continuous: bool,
) -> None:
    held = await hold_call(
        CallScript(
            caller=[HELLO, Says(2.0, 2.16, "")], model=[REPLY], seconds=5, continuous=continuous
        )
    )
    check_all(held)
    assert [event.event for event in held.of(events.Interruption)] == ["paused", "resumed"]
    assert "aborted" not in held.told()
    assert held.modes == ["listening", "thinking", "speaking", "listening", "idle"]


@BOTH
async def test_voice_row_026_a_300_ms_stop_is_committed_and_answered(continuous: bool) -> None:
    held = await hold_call(
        CallScript(
            caller=[HELLO, Says(2.0, 2.3, "stop")],
            model=[REPLY, "kilo."],
            seconds=7,
            continuous=continuous,
        )
    )
    check_all(held)
    assert held.turns == ["Hello?", "stop"], held.told()
    assert held.answers[-1].heard == "kilo."


@BOTH
@pytest.mark.parametrize("length", [0.16, 0.2])
async def test_voice_row_027_words_override_a_misfire(continuous: bool, length: float) -> None:
    held = await hold_call(
        CallScript(
            caller=[HELLO, Says(2.0, 2.0 + length, "no")],
            model=[REPLY, "kilo."],
            seconds=7,
            continuous=continuous,
        )
    )
    check_all(held)
    assert "misfire" in [event.event for event in held.of(events.Vad)]
    assert held.answers[0].interrupted, held.told()
    assert held.turns == ["Hello?", "no"], held.told()


async def test_voice_row_029_a_client_reflex_after_the_end_is_told_to_resume() -> None:
    held = await hold_call(
        CallScript(
            caller=[HELLO],
            model=[REPLY],
            does=[Does(5.0, lambda live: live.command(brain.ClientBargeIn()))],
            seconds=6,
        )
    )
    check_all(held)
    told = [(event.event, event.reason) for event in held.of(events.Interruption)]
    assert told == [("resumed", "command")]


async def test_a_client_reflex_while_speaking_cuts() -> None:
    held = await hold_call(
        CallScript(
            caller=[HELLO],
            model=[REPLY],
            does=[Does(2.0, lambda live: live.command(brain.ClientBargeIn()))],
            seconds=6,
        )
    )
    check_all(held)
    assert held.answers[0].interrupted


async def test_voice_row_030_words_of_the_model_after_a_cut_open_no_voice() -> None:
    held = await hold_call(
        CallScript(
            caller=[HELLO, Says(2.0, 2.6, "change that now?")],
            model=[say(Text("alpha bravo charlie delta. ", 50), Text("late later.", 900)), "kilo."],
            seconds=6,
        )
    )
    check_all(held)
    assert not any("late" in text for voice in held.voices for text in voice.texts)
    assert held.history[1].interrupted


@pytest.mark.parametrize(("length", "cut"), [(0.2, False), (0.4, True)])
async def test_voice_row_031_wordless_voice_of_250_ms_cuts(length: float, cut: bool) -> None:
    """The exact border (249, 251 ms) is the reducer's own test."""
    held = await hold_call(
        CallScript(caller=[HELLO, Says(2.0, 2.0 + length, "")], model=[REPLY], seconds=6)
    )
    check_all(held)
    assert ("cut" in [event.event for event in held.of(events.Interruption)]) is cut


# ---- voices


async def test_voice_row_035_three_model_responses_are_three_voices_each_flushed_once() -> None:
    held = await hold_call(
        CallScript(
            caller=[HELLO],
            model=[say("alpha.", Call("look")), say("bravo.", Call("look")), "charlie."],
            tools=[sleeper(0.1)],
            seconds=6,
        )
    )
    check_all(held)
    used = [voice for voice in held.voices if voice.texts]
    assert [voice.flushes for voice in used] == [1, 1, 1]


async def test_voice_row_036_a_25_s_tool_between_responses_is_no_failure() -> None:
    held = await hold_call(
        CallScript(
            caller=[HELLO],
            model=[say("alpha.", Call("look")), "bravo."],
            tools=[sleeper(25)],
            seconds=30,
        )
    )
    check_all(held)
    assert held.of(events.Problem) == []
    assert held.answers[0].heard == "alpha. bravo."


@pytest.mark.parametrize("open_ms", [50, 400])
async def test_voice_row_039_a_short_reply_is_spoken_though_the_voice_opens_late(
    open_ms: float,
) -> None:
    held = await hold_call(
        CallScript(
            caller=[HELLO],
            model=["ok."],
            seconds=4,
            tts_timing=Timing(word_ms=300, open_ms=open_ms),
        )
    )
    check_all(held)
    assert held.answers[0].heard == "ok."
    assert held.pieces()[0].end == at(0.3)


async def test_voice_row_040_responses_are_played_strictly_in_order() -> None:
    held = await hold_call(
        CallScript(
            caller=[HELLO],
            model=[say(REPLY, Call("look")), "india juliet."],
            tools=[sleeper(0.01)],
            seconds=6,
        )
    )
    check_all(held)
    assert [piece.response for piece in held.pieces()] == [0, 1], held.pieces()
    first, second = held.pieces()
    assert second.at - (first.at + first.end) < RATE * 150 // 1000  # field fault 71


# ---- narration and mute


def at_second(when: float, command: brain.Command) -> Does:
    return Does(when, lambda live: live.command(command))


async def test_voice_row_051_a_narration_mutes_and_resolves_at_its_end() -> None:
    held = await hold_call(
        CallScript(
            caller=[Says(0.6, 1.2, "Hello?")],
            does=[at_second(0.4, brain.Narrate("alpha bravo charlie delta."))],
            seconds=4,
        )
    )
    check_all(held)
    assert held.futures[0].done() and held.futures[0].exception() is None
    assert held.turns == [] and held.history == []
    assert held.pieces()[0].end == at(1.2)
    assert set(held.modes) <= {"listening", "idle"}


async def test_voice_row_052_an_interrupt_ends_a_narration_at_once() -> None:
    ended: list[float] = []

    def narrate(live: Live) -> None:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        done = live.command(brain.Narrate("alpha bravo charlie delta."))
        done.add_done_callback(lambda _: ended.append(loop.time() - begun))

    held = await hold_call(
        CallScript(does=[Does(0.4, narrate), at_second(1.0, brain.Interrupt())], seconds=3)
    )
    check_all(held)
    assert 0.59 < ended[0] < 0.65, ended
    assert held.futures[0].exception() is None


async def test_voice_row_053_two_narrations_follow_each_other_and_mute_is_restored() -> None:
    held = await hold_call(
        CallScript(
            caller=[Says(4.0, 4.6, "Hello?")],
            model=["kilo."],
            does=[
                at_second(0.4, brain.Narrate("alpha bravo.")),
                at_second(0.5, brain.Narrate("charlie delta.")),
            ],
            seconds=7,
        )
    )
    check_all(held)
    assert [piece.response for piece in held.pieces()][:2] == [0, 1]
    assert held.turns == ["Hello?"]


async def test_a_mute_during_a_narration_outlives_it() -> None:
    held = await hold_call(
        CallScript(
            caller=[Says(3.0, 3.6, "Hello?")],
            does=[
                at_second(0.4, brain.Narrate("alpha bravo.")),
                at_second(0.6, brain.Mute(on=True)),
            ],
            seconds=6,
        )
    )
    check_all(held)
    assert held.turns == []


async def test_a_narration_whose_voice_fails_rejects_and_the_call_lives() -> None:
    held = await hold_call(
        CallScript(
            caller=[Says(3.0, 3.6, "Hello?")],
            model=["kilo."],
            does=[at_second(0.4, brain.Narrate("alpha bravo."))],
            tts_faults={0: TtsFaults(open_fails=True)},
            seconds=6,
        )
    )
    check_all(held)
    assert isinstance(held.futures[0].exception(), SpeechFailed)
    assert held.answers[-1].heard == "kilo."


async def test_voice_row_054_a_muted_microphone_reaches_neither_vad_nor_recogniser() -> None:
    held = await hold_call(
        CallScript(
            caller=[HELLO], does=[at_second(0.1, brain.Mute(on=True))], seconds=3, continuous=True
        )
    )
    check_all(held)
    assert held.of(events.Vad) == [] and held.turns == []
    assert all(end <= at(0.14) for _, end in given(held))
    levels = [event for event in held.log if isinstance(event, voc.Tick)]
    assert len(levels) >= 149


async def test_voice_row_055_compaction_is_silent() -> None:
    summary = Step(("secret summary words.",), usage=Usage(tokens_in=10, tokens_out=5))
    held = await hold_call(
        CallScript(
            caller=[HELLO],
            model=[
                Step((Call("look"),), usage=Usage(tokens_in=90, tokens_out=5)),
                summary,
                Step(("alpha bravo.",), usage=Usage(tokens_in=10, tokens_out=5)),
            ],
            tools=[sleeper(0.1)],
            agent=AgentConfig(compaction=CompactionConfig(context_limit=100)),
            seconds=6,
        )
    )
    spoken = " ".join(text for voice in held.voices for text in voice.texts)
    assert "secret" not in spoken, held.told()
    assert "alpha bravo." in spoken
    assert [event.text for event in held.of(events.Response) if event.event == "ended"] == [
        "alpha bravo."
    ]


# ---- push-to-talk

MANUAL = TurnConfig(manual=True)


def talk(down: float, up: float) -> list[Does]:
    return [
        at_second(down, brain.PushToTalk(down=True)),
        at_second(up, brain.PushToTalk(down=False)),
    ]


async def test_voice_row_003_manual_turns_start_muted() -> None:
    held = await hold_call(CallScript(caller=[HELLO], turn=MANUAL, seconds=3))
    check_all(held)
    assert held.turns == [] and given(held) == []


async def test_voice_row_056_a_hold_commits_what_was_said_when_it_is_released() -> None:
    held = await hold_call(
        CallScript(
            caller=[Says(1.0, 1.8, "book a table")],
            model=["kilo."],
            turn=MANUAL,
            does=talk(0.8, 2.0),
            seconds=5,
        )
    )
    check_all(held)
    assert held.turns == ["book a table"], held.told()
    assert held.when(events.Turn, event="committed") <= at(2.2)


async def test_voice_row_057_a_click_toggles_the_microphone() -> None:
    held = await hold_call(
        CallScript(
            caller=[Says(2.0, 2.8, "book a table")],
            model=["kilo."],
            turn=MANUAL,
            does=[*talk(0.8, 0.95), at_second(3.2, brain.Commit())],
            seconds=6,
        )
    )
    assert held.turns == ["book a table"], held.told()


async def test_voice_row_058_a_second_press_before_the_commit_keeps_the_microphone_hot() -> None:
    held = await hold_call(
        CallScript(
            caller=[Says(1.0, 2.2, "book a table for two")],
            model=["kilo."],
            turn=MANUAL,
            does=[*talk(1.0, 1.4), *talk(1.5, 2.5)],
            seconds=6,
        )
    )
    check_all(held)
    assert held.turns == ["book a table for two"], held.told()


# ---- turns


@BOTH
async def test_voice_row_062_the_hold_counts_from_the_end_of_speech(continuous: bool) -> None:
    held = await hold_call(
        CallScript(
            caller=[Says(0.3, 0.9, "Hello there.")],
            model=["kilo."],
            seconds=4,
            continuous=continuous,
        )
    )
    end = next(event.position for event in held.of(events.Vad) if event.event == "end")
    committed = held.when(events.Turn, event="committed")
    assert 0 <= committed - (end + at(0.6)) < 320, (committed, end)


@BOTH
async def test_voice_row_063_speech_during_a_hold_is_one_utterance(continuous: bool) -> None:
    held = await hold_call(
        CallScript(
            caller=[Says(0.3, 0.9, "I want to"), Says(1.4, 2.0, "book a table.")],
            model=["kilo."],
            seconds=5,
            continuous=continuous,
        )
    )
    check_all(held)
    assert held.turns == ["I want to book a table."], held.told()


async def test_voice_row_071_a_client_that_never_acks_ends_speaking_in_time() -> None:
    for error in (-1_600, 1_600):
        held = await hold_call(
            CallScript(
                caller=[HELLO],
                model=[REPLY],
                seconds=6,
                estimate=Estimate(error=error, corrected_after_ms=None),
            )
        )
        last = held.pieces()[-1]
        ended = [
            s for s, e in held.timeline if isinstance(e, events.Mode) and e.mode == "listening"
        ]
        assert ended[-1] - (last.at + last.end - last.start) <= at(0.5), held.told()


async def test_voice_row_073_typed_text_is_a_turn_like_any_other() -> None:
    held = await hold_call(
        CallScript(model=[REPLY], does=[at_second(0.5, brain.Say("hello in writing"))], seconds=5)
    )
    check_all(held)
    line = next(e for e in held.of(events.Transcript) if e.role == "user")
    assert (line.text, line.source, line.partial) == ("hello in writing", "typed", False)
    assert held.history[0].text == "hello in writing"
    assert held.answers[0].heard == REPLY
    assert held.modes == ["listening", "thinking", "speaking", "listening", "idle"]


# ---- the agent's own turns


async def test_respond_inject_and_context_each_do_what_they_say() -> None:
    held = await hold_call(
        CallScript(
            caller=[Says(6.0, 6.6, "Well?")],
            model=["alpha.", "bravo.", "charlie."],
            does=[
                at_second(0.5, brain.Respond("greet the caller")),
                at_second(2.5, brain.Inject("user", "the taxi is here")),
                at_second(4.5, brain.Inject("context", "it is raining")),
            ],
            seconds=9,
        )
    )
    check_all(held)
    assert [one.heard for one in held.answers] == ["alpha.", "bravo.", "charlie."]
    assert not any("greet the caller" in m.text for m in held.history)
    last = " ".join(m.text for m in held.model.requests[-1].messages)
    assert "the taxi is here" in last and "it is raining" in last and "Well?" in last
    assert all(future.exception() is None for future in held.futures)


async def test_an_outside_event_is_spoken_at_the_quiet_pause() -> None:
    async def emit(live: Live) -> None:
        await live.agent.emit_event(AgentEvent(source="kitchen", content="dinner is ready"))

    held = await hold_call(
        CallScript(caller=[HELLO], model=[REPLY, "dinner."], does=[Does(2.0, emit)], seconds=7)
    )
    check_all(held)
    assert held.answers[-1].heard == "dinner.", held.told()
    started = [
        s for s, e in held.timeline if isinstance(e, events.Response) and e.event == "started"
    ]
    ended = held.when(events.Response, event="ended", gen=1)
    assert at(0.68) <= started[1] - ended <= at(0.75), (started, ended)


async def test_a_cough_between_turn_and_answer_does_not_lose_the_answer() -> None:
    """Field faults 1, 3."""
    slow = say(Text("alpha bravo charlie.", 300))
    for when in (1.25, 1.4, 1.6, 1.9):
        held = await hold_call(
            CallScript(caller=[HELLO, Says(when, when + 0.4, "")], model=[slow], seconds=6)
        )
        check_all(held)
        assert held.answers and held.answers[0].heard == "alpha bravo charlie.", held.told()


async def ask(value: object, ctx: ToolContext) -> object:
    return await ctx.display.push_and_wait("form", {})


async def test_an_interrupt_command_stops_speech_and_tools() -> None:
    held = await hold_call(
        CallScript(
            caller=[HELLO],
            model=[say("alpha bravo charlie.", Call("look"))],
            tools=[sleeper(9)],
            does=[at_second(1.6, brain.Interrupt())],
            seconds=4,
        )
    )
    check_all(held)
    assert held.answers[0].interrupted
    results = [r.result.status for m in held.history for r in m.tool_results]
    assert results in ([], ["aborted"])
