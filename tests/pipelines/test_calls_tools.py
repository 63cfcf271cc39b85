"""Tools on a call: interrupted at every moment, joined by a new turn, answered late, ended.

A tool's side effect is counted where it happens, in the tool. Invariant 6 of DESIGN section 5 and
field faults 9, 35, 38, 39, 41, 42.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

from tests.support.calls import CallScript, Does, Held, Says, hold_call
from tests.support.invariants import check_all
from voxglove.adapters.models.scripted import Call, Step, Text, say
from voxglove.core.tool import Tool, ToolContext
from voxglove.core.view import STILL_RUNNING
from voxglove.media import brain, events

SCHEMA = {"type": "object", "properties": {}}


@dataclass(slots=True)
class Booking:
    """A tool that takes `seconds` and then has its one side effect."""

    seconds: float
    started: list[float] = field(default_factory=list)
    booked: list[float] = field(default_factory=list)
    aborted: list[float] = field(default_factory=list)

    async def do(self, value: object, ctx: ToolContext) -> str:
        now = asyncio.get_running_loop().time
        self.started.append(now())
        try:
            await asyncio.sleep(self.seconds)
        except asyncio.CancelledError:
            self.aborted.append(now())
            raise
        self.booked.append(now())
        return "booked table 7"

    def tool(self, **options: object) -> Tool:
        return Tool(
            name="book",
            description="Book a table.",
            do=self.do,
            json_schema=SCHEMA,
            **options,  # type: ignore[arg-type]
        )


HELLO = Says(0.3, 0.9, "Book it?")
"""Committed at about 1.2 s."""


def results(held: Held) -> list[tuple[str, object]]:
    """(status, data) of every stored terminal result."""
    found = [one for message in held.history for one in message.tool_results]
    return [(one.result.status, one.result.data) for one in found]


def shown_results(held: Held, request: int) -> list[object]:
    """The tool results that one request showed."""
    messages = held.model.requests[request].messages
    return [one.result.data for message in messages for one in message.tool_results]


def check_result_reaches_next_request(held: Held, booking: Booking) -> None:
    """No request made after the tool ended shows it as running."""
    if not booking.booked:
        return
    for asked_at, index in zip(held.model.asked_at, range(99), strict=False):
        if asked_at > booking.booked[0]:
            assert STILL_RUNNING not in shown_results(held, index), held.told()
            assert "booked table 7" in shown_results(held, index), held.told()


GRID = [round(1.0 + 0.05 * step, 2) for step in range(46)]


@pytest.mark.parametrize("tail", ["silent", "preamble"])
async def test_voice_row_034_one_side_effect_and_one_result_wherever_the_caller_speaks(
    tail: str,
) -> None:
    """The tool runs from about 1.22 (or .6 s of preamble later) for 1.2 s; the caller adds a
    sentence at every 50 ms of it. Barge-in leaves the tool alone (field faults 38, 39, 42)."""
    first: tuple[Step | str, ...] = (
        (say(Call("book")),) if tail == "silent" else (say("one moment.", Call("book")),)
    )
    for at in GRID[:: 1 if tail == "silent" else 2]:
        booking = Booking(1.2)
        held = await hold_call(
            CallScript(
                caller=[HELLO, Says(at, at + 0.5, "for two people?")],
                model=[*first, "fine.", "also fine.", "well.", "good."],
                tools=[booking.tool()],
                seconds=at + 4.0,
            )
        )
        check_all(held)
        assert len(booking.booked) == 1, (at, held.told())
        assert not booking.aborted
        assert results(held) == [("success", "booked table 7")], (at, held.told())
        check_result_reaches_next_request(held, booking)
        said = " ".join(held.turns)
        assert "for two people?" in said, (at, held.told())


async def test_a_turn_that_joins_a_running_tool_waits_and_then_sees_it_still_running() -> None:
    booking = Booking(6.0)
    held = await hold_call(
        CallScript(
            caller=[HELLO, Says(2.0, 2.5, "and hurry?")],
            model=[say(Call("book")), "still at it.", "it is booked now."],
            tools=[booking.tool()],
            seconds=12,
        )
    )
    check_all(held)
    joined = held.sample(held.model.asked_at[1]) - held.when(events.Turn, event="committed", turn=2)
    assert joined <= 1.55 * 16_000, joined
    assert shown_results(held, 1) == [STILL_RUNNING]
    assert results(held) == [("success", "booked table 7")]
    # The late result wakes the agent at a quiet pause, 700 ms after its own words.
    assert shown_results(held, 2) == ["booked table 7"]
    woken = held.sample(held.model.asked_at[2])
    assert woken >= held.sample(booking.booked[0])
    assert held.answers[-1].text == "it is booked now."
    held.model.verify()


async def test_a_late_result_waits_while_the_caller_speaks_and_joins_their_turn() -> None:
    booking = Booking(3.0)
    held = await hold_call(
        CallScript(
            caller=[HELLO, Says(1.6, 2.1, "and hurry?"), Says(4.0, 5.2, "did that work?")],
            model=[say(Call("book")), "hm.", "yes, booked."],
            tools=[booking.tool()],
            seconds=10,
        )
    )
    check_all(held)
    assert held.turns[-1] == "did that work?", held.told()
    assert shown_results(held, len(held.model.requests) - 1) == ["booked table 7"]
    held.model.verify()


@pytest.mark.parametrize("word", ["stop", "wait"])
async def test_a_stop_word_aborts_an_abortable_tool(word: str) -> None:
    booking = Booking(5.0)
    held = await hold_call(
        CallScript(
            caller=[HELLO, Says(2.0, 2.4, word)],
            model=[say(Call("book")), "stopped.", "well."],
            tools=[booking.tool()],
            seconds=8,
        )
    )
    check_all(held)
    assert not booking.booked and len(booking.aborted) == 1, held.told()
    assert [status for status, _ in results(held)] == ["aborted"]


async def test_voice_row_025_an_un_abortable_tool_completes_and_its_result_is_paired() -> None:
    booking = Booking(2.0)
    held = await hold_call(
        CallScript(
            caller=[HELLO, Says(1.6, 2.0, "stop")],
            model=[say(Call("book")), "all right.", "well."],
            tools=[booking.tool(un_abortable=True)],
            seconds=8,
        )
    )
    check_all(held)
    assert len(booking.booked) == 1, held.told()
    assert results(held) == [("success", "booked table 7")]


async def test_an_un_abortable_tool_ends_after_the_hang_up_in_the_survivors() -> None:
    booking = Booking(4.0)
    async with asyncio.TaskGroup() as survivors:
        held = await hold_call(
            CallScript(
                caller=[HELLO],
                model=[say(Call("book"))],
                tools=[booking.tool(un_abortable=True)],
                seconds=2,
                survivors=survivors,
            )
        )
        assert held.took_to_end <= 2.0
        assert not booking.booked
    assert len(booking.booked) == 1
    stored = await held.agent.store.get_messages()
    kept = [one.result.data for message in stored for one in message.tool_results]
    assert kept == ["booked table 7"]


async def test_a_hang_up_aborts_an_abortable_tool_and_stores_that() -> None:
    booking = Booking(4.0)
    held = await hold_call(
        CallScript(caller=[HELLO], model=[say(Call("book"))], tools=[booking.tool()], seconds=2)
    )
    check_all(held)
    assert not booking.booked and booking.aborted
    assert [status for status, _ in results(held)] == ["aborted"]


async def test_a_tool_of_a_turn_that_was_cut_never_starts() -> None:
    """The model is still talking when the caller cuts in: its call never came to be (fault 41)."""
    booking = Booking(0.1)
    held = await hold_call(
        CallScript(
            caller=[HELLO, Says(2.0, 2.6, "leave that alone?")],
            model=[say(Text("alpha bravo charlie. ", 100), Text("delta echo.", 900), Call("book")),
                   "fine."],
            tools=[booking.tool()],
            seconds=7,
        )
    )  # fmt: skip
    check_all(held)
    assert not booking.started, held.told()


# ---- the display


async def ask(value: object, ctx: ToolContext) -> object:
    return await ctx.display.push_and_wait("form", {"q": "which day?"})


ASK = Tool(name="ask", description="Ask on the page.", do=ask, json_schema=SCHEMA)


def resolve(value: object) -> Does:
    def act(live: object) -> None:
        display = live.agent.display  # type: ignore[attr-defined]
        display.resolve(next(iter(display.pending_ids)), value)

    return Does(4.0, act)


@pytest.mark.parametrize("length", [0.2, 0.6, 1.0])
async def test_voice_row_024_wordless_speech_leaves_a_pending_question_and_its_reply(
    length: float,
) -> None:
    held = await hold_call(
        CallScript(
            caller=[HELLO, Says(1.9, 1.9 + length, "")],
            model=[say("please choose a day on the page now.", Call("ask")), "monday then."],
            tools=[ASK],
            does=[resolve("monday")],
            seconds=8,
        )
    )
    check_all(held)
    assert held.answers[0].heard is not None
    assert not any(e.event == "cut" for e in held.of(events.Response)), held.told()
    assert results(held) == [("success", "monday")]
    assert "monday then." in held.answers[-1].text
    held.model.verify()


async def test_voice_row_024_a_stop_word_cuts_the_sound_and_leaves_waiter_and_tool() -> None:
    held = await hold_call(
        CallScript(
            caller=[HELLO, Says(1.9, 2.3, "stop")],
            model=[
                say("please choose a day on the page now.", Call("ask")),
                "quiet.",
                "fine.",
                "x.",
            ],
            tools=[ASK],
            does=[resolve("monday")],
            seconds=8,
        )
    )
    check_all(held)
    assert any(e.event == "cut" for e in held.of(events.Interruption)), held.told()
    assert results(held) == [("success", "monday")], held.told()


async def test_without_an_audience_a_gated_tool_is_denied_and_the_model_is_told() -> None:
    """The pipeline itself listens to the display, and can answer nothing."""
    booking = Booking(0.1)
    held = await hold_call(
        CallScript(
            caller=[HELLO],
            model=[say(Call("book")), "I may not."],
            tools=[booking.tool(requires_permission=True)],
            seconds=5,
        )
    )
    check_all(held)
    assert not booking.started
    assert [status for status, _ in results(held)] == ["error"]
    assert held.answers[-1].heard == "I may not."


async def test_a_confirmation_cut_short_is_still_a_fact_in_history() -> None:
    """Field fault 35: the tool's result stands in history whatever was heard of the answer."""
    booking = Booking(0.2)
    held = await hold_call(
        CallScript(
            caller=[HELLO, Says(2.2, 2.8, "what about dinner?")],
            model=[say(Call("book")), "your table number seven is booked for tonight.", "dinner."],
            tools=[booking.tool()],
            seconds=7,
        )
    )
    check_all(held)
    last = held.model.requests[-1].messages
    assert "booked table 7" in [r.result.data for m in last for r in m.tool_results]
    assert last[-1].text == "what about dinner?"
    assert len(booking.booked) == 1


async def test_an_interrupt_just_before_a_narration_in_a_tool_waits_for_nothing() -> None:
    """Field fault 9."""
    spoken: list[str] = []
    calls: list[object] = []

    async def tell(value: object) -> str:
        await asyncio.sleep(0.5)
        live = calls[0]
        await live.command(brain.Narrate("just a moment please."))  # type: ignore[attr-defined]
        spoken.append("done")
        return "told"

    tool = Tool(name="tell", description="Tell.", do=tell, json_schema=SCHEMA, un_abortable=True)
    for when in (1.5, 1.68, 1.72, 1.76, 1.9):
        spoken.clear()
        calls.clear()
        held = await hold_call(
            CallScript(
                caller=[HELLO],
                model=[say(Call("tell")), "all done."],
                tools=[tool],
                does=[
                    Does(0.1, lambda live: calls.append(live)),
                    Does(when, lambda live: live.command(brain.Interrupt())),
                ],
                seconds=7,
            )
        )
        check_all(held)
        assert spoken == ["done"], (when, held.told())
