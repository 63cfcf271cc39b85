"""What both of OpenAI's wires refuse in a tool, a name, a URL or a body's plain values.

Each check returns what is wrong in words, or nothing.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+);base64,(.*)", re.DOTALL)
IMAGES = {"image/png", "image/jpeg", "image/webp", "image/gif"}
EFFORTS = {"none", "minimal", "low", "medium", "high", "xhigh", "max"}
MAX_TOOLS = 128


def unknown(where: str, value: object, known: set[str]) -> Iterator[str]:
    """Fields that the wire does not have, or a value that is no object."""
    if not isinstance(value, Mapping):
        yield f"{where} is no object"
        return
    for name in value:
        if name not in known:
            yield f"Unknown parameter: {where}.{name}"


def plain_values(body: Mapping[str, object]) -> Iterator[str]:
    """The settings that both wires have."""
    if not isinstance(body.get("model"), str) or not body["model"]:
        yield "you must provide a model parameter"
    temperature = body.get("temperature")
    if temperature is not None and not (isinstance(temperature, (int, float)) and temperature <= 2):
        yield f"temperature {temperature!r} is not within 0 and 2"
    for flag in ("stream", "store", "parallel_tool_calls"):
        if flag in body and not isinstance(body[flag], bool):
            yield f"{flag} is no boolean"
    if "parallel_tool_calls" in body and not body.get("tools"):
        yield "parallel_tool_calls is only allowed when tools are specified"
    key = body.get("prompt_cache_key")
    if key is not None and not (isinstance(key, str) and 0 < len(key) <= 64):
        yield "prompt_cache_key has more than 64 characters"
    if body.get("prompt_cache_retention") not in (None, "in_memory", "24h"):
        yield "prompt_cache_retention is unknown"


def count(body: Mapping[str, object], name: str, least: int) -> Iterator[str]:
    """A bound on tokens."""
    value = body.get(name)
    if value is not None and (not isinstance(value, int) or value < least):
        yield f"{name} {value!r} is below {least}"


def function(where: str, tool: Mapping[str, object]) -> Iterator[str]:
    """Name, description and parameters of one function."""
    name, parameters = tool.get("name"), tool.get("parameters")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        yield f"{where}.name {name!r} does not match ^[a-zA-Z0-9_-]{{1,64}}$"
    if not isinstance(tool.get("description", ""), str):
        yield f"{where}.description is no text"
    if not isinstance(parameters, Mapping) or parameters.get("type") != "object":
        yield f"{where}.parameters: schema must be of type object"
    elif {"anyOf", "oneOf", "allOf", "not", "enum"} & set(parameters):
        yield f"{where}.parameters: no anyOf, oneOf, allOf, not, enum at the top level"
    if tool.get("strict") not in (None, False):
        yield f"{where}.strict: nobody here asks for it"


def tool_names(names: list[object]) -> Iterator[str]:
    """All tools of a request together."""
    if len(names) > MAX_TOOLS:
        yield f"{len(names)} tools, the limit is {MAX_TOOLS}"
    for name in names:
        if names.count(name) > 1:
            yield f"tool {name!r} is there twice"


def arguments(where: str, value: object) -> Iterator[str]:
    """A call's arguments: the text of a JSON object."""
    try:
        fine = isinstance(value, str) and isinstance(json.loads(value), dict)
    except ValueError:
        fine = False
    if not fine:
        yield f"{where}: arguments are not the JSON of an object: {value!r}"


def media(where: str, url: object, kinds: set[str] | None) -> Iterator[str]:
    """An address of the web, or a data URL of one of `kinds` (None: any) with sound base64."""
    if not isinstance(url, str):
        yield f"{where} is no text"
        return
    if kinds is not None and url.startswith(("https://", "http://")):
        return
    found = DATA_URL.fullmatch(url)
    if found is None:
        yield f"{where}: {url[:40]!r} is neither an address nor a data URL"
    elif kinds is not None and found[1] not in kinds:
        yield f"{where}: {found[1]} is not supported"
    else:
        try:
            base64.b64decode(found[2], validate=True)
        except binascii.Error:
            yield f"{where}: no valid base64"
