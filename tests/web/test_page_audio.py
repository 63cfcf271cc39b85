"""The page's sound on both kinds of line in Chromium: both ways, mute, push-to-talk, devices,
pictures, recording, clock."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import numpy as np
import pytest

from tests.audio_fixtures.load import fixture
from tests.web import browser, lab
from tests.web.client import eventually, site
from tests.web.echo import EchoBrain

pytestmark = [pytest.mark.browser, pytest.mark.slow]

RATE = 16_000
LINES = pytest.mark.parametrize("line", ["websocket", "webrtc"])


def speech(folder: Path) -> str:
    """1 s of silence, then a sentence again and again over a quiet hum: it is never all zeros."""
    once = np.concatenate([fixture("ask_hours").pcm, np.zeros(RATE // 3, np.int16)])
    words = np.tile(once, 12)
    hum = 300 * np.sin(2 * np.pi * 100 * np.arange(len(words)) / RATE)
    mixed = (words + hum).astype(np.int16)
    return browser.microphone_file(folder / "a.wav", mixed, loop=True)


def tone(folder: Path) -> str:
    """1 s of silence, then a tone."""
    wave = (12_000 * np.sin(2 * np.pi * 440 * np.arange(15 * RATE) / RATE)).astype(np.int16)
    return browser.microphone_file(folder / "a.wav", wave, loop=True)


@LINES
async def test_the_sound_of_a_whole_call(line: str, tmp_path: Path) -> None:
    """One browser for all of it: a start of Chromium costs more than any of these."""
    async with site(lab.loopback()) as here, lab.opened(here, speech(tmp_path)) as page:
        await page.start(line)
        assert await page.get("lab.lines") == [[line, None]]
        ear = lab.listen_in(lab.only(here))
        await check_both_ways(page, ear)
        await check_waves(page)
        await check_clock(page, lab.only(here))
        await check_mute_and_presses(page, lab.only(here), ear)
        await check_devices(page, ear)
        await check_pictures(page, ear)
        await check_bad_network(page, ear, down=line == "websocket")
        assert page.errors == []


async def check_both_ways(page: lab.Lab, ear: lab.Ear) -> None:
    await page.get("lab.call.send({t: 'say', text: 'a long long tone'})")
    await eventually(lambda: ear.seconds > 4, 10)
    # A busy machine's fake microphone may skip once: then what comes after is elsewhere.
    quarters = np.array_split(fixture("ask_hours").pcm, 4)
    like = np.median([lab.likeness(ear.samples, quarter)[0] for quarter in quarters])
    assert like > 0.9, f"the server hears what the microphone plays: {like:.3f}"
    await page.wait("lab.messages.some(({t}) => t === 'heard')")
    kinds = json.loads(str(await page.get("JSON.stringify(lab.messages.map(({t}) => t))")))
    assert {"ready", "state", "utterance", "speech", "event", "heard"} <= set(kinds)
    _, played = await page.recording()
    middle = played[lab.onset(played) :][RATE // 2 : RATE]
    assert abs(lab.pitch(middle) - 440) < 5 and lab.loudness(middle) > 8_000


async def check_waves(page: lab.Lab) -> None:
    """Both sides tell 50 waves a second, evenly, with the levels of what sounds. (The sound card
    of a busy machine may stop for a moment: there the waves jump once.)"""
    for side in ("in", "out"):
        waves = await page.get(f"lab.waves.{side}.slice(50)")
        assert isinstance(waves, list)
        steps = np.diff([wave["at"] for wave in waves])
        assert ((steps > 0.0175) & (steps < 0.0225)).mean() > 0.98 and steps.min() > 0
        lasted = (waves[-1]["arrived"] - waves[0]["arrived"]) / 1000
        assert abs(len(waves) / lasted - 50) < 2
        assert max(wave["rms"] for wave in waves) > 0.05
        assert all(wave["min"] <= wave["max"] for wave in waves)


PLACED = """(side) => Math.min(...lab.waves[side].slice(-100).map(({ at, arrived }) =>
  lab.call.now() - (performance.now() - arrived) / 1000 - at))"""


async def check_clock(page: lab.Lab, brain: EchoBrain) -> None:
    """The page knows the server's time, and where on it the waves lie."""
    before = brain.heard_samples / RATE
    told = float(str(await page.get("lab.call.now()")))
    assert before - 0.15 < told < brain.heard_samples / RATE + 0.15
    for side in ("in", "out"):
        assert 0 < await page.page.evaluate(PLACED, side) < 0.1


async def check_mute_and_presses(page: lab.Lab, brain: EchoBrain, ear: lab.Ear) -> None:
    await page.get("lab.call.mute(true)")
    await page.wait("lab.call.muted && lab.messages.at(-1).state === 'muted'")
    await silent(page)
    await page.get("lab.call.setMode('push')")
    await page.get("lab.call.mute(false)")
    await silent(page)
    assert not lab.sounds(ear.last(0.2))
    await page.get("lab.call.talk(true)")
    await eventually(lambda: lab.sounds(ear.last(0.1)))
    await page.get("lab.call.talk(false)")
    await eventually(lambda: len(brain.commands) >= 5)
    await silent(page)
    said = [type(command).__name__ for command in brain.commands]
    assert said == ["Say", "Mute", "Mute", "PushToTalk", "PushToTalk"]
    await page.get("lab.call.setMode('open')")
    await hears(ear)


