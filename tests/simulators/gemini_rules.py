"""What Gemini's generateContent refuses, as checks over one request body.

A field that is not listed is refused. Field names count in both spellings, as in the JSON form of
any protocol buffer: the SDK mixes them. Source: protocols/chat-models 4; `google-genai` types.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence

from tests.simulators.sse import Json, need

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
FIELDS = {"contents", "systemInstruction", "tools", "toolConfig", "generationConfig"} | {
    "safetySettings",
    "continuationToken",
}
GENERATION = {"temperature", "maxOutputTokens", "thinkingConfig", "topP", "topK"}
KINDS = {"text", "functionCall", "functionResponse", "inlineData", "fileData"}
SCHEMA = {"$id", "$defs", "$ref", "$anchor", "type", "format", "title", "description", "enum"} | {
    "items",
    "prefixItems",
    "minItems",
    "maxItems",
    "minimum",
    "maximum",
    "anyOf",
    "oneOf",
    "properties",
    "additionalProperties",
    "required",
    "propertyOrdering",
}
MEDIA = re.compile(r"image/(png|jpeg|webp|heic|heif)|video/\w+|application/pdf|text/plain")
FOREIGN = base64.urlsafe_b64decode("skip_thought_signature_validator")


def check_body(body: Json) -> None:
    """Raises Refused. Signatures are the simulator's business."""
    need(not set(body) - FIELDS, f"Unknown name {sorted(set(body) - FIELDS)}: Cannot find field.")
    if "systemInstruction" in body:
        system = body["systemInstruction"]
        assert isinstance(system, dict)
        need(all(set(part) == {"text"} and part["text"].strip() for part in system["parts"]), "sys")
    generation = body.get("generationConfig", {})
    assert isinstance(generation, dict)
    need(not set(generation) - GENERATION, f"generationConfig: {sorted(generation)}")
    _check_thinking(generation.get("thinkingConfig", {}))
    _check_tools(body.get("tools", []))
    check_contents(contents_of(body))


def contents_of(body: Json) -> list[tuple[str, list[Json]]]:
    """(role, parts) of every content, fields in camel case."""
    contents = body.get("contents")
    need(isinstance(contents, list) and contents, "contents is not specified")
    assert isinstance(contents, list)
    out: list[tuple[str, list[Json]]] = []
    for at, content in enumerate(contents):
        need(set(content) == {"role", "parts"}, f"contents[{at}]: Cannot find field.")
        need(content["role"] in ("user", "model"), f"contents[{at}].role: user or model")
        need(content["parts"], f"contents[{at}].parts: must not be empty")
        out.append((content["role"], [camel(part) for part in content["parts"]]))
    return out


def camel(fields: Json) -> Json:
    """Field names in camel case, one level deep."""
    return {re.sub(r"_(\w)", lambda m: m[1].upper(), key): value for key, value in fields.items()}


def raw_bytes(value: object) -> bytes:
    """Base64 in either alphabet."""
    text = str(value).replace("-", "+").replace("_", "/")
    return base64.b64decode(text, validate=True)


def check_contents(contents: Sequence[tuple[str, list[Json]]]) -> None:
    need(contents[0][0] == "user", "contents: must begin with a user turn")
    need(contents[-1][0] == "user", "contents: must end with a user role")
    asked: list[Json] = []
    before = ""
    for at, (role, parts) in enumerate(contents):
        for part in parts:
            _check_part(f"contents[{at}]", part, role)
        answers = [camel(_dict(p["functionResponse"])) for p in parts if "functionResponse" in p]
        _check_answers(f"contents[{at}]", asked, answers, len(parts))
        kind = "answers" if answers else role
        apart = kind != before or kind == "answers"
        need(apart, f"contents[{at}]: two {kind} contents in a row")
        need(role == "user" or before != "model", "model turns must follow user turns")
        asked = [_dict(part["functionCall"]) for part in parts if "functionCall" in part]
        before = kind
    need(not asked, "function calls without function responses")


