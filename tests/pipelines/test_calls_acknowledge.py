"""An answer that is slow is acknowledged: by a phrase that is interrupted, paused and forgotten.

What sounds is read from the sound alone. A phrase is two words of 300 ms in the scripted voice.
"""

from __future__ import annotations

import asyncio
import itertools

import pytest

from tests.pipelines.test_calls_tools import Booking
from tests.support.audio import Span, assert_resumed_exactly
from tests.support.calls import RATE, CallScript, Does, Held, Says, at, hold_call
from tests.support.hearing import Piece
from tests.support.invariants import SILENCE, check_all
from voxglove.adapters.models.scripted import Call, Fail, Step, Text, say
from voxglove.adapters.tts.port import Audio
from voxglove.adapters.tts.scripted import ScriptedVoice, TtsFaults
from voxglove.core.errors import ModelError
from voxglove.media import brain, events
from voxglove.media.errors import MediaValueError
from voxglove.media.format import PIPELINE
from voxglove.media.frame import AudioFrame
from voxglove.media.segments import Heard
from voxglove.pipelines import vocabulary as voc
from voxglove.pipelines.acknowledge import Phrase, Rendered
from voxglove.pipelines.commit import TurnConfig
from voxglove.pipelines.speaker import Speaker
from voxglove.pipelines.speech import Speech, SpeechMarks

PHRASES = ("One moment.", "Checking that.")
SLOW = TurnConfig(acknowledge_after_ms=700, acknowledgements=PHRASES)
HELLO = Says(0.3, 0.9, "Book it?")
"""Committed at about 1.2 s, so that an acknowledgement is due at 1.9 s and over at 2.5 s."""
REPLY = "alpha bravo charlie."


def late(ms: float, text: str = REPLY) -> Step:
    """An answer whose first word comes after `ms`."""
    first, _, rest = text.partition(" ")
    return say(Text(f"{first} ", ms), rest)


def acknowledged(held: Held) -> list[str]:
    """What was told as said while somebody waited."""
    told = held.of(events.Transcript)
    return [one.text for one in told if one.source == "narration"]


def sound_of(held: Held, text: str) -> list[Piece]:
    """The pieces of the scripted response that said `text`."""
    index = next(n for n, voice in enumerate(held.voices) if "".join(voice.texts) == text)
    return [piece for piece in held.pieces() if piece.response == index]


async def wait_for(ms: float, **script: object) -> Held:
    """`HELLO` answered after `ms`."""
    caller = script.pop("caller", [HELLO])
    model = script.pop("model", [late(ms), "kilo lima."])
    return await hold_call(
        CallScript(caller=caller, model=model, turn=SLOW, seconds=8, **script)  # type: ignore[arg-type]
    )


async def test_a_slow_answer_is_acknowledged_and_follows_without_a_gap() -> None:
    held = await wait_for(900)
    check_all(held)
    assert acknowledged(held) == ["One moment."]
    first, answer = sound_of(held, "One moment."), sound_of(held, REPLY)
    committed = held.when(events.Turn, event="committed")
    assert 700 <= (first[0].at - committed) * 1000 / RATE <= 760, held.told()
    assert first[-1].end - first[0].start == at(0.6)
    assert answer[0].at - (first[0].at + at(0.6)) <= RATE // 50, "the answer waited longer"


async def test_it_is_told_but_neither_history_nor_the_start_of_the_answer() -> None:
    held = await wait_for(3_000)
    check_all(held)
    assert [m.text for m in held.history if m.sender == "agent"] == [REPLY]
    (told,) = [one for one in held.of(events.Transcript) if one.source == "narration"]
    assert (told.role, told.turn, told.gen, told.partial) == ("assistant", 1, 1, False)
    audio = held.when(events.Response, event="audio")
    assert abs(audio - sound_of(held, REPLY)[0].at) <= RATE // 25
    (latency,) = [one for one in held.of(events.Metric) if one.name == "turn_latency"]
    parts = {part.name: part.ms for part in latency.parts or ()}
    assert abs(sum(parts.values()) - (latency.total_ms or 0)) <= 1
    assert parts["agent"] >= 2_900, parts
    assert held.modes[:6] == [
        *("listening", "thinking", "speaking", "thinking", "speaking", "listening"),
    ]


