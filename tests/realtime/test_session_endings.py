"""Stop, cancel and fail a session in every state: prompt, whole, and nobody left waiting."""

from __future__ import annotations

import asyncio

import pytest

from tests.realtime.by_hand import HandAdapter, RoughStore, by_hand
from tests.realtime.sessions import built
from voxglove.adapters.errors import AdapterError, ProviderRefused
from voxglove.core.agent import Agent
from voxglove.core.errors import StoreError
from voxglove.core.usage import Usage
from voxglove.realtime.config import SessionConfig
from voxglove.realtime.events import Used
from voxglove.realtime.port import Emit, Setup
from voxglove.realtime.session import RealtimeSession


async def _prompt_stop(session: RealtimeSession) -> None:
    loop = asyncio.get_running_loop()
    before = loop.time()
    await session.stop()
    assert loop.time() - before < 2.0
    assert session.state == "closed" and not session.live


async def _starting(session: RealtimeSession) -> asyncio.Task[None]:
    task = asyncio.get_running_loop().create_task(session.start())
    await asyncio.sleep(0.5)
    return task


async def test_stop_while_it_connects() -> None:
    session = RealtimeSession(built(), adapter=HandAdapter(connect_s=10.0))
    task = await _starting(session)
    await _prompt_stop(session)
    with pytest.raises(AdapterError, match="stopped before it opened"):
        await task


async def test_stop_while_the_agent_is_busy_with_somebody_else() -> None:
    agent = built()
    async with agent.turn_queue.hold("a text request"):
        session = RealtimeSession(agent, adapter=HandAdapter())
        task = await _starting(session)
        await _prompt_stop(session)
        with pytest.raises(AdapterError, match="stopped before it opened"):
            await task


async def test_an_order_that_waits_for_the_connection_ends_with_the_session() -> None:
    session = RealtimeSession(built(), adapter=HandAdapter(connect_s=10.0))
    task = await _starting(session)
    waiting = [
        session.user_speech(True),
        session.inject(kind="context", text="it rains"),
        session.respond("greet"),
    ]
    await session.stop()
    await asyncio.wait([task])
    assert task.exception() is not None
    assert all(one.done() for one in waiting)


async def test_an_order_that_waits_for_a_slow_preparer_ends_with_the_session() -> None:
    async def slow() -> None:
        await asyncio.sleep(4.9)

    config = SessionConfig(before_turn=slow)
    async with by_hand(config=config) as call:
        call.session.user_speech(True)
        waiting = call.session.user_speech(False)
        await call.session.stop()
        assert waiting.done()


async def test_a_session_that_failed_leaves_its_agent_free_for_the_next() -> None:
    class Refusing(HandAdapter):
        async def connect(self, setup: Setup, emit: Emit, group: asyncio.TaskGroup):  # type: ignore[no-untyped-def]
            raise ProviderRefused("quota", "no money")

    agent = built()
    with pytest.raises(ProviderRefused):
        await RealtimeSession(agent, adapter=Refusing()).start()
    async with by_hand(agent=agent) as call:
        call.turn("u1", "alpha")
        await asyncio.sleep(0.1)
        assert await call.texts() == ["alpha"]


async def test_a_store_that_cannot_be_read_fails_the_start_with_its_own_error() -> None:
    class Unreadable(RoughStore):
        async def get_messages(self):  # type: ignore[no-untyped-def]
            raise StoreError("no such disk")

    agent = built(store=Unreadable("call"))
    session = RealtimeSession(agent, adapter=HandAdapter())
    with pytest.raises(StoreError, match="no such disk"):
        await session.start()
    assert session.state == "closed"
    with pytest.raises(StoreError, match="no such disk"):
        await RealtimeSession(agent, adapter=HandAdapter()).run()


async def test_what_was_said_at_the_last_moment_is_stored_and_counted() -> None:
    class LastWord(HandAdapter):
        async def connect(self, setup: Setup, emit: Emit, group: asyncio.TaskGroup):  # type: ignore[no-untyped-def]
            connection = await super().connect(setup, emit, group)
            close = connection.close

            async def counted() -> None:
                connection.say(Used(Usage(7, 3), final=True))
                await close()

            connection.close = counted  # type: ignore[method-assign]
            return connection

    agent: Agent = built()
    async with by_hand(adapter=LastWord(), agent=agent) as call:
        call.turn("u1", None)
        call.turn("u2", "bravo")
        typed = call.session.inject(kind="user", text="charlie")
        await call.session.stop()
        assert typed.done()
    texts = await call.texts()
    assert len(texts) == 3 and texts[1:] == ["bravo", "charlie"]
    assert await agent.store.get_token_count() == 10
