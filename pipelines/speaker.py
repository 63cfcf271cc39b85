"""Where synthesisers come from: one per model response, the next one made ready ahead of time.

Owned by the brain for the life of a call. A prewarmed synthesiser is used once, or dropped after a
minute (spec/voice 8).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass

from ..adapters.errors import AdapterError
from ..adapters.tts.port import TextToSpeech, TtsFactory

PREWARM_S = 60.0
"""A synthesiser that waited longer is not used."""

Spawn = Callable[[Coroutine[None, None, None]], object]


@dataclass(slots=True)
class _Ready:
    tts: TextToSpeech
    since: float


class Speaker:
    """Gives one fresh synthesiser for each response."""

    def __init__(self, factory: TtsFactory, spawn: Spawn) -> None:
        self._factory = factory
        self._spawn = spawn
        self._ready: _Ready | None = None
        self._warming = False

    def take(self) -> TextToSpeech:
        """A synthesiser nobody else has; the prewarmed one if it is still good."""
        ready, self._ready = self._ready, None
        if ready is None:
            return self._factory()
        if asyncio.get_running_loop().time() - ready.since <= PREWARM_S:
            return ready.tts
        self._spawn(ready.tts.aclose())
        return self._factory()

    def prewarm(self) -> None:
        """The user speaks: an answer is near, open a synthesiser for it."""
        if self._ready is None and not self._warming:
            self._warming = True
            self._spawn(self._warm())

    async def aclose(self) -> None:
        """Drop the prewarmed one."""
        ready, self._ready = self._ready, None
        if ready is not None:
            await ready.tts.aclose()

    async def _warm(self) -> None:
        """Task of the brain's group. A failure is no news yet: the response itself will meet it."""
        tts = self._factory()
        try:
            await tts.open()
        except AdapterError:
            await tts.aclose()
        else:
            self._ready = _Ready(tts, asyncio.get_running_loop().time())
        finally:
            self._warming = False
