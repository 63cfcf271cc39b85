"""Our values in the form of OpenAI Realtime: sessions, tools, history as items of a conversation.

Pure functions and the names of tools. Nothing here knows what the provider holds already.
Source: protocols/openai-realtime 3, 4.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import NoReturn

from ...core.encoding import json_bytes
from ...core.messages import MEDIA_ONLY, ContentPart, Message, result_text
from ...core.model import ToolSpec
from ...core.view import paired_results
from ..port import Setup
from .openai_config import OpenAIRealtimeConfig, SemanticVad
from .openai_frames import RATE
from .reading import Json

IMAGES = frozenset({"image/png", "image/jpeg", "image/webp", "image/gif"})
SUMMARY = "Summary of the conversation so far:"
DIGEST_CHARS = 8
NAME_CHARS = 64
CALL_ID_CHARS = 32


class ToolNames:
    """Names of tools as the wire takes them, and the way back. A name that was shown once is known
    for as long as the connection: its call may still come."""

    def __init__(self) -> None:
        self._ours: dict[str, str] = {}

    def show(self, tools: Sequence[ToolSpec]) -> list[Json]:
        """The tools as a session holds them."""
        self._ours |= {wire_word(tool.name, NAME_CHARS): tool.name for tool in tools}
        return [
            {
                "type": "function",
                "name": wire_word(tool.name, NAME_CHARS),
                "description": tool.description,
                "parameters": {"type": "object", "properties": {}, **tool.parameters},
            }
            for tool in tools
        ]

    def ours(self, name: str) -> str:
        """Our name; one that nobody was shown stays what it is."""
        return self._ours.get(name, name)


def wire_word(word: str, longest: int) -> str:
    """`word` if the wire takes it, else a readable one with a digest that keeps it unique."""
    if re.fullmatch(rf"[A-Za-z0-9_-]{{1,{longest}}}", word):
        return word
    digest = sha256(word.encode(errors="surrogatepass")).hexdigest()[:DIGEST_CHARS]
    readable = re.sub(r"[^A-Za-z0-9_-]+", "_", word)[: longest - DIGEST_CHARS - 1]
    return f"{readable}_{digest}"


def session_fields(
    config: OpenAIRealtimeConfig, setup: Setup, tools: list[Json]
) -> dict[str, object]:
    """The session that a connection begins with; the model is in the address."""
    pcm = {"type": "audio/pcm", "rate": RATE}
    voice: object = {"id": config.voice} if config.voice.startswith("voice_") else config.voice
    speed = {} if config.speed is None else {"speed": config.speed}
    audio: dict[str, object] = {
        "input": {
            "format": pcm,
            "noise_reduction": config.noise_reduction and {"type": config.noise_reduction},
            "transcription": _transcription(config),
            "turn_detection": _turn_detection(config, setup),
        }
    }
    if not config.text_only:
        audio["output"] = {"format": pcm, "voice": voice, **speed}
    fields: dict[str, object] = {
        "type": "realtime",
        "output_modalities": ["text" if config.text_only else "audio"],
        "instructions": setup.instructions,
        "audio": audio,
        "tools": tools,
        "max_output_tokens": config.max_output_tokens or "inf",
        "truncation": _truncation(config),
    }
    if config.reasoning_effort is not None:
        fields["reasoning"] = {"effort": config.reasoning_effort}
    if config.parallel_tool_calls is not None:
        fields["parallel_tool_calls"] = config.parallel_tool_calls
    return fields


def is_manual(config: OpenAIRealtimeConfig, setup: Setup) -> bool:
    """Whether our side ends turns."""
    return setup.manual_turns or config.turn_detection == "manual"


def _turn_detection(config: OpenAIRealtimeConfig, setup: Setup) -> object:
    vad = config.turn_detection
    if setup.manual_turns or isinstance(vad, str):
        return None
    common = {"create_response": True, "interrupt_response": setup.interruption}
    if isinstance(vad, SemanticVad):
        return {"type": "semantic_vad", "eagerness": vad.eagerness, **common}
    return {
        "type": "server_vad",
        "threshold": vad.threshold,
        "prefix_padding_ms": vad.prefix_padding_ms,
        "silence_duration_ms": vad.silence_duration_ms,
        "idle_timeout_ms": vad.idle_timeout_ms,
        **common,
    }


def _transcription(config: OpenAIRealtimeConfig) -> object:
    if config.transcription is None:
        return None
    more = {"language": config.language, "prompt": config.transcription_prompt}
    return {"model": config.transcription, **{key: value for key, value in more.items() if value}}


def _truncation(config: OpenAIRealtimeConfig) -> object:
    share = config.truncation
    if isinstance(share, str):
        return share
    return {"type": "retention_ratio", "retention_ratio": share}


def history_items(messages: Sequence[Message]) -> Iterator[Json]:
    """The items that stand for a model's view of history, in order."""
    for message in paired_results(messages):
        if message.tool_results:
            for result in message.tool_results:
                yield output_item(_call_id(result.call_id), result_text(result.result))
        elif message.sender == "agent":
            yield from _agent_items(message)
        elif message.is_user_turn:
            content = list(_user_content(message))
            if content:
                yield {"type": "message", "role": "user", "content": content}
        elif message.text.strip():
            head = f"{SUMMARY}\n" if message.is_compaction else ""
            yield system_item(f"{head}{message.text}")


