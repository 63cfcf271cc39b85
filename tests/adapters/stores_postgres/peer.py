"""Another process of the same database, led line by line over its standard input.

peer.py DSN SCHEMA      prints `ready`, then for each command a line of its own:
open                    -> `opened`, or `failed …`
resolve SESSION ITEM    -> `True` or `False`
write SESSION           -> after each stored batch of three its number, without end
"""

from __future__ import annotations

import asyncio
import itertools
import sys

from voxglove.adapters.stores.postgres import PostgresConfig, PostgresPool, open_postgres
from voxglove.core.errors import StoreError
from voxglove.core.messages import Message


def say(text: object) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


async def write(pool: PostgresPool, session: str) -> None:
    store = pool.store(session)
    for number in itertools.count():
        texts = [f"{number}.{at}" for at in range(3)]
        await store.append_messages([Message(sender="user", id=one, text=one) for one in texts])
        say(number)


async def main(dsn: str, schema: str) -> None:
    pool: PostgresPool | None = None
    say("ready")
    while line := await asyncio.to_thread(sys.stdin.readline):
        match line.split():
            case ["open"]:
                try:
                    pool = await open_postgres(dsn, PostgresConfig(schema=schema))
                    say("opened")
                except StoreError as error:
                    say(f"failed {error}")
            case ["resolve", session, item] if pool is not None:
                say(await pool.resolve_inbox_item(session, item, "yes", "2025-03-02T11:30:00Z"))
            case ["write", session] if pool is not None:
                await write(pool, session)
    if pool is not None:
        await pool.aclose()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
