"""use_form_runner: puts forms on an agent.

Everything reaches the model through tools and a context provider; requests and the system prompt
are left alone, so several runners, and whoever changes the prompt, do not get in each other's way
(spec core 19.23).
"""

import asyncio
import logging
from collections.abc import Callable, Iterable

from ..cancel import CancelToken, Unsubscribe
from ..context import ContextProvider, TurnPreparation, TurnPreparer
from ..errors import UsageError
from ..records import utc_now
from ..registration import Registration
from .definition import FormDefinition
from .names import is_identifier
from .port import FormAdapter
from .runner import HOOK_TIMEOUT_S, FormRunner
from .tools import form_tools

logger = logging.getLogger(__name__)


class MountedForms(FormRunner):
    """A runner whose tools and line an agent has; everything of FormRunner works on it."""

    _taken_back: Unsubscribe | None = None

    def mounted(self, take_back: Unsubscribe) -> None:
        self._taken_back = take_back

    def unmount(self) -> None:
        """Take tools, line and preparation from the agent; the stored forms stay. Twice is once."""
        take_back, self._taken_back = self._taken_back, None
        if take_back is not None:
            take_back()


def use_form_runner(
    host: Registration,
    forms: Iterable[FormDefinition],
    *,
    scope: str,
    adapter: FormAdapter | None = None,
    namespace: str | None = None,
    line: bool = True,
    hook_timeout_s: float = HOOK_TIMEOUT_S,
    clock: Callable[[], str] = utc_now,
) -> MountedForms:
    """Let an agent (or a builder, before or after build) fill forms; returns their runner.

    scope           whose answers they are: a call's id, a customer
    adapter         where they are kept; a MemoryFormAdapter of its own by default
    namespace       tools are called `glove_<namespace>_form_…`: for a second runner on one agent
    line            tell the model at every call which step is open (tier 0)
    hook_timeout_s  of each hook; a fill waits for the hooks it raises
    clock           the time that is stored with answers

    Raises UsageError, DuplicateToolError for a second runner without a namespace; then nothing
    was added.
    """
    if namespace is not None and not is_identifier(namespace):
        raise UsageError(f"namespace: {namespace!r} must be a letter, then letters, digits, _ or -")
    runner = MountedForms(
        forms, scope=scope, adapter=adapter, hook_timeout_s=hook_timeout_s, clock=clock
    )
    prefix = "glove_form_" if namespace is None else f"glove_{namespace}_form_"
    tools = form_tools(runner, prefix=prefix)
    host.replace_tools((), tools)
    names = [tool.name for tool in tools]
    took: list[Unsubscribe] = [lambda: _drop_tools(host, names)]
    if line:
        told = host.add_context_provider(_line(runner), delivery="iteration", id=f"{prefix}line")
        took.append(told)
    took.append(host.add_turn_preparer(_resuming(runner, hook_timeout_s + 1.0)))

    def take_back() -> None:
        for one in took:
            one()

    runner.mounted(take_back)
    return runner


def _drop_tools(host: Registration, names: list[str]) -> None:
    """Those that are still there: somebody may have exchanged some."""
    present = {tool.name for tool in host.tools}
    host.replace_tools([one for one in names if one in present], ())


def _line(runner: FormRunner) -> ContextProvider:
    """Tier 0. When it fails, the agent reports that and the turn goes on without it (fault 28)."""

    async def line(token: CancelToken) -> str:
        return await runner.line()

    return line


def _resuming(runner: FormRunner, limit_s: float) -> TurnPreparer:
    """What was interrupted is made good before the next turn; failing, it ends no turn."""

    async def resume(preparation: TurnPreparation) -> None:
        try:
            async with asyncio.timeout(limit_s):
                await runner.resume()
        except Exception as error:  # what is owed stays owed; the turn goes on
            logger.warning("form hooks not resumed", exc_info=error)

    return resume
