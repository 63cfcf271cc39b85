"""How the PostgreSQL store is set up, as one value."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ...core.errors import UsageError

_IDENTIFIER = re.compile(r"[a-z_][a-z0-9_]{0,62}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresConfig:
    """Settings of one pool.

    schema               the schema our tables live in, made when missing; a database holds several
    min_size, max_size   connections kept warm, and at most
    connect_timeout_s    for a new connection, its handshake and login included
    acquire_timeout_s    how long a call waits for a free connection (a new one included)
    command_timeout_s    for one statement
    migrate_timeout_s    for one statement of a migration, waiting for another process included
    close_timeout_s      how long aclose() waits for running calls before it drops them
    statement_cache_size prepared statements kept by each connection
    transaction_pooling  for a pooler that lends a server connection for one transaction (pgbouncer
                         `pool_mode = transaction`): no prepared statement outlives a transaction
    migrate              False: only check the version; for a role that may not create tables
    application_name     as the server shows it in pg_stat_activity
    """

    schema: str = "voxglove"
    min_size: int = 1
    max_size: int = 10
    connect_timeout_s: float = 5.0
    acquire_timeout_s: float = 10.0
    command_timeout_s: float = 10.0
    migrate_timeout_s: float = 60.0
    close_timeout_s: float = 5.0
    statement_cache_size: int = 100
    transaction_pooling: bool = False
    migrate: bool = True
    application_name: str = "voxglove"

    def __post_init__(self) -> None:
        if not _IDENTIFIER.fullmatch(self.schema) or self.schema.startswith("pg_"):
            raise UsageError(
                f"PostgresConfig.schema: {self.schema!r} is no plain name: use a-z, 0-9 and _, at "
                "most 63, no digit and no pg_ in front"
            )
        if not 0 <= self.min_size <= self.max_size or self.max_size < 1:
            raise UsageError("PostgresConfig: 0 <= min_size <= max_size and 1 <= max_size needed")
        if self.statement_cache_size < 0:
            raise UsageError("PostgresConfig.statement_cache_size: must not be negative")
        for name in ("connect", "acquire", "command", "migrate", "close"):
            if not getattr(self, f"{name}_timeout_s") > 0:
                raise UsageError(f"PostgresConfig.{name}_timeout_s: must be above 0")