def _check_part(place: str, part: Json, role: str) -> None:
    kinds = set(part) & KINDS
    need(len(kinds) == 1, f"{place}: exactly one of {sorted(KINDS)}")
    unknown = set(part) - KINDS - {"thought", "thoughtSignature"}
    need(not unknown, f"{place}: Unknown name {sorted(unknown)}")
    kind = kinds.pop()
    if "thoughtSignature" in part:
        need(raw_bytes(part["thoughtSignature"]), f"{place}: empty signature")
        need(role == "model", f"{place}: a user's part has no signature")
    match kind:
        case "text":
            signed = "thoughtSignature" in part
            need(signed or str(part["text"]).strip(), f"{place}: text must not be blank")
        case "functionCall":
            need(role == "model", f"{place}: the model calls, not the user")
            call = _dict(part[kind])
            need(not set(call) - {"id", "name", "args"}, f"{place}: {sorted(call)}")
            need(NAME.fullmatch(str(call.get("name"))), f"{place}: Invalid function name")
            need(isinstance(call.get("args", {}), dict), f"{place}: args is a struct")
        case "functionResponse":
            need(role == "user", f"{place}: the user answers, not the model")
        case _:
            _check_media(place, camel(_dict(part[kind])), role)


def _check_media(place: str, media: Json, role: str) -> None:
    need(role == "user", f"{place}: a model sends no media")
    need(MEDIA.fullmatch(str(media.get("mimeType"))), f"{place}: Unsupported MIME type")
    if "data" in media:
        need(set(media) == {"data", "mimeType"}, f"{place}: {sorted(media)}")
        need(raw_bytes(media["data"]), f"{place}: no data")
    else:
        need(set(media) == {"fileUri", "mimeType"}, f"{place}: {sorted(media)}")


def _check_answers(place: str, asked: list[Json], answers: list[Json], parts: int) -> None:
    need(len(answers) == len(asked), f"{place}: the number of function response parts is not equal")
    need(not answers or parts == len(answers), f"{place}: results stand alone")
    for call, answer in zip(asked, answers, strict=True):
        need(not set(answer) - {"id", "name", "response"}, f"{place}: {sorted(answer)}")
        need(answer.get("name") == call["name"], f"{place}: results in the order of their calls")
        need(answer.get("id") == call.get("id"), f"{place}: the id of a result is its call's")
        need(isinstance(answer.get("response"), dict), f"{place}: response is a struct")


def _check_thinking(thinking: object) -> None:
    fields = camel(_dict(thinking))
    known = {"thinkingBudget", "thinkingLevel", "includeThoughts"}
    need(not set(fields) - known, f"thinkingConfig: {sorted(fields)}")
    need(len(set(fields) & {"thinkingBudget", "thinkingLevel"}) < 2, "level or budget, not both")


def _check_tools(tools: object) -> None:
    assert isinstance(tools, list)
    names: set[str] = set()
    for tool in tools:
        need(set(tool) == {"functionDeclarations"}, f"tools: {sorted(tool)}")
        for declared in map(camel, tool["functionDeclarations"]):
            known = {"name", "description", "parametersJsonSchema"}
            need(not set(declared) - known, f"functionDeclarations: {sorted(declared)}")
            name = str(declared.get("name"))
            need(NAME.fullmatch(name), f"Invalid function name {name!r}")
            need(name not in names, f"Duplicate function declaration {name}")
            names.add(name)
            if "parametersJsonSchema" in declared:
                schema = _dict(declared["parametersJsonSchema"])
                need(schema.get("type") == "object" and schema.get("properties"), f"{name}: object")
                _check_schema(name, schema)


def _check_schema(place: str, schema: object) -> None:
    if not isinstance(schema, dict):
        need(isinstance(schema, bool), f"{place}: a schema is an object")
        return
    need(not set(schema) - SCHEMA, f"{place}: Unknown name {sorted(set(schema) - SCHEMA)}")
    beside = {key for key in schema if not key.startswith("$")}
    need("$ref" not in schema or not beside, f"{place}: {sorted(beside)} beside $ref")
    for choice in schema.get("enum", []):
        plain = isinstance(choice, (str, int, float)) and not isinstance(choice, bool)
        need(plain, f"{place}.enum: strings and numbers")
    for key in ("items", "additionalProperties"):
        if key in schema:
            _check_schema(f"{place}.{key}", schema[key])
    for key in ("anyOf", "oneOf", "prefixItems"):
        for one in schema.get(key, []):
            _check_schema(f"{place}.{key}", one)
    for key in ("properties", "$defs"):
        for name, one in schema.get(key, {}).items():
            _check_schema(f"{place}.{name}", one)


def _dict(value: object) -> Json:
    need(isinstance(value, dict), "a struct is wanted")
    assert isinstance(value, dict)
    return value
