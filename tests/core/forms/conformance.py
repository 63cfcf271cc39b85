"""What every form adapter must do: subclass FormAdapterSuite, give `adapter`, inherit the tests.

    class TestMyForms(FormAdapterSuite):
        @pytest.fixture
        async def adapter(self) -> AsyncIterator[FormAdapter]:
            adapter = await MyForms.connect(…)
            yield adapter
            await adapter.aclose()

An adapter may keep data between tests: every test uses scopes and ids of its own. One that talks
to another process marks its class with `@pytest.mark.real_loop`.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.core.forms.rig import ALL, Diary, claim
from voxglove.core.forms import FormAdapter, FormConflictError, FormInstance, FormRunner
from voxglove.core.forms.state import Dispatch, Edge, FieldLog, Revision
from voxglove.core.messages import random_id


def instance(scope: str, **changed: object) -> FormInstance:
    """One with something in every part, down to odd values."""
    log = FieldLog(
        revisions=(
            Revision(
                seq=1, parent=-1, value={"deep": [1, 2.5, None, True, "ß\u2028'\"\\"]}, at="T"
            ),
            Revision(seq=2, parent=0, retracted=True, source="hook:fill.a", reason="r"),
        ),
        cursor=1,
    )
    made = FormInstance(
        id=random_id("form"),
        form_id="claim",
        form_version=1,
        scope=scope,
        status="awaiting",
        logs={"a": log, "b": FieldLog()},
        edges={"fill.a": Edge(occurrence=2, high=True)},
        ledger=(Dispatch(key="k", hook="fill.a", occurrence=2, round=3, begun=1, note="n"),),
        awaiting=("cap",),
        rejected={"other": "no"},
        jump="s",
        forced=True,
        closed_reason="why",
        created_at="2030-01-01T00:00:00Z",
        updated_at="2030-01-01T00:00:01Z",
    )
    return replace(made, **changed)  # type: ignore[arg-type]


class FormAdapterSuite:
    """The four promises of forms.port."""

    async def test_an_instance_comes_back_as_it_was(self, adapter: FormAdapter) -> None:
        made = instance(random_id("scope"))
        await adapter.create(made)
        assert await adapter.get(made.id) == made

    async def test_an_unknown_one_is_none(self, adapter: FormAdapter) -> None:
        assert await adapter.get(random_id("form")) is None

    async def test_an_id_is_taken_once(self, adapter: FormAdapter) -> None:
        made = instance(random_id("scope"))
        await adapter.create(made)
        with pytest.raises(FormConflictError):
            await adapter.create(replace(made, form_id="other"))
        assert await adapter.get(made.id) == made

    async def test_a_commit_replaces_the_version_it_names(self, adapter: FormAdapter) -> None:
        made = instance(random_id("scope"))
        await adapter.create(made)
        changed = replace(made, version=2, status="open", awaiting=(), jump=None)
        await adapter.commit(changed, if_version=1)
        assert await adapter.get(made.id) == changed

    @pytest.mark.parametrize("asked", [0, 1, 3])
    async def test_a_commit_on_another_version_changes_nothing(
        self, adapter: FormAdapter, asked: int
    ) -> None:
        made = instance(random_id("scope"), version=2)
        await adapter.create(made)
        with pytest.raises(FormConflictError):
            await adapter.commit(replace(made, version=asked + 1, jump=None), if_version=asked)
        assert await adapter.get(made.id) == made

    async def test_a_commit_of_an_unknown_one_is_a_conflict(self, adapter: FormAdapter) -> None:
        made = instance(random_id("scope"), version=2)
        with pytest.raises(FormConflictError):
            await adapter.commit(made, if_version=1)
        assert await adapter.get(made.id) is None

    async def test_of_many_at_once_one_commits(self, adapter: FormAdapter) -> None:
        made = instance(random_id("scope"))
        await adapter.create(made)
        won: list[str] = []

        async def commit(step: str) -> None:
            try:
                await adapter.commit(replace(made, version=2, jump=step), if_version=1)
            except FormConflictError:
                return
            won.append(step)

        async with asyncio.TaskGroup() as group:
            for at in range(8):
                group.create_task(commit(f"s{at}"))
        stored = await adapter.get(made.id)
        assert stored is not None and won == [stored.jump]

    async def test_a_read_is_a_snapshot(self, adapter: FormAdapter) -> None:
        made = instance(random_id("scope"))
        await adapter.create(made)
        seen = await adapter.get(made.id)
        await adapter.commit(replace(made, version=2, logs={}), if_version=1)
        assert seen == made

    async def test_a_scope_lists_its_own_in_the_order_they_were_begun(
        self, adapter: FormAdapter
    ) -> None:
        mine, other = random_id("scope"), random_id("scope")
        made = [instance(mine, form_id=form) for form in ("claim", "visit", "claim")]
        for one in [made[0], instance(other), made[1], made[2]]:
            await adapter.create(one)
        await adapter.commit(replace(made[0], version=2), if_version=1)
        assert [one.id for one in await adapter.list(mine)] == [one.id for one in made]
        named = await adapter.list(mine, form_id="claim")
        assert [one.id for one in named] == [made[0].id, made[2].id]
        assert await adapter.list(random_id("scope")) == []

    async def test_a_form_is_filled_over_it(self, adapter: FormAdapter) -> None:
        diary = Diary()
        form = claim().on_complete(diary.hook()).build()
        scope = random_id("scope")
        await FormRunner([form], scope=scope, adapter=adapter).start("claim", {"mode": "car"})
        later = FormRunner([form], scope=scope, adapter=adapter)
        await later.fill(ALL)
        await later.retract("mode")
        await later.undo()
        assert (await later.status()).instance.status == "complete"
        assert diary.hooks == ["form.complete:1", "form.complete:2"]
