"""Tools of Model Context Protocol servers, bridged to an agent (spec core 15)."""

from .bridge import bridge_mcp_tool, bridge_mcp_tools
from .discovery import AmbiguityPolicy
from .mount import McpMount, mount_mcp
from .port import (
    MCP_NAMESPACE_SEP,
    AuthHeaders,
    McpAdapter,
    McpCatalogueEntry,
    McpConnect,
    McpConnection,
    McpError,
    McpHeaders,
    McpToolInfo,
    McpToolResult,
    McpUnauthorized,
    MemoryMcpAdapter,
)

__all__ = [
    "MCP_NAMESPACE_SEP",
    "AmbiguityPolicy",
    "AuthHeaders",
    "McpAdapter",
    "McpCatalogueEntry",
    "McpConnect",
    "McpConnection",
    "McpError",
    "McpHeaders",
    "McpMount",
    "McpToolInfo",
    "McpToolResult",
    "McpUnauthorized",
    "MemoryMcpAdapter",
    "bridge_mcp_tool",
    "bridge_mcp_tools",
    "mount_mcp",
]
