"""A server's tools as ordinary tools of an agent (spec core 15, row 86).

The server is the source of truth: its schema goes to the model as it is, its answers are passed on,
its failures become results. `auth_expired` is a result too, for the host to see and to act on.
"""

from collections.abc import Mapping, Sequence

from ..messages import ToolResultData, data_text
from ..outside import clean
from ..tool import Tool, ToolFunction
from .names import tool_name, tool_names
from .port import McpConnection, McpError, McpToolInfo, McpToolResult, McpUnauthorized
from .shape import shape_of

AUTH_EXPIRED = "auth_expired"
"""Message of a result whose request was refused with status 401 (row 87)."""
MOST_INLINE_CHARS = 2_000
"""Longer base64 of a content block is not shown to the model; `render_data` has it."""


def bridge_mcp_tool(
    connection: McpConnection, tool: McpToolInfo, server_mode: bool, *, name: str | None = None
) -> Tool:
    """The tool as the agent has it, named `<namespace>__<tool>` unless `name` says otherwise.

    It asks for permission unless the agent is headless or the server calls the tool read-only.
    `data` is the structured value as JSON, else the text, else the content as JSON; `render_data`
    is the content. Aborting it cancels the call at the server.
    """
    return Tool(
        name=name or tool_name(connection.namespace, tool.name),
        description=_description(tool),
        do=_caller(connection, tool.name),
        json_schema=tool.input_schema,
        requires_permission=not server_mode and not tool.read_only_hint,
        read_only=tool.read_only_hint,
    )


def bridge_mcp_tools(
    connection: McpConnection, tools: Sequence[McpToolInfo], server_mode: bool
) -> list[Tool]:
    """All tools of one list under names that differ; of a name listed twice the first one."""
    once = listed_once(tools)
    names = tool_names(connection.namespace, [tool.name for tool in once])
    return [
        bridge_mcp_tool(connection, tool, server_mode, name=name)
        for tool, name in zip(once, names, strict=True)
    ]


def listed_once(tools: Sequence[McpToolInfo]) -> list[McpToolInfo]:
    """A list without the repetitions of a name."""
    first: dict[str, McpToolInfo] = {}
    for tool in tools:
        first.setdefault(tool.name, tool)
    return list(first.values())


def failure(error: McpError) -> ToolResultData:
    """The result of a request that failed."""
    if isinstance(error, McpUnauthorized):
        return ToolResultData("error", None, AUTH_EXPIRED)
    return ToolResultData("error", None, str(error) or type(error).__name__)


def _caller(connection: McpConnection, name: str) -> ToolFunction:
    async def do(value: object) -> ToolResultData:
        if not isinstance(value, Mapping):
            return ToolResultData("error", None, "The arguments must be a JSON object.")
        try:
            return _told(await connection.call_tool(name, value))
        except McpError as error:
            return failure(error)

    return do


def _description(tool: McpToolInfo) -> str:
    shape = shape_of(tool.output_schema)
    returns = f"Returns: {shape}" if shape else ""
    return "\n".join(filter(None, [clean(tool.description).strip() or tool.name, returns]))


def _told(result: McpToolResult) -> ToolResultData:
    content = [dict(block) for block in result.content]
    text = "\n".join(str(block["text"]) for block in content if _is_text(block))
    if result.is_error:
        message = text or _blocks(content)
        return ToolResultData("error", None, message, render_data=content)
    if result.structured is not None:
        data = data_text([result.structured])[1:-1]
    else:
        data = text or _blocks(content)
    return ToolResultData("success", data, render_data=content)


def _is_text(block: Mapping[str, object]) -> bool:
    return block.get("type") == "text" and bool(block.get("text"))


def _blocks(content: list[dict[str, object]]) -> str:
    """Content blocks as JSON for a model, which has no use for a picture's base64."""
    return data_text([_without_bytes(block) for block in content])


def _without_bytes(block: Mapping[str, object]) -> dict[str, object]:
    shown: dict[str, object] = {}
    for key, value in block.items():
        if isinstance(value, Mapping):
            shown[key] = _without_bytes(value)
        elif key in ("data", "blob") and isinstance(value, str) and len(value) > MOST_INLINE_CHARS:
            shown[key] = f"[{len(value)} characters of base64]"
        else:
            shown[key] = value
    return shown
