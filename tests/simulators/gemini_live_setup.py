"""What a setup, its tools and its contents may say: the rules behind the shape.

The generations of models differ; a rule that holds for one of them stands in `Generation`. Source:
protocols/gemini-live 3, 4 and 9.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from tests.simulators.gemini_live_rules import POLICY, Fields, in_camel, need

GenerationName = Literal["3.8", "3.1", "2.5"]
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,63}")
TYPES = ("STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL")
OPEN_API = frozenset(
    {"type", "format", "title", "description", "nullable", "enum", "items", "minItems"}
    | {"maxItems", "properties", "required", "minProperties", "maxProperties", "minLength"}
    | {"maxLength", "pattern", "minimum", "maximum", "example", "default", "anyOf"}
    | {"propertyOrdering"}
)
JSON_SCHEMA = frozenset(
    {"$id", "$defs", "$ref", "$anchor", "type", "format", "title", "description", "enum", "items"}
    | {"prefixItems", "minItems", "maxItems", "minimum", "maximum", "anyOf", "oneOf"}
    | {"properties", "additionalProperties", "required", "propertyOrdering"}
)
LISTS = ("enum", "anyOf", "oneOf", "prefixItems", "required", "propertyOrdering")
FORMATS = {
    "STRING": ("enum", "date-time"),
    "NUMBER": ("float", "double"),
    "INTEGER": ("int32", "int64"),
}
IMAGES = {"image/jpeg": b"\xff\xd8", "image/png": b"\x89PNG", "image/webp": b"RIFF"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """What differs between the models.

    models            it serves
    text_models       those that answer in text as well
    blocks            a function that says nothing blocks
    context_updates   takes contextUpdate
    talks_by_content  takes clientContent after the initial history
    needs_role        a content without a role is refused
    ends_with_user    clientContent must end with a turn of the user
    takes_chunks      takes the deprecated mediaChunks
    says_idle         tells with turnComplete whether anything is still to come
    bundles           one serverContent may hold sound and words, and setupComplete a session id
    """

    models: tuple[str, ...]
    text_models: tuple[str, ...] = ()
    blocks: bool = True
    context_updates: bool = False
    talks_by_content: bool = True
    needs_role: bool = True
    ends_with_user: bool = False
    takes_chunks: bool = True
    says_idle: bool = False
    bundles: bool = True


GENERATIONS: dict[GenerationName, Generation] = {
    "3.8": Generation(
        models=("gemini-3.8-live", "gemini-3.8-live-extended-thinking"),
        blocks=False,
        context_updates=True,
        says_idle=True,
    ),
    "3.1": Generation(
        models=("gemini-3.1-flash-live-preview",), talks_by_content=False, takes_chunks=False
    ),
    "2.5": Generation(
        models=(
            "gemini-2.5-flash-native-audio-preview-12-2025",
            "gemini-live-2.5-flash-native-audio",
            "gemini-live-2.5-flash-preview",
        ),
        text_models=("gemini-live-2.5-flash-preview",),
        needs_role=False,
        ends_with_user=True,
        bundles=False,
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a setup asked for. `tools` says of each function whether it blocks; `silence_ms` None
    leaves it to the server; `seeds`: the first clientContent is history."""

    model: str
    instructions: str
    tools: Mapping[str, bool]
    text_only: bool
    manual: bool
    interrupts: bool
    silence_ms: int | None
    words_in: bool
    words_out: bool
    resumes: bool
    handle: str
    compresses: bool
    seeds: bool


def read_setup(setup: Fields, name: GenerationName) -> Terms:
    """Raises Refusal."""
    generation = GENERATIONS[name]
    model = str(setup["model"])
    bare = model.removeprefix("models/")
    known = model.startswith("models/") and bare in generation.models
    need(known, f"{model} is not found, or is not supported for bidiGenerateContent.", POLICY)
    text_only = _check_generation(setup.get("generationConfig", {}), bare, generation)
    if name == "3.8":
        _check_newest(setup, bare)
    resumption = setup.get("sessionResumption")
    need("transparent" not in (resumption or {}), "sessionResumption.transparent: Vertex only")
    need((resumption or {}).get("handle") != "", "sessionResumption.handle: empty")
    _check_compression(setup.get("contextWindowCompression"))
    listening = setup.get("realtimeInputConfig", {})
    detection = listening.get("automaticActivityDetection", {})
    for field in ("silenceDurationMs", "prefixPaddingMs"):
        need(detection.get(field, 0) >= 0, f"automaticActivityDetection.{field}: negative")
    return Terms(
        model=bare,
        instructions=read_instructions(setup),
        tools=read_tools(setup.get("tools", []), generation),
        text_only=text_only,
        manual=detection.get("disabled", False),
        interrupts=listening.get("activityHandling") != "NO_INTERRUPTION",
        silence_ms=detection.get("silenceDurationMs"),
        words_in="inputAudioTranscription" in setup,
        words_out="outputAudioTranscription" in setup,
        resumes=resumption is not None,
        handle=(resumption or {}).get("handle", ""),
        compresses="contextWindowCompression" in setup,
        seeds=setup.get("historyConfig", {}).get("initialHistoryInClientContent", False),
    )


