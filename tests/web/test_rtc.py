"""The WebRTC door: calls of real peers on loopback, over /rtc/offer, on the real clock."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress

import numpy as np
import pytest

from tests.adapters.transports_webrtc.peer import Peer
from tests.web.client import eventually
from tests.web.rtc_client import (
    offer,
    pitch,
    rtc_client,
    rtc_config,
    rtc_site,
    sine,
)
from voxglove.adapters.transports import webrtc_seams
from voxglove.media.brain import Say
from voxglove.web.config import Config, ServerConfig

pytestmark = pytest.mark.real_loop

Tell = Callable[[str], None]


async def test_a_call_from_offer_to_bye(tell: Tell) -> None:
    async with rtc_site() as site:
        asked = await site.session()
        rtc = {"offer_url": "/rtc/offer", "candidate_url": "/rtc/candidate", "ice_servers": []}
        assert asked["rtc"] == rtc
        setups = []
        async with rtc_client(site, str(asked["token"])) as page:
            setups.append(page.setup_ms)
            ready = await page.until_kind("ready")
            assert ready["callId"] == asked["call_id"] and ready["resumed"] is False
            assert site.calls.calls[str(asked["call_id"])].info.line == "webrtc"
            assert (await page.status()) == {"state": "connected", "cause": None}
            page.peer.speech.put(sine(2.0))
            page.peer.say({"t": "say", "text": "hi"})
            brain = site.calls.brains[str(asked["call_id"])]
            await page.until(lambda: brain.loud_samples >= 16_000)
            assert brain.pitch() == pytest.approx(700, abs=15), "the caller is heard"
            await page.until_kind("heard")
            await page.until(lambda: page.loud_ms() >= 600)
            loud = np.concatenate([f for f in page.peer.heard if np.abs(f).max() > 2_000])
            assert pitch(loud) == pytest.approx(440, abs=15), "the answer is heard"
            page.peer.say({"t": "hangup"})
            assert (await page.until_kind("bye"))["reason"] == "remote_hangup"
            assert page.kinds()[0] == "ready" and page.kinds()[-1] == "bye"
            assert "clear" not in page.kinds()
            await eventually(lambda: site.server.registry.active == 0)
            await page.until(lambda: site.server.metrics.value("rtc_lines_active") == 0)
            assert (await page.status())["state"] == "closed"
        for _ in range(4):
            async with rtc_client(site) as again:
                setups.append(again.setup_ms)
        assert site.server.metrics.value("rtc_lines_total") == 5
        assert site.server.metrics.value("rtc_setup_seconds_total") > 0
    tell(f"webrtc setup, offer sent to connected: {', '.join(f'{ms:.0f}' for ms in setups)} ms")


async def test_refusals_name_the_field() -> None:
    async with rtc_site() as site:
        sdp = await _an_offer()
        token = str((await site.session())["token"])
        for body, status, code, field in (
            ({"token": "x.y", "sdp": sdp}, 401, "bad_token", "token"),
            ({"token": 7, "sdp": sdp}, 401, "bad_token", "token"),
            ({"sdp": sdp}, 401, "bad_token", "token"),
            ({"token": token}, 400, "bad_offer", "sdp"),
            ({"token": token, "sdp": "v=0"}, 400, "bad_offer", "sdp"),
            ({"token": token, "sdp": sdp, "line_id": 3}, 400, "bad_offer", "line_id"),
            ({"token": token, "sdp": sdp, "line_id": "line_x"}, 404, "unknown_line", "line_id"),
        ):
            got, answer = await offer(site, **body)
            assert (got, answer["code"], answer["field"]) == (status, code, field)
        assert (await offer(site, token=token, sdp="x" * 80_000))[0] == 413
        assert site.server.registry.active == 0, "a bad offer begins no call"
        post = site.http.post
        foreign = {"Origin": "http://evil.example"}
        async with post(f"{site.url}/rtc/offer", json={}, headers=foreign) as answer_:
            assert (answer_.status, (await answer_.json())["code"]) == (403, "bad_origin")
        async with post(f"{site.url}/rtc/candidate", json={}, headers=foreign) as answer_:
            assert answer_.status == 403
        unknown = {"line_id": "line_x", "candidate": "", "sdpMid": "0", "sdpMLineIndex": 0}
        async with post(f"{site.url}/rtc/candidate", json=unknown) as answer_:
            assert (answer_.status, (await answer_.json())["code"]) == (404, "unknown_line")
        async with site.http.get(f"{site.url}/rtc/lines/line_x") as answer_:
            assert answer_.status == 404


async def test_candidates_may_come_later() -> None:
    async with rtc_site() as site:
        peer = Peer()
        sdp = await peer.offer()
        lines = sdp.splitlines()
        held = [line[2:] for line in lines if line.startswith("a=candidate:")]
        bare = [line for line in lines if not line.startswith(("a=candidate", "a=end-of"))]
        token = str((await site.session())["token"])
        status, answer = await offer(site, token=token, sdp="\r\n".join(bare) + "\r\n")
        assert status == 200 and held
        await peer.accept(str(answer["sdp"]))
        url, line_id = f"{site.url}/rtc/candidate", answer["line_id"]
        for candidate in (*held, ""):
            body = {"line_id": line_id, "candidate": candidate, "sdpMid": "0", "sdpMLineIndex": 0}
            async with site.http.post(url, json=body) as done:
                assert done.status == 204, await done.text()
        for wrong, field in (
            ({"candidate": "candidate:rubbish"}, "candidate"),
            ({"candidate": 5}, "candidate"),
            ({"sdpMid": 5}, "sdpMid"),
            ({"sdpMLineIndex": "x"}, "sdpMLineIndex"),
            ({"line_id": None}, "line_id"),
        ):
            async with site.http.post(url, json=body | wrong) as refused:
                assert (refused.status, (await refused.json())["field"]) == (400, field)
        await eventually(lambda: peer.pc.connectionState == "connected")
        await peer.pc.close()


async def test_without_the_extra_the_page_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("voxglove.web.rtc_lines.installed", lambda: False)
    async with rtc_site() as site:
        assert (await site.session())["rtc"] is None
        status, answer = await offer(site, token="x", sdp="y")
        assert (status, answer["code"]) == (404, "no_webrtc")


async def test_one_call_moves_from_socket_to_webrtc_and_back() -> None:
    async with rtc_site() as site:
        socket = await site.connect()
        first = await socket.until_kind("ready")
        call_id = str(first["callId"])
        await socket.say(t="say", text="one")
        await socket.until_kind("heard")
        async with rtc_client(site, str(first["token"])) as page:
            assert await socket.until_closed() == 4000
            second = await page.until_kind("ready")
            assert (second["callId"], second["resumed"]) == (call_id, True)
            page.peer.say({"t": "say", "text": "two"})
            await page.until_kind("heard")
            back = await site.connect(str(second["token"]))
            assert (await back.until_kind("ready"))["callId"] == call_id
            assert (await page.until_kind("bye"))["reason"] == "replaced"
            await page.until(lambda: page.peer.pc.connectionState == "closed")
            status = await page.status()
            assert status["state"] == "closed" and "replaced" in str(status["cause"])
            await back.say(t="say", text="three")
            await back.until_kind("heard")
        assert site.calls.brains[call_id].typed == ["one", "two", "three"], "one history"
        await back.say(t="hangup")
        await back.until_closed()


async def test_an_attempt_that_connects_too_late_takes_nothing_from_its_successor() -> None:
    async with rtc_site() as site:
        peer, token = Peer(), str((await site.session())["token"])
        sdp = await peer.offer()
        status, answer = await offer(site, token=token, sdp=sdp)
        assert status == 200
        socket = await site.connect(token)  # the page gave up, and went on over /ws
        await socket.until_kind("ready")
        await peer.accept(str(answer["sdp"]))
        lines = site.server.metrics
        await eventually(lambda: lines.value("rtc_lines_total") == 1)
        await eventually(lambda: lines.value("rtc_lines_active") == 0)
        await socket.say(t="say", text="hi")
        await socket.until_kind("heard")
        await peer.pc.close()


async def test_an_ice_restart_keeps_call_agent_and_answer() -> None:
    async with rtc_site() as site, rtc_client(site) as old:
        ready = await old.until_kind("ready")
        brain = site.calls.brains[str(ready["callId"])]
        old.peer.say({"t": "say", "text": "a long story, told to the end"})
        await old.until(lambda: old.loud_ms() >= 400)
        async with rtc_client(site, str(ready["token"])) as new:
            assert (await new.until_kind("ready"))["resumed"] is True
            assert (await old.until_kind("bye"))["reason"] == "replaced"
            heard = await new.until_kind("heard", 8)
            assert heard["interrupted"] is False, "the answer went on"
            assert brain.typed == ["a long story, told to the end"]
            whole = 60 * len(f"You said: {brain.typed[0]}")
            assert old.loud_ms() + new.loud_ms() == pytest.approx(whole, abs=350)
            assert new.loud_ms() >= 400


async def test_a_renegotiation_changes_nothing_for_the_call() -> None:
    async with rtc_site() as site, rtc_client(site) as page:
        ready = await page.until_kind("ready")
        page.peer.say({"t": "say", "text": "hello there"})
        await page.until(lambda: page.loud_ms() >= 200)
        again = {"token": ready["token"], "line_id": page.line_id}
        status, answer = await offer(site, sdp=await page.peer.offer(), **again)
        assert (status, answer.get("line_id")) == (200, page.line_id), answer
        await page.peer.accept(str(answer["sdp"]))
        assert (await page.until_kind("heard"))["interrupted"] is False
        assert page.kinds().count("ready") == 1
        stranger = str((await site.session())["token"])
        status, answer = await offer(
            site, sdp=await page.peer.offer(), token=stranger, line_id=page.line_id
        )
        assert (status, answer["code"]) == (404, "unknown_line")
        status, answer = await offer(site, sdp=await _an_offer(), **again)
        assert (status, answer["field"]) == (400, "sdp"), "an ICE restart wants a new line"
        status, answer = await offer(site, sdp="v=0", **again)
        assert status == 400
        assert (await page.status())["state"] == "connected", "and the line goes on"


async def test_a_peer_that_vanishes_leaves_the_call_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(webrtc_seams, "CONSENT_FAILURES", 1)
    async with rtc_site(linger_s=1.0) as site, rtc_client(site) as page:
        call = next(iter(site.calls.calls.values()))
        await page.vanish()
        await page.until(lambda: site.server.metrics.value("rtc_lines_active") == 0, 6)
        assert await page.status() == {
            "state": "closed",
            "cause": "ICE: the peer stopped answering",
        }
        assert site.server.metrics.value("rtc_lines_failed_total", cause="ice") == 1
        assert call.ended is None, "detached, and lingering"
        assert call.command(Say("still here")).done() is False
        await eventually(lambda: site.server.registry.active == 0)
        assert call.ended == "linger"


async def test_an_unreachable_peer_is_given_up_with_its_cause(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    loop = asyncio.get_running_loop()
    async with rtc_site(rtc_config(connect_s=1.0)) as site:
        token = str((await site.session())["token"])
        began = loop.time()
        async with rtc_client(site, token, rewrite=_elsewhere) as client:
            assert (await client.status())["state"] == "connecting"
            await client.until(lambda: site.server.metrics.value("rtc_lines_active") == 0, 4)
            assert loop.time() - began <= 1.0 + 1.6, "connect_s, and the time to close"
            status = await client.status()
            assert status["state"] == "closed"
            assert "no pair of candidates works" in str(status["cause"])
        assert site.server.metrics.value("rtc_lines_failed_total", cause="ice") == 1
        said = [r for r in caplog.records if r.getMessage() == "webrtc line ended"]
        assert "no pair of candidates" in said[0].cause  # type: ignore[attr-defined]
        assert "192.0.2." not in caplog.text, "addresses are personal data"
        socket = await site.connect(token)  # and the call goes on over /ws
        assert (await socket.until_kind("ready"))["resumed"] is False
        await socket.say(t="hangup")
        await socket.until_closed()


async def test_an_offer_storm_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("voxglove.web.rtc_lines.MAX_CONNECTING", 3)
    async with rtc_site(rtc_config(connect_s=1.5)) as site:
        sdp = _elsewhere(await _an_offer())
        tokens = [str((await site.session())["token"]) for _ in range(6)]
        async with asyncio.TaskGroup() as group:
            tries = [group.create_task(offer(site, token=token, sdp=sdp)) for token in tokens]
        statuses = [done.result()[0] for done in tries]
        assert sorted(statuses) == [200] * 3 + [503] * 3
        assert {a["code"] for s, a in (t.result() for t in tries) if s == 503} == {"connecting"}
        assert site.server.metrics.value("rtc_lines_refused_total") == 3
        await eventually(lambda: site.server.metrics.value("rtc_lines_active") == 0)
        async with rtc_client(site, tokens[statuses.index(503)]):
            pass


async def test_a_second_attempt_of_one_call_drops_the_first() -> None:
    async with rtc_site() as site:
        sdp, token = _elsewhere(await _an_offer()), str((await site.session())["token"])
        status, first = await offer(site, token=token, sdp=sdp)
        assert status == 200
        url = f"{site.url}/rtc/lines/{first['line_id']}"
        async with rtc_client(site, token), site.http.get(url) as answer:
            assert "replaced" in (await answer.json())["cause"]


async def test_a_stop_says_bye_and_closes_lines() -> None:
    async with rtc_site() as site, rtc_client(site) as page:
        status, _ = await offer(
            site, token=(await site.session())["token"], sdp=_elsewhere(await _an_offer())
        )
        assert status == 200
        await site.server.registry.drain(0)
        assert (await page.until_kind("bye"))["reason"] == "drain"
        assert (await offer(site, token="x", sdp="y"))[0] == 401
        await page.until(lambda: page.peer.pc.connectionState == "closed")


async def test_only_developers_may_impair_their_line(monkeypatch: pytest.MonkeyPatch) -> None:
    wish = {"t": "impair", "loss": 0.1, "burst": 2, "jitter_ms": 40, "down": True}
    asked: list[dict[str, object]] = []
    for developer, told in (("auto", 0), (False, 1)):
        async with rtc_site(rtc_config(developer=developer)) as site, rtc_client(site) as page:
            line = site.server.lines.find(page.line_id)
            monkeypatch.setattr(line.transport, "impair", lambda **how: asked.append(how))
            page.peer.say({**wish, "loss": 2})
            assert (await page.until_kind("error"))["field"] == "loss"
            page.peer.messages.clear()
            page.peer.say(wish)
            page.peer.say({"t": "mute", "on": True})
            await page.until(lambda: any(m.get("muted") for m in page.peer.messages))  # noqa: B023
            errors = [m["code"] for m in page.peer.messages if m["t"] == "error"]
            assert errors == ["unsupported"] * told
    assert asked == [{"loss": 0.1, "burst": 2, "jitter_ms": 40, "down": True}]
    async with rtc_site() as site:
        socket = await site.connect()
        await socket.say(**wish)
        assert (await socket.until_kind("error"))["code"] == "unsupported", "not on /ws"


def _elsewhere(sdp: str) -> str:
    """The offer with candidates that nobody answers at (RFC 5737)."""
    return (
        "\r\n".join(
            line.replace("127.0.0.1", "192.0.2.1") if line.startswith("a=candidate:") else line
            for line in sdp.splitlines()
        )
        + "\r\n"
    )


async def _an_offer() -> str:
    peer = Peer()
    sdp = await peer.offer()
    await peer.pc.close()
    return sdp


def test_nothing_of_aiortc_is_imported_with_the_server() -> None:
    code = (
        "import sys, voxglove.web.app, voxglove.web.cli.serve, voxglove.web.rtc_lines;"
        "print(sorted({'aiortc', 'av', 'aioice', 'cryptography'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


async def test_a_running_call_is_not_held_up_by_the_first_offer(tell: Tell) -> None:
    """The import runs in a thread; what is left of it on the loop is measured here."""
    async with rtc_site() as site:
        lags: list[float] = []
        watching = asyncio.create_task(_lags(lags))
        async with rtc_client(site) as page:
            setup_ms = page.setup_ms
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
    tell(
        f"webrtc: connected {setup_ms:.0f} ms after the offer; loop held at most"
        f" {1000 * max(lags):.0f} ms, page and server together"
    )


async def _lags(lags: list[float]) -> None:
    loop = asyncio.get_running_loop()
    while True:
        before = loop.time()
        await asyncio.sleep(0.002)
        lags.append(loop.time() - before - 0.002)


async def test_a_loopback_server_offers_127_0_0_1_beside_its_own_addresses() -> None:
    async with rtc_site(Config(server=ServerConfig(port=0))) as site:
        token = str((await site.session())["token"])
        status, answer = await offer(site, token=token, sdp=await _an_offer())
        assert status == 200
        own = [line.split()[4] for line in str(answer["sdp"]).splitlines() if " typ host" in line]
        assert own[0] == "127.0.0.1"
        assert set(own) == {"127.0.0.1", *webrtc_seams._stock_host_addresses(True, True)}
    await asyncio.sleep(0.1)  # aioice sleeps once more after its end
