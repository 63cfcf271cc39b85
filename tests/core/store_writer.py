"""A process that writes to an SQLite store until it is killed, telling what was committed.

Started by test_store_kill.py. It reads seeds from stdin; for each it forks a writer, says `pid N`,
and, when that is dead, `dead`. A writer prints one line for each call that returned:

    append <talk> <id>,<id>,…    amend <talk> <id> <count>    consume <talk> <item> <id>
    put <talk> <event>           ack <talk> <event>           turn <talk>
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
import uuid

from voxglove.core import AgentEvent, Message
from voxglove.core.records import InboxItem
from voxglove.core.stores import SqliteStore

TALKS = ("one", "two")
BATCHES = (1, 2, 80)
"""Sizes of an append; the large one takes long enough to be killed in the middle of."""

POSTED = "2025-03-01T10:00:00.000+00:00"


def message(message_id: str, size: int) -> Message:
    """Its text repeats its id, so that half a message would show."""
    return Message(sender="user", id=message_id, text=f"{message_id} " * size)


def tell(*words: str) -> None:
    os.write(1, (" ".join(words) + "\n").encode())


async def write(store: SqliteStore, dice: random.Random) -> None:
    talk = store.identifier
    run = uuid.uuid4().hex[:8]
    count = 0
    last = ""
    while True:
        count += 1
        name = f"{run}-{count}"
        match dice.choice(("append", "append", "amend", "consume", "event", "turn")):
            case "append":
                ids = [f"{name}-{at}" for at in range(dice.choice(BATCHES))]
                await store.append_messages(
                    [message(one, dice.choice((1, 50, 500))) for one in ids]
                )
                tell("append", talk, ",".join(ids))
                last = ids[-1]
            case "amend" if last:
                await store.amend_message(last, {"heard": str(count)})
                tell("amend", talk, last, str(count))
            case "consume":
                item = InboxItem(id=name, tag="t", request="r", created_at=POSTED)
                await store.add_inbox_item(item)
                await store.resolve_inbox_item(name, "yes", POSTED)
                await store.consume_inbox_items([name], message(f"{name}-0", 50))
                tell("consume", talk, name, f"{name}-0")
            case "event":
                await store.event_queue().put(AgentEvent(id=name, source="s", content="c"))
                tell("put", talk, name)
                if dice.random() < 0.5:
                    await store.event_queue().ack([name])
                    tell("ack", talk, name)
            case "turn":
                await store.increment_turn()
                tell("turn", talk)


async def write_all(path: str, seed: str) -> None:
    async with asyncio.TaskGroup() as group:
        for talk in TALKS:
            group.create_task(write(SqliteStore(path, talk), random.Random(f"{seed} {talk}")))


def main(path: str) -> None:
    for seed in sys.stdin:
        writer = os.fork()
        if writer == 0:
            asyncio.run(write_all(path, seed))
        tell("pid", str(writer))
        os.waitpid(writer, 0)
        tell("dead")


if __name__ == "__main__":
    main(sys.argv[1])
