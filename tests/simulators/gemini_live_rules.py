"""The shape of everything a client may send to the Gemini Live API, as one table.

A message is proto3 JSON: field names count in camel case and in snake case, mixed as you like,
bytes in either base64, and a field that is not in the table is refused by name. `read_message`
gives the message back with camel case names and real bytes; what a message may say at which moment
is not decided here. Source: protocols/gemini-live 2-4.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

Fields = dict[str, Any]
"""A message that passed: camel case names, values of the kinds in the table."""
Shape = Callable[[object, str], object]
"""Checks a value found at a place; gives it back in its normal form. Raises Refusal."""

INVALID, POLICY, INTERNAL = 1007, 1008, 1011


class Refusal(Exception):
    """The server closes with `code` and `reason`. `fault_of_client` off: a good client may meet it
    too (a handle that expired)."""

    def __init__(self, reason: str, code: int = INVALID, *, fault_of_client: bool = True) -> None:
        super().__init__(reason)
        self.reason = reason
        self.code = code
        self.fault_of_client = fault_of_client


def need(holds: object, reason: str, code: int = INVALID) -> None:
    """Raises Refusal unless `holds`."""
    if not holds:
        raise Refusal(reason, code)


def read_message(frame: str | bytes) -> tuple[str, Fields]:
    """(its one top-level key, the fields under it). Raises Refusal."""
    try:
        message = json.loads(frame)
    except ValueError as error:
        raise Refusal("Invalid JSON payload received. It cannot be parsed.") from error
    need(isinstance(message, dict), "Invalid JSON payload received. An object is wanted.")
    need(len(message) == 1, f"exactly one of {', '.join(MESSAGES)} in a message: {sorted(message)}")
    whole = _MESSAGE(message, "message")
    assert isinstance(whole, dict)
    need(whole, f"{next(iter(message))}: an object is wanted")
    kind, value = next(iter(whole.items()))
    return kind, value


def in_camel(name: str) -> str:
    """A field's name in camel case, from either spelling."""
    return re.sub(r"_([a-z])", lambda letter: letter[1].upper(), name)


def fields(known: Mapping[str, Shape], *required: str) -> Shape:
    """An object with these fields; null means that a field is absent."""

    def shape(value: object, place: str) -> object:
        need(isinstance(value, dict), f"{place}: an object is wanted")
        assert isinstance(value, dict)
        found: Fields = {}
        for name, inner in value.items():
            camel = in_camel(name)
            need(camel in known, f'Unknown name "{name}" at "{place}": Cannot find field.')
            need(camel not in found, f"{place}.{name}: given twice")
            if inner is not None:
                found[camel] = known[camel](inner, f"{place}.{camel}".removeprefix("message."))
        for name in required:
            need(name in found, f"{place}.{name}: missing")
        return found

    return shape


def many(shape: Shape) -> Shape:
    """A list of them."""

    def listed(value: object, place: str) -> object:
        need(isinstance(value, list), f"{place}: a list is wanted")
        assert isinstance(value, list)
        return [shape(one, f"{place}[{at}]") for at, one in enumerate(value)]

    return listed


def one_of(*names: str) -> Shape:
    """An enum's value."""

    def shape(value: object, place: str) -> object:
        need(value in names, f'{place}: Invalid value "{value}"')
        return value

    return shape


def text(value: object, place: str) -> object:
    need(isinstance(value, str), f"{place}: a string is wanted")
    return value


def flag(value: object, place: str) -> object:
    need(isinstance(value, bool), f"{place}: true or false is wanted")
    return value


def number(value: object, place: str) -> object:
    fine = isinstance(value, (int, float)) and not isinstance(value, bool)
    need(fine, f"{place}: a number is wanted")
    return value


def integer(value: object, place: str) -> object:
    """Int64 may come as a string."""
    digits = isinstance(value, str) and re.fullmatch(r"-?\d+", value)
    whole = isinstance(value, int) and not isinstance(value, bool)
    need(whole or digits, f"{place}: an integer is wanted")
    assert isinstance(value, (int, str))
    return int(value)


def struct(value: object, place: str) -> object:
    """Any object, its names untouched."""
    need(isinstance(value, dict), f"{place}: an object is wanted")
    return value


def raw(value: object, place: str) -> object:
    """Bytes in base64, of the standard or the URL-safe alphabet."""
    need(isinstance(value, str), f"{place}: base64 is wanted")
    try:
        return base64.b64decode(str(value).translate(_STANDARD), validate=True)
    except binascii.Error as error:
        raise Refusal(f"{place}: Base64 decoding failed") from error


