"""The line over one WebSocket of CONTRACTS B: PCM16LE 16 kHz both ways, JSON beside it.

Owned by the call it is attached to; whoever accepted the socket runs `run()` (the writer) beside it
and ends with it. Knows no HTTP library: `Socket` is the whole wire. Never interprets what a
message asks for: all but playback reports and `hangup` come out of `receive` as Data.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

from ...media.errors import (
    MediaValueError,
    TransportClosed,
    TransportError,
    TransportStalled,
)
from ...media.format import PIPELINE
from ...media.frame import AudioFrame
from ...media.transport import Data, Hangup, Played, Signal, TransportInfo
from .beats import Beats
from .playout import Playout
from .websocket_messages import (
    MAX_MESSAGE_BYTES,
    BadMessage,
    RateWindow,
    check_frame,
    read_message,
)
from .writer import Socket, Writer

CLOSE_S = 1.5
"""How long the last messages and the close handshake may take."""

NORMAL, GOING_AWAY, TOO_BIG, INTERNAL = 1000, 1001, 1009, 1011
REPLACED, BAD_PEER, SLOW_CONSUMER = 4000, 4001, 4002
CLOSE_CODES: Mapping[str, int] = {
    "replaced": REPLACED,
    "drain": GOING_AWAY,
    "error": INTERNAL,
}
"""Reason of `aclose` -> close code; every other reason is a normal end (1000)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSocketLimits:
    """How much a peer may ask of us."""

    bad_messages: int = 20
    bad_window_s: float = 10.0
    texts_per_s: int = 100
    input_burst_s: float = 2.0
    """Audio a peer may send ahead of the clock; what is beyond is dropped and counted."""


class WebSocketTransport:
    """CallTransport over a Socket. Construct it on the running loop, then keep `run()` running."""

    def __init__(
        self,
        socket: Socket,
        *,
        peer: str = "",
        limits: WebSocketLimits | None = None,
        beats: Beats | None = None,
    ) -> None:
        limits = limits or WebSocketLimits()
        now = _now()
        self._info = TransportInfo(kind="websocket", peer=peer, clock="estimate", data=True)
        self._socket = socket
        self._writer = Writer(socket)
        self._beats = beats or Beats()
        self._playout = Playout(self._writer, PIPELINE.rate, self._beats, self._stall)
        self._intake = _Intake(limits, now)
        self._end: tuple[int, str] | None = None
        """Close code and reason, once our side decided to end."""
        self._stalled = False
        self._written = asyncio.Event()
        """Set when `run` has written its last message and closed the socket."""

    @property
    def info(self) -> TransportInfo:
        return self._info

    @property
    def dropped_samples(self) -> int:
        """Input samples thrown away because the peer sent faster than time passes."""
        return self._intake.dropped

    @property
    def bad_messages(self) -> int:
        """Messages refused so far."""
        return self._intake.refused

    async def run(self) -> None:
        """Look after the writing until the line ends, then close the socket. Run it once.

        Never raises for what the peer does: `receive` and `send` report it. After cancellation
        the socket is closed too.
        """
        try:
            await self._writer.run()
        except TimeoutError:
            self._stall()
        except ConnectionError:
            self._finish(NORMAL, "connection lost")
        finally:
            self._close()
            code, reason = self._end or (GOING_AWAY, "going away")
            try:
                await self._socket.close(code, reason)
            finally:
                self._written.set()

    async def receive(self) -> AsyncIterator[AudioFrame | Signal]:
        """See CallTransport. A bad message is answered and skipped; over 20 in 10 s close 4001."""
        at = 0
        clock = asyncio.get_running_loop().time
        async for message in self._socket:
            if self._end is not None:
                break
            if isinstance(message, bytes):
                now = clock()
                if now >= self._beats.next:
                    self._beats.catch_up(now)
                frame = self._hear(message, at, now)
                if frame is not None:
                    yield frame
                    at += len(message) // 2
                continue
            signal = self._read(message, clock())
            if signal is not None:
                yield signal
            if isinstance(signal, Hangup):
                return
        self._close()
        if self._end is None and self._socket.close_code == NORMAL:
            yield Hangup(by_remote=True, code="closed")
            return
        code, reason = self._end or (self._socket.close_code or 0, "the peer went away")
        raise self._broken(f"websocket closed ({code or 'no close frame'}): {reason}")

    async def send(self, frame: AudioFrame) -> bool:
        """See CallTransport. What is taken leaves on the beat, at most one frame later."""
        playout = self._playout
        epoch = playout.clock.epoch
        while playout.busy and not self._writer.closed and playout.clock.epoch == epoch:
            await playout.moved()
        if self._writer.closed:
            raise self._broken(
                "the peer played nothing" if self._stalled else "the websocket is closed"
            )
        if playout.clock.epoch != epoch:
            return False
        playout.put(frame)
        return True

    def clear(self) -> int:
        """See CallTransport. Queued sound is dropped before it reaches the socket."""
        closed, stop = self._playout.clear()
        self._writer.drop_audio()
        self.post({"t": "clear", "epoch": closed})
        return stop

    def played(self) -> int:
        """See CallTransport."""
        return self._playout.clock.played(_now())

    @property
    def sent(self) -> int:
        """Output position at which the next frame will stand."""
        return self._playout.sent

    @property
    def epoch(self) -> int:
        """The open playback epoch."""
        return self._playout.clock.epoch

    def post(self, message: Mapping[str, object]) -> None:
        """Write a JSON message, in order with the sound. Synchronous; nothing after the end.

        A peer that lets too many pile up is a slow consumer and is closed. Raises MediaValueError
        for a message that is no JSON, or longer than a message may be: nothing is sent then.
        """
        if not self._writer.text(_encoded(message)):
            self._stall()

    async def send_data(self, message: Mapping[str, object]) -> None:
        """See CallTransport."""
        self.post(message)

    async def aclose(self, reason: str) -> None:
        """See CallTransport: says `bye{reason}`, writes what waits but sound, closes."""
        if self._end is None:
            self._writer.drop_audio()
            self.post({"t": "bye", "reason": reason})
            self._finish(CLOSE_CODES.get(reason, NORMAL), reason)
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_S):
                await self._written.wait()

    def _hear(self, pcm: bytes, at: int, now: float) -> AudioFrame | None:
        """The peer's sound as a frame that begins at `at`; None when it was refused here."""
        if len(pcm) > MAX_MESSAGE_BYTES:
            self._refuse_size()
            return None
        try:
            return self._intake.audio(pcm, at, now)
        except BadMessage as bad:
            self._refuse(bad, now)
            return None

    def _read(self, text: str, now: float) -> Signal | None:
        """What a message of the peer means; None when it was used up or refused here."""
        if len(text.encode()) > MAX_MESSAGE_BYTES:
            self._refuse_size()
            return None
        try:
            return self._signal(self._intake.text(text, now))
        except BadMessage as bad:
            self._refuse(bad, now)
            return None

    def _refuse_size(self) -> None:
        self._finish(TOO_BIG, f"messages are limited to {MAX_MESSAGE_BYTES} bytes")

    def _refuse(self, bad: BadMessage, now: float) -> None:
        self.post(bad.as_message())
        if self._intake.refuse(now):
            self._finish(BAD_PEER, "too many bad messages")

    def _signal(self, message: Mapping[str, object]) -> Signal | None:
        match message:
            case {"t": "playback", "epoch": int(epoch), "pos": int(pos)}:
                self._check_epoch("playback", epoch)
                self._playout.ack(epoch, pos)
                return None
            case {"t": "cleared", "epoch": int(epoch), "pos": int(pos)}:
                self._check_epoch("cleared", epoch + 1)
                stop = self._playout.clock.cleared(epoch, pos)
                return None if stop is None else Played(stop, epoch)
            case {"t": "hangup"}:
                return Hangup(by_remote=True)
            case _:
                return Data(message)

    def _check_epoch(self, kind: str, epoch: int) -> None:
        if epoch > self.epoch:
            raise BadMessage("epoch", f"{kind}.epoch lies ahead; the open epoch is {self.epoch}")

    def _stall(self) -> None:
        self._stalled = True
        self._writer.drop_all()
        self._finish(SLOW_CONSUMER, "slow consumer")

    def _finish(self, code: int, reason: str) -> None:
        if self._end is None:
            self._end = (code, reason)
        self._close()

    def _close(self) -> None:
        self._writer.close()
        self._playout.close()

    def _broken(self, why: str) -> TransportError:
        return TransportStalled(why) if self._stalled else TransportClosed(why)


