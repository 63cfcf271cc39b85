"""Abort tokens and the scope that turns them into AbortError."""

from __future__ import annotations

import asyncio
import gc

import pytest

from voxglove.core import AbortError, AbortScope, CancelToken


def test_the_first_reason_wins_and_abort_is_not_a_cancellation() -> None:
    token = CancelToken()
    token.raise_if_aborted()
    token.abort("first")
    token.abort("second")
    assert (token.aborted, token.reason) == (True, "first")
    with pytest.raises(AbortError, match="first"):
        token.raise_if_aborted()
    assert not issubclass(AbortError, asyncio.CancelledError)


def test_two_scopes() -> None:
    token = CancelToken()
    child = token.child()
    token.abort("barge-in")
    assert child.aborted and not child.tools.aborted
    token.abort("hang-up", tools=True)
    assert child.tools.reason == token.tools.reason == "hang-up"
    late = token.child()
    assert late.aborted and late.tools.aborted


def test_children_do_not_reach_their_parent_and_are_not_kept() -> None:
    token = CancelToken()
    child = token.child()
    child.abort("mine", tools=True)
    assert not token.aborted and not token.tools.aborted
    for _ in range(100):
        token.child()
    gc.collect()
    assert len(token._children) == 1


def test_a_grandchild_of_a_forgotten_token_is_still_reached() -> None:
    token = CancelToken()
    grandchild = token.child().tools.child()
    gc.collect()
    token.abort("hang-up", tools=True)
    assert grandchild.aborted


def test_callbacks() -> None:
    token, heard = CancelToken(), []
    token.on_abort(lambda: heard.append("a"))
    token.on_abort(lambda: heard.append("b"))()
    token.abort()
    token.on_abort(lambda: heard.append("late"))
    assert heard == ["a", "late"]


async def test_wait_returns_the_reason() -> None:
    token = CancelToken()
    asyncio.get_running_loop().call_later(1, token.abort, "soon")
    assert await token.wait() == "soon"
    assert await token.wait() == "soon"


async def test_scope_aborts_and_leaves_the_task_usable() -> None:
    token = CancelToken()
    asyncio.get_running_loop().call_later(1, token.abort, "soon")
    with pytest.raises(AbortError, match="soon"):
        async with AbortScope(token):
            await asyncio.sleep(10)
    await asyncio.sleep(1)
    task = asyncio.current_task()
    assert task is not None and task.cancelling() == 0


async def test_scope_of_a_fired_token_is_not_entered() -> None:
    token = CancelToken()
    token.abort()
    with pytest.raises(AbortError):
        async with AbortScope(token):
            raise AssertionError("entered")


@pytest.mark.parametrize("how", ["finish", "raise", "swallow"])
async def test_an_abort_within_the_block_hits_nothing_behind_it(how: str) -> None:
    token = CancelToken()
    with pytest.raises(AbortError):
        async with AbortScope(token):
            token.abort("inside")
            if how == "raise":
                raise ValueError
            if how == "swallow":
                try:
                    await asyncio.sleep(1)
                except asyncio.CancelledError:
                    how = "swallowed"
    await asyncio.sleep(1)


async def test_a_cancellation_from_outside_wins() -> None:
    token = CancelToken()

    async def work() -> None:
        async with AbortScope(token):
            await asyncio.sleep(10)

    task = asyncio.ensure_future(work())
    await asyncio.sleep(0)
    token.abort("same moment")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_scope_inside_a_timeout_keeps_the_timeout() -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1), AbortScope(CancelToken()):
            await asyncio.sleep(10)
