"""Amendments of messages as JSON, for stores that are reached over a wire.

A patch says what changes: a field that is absent keeps its value, one that is null or false is set
to that. Values only; nothing here reads or writes a store (spec core 5).
"""

from collections.abc import Mapping
from functools import cache

from pydantic import TypeAdapter, ValidationError

from .encoding import json_bytes
from .errors import UsageError
from .messages import Message, MessagePatch, apply_patch

FIELDS = frozenset(MessagePatch.__annotations__)
"""The fields that an amendment may change."""


@cache
def _adapter() -> TypeAdapter[Message]:
    return TypeAdapter(Message)


def encode_patch(patch: MessagePatch) -> bytes:
    """A JSON object of exactly the patch's fields. Raises TypeError for an unknown one."""
    apply_patch(Message(sender="agent"), patch)
    return json_bytes(dict(patch))


def decode_patch(raw: Mapping[str, object]) -> MessagePatch:
    """The inverse, of parsed JSON. Raises UsageError naming a field that is unknown or wrong."""
    for name in raw:
        if name not in FIELDS:
            known = ", ".join(sorted(FIELDS))
            raise UsageError(f"patch.{name}: cannot be amended; a patch may hold {known}")
    try:
        changed = _adapter().validate_python({"sender": "agent", **raw})
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(step) for step in first["loc"])
        raise UsageError(f"patch.{where}: {first['msg']}") from None
    return {name: getattr(changed, name) for name in raw}  # type: ignore[return-value]  # FIELDS
