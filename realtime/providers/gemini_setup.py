"""What a Gemini Live connection begins with: the setup message, its tools, and the history.

Pure. History is text: the wire's own calls and results belong to the connection that made them,
and in another one they are refused or imitated. Source: protocols/gemini-live 3, 4, 7, 9.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Literal

from ...core.encoding import whole_text
from ...core.messages import MEDIA_ONLY, Message, result_text
from ...core.model import ToolSpec
from ..commands import RequestResponse
from ..port import Setup
from .gemini_config import GeminiLiveConfig, TurnCoverage
from .gemini_schema import gemini_schema
from .reading import Json

NOTE = "[Note of the system, not said by the user. Do not answer it.]"
"""Stands before what the model should only know: this wire has no role but user and model."""
ASKED = "[Instruction of the system, not said by the user.]"
"""Stands before what it should do now."""
GO_ON = "Speak now."
VERBATIM = "Say the following word for word, and nothing else:"
WAIT = "The conversation above is over. Wait until the user speaks."
"""Ends a history that must end with the user's turn."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
_DIGEST = 8
_COVERAGE: dict[TurnCoverage, str] = {
    "activity": "TURN_INCLUDES_ONLY_ACTIVITY",
    "all_input": "TURN_INCLUDES_ALL_INPUT",
    "activity_and_all_video": "TURN_INCLUDES_AUDIO_ACTIVITY_AND_ALL_VIDEO",
}


def setup_message(config: GeminiLiveConfig, setup: Setup) -> Json:
    """The fields of `setup`, camel case, nothing that this model refuses."""
    model = config.model if "/" in config.model else f"models/{config.model}"
    listening = {"languageCodes": list(config.transcription_languages)}
    handle = {"handle": setup.resume_handle} if setup.resume_handle else {}
    message: dict[str, object] = {
        "model": model,
        "generationConfig": _generation_config(config),
        "inputAudioTranscription": listening if config.transcription_languages else {},
        "outputAudioTranscription": {},
        "sessionResumption": handle,
    }
    if setup.instructions.strip():
        message["systemInstruction"] = instructions(setup.instructions)
    tools = declared_tools(config, setup.tools)
    realtime = _realtime_config(config, setup)
    message |= {"tools": tools} if tools else {}
    message |= {"realtimeInputConfig": realtime} if realtime else {}
    if config.compression_trigger_tokens is not None:
        message["contextWindowCompression"] = {
            "triggerTokens": str(config.compression_trigger_tokens),
            "slidingWindow": {"targetTokens": str(config.target_tokens)},
        }
    if config.proactive_audio is not None:
        message["proactivity"] = {"proactiveAudio": config.proactive_audio}
    if _seeds(config, setup):
        message["historyConfig"] = {"initialHistoryInClientContent": True}
    return message


def history_message(config: GeminiLiveConfig, setup: Setup) -> Json | None:
    """The fields of the `clientContent` that follows; None where nothing is to be told.

    It is never answered: a model that was told to expect a history reads it up to turnComplete;
    another one waits for more.
    """
    turns = _merged(_turns(setup.history))
    if not turns:
        return None
    if config.generation.user_last and turns[-1][0] == "model":
        turns.append(("user", [f"{NOTE} {WAIT}"]))
    contents = [content(role, *texts) for role, texts in turns]
    return {"turns": contents, "turnComplete": _seeds(config, setup)}


def content(role: Literal["user", "model"], *texts: str) -> Json:
    """A turn of texts."""
    return {"role": role, "parts": [{"text": whole_text(text)} for text in texts]}


def instructions(text: str) -> Json:
    """A system instruction."""
    return content("user", text)


def instruction(command: RequestResponse) -> str:
    """The text of a request; empty asks for whatever comes next."""
    said = command.instruction.strip()
    if not said:
        return f"{ASKED} {GO_ON}"
    return f"{ASKED} {VERBATIM}\n{said}" if command.verbatim else f"{ASKED} {said}"


def declared_tools(config: GeminiLiveConfig, tools: Sequence[ToolSpec]) -> list[Json]:
    """The list of tools, functions first; empty where there are none."""
    functions = [_declared(config, tool) for tool in tools]
    listed: list[Json] = [{"functionDeclarations": functions}] if functions else []
    return [*listed, {"googleSearch": {}}] if config.google_search else listed


