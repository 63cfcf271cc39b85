"""Goals on an agent: tools for the model, context for each turn, and the hooks that changes owe.

    runner = use_goal_runner(agent, MemoryGoalAdapter(), scope=Scope(subject="a", key="sales"))
    await runner.start(program)

Works on text and on calls alike: the agent is extended only through its public seams (fold, context
provider, turn preparer), never by wrapping (spec core 13.7, 19.23). One runner for each scope.
"""

import inspect
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol, get_args

from ..cancel import CancelToken, Unsubscribe, contained
from ..context import ContextProvider, Delivery, TurnPreparation, TurnPreparer
from ..errors import DuplicateToolError, UsageError
from ..tool import Tool, ToolHost
from . import tools as goal_tools
from .port import GoalAdapter, GoalConflict
from .render import snapshot
from .values import Author, Goal, GoalInstance, GoalStatus, Program, Scope, begin, change, migrate

logger = logging.getLogger(__name__)

GoalToolName = Literal["status", "update", "history"]
TOOL_NAMES: tuple[GoalToolName, ...] = get_args(GoalToolName)
TRIES = 5
"""How often the application's own change is tried against other writers."""

EndHook = Callable[[Goal, GoalInstance], Awaitable[None] | None]
CompleteHook = Callable[[GoalInstance], Awaitable[None] | None]
Configure = Callable[[ToolHost, GoalInstance], Awaitable[None] | None]


class Extensible(Protocol):
    """What of an agent, or of its builder, a runner uses."""

    @property
    def tools(self) -> tuple[Tool, ...]: ...

    def fold(self, tool: Tool) -> object: ...

    def replace_tools(self, previous: Sequence[str], following: Sequence[Tool]) -> object: ...

    def add_context_provider(
        self, provider: ContextProvider, *, delivery: Delivery = ..., id: str | None = ...
    ) -> Unsubscribe: ...

    def add_turn_preparer(self, preparer: TurnPreparer) -> Unsubscribe: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalHooks:
    """What the application does about goals; each runs at least once, after its change is stored.

    on_end       a goal was met or refused
    on_complete  the last goal ended
    configure    before every turn: set prompt or tools for where the conversation stands
    """

    on_end: EndHook | None = None
    on_complete: CompleteHook | None = None
    configure: Configure | None = None


def use_goal_runner(
    agent: Extensible,
    adapter: GoalAdapter,
    *,
    scope: Scope,
    hooks: GoalHooks | None = None,
    delivery: Delivery = "iteration",
    allow: Collection[GoalToolName] = TOOL_NAMES,
    deny: Collection[GoalToolName] = (),
) -> "GoalRunner":
    """Put a runner on an agent or its builder.

    `delivery` is the context provider's: with `history` a changed snapshot is stored before the
    next user turn, and within a turn the model learns of progress from the tools' results. `allow`
    and `deny` choose the model's tools. Raises UsageError for unknown names and a second runner of
    one scope, DuplicateToolError for a second one with tools; then nothing is left behind.
    """
    unknown = (set(allow) | set(deny)) - set(TOOL_NAMES)
    if unknown:
        raise UsageError(f"allow, deny: {', '.join(sorted(unknown))}: use {', '.join(TOOL_NAMES)}")
    names = [name for name in TOOL_NAMES if name in allow and name not in deny]
    return GoalRunner(agent, adapter, scope, hooks or GoalHooks(), delivery, names)


