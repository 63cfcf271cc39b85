"""The doors of a real server over loopback: calls, re-attach, refusals, drain, and abuse."""

from __future__ import annotations

import asyncio
import json
import random
import re
from pathlib import Path

import aiohttp
import psutil
import pytest

from tests.web.client import config, eventually, site
from voxglove.web.auth import Signer

pytestmark = pytest.mark.real_loop


async def test_a_call_from_ready_to_bye() -> None:
    async with site() as here:
        client = await here.connect()
        ready = await client.until_kind("ready")
        await client.until_kind("state")
        assert client.kinds()[:2] == ["ready", "state"]
        assert ready["epoch"] == 0
        assert ready["config"] == {"rate": 16_000, "frame_ms": 20}
        assert ready["assistantName"] == "Echo"
        assert ready["resumed"] is False
        await client.say(t="say", text="hi")
        heard = await client.until_kind("heard")
        assert heard["heard"] == "You said: hi"
        assert heard["unheard"] == ""
        await client.until_kind("speech_end")
        assert client.states()[-2:] == ["thinking", "speaking"]
        assert len(client.audio) == 2 * 16 * 60 * len("You said: hi"), "every sample, once"
        await client.say(t="hangup")
        assert await client.until_closed() == 1000
        assert client.texts[-1] == {"t": "bye", "reason": "remote_hangup"}
        await eventually(lambda: here.server.registry.active == 0)


async def test_voice_row_073_typed_text_takes_the_same_path_as_an_utterance() -> None:
    async with site() as here:
        client = await here.connect()
        await client.say(t="say", text="what time is it", speaker="user")
        utterance = await client.until_kind("utterance")
        assert utterance["text"] == "what time is it"
        assert (utterance["speaker"], utterance["source"]) == ("user", "typed")
        speech = await client.until_kind("speech")
        assert speech["turnId"] == utterance["turnId"]
        await client.ws.close()


async def test_voice_row_070_a_second_socket_takes_over_and_the_first_closes_4000() -> None:
    async with site() as here:
        first = await here.connect()
        ready = await first.until_kind("ready")
        await first.say(t="say", text="remember me")
        await first.until_kind("speech_end")
        call_id = str(ready["callId"])
        brain = here.calls.brains[call_id]
        second = await here.connect(str(ready["token"]))
        again = await second.until_kind("ready")
        assert (again["callId"], again["resumed"], again["epoch"]) == (call_id, True, 0)
        await second.until_kind("state")
        assert await first.until_closed() == 4000
        await second.say(t="say", text="still there")
        await second.until_kind("speech_end")
        assert brain.typed == ["remember me", "still there"], "the same brain, its history kept"
        await second.ws.close()


async def test_an_answer_goes_on_where_a_lost_socket_left_it() -> None:
    async with site() as here:
        first = await here.connect()
        ready = await first.until_kind("ready")
        await first.say(t="say", text="a rather long sentence to be cut in two")
        await first.until(lambda client: len(client.audio) > 16_000)
        await first.drop()
        await asyncio.sleep(0.3)
        assert here.server.registry.active == 1
        second = await here.connect(str(ready["token"]))
        heard = await second.until_kind("heard")
        assert heard["interrupted"] is False
        total = 2 * 16 * 60 * len("You said: a rather long sentence to be cut in two")
        played = len(first.audio) + len(second.audio)
        assert total <= played + 640 and played <= total + 2 * 16 * 400, "replayed, not restarted"
        await second.ws.close()


async def test_a_lost_call_ends_when_nobody_comes_back() -> None:
    async with site(linger_s=0.3) as here:
        client = await here.connect()
        ready = await client.until_kind("ready")
        await client.drop()
        await eventually(lambda: here.server.registry.active == 0)
        assert here.server.metrics.value("calls_ended_total", reason="linger") == 1
        async with here.http.get(f"{here.url}/ws?token={ready['token']}") as answer:
            assert answer.status == 426, "no upgrade was asked for"
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await here.connect(str(ready["token"]))
        assert refused.value.status == 401


async def test_voice_row_029_a_barge_in_after_the_audio_ended_is_answered_by_resume() -> None:
    async with site() as here:
        client = await here.connect()
        await client.say(t="say", text="hi")
        await client.until_kind("speech_end")
        await client.say(t="barge_in")
        await client.until_kind("resume")
        assert "pause" not in client.kinds()
        await client.ws.close()


