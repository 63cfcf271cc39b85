"""Item and response ids that are unique for a whole session, made of ids unique per connection.

Owned by a link. Those of the first connection stay as they are; a later one's get its number in
front, so that an answer that still plays is never taken for one of the next connection. Pure.
"""

from __future__ import annotations

from dataclasses import replace

from .commands import CutOutput
from .events import (
    Audio,
    Interrupted,
    ItemDone,
    RealtimeEvent,
    ResponseDone,
    ResponseStarted,
    ToolCalls,
    UserSpeech,
    UserTurn,
    Words,
)


def named(event: RealtimeEvent, number: int) -> RealtimeEvent:
    """`event` of connection `number` (from 1), with the session's ids."""
    if number < 2:
        return event
    match event:
        case Audio(item_id, pcm):
            return Audio(_with(item_id, number), pcm)
        case Words() | ItemDone() | UserTurn() | UserSpeech() | Interrupted():
            return replace(event, item_id=_with(event.item_id, number))
        case ResponseStarted() | ResponseDone() | ToolCalls():
            return replace(event, response_id=_with(event.response_id, number))
        case _:
            return event


def local(command: CutOutput, number: int) -> CutOutput:
    """What connection `number` can be told of a cut: its own items by its own ids. Those of an
    earlier one are in history, which the provider was seeded with."""
    heard = {
        own: ms
        for item, ms in command.heard_ms.items()
        if (own := _without(item, number)) is not None
    }
    return replace(command, heard_ms=heard)


def _with(identity: str, number: int) -> str:
    return f"{number}:{identity}" if identity else ""


def _without(identity: str, number: int) -> str | None:
    head, found, rest = identity.partition(":")
    if number < 2:
        return None if found and head.isdigit() else identity
    return rest if found and head == str(number) else None
