"""Actions of the store door on messages, counters, permissions, tasks and sub-agents' stores.

An append that is repeated because its answer was lost is compared with what is stored: equal
messages were the first attempt's, and nothing is done (docs/stores.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ...adapters.stores.remote_wire import (
    BadField,
    permission_from,
    read_tasks,
    session_problem,
    task_patch_from,
    tasks_json,
    usage_from,
    usage_json,
)
from ...core.errors import UsageError
from ...core.message_wire import decode_patch, encode_messages, read_messages
from ...core.messages import Message, encode_message
from ...core.records import task_json
from .sessions_asked import GROUPS, MAX_LIST, Asked


async def get_session(asked: Asked) -> object:
    """`{id, features}`: what is kept beside history and counters."""
    kept = [name for name, kind in GROUPS.items() if isinstance(asked.store, kind)]
    return {"id": asked.session, "features": kept}


async def get_messages(asked: Asked) -> object:
    """The whole history, a list."""
    return encode_messages(await asked.store.get_messages())


async def append_messages(asked: Asked) -> object:
    """`{messages}`; all or nothing."""
    messages = read_batch(asked.body.entries("messages", MAX_LIST), "messages")
    for at, message in enumerate(messages):
        if not message.id:
            raise BadField(f"messages[{at}].id", "must not be empty: the client names messages")
    try:
        await asked.store.append_messages(messages)
    except UsageError:
        if not asked.again or not await are_stored(asked, messages):
            raise
    return None


async def amend_message(asked: Asked) -> object:
    """`{id, patch}`; the amended message."""
    patch = asked.body.mapping("patch")
    if patch is None:
        raise BadField("patch", "must be an object of the fields to change")
    with named_fields():
        change = decode_patch(patch)
    return encode_message(await asked.store.amend_message(asked.body.text("id"), change))


async def get_tokens(asked: Asked) -> object:
    """`{count}`."""
    return {"count": await asked.store.get_token_count()}


async def add_tokens(asked: Asked) -> object:
    """`{tokens_in, tokens_out, cache_…}`."""
    await asked.store.add_tokens(usage_from(asked.body))
    return None


async def get_turns(asked: Asked) -> object:
    """`{count}`."""
    return {"count": await asked.store.get_turn_count()}


async def increment_turn(asked: Asked) -> object:
    """One more turn."""
    await asked.store.increment_turn()
    return None


async def reset_counters(asked: Asked) -> object:
    """Tokens and turns begin at 0 again; consumption goes on."""
    await asked.store.reset_counters()
    return None


async def get_consumption(asked: Asked) -> object:
    """`{tokens_in, tokens_out, cache_…}` since the session began."""
    return usage_json(await asked.consumption.get_token_consumption())


async def check_permission(asked: Asked) -> object:
    """`{tool_name, input_key}`; `{status}`. A POST that changes nothing: keys are long."""
    store = asked.permissions
    body = asked.body
    return {"status": await store.get_permission(body.text("tool_name"), body.text("input_key"))}


async def set_permission(asked: Asked) -> object:
    """`{tool_name, input_key, status}`."""
    store, body = asked.permissions, asked.body
    status = permission_from(body)
    await store.set_permission(body.text("tool_name"), status, body.text("input_key"))
    return None


async def get_tasks(asked: Asked) -> object:
    """The tasks, a list."""
    return tasks_json(await asked.tasks.get_tasks())


async def replace_tasks(asked: Asked) -> object:
    """`{tasks}`, the whole list."""
    tasks = read_tasks(asked.body.entries("tasks", MAX_LIST))
    await asked.tasks.add_tasks(tasks)
    return None


async def update_task(asked: Asked) -> object:
    """`{taskId, updates}`; the changed task."""
    patch = task_patch_from(asked.body.below("updates"))
    return task_json(await asked.tasks.update_task(asked.body.text("taskId"), patch))


async def sub_agent_store(asked: Asked) -> object:
    """`{namespace}`; `{id}` of the session that keeps it."""
    namespace = asked.body.name("namespace")
    store = await asked.sub_agents.create_sub_agent_store(namespace, durable=True)
    problem = session_problem(store.identifier)
    if problem is not None:
        raise BadField("namespace", f"{problem}, the session's own id included")
    return {"id": store.identifier}


def read_batch(raw: Sequence[object], at: str) -> list[Message]:
    """Messages of parsed JSON. Raises BadField naming the entry and the field."""
    with named_fields():
        return read_messages(raw, at)


@contextmanager
def named_fields() -> Iterator[None]:
    """What core calls wrong use, by its path, is a bad field of the body here."""
    try:
        yield
    except UsageError as error:
        field, _, remedy = str(error).partition(": ")
        raise BadField(field, remedy) from None


async def are_stored(asked: Asked, messages: Sequence[Message]) -> bool:
    """Whether the history ends with these very messages, or holds them in this order."""
    wanted = {message.id: message for message in messages}
    stored = [one for one in await asked.store.get_messages() if one.id in wanted]
    return bool(messages) and stored == list(messages)
