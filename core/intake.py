"""What joins history in front of a model's answer: news from outside, and a user's message with
what it names.

One way for both who ask a model: opening.Opening for a request, live.LiveConversation for a
session whose model answers by itself. Owns nothing; asks no model and runs no tool.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from .agent_parts import Parts
from .cancel import CancelToken, contained
from .context import PrepareReason, TurnPreparation, reporting
from .directives.hooks import Controls
from .directives.registry import Directed
from .errors import AbortError
from .events import (
    EventInjected,
    HookInvoked,
    InjectionMode,
    ModelResponse,
    SkillInvoked,
    SubscriberEvent,
)
from .external import events_message
from .messages import Message

Emit = Callable[[SubscriberEvent], None]


async def join_outside(parts: Parts, emit: Emit, mode: InjectionMode) -> tuple[Message, ...]:
    """Show resolved inbox items and all pending outside events, in one stored message each.

    Returns what was stored, ready to be told. Items are consumed with their message; events are
    acknowledged once theirs is stored, also if the caller is cancelled meanwhile: neither is told
    twice (row 58, spec core 10.2).
    """
    stored: tuple[Message, ...] = ()
    joined = await parts.inbox.join()
    if joined is not None:
        shown, ids = joined
        parts.events.shown(ids)
        stored = (shown,)
    events = await parts.events.pending()
    if not events:
        return stored
    message = events_message(events, parts.history.new_id("msg"))
    stored += await parts.history.append_marking(message, partial(parts.events.injected, events))
    for event in events:
        emit(EventInjected(id=event.id, source=event.source, kind=event.kind, mode=mode))
    return stored


async def directed(
    parts: Parts,
    user: Message,
    controls: Controls,
    token: CancelToken,
    emit: Emit,
    *,
    on_call: bool,
) -> Directed:
    """What the message's hooks and skills make of it; nothing is stored yet.

    On a call one that fails is reported and the message stays as it is; in text it raises. Raises
    AbortError when `token` fires.
    """
    name = ""

    def noted(event: SubscriberEvent) -> None:
        nonlocal name
        if isinstance(event, HookInvoked | SkillInvoked):
            name = event.name
        emit(event)

    try:
        return await contained(parts.directives.apply(user, controls, token, noted))
    except AbortError:
        raise
    except Exception as error:
        reporting(emit)("directive", f"/{name}", error)
        if not on_call:
            raise
        return Directed(user=user)


async def prepare(
    parts: Parts,
    reason: PrepareReason,
    user: Message | None,
    token: CancelToken,
    emit: Emit,
    *,
    on_call: bool,
) -> None:
    """Run the turn preparers. On a call a failing one is reported and the others run; in text it
    raises. Raises AbortError."""
    preparation = TurnPreparation(agent=parts.host, token=token, reason=reason, user=user)
    await parts.preparers.run(preparation, reporting(emit), on_call=on_call)


async def store_answers(
    parts: Parts, answers: Sequence[Message], emit: Emit, *, playback: bool
) -> tuple[Message, ...]:
    """Store answers that no model gave. Reported like a model's: on a call they must be spoken,
    not end in silence."""
    ready = [
        replace(
            answer,
            sender="agent",
            id=parts.history.new_id("msg"),
            playback="pending" if playback and answer.text.strip() else None,
        )
        for answer in answers
    ]
    stored = await parts.history.append(*ready)
    for answer in stored:
        emit(ModelResponse(text=answer.text, message_id=answer.id))
    return stored
