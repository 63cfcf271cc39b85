"""The speech parts of a process: recogniser, voice, detector, turn model, opened once and warmed.

Owned by the composition root (`build.Shared`). This is the only place that knows which name in the
configuration means which adapter; a call gets factories and never learns more.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import numpy as np

from ..adapters.stt.port import SpeechToText
from ..adapters.stt.scripted import ScriptedStt, Spoken
from ..adapters.tts.port import TextToSpeech
from ..adapters.tts.scripted import ScriptedVoice
from ..media.inference import Jobs, onnx_session
from ..media.mel import smart_turn_mel
from ..media.models import locate
from ..media.vad.port import Vad
from ..media.vad.silero import load_vad
from ..pipelines.detectors.port import TurnDetector
from ..pipelines.detectors.smart_turn import SmartTurnDetector
from ..pipelines.text.spoken import to_spoken
from .config import CASCADE, Config, PartConfig
from .config_reader import ConfigError

Warm = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Part:
    """One opened part: how it is called on a timeline, and how to run it once before a call."""

    name: str
    warm: Warm | None = None
    local: bool = True
    """Whether it needs no network: `--fast` refuses those that do (DESIGN 6)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Speech:
    """Factories of one process. Each call hands in its own `Jobs`."""

    stt: Callable[[Jobs], SpeechToText]
    tts: Callable[[Jobs], TextToSpeech]
    vad: Callable[[], Vad]
    detector: Callable[[Jobs], TurnDetector | None]
    parts: Mapping[str, Part]
    continuous: bool = False
    notes: tuple[str, ...] = ()
    """Sentences for the operator: what fell back to what."""

    def name(self, part: str) -> str:
        """How part `stt`, `tts` is called on a timeline."""
        return self.parts[part].name

    def warm(self) -> None:
        """Run every model once. Blocks for seconds; call it before the first call, in a thread."""
        for part in self.parts.values():
            if part.warm is not None:
                part.warm()


@dataclass(slots=True)
class _Opening:
    """What is gathered while the parts are opened."""

    config: Config
    parts: dict[str, Part] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def open_speech(config: Config) -> Speech:
    """Load what `config` names. Raises ConfigError for a name that is not known, ModelMissing and
    ModelCorrupt naming the file and the remedy. Blocks for about two seconds; for a realtime brain,
    which needs a detector and nothing else, for a tenth of that."""
    opening = _Opening(config)
    if config.brain.name != CASCADE:
        return _open_ears(opening)
    return Speech(
        stt=_open_stt(opening),
        tts=_open_tts(opening),
        vad=_open_vad(opening),
        detector=_open_detector(opening),
        parts=opening.parts,
        notes=tuple(opening.notes),
    )


def _open_ears(opening: _Opening) -> Speech:
    """A detector alone: the provider hears and speaks."""
    provider = opening.config.brain.name
    opening.parts["stt"] = opening.parts["tts"] = Part(provider, local=False)

    def none(jobs: Jobs) -> NoReturn:
        raise RuntimeError("a realtime brain has no recogniser and no voice of its own")

    return Speech(
        stt=none,
        tts=none,
        vad=_open_vad(opening),
        detector=lambda jobs: None,
        parts=opening.parts,
        notes=tuple(opening.notes),
    )


def open_warm(config: Config) -> Speech:
    """`open_speech`, and every model run once."""
    speech = open_speech(config)
    speech.warm()
    return speech


def _open_stt(opening: _Opening) -> Callable[[Jobs], SpeechToText]:
    part = opening.config.stt
    match part.name:
        case "whisper":
            from ..adapters.stt.whisper import WhisperStt
            from ..adapters.stt.whisper_model import whisper_model

            model = whisper_model(_path(part.arg or opening.config.models.stt))
            second = np.zeros(16_000, np.int16)
            opening.parts["stt"] = Part("whisper", lambda: model.transcribe(second))
            return lambda jobs: WhisperStt(model, jobs)
        case "scripted":
            spoken = _script(part)
            opening.parts["stt"] = Part("scripted")
            return lambda jobs: ScriptedStt(spoken)
        case _:
            raise ConfigError("stt", part.text, "use whisper[:folder] or scripted:FILE.json")


def _open_tts(opening: _Opening) -> Callable[[Jobs], TextToSpeech]:
    part = opening.config.tts
    match part.name:
        case "piper_onnx":
            from ..adapters.tts.piper_onnx import piper_tts, piper_voice

            voice = piper_voice(_path(part.arg or opening.config.models.tts))
            turn = opening.config.turn
            phrases = turn.acknowledgements if turn.acknowledge_after_ms else ()

            def warm() -> None:
                # Every call speaks these: from here on they come from the voice's own cache.
                voice.warm()
                for phrase in phrases:
                    voice.synthesise(to_spoken(phrase).text)

            opening.parts["tts"] = Part("piper_onnx", warm)
            return lambda jobs: piper_tts(voice, jobs)
        case "flite":
            from ..adapters.tts.flite import FliteVoice, flite_tts

            flite = FliteVoice(part.arg or "slt")
            opening.parts["tts"] = Part("flite")
            return lambda jobs: flite_tts(flite, jobs)
        case "scripted":
            scripted = ScriptedVoice()
            opening.parts["tts"] = Part("scripted")
            return lambda jobs: scripted()
        case _:
            raise ConfigError("tts", part.text, "use piper_onnx[:voice.onnx], flite or scripted")


def _open_vad(opening: _Opening) -> Callable[[], Vad]:
    config, path = opening.config.vad, _path(opening.config.models.vad)
    loaded = load_vad(config, path=path)
    if loaded.problem is not None:
        opening.notes.append(loaded.problem)
    opening.parts["vad"] = Part("energy" if loaded.problem else "silero")
    return lambda: load_vad(config, path=path).vad


def _open_detector(opening: _Opening) -> Callable[[Jobs], TurnDetector | None]:
    # Two threads: somebody waits for it in silence, and the recogniser is mostly done by then.
    session = onnx_session(locate("smart-turn", _path(opening.config.models.turn)), intra_threads=2)

    def infer(features: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> float:
        return float(session.run(None, {"input_features": features})[0].reshape(-1)[0])

    def mel(
        samples: np.ndarray[tuple[int, ...], np.dtype[np.int16]],
    ) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        return smart_turn_mel(samples)[None]

    def detector(jobs: Jobs) -> TurnDetector:
        def run(job: Callable[[], float]) -> asyncio.Future[float]:
            return jobs.submit("turn", job)

        return SmartTurnDetector(infer, mel, run, opening.config.turn.detector)

    second = np.zeros(16_000, np.int16)
    opening.parts["turn"] = Part("smart_turn", lambda: infer(mel(second)))
    return detector


def _path(text: str) -> Path | None:
    return Path(text).expanduser() if text else None


def _script(part: PartConfig) -> tuple[Spoken, ...]:
    """`scripted:FILE.json`: a list of [start_ms, end_ms, text]."""
    try:
        rows = json.loads(Path(part.arg).read_text("utf-8"))
        return tuple(Spoken(int(a) * 16, int(b) * 16, str(text)) for a, b, text in rows)
    except (OSError, ValueError, TypeError) as error:
        remedy = f"give scripted:FILE.json with a list of [start_ms, end_ms, text] ({error})"
        raise ConfigError("stt", part.text, remedy) from error
