"""Values the store suite writes: every field of a message, and text that breaks careless stores.

Strategies are kept by field name, so that a new field without one fails a test.
"""

from __future__ import annotations

from typing import Any, get_args

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from voxglove.core import (
    ContentPart,
    ContentSource,
    Message,
    MessagePatch,
    ToolCall,
    ToolResult,
    ToolResultData,
)
from voxglove.core.messages import FrameworkContext, Playback, ResultStatus, Sender

NASTY = (
    "",
    " ",
    "\x00",
    "a\x00b\x00",
    "\x01\x1b[31m\x7f\x85",
    "line\r\nline\rline\n\ttab",
    "\u2028\u2029\ufeff",
    "👩‍👩‍👧‍👦 🏳️‍🌈 🇩🇪 \U0001f469\U0001f3fd\u200d\U0001f680",
    "\U00010000\U0010ffff\ufffe\uffff",
    "\u202eright to left\u202c \u0627\u0644\u0633\u0644\u0627\u0645 \u05e9\u05dc\u05d5\u05dd",
    "e\u0301 \u00e9 n\u0303",
    "Zalgo\u0300\u0301\u0302\u0303\u0304\u0305",
    "'; DROP TABLE messages; -- \" \\ \\u0000 \\ud800 %s ? :x $1 {}",
    "null",
    "</message>&amp;<![CDATA[",
)

AWKWARD_NAMES = (
    "plain",
    "PLAIN",
    "with space",
    "with/slash and ?query#part",
    "quote's \" and \\",
    "percent%_like",
    "plain__child",
    "\u00fcber \U0001f98a",
)
"""Ids of conversations, tools and records: no NUL, otherwise what people choose."""

LONE_SURROGATE = "half \ud83d of a pair"
"""What `json.loads` makes of a broken escape: no encoding can carry it."""

MENDED_SURROGATE = "half \ufffd of a pair"

many = settings(
    max_examples=15, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
"""For inherited tests: hypothesis checks by default that a test is of one class."""

text = st.text(max_size=30) | st.sampled_from(NASTY)
flag = st.booleans()
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=6,
)
json_objects = st.dictionaries(text, json_values, max_size=3)


def maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values


def tuples_of(values: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(values, max_size=2).map(tuple)


parts = st.builds(
    ContentPart,
    type=st.sampled_from(("text", "image", "video", "document")),
    text=maybe(text),
    source=maybe(
        st.builds(
            ContentSource,
            type=st.sampled_from(("base64", "url")),
            media_type=text,
            data=maybe(text),
            url=maybe(text),
        )
    ),
    name=maybe(text),
)
calls = st.builds(
    ToolCall,
    tool_name=text,
    input_args=json_values,
    id=text,
    provider_options=maybe(json_objects),
)
results = st.builds(
    ToolResult,
    tool_name=text,
    call_id=text,
    result=st.builds(
        ToolResultData,
        status=st.sampled_from(get_args(ResultStatus)),
        data=json_values,
        message=maybe(text),
        render_data=json_values,
        summary=maybe(text),
        generate_summary_args=json_values,
    ),
    duration_ms=st.floats(0, 1e9),
)

MESSAGE_FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "sender": st.sampled_from(get_args(Sender)),
    "text": text,
    "id": st.uuids().map(lambda one: f"msg_{one.hex}"),
    "content": tuples_of(parts),
    "tool_calls": tuples_of(calls),
    "tool_results": tuples_of(results),
    "playback": maybe(st.sampled_from(get_args(Playback))),
    "heard": maybe(text),
    "unheard": maybe(text),
    "interrupted": flag,
    "estimated": flag,
    "is_tool_results": flag,
    "is_compaction": flag,
    "is_compaction_request": flag,
    "is_skill_injection": flag,
    "pre_modified_text": maybe(text),
    "reasoning_content": maybe(text),
    "framework_context": maybe(st.sampled_from(get_args(FrameworkContext))),
    "context_id": maybe(text),
    "provider_options": maybe(json_objects),
}
messages = st.builds(Message, **MESSAGE_FIELDS)
batches = st.lists(messages, min_size=1, max_size=4, unique_by=lambda message: message.id)

PATCH_FIELDS = {name: MESSAGE_FIELDS[name] for name in MessagePatch.__annotations__}
patches = st.fixed_dictionaries({}, optional=PATCH_FIELDS)


def every_flag() -> Message:
    """One message in which no field has its default."""
    return Message(
        sender="agent",
        text="text",
        id="msg_full",
        content=(
            ContentPart("text", "look"),
            ContentPart("image", source=ContentSource("base64", "image/png", data="aGk=")),
            ContentPart(
                "document", source=ContentSource("url", "a/pdf", url="https://x"), name="n"
            ),
        ),
        tool_calls=(ToolCall("book", {"at": [1, 2.5, None]}, "call_1", {"sig": "x"}),),
        tool_results=(
            ToolResult(
                "book",
                "call_1",
                ToolResultData("error", {"a": 1}, "failed", {"r": 2}, "sum", {"g": 3}),
                12.5,
            ),
        ),
        playback="settled",
        heard="te",
        unheard="xt",
        interrupted=True,
        estimated=True,
        is_tool_results=True,
        is_compaction=True,
        is_compaction_request=True,
        is_skill_injection=True,
        pre_modified_text="before",
        reasoning_content="because",
        framework_context="history",
        context_id="clock",
        provider_options={"openai": {"id": "r_1"}},
    )
