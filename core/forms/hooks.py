"""Runs one hook and says how it ended. Never raises but for the cancellation of its own task.

A plain function runs in a thread, so that it cannot hold the sound of a call up; after its
deadline its late answer is not looked at.
"""

import asyncio
import inspect
import logging
from dataclasses import dataclass

from .effects import Effect, HookContext, HookFunction, as_effects

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class HookEnd:
    """The effects of a run, or why it failed, in words a model may see."""

    effects: tuple[Effect, ...] = ()
    failure: str | None = None


async def run_hook(hook: HookFunction, context: HookContext, timeout_s: float) -> HookEnd:
    """Call the hook within its deadline. An exception is logged; the model is told only that the
    work behind the answer failed, for the text of an exception is not meant for a caller."""
    try:
        async with asyncio.timeout(timeout_s) as deadline:
            return HookEnd(as_effects(await _called(hook, context)))
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return HookEnd(failure="the work behind it stopped itself")
    except TimeoutError as error:
        if deadline.expired():
            _report(context, error)
            return HookEnd(failure=f"the work behind it took longer than {timeout_s:g} s")
        return _failed(context, error)
    except Exception as error:
        return _failed(context, error)


async def _called(hook: HookFunction, context: HookContext) -> object:
    call = getattr(hook, "__call__", None)  # noqa: B004 - an instance's async __call__
    if inspect.iscoroutinefunction(hook) or inspect.iscoroutinefunction(call):
        outcome: object = hook(context)
    else:
        outcome = await asyncio.to_thread(hook, context)
    return await outcome if inspect.isawaitable(outcome) else outcome


def _failed(context: HookContext, error: Exception) -> HookEnd:
    _report(context, error)
    return HookEnd(failure="the work behind it failed")


def _report(context: HookContext, error: Exception) -> None:
    logger.warning("form hook failed", exc_info=error, extra={"hook_key": context.key})
