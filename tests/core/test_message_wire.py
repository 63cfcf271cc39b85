"""Messages and amendments over a wire: what goes in comes out, and what is wrong is named."""

from __future__ import annotations

import json

import pytest
from hypothesis import given

from tests.core.store_values import batches, every_flag, many, patches
from voxglove.core import Message, MessagePatch, UsageError
from voxglove.core.message_wire import (
    decode_messages,
    decode_patch,
    encode_messages,
    encode_patch,
    read_messages,
)


@many
@given(batch=batches)
def test_a_list_of_messages_survives_both_ways_of_reading(batch: list[Message]) -> None:
    raw = encode_messages(batch)
    assert decode_messages(raw) == batch
    assert read_messages(json.loads(raw), "messages") == batch


@many
@given(patch=patches)
def test_a_patch_holds_what_it_changes_and_nothing_else(patch: MessagePatch) -> None:
    found = json.loads(encode_patch(patch))
    assert set(found) == set(patch)
    assert decode_patch(found) == patch


def test_a_default_in_a_patch_is_a_change() -> None:
    patch: MessagePatch = {"interrupted": False, "heard": None, "tool_results": ()}
    assert json.loads(encode_patch(patch)) == {
        "interrupted": False,
        "heard": None,
        "tool_results": [],
    }
    assert decode_patch({}) == {}


def test_what_is_wrong_is_named_by_its_path() -> None:
    full = json.loads(encode_messages([every_flag()]))[0]
    for change, where in (
        ({"sender": "bot"}, "m[1].sender"),
        ({"content": [{"type": "text"}, {"type": "sound"}]}, "m[1].content.1.type"),
        ({"tool_calls": [{"tool_name": "a"}]}, "m[1].tool_calls.0.input_args"),
        ({"interrupted": "maybe"}, "m[1].interrupted"),
    ):
        with pytest.raises(UsageError) as refused:
            read_messages([full, full | change], "m")
        assert str(refused.value).startswith(f"{where}: ")
    with pytest.raises(UsageError, match=r"^m\[0\]: "):
        read_messages(["hello"], "m")
    with pytest.raises(UsageError, match=r"^patch\.sender: cannot be amended"):
        decode_patch({"sender": "user"})
    with pytest.raises(UsageError, match=r"^patch\.heard: "):
        decode_patch({"heard": 5})


@pytest.mark.parametrize("raw", [b"", b"{}", b"null", b"[1]", b"[" * 2_000, b'[{"text":"a"}]'])
def test_what_is_no_list_of_messages_is_a_value_error(raw: bytes) -> None:
    with pytest.raises(ValueError, match="."):
        decode_messages(raw)
