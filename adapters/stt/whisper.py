"""Local speech-to-text: Whisper tiny.en over everything the caller said since the last turn.

One `WhisperStt` serves one call; the model is shared by the process, and its work runs through the
call's `Jobs`, one job at a time, so answers keep their order and a recording gives the same call
at any speed. It never segments by itself: it answers `flush` and `ask`, each time from the whole
unsettled utterance, so a pause inside a sentence gives one text. What a flush will want is read
as soon as the caller pauses, where nothing else waits. It never touches the network.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from ...media.errors import MediaError
from ...media.frame import AudioFrame
from ...media.inference import Jobs
from ...media.pcm import Samples
from .ahead import Ahead
from .port import Final, Partial, Problem, SttSink
from .utterance import Piece, Utterance

MOST_FLUSHES = 32
"""Finals that may be waiting on one call before the oldest is answered blank."""


class Transcriber(Protocol):
    """What a call needs of the model. `transcribe` runs on the inference pool."""

    def transcribe(self, samples: Samples) -> str:
        """Text of at most 30 s at 16 kHz; empty when nobody spoke."""
        ...


@dataclass(frozen=True, slots=True)
class _Request:
    """What to report, with the audio it was asked for; `kind` None reads ahead, silently."""

    kind: type[Final] | type[Partial] | None
    start: int
    end: int
    pieces: tuple[Piece, ...]


class WhisperStt:
    """A SpeechToText over `model`. Not continuous."""

    def __init__(self, model: Transcriber, jobs: Jobs) -> None:
        self._model = model
        self._jobs = jobs
        self._sink: SttSink | None = None
        self._audio = Utterance()
        self._flushes: deque[_Request] = deque()
        self._ask: _Request | None = None
        self._running: _Running | None = None
        self._ahead = Ahead(jobs, lambda pieces: _read(model, pieces))

    @property
    def name(self) -> str:
        return "whisper"

    @property
    def continuous(self) -> bool:
        return False

    async def connect(self, sink: SttSink) -> None:
        """Nothing to connect to: the model is loaded."""
        self._sink = sink

    def send_audio(self, frame: AudioFrame) -> None:
        """Keep the audio; a finished piece of a long utterance is read ahead of its flush."""
        if self._sink is None:
            return
        piece = self._audio.add(frame.at, frame.array())
        if piece is not None and self._ask is None:
            self._ask = _Request(None, piece.start, piece.end, (piece,))
            self._next()

    def flush(self, end: int) -> None:
        """One Final for all that is unsettled. A running or waiting ask is overtaken."""
        self._ask = None
        if self._running is not None and self._running.request.kind is not Final:
            self._drop_running()
        if len(self._flushes) >= MOST_FLUSHES:
            lost = self._flushes.popleft()
            self._report(Problem("ERR_STT_OVERLOADED", "too many utterances wait for whisper"))
            self._report(Final("", lost.start, lost.end))
        self._flushes.append(self._request(Final, end))
        self._next()

    def ask(self, end: int) -> None:
        """One Partial, behind the answer that is being made; the newest waiting ask wins."""
        self._ask = self._request(Partial, end)
        self._next()

    def speculate(self, end: int | None) -> None:
        """Read now what `flush(end)` will want, unless an answer is due: that goes first."""
        if end is None or self._sink is None or self._running is not None:
            self._ahead.drop()
        else:
            self._ahead.begin(end, self._audio.peek(end))

    def settle(self, end: int) -> None:
        self._audio.settle(end)

    async def aclose(self) -> None:
        self._sink = None
        self._flushes.clear()
        self._ask = None
        self._drop_running()
        self._ahead.drop()
        self._audio = Utterance()

    def _request(self, kind: type[Final] | type[Partial], end: int) -> _Request:
        start, pieces = self._audio.before(end)
        return _Request(kind, start, end, pieces)

    def _next(self) -> None:
        """Start the oldest flush, or the ask, if nothing is running."""
        if self._sink is None or self._running is not None:
            return
        request = self._flushes.popleft() if self._flushes else self._ask
        if request is None:
            return
        if request.kind is not Final:
            self._ask = None
        self._running = _Running(request, self._text_of(request), self._done)

    def _text_of(self, request: _Request) -> asyncio.Future[str]:
        """The text, made ahead or to be made. A speculation gives way to any other request."""
        known = self._ahead.take(request.end, request.pieces)
        if known is not None:
            return known
        try:
            return self._jobs.submit("stt", _read, self._model, request.pieces)
        except MediaError as error:
            refused: asyncio.Future[str] = asyncio.get_running_loop().create_future()
            refused.set_exception(error)
            return refused

    def _done(self, running: _Running) -> None:
        """A job ended: report it, then take the next one."""
        if running is not self._running:
            return
        self._running = None
        request, text = running.request, ""
        error = running.error()
        if error is not None:
            code = error.code if isinstance(error, MediaError) else "ERR_STT_FAILED"
            self._report(Problem(code, f"whisper failed: {error}"))
        else:
            text = running.future.result()
        if request.kind is not None:
            self._report(request.kind(text, request.start, request.end))
        self._next()

    def _drop_running(self) -> None:
        running, self._running = self._running, None
        if running is not None:
            running.future.cancel()

    def _report(self, event: Final | Partial | Problem) -> None:
        if self._sink is not None:
            self._sink(event)


class _Running:
    """The one job in flight; `done(self)` is called on the loop when it has ended."""

    def __init__(
        self,
        request: _Request,
        future: asyncio.Future[str],
        done: Callable[[_Running], None],
    ) -> None:
        self.request = request
        self.future = future
        future.add_done_callback(lambda _: done(self))

    def error(self) -> BaseException | None:
        """Why there is no text: the job's exception, or its cancellation by the call's end."""
        if self.future.cancelled():
            return asyncio.CancelledError("the call's jobs were cancelled")
        return self.future.exception()


def _read(model: Transcriber, pieces: tuple[Piece, ...]) -> str:
    """On the inference pool: the text of all pieces. A finished piece is read once."""
    texts = []
    for piece in pieces:
        if piece.text is None:
            piece.text = model.transcribe(piece.samples)
        texts.append(piece.text)
    return " ".join(text for text in texts if text)
