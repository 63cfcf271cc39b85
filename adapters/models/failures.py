"""One table from HTTP status to ModelError, for every vendor's adapter, and the other failures.

An adapter maps its SDK's exceptions in one place and asks here what a status means. Whether to try
again is decided by `retryable` alone; nothing here retries.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from ...core.errors import ModelError, UsageError

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

NAMED: Mapping[str, int] = {
    "api_error": 500,
    "authentication_error": 401,
    "context_length_exceeded": 400,
    "insufficient_quota": 429,
    "internal_error": 500,
    "internal_server_error": 500,
    "invalid_api_key": 401,
    "invalid_prompt": 400,
    "invalid_request_error": 400,
    "not_found_error": 404,
    "overloaded": 503,
    "overloaded_error": 503,
    "permission_error": 403,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "request_too_large": 413,
    "server_error": 500,
    "server_overloaded": 503,
    "service_unavailable": 503,
    "timeout": 408,
    "timeout_error": 408,
    "vector_store_timeout": 408,
}
"""The status that stands for an error's name, where a stream that began with 200 fails."""

_SPENT = "insufficient_quota"


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
    return refused(message)


def named_error(message: str, *names: object) -> ModelError:
    """The error of an event inside a stream, by the first of its `names` (type, code) that is known
    or is itself a status. An unknown failure is the server's, and not retried."""
    known = [word for word in (str(name) for name in names) if word in NAMED or _is_status(word)]
    if not known:
        return ModelError(message, code="ERR_MODEL_SERVER")
    status = NAMED.get(known[0]) or int(known[0])
    return status_error(message, status, quota_spent=is_spent(*names))


def is_spent(*names: object) -> bool:
    """Whether an error's names say that the account is empty: waiting does not help."""
    return _SPENT in names


def _is_status(word: str) -> bool:
    return len(word) == 3 and word.isdecimal() and word[0] in "45"


def broken(message: str) -> ModelError:
    """The connection failed, or broke off before the answer was complete."""
    return ModelError(message, code=CONNECTION, retryable=True)


def stalled(message: str) -> ModelError:
    """Nothing came before the deadline."""
    return ModelError(message, code=STALLED, retryable=True)


def garbled(message: str) -> ModelError:
    """What came is not what the wire allows."""
    return ModelError(message, code=PROTOCOL)


def empty(message: str) -> ModelError:
    """The answer holds nothing at all."""
    return ModelError(message, code=EMPTY)


@contextmanager
def reading(value: object) -> Iterator[None]:
    """Around reading what a server sent. SDKs check few types, so a wrong shape shows only where it
    is used; it leaves here as ValueError."""
    try:
        yield
    except (AttributeError, TypeError, IndexError) as error:
        raise ValueError(f"unexpected shape: {str(value)[:200]}") from error


def refused(message: str) -> ModelError:
    """The provider will not answer this."""
    return ModelError(message, code="ERR_MODEL_REFUSED")


def closed(name: str) -> UsageError:
    """The model was closed by its owner: trying again is in vain."""
    return UsageError(f"{name} is closed; make another model, or close it later")


def missing_sdk(package: str, extra: str) -> ModelError:
    """A vendor's package is not there; raised at construction."""
    return ModelError(
        f"{extra} models need the {package} package; pip install 'voxglove[{extra}]'", code=MISSING
    )


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds of a `Retry-After` header (or `retry-after-ms`); None without one in numbers."""
    for name, scale in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        value = headers.get(name, "")
        try:
            seconds = float(value) / scale
        except ValueError:
            continue
        if 0 <= seconds < math.inf:
            return seconds
    return None