def _agent_items(message: Message) -> Iterator[Json]:
    said = message.text
    if said.strip():
        content = [{"type": "output_text", "text": said}]
        yield {"type": "message", "role": "assistant", "content": content}
    for call in message.tool_calls:
        yield {
            "type": "function_call",
            "call_id": _call_id(call.id),
            "name": wire_word(call.tool_name, NAME_CHARS),
            "arguments": arguments_text(call.input_args),
        }


def _call_id(call_id: str) -> str:
    """Ids of calls may be another vendor's, and longer than this one takes."""
    return wire_word(call_id, CALL_ID_CHARS)


def _user_content(message: Message) -> Iterator[Json]:
    texts = any(part.type == "text" for part in message.content)
    if message.text.strip() and not texts and not (message.content and message.text == MEDIA_ONLY):
        yield {"type": "input_text", "text": message.text}
    for part in message.content:
        url = _image_url(part)
        if url is not None:
            yield image_part(url)
        elif part.type != "text":
            named = " ".join(word for word in (part.type, part.name) if word)
            yield {"type": "input_text", "text": f"[{named} cannot be shown here]"}
        elif part.text and part.text.strip():
            yield {"type": "input_text", "text": part.text}


def _image_url(part: ContentPart) -> str | None:
    """Only data: this wire fetches no addresses."""
    source = part.source
    if part.type != "image" or source is None:
        return None
    if source.type == "url":
        return source.url if (source.url or "").startswith("data:image/") else None
    known = source.media_type in IMAGES and source.data
    return f"data:{source.media_type};base64,{source.data}" if known else None


def image_url(data: bytes, mime: str) -> str:
    """A picture as an address that holds it."""
    return f"data:{mime};base64,{base64.b64encode(data).decode()}"


def image_part(url: str) -> Json:
    """A picture as a part of a user's message."""
    return {"type": "input_image", "image_url": url}


def user_item(*content: Json) -> Json:
    """A message of the user."""
    return {"type": "message", "role": "user", "content": list(content)}


def text_part(text: str) -> Json:
    """Typed words as a part of a user's message."""
    return {"type": "input_text", "text": text}


def system_item(text: str) -> Json:
    """Something the model should know that nobody said."""
    return {"type": "message", "role": "system", "content": [text_part(text)]}


def output_item(call_id: str, text: str) -> Json:
    """The result of a call."""
    return {"type": "function_call_output", "call_id": call_id, "output": text}


def parsed_arguments(raw: str) -> object:
    """A call's arguments as a dict, or the raw text when it is no JSON object: the tool's
    validation refuses that, and the model reads its own mistake."""
    if not raw.strip():
        return {}
    try:
        value = json.loads(raw, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return raw
    return value if isinstance(value, dict) else raw


def arguments_text(arguments: object) -> str:
    """Arguments of a stored call as the JSON text of an object."""
    if isinstance(arguments, str):
        arguments = parsed_arguments(arguments)
    given = dict(arguments) if isinstance(arguments, Mapping) else {"arguments": arguments}
    return json_bytes(given).decode()


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON")
