"""Synthesised non-speech sounds: what a line carries besides words.

Lives here: silence, room tone, fan, keyboard, door, cough, hummed "mm-hm" and a stop-like burst,
each a pure function of its seed. Owned by `tests/audio_fixtures`. They are plausible in level,
length, spectrum and envelope (see each docstring), not recordings: a detector that passes them is
not yet proved on real coughs.

Levels are nominal: backgrounds near -50 dBFS, events near -20 dBFS; scenes and variants rescale.
"""

import numpy as np

from tests.audio_fixtures.dsp import (
    RATE,
    SCALE,
    Pcm,
    Wave,
    at_level,
    band,
    decay,
    draws,
    gain,
    mix,
    noise,
    pcm16,
    quantised,
    samples,
    shaped,
)

EVENT_DBFS = -20.0


def silence(ms: float) -> Pcm:
    """Digital silence."""
    return np.zeros(samples(ms), dtype=np.int16)


def room_tone(count: int, seed: int, dbfs: float = -58.0) -> Pcm:
    """A quiet room: noise falling above 800 Hz and a little mains hum (100 Hz)."""
    n = np.arange(count)
    rumble = band(noise(count, seed), 60, 800, 257)
    hiss = gain(noise(count, seed + 1), -24)
    hum = np.rint(600 * np.sin(2 * np.pi * 100 * n / RATE))
    return pcm16(at_level(rumble + hiss + hum, dbfs))


def fan(count: int, seed: int, dbfs: float = -46.0) -> Pcm:
    """Steady fan: low-passed turbulence, blade tone at 117 Hz with two harmonics, 3 Hz beat."""
    n = np.arange(count)
    turbulence = band(noise(count, seed), 40, 1200, 257)
    blades = sum(
        (2400 / k * np.sin(2 * np.pi * 117 * k * n / RATE) for k in (1, 2, 3)), np.zeros(count)
    )
    beat = 0.85 + 0.15 * np.sin(2 * np.pi * 3 * n / RATE)
    return pcm16(at_level(shaped(np.rint(turbulence + blades), beat), dbfs))


def _click(seed: int, low_hz: float, high_hz: float, fall_ms: float) -> Wave:
    count = samples(8 * fall_ms)
    return shaped(band(noise(count, seed), low_hz, high_hz, 65), decay(count, 0.3, fall_ms))


def _keystroke(seed: int) -> Pcm:
    """Press click (2-6 kHz, 3 ms), bottom-out thump (180-700 Hz), release click 70-130 ms on."""
    tone, hold = draws(2, seed)
    press = _click(seed + 1, 1800 + 800 * tone, 6500, 3)
    thump = _click(seed + 2, 180, 700, 9)
    release = gain(_click(seed + 3, 2500, 7000, 2), -8)
    return mix([(press, 0), (thump, samples(6)), (release, samples(70 + 60 * hold))])


def keyboard(seed: int, strokes: int = 8) -> Pcm:
    """Typing at 90-260 ms per key, each key with its own colour and force (12 dB range)."""
    placed: list[tuple[Wave | Pcm, int]] = []
    at = 0
    for index, (interval, force) in enumerate(
        zip(draws(strokes, seed), draws(strokes, seed + 1), strict=True)
    ):
        placed.append((gain(_keystroke(seed * 64 + 16 * index + 2), -12 * force), at))
        at += samples(90 + 170 * interval)
    return pcm16(at_level(mix(placed), EVENT_DBFS - 8))


def door_slam(seed: int, ms: float = 120) -> Pcm:
    """Panel thud (50-260 Hz), 6 ms broadband contact, latch rattle 35 ms later."""
    count = samples(ms)
    thud = shaped(band(noise(count, seed), 50, 260, 257), decay(count, 2, ms / 4))
    contact = gain(_click(seed + 1, 300, 5000, 6), -6)
    rattle = gain(_click(seed + 2, 1500, 6000, 5), -12)
    slam = mix([(gain(thud, 12), 0), (contact, 0), (rattle, samples(35))], count)
    return pcm16(at_level(slam, -12))


