"""Short phrases that say an answer is on its way: rendered when the call begins, played at once.

Owned by one pipeline for one run. The machine says when one is due, the answer's own `Speech`
speaks it, so that a caller interrupts it like anything else (docs/decisions/0009). Nothing of it
is history. A voice that fails here costs the phrases, never the call.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass

from ..adapters.tts.port import Audio, Done, Failed, TextToSpeech, TtsEvent, TtsFactory
from ..media.format import AudioFormat
from .speaker import close_voice
from .text.spoken import to_spoken

log = logging.getLogger(__name__)


class VoiceFailed(Exception):
    """The synthesiser said that it could not speak."""


@dataclass(frozen=True, slots=True)
class Phrase:
    """A phrase as sound."""

    text: str
    format: AudioFormat
    sound: tuple[Audio, ...]


class Acknowledgements:
    """The phrases of one call, in turn: none is heard twice in a row."""

    def __init__(self, texts: tuple[str, ...], factory: TtsFactory) -> None:
        self._texts = texts
        self._factory = factory
        self._ready: list[Phrase] = []
        self._given = 0

    async def render(self) -> None:
        """Task of the brain's group: make the phrases, one after the other."""
        for text in self._texts:
            try:
                phrase = await _render(text, self._factory)
            except Exception as error:  # a vendor's library may raise anything
                log.warning("an acknowledgement cannot be spoken", extra={"why": repr(error)})
                return
            if phrase.sound:
                self._ready.append(phrase)

    def next(self) -> Phrase | None:
        """The phrase whose turn it is; None while fewer than two are made: one alone would be
        repeated."""
        if len(self._ready) < 2:
            return None
        phrase = self._ready[self._given % len(self._ready)]
        self._given += 1
        return phrase


class Rendered:
    """A TextToSpeech that has spoken already: gives the sound of `phrase`."""

    name = "rendered"

    def __init__(self, phrase: Phrase) -> None:
        self._phrase = phrase

    @property
    def format(self) -> AudioFormat:
        return self._phrase.format

    async def open(self) -> None: ...

    def send_text(self, text: str) -> None: ...

    def flush(self) -> None: ...

    async def events(self) -> AsyncIterator[TtsEvent]:
        for audio in self._phrase.sound:
            yield audio
        yield Done()

    async def aclose(self) -> None: ...


async def _render(text: str, factory: TtsFactory) -> Phrase:
    """Raises what the voice raises, and VoiceFailed."""
    tts: TextToSpeech = factory()
    try:
        await tts.open()
        tts.send_text(to_spoken(text).text)
        tts.flush()
        sound: list[Audio] = []
        async for event in tts.events():
            if isinstance(event, Failed):
                raise VoiceFailed(f"{event.code}: {event.message}")
            if isinstance(event, Audio):
                sound.append(event)
        return Phrase(text, tts.format, tuple(sound))
    finally:
        await close_voice(tts)
