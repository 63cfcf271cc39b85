"""The tools of one agent, by name.

Copy on write: a reader who took `tools` keeps an unchanged tuple while others fold (row 12).
"""

from collections.abc import Sequence

from .errors import DuplicateToolError, UsageError
from .tool import Tool


class Toolset:
    """Registration order is kept; names are compared without case (row 24)."""

    def __init__(self) -> None:
        self._tools: tuple[Tool, ...] = ()

    @property
    def tools(self) -> tuple[Tool, ...]:
        return self._tools

    def add(self, tool: Tool) -> None:
        """Raises DuplicateToolError if the name is taken."""
        if find_tool(self._tools, tool.name) is not None:
            raise DuplicateToolError(
                f"a tool named {tool.name!r} exists; use replace_tools to exchange it"
            )
        self._tools = (*self._tools, tool)

    def replace(self, previous: Sequence[str], following: Sequence[Tool]) -> None:
        """Exchange tools in one step, at the place of the first one removed.

        Raises UsageError or DuplicateToolError and changes nothing if a name in `previous` is
        unknown or a new name is double or belongs to a tool that stays.
        """
        gone = {name.lower() for name in previous}
        missing = gone - {tool.name.lower() for tool in self._tools}
        if missing:
            raise UsageError(f"replace_tools: no tool named {', '.join(sorted(missing))}")
        names = [tool.name.lower() for tool in following]
        stay = [tool for tool in self._tools if tool.name.lower() not in gone]
        taken = {tool.name.lower() for tool in stay}
        double = {name for name in names if names.count(name) > 1 or name in taken}
        if double:
            twice = ", ".join(sorted(double))
            raise DuplicateToolError(f"replace_tools: {twice} would exist twice")
        at = next(
            (at for at, tool in enumerate(self._tools) if tool.name.lower() in gone),
            len(self._tools),
        )
        self._tools = (*stay[:at], *following, *stay[at:])


def find_tool(tools: Sequence[Tool], name: str) -> Tool | None:
    """By name without case; the exact spelling wins nothing because names are unique."""
    wanted = name.lower()
    return next((tool for tool in tools if tool.name.lower() == wanted), None)


def unknown_tool_text(tools: Sequence[Tool], name: str) -> str:
    """What a model that guessed a name is told: near matches, then every name (row 23)."""
    wanted = name.lower()
    names = [tool.name for tool in tools]
    near = [one for one in names if wanted and (one.lower() in wanted or wanted in one.lower())]
    hint = f" Did you mean {', '.join(near)}?" if near else ""
    return f"There is no tool {name!r}.{hint} Available tools: {', '.join(names) or 'none'}."
