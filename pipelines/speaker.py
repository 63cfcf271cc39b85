"""Where synthesisers come from: one per model response, the next one made ready ahead of time.

Owned by the brain for the life of a call. A prewarmed synthesiser is used once, or dropped after a
minute (spec/voice 8).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass

from ..adapters.tts.port import TextToSpeech, TtsFactory

log = logging.getLogger(__name__)

PREWARM_S = 60.0
"""A synthesiser that waited longer is not used."""

CLOSE_S = 0.3
"""Bound on closing a synthesiser: several may have to within the end of a call (DESIGN 5.10)."""

Spawn = Callable[[Coroutine[None, None, None]], object]


async def close_voice(tts: TextToSpeech) -> None:
    """Close `tts` within CLOSE_S; a failure is logged, for nobody can do anything about it."""
    try:
        async with asyncio.timeout(CLOSE_S):
            await tts.aclose()
    except Exception as error:
        log.warning("a synthesiser does not close", extra={"why": repr(error)})


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
        """A synthesiser nobody else has; the prewarmed one if it is still good. Raises what the
        factory raises."""
        ready, self._ready = self._ready, None
        if ready is None:
            return self._factory()
        if asyncio.get_running_loop().time() - ready.since <= PREWARM_S:
            return ready.tts
        self._spawn(close_voice(ready.tts))
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
            await close_voice(ready.tts)

    async def _warm(self) -> None:
        """Task of the brain's group. A failure is no news yet: the response itself will meet it."""
        tts: TextToSpeech | None = None
        try:
            tts = self._factory()
            await tts.open()
            self._ready, tts = _Ready(tts, asyncio.get_running_loop().time()), None
        except Exception as error:  # a vendor's library may raise anything
            log.info("no synthesiser was made ready", extra={"why": repr(error)})
        finally:
            self._warming = False
            if tts is not None:
                await close_voice(tts)
