"""The adapter port: where goals are kept, and the adapter in memory."""

from typing import Protocol

from ..errors import CoreError
from .values import GoalInstance, Scope


class GoalConflict(CoreError):
    """Somebody else changed the goals meanwhile; read them again and decide anew."""


class GoalAdapter(Protocol):
    """Keeps one instance for each scope. Raises StoreError when it cannot.

    A commit is compare-and-set and all or nothing: it lands if and only if the stored revision is
    `if_revision`. What was handed out does not change later.
    """

    async def get(self, scope: Scope) -> GoalInstance | None: ...

    async def create(self, instance: GoalInstance) -> None:
        """Store the first instance of its scope. Raises GoalConflict if there is one."""

    async def commit(self, instance: GoalInstance, *, if_revision: int) -> None:
        """Replace the stored instance. Raises GoalConflict if its revision is not `if_revision`."""


class MemoryGoalAdapter:
    """Goals survive agents and reconnects, not the process."""

    def __init__(self) -> None:
        self._instances: dict[Scope, GoalInstance] = {}

    async def get(self, scope: Scope) -> GoalInstance | None:
        return self._instances.get(scope)

    async def create(self, instance: GoalInstance) -> None:
        if instance.scope in self._instances:
            raise GoalConflict(f"goals of {instance.scope} exist already")
        self._instances[instance.scope] = instance

    async def commit(self, instance: GoalInstance, *, if_revision: int) -> None:
        stored = self._instances.get(instance.scope)
        if stored is None or stored.revision != if_revision:
            found = "nothing" if stored is None else f"revision {stored.revision}"
            raise GoalConflict(f"revision: {found} is stored, not {if_revision}")
        self._instances[instance.scope] = instance
