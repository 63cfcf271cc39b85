"""Where the optional extra `webrtc` is found, imported and given its configuration.

Nothing here imports aiortc until `open_webrtc` runs: that takes a quarter of a second, so it
belongs into a thread. Owns nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING

from ..media import opus
from .auth import is_loopback, unix_now
from .config import Config
from .ice import ice_access

if TYPE_CHECKING:
    from ..adapters.transports.webrtc import WebRtcTransport

Opener = Callable[[str], "WebRtcTransport"]
"""Makes a line to the peer of that address, on the running loop."""


def installed() -> bool:
    """Whether the extra is there. Imports nothing."""
    return find_spec("aiortc") is not None and find_spec("av") is not None


def open_webrtc(config: Config) -> Opener:
    """Import all that lines need. Raises ImportError or OpusMissing. Blocks."""
    from ..adapters.transports.webrtc import WebRtcTransport
    from ..adapters.transports.webrtc_config import IceServer, WebRtcConfig

    opus.library()
    section = config.webrtc

    def open_line(peer: str) -> WebRtcTransport:
        servers = tuple(
            IceServer(url=url, username=found.username or None, credential=found.credential or None)
            for found in ice_access(section.ice_servers, unix_now(), "server")
            for url in found.urls
        )
        own = WebRtcConfig(
            ice_servers=servers,
            relay_only=section.relay_only,
            host_addresses=section.host_addresses,
            loopback=is_loopback(config.server.host),
            connect_s=section.connect_s,
        )
        return WebRtcTransport(own, peer=peer)

    return open_line