class GoalRunner:
    """The application's hold on the goals of one scope. Made by use_goal_runner."""

    def __init__(
        self,
        agent: Extensible,
        adapter: GoalAdapter,
        scope: Scope,
        hooks: GoalHooks,
        delivery: Delivery,
        names: Sequence[GoalToolName],
    ) -> None:
        self.scope = scope
        self._agent = agent
        self._adapter = adapter
        self._hooks = hooks
        self._can_update = "update" in names
        self._settling = False
        self._tools = goal_tools.make(self, names)
        self._undo: list[Unsubscribe] = []
        try:
            agent.replace_tools((), self._tools)
        except DuplicateToolError as error:
            raise DuplicateToolError(
                f"{error}: an agent has one set of goal tools; give its other runners allow=()"
            ) from error
        try:
            provider = agent.add_context_provider(self._context, delivery=delivery, id=self._id)
        except UsageError:
            self.unmount()
            raise
        self._undo = [provider, agent.add_turn_preparer(self._prepare)]

    async def start(self, program: Program) -> GoalInstance:
        """Begin the program, or go on where it was left. Another version of it migrates what is
        stored. Raises UsageError when another program runs in this scope."""
        for attempt in range(TRIES):
            stored = await self._adapter.get(self.scope)
            try:
                return await self._started_from(stored, program)
            except GoalConflict:  # another start or change came between
                if attempt == TRIES - 1:
                    raise
        raise AssertionError("unreachable: the last attempt raises")

    async def status(self) -> GoalInstance | None:
        """The goals as they stand; None before start()."""
        return await self._adapter.get(self.scope)

    async def update(
        self,
        goal_id: str,
        status: GoalStatus,
        note: str = "",
        *,
        expected_version: int | None = None,
        author: Author = "app",
    ) -> GoalInstance:
        """Change a goal and run what that owes.

        With `expected_version` a change made meanwhile raises GoalConflict; without, the change is
        made to whatever is stored. Raises UsageError before start(), for an unknown goal, and for
        what values.change refuses. A hook's exception is logged: it stays owed and runs again.
        """
        for attempt in range(TRIES):
            stored = await self._started()
            if expected_version is not None and stored.version != expected_version:
                raise GoalConflict(
                    f"expected_version: the goals are at version {stored.version}, not"
                    f" {expected_version}"
                )
            changed = change(stored, goal_id, status, note, author)
            if changed is stored:
                return stored
            try:
                await self._adapter.commit(changed, if_revision=stored.revision)
            except GoalConflict:  # a paid hook changes the revision, not the version
                if attempt == TRIES - 1:
                    raise
                continue
            await self.settle()
            return await self._started()
        raise AssertionError("unreachable: the last attempt raises")

    async def settle(self) -> None:
        """Run the hooks that are owed, in order; one that fails stays owed, with those after it.

        A hook may change goals: what that owes runs after it, in the same settling.
        """
        if self._settling:
            return
        self._settling = True
        try:
            while (stored := await self._adapter.get(self.scope)) is not None and stored.due:
                await self._run_hook(stored.due[0], stored)
                await self._paid(stored.due[0])
        except Exception:
            logger.exception("goal hook failed", extra={"goals": self._id})
        finally:
            self._settling = False

    def unmount(self) -> None:
        """Take tools, context and preparer away again; the goals stay in the adapter."""
        for undo in self._undo:
            undo()
        self._undo = []
        mine = [tool.name for tool in self._agent.tools if any(tool is own for own in self._tools)]
        self._agent.replace_tools(mine, ())

    @property
    def _id(self) -> str:
        return f"goals:{self.scope.subject}:{self.scope.key}"

    async def _started_from(self, stored: GoalInstance | None, program: Program) -> GoalInstance:
        if stored is None:
            instance = begin(program, self.scope)
            await self._adapter.create(instance)
            return instance
        if stored.program_id != program.id:
            raise UsageError(f"scope: {stored.program_id!r} runs in {self.scope}; use another key")
        if stored.program_version == program.version:
            return stored
        moved = migrate(stored, program)
        await self._adapter.commit(moved, if_revision=stored.revision)
        return moved

    async def _started(self) -> GoalInstance:
        stored = await self._adapter.get(self.scope)
        if stored is None:
            raise UsageError(f"no program runs in {self.scope}: call start(program) first")
        return stored

    async def _context(self, token: CancelToken) -> str | None:
        stored = await self._adapter.get(self.scope)
        return None if stored is None else snapshot(stored, can_update=self._can_update)

    async def _prepare(self, turn: TurnPreparation) -> None:
        """Per turn: hooks that an earlier process owed, then the application's configuration."""
        await self.settle()
        stored = await self._adapter.get(self.scope)
        if stored is not None and self._hooks.configure is not None:
            await _maybe(self._hooks.configure(turn.agent, stored))

    async def _run_hook(self, owed: str, instance: GoalInstance) -> None:
        kind, _, goal_id = owed.partition(":")
        if kind == "complete" and self._hooks.on_complete is not None:
            await _maybe(self._hooks.on_complete(instance))
        goal = instance.goal(goal_id)
        if kind == "end" and goal is not None and self._hooks.on_end is not None:
            await _maybe(self._hooks.on_end(goal, instance))

    async def _paid(self, owed: str) -> None:
        """Take a hook that ran off the list."""
        for _ in range(TRIES):
            stored = await self._started()
            left = tuple(one for one in stored.due if one != owed)
            if left == stored.due:
                return
            after = replace(stored, due=left, revision=stored.revision + 1)
            try:
                await self._adapter.commit(after, if_revision=stored.revision)
            except GoalConflict:
                continue
            return


async def _maybe(outcome: Awaitable[None] | None) -> None:
    if inspect.isawaitable(outcome):
        await contained(outcome)