async def silent(page: lab.Lab) -> None:
    """For a while the microphone gives nothing but zeros."""
    await asyncio.sleep(0.25)
    start = await page.get("lab.waves.in.length")
    await page.wait(f"lab.waves.in.length > {start} + 20")
    assert await page.get(f"lab.waves.in.slice({start}).every(({{rms}}) => rms === 0)")


async def hears(ear: lab.Ear) -> None:
    """The caller's voice arrives from now on."""
    start = len(ear.pieces)
    await eventually(lambda: sum(lab.sounds(piece) for piece in ear.pieces[start:]) > 10, 6)


UNPLUG = """() => {
  const { track } = lab.call.microphone;
  track.stop();
  track.dispatchEvent(new Event("ended"));
}"""


async def check_devices(page: lab.Lab, ear: lab.Ear) -> None:
    """Another microphone is taken; one that cannot be had changes nothing; one goes away."""
    found = await page.get("lab.call.devices()")
    assert isinstance(found, list) and len(found) >= 2
    assert all(device["label"] for device in found)
    other = found[-1]["deviceId"]
    assert await page.get(f"lab.call.useDevice('{other}')")
    used = "lab.call.microphone.track.getSettings().deviceId"
    assert await page.get(used) == other
    await hears(ear)
    assert not await page.get("lab.call.useDevice('nonsense')")
    assert await page.get(used) == other
    await page.page.evaluate(UNPLUG)
    await page.wait("lab.notices.at(-1)?.includes('unplugged')")
    assert await page.get("lab.call.hasMicrophone") and await page.get(used) != other
    await hears(ear)
    speakers = await page.get("lab.call.speakers()")
    assert isinstance(speakers, list) and speakers
    assert await page.get(f"lab.call.useSpeaker('{speakers[-1]['deviceId']}')")
    assert not await page.get("lab.call.useSpeaker('nonsense')")
    await page.get("navigator.mediaDevices.dispatchEvent(new Event('devicechange'))")
    await page.wait("lab.lists.length === 1")


PICTURE = """async ([width, height]) => {
  const canvas = new OffscreenCanvas(width, height);
  const context = canvas.getContext("2d");
  const noise = context.createImageData(width, height);
  for (let at = 0; at < noise.data.length; at += 1) noise.data[at] = (Math.random() * 256) | 128;
  context.putImageData(noise, 0, 0);
  const blob = await canvas.convertToBlob({ type: "image/png" });
  return [blob.size, await lab.call.sendImage(new File([blob], "noise.png"))];
}"""


async def check_pictures(page: lab.Lab, ear: lab.Ear) -> None:
    """Files and the camera's frames are scaled until they fit."""
    size, read = await page.page.evaluate(PICTURE, [1600, 900])
    assert size > 1_000_000 and read
    await eventually(lambda: len(ear.images) == 1)
    assert ear.images[0].mime == "image/jpeg" and not ear.images[0].live
    assert ear.images[0].data[:2] == b"\xff\xd8" and 10_000 < len(ear.images[0].data) <= 48_000
    assert not await page.get("lab.call.sendImage(new File(['no picture'], 'a.png'))")
    assert await page.get("lab.call.camera(true)")
    await eventually(lambda: len(ear.images) == 2)
    assert all(image.live for image in ear.images[1:])
    assert not await page.get("lab.call.camera(false)")


