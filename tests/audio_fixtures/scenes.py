"""Named scenes of spec/voice.md 22b, built in memory from clips and sounds.

Lives here: one function per scene. Owned by `tests/audio_fixtures`; writes no file. Every scene is
16 kHz int16 with its speech spans (or the event's, for noises) and the numbers that made it.
"""

from collections.abc import Callable
from math import log10

from tests.audio_fixtures import sounds
from tests.audio_fixtures.dsp import RATE, Pcm, gain, join, mix, resample, rms, samples
from tests.audio_fixtures.echo import EchoPath
from tests.audio_fixtures.fixture import Fixture, Meta, committed
from tests.support.audio import Span

LEAD_MS = 500
TAIL_MS = 1500
LICENCE = "Synthetic; free to use"


def _scene(
    name: str, pcm: Pcm, transcript: str = "", spans: list[Span] | None = None, **values: float
) -> Fixture:
    meta = Meta(
        kind="scene", licence=LICENCE, source=f"scenes.py: {name}", values=tuple(values.items())
    )
    return Fixture(name, pcm, transcript, tuple(spans or ()), meta)


def _speech(parts: list[str | int]) -> tuple[Pcm, list[Span]]:
    """Clips and pauses (in ms) in sequence. A pause is exact between the clips' speech spans."""
    placed: list[tuple[Pcm, int]] = []
    spans: list[Span] = []
    at = samples(LEAD_MS)
    for part in parts:
        if isinstance(part, int):
            at += samples(part)
            continue
        clip = committed(part)
        start = at - clip.spans[0].start
        placed.append((clip.pcm, start))
        spans += [Span(span.start + start, span.end + start) for span in clip.spans]
        at = spans[-1].end
    return mix(placed, at + samples(TAIL_MS)), spans


def _said(parts: list[str | int]) -> str:
    return " ".join(committed(part).transcript for part in parts if isinstance(part, str))


def _event(name: str, sound: Pcm) -> Fixture:
    at = samples(LEAD_MS)
    pcm = join([at, sound, samples(TAIL_MS)])
    span = Span(at, at + sound.size)
    return _scene(name, pcm, spans=[span], length_ms=1000 * sound.size / RATE)


def _paused(name: str, pause_ms: int) -> Fixture:
    parts: list[str | int] = ["half_1", pause_ms, "half_2"]
    pcm, spans = _speech(parts)
    return _scene(name, pcm, _said(parts), spans, pause_ms=pause_ms)


def _relative(name: str, clip: str, db: float) -> Fixture:
    """A clip `db` below the level of the ordinary talker, over a quiet room."""
    pcm, spans = _speech([clip])
    room = sounds.room_tone(pcm.size, 51, -66)
    return _scene(name, mix([(gain(pcm, db), 0), (room, 0)]), _said([clip]), spans, gain_db=db)


def echo_only(gain_db: float = -20, delay_ms: float = 120) -> Fixture:
    """The agent's line in a silent caller's microphone. The caller says nothing: no spans."""
    agent, _ = _speech(["agent_hours"])
    leak = EchoPath(delay_ms=delay_ms, gain_db=gain_db, seed=61).feed(agent)
    room = sounds.room_tone(leak.size, 62, -66)
    return _scene("echo_only", mix([(leak, 0), (room, 0)]), gain_db=gain_db, delay_ms=delay_ms)


def double_talk(over_db: float = 6, delay_ms: float = 120) -> Fixture:
    """The agent leaks at -12 dB and 1.5 s later the caller talks `over_db` above the leak."""
    agent, _ = _speech(["agent_hours"])
    leak = EchoPath(delay_ms=delay_ms, gain_db=-12, seed=63).feed(agent)
    caller = committed("booking_change")
    at = samples(LEAD_MS + 1500)
    spoken = caller.pcm[caller.spans[0].start : caller.spans[-1].end]
    level = rms(leak[at : at + spoken.size]) * 10 ** (over_db / 20)
    voice = gain(caller.pcm, 20 * log10(level / rms(spoken)))
    spans = [Span(span.start + at, span.end + at) for span in caller.spans]
    pcm = mix([(leak, 0), (voice, at)])
    return _scene("double_talk", pcm, caller.transcript, spans, over_db=over_db, delay_ms=delay_ms)


def spelled_id(gap_ms: int = 700) -> Fixture:
    """Five characters with pauses that a plain silence rule takes for the end of the turn."""
    parts: list[str | int] = []
    for letter in ("spell_x", "spell_seven", "spell_l", "spell_four", "spell_r"):
        parts += [letter, gap_ms]
    pcm, spans = _speech(parts[:-1])
    return _scene("spelled_id", pcm, "x seven l four r", spans, gap_ms=gap_ms)


def two_speakers() -> Fixture:
    """A second, higher voice (pitch x 1.2) answers after 300 ms, 3 dB softer."""
    first, spans = _speech(["utterance"])
    other = committed("ask_hours")
    voice = gain(resample(other.pcm, 5, 6), -3)
    at = spans[-1].end + samples(300) - other.spans[0].start * 5 // 6
    spans += [Span(at + s.start * 5 // 6, at + -(-s.end * 5 // 6)) for s in other.spans]
    pcm = mix([(first, 0), (voice, at)], spans[-1].end + samples(TAIL_MS))
    return _scene("two_speakers", pcm, _said(["utterance", "ask_hours"]), spans, gap_ms=300)


def drift(ppm: int = 200) -> Fixture:
    """jfk as a sound card sampled it whose clock runs `ppm` fast: more samples for the same time.

    `ppm` must divide 1,000,000; ValueError otherwise.
    """
    if ppm <= 0 or 1_000_000 % ppm:
        raise ValueError(f"ppm {ppm}: must be a positive divisor of 1000000")
    base = committed("jfk")
    down = 1_000_000 // ppm
    up = down + 1
    spans = [Span(span.start * up // down, span.end * up // down) for span in base.spans]
    return _scene("drift", resample(base.pcm, up, down), base.transcript, spans, ppm=ppm)


def _utterance() -> Fixture:
    pcm, spans = _speech(["utterance"])
    return _scene("utterance_1200", pcm, _said(["utterance"]), spans)


SCENES: dict[str, Callable[[], Fixture]] = {
    "silence": lambda: _scene("silence", sounds.silence(3000)),
    "room_tone": lambda: _scene("room_tone", sounds.room_tone(3 * RATE, 11)),
    "fan": lambda: _scene("fan", sounds.fan(3 * RATE, 12)),
    "keyboard": lambda: _event("keyboard", sounds.keyboard(13, 10)),
    "door_slam": lambda: _event("door_slam", sounds.door_slam(14)),
    "cough": lambda: _event("cough", sounds.cough(15)),
    "mm_hm": lambda: _event("mm_hm", sounds.hummed_mm_hm(16)),
    "stop_burst": lambda: _event("stop_burst", sounds.stop_burst(17)),
    "utterance_1200": _utterance,
    "pause_600": lambda: _paused("pause_600", 600),
    "pause_1000": lambda: _paused("pause_1000", 1000),
    "quiet_talker": lambda: _relative("quiet_talker", "utterance", -24),
    "neighbour": lambda: _relative("neighbour", "half_2", -16),
    "echo_only": echo_only,
    "double_talk": double_talk,
    "spelled_id": spelled_id,
    "two_speakers": two_speakers,
    "drift": drift,
}