async def test_a_barge_in_while_speaking_clears_and_resumes_the_client() -> None:
    async with site() as here:
        client = await here.connect()
        await client.say(t="say", text="a long text that is going to be cut")
        await client.until(lambda client: len(client.audio) > 6_400)
        await client.say(t="barge_in")
        heard = await client.until_kind("heard")
        assert heard["interrupted"] is True
        kinds = client.kinds()
        assert kinds.index("clear") < kinds.index("resume"), "an empty player plays again"
        assert kinds.count("resume") == 1
        await client.ws.close()


async def test_interrupt_says_what_was_heard() -> None:
    async with site() as here:
        client = await here.connect()
        await client.say(t="say", text="one two three four five six seven")
        await client.until(lambda client: len(client.audio) > 16_000)
        await client.say(t="interrupt")
        heard = await client.until_kind("heard")
        whole = "You said: one two three four five six seven"
        assert str(heard["heard"]) + str(heard["unheard"]) == whole
        assert 0 < len(str(heard["heard"])) < len(whole)
        await client.ws.close()


async def test_a_slot_is_answered_and_goes() -> None:
    async with site() as here:
        client = await here.connect()
        await client.say(t="say", text="ask")
        slot = await client.until_kind("slot")
        assert (slot["renderer"], slot["strategy"]) == ("generic", "stay")
        second = await here.connect(str((await client.until_kind("ready"))["token"]))
        assert (await second.until_kind("slot"))["id"] == slot["id"], "told again on re-attach"
        await second.say(t="resolve", id="slot_99", value=True)
        assert (await second.until_kind("error"))["code"] == "unknown_slot"
        await second.say(t="resolve", id=slot["id"], value="Yes")
        assert (await second.until_kind("slot_removed"))["id"] == slot["id"]
        assert (await second.until_kind("speech"))["text"] == "You said: Yes"
        await second.ws.close()


async def test_mute_shows_as_a_state() -> None:
    async with site() as here:
        client = await here.connect()
        await client.say(t="mute", on=True)
        await client.until(lambda client: client.states()[-1:] == ["muted"])
        await client.say(t="mute", on=False)
        await client.until(lambda client: client.states()[-1:] == ["listening"])
        await client.ws.close()


async def test_voice_row_072_a_malformed_frame_leaves_the_call_alive() -> None:
    async with site() as here:
        client = await here.connect()
        await client.ws.send_bytes(b"\0" * 641)
        error = await client.until_kind("error")
        assert (error["code"], error["field"]) == ("bad_frame", "pcm")
        await client.say(t="say", text="hi")
        await client.until_kind("heard")
        await client.ws.close()


@pytest.mark.parametrize(
    ("origin", "status"),
    [("https://evil.example", 403), ("null", 403), ("http://127.0.0.1:1", 403), (None, 201)],
)
async def test_post_session_checks_the_origin(origin: str | None, status: int) -> None:
    async with (
        site(origin=origin) as here,
        here.http.post(f"{here.url}/session") as answer,
    ):
        assert answer.status == status
        if status == 403:
            assert "server.origins" in (await answer.json())["message"]


async def test_ws_checks_origin_before_token_and_host_before_both() -> None:
    async with site() as here:
        token = str((await here.session())["token"])
        for headers in ({"Origin": "https://evil.example"}, {"Host": "evil.example"}):
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await here.connect(token, headers=headers)
            assert refused.value.status == 403
        assert here.server.registry.active == 0


async def test_a_program_needs_a_key_where_others_could_reach_the_server() -> None:
    exposed = config(host="0.0.0.0", api_keys=())
    async with site(exposed, origin=None) as here:
        for path, method in (("/session", "POST"), ("/metrics", "GET")):
            async with here.http.request(method, here.url + path) as answer:
                assert answer.status == 401
                assert answer.headers["WWW-Authenticate"] == "Bearer"
        object.__setattr__(here.server, "keys", ("k" * 20,))
        headers = {"Authorization": f"Bearer {'k' * 20}"}
        async with here.http.post(f"{here.url}/session", headers=headers) as answer:
            assert answer.status == 201


@pytest.mark.parametrize(
    "token",
    [
        "",
        "x",
        "a.b",
        "é.é",
        "x" * 5_000,
        Signer.of("another secret").sign("c", "a", "start", 60)[0],
    ],
)
async def test_a_bad_token_gets_401(token: str) -> None:
    async with site() as here:
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await here.http.ws_connect(f"{here.url}/ws", params={"token": token})
        assert refused.value.status == 401


