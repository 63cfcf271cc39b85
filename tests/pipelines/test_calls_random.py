"""Random callers, models, tools, latencies and faults: the invariants hold on every call.

Words are unique over the whole call, so that the sound says which of them was played and no turn
can hold a word of another. Bounded: a few dozen calls of about ten seconds of virtual time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.support.calls import CallScript, Does, Live, Says, at, hold_call
from tests.support.invariants import check_all
from voxglove.adapters.models.scripted import Call, Fail, Step, Text, say
from voxglove.adapters.stt.scripted import SttFaults
from voxglove.adapters.tts.scripted import Timing, TtsFaults
from voxglove.core.errors import ModelError
from voxglove.core.tool import Tool
from voxglove.media import brain
from voxglove.pipelines.commit import TurnConfig

SCHEMA = {"type": "object", "properties": {}}
SYLLABLES = ("ba", "ko", "mi", "du", "re", "fa", "so", "la", "ti", "ne")
COMMANDS: list[brain.Command] = [
    brain.Interrupt(),
    brain.Commit(),
    brain.ClientBargeIn(),
    brain.Mute(on=True),
    brain.Mute(on=False),
    brain.Respond("go on"),
]


def unique_words() -> Iterator[str]:
    """bababa, babako, … : words no lexicon knows, each once."""
    for one in SYLLABLES:
        for two in SYLLABLES:
            for three in SYLLABLES:
                yield one + two + three


@st.composite
def callers(draw: st.DrawFn, words: Iterator[str]) -> list[Says]:
    """Up to five utterances, one after the other, some of them noises."""
    said: list[Says] = []
    when = 0.3
    for _ in range(draw(st.integers(1, 5))):
        when += draw(st.sampled_from([0.2, 0.5, 0.9, 1.7, 3.1]))
        length = draw(st.sampled_from([0.2, 0.4, 0.7, 1.3]))
        ends = draw(st.sampled_from(["?", ".", ""]))
        count = draw(st.integers(1, 3))
        text = " ".join(next(words) for _ in range(count)) + ends
        text = draw(st.sampled_from(["", "mm-hm", *[text] * 5]))
        said.append(Says(round(when, 2), round(when + length, 2), text))
        when += length
    return said


@st.composite
def steps(draw: st.DrawFn, words: Iterator[str]) -> list[Step | str]:
    """Twelve answers: words, slow words, tools before and after words, failures."""
    made: list[Step | str] = []
    for _ in range(12):
        text = " ".join(next(words) for _ in range(draw(st.integers(1, 8)))) + ". "
        delay = draw(st.sampled_from([0, 0, 30, 200]))
        kind = draw(st.sampled_from(["text", "text", "text", "tool", "preamble", "fail", "whole"]))
        name = draw(st.sampled_from(["book", "look", "pay"]))
        match kind:
            case "tool":
                made.append(say(Call(name)))
            case "preamble":
                made.append(say(Text(text, delay), Call(name)))
            case "fail":
                made.append(say(Text(text, delay), Fail(ModelError("down"), 300)))
            case "whole":
                made.append(say(Text(text), streams=False))
            case _:
                made.append(say(Text(text, delay)))
    return made


@st.composite
def scripts(draw: st.DrawFn) -> CallScript:
    words = unique_words()
    continuous = draw(st.booleans())
    caller = draw(callers(words))
    commands = st.sampled_from(COMMANDS)
    whens = st.sampled_from([0.7, 1.3, 2.1, 2.9, 4.4, 6.2])
    does = [Does(when, _command(draw(commands))) for when in draw(st.lists(whens, max_size=2))]
    if draw(st.integers(0, 3)) == 0:
        lost = draw(st.sampled_from([1.5, 2.5, 3.7]))
        does += [
            Does(0.0, lambda live: live.line.fail_at(at(lost))),
            Does(lost + 1.0, lambda live: live.reattach(8.0)),
        ]
    faults = draw(st.sampled_from([{}, {}, {1: TtsFaults(open_fails=True)},
                                   {2: TtsFaults(fails_at=6_000)}]))  # fmt: skip
    stt_faults = draw(
        st.sampled_from(
            [None, None, SttFaults(late_finals_ms={0: 700}), SttFaults(lost_finals={1})]
        )
    )
    model = draw(steps(words))
    # Each is said once at most, so that its sound says which of them it was.
    phrases = tuple(f"{next(words)} {next(words)}." for _ in range(20))
    return CallScript(
        caller=caller,
        model=model,
        turn=TurnConfig(
            acknowledge_after_ms=draw(st.sampled_from([0, 300, 700])), acknowledgements=phrases
        ),
        does=does,
        tools=[
            _tool("book", 0.3, []),
            _tool("look", 2.0, [], read_only=True),
            _tool("pay", 1.0, [], un_abortable=True),
        ],  # fmt: skip
        seconds=round(caller[-1].end + draw(st.sampled_from([0.1, 1.1, 4.0])), 2),
        continuous=continuous,
        final_ms=draw(st.sampled_from([0, 100, 400])),
        partial_ms=draw(st.sampled_from([0, 60, 200])),
        stt_faults=stt_faults,
        tts_faults=faults,
        tts_timing=Timing(
            word_ms=240,
            open_ms=draw(st.sampled_from([0, 120])),
            first_ms=draw(st.sampled_from([0, 150])),
            chunks=draw(st.sampled_from([(1_600,), (333, 1_001), (7_000,)])),
        ),
    )


def _command(command: brain.Command) -> Callable[[Live], object]:
    return lambda live: live.command(command)


def _tool(name: str, seconds: float, done: list[str], **options: bool) -> Tool:
    async def do(value: object) -> str:
        await asyncio.sleep(seconds)
        done.append(name)
        return f"{name} done"

    return Tool(name=name, description=name, do=do, json_schema=SCHEMA, **options)  # type: ignore[arg-type]


# No shrinking: a failing call prints its whole timeline, and bounded time is worth more.
@given(script=scripts())
@settings(max_examples=40, phases=(Phase.explicit, Phase.generate))
async def test_the_invariants_hold_on_every_call(script: CallScript) -> None:
    async with asyncio.TaskGroup() as survivors:
        script.survivors = survivors
        held = await hold_call(script)
    held.history = list(await held.agent.store.get_messages())
    check_all(held)
