"""WebRTC lines of the page in Chromium that fail, break, are taken up again or taken over."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest

from tests.web import browser, lab
from tests.web.client import Site, eventually, site
from voxglove.adapters.transports.webrtc import WebRtcTransport

pytestmark = [pytest.mark.browser, pytest.mark.slow]

RATE = 16_000
ANSWER = "an answer that is cut by the line, and goes on"

BLIND = """() => {
  // A browser behind a firewall: none of its addresses leads anywhere.
  const Real = RTCPeerConnection;
  window.RTCPeerConnection = class extends Real {
    constructor(options) { super({ ...options, iceTransportPolicy: "relay" }); }
  };
}"""


def tone(folder: Path) -> str:
    wave = (12_000 * np.sin(2 * np.pi * 440 * np.arange(15 * RATE) / RATE)).astype(np.int16)
    return browser.microphone_file(folder / "a.wav", wave, loop=True)


def carrier(here: Site) -> object | None:
    """What carries the one call there is."""
    (call,) = here.calls.calls.values()
    return call.transport


def transport(here: Site) -> WebRtcTransport:
    """Its WebRTC line."""
    line = getattr(carrier(here), "_inner", None)
    assert isinstance(line, WebRtcTransport), line
    return line


async def test_where_ice_finds_no_way_the_call_goes_over_the_socket(tmp_path: Path) -> None:
    async with (
        site(lab.loopback(connect_s=1.0)) as here,
        lab.opened(here, tone(tmp_path)) as page,
    ):
        await page.page.evaluate(BLIND)
        await page.start("auto")
        told = await page.get("lab.lines")
        assert isinstance(told, list) and [kind for kind, _ in told] == ["websocket"]
        words = str(told[0][1])
        assert words.startswith("WebRTC failed: ICE: no usable candidate came from the peer")
        assert words.endswith("Going on over WebSocket.")
        brain = lab.only(here)
        await eventually(lambda: brain.loud_samples > RATE / 4, 6)
        assert await page.get("lab.phases.map(([phase]) => phase)") == ["connecting", "live"]
        await page.get("lab.call.hangUp()")
        await eventually(lambda: here.server.registry.active == 0)
        # A hang-up before there is a line ends the call as well.
        await page.make()
        await page.get("lab.call.start().then(() => null)")
        await eventually(lambda: len(here.calls.brains) == 1)
        assert await page.get("lab.phase") == "connecting"
        await page.get("lab.call.hangUp()")
        await eventually(lambda: here.server.registry.active == 0, 2)
        await eventually(lambda: not here.server.lines._living)
        await asyncio.sleep(0.1)  # aioice sleeps once more after its end


async def test_a_connection_that_breaks_is_made_anew_and_the_answer_goes_on(
    tmp_path: Path,
) -> None:
    async with (
        site(lab.loopback(), linger_s=30) as here,
        lab.opened(here, tone(tmp_path)) as page,
    ):
        await page.start("webrtc")
        brain, first = lab.only(here), transport(here)
        ear = lab.listen_in(brain)
        await page.get(f"lab.call.send({{t: 'say', text: '{ANSWER}'}})")
        await asyncio.sleep(1)
        cut_off(first)
        await page.wait("lab.phase === 'lost'", 6)
        await page.wait("lab.phase === 'live'", 5)
        assert transport(here) is not first and lab.only(here) is brain
        await page.wait("lab.messages.some(({t}) => t === 'heard')", 15)
        heard = await page.get("lab.messages.find(({t}) => t === 'heard')")
        assert isinstance(heard, dict) and heard["unheard"] == ""
        start = len(ear.pieces)
        await eventually(lambda: sum(map(lab.sounds, ear.pieces[start:])) > 10, 6)
        assert await page.get("lab.lines") == [["webrtc", None]]
        assert await page.get("lab.call.kind") == "webrtc"


def cut_off(line: WebRtcTransport) -> None:
    """The wire is cut: nothing of the server's side arrives or leaves any more."""
    gatherer = line._carrier.transport.iceGatherer
    for protocol in gatherer._connection._protocols:
        protocol.transport.abort()


LONG_AGO = """sessionStorage.setItem("voxglove.call", JSON.stringify(
  { ...JSON.parse(sessionStorage.getItem("voxglove.call")), saved: 0 }))"""

