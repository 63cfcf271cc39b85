"""FormRunner: the forms of one scope, for a host and for the tools.

A scope is whoever the answers belong to: a conversation, a call, a customer. The runner finds the
instance that is meant, refuses what is not allowed now, and leaves the rest to the engine. It
never touches an agent; mount.use_form_runner does.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from ..encoding import whole_text
from ..errors import UsageError
from ..messages import IdSource, random_id
from ..records import utc_now
from .definition import FormDefinition
from .effects import CHECKPOINT, Effect, Passed, as_effects
from .engine import FormEngine, refuse_closed
from .errors import FormRefused
from .evaluation import FormSnapshot
from .ledger import next_run
from .memory import MemoryFormAdapter
from .names import NameIndex
from .outcomes import apply_effects
from .port import FormAdapter
from .render import tier_zero
from .revisions import Direction, append, field_to_move, log_of, move
from .state import FormInstance
from .writing import Origin, WriteReport, found, landed, write

HOOK_TIMEOUT_S = 10.0
_LIVE = ("open", "awaiting")


@dataclass(frozen=True, slots=True, kw_only=True)
class FormChange:
    """A form after a change: where it stands, and what became of the values.

    moved          the field that was retracted, undone or redone
    already_open   start found this form begun already
    """

    snapshot: FormSnapshot
    report: WriteReport = field(default_factory=WriteReport)
    moved: str | None = None
    already_open: bool = False


class FormRunner:
    """See the module. `form` of its methods is a form id or an instance id; without it the one
    form is meant that is open, else the one completed last.

    All methods that change something raise FormRefused, with nothing changed, and StoreError.
    """

    def __init__(
        self,
        forms: Iterable[FormDefinition],
        *,
        scope: str,
        adapter: FormAdapter | None = None,
        hook_timeout_s: float = HOOK_TIMEOUT_S,
        clock: Callable[[], str] = utc_now,
        new_id: IdSource = random_id,
    ) -> None:
        """`hook_timeout_s` bounds each hook; `clock` gives the times that are stored."""
        self.forms: Mapping[str, FormDefinition] = _by_id(forms)
        if not scope:
            raise UsageError("scope: must not be empty; answers belong to somebody")
        if hook_timeout_s <= 0:
            raise UsageError("hook_timeout_s: must be positive")
        self.scope = scope
        self._new_id = new_id
        self._names = NameIndex({one.id: one.id for one in self.forms.values()})
        self._engine = FormEngine(
            self.forms,
            MemoryFormAdapter() if adapter is None else adapter,
            clock=clock,
            hook_timeout_s=hook_timeout_s,
        )

    # -- reading

    async def instances(self) -> list[FormSnapshot]:
        """All forms of the scope, the one begun last at the end."""
        return [self._engine.open(one) for one in await self._engine.adapter.list(self.scope)]

    async def status(self, form: str | None = None) -> FormSnapshot:
        """The form that is meant, closed ones included. Raises FormRefused."""
        return await self._pick(form)

    async def line(self) -> str:
        """Tier 0: what every turn is told; empty when nothing is open."""
        return tier_zero(await self.instances())

    # -- changing

    async def start(
        self, form: str, values: Mapping[str, object] | None = None, *, source: str = "host"
    ) -> FormChange:
        """Begin a form, with values that are known. If one is open it is that one, filled in."""
        definition = self._definition(form)
        for one in await self.instances():
            if one.instance.form_id == definition.id and one.instance.status in _LIVE:
                return await self._go_on(one, values or {}, source)
        instance = FormInstance(
            id=self._new_id("form"),
            form_id=definition.id,
            form_version=definition.version,
            scope=self.scope,
            created_at=self._engine.clock(),
            updated_at=self._engine.clock(),
        )
        origin = self._origin(source)
        snapshot, report = await self._engine.begin(
            instance, lambda fresh, form: write(form, fresh, values or {}, origin)
        )
        return FormChange(snapshot=snapshot, report=report)

    async def fill(
        self,
        values: Mapping[str, object],
        *,
        form: str | None = None,
        reason: str | None = None,
        source: str = "host",
    ) -> FormChange:
        """Write answers, by field id or label. Each is checked for itself; refused only if none
        of them fits (`values_rejected`, with the reasons in `details`)."""
        if not values:
            raise FormRefused("nothing_to_change", "No values were given.")
        instance = (await self._pick(form)).instance
        origin = self._origin(source, reason)

        def moved(
            fresh: FormInstance, definition: FormDefinition
        ) -> tuple[FormInstance, WriteReport]:
            _refuse_unwritable(fresh, definition)
            changed, report = write(definition, fresh, values, origin)
            _refuse_if_nothing_fits(report)
            return changed, report

        snapshot, report = await self._engine.change(instance.id, moved)
        return FormChange(snapshot=snapshot, report=report)

    async def retract(
        self,
        field: str,
        *,
        form: str | None = None,
        reason: str | None = None,
        source: str = "host",
    ) -> FormChange:
        """Take an answer back; it stays in the log."""
        instance = (await self._pick(form)).instance
        origin = self._origin(source, reason)

        def moved(fresh: FormInstance, definition: FormDefinition) -> tuple[FormInstance, str]:
            _refuse_unwritable(fresh, definition)
            target = found(definition, field)
            if log_of(fresh, target.id).answer is None:
                raise FormRefused("nothing_to_change", f"{target.label} has no answer.")
            fresh = append(
                landed(definition, fresh, target.id, origin),
                target.id,
                None,
                source=source,
                at=origin.at,
                reason=origin.reason,
                retracted=True,
            )
            return fresh, target.id

        snapshot, target_id = await self._engine.change(instance.id, moved)
        return FormChange(snapshot=snapshot, moved=target_id)

    async def undo(
        self, field: str | None = None, *, form: str | None = None, source: str = "host"
    ) -> FormChange:
        """Go back to the answer before, of one field or of the last one a person gave."""
        return await self._moved("undo", field, form, source)

    async def redo(
        self, field: str | None = None, *, form: str | None = None, source: str = "host"
    ) -> FormChange:
        """Take an undo back."""
        return await self._moved("redo", field, form, source)

    async def abandon(self, reason: str, *, form: str | None = None) -> FormChange:
        """Close a form for good; also one that waits, is complete, or is stale."""
        instance = (await self._pick(form)).instance
        return FormChange(snapshot=await self._engine.close(instance.id, whole_text(reason)))

    async def resolve_checkpoint(
        self, checkpoint: str, *effects: Effect, form: str | None = None
    ) -> FormChange:
        """Decide a blocking checkpoint from outside the conversation.

        Without effects it has passed; Fail refuses. A refusal may be overruled while it stands.
        Raises FormRefused(`checkpoint_not_waiting`) when there is nothing (left) to decide.
        """
        instance = (await self._pick(form)).instance
        decided = as_effects(effects)

        def moved(fresh: FormInstance, definition: FormDefinition) -> tuple[FormInstance, None]:
            return self._resolved(fresh, definition, checkpoint, decided), None

        snapshot, _ = await self._engine.change(instance.id, moved)
        return FormChange(snapshot=snapshot)

    async def resume(self) -> None:
        """Run what hooks of this scope's forms owe: after a restart, or before a turn."""
        for snapshot in await self.instances():
            if snapshot.definition is not None and next_run(snapshot.instance) is not None:
                await self._engine.resume(snapshot.instance.id)

    # -- finding and refusing

    def _definition(self, form: str) -> FormDefinition:
        identity = self._names.find(form)
        if identity is not None:
            return self.forms[identity]
        near = self._names.suggestions(form)
        known = ", ".join(self.forms)
        raise FormRefused(
            "form_unknown",
            f"There is no form {form!r}. Forms: {known}.",
            {"did_you_mean": near, "forms": list(self.forms)},
        )

    async def _pick(self, form: str | None) -> FormSnapshot:
        instances = await self.instances()
        if form is not None:
            exact = [one for one in instances if one.instance.id == form]
            form_id = "" if exact else self._definition(form).id
            instances = exact or [one for one in instances if one.instance.form_id == form_id]
        live = [one for one in instances if one.instance.status in _LIVE]
        if len(live) > 1:
            names = [one.instance.form_id for one in live]
            raise FormRefused(
                "form_ambiguous",
                f"Several forms are open: {', '.join(names)}. Say which one (form).",
                {"open": names},
            )
        rest = live or [one for one in instances if not one.instance.closed] or instances
        if not rest:
            raise FormRefused(
                "form_not_open",
                "No such form is open. Start it first." if form else "No form is open. Start one.",
                {"forms": list(self.forms)},
            )
        return rest[-1]

    async def _go_on(
        self, begun: FormSnapshot, values: Mapping[str, object], source: str
    ) -> FormChange:
        if not values:
            return FormChange(snapshot=begun, already_open=True)
        change = await self.fill(values, form=begun.instance.id, source=source)
        return FormChange(snapshot=change.snapshot, report=change.report, already_open=True)

    async def _moved(
        self, direction: Direction, field: str | None, form: str | None, source: str
    ) -> FormChange:
        instance = (await self._pick(form)).instance
        origin = self._origin(source)

        def moved(fresh: FormInstance, definition: FormDefinition) -> tuple[FormInstance, str]:
            _refuse_unwritable(fresh, definition)
            if field:
                target: str | None = found(definition, field).id
            else:
                target = field_to_move(fresh, direction, definition.field_ids)
            changed = move(fresh, target, direction) if target is not None else None
            if changed is None or target is None:
                raise FormRefused("nothing_to_change", f"There is nothing to {direction}.")
            return landed(definition, changed, target, origin), target

        snapshot, target_id = await self._engine.change(instance.id, moved)
        return FormChange(snapshot=snapshot, moved=target_id)

    def _resolved(
        self,
        fresh: FormInstance,
        definition: FormDefinition,
        checkpoint: str,
        effects: tuple[Effect, ...],
    ) -> FormInstance:
        refuse_closed(fresh)
        if checkpoint in fresh.rejected:
            kept = {one: why for one, why in fresh.rejected.items() if one != checkpoint}
            fresh = replace(fresh, awaiting=(*fresh.awaiting, checkpoint), rejected=kept)
        if checkpoint not in fresh.awaiting:
            waiting = ", ".join(fresh.awaiting) or "none"
            raise FormRefused(
                "checkpoint_not_waiting",
                f"The checkpoint {checkpoint!r} is not undecided; undecided: {waiting}.",
            )
        hook, at = CHECKPOINT + checkpoint, self._engine.clock()
        applied = apply_effects(definition, fresh, hook, effects or (Passed(),), round=1, at=at)
        if applied.problems:
            raise UsageError(f"resolve_checkpoint: {'; '.join(applied.problems)}")
        return applied.instance

    def _origin(self, source: str, reason: str | None = None) -> Origin:
        why = whole_text(reason) if reason else None
        return Origin(source=source, at=self._engine.clock(), reason=why)


