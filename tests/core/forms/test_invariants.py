"""What holds for a form whatever is done to it, in any order, with crashes in the middle of hooks.

Every commit is watched at the adapter: logs only grow, cursors stay inside, versions count by one,
edges and completion are what a second, plain reckoning says, each run is finished at most once and
every one that was begun is finished under its key.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.core.forms.rig import runner
from tests.support.vloop import run_virtual
from voxglove.core.forms import (
    Effect,
    Fail,
    FieldSpec,
    FormDefinition,
    FormInstance,
    FormRefused,
    FormRunner,
    HookContext,
    Jump,
    MemoryFormAdapter,
    Passed,
    Patch,
    define_form,
)

FIELDS = ("mode", "miles", "total", "email")


class Crash(BaseException):
    """The process ends in the middle of a hook."""


def said(instance: FormInstance) -> dict[str, Any]:
    logs = instance.logs
    found = {name: logs[name].answer for name in FIELDS if name in logs}
    return {name: one.value for name, one in found.items() if one is not None}


def live(instance: FormInstance) -> dict[str, Any]:
    """Reckoned by hand: miles count for a car only, email only once a mode is known."""
    answers = said(instance)
    if answers.get("mode") != "car":
        answers.pop("miles", None)
    return answers


def conditions(instance: FormInstance) -> dict[str, bool]:
    """What should hold, by hook, but for the form's own."""
    answers = live(instance)
    needed = {"mode", "miles"} if answers.get("mode") == "car" else {"mode"}
    return {
        **{f"fill.{name}": name in answers for name in FIELDS},
        "step.trip": needed <= answers.keys(),
        "step.money": {"total"} <= answers.keys(),
        "checkpoint.cap": answers.get("total", 0) > 5,
        "checkpoint.far": answers.get("miles", 0) > 5,
    }


class Watched(MemoryFormAdapter):
    """Judges every commit before it lands."""

    def __init__(self) -> None:
        super().__init__()
        self.finished: Counter[str] = Counter()

    async def create(self, instance: FormInstance) -> None:
        blank = FormInstance(
            id=instance.id,
            form_id=instance.form_id,
            form_version=instance.form_version,
            scope=instance.scope,
            version=0,
        )
        self.judge(blank, instance)
        await super().create(instance)

    async def commit(self, instance: FormInstance, *, if_version: int) -> None:
        before = await self.get(instance.id)
        assert before is not None
        self.judge(before, instance)
        await super().commit(instance, if_version=if_version)

    def judge(self, before: FormInstance, after: FormInstance) -> None:
        assert after.version == before.version + 1
        assert not before.closed, "nothing changes after the end"
        self._logs(before, after)
        self._runs(before, after)
        if not after.closed:
            self._edges(before, after)
            self._status(after)

    def _logs(self, before: FormInstance, after: FormInstance) -> None:
        for name, log in before.logs.items():
            assert after.logs[name].revisions[: len(log.revisions)] == log.revisions
        numbers = [one.seq for log in after.logs.values() for one in log.revisions]
        assert sorted(numbers) == list(range(1, len(numbers) + 1))
        for log in after.logs.values():
            assert -1 <= log.cursor < len(log.revisions)
            assert all(-1 <= one.parent < at for at, one in enumerate(log.revisions))

    def _edges(self, before: FormInstance, after: FormInstance) -> None:
        wanted = conditions(after)
        finished = after.forced or (self._answered(after) and not after.rejected)
        wanted["form.complete"] = finished and not after.awaiting
        for hook, high in wanted.items():
            was, now = before.edges.get(hook), after.edges.get(hook)
            assert (now is not None and now.high) == high, hook
            count = was.occurrence if was is not None else 0
            rose = high and not (was is not None and was.high)
            assert (now.occurrence if now is not None else 0) == count + rose, hook

    def _status(self, after: FormInstance) -> None:
        high = after.edges.get("form.complete")
        complete = high is not None and high.high
        wanted = "awaiting" if after.awaiting else "complete" if complete else "open"
        assert after.status == wanted

    def _runs(self, before: FormInstance, after: FormInstance) -> None:
        keys = [one.key for one in after.ledger]
        assert len(keys) == len(set(keys))
        states = {one.key: one for one in before.ledger}
        for one in after.ledger:
            assert one.key == f"{after.id}:{one.hook}:{one.occurrence}"
            was = states.get(one.key)
            if was is not None and was.state != "pending":
                assert one == was, "a finished run stays as it is"
            if one.state in ("done", "failed") and (was is None or was.state == "pending"):
                self.finished[one.key] += 1

    @staticmethod
    def _answered(instance: FormInstance) -> bool:
        return conditions(instance)["step.trip"] and conditions(instance)["step.money"]


@dataclass
class Hooks:
    """Hooks that do what the plan says next: crash, patch, fail, jump, or nothing."""

    plan: list[str]
    begun: Counter[str] = field(default_factory=Counter)
    ended: Counter[str] = field(default_factory=Counter)

    async def __call__(self, context: HookContext) -> list[Effect] | None:
        self.begun[context.key] += 1
        what = self.plan.pop(0) if self.plan else "nothing"
        if what == "crash":
            raise Crash
        self.ended[context.key] += 1
        if what == "raise":
            raise RuntimeError("broken")
        effects: dict[str, list[Effect]] = {
            "patch": [Patch({"total": 9}), Patch({"miles": "bad"})],
            "clear": [Patch({"total": 1})],
            "fail": [Fail("no")],
            "jump": [Jump("trip")],
            "pass": [Passed()],
        }
        return effects.get(what)


