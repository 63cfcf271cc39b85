"""Messages and amendments as JSON, for stores and models that are reached over a wire.

One message alone is messages.encode_message's business. A patch says what changes: a field that is
absent keeps its value, one that is null or false is set to that. Values only; nothing here reads or
writes a store (spec core 5).
"""

import json
from collections.abc import Mapping, Sequence
from functools import cache

from pydantic import TypeAdapter, ValidationError

from .encoding import json_bytes
from .errors import UsageError
from .messages import Message, MessagePatch, apply_patch, encode_message

PATCH_FIELDS = frozenset(MessagePatch.__annotations__)
"""The fields that an amendment may change."""


@cache
def _message() -> TypeAdapter[Message]:
    return TypeAdapter(Message)


@cache
def _list() -> TypeAdapter[list[Message]]:
    return TypeAdapter(list[Message])


def encode_messages(messages: Sequence[Message]) -> bytes:
    """A JSON list, each message as encode_message writes it."""
    return b"[" + b",".join([encode_message(message) for message in messages]) + b"]"


def decode_messages(raw: bytes | str) -> list[Message]:
    """The inverse, straight from the bytes. Raises ValueError for anything else."""
    try:
        return _list().validate_json(raw)
    except ValidationError as error:
        if "recursion limit" not in str(error):
            raise
    # A message as deep as can be stored, and the list around it.
    try:
        return _list().validate_python(json.loads(raw))
    except RecursionError:
        raise ValueError("a list of messages lies too deep to be one") from None


def read_messages(parsed: Sequence[object], at: str) -> list[Message]:
    """Messages of parsed JSON. Raises UsageError, "path: what is wrong", with `at` in front of the
    path: `messages[2].sender: …`."""
    try:
        return _list().validate_python(parsed)
    except ValidationError as error:
        where, why = _first(error)
        index, _, rest = where.partition(".")
        raise UsageError(f"{at}[{index}]{'.' if rest else ''}{rest}: {why}") from None


def encode_patch(patch: MessagePatch) -> bytes:
    """A JSON object of exactly the patch's fields. Raises TypeError for an unknown one."""
    apply_patch(Message(sender="agent"), patch)
    return json_bytes(dict(patch))


def decode_patch(parsed: Mapping[str, object]) -> MessagePatch:
    """The inverse, of parsed JSON. Raises UsageError naming a field that is unknown or wrong."""
    for name in parsed:
        if name not in PATCH_FIELDS:
            known = ", ".join(sorted(PATCH_FIELDS))
            raise UsageError(f"patch.{name}: cannot be amended; a patch may hold {known}")
    try:
        changed = _message().validate_python({"sender": "agent", **parsed})
    except ValidationError as error:
        where, why = _first(error)
        raise UsageError(f"patch.{where}: {why}") from None
    return {name: getattr(changed, name) for name in parsed}  # type: ignore[return-value]  # known


def _first(error: ValidationError) -> tuple[str, str]:
    """Path and text of the first thing that is wrong."""
    first = error.errors()[0]
    return ".".join(str(step) for step in first["loc"]), first["msg"]
