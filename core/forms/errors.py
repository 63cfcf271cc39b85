"""What forms refuse and how they fail.

    UsageError
    `- FormRefused         a request that the form does not allow now; a model can act on it
    StoreError
    `- FormConflictError   another writer was first: the version asked for is not the stored one

A mistake in a definition is a plain UsageError at build(), with the field and the remedy.
"""

from collections.abc import Mapping
from typing import Literal

from ..errors import StoreError, UsageError

RefusalCode = Literal[
    "form_unknown",
    "form_not_open",
    "form_ambiguous",
    "form_blocked",
    "form_closed",
    "form_stale",
    "form_conflict",
    "field_unknown",
    "step_unknown",
    "values_rejected",
    "nothing_to_change",
    "checkpoint_not_waiting",
]


class FormRefused(UsageError):
    """A form says no. `code` is for programs, the message for a model, `details` for both.

    Nothing was changed. The tools turn it into an error result with the same three parts.
    """

    def __init__(
        self, code: RefusalCode, message: str, details: Mapping[str, object] | None = None
    ) -> None:
        super().__init__(message)
        self.code: RefusalCode = code
        self.details: Mapping[str, object] = details or {}


class FormConflictError(StoreError):
    """A commit named a version that is not the stored one, or an id is taken (adapters)."""
