"""The voice of one generation: text of the agent's messages in, sound on the line, heard text out.

One synthesiser per model response, opened at its first words and flushed at its end (spec/voice 8).
Messages are spoken strictly in order; each is one segment of the line. `close` is the generation's
end: from then on nothing more of it reaches the line, whatever still arrives (DESIGN 4). Owned by
one reply or one narration; its `run` is a task of theirs.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

from ..adapters.errors import AdapterError
from ..adapters.tts.port import Alignment, Audio, Done, Failed, TextToSpeech, TtsEvent
from ..media.errors import LineClosed
from ..media.frame import AudioFrame
from ..media.line import Line
from ..media.segments import Heard as HeardSamples
from ..media.turns.heard import Heard, SegmentText
from .speaker import Speaker, close_voice
from .text.sentences import SentenceBuffer
from .text.spoken import to_spoken

T = TypeVar("T")

STALL_S = 12.0
"""A synthesiser silent for this long has stalled (spec/voice 8)."""


class SpeechFailed(Exception):
    """The voice failed; `code` is a wire code of spec/voice 10."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(slots=True)
class Utterance:
    """One message being spoken, as segment `segment` of the line."""

    message_id: str
    segment: int
    aside: bool = False
    """It says that the answer is on its way, and is no part of it."""
    written: str = ""
    buffer: SentenceBuffer = field(default_factory=SentenceBuffer)
    tts: TextToSpeech | None = None
    spoken: SegmentText = field(default_factory=SegmentText)
    flushed: bool = False
    delivered: bool = False
    """Everything of it was given to the line."""
    ended: bool = False
    """Everything of it was heard."""

    def heard(self, samples: HeardSamples | None) -> Heard:
        """What a person heard of it, given the line's count (None: nothing was sent)."""
        if self.ended:
            return Heard(self.written, "")
        if samples is None or samples.samples == 0:
            return Heard("", self.written, samples is not None and samples.estimated)
        heard = self.spoken.heard(samples.samples)
        unheard = self.written[len(heard.text) :]
        return Heard(heard.text, unheard, heard.estimated or samples.estimated)


@dataclass(frozen=True, slots=True)
class SpeechMarks:
    """Calls back at the moments latency needs: a generation's first words and first sound."""

    first_text: Callable[[], None]
    first_audio: Callable[[], None]


class _Stalled(Exception):
    """The synthesiser was silent for STALL_S."""


