"""Errors of the provider floor: remote failure, mapped once per adapter, the original as cause.

    AdapterError            code = wire code of spec/voice 10
    +-- ConnectionFailed        the provider could not be reached, or the connection broke
    +-- CredentialsRejected     key missing, wrong or expired: never retried
    +-- ProviderRefused         the provider said no to this request: never retried
    +-- ProviderStalled         the provider was silent past its deadline

Local misuse of an adapter is a MediaValueError or a ConfigError, never one of these (DESIGN 7).
"""

from __future__ import annotations


class AdapterError(Exception):
    """Root. `retryable` alone decides whether a driver tries again (DESIGN 7)."""

    retryable = False

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class ConnectionFailed(AdapterError):
    """The provider could not be reached, or the connection broke."""

    retryable = True


class CredentialsRejected(AdapterError):
    """The key is missing, wrong or expired."""


class ProviderRefused(AdapterError):
    """The provider refused this request for what it contains."""


class ProviderStalled(AdapterError):
    """Nothing came before the deadline."""

    retryable = True
