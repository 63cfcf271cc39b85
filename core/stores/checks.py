"""What every store of the package refuses before it writes, in the same words.

A store calls these first and then looks whether an id is taken in what it holds already.
"""

from collections.abc import Sequence

from ..errors import UnknownMessageError, UnknownRecordError, UsageError
from ..messages import Message
from ..records import Task


def check_messages(messages: Sequence[Message]) -> None:
    """Raises UsageError for a message without an id, or an id used twice in the batch."""
    ids = [message.id for message in messages]
    if not all(ids) or len(set(ids)) < len(ids):
        raise UsageError("append_messages: every message needs an id of its own (Message.id)")


def check_tasks(tasks: Sequence[Task]) -> None:
    """Raises UsageError for an id used twice: update_task could not tell the two apart."""
    if len({task.id for task in tasks}) < len(tasks):
        raise UsageError("add_tasks: every task needs an id of its own (Task.id)")


def message_taken(message_id: str, identifier: str) -> UsageError:
    return UsageError(
        f"append_messages: store {identifier!r} holds a message {message_id!r} already; "
        "give each message an id of its own (Message.id)"
    )


def item_taken(item_id: str, identifier: str) -> UsageError:
    return UsageError(
        f"add_inbox_item: store {identifier!r} holds an item {item_id!r} already; "
        "give each item an id of its own (InboxItem.id)"
    )


def no_message(message_id: str, identifier: str) -> UnknownMessageError:
    return UnknownMessageError(f"no message {message_id!r} in store {identifier!r}")


def no_item(item_id: str, identifier: str) -> UnknownRecordError:
    return UnknownRecordError(f"no inbox item {item_id!r} in store {identifier!r}")


def no_task(task_id: str, identifier: str) -> UnknownRecordError:
    return UnknownRecordError(f"no task {task_id!r} in store {identifier!r}")
