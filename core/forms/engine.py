"""Changes forms: load, change, settle, commit, then run what the change owes.

The only part with I/O between the pure ones. Each change is a pure move, tried again on a fresh
copy when another writer was first. Hooks run after the commit that raised them, one at a time per
instance; whatever stops this task, the ledger still knows what is owed, and the next operation
resumes it under the same key. A hook may use the runner: a change made while hooks of the instance
run is committed at once and leaves its own hooks to the run that is under way.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

from .definition import FormDefinition
from .drift import Opened, opened
from .effects import FILL, HookContext, subject
from .errors import FormConflictError, FormRefused
from .evaluation import Evaluation, FormSnapshot, evaluate
from .hooks import HookEnd, run_hook
from .ledger import begun, closed, next_run, recorded, settle
from .outcomes import apply_effects
from .port import FormAdapter
from .state import Dispatch, DispatchState, FormInstance

logger = logging.getLogger(__name__)

RETRIES = 3
"""How often a change is tried again after another writer was first."""

T = TypeVar("T")
Move = Callable[[FormInstance, FormDefinition], tuple[FormInstance, T]]


class FormEngine:
    """See the module. Owned by a runner; all methods belong on one event loop.

    clock   the present moment as text, put into what is stored
    """

    def __init__(
        self,
        forms: Mapping[str, FormDefinition],
        adapter: FormAdapter,
        *,
        clock: Callable[[], str],
        hook_timeout_s: float,
    ) -> None:
        self.forms = forms
        self.adapter = adapter
        self.clock = clock
        self._hook_timeout_s = hook_timeout_s
        # Instances whose hooks run now; True once somebody left work to that run.
        self._busy: dict[str, bool] = {}
        self._reported: set[str] = set()

    def open(self, instance: FormInstance) -> FormSnapshot:
        """What a stored instance means to this process; writes nothing."""
        view = opened(self.forms.get(instance.form_id), instance, self.clock())
        if view.definition is None:
            return FormSnapshot(view.instance, None, None, view.reason)
        evaluation = evaluate(view.definition, view.instance)
        self._report(evaluation)
        return FormSnapshot(view.instance, view.definition, evaluation)

    async def load(self, instance_id: str) -> FormSnapshot:
        """Raises FormRefused if there is none."""
        return self.open(await self._get(instance_id))

    async def begin(self, instance: FormInstance, move: Move[T]) -> tuple[FormSnapshot, T]:
        """Store a new instance after `move`, and run the hooks it owes."""
        definition = self.forms[instance.form_id]
        instance, result = move(instance, definition)
        instance, _ = settle(definition, instance)
        await self.adapter.create(instance)
        return await self._drained(instance), result

    async def change(self, instance_id: str, move: Move[T]) -> tuple[FormSnapshot, T]:
        """Resume what is owed, apply `move`, run what that owes.

        Raises FormRefused (also with code form_stale or form_conflict) with nothing changed, and
        StoreError. After a cancellation the change is either stored or not; its hooks may be owed.
        """
        await self.resume(instance_id)
        instance, result = await self._commit(instance_id, move)
        return await self._drained(instance), result

    async def resume(self, instance_id: str) -> FormSnapshot:
        """Run the hooks of an instance that were interrupted or never begun."""
        snapshot = await self.load(instance_id)
        if snapshot.definition is None or next_run(snapshot.instance) is None:
            return snapshot
        return await self._drained(snapshot.instance)

    async def close(self, instance_id: str, reason: str) -> FormSnapshot:
        """Abandon an instance; legal for a stale one too. Raises FormRefused if it is closed."""
        for _ in range(RETRIES + 1):
            fresh = await self._get(instance_id)
            refuse_closed(fresh)
            ended = closed(fresh, "abandoned", reason)
            if await self._stored(ended, fresh.version):
                return await self.load(instance_id)
        raise _conflict(instance_id)

    # -- commits

    async def _get(self, instance_id: str) -> FormInstance:
        instance = await self.adapter.get(instance_id)
        if instance is None:
            raise FormRefused("form_unknown", f"There is no form instance {instance_id!r}.")
        return instance

    async def _commit(
        self, instance_id: str, move: Move[T], *, round: int = 1
    ) -> tuple[FormInstance, T]:
        for _ in range(RETRIES + 1):
            fresh = await self._get(instance_id)
            view = opened(self.forms.get(fresh.form_id), fresh, self.clock())
            definition = _usable(view)
            changed, result = move(view.instance, definition)
            if changed is not view.instance or view.instance is not fresh:
                changed, evaluation = settle(definition, changed, round=round)
                self._report(evaluation)
            if changed == fresh:
                return fresh, result
            if await self._stored(changed, fresh.version):
                return replace(changed, version=fresh.version + 1), result
        raise _conflict(instance_id)

    async def _stored(self, instance: FormInstance, version: int) -> bool:
        following = replace(instance, version=version + 1, updated_at=self.clock())
        try:
            await self.adapter.commit(following, if_version=version)
        except FormConflictError:
            return False
        return True

    # -- hooks

    async def _drained(self, instance: FormInstance) -> FormSnapshot:
        """Run owed hooks until none is left, then say where the form stands.

        A lost race here costs no answer: what could not be recorded stays owed.
        """
        if instance.id in self._busy:
            self._busy[instance.id] = True
            return self.open(instance)
        self._busy[instance.id] = False
        try:
            instance = await self._run_all(instance)
        except FormRefused as refused:
            logger.warning("form hooks left for later", extra={"refusal": refused.code})
            instance = await self._get(instance.id)
        finally:
            del self._busy[instance.id]
        return self.open(instance)

    async def _run_all(self, instance: FormInstance) -> FormInstance:
        while True:
            while (run := next_run(instance)) is not None:
                instance = await self._run(instance, run)
            # Asked and answered without an await in between, so nobody's work is left lying.
            if not self._busy[instance.id]:
                return instance
            self._busy[instance.id] = False
            instance = await self._get(instance.id)

    async def _run(self, instance: FormInstance, run: Dispatch) -> FormInstance:
        instance, started = await self._commit(instance.id, lambda fresh, _: begun(fresh, run))
        snapshot = self.open(instance)
        if started is None or snapshot.definition is None or snapshot.evaluation is None:
            return instance
        hook = snapshot.definition.hook(started.hook)
        if hook is None:  # the definition lost it on the way
            instance, _ = await self._commit(
                instance.id, lambda fresh, _: (recorded(fresh, started, "dropped"), None)
            )
            return instance
        context = _context(instance, snapshot.evaluation, started)
        end = await run_hook(hook, context, self._hook_timeout_s)
        instance, problems = await self._commit(
            instance.id,
            lambda fresh, definition: self._ended(fresh, definition, started, end),
            round=started.round + 1,
        )
        for problem in problems:
            logger.warning(
                "form hook asked in vain", extra={"hook_key": started.key, "problem": problem}
            )
        return instance

    def _ended(
        self, fresh: FormInstance, definition: FormDefinition, run: Dispatch, end: HookEnd
    ) -> tuple[FormInstance, tuple[str, ...]]:
        if end.failure is not None:
            return recorded(fresh, run, "failed", end.failure), ()
        applied = apply_effects(
            definition, fresh, run.hook, end.effects, round=run.round, at=self.clock()
        )
        state: DispatchState = "failed" if applied.note or applied.problems else "done"
        return recorded(applied.instance, run, state, applied.note), applied.problems

    def _report(self, evaluation: Evaluation) -> None:
        """Log each broken predicate once; it counts as false until it is repaired."""
        for place, error in evaluation.broken.items():
            if place not in self._reported:
                self._reported.add(place)
                logger.warning("form predicate failed", extra={"place": place, "error": error})


def refuse_closed(instance: FormInstance) -> None:
    """Raises FormRefused if nothing can change any more."""
    if instance.closed:
        reason = f": {instance.closed_reason}" if instance.closed_reason else ""
        raise FormRefused(
            "form_closed",
            f"The form {instance.form_id!r} was {instance.status}{reason}. Start it again if the"
            " user wants to.",
        )


def _usable(view: Opened) -> FormDefinition:
    if view.definition is None:
        raise FormRefused(
            "form_stale",
            f"The form {view.instance.form_id!r} cannot go on: {view.reason}. Abandon it and start"
            " it again.",
        )
    return view.definition


def _conflict(instance_id: str) -> FormRefused:
    return FormRefused(
        "form_conflict",
        f"The form instance {instance_id!r} was changed by somebody else at the same time. Look at"
        " its status and try again.",
    )


def _context(instance: FormInstance, evaluation: Evaluation, run: Dispatch) -> HookContext:
    field_id = subject(run.hook, FILL)
    return HookContext(
        key=run.key,
        hook=run.hook,
        occurrence=run.occurrence,
        instance_id=instance.id,
        form_id=instance.form_id,
        scope=instance.scope,
        values=evaluation.answers,
        progress=evaluation.progress,
        field=field_id,
        value=evaluation.answers.get(field_id) if field_id is not None else None,
    )