@pytest.mark.parametrize("ms", [0, 300, 600, 680])
async def test_a_quick_answer_is_not_acknowledged(ms: int) -> None:
    held = await wait_for(ms)
    check_all(held)
    assert acknowledged(held) == []
    assert [m.text for m in held.history if m.sender == "agent"] == [REPLY]


async def test_the_answer_never_waits_for_more_than_the_rest_of_it() -> None:
    """Whenever the words come: before the phrase sounds it is dropped, else its rest is said."""
    for ms in range(640, 1_500, 20):
        held = await wait_for(ms)
        check_all(held)
        said = acknowledged(held)
        heard = sound_of(held, "One moment.") if said else []
        answer = sound_of(held, REPLY)[0]
        asked = held.sample(held.model.asked_at[0]) + ms * RATE // 1000
        over = max(asked, heard[-1].at + heard[-1].end - heard[-1].start) if heard else asked
        assert answer.at - over <= RATE // 25, (ms, held.told())
        assert not heard or heard[-1].end == at(0.6), "cut short by the answer"


async def test_barge_in_cuts_it_with_the_answer_and_nothing_was_heard_of_that() -> None:
    for onset in (1.80, 1.95, 2.1, 2.3):
        caller = [HELLO, Says(onset, onset + 0.7, "no change it")]
        held = await wait_for(4_000, caller=caller)
        check_all(held)
        cuts = [sample for sample, one in held.effects() if isinstance(one, voc.Cut)]
        assert cuts, held.told()
        for piece in sound_of(held, "One moment."):
            assert piece.at + piece.end - piece.start <= cuts[0] + SILENCE, held.told()
        assert held.turns == ["Book it?", "no change it"]
        assert [m.text for m in held.history if m.sender == "agent"] == ["kilo lima."]
        ended = [one for one in held.of(events.Response) if one.event == "cut"]
        assert [one.heard for one in ended] == [""], held.told()


async def test_a_cough_under_it_pauses_it_and_it_goes_on_at_the_same_sample() -> None:
    held = await wait_for(3_000, caller=[HELLO, Says(1.95, 2.15, "")])
    check_all(held)
    (paused,) = [s for s, one in held.timeline if _is(one, "paused")]
    (resumed,) = [s for s, one in held.timeline if _is(one, "resumed")]
    whole = await wait_for(3_000)
    until = at(3.5)
    assert_resumed_exactly(held.sound()[:until], whole.sound()[:until], Span(paused, resumed))


def _is(event: events.CallEvent, what: str) -> bool:
    return isinstance(event, events.Interruption) and event.event == what


async def test_a_voice_before_it_is_due_holds_it_back_until_that_is_decided() -> None:
    held = await wait_for(3_000, caller=[HELLO, Says(1.6, 2.4, "")])
    check_all(held)
    first = sound_of(held, "One moment.")
    assert not first or first[0].at >= at(2.4), held.told()


@pytest.mark.parametrize("length", [0.2, 0.5, 0.9])
async def test_a_voice_without_words_under_it_costs_no_answer(length: float) -> None:
    """Field fault 3: nothing of the answer was heard yet, so voice alone only holds it back.
    From 2.4 s on it would meet the answer itself."""
    for step in range(12):
        onset = 1.79 + 0.05 * step
        held = await wait_for(800, caller=[HELLO, Says(onset, onset + length, "")])
        check_all(held)
        pieces = sound_of(held, "One moment.")
        assert sum(piece.end - piece.start for piece in pieces) == at(0.6), held.told()
        (answer,) = [m for m in held.history if m.sender == "agent"]
        assert answer.heard == REPLY, held.told()
        last = max(onset + length + 0.4, 1.9 + 0.6 + length + 0.4)
        assert sound_of(held, REPLY)[0].at <= at(last), held.told()


class StillLine:
    """As much of a line as speech needs, on which nothing sounds until it is let go."""

    def __init__(self, heard: int) -> None:
        self.given: list[int] = []
        self.cuts: list[int] = []
        self.paused = True
        self._heard = heard
        self._go = asyncio.Event()

    async def play(self, segment: int, frame: AudioFrame) -> None:
        self.given.append(segment)
        if self._heard == 0:
            await self._go.wait()

    async def finish(self, segment: int) -> None: ...

    async def drain(self) -> None: ...

    def heard(self, segment: int) -> Heard:
        return Heard(segment, self._heard, 1_600, complete=False, estimated=False)

    def cut(self) -> None:
        self.cuts += self.given
        self.paused = False
        self._go.set()

    def pause(self) -> int:
        self.paused = True
        return 0