def _check_generation(config: Fields, model: str, generation: Generation) -> bool:
    """Whether it answers in text."""
    modalities = config.get("responseModalities", ["AUDIO"])
    need(len(modalities) == 1, "generationConfig.responseModalities: exactly one")
    need(modalities[0] in ("AUDIO", "TEXT"), f"responseModalities: Invalid value {modalities[0]!r}")
    text_only = bool(modalities == ["TEXT"])
    possible = not text_only or model in generation.text_models
    need(possible, f"responseModalities: TEXT is not supported by {model}")
    thinking = config.get("thinkingConfig", {})
    both = {"thinkingBudget", "thinkingLevel"} <= set(thinking)
    need(not both, "thinkingConfig: thinkingBudget or thinkingLevel, not both")
    return text_only


def _check_newest(setup: Fields, model: str) -> None:
    config = setup.get("generationConfig", {})
    level = "thinkingLevel" in config.get("thinkingConfig", {}) and model == "gemini-3.8-live"
    need(not level, f"thinkingConfig.thinkingLevel is not supported by {model}")
    affective = "enableAffectiveDialog" in config
    need(not affective, f"generationConfig.enableAffectiveDialog is not supported by {model}")
    proactive = setup.get("proactivity", {}).get("proactiveAudio", True)
    need(proactive, f"proactivity.proactiveAudio cannot be false with {model}")


def _check_compression(compression: Fields | None) -> None:
    if compression is None:
        return
    need("slidingWindow" in compression, "contextWindowCompression.slidingWindow: missing")
    trigger = compression.get("triggerTokens")
    target = compression["slidingWindow"].get("targetTokens")
    smaller = trigger is None or target is None or target < trigger
    need(smaller, "slidingWindow.targetTokens: must be less than triggerTokens")


def read_instructions(holder: Fields) -> str:
    """The text of `systemInstruction`, "" where there is none. Raises Refusal."""
    content = holder.get("systemInstruction")
    if content is None:
        return ""
    need(content.get("role", "user") in ("user", "system"), "systemInstruction.role: user")
    only_text = content["parts"] and all(set(part) == {"text"} for part in content["parts"])
    need(only_text, "systemInstruction.parts: text parts only")
    return "\n".join(part["text"] for part in content["parts"])


def read_tools(tools: Sequence[Fields], generation: Generation) -> dict[str, bool]:
    """Whether each function blocks. Raises Refusal."""
    blocking: dict[str, bool] = {}
    for tool in tools:
        need(len(tool) == 1, f"tools: one kind in each: {sorted(tool)}")
        for function in tool.get("functionDeclarations", []):
            name = function["name"]
            need(NAME.fullmatch(name), f"functionDeclarations.name: Invalid function name {name!r}")
            need(name not in blocking, f"Duplicate function declaration {name}")
            both = {"parameters", "parametersJsonSchema"} <= set(function)
            need(not both, f"{name}: parameters or parametersJsonSchema, not both")
            if "parameters" in function:
                _check_parameters(f"{name}.parameters", function["parameters"])
            if "parametersJsonSchema" in function:
                _check_json_schema(f"{name}.parametersJsonSchema", function["parametersJsonSchema"])
            behavior = function.get("behavior")
            blocking[name] = generation.blocks if behavior is None else behavior == "BLOCKING"
    return blocking


def _check_parameters(place: str, schema: Fields) -> None:
    need(schema.get("type") == "OBJECT", f"{place}.type: OBJECT is wanted")
    need(schema.get("properties"), f"{place}.properties: should be non-empty for OBJECT type")
    check_schema(place, schema)


