"""Actions of the store door on inbox items and outside events (spec core 13.2, 10).

Whoever answers a request of an agent comes in here: a job, a webhook, a person's page. The agent of
a call that lives on this server is told; any other finds the answer when it asks next.
"""

from __future__ import annotations

from dataclasses import replace

from ...adapters.stores.remote_wire import (
    Fields,
    event_from,
    event_json,
    item_from,
    item_patch_from,
)
from ...core.errors import UsageError
from ...core.external import EventQueue
from ...core.messages import random_id
from ...core.records import item_json, utc_now
from .sessions_asked import MAX_LIST, Asked
from .sessions_history import are_stored, read_batch


async def get_items(asked: Asked) -> object:
    """All items, a list."""
    return [item_json(item) for item in await asked.inbox.get_inbox_items()]


async def get_resolved(asked: Asked) -> object:
    """Those that are answered and not shown yet, a list."""
    return [item_json(item) for item in await asked.inbox.get_resolved_inbox_items()]


async def add_item(asked: Asked) -> object:
    """`{item}`."""
    store, item = asked.inbox, item_from(asked.body.below("item"))
    try:
        await store.add_inbox_item(item)
    except UsageError:
        if not asked.again or item not in await store.get_inbox_items():
            raise
    return None


async def update_item(asked: Asked) -> object:
    """`{itemId, updates}`; the changed item."""
    patch = item_patch_from(asked.body.below("updates"))
    store = asked.inbox
    return item_json(await store.update_inbox_item(asked.body.text("itemId"), patch))


async def resolve_item(asked: Asked) -> object:
    """`{response}` and, unless it stands in the path, `itemId`; `{resolved}`.

    False when there is no such item or somebody answered it before.
    """
    store, body = asked.inbox, asked.body
    item_id = asked.item or body.text("itemId")
    response = body.text("response")
    at = body.optional_text("resolved_at") or utc_now()
    if asked.live is not None:
        return {"resolved": await asked.live.resolve_inbox_item(item_id, response)}
    resolved = await store.resolve_inbox_item(item_id, response, at)
    if not resolved and asked.again:
        known = {item.id: item for item in await store.get_inbox_items()}.get(item_id)
        resolved = known is not None and (known.response, known.resolved_at) == (response, at)
    return {"resolved": resolved}


async def consume_items(asked: Asked) -> object:
    """`{itemIds, message}`; the message is appended and the items are consumed, or neither."""
    store, ids = asked.inbox, asked.body.texts("itemIds", MAX_LIST)
    message = read_batch([asked.body.raw("message")], "message")[0]
    try:
        await store.consume_inbox_items(ids, message)
    except UsageError:
        if not asked.again or not await are_stored(asked, [message]):
            raise
    return None


def _queue(asked: Asked) -> EventQueue:
    return asked.events.event_queue()


async def get_events(asked: Asked) -> object:
    """Those that no message showed yet, a list."""
    return [event_json(event) for event in await _queue(asked).peek()]


async def put_event(asked: Asked) -> object:
    """`{event}`; `{accepted}`, false when its id was seen before or nobody wants it."""
    event = event_from(Fields(asked.body.raw("event"), "event"))
    if asked.live is not None:
        receipt = await asked.live.emit_event(event)
        return {"accepted": receipt.status not in ("dropped", "duplicate")}
    event = event if event.id else replace(event, id=random_id("evt"))
    accepted = await _queue(asked).put(event)
    if not accepted and asked.again:
        accepted = event in await _queue(asked).peek()
    return {"accepted": accepted}


async def ack_events(asked: Asked) -> object:
    """`{ids}`: a stored message shows them."""
    await _queue(asked).ack(asked.body.texts("ids", MAX_LIST))
    return None


async def get_event_count(asked: Asked) -> object:
    """`{count}`."""
    return {"count": await _queue(asked).size()}