def wire_name(name: str) -> str:
    """A tool's name as this wire takes it: the name, or a readable one with a digest of it."""
    if _NAME.fullmatch(name):
        return name
    digest = sha256(name.encode(errors="surrogatepass")).hexdigest()[:_DIGEST]
    readable = re.sub(r"[^A-Za-z0-9_.-]+", "_", name)
    return f"_{readable[: 64 - _DIGEST - 2]}_{digest}"


def _seeds(config: GeminiLiveConfig, setup: Setup) -> bool:
    """Whether the history goes in as such. After a handle only where nothing else is taken."""
    facts = config.generation
    later = setup.resume_handle is not None and facts.content_any_time
    return facts.history_config and not later and bool(_merged(_turns(setup.history)))


def _generation_config(config: GeminiLiveConfig) -> Json:
    speech: dict[str, object] = {
        "voiceConfig": {"prebuiltVoiceConfig": {"voiceName": config.voice}}
    }
    speech |= {"languageCode": config.language} if config.language else {}
    out: dict[str, object] = {"responseModalities": ["AUDIO"], "speechConfig": speech}
    if config.temperature is not None:
        out["temperature"] = config.temperature
    if config.max_output_tokens is not None:
        out["maxOutputTokens"] = config.max_output_tokens
    if config.thinking_budget is not None:
        out["thinkingConfig"] = {"thinkingBudget": config.thinking_budget}
    if config.thinking_level is not None:
        out["thinkingConfig"] = {"thinkingLevel": config.thinking_level.upper()}
    if config.affective_dialog:
        out["enableAffectiveDialog"] = True
    return out


def _realtime_config(config: GeminiLiveConfig, setup: Setup) -> Json:
    detection: dict[str, object] = {}
    if setup.manual_turns:
        detection["disabled"] = True
    else:
        if config.start_sensitivity is not None:
            sensitivity = f"START_SENSITIVITY_{config.start_sensitivity.upper()}"
            detection["startOfSpeechSensitivity"] = sensitivity
        if config.end_sensitivity is not None:
            sensitivity = f"END_SENSITIVITY_{config.end_sensitivity.upper()}"
            detection["endOfSpeechSensitivity"] = sensitivity
        if config.prefix_padding_ms is not None:
            detection["prefixPaddingMs"] = config.prefix_padding_ms
        if config.silence_duration_ms is not None:
            detection["silenceDurationMs"] = config.silence_duration_ms
    out: dict[str, object] = {"automaticActivityDetection": detection} if detection else {}
    if not setup.interruption:
        out["activityHandling"] = "NO_INTERRUPTION"
    if config.turn_coverage is not None:
        out["turnCoverage"] = _COVERAGE[config.turn_coverage]
    return out


def _declared(config: GeminiLiveConfig, tool: ToolSpec) -> Json:
    """A function; its behaviour is said only where the model would do otherwise."""
    out: dict[str, object] = {
        "name": wire_name(tool.name),
        "description": whole_text(tool.description),
    }
    schema = gemini_schema(tool.parameters)
    out |= {} if schema is None else {"parameters": schema}
    usual = config.behavior == config.generation.behavior
    return out if usual else {**out, "behavior": config.behavior}


Turn = tuple[Literal["user", "model"], list[str]]


def _turns(history: Sequence[Message]) -> Iterator[Turn]:
    """Whatever of the history has words."""
    asked: dict[str, str] = {}
    for message in history:
        asked |= {call.id: _json(call.input_args) for call in message.tool_calls}
        for result in message.tool_results:
            given = asked.get(result.call_id, "{}")
            told = result_text(result.result)
            yield "user", [f"{NOTE} Tool {result.tool_name} was used with {given}. Result: {told}"]
        said = _said(message)
        if said and not message.tool_results:
            yield "model" if message.sender == "agent" else "user", [said]


def _said(message: Message) -> str:
    """The text of a message; pictures of earlier turns are not shown again."""
    parts = [part.text for part in message.content if part.type == "text" and part.text]
    text = "\n".join(parts) if parts else message.text
    plain = "" if text == MEDIA_ONLY else text
    return plain.strip()


def _merged(turns: Iterator[Turn]) -> list[Turn]:
    """Turns of one role in a row are one."""
    out: list[Turn] = []
    for role, texts in turns:
        if out and out[-1][0] == role:
            out[-1][1].extend(texts)
        else:
            out.append((role, list(texts)))
    return out


def _json(value: object) -> str:
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return "{…}"
