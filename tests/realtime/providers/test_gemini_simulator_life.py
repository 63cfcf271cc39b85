"""How a connection to the simulated Gemini Live API ends, and what survives it."""

from __future__ import annotations

import asyncio
from typing import Any, get_args

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.realtime.providers.gemini_peer import (
    Json,
    Peer,
    assert_clean,
    content,
    dialled,
    opened,
    setup_for,
    sound_of,
)
from tests.simulators.gemini_live import GeminiLive, Options, gemini_live
from tests.simulators.realtime_script import Asked, Call, Fault, Point, Reply, Script

RESUMES: Json = {"sessionResumption": {}}
COMPRESSES: Json = {"contextWindowCompression": {"slidingWindow": {}}}
DEADLINE = (1011, "Deadline expired before operation could complete.")


def now() -> float:
    return asyncio.get_running_loop().time()


def update_of(message: Json) -> dict[str, Any]:
    update = message["sessionResumptionUpdate"]
    assert isinstance(update, dict)
    return update


async def type_text(peer: Peer, text: str) -> str:
    """One typed turn; the handle that comes after it."""
    await peer.send({"realtimeInput": {"text": text}})
    await peer.until("turnComplete")
    update = update_of(await peer.next())
    assert update["resumable"] is True
    return str(update["newHandle"])


def resumed(server: GeminiLive, handle: str) -> Json:
    return setup_for(server, sessionResumption={"handle": handle})


async def test_a_handle_restores_what_was_said_until_it_was_given() -> None:
    async with gemini_live(Script()) as server:
        async with opened(server, **RESUMES) as peer:
            handle = await type_text(peer, "alpha")
            await type_text(peer, "bravo")
        async with dialled(server) as peer:
            await peer.send({"setup": resumed(server, handle)})
            assert await peer.next() == {"setupComplete": {"sessionId": "sid-1"}}
            await type_text(peer, "charlie")
        said = [text for _, text in server.conversation]
        assert said == ["alpha", "echo alpha", "charlie", "echo charlie"]
        async with dialled(server) as peer:
            await peer.send({"setup": resumed(server, handle)})
            await peer.next()
        assert server.conversation == [("user", "alpha"), ("assistant", "echo alpha")]
    assert_clean(server)


async def test_a_session_cannot_be_resumed_while_the_model_works() -> None:
    def answer(asked: Asked) -> Reply:
        return Reply(text="golf") if asked.by == "results" else Reply(calls=(Call(name="lookup"),))

    script = Script(answer=answer)
    async with gemini_live(script, generation="2.5") as server, opened(server, **RESUMES) as peer:
        await peer.send({"realtimeInput": {"text": "alpha"}})
        got = await peer.until("toolCall")
        assert update_of(got[0]) == {"resumable": False}
        calls: Any = got[-1]["toolCall"]
        answered = {"id": calls["functionCalls"][0]["id"], "name": "lookup", "response": {}}
        await peer.send({"toolResponse": {"functionResponses": [answered]}})
        rest = await peer.until(lambda m: "newHandle" in str(m))
    assert [content(message) for message in rest[:-1] if "sessionResumptionUpdate" in message] == []
    assert "turnComplete" in content(rest[-2])
    assert_clean(server)


async def test_no_handle_is_given_while_a_call_runs_beside_the_model() -> None:
    answer = Reply(calls=(Call(name="lookup", id="fc-a"),))
    script = Script(answer=lambda asked: answer if asked.by == "text" else Reply(text="golf"))
    async with gemini_live(script) as server, opened(server, **RESUMES) as peer:
        await peer.send({"realtimeInput": {"text": "alpha"}})
        await peer.until("turnComplete")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(peer.next(), 5)
        quiet = {"id": "fc-a", "name": "lookup", "response": {}, "scheduling": "SILENT"}
        await peer.send({"toolResponse": {"functionResponses": [quiet]}})
        assert "newHandle" in update_of(await peer.next())
    assert_clean(server)


