"""Gemini Live: a model of Google that hears, sees and speaks, over BidiGenerateContent.

The codec is in `gemini_wire.py`, the connection in `driver.py`, options and what models can do in
`gemini_config.py`; here is how the two are opened. Holds a key and options, nothing of a call
(spec/voice 18.10).
"""

from __future__ import annotations

import asyncio

from ...adapters.credentials import Secret
from ...adapters.socket import SocketConfig
from ..port import Capabilities, Connection, Emit, Setup
from .driver import DriverLimits, open_connection
from .gemini_config import (
    DUE_S,
    PING_S,
    PONG_S,
    TOKEN_PREFIX,
    GeminiLiveConfig,
    capabilities,
)
from .gemini_wire import GeminiCodec

__all__ = ["GeminiLiveAdapter", "GeminiLiveConfig"]

SERVICE = "google.ai.generativelanguage"
METHOD = "GenerativeService.BidiGenerateContent"


class GeminiLiveAdapter:
    """See RealtimeAdapter."""

    provider = "gemini"

    def __init__(self, config: GeminiLiveConfig) -> None:
        self._config = config
        self._capabilities = capabilities(config)

    @property
    def model(self) -> str:
        return self._config.model

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities

    async def connect(self, setup: Setup, emit: Emit, group: asyncio.TaskGroup) -> Connection:
        """As RealtimeAdapter says. The connection before must be closed: a handle is refused while
        its session is open elsewhere (field fault 58)."""
        limits = DriverLimits(open_s=self._config.connect_s, due_s=DUE_S)
        codec = GeminiCodec(self._config)
        socket = socket_config(self._config)
        return await open_connection(codec, socket, setup, emit, group, limits)


def socket_config(config: GeminiLiveConfig) -> SocketConfig:
    """Where and how to connect. The key is in a header, never in the address."""
    key = config.key.reveal()
    ephemeral = key.startswith(TOKEN_PREFIX)
    alpha = ephemeral or config.affective_dialog or config.proactive_audio is not None
    version = config.api_version or ("v1alpha" if alpha else "v1beta")
    method = f"{METHOD}Constrained" if ephemeral else METHOD
    headers: dict[str, str | Secret] = {"x-goog-api-key": config.key}
    if ephemeral:
        headers = {"Authorization": Secret(f"Token {key}")}
    return SocketConfig(
        url=f"{config.base_url.rstrip('/')}/ws/{SERVICE}.{version}.{method}",
        headers=headers,
        connect_timeout_s=config.connect_s,
        ping_s=PING_S,
        pong_s=PONG_S,
    )
