"""What Gemini's error bodies add to their HTTP status. Pure.

The details are a list of typed objects: how long to wait stands in RetryInfo, that waiting is in
vain for today in QuotaFailure, that a 400 is about the key in ErrorInfo.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ...core.errors import ModelError
from . import failures

if TYPE_CHECKING:
    from google.genai.errors import APIError

_BAD_KEY = frozenset({"API_KEY_INVALID", "API_KEY_EXPIRED"})


def api_error(text: str, error: APIError) -> ModelError:
    """Our error for the SDK's, whether it came as a status or inside a stream."""
    details = list(_details(error.details))
    status = error.code if isinstance(error.code, int) else 500
    if status == 400 and any(one.get("reason") in _BAD_KEY for one in details):
        status = 401
    return failures.status_error(
        text,
        status,
        quota_spent=any(_is_daily(one) for one in details),
        retry_after_s=_retry_after(error, details),
    )


def _details(body: object) -> Iterator[Mapping[str, object]]:
    error = body.get("error", body) if isinstance(body, Mapping) else None
    found = error.get("details") if isinstance(error, Mapping) else None
    for one in found if isinstance(found, list) else []:
        if isinstance(one, Mapping):
            yield one


def _is_daily(detail: Mapping[str, object]) -> bool:
    """Whether the quota of a whole day is used up."""
    violations = detail.get("violations")
    return isinstance(violations, list) and any(
        "PerDay" in str(one.get("quotaId")) for one in violations if isinstance(one, Mapping)
    )


def _retry_after(error: APIError, details: list[Mapping[str, object]]) -> float | None:
    """Seconds of RetryInfo's delay (`34.5s`), else of the header."""
    for one in details:
        delay = one.get("retryDelay")
        if isinstance(delay, str) and delay.endswith("s"):
            seconds = failures.retry_after({"retry-after": delay[:-1]})
            if seconds is not None:
                return seconds
    headers = getattr(error.response, "headers", None)
    return failures.retry_after(headers) if isinstance(headers, Mapping) else None