@pytest.mark.parametrize("handling", ["START_OF_ACTIVITY_INTERRUPTS", "NO_INTERRUPTION"])
async def test_no_handle_is_given_and_no_answer_begun_while_the_user_speaks(handling: str) -> None:
    setup: Json = {**RESUMES, "realtimeInputConfig": {"activityHandling": handling}}
    script = Script(answer=lambda asked: Reply(text="golf hotel india juliet"))
    async with gemini_live(script) as server, opened(server, **setup) as peer:
        await peer.send({"realtimeInput": {"text": "alpha"}})
        await peer.until("modelTurn")
        await peer.speak("bravo", pause_ms=0)
        await peer.until("turnComplete")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(peer.next(), 5)
        await peer.send({"realtimeInput": {"text": "charlie"}})
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(peer.next(), 5)
        await peer.send({"realtimeInput": {"audioStreamEnd": True}})
        for _ in range(2):
            await peer.until("turnComplete")
        assert "newHandle" in update_of(await peer.next())
    assert_clean(server)


async def test_handles_are_given_only_to_who_asks_and_by_who_has_them() -> None:
    for script, setup in ((Script(), {}), (Script(handles=False), RESUMES)):
        async with gemini_live(script) as server, opened(server, **setup) as peer:
            await peer.send({"realtimeInput": {"text": "alpha"}})
            await peer.until("turnComplete")
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(peer.next(), 5)
        assert not any("sessionResumptionUpdate" in message for message in peer.seen)


async def test_the_old_connection_must_be_closed_first() -> None:
    async with gemini_live(Script()) as server, opened(server, **RESUMES) as peer:
        handle = await type_text(peer, "alpha")
        async with dialled(server) as other:
            await other.send({"setup": resumed(server, handle)})
            assert (await other.refused())[0] == 1011
    assert server.violations == ["The session is still open elsewhere."]


async def test_a_half_open_connection_does_not_keep_its_session() -> None:
    fault = Fault(point="handle_given", action="half_open")
    async with gemini_live(Script(faults=[fault])) as server, opened(server, **RESUMES) as peer:
        handle = await type_text(peer, "alpha")
        async with dialled(server) as other:
            await other.send({"setup": resumed(server, handle)})
            assert "setupComplete" in await other.next()
        peer.socket.transport.abort()
    assert_clean(server)


async def test_an_expired_handle_is_refused_and_nobody_is_to_blame() -> None:
    async with gemini_live(Script()) as server:
        async with opened(server, **RESUMES) as peer:
            handle = await type_text(peer, "alpha")
        server.expire_handles()
        async with dialled(server) as peer:
            await peer.send({"setup": resumed(server, handle)})
            assert await peer.refused() == (1007, "Session handle not found or expired.")
    assert_clean(server)


async def test_a_handle_of_another_model_is_refused() -> None:
    async with gemini_live(Script()) as server:
        async with opened(server, **RESUMES) as peer:
            handle = await type_text(peer, "alpha")
        async with dialled(server) as peer:
            setup = {**resumed(server, handle), "model": "models/gemini-3.8-live-extended-thinking"}
            await peer.send({"setup": setup})
            assert await peer.refused() == (1007, "sessionResumption.handle: of another model")


async def test_a_connection_has_its_time_and_says_so_before() -> None:
    options = Options(life_s=600, notice_s=50)
    async with gemini_live(Script(), options=options) as server, opened(server) as peer:
        begun = now()
        assert await peer.next() == {"goAway": {"timeLeft": "50s"}}
        assert now() - begun == pytest.approx(550, abs=0.1)
        assert await peer.refused() == DEADLINE
        assert now() - begun == pytest.approx(600, abs=0.1)
    assert_clean(server)


async def test_a_long_session_must_be_compressed() -> None:
    options = Options(uncompressed_s=900, notice_s=1.5)
    async with gemini_live(Script(), options=options) as server:
        async with opened(server, **RESUMES) as peer:
            handle = await type_text(peer, "alpha")
            assert await peer.next() == {"goAway": {"timeLeft": "1.500s"}}
            assert await peer.refused() == DEADLINE
        async with dialled(server) as peer:
            await peer.send({"setup": resumed(server, handle)})
            assert (await peer.refused())[0] == 1007
        async with opened(server, **COMPRESSES) as peer:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(peer.next(), 5_000)


async def test_a_full_window_is_cut_at_a_turn_of_the_user_or_is_the_end() -> None:
    options = Options(window_tokens=300)
    async with gemini_live(Script(), options=options) as server:
        async with opened(server, **COMPRESSES) as peer:
            for word in ("alpha", "bravo", "charlie"):
                await peer.send({"realtimeInput": {"text": word}})
                await peer.until("turnComplete")
            assert server.conversation == [("user", "charlie"), ("assistant", "echo charlie")]
        async with opened(server) as peer:
            for word in ("alpha", "bravo", "charlie"):
                await peer.send({"realtimeInput": {"text": word}})
            code, reason = await peer.refused()
            assert code == 1007 and "context window" in reason
    assert_clean(server)


