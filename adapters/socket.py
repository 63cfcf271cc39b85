"""One WebSocket to a speech provider, as a client: what realtime and streaming speech share.

`connect` opens it, and maps whatever goes wrong there to adapters/errors.py once for all providers.
After that nothing raises: frames end, and `closed` says why. Sending is a plain call; there is no
queue of our own and no task that writes, only the transport's buffer and its bound. `run` watches
for a peer that fell silent, and lives in the caller's TaskGroup.

Nothing here reconnects (realtime/link.py and the recognisers decide that, `backoff` counts for
them), knows a provider's messages, follows a redirect, or shows a key: not in a repr, an error or a
log, and not where the peer repeats it.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import AsyncGenerator
from functools import cache

from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as websockets_connect
from websockets.asyncio.server import broadcast
from websockets.exceptions import (
    ConnectionClosed,
    InvalidHandshake,
    InvalidHeader,
    InvalidStatus,
    NegotiationError,
    WebSocketException,
)
from websockets.protocol import State
from websockets.typing import Subprotocol

from .credentials import Secret
from .errors import (
    AdapterError,
    ConnectionFailed,
    CredentialsRejected,
    ProviderRefused,
    ProviderStalled,
)
from .socket_config import ABNORMAL, ATTEMPTS, UNSENT, SocketClosed, SocketConfig, backoff

__all__ = [
    "ABNORMAL",
    "ATTEMPTS",
    "UNSENT",
    "Socket",
    "SocketClosed",
    "SocketConfig",
    "backoff",
    "connect",
]

CLOSE_CODES = frozenset({1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011})
"""What a close frame may carry, beside 3000 to 4999."""
REASON_BYTES = 123

MESSAGES_AHEAD = 64
"""Received messages that may wait for the reader before the peer is held back."""
SHOWN_CHARACTERS = 300
"""Of a refusal's body, in the error."""

_QUIET = logging.getLogger(f"{__name__}.wire")
# At DEBUG the library writes every header and frame, keys and speech included: never, whatever
# level its parents have.
_QUIET.setLevel(logging.WARNING)

_PASSING = frozenset({408, 425, 429})
"""HTTP statuses below 500 that pass by themselves."""


class Socket:
    """One open connection. Made by `connect`; belongs to one loop; one reader at a time.

    Whoever opened it calls `aclose` or `abort` in the end, and runs `run` where it has pings.
    """

    def __init__(self, wire: _Wire, config: SocketConfig) -> None:
        self._wire = wire
        self._config = config
        self._loop = asyncio.get_running_loop()
        self._closed: SocketClosed | None = None
        self._last_frame_at = self._loop.time()

    @property
    def closed(self) -> SocketClosed | None:
        """Why it ended, set once: by our own `aclose` or `abort`, else when `receive` ends."""
        return self._closed

    @property
    def subprotocol(self) -> str | None:
        """The one the peer chose."""
        return self._wire.subprotocol

    @property
    def unsent_bytes(self) -> int:
        """What was sent and waits in this process for the peer."""
        return self._wire.transport.get_write_buffer_size()

    @property
    def last_frame_at(self) -> float:
        """Loop time of the last message that `receive` gave; of the handshake before the first.
        Pings and pongs are none."""
        return self._last_frame_at

    def send(self, frame: str | bytes) -> None:
        """Send a text or a binary message, behind all that were sent before. Written at once as far
        as the peer takes it. Dropped when the connection is over; never raises for the peer."""
        if self._closed is not None:
            return
        if self.unsent_bytes > self._config.max_unsent_bytes:
            self.abort(f"unsent: the peer left {self.unsent_bytes} bytes waiting", code=UNSENT)
            return
        # One recipient: this is the library's way to send without waiting.
        broadcast((self._wire,), frame)

    async def receive(self) -> AsyncGenerator[str | bytes, None]:
        """The peer's messages until the connection is over; then `closed` is set. A cancelled wait
        loses none. After our own `abort` nothing more comes."""
        while True:
            try:
                frame = await self._wire.recv()
            except ConnectionClosed as error:
                self._end(_told(error))
                return
            if self._closed is not None and not self._wire.closing:
                return
            self._last_frame_at = self._loop.time()
            yield frame

    async def run(self) -> None:
        """Watch until the connection is over: after `ping_s` of silence ping, and without a life
        sign `pong_s` later `abort` with "no pong within …". Any byte of the peer is a life sign: a
        pong may queue behind speech. Returns at once when it is over."""
        ping_s = self._config.ping_s
        if ping_s is None:
            return await self._wire.wait_closed()
        while not await self._over_within(self._silent_for(ping_s)):
            if self._silent_for(ping_s) <= 0 and not await self._answers():
                return

    def _silent_for(self, seconds: float) -> float:
        """How much is missing to a silence of `seconds`."""
        return self._wire.heard_at + seconds - self._loop.time()

    async def _over_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._wire.wait_closed()
        except TimeoutError:
            return False
        return True

    async def _answers(self) -> bool:
        self._wire.heard.clear()
        try:
            await self._wire.ping()
        except ConnectionClosed:
            return False
        try:
            async with asyncio.timeout(self._config.pong_s):
                await self._wire.heard.wait()
        except TimeoutError:
            self.abort(f"no pong within {self._config.pong_s:g} s")
            return False
        return True

    def abort(self, reason: str, *, code: int = ABNORMAL) -> None:
        """End it now, without a word to the peer: for one that is not there any more. Idempotent;
        after an end of another kind it changes nothing."""
        self._end(SocketClosed(code, reason, by_us=True))
        self._wire.transport.abort()

    async def aclose(self, code: int = 1000, reason: str = "") -> None:
        """End it in order: a close frame, the peer's answer, at most `close_timeout_s`; then the
        transport is aborted. `receive` may go on meanwhile. Idempotent, never raises for the peer;
        a cancelled one has aborted."""
        try:
            if self._closed is None and self._wire.state is State.OPEN:
                self._closed = SocketClosed(code, reason, by_us=True)
                self._wire.closing = True
            sent = code if code in CLOSE_CODES or 3000 <= code < 5000 else 1000
            await self._wire.close(sent, reason.encode()[:REASON_BYTES].decode(errors="ignore"))
        finally:
            self._wire.transport.abort()
        await self._wire.wait_closed()

    def _end(self, how: SocketClosed) -> None:
        self._wire.closing = False
        if self._closed is None:
            self._closed = SocketClosed(how.code, self._config.scrubbed(how.reason), how.by_us)