def check_schema(place: str, schema: object) -> None:
    """The OpenAPI subset: capital types, listed keys only. Raises Refusal."""
    need(isinstance(schema, dict), f"{place}: a schema is an object")
    assert isinstance(schema, dict)
    schema = {in_camel(key): value for key, value in schema.items()}
    for key in schema:
        need(key in OPEN_API, f'Unknown name "{key}" at "{place}": Cannot find field.')
    _check_containers(place, schema)
    kind = schema.get("type")
    need(kind in TYPES or ("anyOf" in schema and kind is None), f'{place}.type: Invalid "{kind}"')
    if "enum" in schema:
        choices = schema["enum"]
        strings = kind == "STRING" and choices and all(isinstance(one, str) for one in choices)
        need(strings and "" not in choices, f"{place}.enum: non-empty strings of a STRING")
    if "format" in schema:
        fits = schema["format"] in FORMATS.get(str(kind), ())
        need(fits, f"{place}.format: {schema['format']!r} is not supported for {kind}")
    need(isinstance(schema.get("nullable", False), bool), f"{place}.nullable: true or false")
    need(kind != "ARRAY" or "items" in schema, f"{place}.items: missing field.")
    _check_inside(place, schema)


def _check_inside(place: str, schema: Fields) -> None:
    if "items" in schema:
        check_schema(f"{place}.items", schema["items"])
    for one in schema.get("anyOf", []):
        check_schema(f"{place}.anyOf", one)
    properties = schema.get("properties", {})
    for name, one in properties.items():
        check_schema(f"{place}.{name}", one)
    for key in ("required", "propertyOrdering"):
        strange = [name for name in schema.get(key, []) if name not in properties]
        need(not strange, f"{place}.{key}: {strange}: property is not defined")


def _check_containers(place: str, schema: Fields) -> None:
    kinds = {"properties": dict, "$defs": dict} | dict.fromkeys(LISTS, list)
    for key, kind in kinds.items():
        fits = isinstance(schema.get(key, kind()), kind)
        need(fits, f"{place}.{key}: {'an object' if kind is dict else 'a list'} is wanted")


def _check_json_schema(place: str, schema: object) -> None:
    if isinstance(schema, bool):
        return
    need(isinstance(schema, dict), f"{place}: a schema is an object")
    assert isinstance(schema, dict)
    for key in schema:
        need(key in JSON_SCHEMA, f'Unknown name "{key}" at "{place}": Cannot find field.')
    _check_containers(place, schema)
    kinds = schema.get("type", [])
    for kind in kinds if isinstance(kinds, list) else [kinds]:
        need(str(kind).upper() in TYPES and str(kind).islower(), f"{place}.type: Invalid {kind!r}")
    for key in ("items", "additionalProperties"):
        if key in schema:
            _check_json_schema(f"{place}.{key}", schema[key])
    for key in ("anyOf", "oneOf", "prefixItems"):
        for one in schema.get(key, []):
            _check_json_schema(f"{place}.{key}", one)
    for key in ("properties", "$defs"):
        for name, one in schema.get(key, {}).items():
            _check_json_schema(f"{place}.{name}", one)


def check_image(blob: Fields, place: str) -> None:
    """A picture that is what it says. Raises Refusal."""
    magic = IMAGES.get(blob["mimeType"])
    need(magic is not None, f"{place}.mimeType: {blob['mimeType']} is not supported")
    assert magic is not None
    need(blob["data"].startswith(magic), f"{place}.data: Provided image is not valid.")


def read_contents(contents: Sequence[Fields], generation: Generation) -> list[tuple[str, Fields]]:
    """(role, part) of every part, in order. Raises Refusal."""
    found: list[tuple[str, Fields]] = []
    for at, content in enumerate(contents):
        place = f"turns[{at}]"
        role = content.get("role", "" if generation.needs_role else "user")
        need(role in ("user", "model"), f"{place}.role: Please use a valid role: user, model.")
        need(content["parts"], f"{place}.parts: must not be empty")
        for part in content["parts"]:
            _check_part(place, role, part)
            found.append((role, part))
    if generation.ends_with_user and found:
        need(found[-1][0] == "user", "turns: must end with a user turn")
    return found


def _check_part(place: str, role: str, part: Fields) -> None:
    kinds = set(part) - {"thought", "thoughtSignature"}
    need(len(kinds) == 1, f"{place}.parts: exactly one kind of data: {sorted(kinds)}")
    kind = kinds.pop()
    owner = {"functionCall": "model", "functionResponse": "user", "inlineData": "user"}
    need(owner.get(kind, role) == role, f"{place}.parts: no {kind} in a {role} turn")
    need(kind != "text" or part["text"].strip(), f"{place}.parts: text must not be blank")
    if kind == "inlineData":
        check_image(part["inlineData"], f"{place}.inlineData")