@pytest.mark.parametrize(
    ("body", "status", "word"),
    [
        (b"", 201, "token"),
        (b"{}", 201, "token"),
        (b'{"agent": "demo"}', 201, "token"),
        (b'{"agent": "nobody"}', 400, "agent"),
        (b'{"agent": 5}', 400, "agent"),
        (b"{", 400, "JSON"),
        (b"[]", 400, "object"),
        (b"[" * 3_000, 400, "JSON"),
        (b'{"a": "' + b"x" * 5_000 + b'"}', 413, "limited"),
    ],
)
async def test_the_body_of_a_session(body: bytes, status: int, word: str) -> None:
    async with site() as here, here.http.post(f"{here.url}/session", data=body) as answer:
        assert answer.status == status
        assert word in await answer.text()


async def test_a_full_server_refuses_before_answering() -> None:
    async with site(config(max_calls=1)) as here:
        spare = str((await here.session())["token"])
        client = await here.connect()
        await client.until_kind("ready")
        async with here.http.post(f"{here.url}/session") as answer:
            assert (answer.status, answer.headers["Retry-After"]) == (503, "5")
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await here.connect(spare)
        assert refused.value.status == 503
        assert refused.value.headers is not None and "Retry-After" in refused.value.headers
        async with here.http.get(f"{here.url}/readyz") as answer:
            assert (answer.status, (await answer.json())["reason"]) == (503, "full")
        await client.say(t="hangup")
        await client.until_closed()
        await eventually(lambda: here.server.registry.active == 0)
        await (await here.connect(spare)).ws.close(code=1000)


async def test_a_call_that_cannot_be_built_is_an_answer_not_a_hang() -> None:
    async with site() as here:
        here.calls.fail = True
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await here.connect()
        assert refused.value.status == 500
        assert here.server.registry.active == 0


async def test_drain_lets_calls_finish_and_ends_the_rest_with_1001() -> None:
    async with site() as here:
        finishing, staying = await here.connect(), await here.connect()
        await finishing.until_kind("ready")
        await staying.until_kind("ready")
        async with asyncio.TaskGroup() as group:
            draining = group.create_task(here.server.registry.drain(1.0))
            await asyncio.sleep(0.1)
            async with here.http.get(f"{here.url}/readyz") as answer:
                assert answer.status == 503
            async with here.http.post(f"{here.url}/session") as answer:
                assert answer.status == 503
            await finishing.say(t="say", text="one more")
            await finishing.until_kind("utterance")
            await finishing.say(t="hangup")
            assert await finishing.until_closed() == 1000
            assert not draining.done()
            assert await staying.until_closed() == 1001
            assert staying.texts[-1] == {"t": "bye", "reason": "drain"}
        await eventually(lambda: here.server.registry.active == 0)


async def test_the_page_and_the_health_doors() -> None:
    async with site() as here:
        async with here.http.get(here.url + "/") as answer:
            assert answer.status == 200
            policy = answer.headers["Content-Security-Policy"]
            assert "default-src 'none'" in policy and "unsafe" not in policy
        for path in ("/static/../config.py", "/static/%2e%2e/config.py", "/static/x", "/nothing"):
            async with here.http.get(here.url + path) as answer:
                assert answer.status == 404
        async with here.http.get(here.url + "/livez") as answer:
            assert answer.status == 200
        async with here.http.get(here.url + "/metrics") as answer:
            text = await answer.text()
            assert "voxglove_calls_active 0" in text
            assert "# TYPE voxglove_calls_ended_total counter" in text
        async with here.http.get(here.url + "/session") as answer:
            assert (answer.status, answer.headers["Allow"]) == (405, "POST")


async def test_a_half_open_line_is_noticed_and_an_idle_one_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("voxglove.web.routes.ws.HEARTBEAT_S", 0.2)
    async with site() as here:
        idle = await here.connect()
        dead = await here.connect(autoping=False)
        await dead.until_kind("state")
        with pytest.raises(AssertionError, match="not within"):
            await idle.until_kind("bye", within_s=1.0)
        assert await dead.until_closed(1.0) != 1000
        assert here.server.open_sockets == 1
        await idle.ws.close(code=1000)