class _Intake:
    """Counts what the peer sends and refuses what is malformed or too much."""

    def __init__(self, limits: WebSocketLimits, now: float) -> None:
        self.dropped = 0
        self.refused = 0
        self._bad = RateWindow.of(limits.bad_messages, limits.bad_window_s)
        self._texts = RateWindow.of(limits.texts_per_s, 1.0)
        self._burst = limits.input_burst_s * PIPELINE.rate
        self._credit = self._burst
        self._credited_at = now

    def audio(self, pcm: bytes, at: int, now: float) -> AudioFrame | None:
        """A frame at `at`, or None when the peer is too far ahead of the clock."""
        size = len(pcm)
        if not size or size % 2:
            check_frame(pcm)
        samples = size // 2
        credit = self._credit + (now - self._credited_at) * PIPELINE.rate
        if credit > self._burst:
            credit = self._burst
        self._credited_at = now
        if samples > credit:
            self._credit = credit
            self.dropped += samples
            return None
        self._credit = credit - samples
        return AudioFrame(pcm, PIPELINE, at)

    def text(self, text: str, now: float) -> dict[str, object]:
        """The checked message; a flood of messages is refused like bad ones."""
        if self._texts.full(now):
            raise BadMessage("t", f"more than {self._texts.limit} messages in a second; slow down")
        return read_message(text)

    def refuse(self, now: float) -> bool:
        """Count a bad message: True when it is one too many."""
        self.refused += 1
        return self._bad.full(now)


def _encoded(message: Mapping[str, object]) -> str:
    """JSON in plain ASCII, so that its length is its size."""
    kind = str(message.get("t"))
    try:
        text = json.dumps(message, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise MediaValueError(kind, str(error), "send what JSON can hold") from None
    if len(text) > MAX_MESSAGE_BYTES:
        raise MediaValueError(kind, f"{len(text)} bytes", f"send at most {MAX_MESSAGE_BYTES}")
    return text


def _now() -> float:
    return asyncio.get_running_loop().time()
