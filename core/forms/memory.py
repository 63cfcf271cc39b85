"""MemoryFormAdapter: forms in a dictionary, gone with the process; they survive reconnects.

Atomic on the event loop, for no method awaits. Instances are kept as JSON, so reads are snapshots.
"""

from dataclasses import dataclass

from .errors import FormConflictError
from .state import FormInstance, decode_instance, encode_instance


@dataclass(frozen=True, slots=True)
class _Row:
    scope: str
    form_id: str
    version: int
    body: bytes


class MemoryFormAdapter:
    """The reference adapter; see port.FormAdapter."""

    def __init__(self) -> None:
        self._rows: dict[str, _Row] = {}

    async def create(self, instance: FormInstance) -> None:
        if instance.id in self._rows:
            raise FormConflictError(f"form instance {instance.id!r} exists already")
        self._rows[instance.id] = _row(instance)

    async def get(self, instance_id: str) -> FormInstance | None:
        row = self._rows.get(instance_id)
        return None if row is None else decode_instance(row.body)

    async def commit(self, instance: FormInstance, *, if_version: int) -> None:
        row = self._rows.get(instance.id)
        if row is None or row.version != if_version:
            stored = "none" if row is None else f"version {row.version}"
            raise FormConflictError(f"form instance {instance.id!r}: {if_version} asked, {stored}")
        self._rows[instance.id] = _row(instance)

    async def list(self, scope: str, *, form_id: str | None = None) -> list[FormInstance]:
        return [
            decode_instance(row.body)
            for row in self._rows.values()
            if row.scope == scope and form_id in (None, row.form_id)
        ]


def _row(instance: FormInstance) -> _Row:
    return _Row(instance.scope, instance.form_id, instance.version, encode_instance(instance))
