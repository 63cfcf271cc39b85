"""Results of tools around changes of connection and failures: each told, and told once."""

from __future__ import annotations

import asyncio

from tests.realtime.by_hand import ByHand, HandAdapter, RoughStore, by_hand, unable
from tests.realtime.sessions import built
from voxglove.core.errors import StoreError
from voxglove.core.messages import Message
from voxglove.core.tool import ToolContext
from voxglove.core.tool import tool as as_tool
from voxglove.realtime.commands import AppendContext, RequestResponse, SendToolResults, UpdateAgent
from voxglove.realtime.events import ResponseStarted, Resumable, ToolsCancelled


def _knows(call: ByHand, text: str) -> int:
    """How often the newest connection was told `text`, seed included."""
    seed = [one for one in call.adapter.setups[-1].history]
    found = sum(text in one.text for one in seed if not one.is_tool_results)
    found += sum(text in str(result.result.data) for one in seed for result in one.tool_results)
    found += sum(text in one.text for one in call.told(AppendContext))
    return found + sum(
        text in output.text for one in call.told(SendToolResults) for output in one.outputs
    )


def _slow(seconds: float) -> object:
    async def book() -> str:
        """Book."""
        await asyncio.sleep(seconds)
        return "seven"

    return as_tool(book)


async def test_a_result_that_came_between_the_seed_and_the_connection_is_told() -> None:
    async with by_hand(_slow(2.0)) as call:  # type: ignore[arg-type]
        call.adapter.connect_s = 3.0
        call.calls("r1", "book")
        await asyncio.sleep(0.5)
        call.breaks()
        await call.again()
        await asyncio.sleep(3)
        assert _knows(call, "seven") == 1
        assert len(call.told(RequestResponse)) == 1


async def test_a_result_that_an_old_connection_was_told_in_a_move_is_told_to_the_new_one() -> None:
    async with by_hand(_slow(2.0)) as call:  # type: ignore[arg-type]
        call.adapter.connect_s = 3.0
        call.calls("r1", "book")
        await asyncio.sleep(0.5)
        run = call.session._run
        assert run is not None
        run.parts.link.move(0.0)
        await call.again()
        await asyncio.sleep(3)
        assert _knows(call, "seven") == 1


async def test_a_result_after_the_change_is_told_once_and_spoken_about_once() -> None:
    async with by_hand(_slow(6.0)) as call:  # type: ignore[arg-type]
        call.calls("r1", "book")
        await asyncio.sleep(0.5)
        call.breaks()
        await call.again()
        await asyncio.sleep(12)
        assert _knows(call, "seven") == 1
        assert len(call.told(RequestResponse)) == 1


async def test_a_result_that_the_seed_shows_is_answered() -> None:
    store = RoughStore("call")
    agent = built(_slow(1.0), store=store)  # type: ignore[arg-type]
    async with by_hand(agent=agent) as call:
        call.calls("r1", "book")
        await asyncio.sleep(1.05)
        call.breaks()
        await call.again()
        await asyncio.sleep(5)
        assert _knows(call, "seven") == 1
        assert len(call.told(RequestResponse)) == 1


async def test_what_a_provider_resumes_with_is_not_told_again() -> None:
    async with by_hand(_slow(0.1)) as call:  # type: ignore[arg-type]
        call.turn("u1", "alpha")
        call.calls("r1", "book")
        await asyncio.sleep(0.5)
        call.answers("r2", "a2", "seven it is")
        await asyncio.sleep(2)
        call.wire.say(Resumable("handle"))
        call.turn("u2", "bravo")
        await asyncio.sleep(0.2)
        call.breaks()
        await call.again()
        setup = call.adapter.setups[-1]
        assert setup.resume_handle == "handle"
        assert [one.text for one in setup.history] == ["bravo"]


async def test_what_the_hosts_handle_restores_is_not_told_at_the_next_handle_either() -> None:
    store = RoughStore("call")
    await store.append_messages([Message(sender="user", text="of old", id="old")])
    agent = built(store=store)
    async with by_hand(agent=agent, resume_handle="kept") as call:
        assert call.adapter.setups[-1].history == ()
        call.wire.say(Resumable("handle"))
        call.breaks()
        await call.again()
        assert call.adapter.setups[-1].resume_handle == "handle"
        assert call.adapter.setups[-1].history == ()


async def test_results_are_told_although_what_comes_before_them_fails() -> None:
    async with by_hand(_slow(0.5)) as call:  # type: ignore[arg-type]
        live = call.session._run.parts.made.live  # type: ignore[union-attr]

        async def failing(run_id: str = "") -> tuple[Message, ...]:
            raise StoreError("no inbox")

        call.calls("r1", "book")
        live.join_outside = failing  # type: ignore[method-assign]
        await asyncio.sleep(2)
        (told,) = call.told(SendToolResults)
        assert told.outputs[0].text.find("seven") >= 0


async def test_a_call_withdrawn_too_late_does_not_withhold_one_of_the_same_id() -> None:
    async with by_hand(_slow(0.1)) as call:  # type: ignore[arg-type]
        call.calls("r1", "book")
        await asyncio.sleep(0.5)
        call.wire.say(ToolsCancelled(("call_book", "never_heard_of")))
        call.calls("r2", "book")
        await asyncio.sleep(0.5)
        assert len(call.told(SendToolResults)) == 2


async def test_a_tool_folded_while_it_reconnects_is_told() -> None:
    async def look() -> str:
        """Look."""
        return "nothing"

    async def fold(ctx: ToolContext) -> str:
        """Fold another tool."""
        await asyncio.sleep(2)
        ctx.agent.fold(as_tool(look))
        return "done"

    adapter = HandAdapter(unable())
    async with by_hand(as_tool(fold), adapter=adapter) as call:
        call.adapter.connect_s = 4.0
        call.calls("r1", "fold")
        await asyncio.sleep(0.5)
        call.breaks()
        await call.again()
        names = {one.name for one in call.adapter.setups[-1].tools}
        for update in call.told(UpdateAgent):
            names = {one.name for one in update.tools or ()} or names
        assert names == {"fold", "look"}


async def test_a_tool_call_does_not_spin_behind_an_answer_that_is_still_spoken() -> None:
    """It did once, for ever and without yielding."""
    async with by_hand(_slow(0.1)) as call:  # type: ignore[arg-type]
        call.begins("r1", "a1", "one moment", s=0.2)
        call.turn("u1", None)
        call.calls("r2", "book")
        await asyncio.sleep(3)
        assert len(call.told(SendToolResults)) == 1
        call.ends("r1", "a1", "one moment")
        call.wire.say(ResponseStarted("r3"))
