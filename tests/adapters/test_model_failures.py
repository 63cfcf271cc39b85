"""The one table from a vendor's error to ours."""

from __future__ import annotations

import pytest

from voxglove.adapters.models import failures


@pytest.mark.parametrize(
    ("names", "code", "retryable"),
    [
        (("server_error",), "ERR_MODEL_SERVER", True),
        ((None, "overloaded_error"), "ERR_MODEL_SERVER", True),
        (("rate_limit_exceeded", "tokens"), "ERR_MODEL_RATE_LIMIT", True),
        (("insufficient_quota",), "ERR_MODEL_RATE_LIMIT", False),
        (("rate_limit_exceeded", "insufficient_quota"), "ERR_MODEL_RATE_LIMIT", False),
        (("invalid_api_key", "invalid_request_error"), "ERR_MODEL_AUTH", False),
        (("request_too_large",), "ERR_MODEL_TOO_LARGE", False),
        ((503,), "ERR_MODEL_SERVER", True),
        (("429", "server_error"), "ERR_MODEL_RATE_LIMIT", True),
        (("200",), "ERR_MODEL_SERVER", False),
        ((None, None), "ERR_MODEL_SERVER", False),
        ((), "ERR_MODEL_SERVER", False),
    ],
)
def test_an_error_is_known_by_any_of_its_names(
    names: tuple[object, ...], code: str, retryable: bool
) -> None:
    error = failures.named_error("boom", *names)
    assert (error.code, error.retryable, str(error)) == (code, retryable, "boom")


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "2.5"}, 2.5),
        ({"retry-after": "7", "retry-after-ms": "250"}, 0.25),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
    ],
)
def test_a_wish_to_wait_is_read(headers: dict[str, str], seconds: float | None) -> None:
    assert failures.retry_after(headers) == seconds
