"""Tools: what a model may call, what a tool sees of its agent, and how a function becomes one.

A tool is a frozen value; running it is the executor's business. Signatures of `do` by number of
parameters: (input), (input, ctx), or the original's (input, display, agent, token).
"""

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, get_type_hints, overload

from pydantic import BaseModel

from .cancel import CancelToken
from .display import DisplayStack, ToolDisplay
from .errors import UsageError
from .external import AgentEvent, EventReceipt, WhenIdle
from .messages import ToolResultData
from .model import Model, ToolSpec
from .schema import InputModel, fields_of, json_schema_of, model_of_function
from .store import Store

# The field's types vary by tool, so `do` is checked by arity at construction, not by its types.
ToolFunction = Callable[..., object]
PermissionRule = bool | Callable[..., bool | Awaitable[bool]]
SummaryFunction = Callable[..., str | Awaitable[str]]


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a running tool may use. `token` fires when the tool should stop; an un_abortable tool
    may read it and finish anyway. `display` belongs to the loop's thread: not for sync tools."""

    display: ToolDisplay
    agent: "ToolHost"
    token: CancelToken
    call_id: str
    tool_name: str


class ToolHost(Protocol):
    """What a tool may use of the agent it runs in; agent.Agent is one, and says what each does.

    Requests are not here: a tool that waited for a turn of its own agent would wait for itself.
    """

    @property
    def name(self) -> str: ...

    @property
    def server_mode(self) -> bool: ...

    @property
    def store(self) -> Store: ...

    @property
    def tools(self) -> "tuple[Tool, ...]": ...

    @property
    def model(self) -> Model: ...

    @property
    def system_prompt(self) -> str: ...

    @property
    def display(self) -> DisplayStack: ...

    @property
    def outstanding(self) -> frozenset[str]: ...

    def set_model(self, model: Model) -> None: ...

    def set_system_prompt(self, prompt: str) -> None: ...

    def set_display(self, display: DisplayStack) -> None: ...

    def fold(self, tool: "Tool") -> "ToolHost": ...

    def replace_tools(self, previous: Sequence[str], following: "Sequence[Tool]") -> object: ...

    async def emit_event(
        self, event: AgentEvent, *, when_idle: WhenIdle | None = None
    ) -> EventReceipt: ...


class _Runner(Protocol):
    def __call__(self, value: object, ctx: ToolContext, /) -> object: ...


@dataclass(frozen=True, kw_only=True)
class Tool:
    """One capability (spec core 4). Exactly one of `input_model`, `json_schema` is given.

    read_only      runs before the user turn is committed; anything else waits for the commit
    un_abortable   once running it is awaited to its end (or its deadline), whatever is aborted
    retries        extra attempts after an exception; only for what may safely run twice
    timeout_s      deadline in seconds; un_abortable tools get the agent's default deadline
    parallel       may run beside its neighbours in one reply that are parallel as well
    """

    name: str
    description: str
    do: ToolFunction
    input_model: InputModel | None = None
    json_schema: Mapping[str, object] | None = None
    requires_permission: PermissionRule = False
    un_abortable: bool = False
    read_only: bool = False
    retries: int = 0
    timeout_s: float | None = None
    parallel: bool = False
    generate_summary: SummaryFunction | None = None

    def __post_init__(self) -> None:
        if not self.name:
            raise UsageError("Tool.name: must not be empty")
        if (self.input_model is None) == (self.json_schema is None):
            raise UsageError(
                f"Tool {self.name!r}: give exactly one of input_model (a pydantic model or"
                " TypeAdapter) and json_schema"
            )
        if self.retries < 0:
            raise UsageError(f"Tool {self.name!r}: retries must be 0 or more")
        if self.timeout_s is not None and self.timeout_s <= 0:
            raise UsageError(f"Tool {self.name!r}: timeout_s must be positive")
        if self._arity not in (1, 2, 4):
            raise UsageError(
                f"Tool {self.name!r}: do takes (input), (input, ctx) or"
                f" (input, display, agent, token), not {self._arity} parameters"
            )

    @cached_property
    def spec(self) -> ToolSpec:
        """What the model sees; a json_schema is passed on verbatim (row 5)."""
        if self.json_schema is not None:
            return ToolSpec(self.name, self.description, self.json_schema)
        if self.input_model is None:
            raise UsageError(f"Tool {self.name!r}: no schema")
        return ToolSpec(self.name, self.description, json_schema_of(self.input_model))

    @cached_property
    def is_async(self) -> bool:
        """Whether `do` is a coroutine function; others run in a thread."""
        call = getattr(self.do, "__call__", None)  # noqa: B004 - an instance's async __call__
        return inspect.iscoroutinefunction(self.do) or inspect.iscoroutinefunction(call)

    def call(self, value: object, ctx: ToolContext) -> object:
        """Call `do` with the arguments its signature asks for; may return an awaitable."""
        if self._arity == 1:
            return self.do(value)
        if self._arity == 2:
            return self.do(value, ctx)
        return self.do(value, ctx.display, ctx.agent, ctx.token)

    @cached_property
    def _arity(self) -> int:
        try:
            parameters = inspect.signature(self.do).parameters.values()
        except (TypeError, ValueError):
            return 1
        positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        if any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in parameters):
            return 4
        return sum(
            parameter.kind in positional and parameter.default is inspect.Parameter.empty
            for parameter in parameters
        )