def voiced(f0: Wave, formants: list[tuple[float, float, float]], tilt: float) -> Wave:
    """Harmonics of a moving pitch, weighted by formants (centre Hz, width Hz, gain).

    `tilt` is the glottal roll-off: harmonic k has amplitude k**-tilt before the formants.
    """
    phase = 2 * np.pi * np.cumsum(np.rint(f0 * 256) / 256) / RATE
    total = np.zeros(f0.size)
    for k in range(1, int(4000 / float(f0.min())) + 1):
        hz = f0 * k
        shape = sum((g / (1 + ((hz - c) / w) ** 2) for c, w, g in formants), np.zeros(f0.size))
        total += quantised(np.sin(k * phase) * shape * np.where(hz < 4000, 1.0, 0.0)) / k**tilt
    return np.asarray(np.rint(total * SCALE / 4), dtype=np.float64)


def cough(seed: int, ms: float = 180) -> Pcm:
    """Two phases and a tail: explosive opening, airflow, short voiced close.

    The opening has a glottal onset (2 ms) and is broadband (250-6000 Hz); the airflow is lower
    (400-2500 Hz) and decays; the tail falls from about 170 to 110 Hz. Half of the seeds cough
    twice, the second time 4 dB softer.
    """
    count = samples(ms)
    pitch, open_share, twice = draws(3, seed)
    opening = samples(ms * (0.22 + 0.1 * open_share))
    burst = shaped(band(noise(opening, seed + 1), 250, 6000, 65), decay(opening, 2, ms / 6))
    airflow = shaped(band(noise(count, seed + 2), 400, 2500), decay(count, ms / 9, ms / 3))
    tail_n = samples(ms * 0.35)
    f0 = np.linspace(150 + 60 * pitch, 105, tail_n)
    tail = shaped(voiced(f0, [(620, 160, 1.0), (1500, 220, 0.5)], 1.0), decay(tail_n, 6, ms / 7))
    one = mix([(gain(burst, 6), 0), (airflow, samples(6)), (tail, count - tail_n)], count)
    if twice < 0.5:
        return pcm16(at_level(one, EVENT_DBFS))
    return pcm16(at_level(mix([(one, 0), (gain(one, -4), count + samples(60))]), EVENT_DBFS))


def hummed_mm_hm(seed: int) -> Pcm:
    """Nasal two-tone hum: low syllable, 50 ms breathy gap, second syllable gliding up.

    Closed-lip murmur: strong first resonance near 250 Hz, weak ones at 1 and 2.2 kHz.
    """
    pitch, length, rise = draws(3, seed)
    base = 95 + 90 * pitch
    first, gap, second = samples(150 + 50 * length), samples(50), samples(190 + 70 * length)
    murmur = [(250.0, 120.0, 1.0), (1000.0, 150.0, 0.12), (2200.0, 200.0, 0.05)]
    low = voiced(np.linspace(base * 1.04, base * 0.97, first), murmur, 1.2)
    high = voiced(np.linspace(base * 1.05, base * (1.25 + 0.2 * rise), second), murmur, 1.2)
    breath = gain(band(noise(gap + samples(40), seed + 1), 500, 4000, 65), -22)
    parts: list[tuple[Wave | Pcm, int]] = [
        (shaped(low, _swell(first)), 0),
        (breath, first - samples(20)),
        (shaped(high, _swell(second)), first + gap),
    ]
    return pcm16(at_level(mix(parts), EVENT_DBFS - 4))


def _swell(count: int) -> Wave:
    """Raised-cosine attack over 40 ms and release over the last third."""
    n = np.arange(count, dtype=np.float64)
    attack = np.sin(np.pi / 2 * np.minimum(1.0, n / samples(40))) ** 2
    release = np.sin(np.pi / 2 * np.minimum(1.0, (count - n) / (count / 3))) ** 2
    return np.asarray(attack * release, dtype=np.float64)


def stop_burst(seed: int, ms: float = 300) -> Pcm:
    """Speech-shaped, wordless: hiss 4-7.5 kHz, closure, vowel pulse, closure, release puff."""
    hiss_n, vowel_n, puff_n = samples(ms * 0.3), samples(ms * 0.38), samples(ms * 0.1)
    hiss = shaped(band(noise(hiss_n, seed), 4000, 7500, 65), _swell(hiss_n))
    vowel = voiced(np.linspace(135, 112, vowel_n), [(730, 110, 1), (1150, 130, 0.6)], 0.8)
    puff = shaped(band(noise(puff_n, seed + 1), 800, 3000, 65), decay(puff_n, 1, 9))
    return pcm16(
        at_level(
            mix(
                [
                    (gain(hiss, -10), 0),
                    (shaped(vowel, _swell(vowel_n)), samples(ms * 0.42)),
                    (gain(puff, -8), samples(ms) - puff_n),
                ]
            ),
            EVENT_DBFS,
        )
    )