async def check_bad_network(page: lab.Lab, ear: lab.Ear, *, down: bool) -> None:
    """Over the socket the page itself drops what it is told to, over WebRTC the server does."""
    await page.get("lab.messages.splice(0)")
    await page.get(f"lab.call.impair({{loss: 1, jitter_ms: 100, down: {str(down).lower()}}})")
    await asyncio.sleep(0.5)
    start = len(ear.pieces)
    await page.get("lab.call.send({t: 'say', text: 'lost'})")
    await page.wait("lab.messages.some(({t}) => t === 'heard')")
    assert not any(lab.sounds(piece) for piece in ear.pieces[start:]), "all of it is lost"
    _, right = await page.recording()
    assert lab.sounds(right[-RATE // 2 :]) != down
    await page.get("lab.call.impair({})")
    await hears(ear)


MEASURE = """() => {
  // Another context, another way in: the moments at which either side gets loud.
  const context = new AudioContext();
  const watch = (stream) => {
    const analyser = new AnalyserNode(context, { fftSize: 256 });
    context.createMediaStreamSource(stream).connect(analyser);
    const values = new Float32Array(256);
    const side = { at: null };
    const timer = setInterval(() => {
      analyser.getFloatTimeDomainData(values);
      if (!values.some((value) => Math.abs(value) > 0.05)) return;
      side.at = performance.now();
      clearInterval(timer);
    }, 2);
    return side;
  };
  lab.onsets = { mic: watch(lab.call.sound.streams.mic), out: watch(lab.call.sound.streams.out) };
}"""


ONE_RATE = """() => {
  const real = AudioContext.prototype.createMediaStreamSource;
  AudioContext.prototype.createMediaStreamSource = function (stream) {
    if (this.sampleRate === 16000) throw new DOMException("one rate", "NotSupportedError");
    return real.call(this, stream);
  };
}"""


async def test_both_sides_of_the_recording_are_aligned(tmp_path: Path) -> None:
    """Also where the browser insists on its own rate for everything; then the parts of the page
    that need no line, in the same browser."""
    async with site(lab.loopback()) as here, lab.opened(here, tone(tmp_path)) as page:
        await page.page.evaluate(ONE_RATE)
        await page.get("lab.call.setMode('push')")
        await page.start("webrtc")
        brain = lab.only(here)
        await page.page.evaluate(MEASURE)
        await page.wait("lab.waves.in.length > 50")
        await page.get("lab.call.talk(true)")
        await eventually(lambda: brain.loud_samples > 0, 6)
        await page.get("lab.call.send({t: 'say', text: 'now'})")
        await page.wait("lab.onsets.mic.at && lab.onsets.out.at")
        await asyncio.sleep(0.3)
        left, right = await page.recording()
        recorded = (lab.onset(right) - lab.onset(left)) / 16
        measured = float(str(await page.get("lab.onsets.out.at - lab.onsets.mic.at")))
        assert abs(recorded - measured) < 60, f"{recorded:.0f} ms, measured {measured:.0f} ms"
        assert await page.get("lab.call.sound.context.sampleRate") != RATE
        assert abs(lab.pitch(left[-RATE // 4 :]) - 440) < 5
        await page.get("lab.call.hangUp()")
        await check_pieces(page)


LOSSES = """async ([loss, burst, jitter]) => {
  const { Impairment } = await import("/static/impair.js");
  const line = new Impairment();
  line.set({ loss, burst, jitter_ms: jitter, down: true });
  const arrived = [];
  const pass = (n) => line.up(n, (number) => arrived.push(number));
  for (let n = 0; n < 100; n += 1) {
    pass(n);
    if (jitter) await new Promise((done) => setTimeout(done, 2));
  }
  if (jitter) await new Promise((done) => setTimeout(done, 200));
  else for (let n = 100; n < 40000; n += 1) pass(n);
  const gaps = arrived.slice(1).map((n, at) => n - arrived[at] - 1).filter((gap) => gap > 0);
  const lost = gaps.reduce((sum, gap) => sum + gap, 0);
  const sorted = arrived.every((n, at) => !at || n > arrived[at - 1]);
  const run = lost / Math.max(1, gaps.length);
  return { rate: lost / 40000, run, sorted, count: arrived.length };
}"""

LONG_TAPE = """async (minutes) => {
  const { Tape } = await import("/static/recording.js");
  const tape = new Tape();
  const [left, right] = [new Int16Array(320).fill(1), new Int16Array(320).fill(2)];
  for (let frame = 0; frame < minutes * 3000 + 7; frame += 1) tape.put(left, right);
  const blob = tape.blob();
  return [tape.seconds, (blob.size - 44) / 64000];
}"""

PLACES = """async () => {
  // Frames that come up to 60 ms late; after 10 s the sound card stands still for 4 s.
  const { CallClock } = await import("/static/clock.js");
  const clock = new CallClock();
  clock.begin();
  const zero = clock.offset;
  const places = [];
  for (let frame = 1; frame <= 1000; frame += 1) {
    const sound = frame * 0.02;
    const real = zero + sound + (frame > 500 ? 4 : 0);
    const at = clock.place(sound, real + 0.06 * Math.random());
    places.push([at, real - zero - 0.02 - at]);
  }
  return places;
}"""


async def check_pieces(page: lab.Lab) -> None:
    """Losses, the tape's length and the clock by themselves, without a line."""
    for loss, burst in ((0.05, 1), (0.2, 1), (0.2, 4)):
        found = await page.page.evaluate(LOSSES, [loss, burst, 0])
        assert abs(found["rate"] - loss) < 0.25 * loss + 0.005, found
        alone = burst if burst > 1 else 1 / (1 - loss)
        assert abs(found["run"] - alone) < 0.3 * alone, found
    found = await page.page.evaluate(LOSSES, [0, 1, 100])
    assert found["count"] == 100 and found["sorted"], found
    assert await page.page.evaluate(LONG_TAPE, 0.1) == [6.14, 6.14]
    kept, size = await page.page.evaluate(LONG_TAPE, 21)
    assert kept == size and 1199 < kept <= 1200
    places = np.array(await page.page.evaluate(PLACES))
    assert np.abs(places[100:500, 1]).max() < 0.02
    assert np.abs(places[700:, 1]).max() < 0.02, "right again 4 s after the sound is"
    assert (np.diff(places[:, 0]) > 0).all()
