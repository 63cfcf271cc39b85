"""Answers into the log: names looked up, each value checked for itself, good ones kept.

Pure. Neither the order of steps nor whether a field applies ever refuses an answer; only its own
schema does (spec core 13.8).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from .definition import FormDefinition
from .errors import FormRefused
from .fields import FormField, InvalidAnswer, as_json
from .revisions import append, log_of
from .state import FormInstance


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Who writes, why and when (ISO 8601, UTC)."""

    source: str
    at: str = ""
    reason: str | None = None

    @property
    def by_hook(self) -> bool:
        return self.source.startswith("hook:")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """One value that was not written, and what to do about it."""

    error: str
    hint: str | None = None
    did_you_mean: tuple[str, ...] = ()

    def as_data(self) -> dict[str, object]:
        """For a model: only what there is to say."""
        data: dict[str, object] = {"error": self.error}
        if self.hint:
            data["hint"] = self.hint
        if self.did_you_mean:
            data["did_you_mean"] = list(self.did_you_mean)
        return data


@dataclass(frozen=True, slots=True)
class WriteReport:
    """What became of each value: field ids, and for rejected ones the name that was used."""

    accepted: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    rejected: Mapping[str, Rejection] = field(default_factory=dict)


def write(
    definition: FormDefinition,
    instance: FormInstance,
    values: Mapping[str, object],
    origin: Origin,
) -> tuple[FormInstance, WriteReport]:
    """The instance with every value that fits. A value equal to the one in force adds nothing."""
    accepted: list[str] = []
    unchanged: list[str] = []
    rejected: dict[str, Rejection] = {}
    for name, value in values.items():
        try:
            target = found(definition, name)
            plain = as_json(value)
            target.parse(plain)
        except FormRefused as error:
            near = error.details.get("did_you_mean")
            names = tuple(str(one) for one in near) if isinstance(near, list) else ()
            rejected[name] = Rejection(error="there is no such field", did_you_mean=names)
            continue
        except InvalidAnswer as error:
            rejected[name] = Rejection(error=str(error), hint=error.hint)
            continue
        instance = landed(definition, instance, target.id, origin)
        said = log_of(instance, target.id).answer
        if said is not None and type(said.value) is type(plain) and said.value == plain:
            unchanged.append(target.id)
            continue
        accepted.append(target.id)
        instance = append(
            instance,
            target.id,
            plain,
            source=origin.source,
            at=origin.at,
            reason=origin.reason,
        )
    return instance, WriteReport(tuple(accepted), tuple(unchanged), rejected)


def found(definition: FormDefinition, name: str) -> FormField:
    """The field of that name, however it is spelled. Raises FormRefused with near names."""
    identity = definition.field_names.find(name)
    if identity is not None:
        return definition.fields[identity]
    near = definition.field_names.suggestions(name)
    hint = f" Did you mean {', '.join(near)}?" if near else " Inspect the form for its fields."
    raise FormRefused(
        "field_unknown",
        f"The form {definition.id!r} has no field {name!r}.{hint}",
        {"did_you_mean": near},
    )


def landed(
    definition: FormDefinition, instance: FormInstance, field_id: str, origin: Origin
) -> FormInstance:
    """The instance after somebody spoke about a field: a jump to its step has done its work."""
    if origin.by_hook or definition.fields[field_id].step != instance.jump:
        return instance
    return replace(instance, jump=None)