@pytest.mark.parametrize(("heard", "cut"), [(0, True), (160, False)])
async def test_words_that_come_before_its_first_sample_drop_it(heard: int, cut: bool) -> None:
    """Held back as the line is, it stays so: what is dropped is the phrase alone."""
    line, numbers, marks = StillLine(heard), itertools.count(), list[str]()
    async with asyncio.TaskGroup() as group:
        speaker = Speaker(ScriptedVoice(), group.create_task)
        speech = Speech(
            line,  # type: ignore[arg-type]
            speaker,
            lambda: next(numbers),
            SpeechMarks(lambda: marks.append("text"), lambda: marks.append("audio")),
        )
        phrase = Phrase("One moment.", PIPELINE, (Audio(bytes(3_200), PIPELINE),))
        group.create_task(speech.run())
        speech.say_aside(phrase.text, Rendered(phrase))
        await asyncio.sleep(0.1)
        assert line.given == [0] and marks == []
        speech.say("m1", REPLY)
        speech.finish()
    assert bool(line.cuts) is cut and line.paused
    assert set(line.given) == {0, 1} and marks == ["text", "audio"]
    assert [one.aside for one in speech.utterances] == [True, False]


async def test_a_turn_hears_it_once_and_the_next_one_another() -> None:
    turns = [Says(0.3 + 7 * n, 0.9 + 7 * n, f"Book {name}?") for n, name in enumerate("abc")]
    held = await hold_call(
        CallScript(
            caller=turns,
            model=[late(3_500, "alpha."), late(3_500, "bravo."), late(3_500, "charlie.")],
            turn=SLOW,
            seconds=22,
        )
    )
    assert acknowledged(held) == ["One moment.", "Checking that.", "One moment."]
    assert held.turns == ["Book a?", "Book b?", "Book c?"]


@pytest.mark.parametrize("preamble", ["", "Let me see."])
async def test_a_tool_that_runs_without_a_preamble_is_acknowledged(preamble: str) -> None:
    booking = Booking(2.0)
    parts = [preamble, Call("book")] if preamble else [Call("book")]
    held = await wait_for(0, model=[say(*parts), "Booked."], tools=[booking.tool()])
    check_all(held)
    assert acknowledged(held) == ([] if preamble else ["One moment."])
    assert len(booking.booked) == 1


async def test_a_narration_of_the_tool_is_acknowledgement_enough() -> None:
    booking = Booking(3.0)
    narrate = Does(1.4, lambda live: live.command(brain.Narrate("Working.")))
    held = await wait_for(
        0, model=[say(Call("book")), "Booked."], tools=[booking.tool()], does=[narrate]
    )
    check_all(held)
    assert acknowledged(held) == ["Working."]


async def test_an_answer_of_the_agents_own_is_not_acknowledged() -> None:
    respond = Does(0.5, lambda live: live.command(brain.Respond("greet")))
    held = await wait_for(0, caller=[], model=[late(3_000)], does=[respond])
    check_all(held)
    assert acknowledged(held) == []


async def test_a_hang_up_while_it_sounds_leaves_nothing() -> None:
    for when in (1.9, 2.0, 2.3):
        held = await wait_for(5_000, does=[Does(when, lambda live: live.call.hang_up())])
        check_all(held)
        assert [m.sender for m in held.history] == ["user"]


async def test_an_answer_that_fails_behind_it_is_told() -> None:
    held = await wait_for(0, model=[say(Fail(ModelError("gone"), 1_500))])
    check_all(held)
    assert acknowledged(held) == ["One moment."]
    assert [one.code for one in held.of(events.Problem)] == ["ERR_GLOVE_REQUEST"]


async def test_a_voice_that_cannot_make_the_phrases_costs_only_them() -> None:
    held = await wait_for(2_000, tts_faults={0: TtsFaults(open_fails=True)})
    assert acknowledged(held) == []
    assert [m.heard for m in held.history if m.sender == "agent"] == [REPLY]


@pytest.mark.parametrize("phrases", [(), ("One moment.",), ("Wait.", "Wait.")])
def test_fewer_than_two_phrases_are_refused(phrases: tuple[str, ...]) -> None:
    with pytest.raises(MediaValueError, match=r"turn\.acknowledgements.*two phrases"):
        TurnConfig(acknowledgements=phrases)
    assert TurnConfig(acknowledge_after_ms=0, acknowledgements=phrases)