_STANDARD = str.maketrans("-_", "+/")
EMPTY = fields({})
BLOB = fields({"mimeType": text, "data": raw}, "mimeType", "data")
FUNCTION_CALL = fields({"id": text, "name": text, "args": struct}, "name")
SCHEDULING = one_of("SILENT", "WHEN_IDLE", "INTERRUPT")
FUNCTION_RESPONSE = fields(
    {
        "id": text,
        "name": text,
        "response": struct,
        "scheduling": SCHEDULING,
        "willContinue": flag,
    },
    "name",
    "response",
)
PART = fields(
    {
        "text": text,
        "inlineData": BLOB,
        "functionCall": FUNCTION_CALL,
        "functionResponse": FUNCTION_RESPONSE,
        "thought": flag,
        "thoughtSignature": raw,
    }
)
CONTENT = fields({"role": text, "parts": many(PART)}, "parts")
BEHAVIOR = one_of("BLOCKING", "NON_BLOCKING")
FUNCTION = fields(
    {
        "name": text,
        "description": text,
        "behavior": BEHAVIOR,
        "parameters": struct,
        "parametersJsonSchema": struct,
        "response": struct,
        "responseJsonSchema": struct,
    },
    "name",
)
TOOL = fields(
    {
        "functionDeclarations": many(FUNCTION),
        "googleSearch": EMPTY,
        "codeExecution": EMPTY,
        "urlContext": EMPTY,
    }
)
VOICE = fields({"prebuiltVoiceConfig": fields({"voiceName": text}, "voiceName")})
GENERATION = fields(
    {
        "responseModalities": many(text),
        "temperature": number,
        "topP": number,
        "topK": number,
        "maxOutputTokens": integer,
        "seed": integer,
        "mediaResolution": one_of(
            "MEDIA_RESOLUTION_LOW", "MEDIA_RESOLUTION_MEDIUM", "MEDIA_RESOLUTION_HIGH"
        ),
        "speechConfig": fields({"voiceConfig": VOICE, "languageCode": text}),
        "thinkingConfig": fields(
            {
                "thinkingBudget": integer,
                "thinkingLevel": one_of("MINIMAL", "LOW", "MEDIUM", "HIGH"),
                "includeThoughts": flag,
            }
        ),
        "enableAffectiveDialog": flag,
    }
)
TRANSCRIPTION = fields(
    {
        "languageCodes": many(text),
        "customVocabulary": many(text),
        "wordTimestamp": flag,
        "diarization": flag,
        "mode": one_of("VERBATIM", "SMART"),
    }
)
DETECTION = fields(
    {
        "disabled": flag,
        "startOfSpeechSensitivity": one_of("START_SENSITIVITY_HIGH", "START_SENSITIVITY_LOW"),
        "endOfSpeechSensitivity": one_of("END_SENSITIVITY_HIGH", "END_SENSITIVITY_LOW"),
        "prefixPaddingMs": integer,
        "silenceDurationMs": integer,
    }
)
REALTIME_CONFIG = fields(
    {
        "automaticActivityDetection": DETECTION,
        "activityHandling": one_of("START_OF_ACTIVITY_INTERRUPTS", "NO_INTERRUPTION"),
        "turnCoverage": one_of(
            "TURN_INCLUDES_ONLY_ACTIVITY",
            "TURN_INCLUDES_ALL_INPUT",
            "TURN_INCLUDES_AUDIO_ACTIVITY_AND_ALL_VIDEO",
        ),
    }
)
SETUP = fields(
    {
        "model": text,
        "generationConfig": GENERATION,
        "systemInstruction": CONTENT,
        "tools": many(TOOL),
        "realtimeInputConfig": REALTIME_CONFIG,
        "inputAudioTranscription": TRANSCRIPTION,
        "outputAudioTranscription": TRANSCRIPTION,
        "sessionResumption": fields({"handle": text, "transparent": flag}),
        "contextWindowCompression": fields(
            {"triggerTokens": integer, "slidingWindow": fields({"targetTokens": integer})}
        ),
        "proactivity": fields({"proactiveAudio": flag}),
        "historyConfig": fields({"initialHistoryInClientContent": flag}),
        "explicitVadSignal": flag,
        "safetySettings": many(fields({"category": text, "threshold": text, "method": text})),
        "labels": struct,
    },
    "model",
)
REALTIME_INPUT = fields(
    {
        "audio": BLOB,
        "video": BLOB,
        "text": text,
        "mediaChunks": many(BLOB),
        "activityStart": EMPTY,
        "activityEnd": EMPTY,
        "audioStreamEnd": flag,
    }
)
MESSAGES: dict[str, Shape] = {
    "setup": SETUP,
    "clientContent": fields({"turns": many(CONTENT), "turnComplete": flag}),
    "realtimeInput": REALTIME_INPUT,
    "toolResponse": fields({"functionResponses": many(FUNCTION_RESPONSE)}, "functionResponses"),
    "contextUpdate": fields(
        {"systemInstruction": CONTENT, "tools": fields({"tools": many(TOOL)}, "tools")}
    ),
}
_MESSAGE = fields(MESSAGES)
