"""The turn detector that listens: smart-turn on the last eight seconds of the caller's voice.

One instance serves every call of a process. It owns no model: the composition root gives it the
feature function, the inference function and the pool to run both on, because together they take
about 50 ms, which must not be spent on the event loop (DESIGN 6). Findings/local-speech 6.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .heuristic import is_dictation, is_question, is_spelling
from .port import WINDOW_SAMPLES, Decision, DetectorError, TurnQuery

Samples = npt.NDArray[np.int16]
Features = npt.NDArray[np.float32]
FEATURE_SHAPE = (1, 80, 800)

MelFunction = Callable[[Samples], Features]
"""int16 [n], n <= 128,000, 16 kHz -> float32 [1, 80, 800]; pads in front by itself."""
InferFunction = Callable[[Features], float]
"""float32 [1, 80, 800] -> probability that the turn is over."""
RunFunction = Callable[[Callable[[], float]], Awaitable[float]]
"""Runs a job on the inference pool and gives its result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SmartTurnConfig:
    """The decision rule of CONTRACTS E. Raises ValueError for probabilities outside 0..1."""

    commit_p: float = 0.5
    again_p: float = 0.96
    """Asked again of a longer silence, this much commits: silence alone makes the model say yes,
    so an answer that takes back its first one must be nearly certain (docs/decisions/0007)."""
    question_p: float = 0.2
    ask_again_ms: int = 600
    hard_end_ms: int = 1500
    dictation_end_ms: int = 2800
    spelling_ms: int = 1000
    """Held when nothing but letters and digits was said, however final it sounds: each of them is
    spoken as a sentence of its own (field fault 22)."""

    def __post_init__(self) -> None:
        for name in ("commit_p", "again_p", "question_p"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name}: {getattr(self, name)} cannot be used; use 0..1")
        if not 0 < self.ask_again_ms <= self.hard_end_ms <= self.dictation_end_ms:
            raise ValueError(
                "ask_again_ms: use 0 < ask_again_ms <= hard_end_ms <= dictation_end_ms"
            )
        if self.spelling_ms < 0:
            raise ValueError(f"spelling_ms: {self.spelling_ms} cannot be used; use 0 or more")


DEFAULTS = SmartTurnConfig()


async def _in_thread(job: Callable[[], float]) -> float:
    return await asyncio.to_thread(job)


class SmartTurnDetector:
    """Decides by the sound of the voice, helped by the transcript's question mark."""

    def __init__(
        self,
        infer: InferFunction,
        mel: MelFunction,
        run: RunFunction = _in_thread,
        config: SmartTurnConfig = DEFAULTS,
    ) -> None:
        self._infer = infer
        self._mel = mel
        self._run = run
        self._config = config

    async def decide(self, query: TurnQuery) -> Decision:
        """Commit, or hold to the hard end with another question at 600 ms of silence.

        Raises DetectorError without audio, for features of a wrong shape, and when the model
        fails. Cancelling drops the answer; a job already on the pool runs to its end unheard.
        """
        if query.audio is None or not len(query.audio):
            raise DetectorError("audio: none was kept; keep the last 8 s of the caller")
        audio = query.audio[-WINDOW_SAMPLES:]
        try:
            p = await self._run(lambda: self._probability(audio))
        except Exception as error:  # a model runtime's own errors share no root
            raise DetectorError(f"smart-turn failed: {error}") from error
        return weigh(p, query, self._config)

    def _probability(self, audio: Samples) -> float:
        features = self._mel(audio)
        if features.shape != FEATURE_SHAPE:
            raise ValueError(f"features: shape {features.shape}, expected {FEATURE_SHAPE}")
        return float(self._infer(features))


def weigh(p: float, query: TurnQuery, config: SmartTurnConfig = DEFAULTS) -> Decision:
    """The decision rule alone: p >= .5, or a question and p >= .2, commits; else hold. Spelling
    is held a while even then. A second answer needs p >= .96."""
    enough = config.again_p if query.again else config.commit_p
    if p >= enough and is_spelling(query.transcript):
        return Decision(config.spelling_ms, f"spelling:{p:.2f}", p)
    if p >= enough:
        return Decision(0, f"smart_turn:{p:.2f}", p)
    if p >= config.question_p and is_question(query.transcript):
        return Decision(0, f"smart_turn-q:{p:.2f}", p)
    dictation = is_dictation(query.transcript)
    hold = config.dictation_end_ms if dictation else config.hard_end_ms
    again = config.ask_again_ms if query.silence_ms < config.ask_again_ms else None
    return Decision(hold, f"hold:{p:.2f}", p, again)
