"""PostgreSQL behind a server: opened from the configuration, lent out over HTTP."""

from __future__ import annotations

import pytest

from tests.core.store_cases_order import contents, fill
from tests.support.postgres import PASSWORD, PostgresServer
from tests.web.sessions_site import store_site
from voxglove.adapters.credentials import Secret
from voxglove.adapters.stores.remote import RemoteConfig, RemoteStores
from voxglove.web.config_reader import ConfigError
from voxglove.web.config_store import StoreConfig
from voxglove.web.stores import open_stores

pytestmark = pytest.mark.real_loop


async def test_a_server_lends_out_its_database(postgres: PostgresServer) -> None:
    config = StoreConfig(kind="postgres", dsn=Secret(postgres.dsn()))
    stores = await open_stores(config, {})
    try:
        async with store_site(stores) as here:
            clients = [RemoteStores(RemoteConfig(url=here.url)) for _ in range(2)]
            await fill(clients[0].store("lent"))
            assert await contents(clients[1].store("lent")) == await contents(
                clients[0].store("lent")
            )
            async with stores.session("lent") as own:
                assert [one.id for one in await own.get_messages()] == ["msg_full", "m2"]
            for client in clients:
                await client.aclose()
    finally:
        await stores.aclose()


async def test_the_address_may_come_from_the_usual_variable(postgres: PostgresServer) -> None:
    stores = await open_stores(StoreConfig(kind="postgres"), {"DATABASE_URL": postgres.dsn()})
    assert (stores.durable, stores.name) == (True, "postgres")
    await stores.aclose()


@pytest.mark.parametrize("end", ["?host=/nowhere", "@[::1", ""])
async def test_a_database_that_cannot_be_reached_ends_the_start_and_shows_no_secret(
    end: str,
) -> None:
    dsn = f"postgresql://user:{PASSWORD}@/x{end}" if end else "host=/nowhere"
    with pytest.raises(ConfigError, match="store: 'postgres' cannot be used") as refused:
        await open_stores(StoreConfig(kind="postgres", dsn=Secret(dsn)), {})
    assert PASSWORD not in str(refused.value)
