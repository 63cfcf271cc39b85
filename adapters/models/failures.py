"""One table from HTTP status to ModelError, for every vendor's adapter.

An adapter maps its SDK's exceptions in one place and asks here what a status means. Whether to try
again is decided by `retryable` alone; nothing here retries.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...core.errors import ModelError

CONNECTION = "ERR_MODEL_CONNECTION"
"""The server could not be reached, or the connection broke: retryable."""
STALLED = "ERR_MODEL_STALLED"
"""Silence past the deadline: retryable."""
PROTOCOL = "ERR_MODEL_PROTOCOL"
"""What came is not what the wire allows."""
EMPTY = "ERR_MODEL_EMPTY"
"""An answer without any content."""
MISSING = "ERR_MODEL_MISSING"
"""The vendor's SDK is not installed."""

_AUTH = frozenset({401, 403})
_AGAIN = frozenset({408, 409, 425})


def status_error(
    message: str, status: int, *, quota_spent: bool = False, retry_after_s: float | None = None
) -> ModelError:
    """The error of an HTTP status. `quota_spent`: a 429 that waiting does not cure."""
    if status in _AUTH:
        return ModelError(message, code="ERR_MODEL_AUTH")
    if status == 429:
        return ModelError(
            message,
            code="ERR_MODEL_RATE_LIMIT",
            retryable=not quota_spent,
            retry_after_s=retry_after_s,
        )
    if status == 413:
        return ModelError(message, code="ERR_MODEL_TOO_LARGE")
    if status >= 500 or status in _AGAIN:
        return ModelError(
            message, code="ERR_MODEL_SERVER", retryable=True, retry_after_s=retry_after_s
        )
    return ModelError(message, code="ERR_MODEL_REFUSED")


def broken(message: str) -> ModelError:
    """The connection failed, or broke off before the answer was complete."""
    return ModelError(message, code=CONNECTION, retryable=True)


def stalled(message: str) -> ModelError:
    """Nothing came before the deadline."""
    return ModelError(message, code=STALLED, retryable=True)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds of a `Retry-After` header (or `retry-after-ms`); None without one in numbers."""
    for name, scale in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        value = headers.get(name, "")
        try:
            seconds = float(value) / scale
        except ValueError:
            continue
        if seconds >= 0:
            return seconds
    return None
