"""What a request to a model's server is made of on every wire: its frame, and how its end is told.

A wire's own file builds the body, reads the answer and names its SDK's errors; all else is here.
Owns nothing, keeps nothing, knows no JSON; it never retries.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from typing import Protocol

from ...core.cancel import AbortScope, CancelToken
from ...core.errors import CoreError, ModelError
from ...core.events import ModelResponse, ModelResponseComplete, ToolUse
from ...core.messages import Message
from ...core.model import ModelRequest, ModelResult, Notify
from ...core.usage import Usage
from . import failures

VendorError = Callable[[Exception], ModelError | None]
"""Our error for one of an SDK's, with `retryable` decided by failures.py; None: not one of its."""


@asynccontextmanager
async def exchange(
    name: str, token: CancelToken, limit_s: float | None, vendor_error: VendorError
) -> AsyncIterator[None]:
    """The surroundings of one request: left by the token (AbortError), over after `limit_s`.

    What fails inside is raised as ModelError, the original its cause. Errors that neither the
    vendor nor a wire can raise (a reporter's, a bug) pass as they are.
    """
    async with AbortScope(token):
        try:
            async with asyncio.timeout(limit_s):
                yield
        except CoreError:
            raise
        except Exception as error:
            mapped = vendor_error(error) or _wire_error(name, error)
            if mapped is None:
                raise
            raise mapped from error


def _wire_error(name: str, error: Exception) -> ModelError | None:
    match error:
        case TimeoutError():
            return failures.stalled(f"{name}: no whole answer in time")
        case ValueError():
            # JSON, UTF-8 or types: the wire modules raise nothing else for a bad answer.
            return failures.garbled(f"{name} sent no valid answer: {error}")
    return None


class WholeAnswer(Protocol):
    """An answer that has come in whole."""

    def message(self) -> Message: ...
    @property
    def stop_reason(self) -> str | None: ...
    @property
    def usage(self) -> Usage: ...


def finished(
    name: str, request: ModelRequest, answer: WholeAnswer, notify: Notify, *, streamed: bool
) -> ModelResult:
    """`answer`, told. Raises ModelError where it says nothing although something is due.

    Calls are told only now, so that half an answer names none.
    """
    message, stop = answer.message(), answer.stop_reason
    if not message.text.strip() and not message.tool_calls:
        _check_silence(name, request, stop)
    return reported(message, answer.usage, stop, notify, streamed=streamed)


def reported(
    message: Message,
    usage: Usage,
    stop_reason: str | None,
    notify: Notify,
    *,
    streamed: bool = True,
    told: Collection[str] = (),
) -> ModelResult:
    """The last events of an answer, and its result. `told` are the calls that had their event."""
    calls = message.tool_calls
    if streamed:
        for call in calls:
            if call.id not in told:
                notify(ToolUse(id=call.id, name=call.tool_name, input=call.input_args))
    kind = ModelResponseComplete if streamed else ModelResponse
    notify(kind(text=message.text, tool_calls=calls, stop_reason=stop_reason, usage=usage))
    return ModelResult(messages=(message,), usage=usage, stop_reason=stop_reason)


def _check_silence(name: str, request: ModelRequest, stop_reason: str | None) -> None:
    """Raise where an answer of nothing is none.

    To somebody who just spoke silence is no answer. Behind a tool's result, or to a note of the
    framework, it is a model's way of saying that nothing is left to add.
    """
    if stop_reason == "max_tokens":
        raise failures.empty(f"{name}: max_tokens ran out before the answer began; raise it")
    if stop_reason == "refusal":
        raise failures.refused(f"{name}: the provider's filter withheld the answer")
    said = [one for one in request.messages if one.framework_context is None]
    waiting = not said or not (said[-1].tool_results or said[-1].sender == "agent")
    if stop_reason != "end_turn" or waiting:
        raise failures.empty(f"{name} gave an empty answer ({stop_reason})")
