"""How WebRTC lines are set up: ICE servers, own addresses, encoder. Values; opens nothing."""

from __future__ import annotations

from dataclasses import dataclass, field

from aiortc import RTCBundlePolicy, RTCConfiguration, RTCIceServer
from aiortc.rtcconfiguration import RTCIceTransportPolicy

from ...media import opus
from ...media.errors import MediaValueError


@dataclass(frozen=True, slots=True, kw_only=True)
class IceServer:
    """A STUN or TURN server: `stun:host:port`, `turn:host:port?transport=udp`."""

    url: str
    username: str | None = None
    credential: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not self.url.startswith(("stun:", "stuns:", "turn:", "turns:")):
            raise MediaValueError("url", self.url, "write stun:host:port or turn:host:port")


@dataclass(frozen=True, slots=True, kw_only=True)
class WebRtcConfig:
    """How lines are set up. `host_addresses` pins the own addresses that are offered: one network
    card, or 127.0.0.1, which is not offered otherwise; `loopback` offers it beside the others."""

    ice_servers: tuple[IceServer, ...] = ()
    relay_only: bool = False
    host_addresses: tuple[str, ...] = ()
    loopback: bool = False
    connect_s: float = 10.0
    bitrate: int = 32_000
    loss_percent: int = 10
    complexity: int = 1

    def __post_init__(self) -> None:
        if not 24_000 <= self.bitrate <= 64_000:
            remedy = "use 24000..64000 bit/s: below, Opus sends no redundancy"
            raise MediaValueError("bitrate", str(self.bitrate), remedy)
        if self.connect_s <= 0:
            raise MediaValueError("connect_s", str(self.connect_s), "use a positive time")

    def encoder(self) -> opus.Encoder:
        """The encoder of one line."""
        return opus.Encoder(
            bitrate=self.bitrate, loss_percent=self.loss_percent, complexity=self.complexity
        )

    def rtc(self) -> RTCConfiguration:
        """The same in aiortc's words. The list is explicit: its default is a public server."""
        policy = RTCIceTransportPolicy.RELAY if self.relay_only else RTCIceTransportPolicy.ALL
        servers = [
            RTCIceServer(server.url, server.username, server.credential)
            for server in self.ice_servers
        ]
        return RTCConfiguration(servers, policy, RTCBundlePolicy.MAX_BUNDLE)
