"""The line over one WebRTC peer connection (aiortc): Opus both ways, JSON on its data channel.

Owned by the call it is attached to; whoever took the offer runs `run()` beside it and ends with it.
Sound comes through our jitter buffer, FEC and concealment (webrtc_seams) and goes out as packets of
our own encoder (webrtc_track). Where nothing comes (muted track, DTX, bursts of loss) the call's
clock fills; this line only tells silence that it knows of. Never speaks HTTP: see `answer`.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import asdict

from aiortc import (
    RTCDataChannel,
    RTCPeerConnection,
    RTCSessionDescription,
)
from aiortc.mediastreams import MediaStreamError, MediaStreamTrack
from aiortc.sdp import candidate_from_sdp

from ...media.errors import MediaValueError, TransportClosed, TransportError, TransportStalled
from ...media.format import PIPELINE
from ...media.frame import AudioFrame
from ...media.impair import Impairment
from ...media.plc import Piece
from ...media.transport import Gap, Hangup, Signal, TransportInfo
from . import webrtc_seams as seams
from .webrtc_config import WebRtcConfig
from .webrtc_data import DataLine, TooMuch
from .webrtc_impair import Injector
from .webrtc_inbox import Inbox
from .webrtc_reach import Reach
from .webrtc_sdp import MAX_CANDIDATES, has_data, ice_name, is_mdns, usable_offer
from .webrtc_track import Encoder, OutgoingVoice, Playout

log = logging.getLogger(__name__)

WRITE_DEADLINE_S = 5.0
"""A connected peer for whom nothing is pulled for so long has stalled."""
CLOSE_S = 1.5
"""How long the end of the connection may take."""
CAUSE_S = 0.05
"""A lost connection shows on its tracks a moment before ICE says why."""


class WebRtcTransport:
    """CallTransport over an RTCPeerConnection. Construct it on the running loop, `answer` the
    peer's offer, then keep `run()` running."""

    def __init__(
        self,
        config: WebRtcConfig | None = None,
        *,
        peer: str = "",
        encoder: Encoder | None = None,
    ) -> None:
        """Raises media.opus.OpusMissing where there is no libopus."""
        seams.install()
        self._config = config or WebRtcConfig()
        self._deadline = asyncio.get_running_loop().time() + self._config.connect_s
        self._peer = peer
        self._playout = Playout()
        self._reach = Reach()
        self.track = OutgoingVoice(
            self._playout, encoder or self._config.encoder(), away=self._is_away
        )
        self._data = DataLine()
        self._inbox = Inbox()
        self._sending = asyncio.Lock()
        self._remote: MediaStreamTrack | None = None
        self._candidates = 0
        self._connected = False
        self._end: TransportError | None = None
        """Why the line is over; set once."""
        self._changed = asyncio.Event()
        self._closing = asyncio.Event()
        self._closed = asyncio.Event()
        with seams.collecting() as streams:
            self._pc = RTCPeerConnection(self._config.rtc())
            self._voice = self._pc.addTransceiver(self.track, direction="sendrecv")
        self._carrier = self._voice.receiver.transport
        """The one DTLS transport of the line: everything is bundled on it."""
        self.streams = streams
        """The incoming voice stream with its statistics."""
        for stream in streams:
            stream.deliver = self._hear
            stream.on_packet = self._reach.sound
        self._injector = Injector(streams, self._carrier.transport)
        self._voice.setCodecPreferences(seams.opus_only())
        self._pc.add_listener("track", self._on_track)
        self._pc.add_listener("datachannel", self._on_channel)
        self._pc.add_listener("connectionstatechange", self._on_state)
        self._carrier.add_listener("statechange", self._changed.set)
        self._carrier.transport.add_listener("statechange", self._on_ice)

    @property
    def info(self) -> TransportInfo:
        return TransportInfo(kind="webrtc", peer=self._peer, data=self._data.offered)

    @property
    def connected(self) -> bool:
        """Whether sound can flow."""
        return self._connected and self._end is None

    @property
    def cause(self) -> str | None:
        """Why the line is over, without addresses; None while it is not."""
        return None if self._end is None else str(self._end)

    async def opened(self) -> bool:
        """Wait until sound can flow (True) or the line is over (False)."""
        while not self._connected and self._end is None:
            self._changed.clear()
            await self._changed.wait()
        return self._end is None

    @property
    def dropped_samples(self) -> int:
        """Input samples thrown away because the call did not take them in time."""
        return self._inbox.dropped

    @property
    def bad_messages(self) -> int:
        """Messages refused so far."""
        return self._data.refused

    async def answer(self, offer: str) -> str:
        """The SDP answer to the peer's `offer`, with all our candidates in it.

        May be called again on a living line: a renegotiation, which cannot restart ICE (that wants
        a new line). Raises MediaValueError when the offer cannot be used (`aclose` the line then,
        unless it lived before), TransportClosed after the end.
        """
        if self._end is not None:
            raise self._end
        usable = usable_offer(offer)
        before = self._pc.remoteDescription
        if before is not None and ice_name(before.sdp) != ice_name(usable):
            raise MediaValueError("sdp", "an ICE restart", "offer it on a new line of the call")
        try:
            await self._pc.setRemoteDescription(RTCSessionDescription(usable, "offer"))
            if self._voice.receiver.transport is not self._carrier:
                raise ValueError("its BUNDLE group names no section of it")
            for transceiver in self._pc.getTransceivers():
                if transceiver is not self._voice:
                    transceiver.direction = "inactive"
            own = self._config
            with seams.gathering_on(own.host_addresses, loopback=own.loopback):
                await self._pc.setLocalDescription(await self._pc.createAnswer())
        except Exception as error:
            # aiortc's parser raises whatever it stumbles over, assertions included.
            if not self._connected:
                self._finish(TransportClosed("the offer could not be used"))
                await self._close()
            what = f"an offer that fails ({type(error).__name__}: {str(error)[:100]})"
            raise MediaValueError("sdp", what, "send a browser's SDP offer with Opus") from error
        self._data.offered = has_data(usable)
        return self._pc.localDescription.sdp

    async def add_candidate(
        self, candidate: str, mid: str | None = None, index: int | None = None
    ) -> None:
        """A candidate that the peer found later; "" = there are no more; `.local` ones are dropped.

        Raises MediaValueError for one that cannot be read, or one too many.
        """
        line = candidate.removeprefix("a=").removeprefix("candidate:").strip()
        if self._end is not None or is_mdns(line):
            return
        self._candidates += 1
        if self._candidates > MAX_CANDIDATES:
            raise MediaValueError("candidate", "one more", f"send at most {MAX_CANDIDATES}")
        try:
            found = candidate_from_sdp(line) if line else None
            if found is not None:
                found.sdpMid, found.sdpMLineIndex = mid, index
            await self._pc.addIceCandidate(found)
        except Exception as error:
            raise MediaValueError("candidate", repr(line[:80]), "send an ICE candidate") from error

    async def run(self) -> None:
        """Carry sound from the peer until the line ends, then close it. Run it once.

        Never raises for what the peer does: `receive` and `send` report it. After cancellation
        the connection is closed too.
        """
        try:
            if await self._connects():
                await self._pump()
        finally:
            for stream in self.streams:
                log.info("the sound of a webrtc line", extra=asdict(stream.report()))
            self._finish(TransportClosed("the line was given up"))
            await self._close()

    async def receive(self) -> AsyncIterator[AudioFrame | Signal]:
        """See CallTransport. Ends without a word after `aclose`."""
        at = 0
        while (item := await self._inbox.get()) is not None:
            if isinstance(item, bytes):
                frame = AudioFrame(item, PIPELINE, at)
                at = frame.end
                yield frame
                continue
            if isinstance(item, Gap):
                at += item.samples
            yield item
            if isinstance(item, Hangup):
                return
        if self._end is not None and not self._closing.is_set():
            raise self._end

    async def send(self, frame: AudioFrame) -> bool:
        """See CallTransport. Before the peer is connected a full queue only waits."""
        if frame.format != PIPELINE:
            raise MediaValueError("frame.format", str(frame.format), "send 16 kHz mono")
        epoch = self._playout.epoch
        async with self._sending:
            while True:
                if self._end is not None:
                    raise self._end
                if self._playout.epoch != epoch:
                    return False
                if self._playout.fits(frame.samples):
                    self._playout.put(frame.pcm)
                    return True
                if not await self._playout.moved(WRITE_DEADLINE_S) and self._connected:
                    self._finish(TransportStalled("the peer took no sound"))

    def clear(self) -> int:
        """See CallTransport."""
        return self._playout.clear()

    def played(self) -> int:
        """See CallTransport: samples that the outgoing track took."""
        return self._playout.played

    @property
    def sent(self) -> int:
        """Output position at which the next frame will stand."""
        return self._playout.played + self._playout.queued

    @property
    def epoch(self) -> int:
        """The open playback epoch."""
        return self._playout.epoch

    def post(self, message: Mapping[str, object]) -> None:
        """Say JSON on the data channel. Synchronous; nothing after the end."""
        if self._end is not None:
            return
        try:
            self._data.post(message)
        except TooMuch as limit:
            self._finish(TransportStalled(str(limit)))

    async def send_data(self, message: Mapping[str, object]) -> None:
        """See CallTransport."""
        self.post(message)

    def impair(
        self, *, loss: float = 0, burst: int = 1, jitter_ms: float = 0, down: bool = False
    ) -> None:
        """Make the living line bad from the peer and, with `down`, to it: `loss` 0..1 in bursts of
        1..`burst` packets, 0..`jitter_ms` more delay each. All zero ends it.

        For developers. Raises MediaValueError naming the field; see webrtc_impair.
        """
        self._injector.set(Impairment(loss=loss, burst=burst, jitter_ms=jitter_ms), down=down)

    async def aclose(self, reason: str) -> None:
        """See CallTransport: says `bye{reason}` and closes the connection within CLOSE_S."""
        self._playout.clear()
        if self._end is None:
            self.post({"t": "bye", "reason": reason})
            self._closing.set()
            self._finish(TransportClosed(f"the line was closed: {reason}"))
            await self._data.drain()
        await self._close()

    async def _connects(self) -> bool:
        """Wait for the connection. False, and the line is over with its cause, when none comes."""
        try:
            async with asyncio.timeout_at(self._deadline):
                await self.opened()
        except TimeoutError:
            self._finish(TransportClosed(self._why_not_connected()))
        return self._end is None

    async def _pump(self) -> None:
        """Wait until the remote track ends; what it brings comes by `_hear`."""
        while self._end is None and self._carrier.state != "closed":
            track = self._remote
            if track is None:  # a page without a microphone: it may listen and type
                self._changed.clear()
                await self._changed.wait()
                continue
            try:
                await track.recv()
            except MediaStreamError:
                break
        await asyncio.sleep(CAUSE_S)
        self._finish(TransportClosed("the peer closed its connection"))

    def _hear(self, pieces: Sequence[Piece]) -> None:
        for piece in pieces:
            self._inbox.put(piece.pcm or Gap(piece.samples))

    def _is_away(self) -> bool:
        return self._reach.lost(asyncio.get_running_loop().time())

    def _on_track(self, track: MediaStreamTrack) -> None:
        if track.kind == "audio" and self._remote is None:
            self._remote = track
            self._changed.set()

    def _on_channel(self, channel: RTCDataChannel) -> None:
        if self._data.open(channel):
            channel.add_listener("message", self._on_message)
            channel.add_listener("bufferedamountlow", self._data.drained)

    def _on_message(self, message: str | bytes) -> None:
        if self._end is not None:
            return
        try:
            signal = self._data.take(message, asyncio.get_running_loop().time())
        except TooMuch as limit:
            self._finish(TransportClosed(str(limit)))
            return
        if signal is not None:
            self._inbox.put(signal)

    def _on_state(self) -> None:
        match self._pc.connectionState:
            case "connected":
                self._connected = True
                seams.watch_datagrams(self._carrier.transport, self._reach.sign)
            case "failed":
                self._finish(TransportClosed(self._why_not_connected()))
        self._changed.set()

    def _on_ice(self) -> None:
        # aiortc goes on to "closed" at once, so the failure has to be caught here.
        if self._carrier.transport.state == "failed":
            why = (
                "ICE: the peer stopped answering" if self._connected else self._why_not_connected()
            )
            self._finish(TransportClosed(why))

    def _why_not_connected(self) -> str:
        """What stood between the two sides, by candidate types: addresses are personal data."""
        ice = self._carrier.transport
        if ice.state == "completed":
            return "DTLS: the handshake failed or took too long"
        ours, theirs = (
            ", ".join(f"{n} {kind}" for kind, n in sorted(Counter(c.type for c in found).items()))
            for found in (ice.iceGatherer.getLocalCandidates(), ice.getRemoteCandidates())
        )
        if not theirs:
            return f"ICE: no usable candidate came from the peer (ours: {ours or 'none'})"
        return (
            f"ICE: no pair of candidates works (ours: {ours or 'none'}; theirs: {theirs});"
            " a TURN server may be needed"
        )

    def _finish(self, why: TransportError) -> None:
        if self._end is None:
            self._end = why
        self._inbox.close()
        self._playout.wake()
        self._changed.set()

    async def _close(self) -> None:
        """Close the connection once; later callers wait for it. Bounded."""
        if self._closed.is_set():
            return
        try:
            async with asyncio.timeout(CLOSE_S):
                try:
                    await self._pc.close()
                finally:
                    # After half an offer aiortc's own close fails before it gets here.
                    await self._carrier.stop()
                    await self._carrier.transport.stop()
        except TimeoutError:
            log.warning("a webrtc connection did not close in time")
        except Exception:
            log.warning("a webrtc connection closed with an error", exc_info=True)
        finally:
            self._injector.close()
            self.track.stop()
            self._closed.set()