async def whole_life(peer: Peer, server: GeminiLive) -> None:
    """Passes every point of a session's life, unless a fault ends it before."""
    setup = setup_for(server, **RESUMES, tools=[{"functionDeclarations": [{"name": "lookup"}]}])
    await peer.send({"setup": setup})
    await peer.next()
    await peer.speak("alpha")
    await peer.until("turnComplete")
    note = {"turns": [{"role": "user", "parts": [{"text": "note"}]}], "turnComplete": False}
    await peer.send({"clientContent": note})
    await peer.send({"realtimeInput": {"text": "call"}})
    await peer.until("toolCall")
    await asyncio.sleep(0.2)
    answered = {"id": "fc-a", "name": "lookup", "response": {}}
    await peer.send({"toolResponse": {"functionResponses": [answered]}})
    await peer.until("goAway")
    await peer.until("never")


def whole_answer(asked: Asked) -> Reply:
    if asked.text == "call":
        return Reply(calls=(Call(name="lookup", id="fc-a"),))
    return Reply(text="golf")


POINTS = [point for point in get_args(Point) if point != "connect"]


@pytest.mark.parametrize("point", POINTS)
async def test_a_connection_can_be_lost_at_every_point(point: Point) -> None:
    """`connect` has its own test: there the handshake fails."""
    nth = 3 if point == "mid_audio" else 1
    script = Script(
        answer=whole_answer,
        faults=[
            Fault(point="handle_given", action="go_away", nth=2),
            Fault(point=point, action="drop", nth=nth),
        ],
    )
    async with gemini_live(script) as server, dialled(server) as peer:
        with pytest.raises((ConnectionClosed, ConnectionError)) as lost:
            await whole_life(peer, server)
    assert getattr(lost.value, "rcvd", None) is None
    assert all(fault.done for fault in script.faults if fault.action == "drop")
    assert_clean(server)


@pytest.mark.parametrize(("status", "refused"), [(503, InvalidStatus), (0, Exception)])
async def test_a_connection_may_not_come_about(status: int, refused: type[Exception]) -> None:
    action: Any = "refuse" if status else "drop"
    script = Script(faults=[Fault(point="connect", action=action, code=status)])
    async with gemini_live(script) as server:
        with pytest.raises(refused):
            async with dialled(server):
                pass
        async with opened(server):
            pass
    assert_clean(server)


@pytest.mark.parametrize(
    ("fault", "closed"),
    [
        (Fault(point="opened", action="close", code=1008, reason="no"), (1008, "no")),
        (Fault(point="opened", action="error", error_code="session_expired"), DEADLINE),
        (Fault(point="opened", action="error", error_code="odd", code=1007), (1007, "odd")),
        (Fault(point="opened", action="error", error_code="policy", reason="no"), (1008, "no")),
    ],
)
async def test_the_provider_may_end_it(fault: Fault, closed: tuple[int, str]) -> None:
    async with gemini_live(Script(faults=[fault])) as server, opened(server) as peer:
        assert await peer.refused() == closed
    assert_clean(server)


@pytest.mark.parametrize("action", ["stall", "half_open"])
async def test_the_provider_may_fall_silent(action: Any) -> None:
    script = Script(faults=[Fault(point="mid_audio", action=action)])
    async with gemini_live(script) as server, opened(server) as peer:
        await peer.send({"realtimeInput": {"text": "alpha"}})
        await peer.until("modelTurn")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(peer.next(), 60)
        peer.socket.transport.abort()
    assert server.faults == []


async def test_the_provider_may_be_late() -> None:
    script = Script(faults=[Fault(point="before_audio", action="delay", seconds=7)])
    async with gemini_live(script) as server, opened(server) as peer:
        begun = now()
        await peer.send({"realtimeInput": {"text": "alpha"}})
        await peer.until("modelTurn")
        assert now() - begun == pytest.approx(7.05, abs=0.01)
        assert sound_of([peer.seen[-1], *await peer.until("turnComplete")]) == ["echo", "alpha"]
    assert_clean(server)


@pytest.mark.real_loop
async def test_a_half_open_connection_does_not_outlive_its_server() -> None:
    script = Script(faults=[Fault(point="opened", action="half_open")])
    async with asyncio.timeout(10):
        async with gemini_live(script) as server, opened(server) as peer:
            peer.socket.transport.abort()
    assert_clean(server)
