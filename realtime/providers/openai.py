"""OpenAI Realtime as an adapter: the address, the key, what it can do. The wire is openai_wire.py.

Owned by whoever composes a session; holds no state of a call, so several sessions may share one.
Never reads the environment. Source: protocols/openai-realtime 1, 7; spec/voice 18.10.
"""

from __future__ import annotations

import asyncio
from urllib.parse import quote

from ...adapters.credentials import Secret
from ...adapters.errors import ProviderRefused
from ...adapters.socket import SocketConfig
from ...media.format import AudioFormat
from ..port import Capabilities, Connection, Emit, Setup
from .driver import DriverLimits, open_connection
from .openai_config import OpenAIRealtimeConfig, SemanticVad, ServerVad
from .openai_frames import RATE
from .openai_wire import OpenAICodec

__all__ = ["OpenAIRealtimeAdapter", "OpenAIRealtimeConfig", "SemanticVad", "ServerVad"]

SESSION_S = 3_600.0
"""The provider ends a session after this."""
UNSENT_BYTES = 32 * 1024 * 1024
"""A history with pictures goes out at once; a dead peer is found by pings, not by this."""


class OpenAIRealtimeAdapter:
    """One model of OpenAI Realtime (port.RealtimeAdapter)."""

    def __init__(self, config: OpenAIRealtimeConfig) -> None:
        self._config = config
        pcm = AudioFormat(rate=RATE)
        self._capabilities = Capabilities(
            turn_taking="host" if config.turn_detection == "manual" else "provider",
            inputs=frozenset({"audio", "text", "image"}),
            outputs=frozenset({"text"} if config.text_only else {"audio", "text"}),
            input_format=pcm,
            output_format=pcm,
            item_delete=True,
            item_truncate=True,
            can_cancel=True,
            update_tools="live",
            update_instructions="live",
            out_of_band=True,
            max_session_s=SESSION_S,
            due_s=10.0,
        )

    @property
    def provider(self) -> str:
        """`openai`."""
        return "openai"

    @property
    def model(self) -> str:
        """As the provider names it; Azure: the deployment."""
        return self._config.model

    @property
    def capabilities(self) -> Capabilities:
        """24 kHz both ways; everything but resumption."""
        return self._capabilities

    async def connect(self, setup: Setup, emit: Emit, group: asyncio.TaskGroup) -> Connection:
        """As port.RealtimeAdapter says. This provider has no handles: one is refused before
        anything is sent, and a fresh session with all of history is the way."""
        if setup.resume_handle is not None:
            raise ProviderRefused("ERR_REALTIME_HANDLE", "OpenAI Realtime resumes no session")
        limits = DriverLimits(open_s=self._config.connect_s, due_s=self._capabilities.due_s)
        codec = OpenAICodec(self._config)
        return await open_connection(codec, self._socket(), setup, emit, group, limits)

    def _socket(self) -> SocketConfig:
        config = self._config
        base = config.base_url.rstrip("/")
        if base.startswith("http"):
            base = base.replace("http", "ws", 1)
        key = config.key
        if config.key_header == "authorization":
            key = Secret(f"Bearer {key.reveal()}")
        return SocketConfig(
            url=f"{base}/realtime?model={quote(config.model, safe='')}",
            headers={"Authorization" if config.key_header == "authorization" else "api-key": key},
            connect_timeout_s=min(10.0, config.connect_s),
            max_unsent_bytes=UNSENT_BYTES,
        )
