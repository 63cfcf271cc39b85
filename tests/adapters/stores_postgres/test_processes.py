"""Two processes at one database: one of them migrates, and one of them gets to answer."""

from __future__ import annotations

import pytest

from tests.adapters.stores_postgres.rig import opened, peers
from tests.support.postgres import PostgresServer
from voxglove.adapters.stores.postgres_migrations import migrations
from voxglove.core.records import InboxItem

NAMES = [f"i{number}" for number in range(8)]


@pytest.mark.real_loop
async def test_core_row_059_two_processes_migrate_one_schema_and_answer_each_item_once(
    postgres: PostgresServer, schema: str
) -> None:
    with peers(postgres, schema, 2) as both:
        for peer in both:
            peer.tell("open")
        assert [peer.answer() for peer in both] == ["opened", "opened"]
        steps = postgres.sql(f"SELECT count(*) FROM {schema}.migrations")
        assert steps == str(len(migrations()))
        async with opened(postgres, schema) as pool:
            store = pool.store("talk")
            for name in NAMES:
                await store.add_inbox_item(InboxItem(id=name, tag="t", request="r", created_at=""))
            for name in NAMES:
                for peer in both:
                    peer.tell(f"resolve talk {name}")
            answers = [{peer.answer() for peer in both} for _ in NAMES]
            assert answers == [{"True", "False"}] * len(NAMES)
            assert [item.id for item in await store.get_resolved_inbox_items()] == NAMES
            assert not await pool.resolve_inbox_item("talk", "i0", "late", "x")
            assert not await pool.resolve_inbox_item("elsewhere", "i0", "no", "x")
