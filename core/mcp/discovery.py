"""Discovery: a sub-agent that finds, opens and closes capabilities for its agent (spec core 15).

The model reaches it as sub-agent `discovermcp` and as tool `find_capability`; both run the same
code (row 89). It has a history of its own, its parent's model and display, and a few tools. Servers
it opens are folded on the parent, whose next model call offers their tools.
"""

import inspect
import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, Field, TypeAdapter

from ..agent import Agent
from ..builder import Glove
from ..config import AgentConfig, CompactionConfig
from ..directives.sub_agents import (
    CHILD_S,
    INVOKE_SUB_AGENT,
    InvokeSubAgent,
    SubAgentContext,
)
from ..messages import ToolResultData
from ..model import Model
from ..stores.memory import MemoryStore
from ..tool import Tool, ToolContext, wrap_result
from ..toolkit.asking import CardInput, Choice, Title, ask, named, unique_values
from ..toolset import find_tool
from .bridge import failure
from .catalogue import Catalogue
from .port import McpAdapter, McpError
from .servers import Servers

logger = logging.getLogger(__name__)

AmbiguityPolicy = Literal["interactive", "auto-pick-best", "defer-to-main"]
"""What discovery does when several capabilities fit: ask the user, choose, or let its agent ask."""
POLICIES: tuple[AmbiguityPolicy, ...] = ("interactive", "auto-pick-best", "defer-to-main")

DISCOVER = "discovermcp"
FIND_CAPABILITY = "find_capability"
PICKER = "mcp_picker"
"""Renderer of the question which capability is meant; its answer is an option's value."""
CONTEXT_LIMIT = 30_000
MOST_TURNS = 16

DESCRIPTION = (
    "Finds and switches on a capability you do not have yet (mail, calendar, documents, …), or"
    " switches one off. Say what you need; its tools are yours from your next step on."
)

_PROMPT = (
    "You manage an assistant's capabilities. Each is a server with tools; the assistant can use"
    " those that are active. Find what fits the need you are given with list_capabilities (no"
    " query lists them all), activate it, and answer in one or two plain sentences: which"
    " capability is active and which of its tools serve the need. Deactivate only what you are"
    " asked to. If nothing fits or something fails, say so; never invent a capability. The message"
    " auth_expired means that the user must sign in to that server again."
)
_WHEN_SEVERAL: Mapping[AmbiguityPolicy, str] = {
    "interactive": (
        "If several fit about equally well, let the user choose with ask_user. Where that cannot be"
        " shown, activate none and name them with their ids, so that the assistant can ask."
    ),
    "auto-pick-best": "If several fit, activate the best one. Ask nobody.",
    "defer-to-main": (
        "If several fit about equally well, activate none: name them with their ids and what tells"
        " them apart, so that the assistant can ask the user and come back."
    ),
}


class FindCapability(BaseModel):
    """What the model fills in."""

    need: str = Field(min_length=1, description="What you need to be able to do, in one sentence")


class ListCapabilities(BaseModel):
    """What the model fills in."""

    query: str = Field(default="", description="Words of the need; leave out to see everything")
    tags: list[str] = Field(default=[], description="Only capabilities that have all these tags")


class CapabilityId(BaseModel):
    """What the model fills in."""

    id: str = Field(description="The capability's id, as list_capabilities gives it")


class AskUser(CardInput):
    """What the model fills in."""

    question: Title = Field(description="the question as the user reads it")
    options: Annotated[list[Choice], AfterValidator(unique_values)] = Field(
        min_length=2, max_length=12, description="what the user chooses from"
    )

    @property
    def asked(self) -> str:
        return self.question


