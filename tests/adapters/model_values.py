"""Histories at random: whatever calls leave in a store, and worse."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.adapters.model_rig import PNG, results
from voxglove.core.messages import (
    ContentPart,
    ContentSource,
    Message,
    ToolCall,
    ToolResultData,
    decode_message,
    encode_message,
)
from voxglove.core.model import ModelRequest, ToolSpec
from voxglove.core.view import model_view

ANY_TEXT = st.text(st.characters(), max_size=12)  # halves of surrogate pairs as well
TEXTS = st.one_of(
    st.sampled_from(["", "  ", "Hello.", "☺ one\n\ntwo", "\u2028", "[interrupted]"]), ANY_TEXT
)
NAMES = st.one_of(
    st.sampled_from(["look", "files/read", "ключ", "x" * 200, "9lives", "a.b:c", ""]), ANY_TEXT
)
IDS = st.sampled_from(
    ["c1", "toolu_2", "functions.look:0", "ид 3", "y" * 60, "y" * 160, "call|4", "c5", "c6"]
)
ARGS = st.one_of(
    st.sampled_from(
        [{}, "{oops", '{"a": 1}', "[]", "", None, [1], {"deep": {"none": None, "l": [1]}}]
    ),
    st.dictionaries(ANY_TEXT, st.one_of(st.integers(), ANY_TEXT, st.floats()), max_size=2),
)
DATA = st.builds(
    ToolResultData,
    st.sampled_from(["success", "error", "aborted"]),
    st.one_of(st.sampled_from([None, "", " ", {"free": 3}, [1, 2], 7]), ANY_TEXT),
    st.one_of(st.sampled_from([None, "hang-up"]), ANY_TEXT),
)
MEDIA = st.sampled_from(
    [
        PNG,
        ContentPart("image", source=ContentSource("url", "image/png", url="https://x.test/a.png")),
        ContentPart("video", source=ContentSource("base64", "video/mp4", data="QUJD"), name="v"),
        ContentPart("document", source=ContentSource("base64", "application/pdf", data="QUJD")),
        ContentPart(
            "document", source=ContentSource("url", "application/pdf", url="https://x.test/y.pdf")
        ),
        ContentPart("document", source=ContentSource("base64", "text/csv", data="YSxi"), name="m"),
        ContentPart("document", source=ContentSource("url", "text/plain", url="https://x.test/t")),
        ContentPart("document"),
        ContentPart("image"),
        ContentPart("text", text="typed"),
        ContentPart("text", text=" "),
        ContentPart("text", text="\ud83d"),
        ContentPart("image", source=ContentSource("base64", "image/tiff", data="QUJD")),
        ContentPart("image", source=ContentSource("base64", "image/png", data="no base64!")),
        ContentPart("video", source=ContentSource("url", "video/mp4", url="ftp://x.test/v")),
    ]
)
SCHEMAS = st.sampled_from(
    [
        {"type": "object", "properties": {}},
        {},
        {"anyOf": [{"type": "object", "properties": {"a": {}}}, {"$ref": "#/$defs/x"}]},
    ]
)
TOOLS = st.lists(
    st.builds(ToolSpec, NAMES, ANY_TEXT, SCHEMAS), max_size=3, unique_by=lambda tool: tool.name
)
CALLS = st.builds(ToolCall, NAMES, ARGS, IDS)
USERS = st.builds(
    lambda text, content, compacted: Message(
        sender="user", text=text, content=tuple(content), is_compaction=compacted
    ),
    TEXTS,
    st.lists(MEDIA, max_size=3),
    st.sampled_from([False] * 9 + [True]),
)
RESULTS = st.lists(st.tuples(NAMES, IDS, DATA), min_size=1, max_size=4).map(
    lambda pairs: results(*pairs)
)
NOTES = st.builds(
    lambda text: Message(sender="user", text=text, framework_context="runtime"), TEXTS
)


def agents(options: st.SearchStrategy[dict[str, object] | None]) -> st.SearchStrategy[Message]:
    """What an agent said: finished, or cut before or after something was heard."""
    return st.builds(
        lambda text, calls, cut, playback, kept, thoughts: Message(
            sender="agent",
            text=text,
            tool_calls=tuple({one.id: one for one in calls}.values()),
            interrupted=cut is not None,
            playback=playback if cut is not None else None,
            heard=cut,
            provider_options=kept,
            reasoning_content=thoughts,
        ),
        TEXTS,
        st.lists(CALLS, max_size=3),
        st.sampled_from([None, None, "", "Hel"]),
        st.sampled_from([None, "pending", "settled"]),
        options,
        st.one_of(st.none(), ANY_TEXT),
    )


@st.composite
def requests(draw: st.DrawFn, options: st.SearchStrategy[dict[str, object] | None]) -> ModelRequest:
    """Requests over any history: cut answers, calls without results, results late, double or of
    nobody; from the store or not. A model sees what `model_view` makes of it."""
    turns = st.one_of(USERS, agents(options), RESULTS, NOTES)
    history = _unique_calls(draw(st.lists(turns, max_size=8)))
    if draw(st.booleans()):
        history = [decode_message(encode_message(message)) for message in history]
    return ModelRequest(
        messages=tuple(model_view(history) if draw(st.booleans()) else history),
        tools=tuple(draw(TOOLS)),
        system_prompt=draw(st.one_of(st.sampled_from(["", " ", "Be kind."]), ANY_TEXT)),
    )


def _unique_calls(messages: list[Message]) -> list[Message]:
    """As the loop stores them: a call id is used once."""
    seen: set[str] = set()
    kept: list[Message] = []
    for message in messages:
        fresh = tuple(one for one in message.tool_calls if one.id not in seen)
        seen |= {one.id for one in fresh}
        kept.append(
            message
            if len(fresh) == len(message.tool_calls)
            else Message(sender="agent", text=message.text, tool_calls=fresh)
        )
    return kept
