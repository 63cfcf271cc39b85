"""A request's JSON body, within a size and a time. Owns nothing."""

from __future__ import annotations

import asyncio
import json

from aiohttp import web
from pydantic_core import from_json

from ..server import problem

BODY_S = 5.0
"""How long a body may take to arrive."""


async def read_object(
    request: web.Request, limit: int, example: str
) -> dict[str, object] | web.Response:
    """The JSON object in the body ({} for none), or the answer that refuses it: 400, 408, 413."""
    raw = await read_bytes(request, limit, BODY_S)
    return raw if isinstance(raw, web.Response) else parse_object(raw, example)


async def read_bytes(request: web.Request, limit: int, within_s: float) -> bytes | web.Response:
    """The body as it came, or the answer that refuses it: 408, 413."""
    try:
        async with asyncio.timeout(within_s):
            raw = await _read(request, limit)
    except TimeoutError:
        return problem(408, "too_slow", f"the body took more than {within_s:g} s")
    if raw is None:
        return problem(413, "too_big", f"the body is limited to {limit} bytes")
    return raw


def parse_object(raw: bytes, example: str) -> dict[str, object] | web.Response:
    """The JSON object in `raw` ({} for none), or the 400 that refuses it. Neither NaN nor half a
    surrogate pair is JSON, whatever Python's decoder takes."""
    try:
        body = decoded(raw) if raw.strip() else {}
    except (ValueError, RecursionError):
        return problem(400, "bad_body", f"the body is no valid JSON; send {example}")
    if not isinstance(body, dict):
        return problem(400, "bad_body", f"send a JSON object such as {example}")
    return body


def decoded(raw: bytes) -> object:
    """Strict JSON. pydantic's decoder holds the loop for 2 ms over 8 MiB of a picture, Python's for
    40. Raises ValueError, RecursionError."""
    try:
        return from_json(raw, allow_inf_nan=False)
    except ValueError as error:
        if "recursion limit" not in str(error):
            raise
    # As deep as a message may be, and its request around it: rare, and no reason to refuse it.
    found = json.loads(raw, parse_constant=_no_number)
    json.dumps(found, ensure_ascii=False).encode()
    return found


def _no_number(name: str) -> object:
    raise ValueError(f"{name} is no JSON")


async def _read(request: web.Request, limit: int) -> bytes | None:
    """The whole body, in however many pieces it comes; None when it is too big."""
    if (request.content_length or 0) > limit:
        return None
    raw = bytearray()
    async for piece in request.content.iter_any():
        raw += piece
        if len(raw) > limit:
            return None
    return bytes(raw)
