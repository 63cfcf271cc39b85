"""The adapter port: where forms are kept.

An adapter stores FormInstance values and gives them back; every meaning is the engine's. Four
things must hold, and tests/core/forms/conformance.py checks them on any adapter:

1. A commit is compare-and-set on `version`: it lands if and only if the stored version is
   `if_version`. A loser gets FormConflictError and the store is unchanged.
2. A commit is all or nothing. Answers, edges, ledger and status are one value; writing
   `encode_instance(instance)` into one row beside `id`, `scope`, `form_id`, `status`, `version`
   and `created_at` is enough, with `UPDATE … WHERE id = ? AND version = ?`.
3. Nothing is lost: an instance comes back equal to what was committed.
4. Reads are snapshots: what was handed out does not change later.
"""

from typing import Protocol

from .state import FormInstance


class FormAdapter(Protocol):
    """Keeps forms. Raises StoreError when it cannot; every method may be called concurrently."""

    async def create(self, instance: FormInstance) -> None:
        """Store a new instance. Raises FormConflictError if its id is taken."""

    async def get(self, instance_id: str) -> FormInstance | None:
        """The instance as last committed, or None."""
        ...

    async def commit(self, instance: FormInstance, *, if_version: int) -> None:
        """Replace the stored instance, whose version must be `if_version`; `instance.version` is
        the new one, `if_version + 1`. Raises FormConflictError if it is another or none is."""

    async def list(self, scope: str, *, form_id: str | None = None) -> list[FormInstance]:
        """The instances of a scope, the one begun last at the end."""
        ...
