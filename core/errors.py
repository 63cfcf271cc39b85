"""The error tree of the agent core.

    CoreError
    |- UsageError            local misuse: the caller can fix it, it is never retried
    |  |- NotBuiltError      the builder was used as an agent before build()
    |  |- DuplicateToolError a tool name is taken
    |  |- UnknownMessageError no stored message has this id
    |  `- UnknownRecordError  no inbox item or task has this id
    |- ModelError            remote failure of a text model, mapped by its adapter
    |- StoreError            a store could not read or write
    |- CancelledElsewhere    foreign code awaited what somebody else had cancelled
    `- SlotRejected          the user (or the line) refused a display slot
    AbortError               somebody asked to stop; not a failure, and never CancelledError

`retryable` alone decides about retries; nothing in core retries a model call by itself.
"""


class CoreError(Exception):
    """Root of everything the agent core reports as a failure."""


class UsageError(CoreError):
    """The API was used wrongly; the message names the argument and the remedy."""


class NotBuiltError(UsageError):
    """The builder has no agent yet: call build() first (spec core row 7)."""


class DuplicateToolError(UsageError):
    """Two tools share a name, compared without case (spec core 19.6)."""


class UnknownMessageError(UsageError):
    """An amendment names a message id that the store does not hold."""


class UnknownRecordError(UsageError):
    """An inbox item or a task is named that the store does not hold."""


class ModelError(CoreError):
    """A text model failed; raised by model adapters with the vendor error as cause.

    `retry_after_s` is what the provider asked to wait, where it said so.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str = "ERR_MODEL",
        retryable: bool = False,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.retryable = retryable
        self.retry_after_s = retry_after_s


class StoreError(CoreError):
    """A store could not read or write; the original error is the cause."""


class CancelledElsewhere(CoreError):
    """A provider, hook or adapter ended in a CancelledError that nobody had asked of its task."""


class SlotRejected(CoreError):
    """A display slot was rejected, removed or lost its audience while a tool waited for it."""


class AbortError(Exception):
    """Work ended because its CancelToken fired. Deliberately not a CancelledError: the task that
    sees it goes on living and must still record what it did (spec core 18).

    user_stored  of process_request: whether the request's user message is in the store. False
                 means that history knows nothing of these words: send them again or lose them.
    """

    def __init__(self, reason: str = "aborted", *, user_stored: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.user_stored = user_stored
