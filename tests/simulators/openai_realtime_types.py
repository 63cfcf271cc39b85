"""The official SDK's types as a judge of realtime events: a field they do not have is an error.

The SDK itself lets unknown fields pass, so that an old client survives a new server. A test wants
the opposite.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import get_args

from openai.types.realtime import RealtimeServerEvent
from openai.types.realtime.realtime_session_create_response import RealtimeSessionCreateResponse
from pydantic import BaseModel

Json = Mapping[str, object]
SESSION_ONLY = ("id", "object", "expires_at")
"""What a session told by the server has besides the settings: the SDK types its events with the
settings alone (protocols/openai-realtime section 3)."""


@cache
def server_types() -> dict[str, type[BaseModel]]:
    """The class of every server event by its type."""
    union = get_args(RealtimeServerEvent)[0]
    return {get_args(one.model_fields["type"].annotation)[0]: one for one in get_args(union)}


def unknown_fields(event: Json) -> list[str]:
    """Fields of a server event that the SDK does not know. Raises pydantic.ValidationError for
    missing ones and wrong types, KeyError for an unknown event."""
    session = event.get("session")
    if isinstance(session, Mapping):
        own = {name: session[name] for name in (*SESSION_ONLY, "type")}
        RealtimeSessionCreateResponse.model_validate(own)
        settings = {name: value for name, value in session.items() if name not in SESSION_ONLY}
        event = {**event, "session": settings}
    kind = server_types()[str(event["type"])]
    return list(_extras(kind.model_validate(event), str(event["type"])))


def _extras(value: object, where: str) -> Iterator[str]:
    """Names of unknown fields at any depth."""
    if isinstance(value, BaseModel):
        yield from (f"{where}.{name}" for name in value.model_extra or {})
        for name in type(value).model_fields:
            yield from _extras(getattr(value, name), f"{where}.{name}")
    elif isinstance(value, list):
        for index, one in enumerate(value):
            yield from _extras(one, f"{where}[{index}]")
