"""Stores that need nothing but Python."""

from .memory import MemoryStore
from .sqlite import SqliteStore
from .sqlite_database import SqliteConfig
from .sqlite_outside import SessionSummary, delete_session, list_sessions, resolve_inbox_item

__all__ = [
    "MemoryStore",
    "SessionSummary",
    "SqliteConfig",
    "SqliteStore",
    "delete_session",
    "list_sessions",
    "resolve_inbox_item",
]