def form(hooks: Hooks) -> FormDefinition:
    trip = {
        "mode": FieldSpec(schema=str),
        "miles": FieldSpec(schema=int, when=lambda a: a.mode == "car"),
    }
    money = {"total": FieldSpec(schema=int), "email": FieldSpec(schema=str, default="")}
    built = (
        define_form(id="f", version=1, name="F", description="d")
        .step("trip", title="Trip", fields=trip, on_complete=hooks)
        .step("money", title="Money", fields=money, on_complete=hooks)
        .checkpoint("cap", when=lambda a: (a.total or 0) > 5, blocking=True, run=hooks)
        .checkpoint("far", when=lambda a: (a.miles or 0) > 5, run=hooks)
        .on_complete(hooks)
    )
    for name in FIELDS:
        built.on_fill(name, hooks)
    return built.build()


ANSWERS = st.one_of(
    st.builds(lambda v: {"mode": v}, st.sampled_from(["car", "rail"])),
    st.builds(lambda v: {"miles": v}, st.integers(1, 9)),
    st.builds(lambda v: {"total": v}, st.integers(1, 9)),
    st.builds(lambda v, w: {"email": "x", "total": v, "mode": w}, st.just(3), st.just("car")),
    st.just({"total": "bad", "nothing": 1}),
)
ACTS = st.one_of(
    st.tuples(st.just("fill"), ANSWERS),
    st.tuples(st.just("retract"), st.sampled_from(FIELDS)),
    st.tuples(st.sampled_from(["undo", "redo"]), st.sampled_from([None, *FIELDS])),
    st.tuples(st.just("resolve"), st.sampled_from(["pass", "fail", "patch"])),
    st.tuples(st.just("restart"), st.none()),
)
PLAN = st.lists(
    st.sampled_from(
        ["nothing", "nothing", "crash", "raise", "patch", "clear", "fail", "jump", "pass"]
    ),
    max_size=12,
)


async def act(forms: FormRunner, what: str, how: Any) -> None:
    decisions: dict[str, list[Effect]] = {
        "pass": [],
        "fail": [Fail("no")],
        "patch": [Patch({"total": 2})],
    }
    match what:
        case "fill":
            await forms.fill(how)
        case "retract":
            await forms.retract(how)
        case "undo":
            await forms.undo(how)
        case "redo":
            await forms.redo(how)
        case "resolve":
            await forms.resolve_checkpoint("cap", *decisions[how])
        case "restart":
            await forms.resume()


async def play(acts: list[tuple[str, Any]], plan: list[str]) -> None:
    hooks, adapter = Hooks(list(plan)), Watched()
    built = form(hooks)
    forms = runner(built, adapter=adapter)
    await forms.start("f")
    for what, how in acts:
        before = (await forms.status()).instance
        try:
            await act(forms, what, how)
        except FormRefused as refused:
            after = (await forms.status()).instance
            if not before.ledger or all(one.state != "pending" for one in before.ledger):
                assert after == before, f"a refusal ({refused.code}) changes nothing"
        except Crash:
            forms = runner(built, adapter=adapter)
    hooks.plan.clear()
    forms = runner(built, adapter=adapter)
    await forms.resume()
    instance = (await forms.status()).instance
    assert all(one.state != "pending" for one in instance.ledger), "nothing is owed for ever"
    assert all(count == 1 for count in adapter.finished.values()), "a run is finished once"
    assert set(hooks.ended) <= set(adapter.finished), "what ended is on record"
    missing = set(hooks.begun) - set(adapter.finished)
    assert not missing, "what was begun is made good under its key"


@settings(max_examples=40)
@given(st.lists(ACTS, max_size=14), PLAN)
@example(
    [("fill", {"mode": "car", "miles": 3, "total": 9}), ("resolve", "pass"), ("undo", None)],
    ["crash", "nothing", "patch"],
)
@example([("fill", {"total": 9}), ("fill", {"total": 1}), ("resolve", "fail")], ["crash"] * 5)
def test_a_form_keeps_its_promises_in_any_order(
    acts: list[tuple[str, Any]], plan: list[str]
) -> None:
    run_virtual(play(acts, plan))


@pytest.mark.soak
@pytest.mark.timeout(900)
@settings(max_examples=5_000)
@given(st.lists(ACTS, max_size=25), PLAN)
def test_a_form_keeps_its_promises_for_hours(acts: list[tuple[str, Any]], plan: list[str]) -> None:
    run_virtual(play(acts, plan))


MOVES = st.lists(
    st.one_of(st.integers(0, 4), st.sampled_from(["undo", "redo", "retract"])),
    max_size=30,
)


@settings(max_examples=40)
@given(MOVES)
def test_undo_and_redo_of_a_field_are_those_of_an_editor(moves: list[Any]) -> None:
    """Against a plain model: a list of states and a place in it, cut at every new answer.

    Redo differs in one point: where an editor forgets what was undone, a form goes to the branch
    written last, so the model redoes only what its own list still holds.
    """

    async def check() -> None:
        built = define_form(id="f", version=1, name="F", description="d")
        forms = runner(built.step("s", title="S", fields={"a": FieldSpec(schema=int)}).build())
        await forms.start("f")
        states: list[int | None] = [None]
        at = 0
        for one in moves:
            answer = states[at]
            if isinstance(one, int):
                if one != answer:
                    states[at + 1 :] = [one]
                    at += 1
                await forms.fill({"a": one})
            elif one == "retract" and answer is not None:
                states[at + 1 :] = [None]
                at += 1
                await forms.retract("a")
            elif one == "undo" and at:
                at -= 1
                await forms.undo("a")
            elif one == "redo" and at + 1 < len(states):
                at += 1
                await forms.redo("a")
            evaluation = (await forms.status()).evaluation
            assert evaluation is not None
            assert evaluation.answers.get("a") == states[at]

    run_virtual(check())