class Speech:
    """See the module. `numbers` gives the line's segment numbers, one per message.

    Whatever a synthesiser raises, also where its port says that it raises nothing, is a
    SpeechFailed of `run` and of nobody else.
    """

    def __init__(
        self, line: Line, speaker: Speaker, numbers: Callable[[], int], marks: SpeechMarks
    ) -> None:
        self._line = line
        self._speaker = speaker
        self._numbers = numbers
        self._marks = marks
        self._changed = asyncio.Event()
        self._finished = False
        self._closed = False
        self._broken: Exception | None = None
        """What a synthesiser raised while it was given text."""
        self._patience: asyncio.Timeout | None = None
        """Ends the wait for a synthesiser; None while nobody waits for one."""
        self.utterances: list[Utterance] = []

    @property
    def begun(self) -> bool:
        """Whether anything of it came."""
        return bool(self.utterances)

    @property
    def complete(self) -> bool:
        """Whether all text came and all its sound was given to the line."""
        return self._finished and all(one.delivered for one in self.utterances)

    def say(self, message_id: str, text: str) -> None:
        """More text of message `message_id`. Nothing after `close`."""
        if self._closed or not text:
            return
        utterance = self._utterance(message_id)
        utterance.written += text
        self._speak(utterance, utterance.buffer.push(text))

    def say_aside(self, text: str, tts: TextToSpeech) -> None:
        """Speak `text`, which `tts` has made, ahead of the answer. If the answer's words come
        before its first sample sounds, it is never heard."""
        if not self._closed and not self.begun:
            utterance = Utterance("", self._numbers(), aside=True, tts=tts, flushed=True)
            utterance.spoken = SegmentText(tts.format.rate)
            self.utterances.append(utterance)
            self._changed.set()

    def end_message(self, message_id: str) -> None:
        """No more text of this message: its synthesiser is flushed, once."""
        utterance = next((u for u in self.utterances if u.message_id == message_id), None)
        if self._closed or utterance is None or utterance.flushed:
            return
        self._speak(utterance, utterance.buffer.flush(), last=True)
        utterance.flushed = True
        # From here on silence is a stall, also for whoever waits already.
        self._wake(STALL_S)

    def finish(self) -> None:
        """No more messages: `run` returns when all of it was heard."""
        for utterance in self.utterances:
            self.end_message(utterance.message_id)
        self._finished = True
        self._changed.set()

    async def run(self) -> None:
        """Speak until `finish` and everything was heard, or `close`.

        Raises SpeechFailed, LineClosed. After cancellation every synthesiser is closed.
        """
        try:
            await self._speak_all()
        except (SpeechFailed, LineClosed):
            raise
        except _Stalled as error:
            raise SpeechFailed("ERR_TTS_STALLED", "no sound came from the synthesiser") from error
        except AdapterError as error:
            raise SpeechFailed("ERR_TTS_CONNECTION", str(error)) from error
        except Exception as error:  # a vendor's library may raise anything
            raise SpeechFailed("ERR_TTS_FAILED", f"{type(error).__name__}: {error}") from error
        finally:
            await self._release()

    def close(self) -> None:
        """The generation is over: drop what is unspoken; nobody waits for a synthesiser."""
        self._closed = True
        self._wake(0)

    def owner_of(self, segment: int) -> Utterance | None:
        """The message that is spoken as this segment."""
        return next((u for u in self.utterances if u.segment == segment), None)

    # ---- inside

    async def _speak_all(self) -> None:
        done = 0
        while not self._closed:
            if self._broken is not None:
                raise self._broken
            if done < len(self.utterances):
                utterance = self.utterances[done]
                if utterance.tts is not None:
                    await self._deliver(utterance, utterance.tts)
                    done += 1
                    continue
                if utterance.flushed:
                    utterance.delivered = utterance.ended = True
                    done += 1
                    continue
            elif self._finished:
                await self._line.drain()
                return
            self._changed.clear()
            await self._changed.wait()

    def _utterance(self, message_id: str) -> Utterance:
        if not self.utterances or self.utterances[-1].message_id != message_id:
            self.utterances.append(Utterance(message_id, self._numbers()))
        return self.utterances[-1]

    def _opens(self, utterance: Utterance) -> bool:
        """Whether it is the first message of the answer."""
        return utterance is next((one for one in self.utterances if not one.aside), None)

    def _retract_aside(self) -> None:
        """The words have come: an aside of which nothing was heard yet is not said any more."""
        aside = self.utterances[0]
        if not aside.aside or aside.ended:
            return
        heard = self._line.heard(aside.segment)
        if heard is not None and heard.samples:
            return
        aside.tts, aside.delivered, aside.ended = None, True, True
        paused = self._line.paused
        self._line.cut()
        if paused:
            self._line.pause()

    def _speak(self, utterance: Utterance, pieces: list[str], *, last: bool = False) -> None:
        """Hand `pieces` to the utterance's synthesiser. Whoever brings text is not the one to
        hear that this failed."""
        try:
            for piece in pieces:
                self._send(utterance, piece)
            if last and utterance.tts is not None:
                utterance.tts.flush()
        except Exception as error:
            self._broken = error
            self._wake(0)

    def _send(self, utterance: Utterance, piece: str) -> None:
        if not piece.strip():
            if utterance.tts is not None:
                utterance.spoken.add(piece)
            return
        if utterance.tts is None:
            utterance.tts = self._speaker.take()
            utterance.spoken = SegmentText(utterance.tts.format.rate)
            lead = utterance.written[: utterance.written.index(piece)]
            utterance.spoken.add(lead)
            if self._opens(utterance):
                self._retract_aside()
                self._marks.first_text()
        said = to_spoken(piece)
        utterance.spoken.add(piece, said.pairs)
        utterance.tts.send_text(said.text)
        self._changed.set()

    async def _deliver(self, utterance: Utterance, tts: TextToSpeech) -> None:
        await self._wait_for(utterance, tts.open())
        sounded = False
        events = tts.events()
        while not self._closed:
            event = await self._next(utterance, events, sounded=sounded)
            match event:
                case Audio():
                    if not sounded and self._opens(utterance):
                        self._marks.first_audio()
                    sounded = True
                    utterance.spoken.sound(len(event.pcm) // event.format.bytes_per_sample)
                    await self._line.play(utterance.segment, AudioFrame(event.pcm, event.format))
                case Alignment():
                    utterance.spoken.align(event)
                case Failed(code, message):
                    raise SpeechFailed(code, message)
                case Done() | None:
                    break
        if not self._closed:
            utterance.spoken.close()
            await self._line.finish(utterance.segment)
            utterance.delivered = True
            await close_voice(tts)

    async def _next(
        self,
        utterance: Utterance,
        events: AsyncIterator[TtsEvent],
        *,
        sounded: bool,
    ) -> TtsEvent | None:
        """The next event; None at the end, or at a stall of a flushed voice that had sounded."""
        try:
            return await self._wait_for(utterance, anext(events, None))
        except _Stalled:
            if sounded:
                return None
            raise

    async def _wait_for(self, utterance: Utterance, waiting: Awaitable[T]) -> T | None:
        """Wait for the synthesiser: STALL_S once its text is complete, as long as it takes before.
        None when the generation is over. Raises _Stalled, and what `_speak` met meanwhile."""
        try:
            async with asyncio.timeout(STALL_S if utterance.flushed else None) as patience:
                self._patience = patience
                return await waiting
        except TimeoutError:
            if not patience.expired():
                raise
            if self._closed:
                return None
            if self._broken is not None:
                raise self._broken from None
            raise _Stalled from None
        finally:
            self._patience = None

    def _wake(self, patience_s: float) -> None:
        """Something changed: whoever waits for a synthesiser goes on waiting for this long."""
        self._changed.set()
        if self._patience is not None and not self._patience.expired():
            self._patience.reschedule(asyncio.get_running_loop().time() + patience_s)

    async def _release(self) -> None:
        open_ones = [u.tts for u in self.utterances if u.tts is not None and not u.delivered]
        for tts in open_ones:
            await close_voice(tts)
