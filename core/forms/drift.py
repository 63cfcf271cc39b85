"""An instance that was begun under another version of its definition.

Pure, and nothing is written by looking: an older instance is carried over by the definition's
migrate function, and stored so with its next change; without one it is stale, as is an instance
of a newer version (a roll-out still runs) or of a form that is gone. A stale one comes back to
life when its version does.
"""

from dataclasses import dataclass, replace

from ..errors import UsageError
from .definition import FormDefinition
from .revisions import append, log_of
from .state import FormInstance
from .writing import Origin, write


@dataclass(frozen=True, slots=True)
class Opened:
    """An instance with the definition it can be used under; None if it is stale for `reason`."""

    instance: FormInstance
    definition: FormDefinition | None
    reason: str = ""


def opened(definition: FormDefinition | None, instance: FormInstance, at: str) -> Opened:
    """The instance as this process can use it. Never raises for what a migrate function does."""
    if definition is None:
        return _stale(instance, f"the form {instance.form_id!r} is not registered any more")
    then, now = instance.form_version, definition.version
    if then == now or instance.closed:
        return Opened(instance, definition)
    if then > now:
        return _stale(instance, f"it was begun with version {then}, this is version {now}")
    if definition.migrate is None:
        return _stale(instance, f"the form has changed from version {then} to {now}")
    try:
        return Opened(_migrated(definition, instance, at), definition)
    except Exception as error:  # a user's function; the form is stale, the turn goes on
        return _stale(instance, f"its answers could not be carried over ({error})")


def _migrated(definition: FormDefinition, instance: FormInstance, at: str) -> FormInstance:
    if definition.migrate is None:
        raise UsageError("migrate: there is none")
    before = {
        field_id: log.answer.value
        for field_id, log in instance.logs.items()
        if log.answer is not None
    }
    after = definition.migrate(dict(before), instance.form_version)
    reason = f"version {instance.form_version} to {definition.version}"
    origin = Origin(source="migrate", at=at, reason=reason)
    jump = instance.jump if definition.step(instance.jump or "") else None
    instance, report = write(definition, replace(instance, jump=None), after, origin)
    if report.rejected:
        name, why = next(iter(report.rejected.items()))
        raise UsageError(f"{name}: {why.error}")
    for field_id in definition.fields:
        if field_id not in after and log_of(instance, field_id).answer is not None:
            instance = append(
                instance, field_id, None, source="migrate", at=at, reason=reason, retracted=True
            )
    waiting = tuple(one for one in instance.awaiting if definition.checkpoint(one))
    return replace(instance, form_version=definition.version, jump=jump, awaiting=waiting)


def _stale(instance: FormInstance, reason: str) -> Opened:
    return Opened(instance if instance.closed else replace(instance, status="stale"), None, reason)
