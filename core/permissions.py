"""Whether a gated tool may run: the remembered decision, then the policy; closed on doubt.

Order (spec core 7): the tool's rule on validated input, the store's decision, the policy. There is
no way to *allow* by accident: no listener, a refused prompt, a raising policy all deny, and the
model is told why (spec core 19.11).
"""

import inspect
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from pydantic_core import to_jsonable_python

from .cancel import AbortScope, CancelToken, contained
from .display import DisplayStack
from .errors import AbortError, SlotRejected
from .schema import canonical_json
from .store import PermissionStore, Store
from .tool import Tool

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PermissionRequest:
    """What a policy function, plain or async, is asked about. Its answer is not remembered."""

    tool: str
    input: object


PolicyFunction = Callable[[PermissionRequest], bool | Awaitable[bool]]
PermissionPolicy = Literal["display", "deny", "allow"] | PolicyFunction


@dataclass(frozen=True, slots=True)
class Decision:
    """`reason` is told to the model when not allowed."""

    allowed: bool
    reason: str = ""


ALLOWED = Decision(True)


class Permissions:
    """Decides for one agent. Serial tools make sure that prompts never race for the user."""

    def __init__(
        self, store: Store, display: Callable[[], DisplayStack], policy: PermissionPolicy
    ) -> None:
        self._store = store if isinstance(store, PermissionStore) else None
        self._display = display
        self._policy = policy

    async def check(
        self,
        tool: Tool,
        value: object,
        call_id: str,
        token: CancelToken,
        policy: PermissionPolicy | None = None,
    ) -> Decision:
        """`policy` stands in for the agent's. Raises AbortError when `token` fires while the rule,
        a policy function or the user is asked, and what the tool's own rule raises."""
        async with AbortScope(token):
            gated = await self._is_gated(tool, value)
        if not gated:
            return ALLOWED
        key = canonical_json(value)
        if self._store is not None:
            match await self._store.get_permission(tool.name, key):
                case "granted":
                    return ALLOWED
                case "denied":
                    return Decision(False, "the user has refused this before")
        policy = policy or self._policy
        if policy == "allow":
            return ALLOWED
        if policy == "deny":
            return Decision(False, "nobody can be asked on this line")
        if policy == "display":
            return await self._ask(tool, value, key, call_id, token)
        return await _decided(policy, PermissionRequest(tool.name, value), token)

    @staticmethod
    async def _is_gated(tool: Tool, value: object) -> bool:
        rule = tool.requires_permission
        if isinstance(rule, bool):
            return rule
        answer = rule(value)
        return bool(await answer) if inspect.isawaitable(answer) else bool(answer)

    async def _ask(
        self, tool: Tool, value: object, key: str, call_id: str, token: CancelToken
    ) -> Decision:
        display = self._display()
        if not display.has_audience:
            return Decision(False, "this line has no display on which the user could agree")
        props = {
            "renderer": "permission_request",
            "toolName": tool.name,
            "toolInput": to_jsonable_python(value, fallback=str),
        }
        try:
            answer = await display.push_and_wait(
                "permission_request",
                props,
                strategy="hide-on-complete",
                tool_call_id=call_id,
                tool_name=tool.name,
                token=token,
            )
        except SlotRejected as error:
            return Decision(False, f"the question was not answered ({error})")
        if self._store is not None:
            status: Literal["granted", "denied"] = "granted" if answer else "denied"
            await self._store.set_permission(tool.name, status, key)
        return ALLOWED if answer else Decision(False, "the user refused")


async def _decided(
    policy: PolicyFunction, request: PermissionRequest, token: CancelToken
) -> Decision:
    """What a policy function says. One that fails has refused; one that hangs ends with `token`."""
    try:
        async with AbortScope(token):
            answer = policy(request)
            allowed = await contained(answer) if inspect.isawaitable(answer) else answer
    except AbortError:
        raise
    except Exception as error:
        logger.warning("permission policy failed", exc_info=error, extra={"tool": request.tool})
        return Decision(False, f"the permission policy failed ({type(error).__name__})")
    return ALLOWED if allowed else Decision(False, "the permission policy refused it")
