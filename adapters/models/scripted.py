"""Models that answer from a script, or echo: for tests, examples and keyless calls.

Owned by one agent. They sit behind the same port as a vendor's model, stream word by word on loop
time, and stop at once when the token fires. A script is strict: a request nobody scripted fails,
and `verify` names every step that was never asked for.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ...core.cancel import AbortScope, CancelToken
from ...core.errors import ModelError
from ...core.events import TextDelta, ToolUse
from ...core.messages import Message, ToolCall
from ...core.model import ModelRequest, ModelResult, Notify
from ...core.usage import Usage
from ...core.view import NOTHING_HEARD
from .exchange import reported

_WORDS = re.compile(r"\S+\s*|\s+")


@dataclass(frozen=True, slots=True)
class Text:
    """Text, streamed word by word; `after_ms` of loop time before each word."""

    text: str
    after_ms: float = 0


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call. An empty `id` is numbered by the model."""

    name: str
    input: Mapping[str, object] | str = field(default_factory=dict)
    id: str = ""
    after_ms: float = 0


@dataclass(frozen=True, slots=True)
class Fail:
    """The model breaks off here with `error`."""

    error: ModelError
    after_ms: float = 0


Part = Text | Call | Fail


@dataclass(frozen=True, slots=True)
class Step:
    """One answer. A plain string among `parts` is `Text` without delays.

    `expects` must occur (ignoring case) in the newest message of the request. `streams=False`
    reports one `model_response` in place of deltas.
    """

    parts: tuple[Part | str, ...]
    expects: str | None = None
    streams: bool = True
    usage: Usage = Usage()
    stop_reason: str | None = None


def say(*parts: Part | str, expects: str | None = None, streams: bool = True) -> Step:
    """A step of `parts`."""
    return Step(parts, expects, streams)


class ScriptedModel:
    """A Model that gives `steps` in order, one per request."""

    def __init__(self, steps: Sequence[Step | str] = (), *, name: str = "scripted") -> None:
        self._steps = [say(step) if isinstance(step, str) else step for step in steps]
        self._name = name
        self._next = 0
        self._calls = 0
        self._violations: list[str] = []
        self.requests: list[ModelRequest] = []
        """Every request, in order, as the agent made it."""
        self.system_prompts: list[str] = []

    @property
    def name(self) -> str:
        return self._name

    def set_system_prompt(self, prompt: str) -> None:
        self.system_prompts.append(prompt)

    async def prompt(
        self, request: ModelRequest, notify: Notify, token: CancelToken
    ) -> ModelResult:
        """The next step. Raises ModelError when there is none, or the request is not expected."""
        token.raise_if_aborted()
        self.requests.append(request)
        step = self._take(request)
        async with AbortScope(token):
            return await _Emission(step, notify, self._number).run()

    def verify(self) -> None:
        """Raise AssertionError naming wrong requests and steps that were never asked for."""
        left = [f"never asked for: {step}" for step in self._steps[self._next :]]
        problems = [*self._violations, *left]
        if problems:
            raise AssertionError("the model script does not fit:\n  " + "\n  ".join(problems))

    def _take(self, request: ModelRequest) -> Step:
        newest = _newest_text(request)
        if self._next >= len(self._steps):
            raise self._refuse(f"request {len(self.requests)} has no step: {newest!r}")
        step = self._steps[self._next]
        if step.expects is not None and step.expects.lower() not in newest.lower():
            raise self._refuse(f"step {self._next} expects {step.expects!r}, not {newest!r}")
        self._next += 1
        return step

    def _refuse(self, problem: str) -> ModelError:
        self._violations.append(problem)
        return ModelError(f"model script: {problem}", code="ERR_MODEL_SCRIPT")

    def _number(self) -> str:
        self._calls += 1
        return f"call_{self._calls}"


class EchoModel:
    """`scripted:echo`: answers "You said: <text>" to the last thing the user said."""

    def __init__(self, *, word_ms: float = 0) -> None:
        self._word_ms = word_ms

    @property
    def name(self) -> str:
        return "scripted:echo"

    def set_system_prompt(self, prompt: str) -> None:
        """An echo has no use for it."""

    async def prompt(
        self, request: ModelRequest, notify: Notify, token: CancelToken
    ) -> ModelResult:
        """One streamed answer; it never calls a tool."""
        said = next((m.text for m in reversed(request.messages) if m.is_user_turn), "")
        said = said.removeprefix(NOTHING_HEARD).strip()
        answer = f"You said: {said}" if said.strip() else "I heard nothing."
        async with AbortScope(token):
            return await _Emission(say(Text(answer, self._word_ms)), notify, str).run()


class _Emission:
    """One answer on its way out."""

    def __init__(self, step: Step, notify: Notify, number: Callable[[], str]) -> None:
        self._step = step
        self._notify = notify
        self._number = number
        self._text = ""
        self._calls: list[ToolCall] = []

    async def run(self) -> ModelResult:
        for part in self._step.parts:
            match part:
                case str():
                    await self._stream(Text(part))
                case Text():
                    await self._stream(part)
                case Call():
                    await self._call(part)
                case Fail():
                    await asyncio.sleep(part.after_ms / 1000)
                    raise part.error
        return self._complete()

    async def _stream(self, part: Text) -> None:
        for word in _WORDS.findall(part.text):
            await asyncio.sleep(part.after_ms / 1000)
            self._text += word
            if self._step.streams:
                self._notify(TextDelta(text=word))

    async def _call(self, part: Call) -> None:
        await asyncio.sleep(part.after_ms / 1000)
        call = ToolCall(part.name, part.input, part.id or self._number())
        self._calls.append(call)
        if self._step.streams:
            self._notify(ToolUse(id=call.id, name=call.tool_name, input=call.input_args))

    def _complete(self) -> ModelResult:
        step, calls = self._step, tuple(self._calls)
        stop = step.stop_reason or ("tool_use" if calls else "end_turn")
        message = Message(sender="agent", text=self._text, tool_calls=calls)
        told = {call.id for call in calls}
        return reported(message, step.usage, stop, self._notify, streamed=step.streams, told=told)


def _newest_text(request: ModelRequest) -> str:
    """Text a step may expect: the newest message's own, or its tools' results."""
    if not request.messages:
        return ""
    newest = request.messages[-1]
    results = (f"{r.tool_name}: {r.result.data} {r.result.message}" for r in newest.tool_results)
    return " ".join([newest.text, *results])
