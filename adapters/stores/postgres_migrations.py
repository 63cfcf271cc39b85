"""Numbered migrations of the PostgreSQL schema, raced safely by any number of processes.

The SQL files stand in data/postgres and never change once released: a checksum is kept with each.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from ...core.errors import StoreError
from .postgres_database import Database
from .postgres_wire import Connection

FOLDER = "data/postgres"

LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('voxglove.migrations.' || $1, 0))"
# Asked of the catalogue and not of to_regclass(): that answers from a cache which an advisory lock
# does not refresh, so one who waited would not see what the other has made.
SCHEMA_EXISTS = "SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = $1)"
TABLE_EXISTS = """
SELECT EXISTS (
    SELECT FROM pg_catalog.pg_class AS class
    JOIN pg_catalog.pg_namespace AS space ON space.oid = class.relnamespace
    WHERE space.nspname = $1 AND class.relname = 'migrations'
)"""
CREATE_TABLE = """
CREATE TABLE {s}.migrations (
    version integer PRIMARY KEY,
    name text NOT NULL,
    checksum text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
)"""
APPLIED = "SELECT version, checksum FROM {s}.migrations ORDER BY version"
RECORD = "INSERT INTO {s}.migrations (version, name, checksum) VALUES ($1, $2, $3)"


@dataclass(frozen=True, slots=True)
class Migration:
    """One step; `version` counts from 1 without gaps."""

    version: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.sql.encode()).hexdigest()


@cache
def migrations() -> tuple[Migration, ...]:
    """All steps this version knows, in order."""
    folder = files(__package__).joinpath(FOLDER)
    names = sorted(one.name for one in folder.iterdir() if one.name.endswith(".sql"))
    return tuple(
        Migration(int(name[:4]), name.removesuffix(".sql"), folder.joinpath(name).read_text())
        for name in names
    )


async def migrate(database: Database, steps: tuple[Migration, ...] | None = None) -> None:
    """Bring the schema to the last step.

    Each step and its record are one transaction, under an advisory lock of that transaction: one
    process does it, the others wait and find it done. A schema that is up to date is only read, so
    a role without the right to create tables can open it. Raises StoreError when the schema is
    newer than this code, or was made by other files.
    """
    steps = migrations() if steps is None else steps
    await database.run("checking the encoding", _check_encoding, again=True)
    for _ in range(len(steps) + 1):

        async def look(connection: Connection) -> int:
            return await _version(database, connection, steps)

        version = await database.run("reading the schema's version", look, again=True)
        if version == len(steps):
            return
        if not database.config.migrate:
            raise StoreError(
                f"schema {database.config.schema!r} is at version {version}, this voxglove needs "
                f"{len(steps)}: open it once with migrate=True"
            )

        async def step(connection: Connection) -> None:
            await _step(database, connection, steps)

        await database.run("migrating", step, again=True, atomic=True)


async def _step(database: Database, connection: Connection, steps: tuple[Migration, ...]) -> None:
    """Apply the next step, if another process has not."""
    schema, wait = database.config.schema, database.config.migrate_timeout_s
    await connection.execute(LOCK, schema, timeout=wait)
    version = await _version(database, connection, steps)
    if version == len(steps):
        return
    if version == 0:
        if not await connection.fetchval(SCHEMA_EXISTS, schema):
            await connection.execute(database.sql("CREATE SCHEMA {s}"))
        if not await connection.fetchval(TABLE_EXISTS, schema):
            await connection.execute(database.sql(CREATE_TABLE))
    step = steps[version]
    await connection.execute(database.sql("SET LOCAL search_path TO {s}"))
    await connection.execute(step.sql, timeout=wait)
    await connection.execute(database.sql(RECORD), step.version, step.name, step.checksum)


async def _version(database: Database, connection: Connection, steps: tuple[Migration, ...]) -> int:
    """Steps applied so far; refuses what this code did not make."""
    schema = database.config.schema
    if not await connection.fetchval(TABLE_EXISTS, schema):
        return 0
    applied = await connection.fetch(database.sql(APPLIED))
    if len(applied) > len(steps):
        raise StoreError(
            f"schema {schema!r} is at version {len(applied)}, this voxglove knows {len(steps)}: "
            "upgrade voxglove or name another schema"
        )
    for row, step in zip(applied, steps, strict=False):
        if (row["version"], row["checksum"]) != (step.version, step.checksum):
            raise StoreError(
                f"schema {schema!r}: migration {row['version']} is not this voxglove's "
                f"{step.name!r}: name another schema"
            )
    return len(applied)


async def _check_encoding(connection: Connection) -> None:
    encoding = await connection.fetchval("SELECT current_setting('server_encoding')")
    if encoding != "UTF8":
        raise StoreError(
            f"the database's encoding is {encoding}: create one with ENCODING 'UTF8' "
            "(CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0)"
        )