@pytest.mark.slow
async def test_a_client_that_stops_reading_is_closed_and_others_do_not_notice() -> None:
    async with site() as here:
        slow, brisk = await here.connect(), await here.connect()
        await slow.until_kind("ready")
        slow.ws._response.connection.transport.pause_reading()  # type: ignore[union-attr]
        sent = asyncio.get_running_loop().time()
        await slow.say(t="say", text="x" * 1_000)
        await brisk.say(t="say", text="hi")
        await brisk.until_kind("heard")
        await eventually(lambda: here.server.open_sockets <= 1, 40)
        assert asyncio.get_running_loop().time() - sent < 30
        await brisk.ws.close(code=1000)
        await slow.drop()


def garbage(chance: random.Random) -> bytes | str:
    """One malformed message of a random sort."""
    return chance.choice(
        (
            lambda: bytes(chance.randrange(1, 2_000, 2)),
            lambda: b"",
            lambda: "".join(chance.choices('{}[]",:0tnul\\u', k=chance.randrange(200))) + "{",
            lambda: json.dumps({"t": chance.choice(["say", "mute", "resolve", "x", 5, None])}),
            lambda: "[" * chance.randrange(1, 60_000),
            lambda: json.dumps({"t": "playback", "epoch": chance.random(), "pos": -1}),
            lambda: json.dumps({"t": "playback", "epoch": 10**6, "pos": 0}),
        )
    )()


async def test_ten_thousand_malformed_messages() -> None:
    """Each is answered by an error or its socket by a close code; memory stays flat."""
    chance, process = random.Random(16), psutil.Process()
    sent = answered = closed = 0
    async with asyncio.timeout(60), site(config(max_calls=500), linger_s=0.2) as here:
        rss: list[int] = []
        while sent < 10_000:
            client = await here.connect()
            for _ in range(21):
                await client.ws.send_bytes(m) if isinstance(
                    m := garbage(chance), bytes
                ) else await client.ws.send_str(m)
                sent += 1
            assert await client.until_closed() == 4001
            closed += 1
            answered += client.kinds().count("error")
            rss.append(process.memory_info().rss)
        assert answered == sent, "the 21st is answered too, before the close"
        later = rss[len(rss) // 2 :]
        assert max(later) - later[0] < 8_000_000, "resident memory grows"
        probe = await here.connect()
        await probe.say(t="say", text="hi")
        await probe.until_kind("heard")
        await probe.ws.close(code=1000)


async def test_a_message_beyond_the_limit_closes_1009() -> None:
    async with site() as here:
        for message in (b"\0" * 70_000, "x" * 70_000):
            client = await here.connect()
            if isinstance(message, bytes):
                await client.ws.send_bytes(message)
            else:
                await client.ws.send_str(message)
            assert await client.until_closed() == 1009
        exact = await here.connect()
        await exact.ws.send_bytes(b"\0" * 65_536)
        await exact.say(t="say", text="hi")
        await exact.until_kind("heard")
        await exact.ws.close(code=1000)


def slope(values: list[int]) -> float:
    """Least squares, per step."""
    count = len(values)
    mean_x, mean_y = (count - 1) / 2, sum(values) / count
    over = sum((x - mean_x) * (y - mean_y) for x, y in enumerate(values))
    return over / sum((x - mean_x) ** 2 for x in range(count))


@pytest.mark.slow
async def test_two_hundred_calls_leave_nothing_behind() -> None:
    process = psutil.Process()
    rss, fds, tasks = [], [], []
    async with asyncio.timeout(110), site() as here:
        for _ in range(200):
            client = await here.connect()
            await client.ws.send_bytes(bytes(6_400))
            await client.say(t="say", text="")  # one bad message
            await client.say(t="say", text="a")
            await client.until(lambda client: len(client.audio) > 3_200)
            await client.say(t="hangup")
            assert await client.until_closed() == 1000
            rss.append(process.memory_info().rss)
            fds.append(process.num_fds())
            tasks.append(len(asyncio.all_tasks()))
    assert slope(rss[50:]) < 20_000, f"{slope(rss[50:]):.0f} bytes per call"
    assert max(fds[50:]) <= fds[50] + 2
    assert max(tasks[50:]) <= tasks[50] + 2


def test_the_page_needs_nothing_from_elsewhere() -> None:
    static = Path(__file__).parents[2] / "web" / "static"
    loads = re.compile(r"""(?:src|href|url|import|from|fetch|addModule)\W{1,3}(?:https?:)?//""")
    for path in static.iterdir():
        text = path.read_text()
        assert not loads.search(text), path.name
        assert "<script>" not in text and " onclick=" not in text, path.name
        assert "innerHTML" not in text, f"{path.name} writes markup"
