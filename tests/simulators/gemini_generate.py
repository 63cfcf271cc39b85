"""A strict generateContent server: answers from a script, refuses what Gemini would refuse.

Driven by the official SDK, through `GeminiModel` and directly. It remembers the signature of every
part it gave and wants it back with that part; what a request may say stands in gemini_rules.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from aiohttp import web

from tests.simulators.gemini_rules import FOREIGN, check_body, contents_of, raw_bytes
from tests.simulators.sse import Json, Refused, SseServer, Step, need, sse

KEY = "AIza-simulated-0123456789abcdef"
USAGE: Json = {"promptTokenCount": 5, "candidatesTokenCount": 9, "totalTokenCount": 14}
STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
PATH = re.compile(r"/v1(beta)?/models/[\w.-]+:(streamGenerateContent|generateContent)")


def text(said: str, signature: str = "") -> Json:
    return {"text": said} | _signed(signature)


def thought(said: str, signature: str = "") -> Json:
    return {"text": said, "thought": True} | _signed(signature)


def call(id: str, name: str, args: object = None, signature: str = "") -> Json:
    """A call; without an id if `id` is empty, without args if there are none."""
    wire: Json = {"name": name}
    wire |= {"id": id} if id else {}
    wire |= {"args": args} if args is not None else {}
    return {"functionCall": wire} | _signed(signature)


def _signed(signature: str) -> Json:
    return {"thoughtSignature": signature} if signature else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scripted(Step):
    """One answer: `parts`, one in each chunk, or an error status, or an error inside the stream.

    prompt_block   the prompt is refused: no candidates
    token          a continuation token that comes with the finish
    """

    parts: Sequence[Json] = ()
    finish: str = "STOP"
    usage: Json = field(default_factory=dict)
    details: Sequence[Json] = ()
    message: str = "scripted"
    stream_error: int = 0
    prompt_block: str = ""
    no_candidates: bool = False
    token: str = ""


class GeminiSimulator(SseServer[Scripted]):
    """Serves `script` in order under /v1beta/models. With `signs`, a call of the current turn must
    come back signed, as the newer models demand."""

    def __init__(self, *script: Scripted, signs: bool = False) -> None:
        super().__init__(*script)
        self._signs = signs
        self._signatures: dict[str, set[bytes]] = {}
        self.sent: list[Json] = []
        """Every chunk and every whole response, as it went out."""

    def is_streamed(self, request: web.Request, body: Json) -> bool:
        streams = ":streamGenerateContent" in request.path
        need(not streams or request.query.get("alt") == "sse", "alt=sse is wanted")
        return streams

    def error(self, status: int, message: str) -> Json:
        name = STATUSES.get(status, "UNKNOWN")
        return {"error": {"code": status, "message": message, "status": name}}

    def check(self, request: web.Request, body: Json) -> None:
        if not PATH.fullmatch(request.path):
            raise Refused(f"{request.path} was not found", 404)
        if request.headers.get("x-goog-api-key") != KEY:
            raise Refused("API key not valid. Please pass a valid API key.", 401)
        check_body(body)
        contents = contents_of(body)
        for _, parts in contents:
            for part in parts:
                self._check_signature(part)
        if self._signs:
            _check_turn(contents)

    def _check_signature(self, part: Json) -> None:
        """A part that was given here comes back with the signature it had."""
        signature = part.get("thoughtSignature")
        given = self._signatures.get(_identity(part))
        if signature is None:
            need(given is None or "text" in part, "Function call is missing a thought_signature")
            return
        raw = raw_bytes(signature)
        need(raw in {FOREIGN, *(given or ())}, "Corrupted thought signature")

    def refusal(self, step: Scripted) -> object:
        body = self.error(step.status, step.message)
        if step.details:
            error = body["error"]
            assert isinstance(error, dict)
            error["details"] = list(step.details)
        return body

    def next_step(self, body: Json) -> Scripted:
        step = super().next_step(body)
        for part in step.parts:
            if "thoughtSignature" in part:
                given = self._signatures.setdefault(_identity(part), set())
                given.add(raw_bytes(part["thoughtSignature"]))
        return step

    def whole(self, step: Scripted) -> object:
        chunk = _chunk(step, step.parts, last=True)
        self.sent.append(chunk)
        return chunk

    def frames(self, step: Scripted) -> Iterator[bytes]:
        for chunk in _chunks(step):
            self.sent.append(chunk)
            yield sse(chunk, end="\r\n")
        if step.stream_error:
            yield sse(self.error(step.stream_error, "scripted"), end="\r\n")


def _check_turn(contents: Sequence[tuple[str, list[Json]]]) -> None:
    """Of each step behind the last thing the user said, the first call is signed."""
    for _, parts in reversed(contents):
        if any(set(part) & {"text", "inlineData", "fileData"} for part in parts) and not any(
            "functionCall" in part for part in parts
        ):
            return
        first = next((part for part in parts if "functionCall" in part), {"thoughtSignature": 1})
        need("thoughtSignature" in first, "Function call is missing a thought_signature")


def _identity(part: Json) -> str:
    """What a part is, apart from its signature."""
    plain = {key: value for key, value in part.items() if key != "thoughtSignature"}
    called = plain.get("functionCall")
    if isinstance(called, dict):
        plain["functionCall"] = {"args": {}} | called
    return json.dumps(plain, sort_keys=True)


def _chunks(step: Scripted) -> Iterator[Json]:
    whole = step.ends_well and not step.stream_error
    if step.prompt_block or step.no_candidates:
        yield _chunk(step, (), last=True)
        return
    for at, part in enumerate(step.parts):
        yield _chunk(step, [part], last=whole and at == len(step.parts) - 1)
    if whole and not step.parts:
        yield _chunk(step, (), last=True)


def _chunk(step: Scripted, parts: Sequence[Json], *, last: bool) -> Json:
    chunk: Json = {"modelVersion": "m", "responseId": "r"}
    chunk["usageMetadata"] = {"promptTokenCount": 5, "totalTokenCount": 6}
    if last:
        chunk["usageMetadata"] = USAGE | step.usage
    if step.prompt_block:
        return chunk | {"promptFeedback": {"blockReason": step.prompt_block}}
    if step.no_candidates:
        return chunk
    candidate: Json = {"index": 0}
    if parts:
        candidate["content"] = {"role": "model", "parts": list(parts)}
    if last:
        candidate["finishReason"] = step.finish
        candidate |= {"continuationToken": step.token} if step.token else {}
    return chunk | {"candidates": [candidate]}
