"""The registry on the virtual clock: admission, tokens, linger, drain, and isolation."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.adapters.transports_ws.peer import FakeSocket
from tests.web.echo import EchoCalls
from voxglove.adapters.transports.websocket import WebSocketTransport
from voxglove.media.call import CallPolicy
from voxglove.web.auth import START_TTL_S, Signer, TokenRefused
from voxglove.web.calls import CallRegistry, Refused, RegistryLimits
from voxglove.web.metrics import Metrics
from voxglove.web.session import CallSession


class Desk:
    """A running registry over echo calls; time for tokens is the loop's."""

    def __init__(self, max_calls: int = 3, policy: CallPolicy | None = None) -> None:
        self.calls = EchoCalls(policy or CallPolicy(linger_s=5, idle_s=60, max_s=300))
        self.metrics = Metrics()
        self.lagging = False
        loop = asyncio.get_running_loop()
        self.registry = CallRegistry(
            self.calls.factory,
            signer=Signer(b"k" * 32, loop.time),
            metrics=self.metrics,
            limits=RegistryLimits(max_calls=max_calls, call_s=300),
            lagging=lambda: self.lagging,
        )

    async def call(self) -> tuple[CallSession, str]:
        return await self.registry.open(self.registry.offer("demo").token, "peer")


@asynccontextmanager
async def desk(max_calls: int = 3, policy: CallPolicy | None = None) -> AsyncIterator[Desk]:
    found = Desk(max_calls, policy)
    async with found.registry.running():
        yield found


@asynccontextmanager
async def attached(session: CallSession, token: str) -> AsyncIterator[FakeSocket]:
    socket = FakeSocket()
    transport = WebSocketTransport(socket)
    async with asyncio.TaskGroup() as group:
        group.create_task(transport.run())
        await session.attach(transport, token)
        yield socket
        await transport.aclose("hangup")
        session.detach(transport)


async def test_field_083_the_cap_returns_to_zero_after_every_kind_of_end() -> None:
    async with desk(max_calls=2) as here:
        for end in ("hangup", "lost", "linger", "crash"):
            session, token = await here.call()
            async with attached(session, token) as socket:
                await asyncio.sleep(0.1)
                if end == "hangup":
                    socket.say({"t": "hangup"})
                elif end == "lost":
                    socket.end(None)
                elif end == "crash":
                    session.call.hang_up("error")
            await asyncio.sleep(7)
            assert here.registry.active == 0, end
        assert len(here.calls.closed) == 4


async def test_admission_refuses_when_full_lagging_or_draining() -> None:
    async with desk(max_calls=1) as here:
        spare = here.registry.offer("demo").token
        await here.call()
        for act in (here.registry.admit, lambda: here.registry.offer("demo")):
            with pytest.raises(Refused) as refused:
                act()
            assert refused.value.reason == "full"
        with pytest.raises(Refused):
            await here.registry.open(spare, "peer")
        await asyncio.sleep(7)  # nobody came: the call lingered out
        here.lagging = True
        with pytest.raises(Refused) as refused:
            here.registry.admit()
        assert refused.value.reason == "lagging"
        here.lagging = False
        here.registry.admit()
        await here.registry.drain(1)
        with pytest.raises(Refused) as refused:
            here.registry.admit()
        assert refused.value.reason == "draining"
        assert here.metrics.value("calls_refused_total", reason="full") == 3


async def test_a_start_token_begins_one_call_and_expires() -> None:
    async with desk() as here:
        offer = here.registry.offer("demo")
        session, again = await here.registry.open(offer.token, "peer")
        same, _ = await here.registry.open(offer.token, "peer")
        assert same is session
        assert (await here.registry.open(again, "peer"))[0] is session
        session.call.hang_up()
        await asyncio.sleep(1)
        for token in (offer.token, again):
            with pytest.raises(TokenRefused, match="has ended"):
                await here.registry.open(token, "peer")
        late = here.registry.offer("demo")
        await asyncio.sleep(START_TTL_S)
        with pytest.raises(TokenRefused, match="expired"):
            await here.registry.open(late.token, "peer")


async def test_two_sockets_with_one_start_token_share_one_call() -> None:
    async with desk() as here:
        token = here.registry.offer("demo").token
        both = await asyncio.gather(here.registry.open(token, "a"), here.registry.open(token, "b"))
        assert both[0][0] is both[1][0]
        assert here.registry.active == 1


async def test_a_reattach_token_lives_as_long_as_the_call() -> None:
    async with desk() as here:
        session, token = await here.call()
        async with attached(session, token) as socket:
            for _ in range(28):
                socket.say(bytes(640))
                socket.say({"t": "say", "text": "x"})
                await asyncio.sleep(10)
            assert (await here.registry.open(token, "peer"))[0] is session


async def test_limits_end_a_call() -> None:
    policy = CallPolicy(linger_s=5, idle_s=20, max_s=30)
    async with desk(policy=policy) as here:
        session, token = await here.call()
        async with attached(session, token) as socket:
            await asyncio.sleep(25)
            assert socket.texts[-1] == {"t": "bye", "reason": "limit"}
            assert socket.closed is not None and socket.closed[0] == 1000
        assert here.metrics.value("calls_ended_total", reason="limit") == 1


async def test_a_call_that_cannot_be_built_leaves_no_trace() -> None:
    async with desk() as here:
        here.calls.fail = True
        with pytest.raises(RuntimeError, match="holidays|holiday"):
            await here.call()
        assert here.registry.active == 0
        here.calls.fail = False
        await here.call()
        assert here.registry.active == 1


async def test_a_brain_that_dies_ends_its_call_only() -> None:
    async with desk() as here:
        session, token = await here.call()
        other, _ = await here.call()
        async with attached(session, token) as socket:
            await asyncio.sleep(0.1)
            brain = here.calls.brains[session.call.info.call_id]
            brain._jobs.put_nowait(None)  # type: ignore[arg-type]
            await asyncio.sleep(1)
            assert session.call.ended == "error"
            assert "error" in socket.kinds()
            assert socket.texts[-1] == {"t": "bye", "reason": "error"}
        assert other.call.ended is None


async def test_drain_waits_then_ends_and_leaving_ends_everything() -> None:
    async with desk() as here:
        loop = asyncio.get_running_loop()
        short, token = await here.call()
        long, _ = await here.call()
        async with attached(short, token):
            began = loop.time()
            async with asyncio.TaskGroup() as group:
                draining = group.create_task(here.registry.drain(3))
                await asyncio.sleep(1)
                short.call.hang_up()
            assert draining.done()
            assert 2.9 < loop.time() - began < 5.1
        assert long.call.ended == "drain"
        assert here.registry.active == 0
    async with desk() as here:
        session, _ = await here.call()
    assert session.call.ended == "drain"


async def test_drain_returns_at_once_when_nobody_is_there() -> None:
    async with desk() as here:
        began = asyncio.get_running_loop().time()
        await here.registry.drain(30)
        assert asyncio.get_running_loop().time() == began


async def test_ended_calls_are_forgotten_with_their_tokens() -> None:
    async with desk() as here:
        for _ in range(5):
            session, _ = await here.call()
            session.call.hang_up()
            await asyncio.sleep(START_TTL_S)
        assert len(here.registry._ended) <= 2
