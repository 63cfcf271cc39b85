"""McpClientConfig: every setting of connections to MCP servers, validated at construction."""

from __future__ import annotations

from dataclasses import dataclass

from ...core.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class McpClientConfig:
    """How patient connections are, and who they say they are.

    connect_timeout_s  of opening a session, handshake included
    list_timeout_s     of listing all pages of a server's tools
    call_timeout_s     of one tool call
    close_timeout_s    of saying goodbye
    most_answer_bytes  of one JSON answer; events of a stream are bounded to 1 MiB by the SDK
    """

    client_name: str = "voxglove"
    client_version: str = "1"
    connect_timeout_s: float = 10.0
    list_timeout_s: float = 15.0
    call_timeout_s: float = 60.0
    close_timeout_s: float = 2.0
    most_answer_bytes: int = 8 * 1024 * 1024

    def __post_init__(self) -> None:
        for name in (
            "connect_timeout_s",
            "list_timeout_s",
            "call_timeout_s",
            "close_timeout_s",
            "most_answer_bytes",
        ):
            if getattr(self, name) <= 0:
                raise UsageError(f"McpClientConfig.{name}: must be positive")
        if not self.client_name or not self.client_version:
            raise UsageError("McpClientConfig.client_name, client_version: must not be empty")