def _by_id(forms: Iterable[FormDefinition]) -> dict[str, FormDefinition]:
    found_forms: dict[str, FormDefinition] = {}
    for one in forms:
        if one.id in found_forms:
            raise UsageError(f"forms: two are called {one.id!r}; every form needs an id of its own")
        found_forms[one.id] = one
    if not found_forms:
        raise UsageError("forms: give at least one form, made by define_form(…)…build()")
    return found_forms


def _refuse_unwritable(instance: FormInstance, definition: FormDefinition) -> None:
    refuse_closed(instance)
    if not instance.awaiting:
        return
    checkpoint = definition.checkpoint(instance.awaiting[0])
    message = checkpoint.wait_message if checkpoint is not None else None
    raise FormRefused(
        "form_blocked",
        f"The form {instance.form_id!r} waits for {instance.awaiting[0]!r} to be decided and cannot"
        " change until then. Nothing was written; say so and do not try again yet.",
        {"waiting_for": list(instance.awaiting), "say": message or "One moment, this is checked."},
    )


def _refuse_if_nothing_fits(report: WriteReport) -> None:
    if report.accepted or report.unchanged:
        return
    raise FormRefused(
        "values_rejected",
        "None of the values was written.",
        {"rejected": {name: why.as_data() for name, why in report.rejected.items()}},
    )
