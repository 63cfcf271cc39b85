"""PostgresStore through the store suite, plainly and as behind a transaction pooler."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.adapters.stores_postgres.rig import PostgresRig, opened
from tests.core.store_suite import ConcurrencyCases, StoreRig, StoreSuite
from tests.support.postgres import PostgresServer

SCHEMA = "conformance"
"""One schema for all of them: the suite makes conversations of its own in each test."""


@pytest.mark.real_loop
class TestPostgresStore(StoreSuite):
    @pytest.fixture
    async def rig(self, postgres: PostgresServer) -> AsyncIterator[StoreRig]:
        async with opened(postgres, SCHEMA, max_size=4) as pool:
            yield PostgresRig(pool)


@pytest.mark.real_loop
class TestPostgresStoreBehindAPooler(ConcurrencyCases):
    @pytest.fixture
    async def rig(self, postgres: PostgresServer) -> AsyncIterator[StoreRig]:
        async with opened(postgres, SCHEMA, max_size=4, transaction_pooling=True) as pool:
            yield PostgresRig(pool)