class _Wire(ClientConnection):
    """The library's connection, which also tells when anything came, and does not wait for ever for
    a peer that sent its close frame and keeps TCP open."""

    closing = False
    """We asked for the end and still take what comes before it."""
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.heard = asyncio.Event()
        self.heard_at = self.loop.time()
        super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        self.heard_at = self.loop.time()
        self.heard.set()
        super().data_received(data)
        if self.state is State.CLOSING and self._deadline is None:
            self._deadline = self.loop.call_later(self.close_timeout or 0.0, self.transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self.heard.set()
        super().connection_lost(exc)


def _told(error: ConnectionClosed) -> SocketClosed:
    """What the library knows of an end that we did not order."""
    if error.rcvd is not None and (error.sent is None or error.rcvd_then_sent):
        return SocketClosed(error.rcvd.code, error.rcvd.reason)
    if error.sent is not None:
        return SocketClosed(error.sent.code, error.sent.reason, by_us=True)
    return SocketClosed(ABNORMAL, str(error.__cause__ or "the connection broke"))


class _Connect(websockets_connect):
    """A redirect is an answer like another: the key stays where it was meant to go."""

    def process_redirect(self, exc: Exception) -> Exception:
        return exc


async def connect(config: SocketConfig, *, stage: str) -> Socket:
    """Connect and finish the handshake within `connect_timeout_s`. After any exception, a
    cancellation included, nothing is open.

    `stage` begins the wire code: with "ERR_REALTIME", ERR_REALTIME_CONNECTION and so on.

    Raises CredentialsRejected (`_AUTH`: HTTP 401, 403), ProviderRefused (`_REFUSED`: another answer
    below 500, or no WebSocket), ProviderStalled (`_STALLED`: time is up), ConnectionFailed
    (`_CONNECTION`: name, TCP, TLS, 5xx, 408, 425, 429). The message names host, status and the
    beginning of the body.
    """
    secure = config.url.startswith("wss:")
    subprotocols = [Subprotocol(_revealed(name)) for name in config.subprotocols]
    try:
        async with asyncio.timeout(config.connect_timeout_s):
            tls = config.tls or (await asyncio.to_thread(_system_tls) if secure else None)
            wire = await _Connect(
                config.url,
                additional_headers={k: _revealed(v) for k, v in config.headers.items()},
                subprotocols=subprotocols or None,
                compression=None,  # speech does not shrink, and waiting for a window is latency
                open_timeout=None,
                ping_interval=None,  # `run` pings: the library's waits while its buffer is full
                close_timeout=config.close_timeout_s,
                max_size=config.max_message_bytes,
                max_queue=MESSAGES_AHEAD,
                # Never reached: a ping must go out behind whatever waits.
                write_limit=1 << 62,
                logger=_QUIET,
                create_connection=_Wire,
                ssl=tls,
            )
    except (OSError, EOFError, InvalidHandshake) as error:
        raise _failure(error, config, stage) from error
    except WebSocketException as error:
        # A proxy's address that cannot be used. It may hold a password, and the error repeats it.
        text = f"{config.host}: {type(error).__name__}"
        raise ConnectionFailed(f"{stage}_CONNECTION", text) from None
    if not isinstance(wire, _Wire):
        raise TypeError(f"websockets made a {type(wire).__name__}")
    return Socket(wire, config)


def _failure(error: Exception, config: SocketConfig, stage: str) -> AdapterError:
    host = config.host
    match error:
        case TimeoutError():
            text = f"{host}: no connection within {config.connect_timeout_s:g} s"
            return ProviderStalled(f"{stage}_STALLED", text)
        case InvalidStatus(response=response):
            body = response.body or b""
            return _refusal(response.status_code, bytes(body), config, stage)
        case InvalidHeader() | NegotiationError():
            text = config.scrubbed(f"{host}: no WebSocket here: {error}")
            return ProviderRefused(f"{stage}_REFUSED", text)
        case _:
            text = config.scrubbed(str(error.__cause__ or error) or type(error).__name__)
            return ConnectionFailed(f"{stage}_CONNECTION", f"{host}: {text}")


def _refusal(status: int, body: bytes, config: SocketConfig, stage: str) -> AdapterError:
    said = config.scrubbed(" ".join(body.decode(errors="replace").split()))[:SHOWN_CHARACTERS]
    text = f"{config.host}: HTTP {status}" + (f": {said}" if said else "")
    if status in (401, 403):
        return CredentialsRejected(f"{stage}_AUTH", text)
    if status >= 500 or status in _PASSING:
        return ConnectionFailed(f"{stage}_CONNECTION", text)
    return ProviderRefused(f"{stage}_REFUSED", text)


def _revealed(value: str | Secret) -> str:
    return value.reveal() if isinstance(value, Secret) else value


@cache
def _system_tls() -> ssl.SSLContext:
    """Read once: it costs tens of milliseconds."""
    return ssl.create_default_context()