def wrap_result(raw: object) -> ToolResultData:
    """Anything a tool returned as a result; only a dict with status and data is taken apart."""
    if isinstance(raw, ToolResultData):
        return raw
    if isinstance(raw, Mapping) and {"status", "data"} <= raw.keys():
        known = ToolResultData.__dataclass_fields__.keys()
        extra = raw.keys() - known
        if raw["status"] in ("success", "error", "aborted") and not extra:
            return ToolResultData(**raw)
    return ToolResultData("success", raw)


@overload
def tool(function: ToolFunction, /) -> Tool: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    requires_permission: PermissionRule = False,
    un_abortable: bool = False,
    read_only: bool = False,
    retries: int = 0,
    timeout_s: float | None = None,
    parallel: bool = False,
    generate_summary: SummaryFunction | None = None,
) -> Callable[[ToolFunction], Tool]: ...


def tool(
    function: ToolFunction | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    requires_permission: PermissionRule = False,
    un_abortable: bool = False,
    read_only: bool = False,
    retries: int = 0,
    timeout_s: float | None = None,
    parallel: bool = False,
    generate_summary: SummaryFunction | None = None,
) -> Tool | Callable[[ToolFunction], Tool]:
    """Make a Tool of a typed function: its parameters become the schema, its docstring the
    description. A parameter annotated ToolContext gets the context and is hidden from the model.
    """

    def make(target: ToolFunction) -> Tool:
        label = name or target.__name__
        text = description or inspect.getdoc(target) or ""
        if not text:
            raise UsageError(f"@tool {label}: write a docstring or pass description=")
        model, run = _adapt(target)
        return Tool(
            name=label,
            description=text,
            do=run,
            input_model=model,
            requires_permission=requires_permission,
            un_abortable=un_abortable,
            read_only=read_only,
            retries=retries,
            timeout_s=timeout_s,
            parallel=parallel,
            generate_summary=generate_summary,
        )

    return make if function is None else make(function)


def _adapt(target: ToolFunction) -> tuple[type[BaseModel], _Runner]:
    """The input model of a function and a (input, ctx) function that calls it by keyword."""
    hints = get_type_hints(target)
    context_names = {key for key, hint in hints.items() if hint is ToolContext and key != "return"}

    def arguments(value: object, ctx: ToolContext) -> dict[str, object]:
        if not isinstance(value, BaseModel):
            raise UsageError("a @tool function is called with its own input model")
        return {**fields_of(value), **dict.fromkeys(context_names, ctx)}

    async def run_async(value: object, ctx: ToolContext, /) -> object:
        outcome = target(**arguments(value, ctx))
        return await outcome if inspect.isawaitable(outcome) else outcome

    def run_sync(value: object, ctx: ToolContext, /) -> object:
        return target(**arguments(value, ctx))

    runner = run_async if inspect.iscoroutinefunction(target) else run_sync
    return model_of_function(target, context_names), runner
