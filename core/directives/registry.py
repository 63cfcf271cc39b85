"""Directives: the hooks, skills and sub-agents of one agent, and what runs them.

Shared by builder and agent, like the toolset. Re-registration by name replaces. The first exposed
skill and the first sub-agent register a dispatch tool, later ones change its description. Owned by
the agent; it stores nothing itself: the loop stores what `apply` gives back.
"""

import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from ..cancel import AbortScope, CancelToken
from ..events import HookInvoked, SkillInvoked, SubscriberEvent
from ..messages import Message, with_text
from ..tool import Tool, ToolContext
from ..toolset import Toolset, find_tool
from .hooks import Controls, Hook, HookContext, HookOutcome
from .parser import parse
from .skills import (
    INVOKE_SKILL,
    InvokeSkill,
    Skill,
    SkillContent,
    SkillContext,
    exposed,
    injection,
    skill_listing,
    text_of,
)
from .sub_agents import (
    CHILD_S,
    INVOKE_SUB_AGENT,
    Bracket,
    InvokeSubAgent,
    SubAgent,
    SubAgentContext,
    run_child,
    sub_agent_listing,
)

T = TypeVar("T")
Emit = Callable[[SubscriberEvent], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Directed:
    """What a user's message became. `before` are messages to store in front of it; with `answers`
    the request is answered already."""

    user: Message
    before: tuple[Message, ...] = ()
    answers: tuple[Message, ...] = ()


class Directives:
    """See the module. `emit` reports for the agent until a request brings its own."""

    def __init__(self, toolset: Toolset) -> None:
        self._toolset = toolset
        self._hooks: dict[str, Hook] = {}
        self._skills: dict[str, Skill] = {}
        self._sub_agents: dict[str, SubAgent] = {}
        self._emit: Emit = _to_nobody

    def report_to(self, emit: Emit) -> None:
        """Where events of the dispatch tools go; called once, by the agent."""
        self._emit = emit

    def define_hook(self, name: str, hook: Hook) -> None:
        """A user's `/name` runs it before the model sees the message."""
        self._hooks[name] = hook

    def define_skill(self, skill: Skill) -> None:
        """A user's `/name` reads it; if exposed, the model can as well."""
        self._skills[skill.name] = skill
        if exposed(self._skills):
            self._offer(
                Tool(
                    name=INVOKE_SKILL,
                    description=skill_listing(self._skills),
                    do=self._invoke_skill,
                    input_model=InvokeSkill,
                )
            )

    def define_sub_agent(self, sub_agent: SubAgent) -> None:
        """The model can hand it a task."""
        self._sub_agents[sub_agent.name] = sub_agent
        self._offer_sub_agents()

    def remove_sub_agent(self, name: str) -> None:
        """The model can hand it no task any more; a run that began goes on."""
        if self._sub_agents.pop(name, None) is None:
            return
        if self._sub_agents:
            self._offer_sub_agents()
        elif find_tool(self._toolset.tools, INVOKE_SUB_AGENT) is not None:
            self._toolset.replace([INVOKE_SUB_AGENT], [])

    def names(self, text: str) -> bool:
        """Whether a message with this text would run anything."""
        return bool(parse(text, self._hooks.keys(), self._skills.keys()).directives)

    async def apply(
        self, user: Message, controls: Controls, token: CancelToken, emit: Emit
    ) -> Directed:
        """Run what the message names: hooks in order, then skills in order.

        Raises AbortError, and whatever a handler raises.
        """
        parsed = parse(user.text, self._hooks.keys(), self._skills.keys())
        if not parsed.directives:
            return Directed(user=user)
        text = parsed.text
        for name in [one.name for one in parsed.directives if one.kind == "hook"]:
            emit(HookInvoked(name=name))
            context = HookContext(
                name=name,
                raw_text=user.text,
                parsed_text=text,
                controls=controls,
                token=token,
            )
            outcome = await _outcome(self._hooks[name], context, token) or HookOutcome()
            text = text if outcome.rewrite_text is None else outcome.rewrite_text
            if outcome.short_circuit is not None:
                answers = _answers(outcome.short_circuit)
                return Directed(user=with_text(user, text), answers=answers)
        before = []
        for name in [one.name for one in parsed.directives if one.kind == "skill"]:
            emit(SkillInvoked(name=name, source="user"))
            asked = SkillContext(
                name=name, parsed_text=text, args=None, source="user", controls=controls
            )
            before.append(injection(name, await _outcome(self._skills[name].handler, asked, token)))
        return Directed(user=with_text(user, text), before=tuple(before))

    def _offer_sub_agents(self) -> None:
        # Never cancelled: the child ends by its token, and its un_abortable tools run to their end.
        self._offer(
            Tool(
                name=INVOKE_SUB_AGENT,
                description=sub_agent_listing(self._sub_agents),
                do=self._invoke_sub_agent,
                input_model=InvokeSubAgent,
                un_abortable=True,
                timeout_s=CHILD_S,
            )
        )

    def _offer(self, tool: Tool) -> None:
        known = find_tool(self._toolset.tools, tool.name)
        if known is not None:
            self._toolset.replace([tool.name], [replace(known, description=tool.description)])
            return
        self._toolset.add(tool)

    async def _invoke_skill(self, value: InvokeSkill, ctx: ToolContext) -> dict[str, object]:
        skill = self._skills.get(value.name)
        if skill is None or not skill.expose_to_agent:
            names = ", ".join(one.name for one in exposed(self._skills))
            return _refused(f"There is no skill {value.name!r}. Skills: {names}.")
        self._emit(SkillInvoked(name=skill.name, source="agent", args=value.args))
        context = SkillContext(
            name=skill.name,
            parsed_text="",
            args=value.args,
            source="agent",
            controls=Controls(agent=ctx.agent, force_compaction=_not_here),
        )
        content: SkillContent = await _outcome(skill.handler, context, ctx.token)
        data = {"skill": skill.name, "content": text_of(content)}
        shown = None if isinstance(content, str) else tuple(content)
        return {"status": "success", "data": data, "render_data": shown}

    async def _invoke_sub_agent(self, value: InvokeSubAgent, ctx: ToolContext) -> dict[str, object]:
        sub_agent = self._sub_agents.get(value.name)
        if sub_agent is None:
            names = ", ".join(self._sub_agents)
            return _refused(f"There is no sub-agent {value.name!r}. Sub-agents: {names}.")
        bracket = Bracket(value.name, value.prompt, ctx.call_id, self._emit)
        try:
            context = SubAgentContext(name=value.name, prompt=value.prompt, parent=ctx.agent)
            answer = await run_child(sub_agent, context, ctx.token, bracket)
        except BaseException as error:
            bracket.close(error)
            raise
        bracket.close(None)
        data = {"subagent": sub_agent.name, "content": answer}
        return {"status": "success", "data": data}


async def _outcome(
    handler: Callable[..., Awaitable[T] | T], context: object, token: CancelToken
) -> T:
    """What a plain or async handler gives; AbortError when `token` fires meanwhile."""
    async with AbortScope(token):
        outcome = handler(context)
        return await outcome if inspect.isawaitable(outcome) else outcome


def _answers(given: str | Message | Sequence[Message]) -> tuple[Message, ...]:
    if isinstance(given, str):
        return (Message(sender="agent", text=given),)
    return (given,) if isinstance(given, Message) else tuple(given)


def _refused(message: str) -> dict[str, object]:
    return {"status": "error", "data": None, "message": message}


async def _not_here() -> bool:
    """Inside a tool call a compaction would part the call from its result."""
    return False


def _to_nobody(event: SubscriberEvent) -> None:
    return None