class Discovery:
    """Makes the sub-agent and the tool of one mount."""

    def __init__(
        self,
        catalogue: Catalogue,
        adapter: McpAdapter,
        servers: Servers,
        policy: AmbiguityPolicy,
        *,
        model: Model | None = None,
        system_prompt: str | None = None,
    ) -> None:
        self._catalogue = catalogue
        self._adapter = adapter
        self._servers = servers
        self._policy = policy
        self._model = model
        self._system_prompt = system_prompt

    def sub_agent(self, context: SubAgentContext) -> Agent:
        """A SubAgentFactory: a fresh child for each task."""
        parent = context.parent
        prompt = self._system_prompt or f"{_PROMPT} {_WHEN_SEVERAL[self._policy]}"
        child = Glove(
            model=self._model or parent.model,
            system_prompt=prompt,
            store=MemoryStore(),
            display=parent.display,
            config=AgentConfig(
                name=DISCOVER,
                server_mode=parent.server_mode,
                max_turns=MOST_TURNS,
                compaction=CompactionConfig(context_limit=CONTEXT_LIMIT),
                builtin_tools=(),
            ),
        )
        for tool in self._tools():
            child.fold(tool)
        return child.build()

    @staticmethod
    def alias() -> Tool:
        """The tool that hands a need to the sub-agent, with all that goes with it. Like the
        dispatch tool it is never cancelled: the child ends by its token."""
        return Tool(
            name=FIND_CAPABILITY,
            description=DESCRIPTION,
            do=_find,
            input_model=FindCapability,
            un_abortable=True,
            timeout_s=CHILD_S,
        )

    def _tools(self) -> list[Tool]:
        tools = [
            Tool(
                name="list_capabilities",
                description="Which capabilities there are; those that fit best come first.",
                do=self._list,
                input_model=ListCapabilities,
                read_only=True,
            ),
            Tool(
                name="activate",
                description="Connect to a capability and give its tools to the assistant.",
                do=self._activate,
                input_model=CapabilityId,
            ),
            Tool(
                name="deactivate",
                description="Leave a capability out of this conversation from its next start on.",
                do=self._deactivate,
                input_model=CapabilityId,
            ),
        ]
        if self._policy == "interactive":
            question = "Let the user choose between capabilities, on the display."
            tools.append(
                Tool(
                    name="ask_user",
                    description=question,
                    do=_ask_user,
                    input_model=AskUser,
                    read_only=True,
                )
            )
        return tools

    async def _list(self, value: ListCapabilities) -> dict[str, object]:
        found = self._catalogue.matches(value.query, value.tags)
        active = self._servers.active
        return {
            "capabilities": [
                {
                    "id": match.entry.id,
                    "name": match.entry.name,
                    "description": match.entry.description,
                    "tags": list(match.entry.tags),
                    "active": match.entry.id in active,
                    "score": match.score,
                }
                for match in found
            ],
            "shown": len(found),
            "of": len(self._catalogue),
        }

    async def _activate(self, value: CapabilityId) -> ToolResultData:
        """Tools first: what cannot be opened is not remembered as active."""
        try:
            names = await self._servers.activate(value.id)
        except McpError as error:
            return failure(error)
        data: dict[str, object] = {"id": value.id, "tools": list(names)}
        try:
            await self._adapter.activate(value.id)
        except Exception as error:
            logger.warning(
                "mcp activation was not remembered",
                exc_info=error,
                extra={"server": value.id, "adapter": self._adapter.identifier},
            )
            data["note"] = "It works now, but will not be active when the conversation is resumed."
        return ToolResultData("success", data)

    async def _deactivate(self, value: CapabilityId) -> ToolResultData:
        try:
            entry = self._catalogue.entry(value.id)
        except McpError as error:
            return failure(error)
        await self._adapter.deactivate(entry.id)
        note = "Its tools stay until the conversation is resumed; then it is not active any more."
        return ToolResultData("success", {"id": entry.id, "note": note})


async def _ask_user(value: AskUser, ctx: ToolContext) -> ToolResultData:
    def offered(chosen: str) -> str:
        if chosen not in [option.value for option in value.options]:
            raise ValueError("Choose one of the options.")
        return chosen

    def tell(chosen: str) -> str:
        return f'Asked "{value.question}", the user chose {named(value.options, chosen)}.'

    answers: TypeAdapter[str] = TypeAdapter(Annotated[str, AfterValidator(offered)])
    return await ask(ctx, PICKER, value, answers, tell)


async def _find(value: FindCapability, ctx: ToolContext) -> ToolResultData:
    dispatch = find_tool(ctx.agent.tools, INVOKE_SUB_AGENT)
    if dispatch is None:
        return ToolResultData("error", None, f"{INVOKE_SUB_AGENT} is gone, which this tool needs.")
    outcome = dispatch.call(InvokeSubAgent(name=DISCOVER, prompt=value.need), ctx)
    result = wrap_result(await outcome if inspect.isawaitable(outcome) else outcome)
    if isinstance(result.data, Mapping) and "content" in result.data:
        return replace(result, data=result.data["content"])
    return result
