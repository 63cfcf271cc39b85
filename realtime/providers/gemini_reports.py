"""What Gemini Live tells of the connection itself: usage, handles, its end and what caused it.

Its only error messages are close codes. Pure. Source: protocols/gemini-live 5, 7, 9; spec/voice
18.12, row 93.
"""

from __future__ import annotations

import re

from ...core.usage import Usage
from ..events import (
    Closed,
    GoAway,
    ProviderProblem,
    RealtimeEvent,
    ResponseStatus,
    Resumable,
    Used,
    UserSpeech,
)
from .driver import HANDLE
from .gemini_frames import seconds
from .reading import Json, count, inner, text

NORMAL, INVALID, POLICY = 1000, 1007, 1008
KEY_REFUSED = "unauthenticated"
"""`Closed.code` where the key is to blame."""

_KEY = re.compile(
    r"\bAPI[ _]key\b|unregistered callers|unauthenticated|permission[ _]denied"
    r"|\b(?:access|auth|ephemeral)[ _]tokens?\b|^token is",
    re.IGNORECASE,
)
_MODEL = re.compile(r"bidiGenerateContent|\bmodels?\b.*\bnot (?:found|supported|allowed)", re.I)
_MONEY = re.compile(r"quota|billing|RESOURCE_EXHAUSTED", re.IGNORECASE)

MORE_INPUT = "NEED_MORE_INPUT"
_STATUS: dict[str, ResponseStatus] = {
    "": "completed",
    "TURN_COMPLETE_REASON_UNSPECIFIED": "completed",
    MORE_INPUT: "completed",
    "MALFORMED_FUNCTION_CALL": "failed",
    "RESPONSE_REJECTED": "failed",
}
"""Of turnCompleteReason; every other one is a filter that stopped the answer."""


def ended(
    code: int, reason: str, *, resumed: bool, opened: bool, talked: bool, asked: bool
) -> list[RealtimeEvent]:
    """The last events of a connection.

    `resumed`: it began with a handle; `opened`: the setup was taken; `talked`: the model said
    something since; `asked`: the end was our wish. A handle that may be to blame is taken back
    before Closed: the provider would refuse it again.
    """
    if code == NORMAL:
        return [Closed(str(code), reason, clean=asked)]
    if _KEY.search(reason):
        return [Closed(KEY_REFUSED, reason, fatal=True)]
    if (code == POLICY and _MODEL.search(reason)) or _MONEY.search(reason):
        return [Closed(str(code), reason, fatal=True)]
    if code in (INVALID, POLICY) and resumed and not talked:
        return [Resumable(None), Closed(HANDLE, reason)]
    if code in (INVALID, POLICY) and not opened:
        return [Closed(str(code), reason, fatal=True)]
    taken_back: list[RealtimeEvent] = [Resumable(None)] if code == INVALID else []
    return [*taken_back, Closed(str(code), reason)]


def used(told: Json) -> list[RealtimeEvent]:
    """usageMetadata: of one response; its total is the context as it is now."""
    usage = Usage(
        tokens_in=count(told, "promptTokenCount") + count(told, "toolUsePromptTokenCount"),
        tokens_out=count(told, "responseTokenCount") + count(told, "thoughtsTokenCount"),
        cache_read_input_tokens=count(told, "cachedContentTokenCount"),
    )
    total = count(told, "totalTokenCount") or usage.total
    return [Used(usage, context_tokens=total)] if total else []


def turn_end(told: Json) -> tuple[ResponseStatus, str, bool]:
    """Of turnComplete: how the answer went, why it went wrong, and whether the provider believes
    that the user has more to say."""
    reason = text(told, "turnCompleteReason")
    status = _STATUS.get(reason, "incomplete")
    listening = reason == MORE_INPUT or told.get("waitingForInput") is True
    return status, "" if status == "completed" else reason, listening


def resumable(told: Json) -> list[RealtimeEvent]:
    """sessionResumptionUpdate."""
    handle = text(told, "newHandle") if told.get("resumable") is True else ""
    return [Resumable(handle or None)]


def go_away(told: Json) -> list[RealtimeEvent]:
    """goAway."""
    return [GoAway(seconds(told, "timeLeft"))]


def voice(told: Json) -> list[UserSpeech]:
    """voiceActivity and voiceActivityDetectionSignal, where a project has them."""
    kind = text(told, "voiceActivityType") or text(told, "vadSignalType")
    at_ms = round(seconds(told, "audioOffset") * 1000) if "audioOffset" in told else None
    if kind in ("ACTIVITY_START", "VAD_SIGNAL_TYPE_SOS"):
        return [UserSpeech("started", at_ms=at_ms)]
    if kind in ("ACTIVITY_END", "VAD_SIGNAL_TYPE_EOS"):
        return [UserSpeech("stopped", at_ms=at_ms)]
    return []


def problem(message: Json) -> ProviderProblem:
    """A message of no known kind; the SDK expects an error in this place."""
    error = inner(message, "error") or message
    code, said = error.get("code"), text(error, "message")
    if isinstance(code, int | str) or said:
        return ProviderProblem(str(code or "error"), said)
    return ProviderProblem("unknown_message", f"keys: {', '.join(sorted(map(str, message)))}"[:200])