RELOADED = """
if (sessionStorage.getItem("voxglove.call")) {
  window.lab = { notices: [], messages: [], out: 0, waves: 0 };
  import("/static/call.js").then(({ Call }) => {
    lab.call = new Call({
      notice: (words) => lab.notices.push(words),
      message: (message) => lab.messages.push(message),
      phase: (phase) => { lab.phase = phase; },
      wave: (side, wave) => { lab[side] = wave.rms; lab.waves += 1; },
    });
    if (Call.resumable()) lab.call.start({ resume: true });
  });
}
"""


@pytest.mark.parametrize("line", ["webrtc", "websocket"])
async def test_a_reload_takes_the_call_up_again_without_a_press(line: str, tmp_path: Path) -> None:
    async with (
        site(lab.loopback()) as here,
        lab.opened(here, tone(tmp_path), autoplay=False) as page,
    ):
        await page.start(line)
        assert not page.resumable
        brain, first = lab.only(here), carrier(here)
        await page.get(f"lab.call.send({{t: 'say', text: '{ANSWER}'}})")
        await asyncio.sleep(0.5)
        before = float(str(await page.get("lab.call.now()")))
        await page.get(LONG_AGO)
        await page.page.add_init_script(RELOADED)
        await page.page.reload()
        # Any look into the page counts as a press, so the server is looked at.
        await eventually(lambda: carrier(here) not in (None, first), 10)
        await asyncio.sleep(0.7)
        assert await page.get("lab.phase") == "live" and lab.only(here) is brain
        assert await page.get("lab.messages.find(({t}) => t === 'ready').resumed")
        assert before < float(str(await page.get("lab.call.now()"))) < before + 10
        assert await page.get("lab.call.kind") == line
        # A socket's sound waits for a press, a peer connection's does not.
        held = await page.get("lab.notices.filter((words) => words.includes('holds the sound'))")
        assert isinstance(held, list) and len(held) == (line == "websocket")
        assert await page.get("lab.waves") == 0
        await page.page.mouse.click(50, 50)
        await page.wait("lab.waves > 10 && lab.out > 0.3")
        heard = brain.loud_samples
        await eventually(lambda: brain.loud_samples > heard + RATE / 4, 6)
        await page.get("lab.call.hangUp()")
        await eventually(lambda: here.server.registry.active == 0)
        found = await page.get("import('/static/call.js').then(({ Call }) => Call.resumable())")
        assert found is False


async def test_a_new_network_gets_a_new_line_and_another_window_gets_the_call(
    tmp_path: Path,
) -> None:
    async with site(lab.loopback()) as here, lab.opened(here, tone(tmp_path)) as page:
        await page.start("webrtc")
        brain, first = lab.only(here), transport(here)
        await page.get("window.dispatchEvent(new Event('online'))")
        await page.wait("lab.messages.filter(({t}) => t === 'ready').length === 2")
        assert transport(here) is not first
        before = brain.loud_samples
        await eventually(lambda: brain.loud_samples > before + RATE / 4, 6)
        kept = await page.get("sessionStorage.getItem('voxglove.call')")
        window = lab.Lab(await page.chrome.context.new_page(), page.chrome)
        await window.page.goto(here.url + lab.PAGE)
        await window.page.evaluate("(kept) => sessionStorage.setItem('voxglove.call', kept)", kept)
        await window.make()
        await window.start("auto", resume=True)
        await page.wait("lab.phase === 'ended'")
        assert await page.get("lab.phases.at(-1)[1]") == "This call goes on in another window."
        await asyncio.sleep(1.5)
        assert await window.get("lab.phases.map(([phase]) => phase)") == ["connecting", "live"]
        # What ended or never was cannot be taken up.
        await page.make()
        assert not page.resumable
        await window.get("lab.call.hangUp()")
        await eventually(lambda: here.server.registry.active == 0)
        await page.page.evaluate("(kept) => sessionStorage.setItem('voxglove.call', kept)", kept)
        await page.make()
        await page.get("lab.call.start({resume: true})")
        await page.wait("lab.phase === 'ended'")
        assert await page.get("lab.phases.at(-1)[1]") == "The call has ended meanwhile."
