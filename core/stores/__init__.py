"""Stores that need nothing but Python."""

from .memory import MemoryStore

__all__ = ["MemoryStore"]
