"""Agents of the regression calls: one that talks long enough to be interrupted, one that echoes.

Owned by the tests of this folder. Every sentence is short enough for the voice's phrase cache, so
that hundreds of calls synthesise each of them once.
"""

from __future__ import annotations

from voxglove.adapters.models.scripted import ScriptedModel, Step, Text
from voxglove.core.agent import Agent
from voxglove.core.builder import Glove
from voxglove.core.cancel import CancelToken
from voxglove.core.factory import CallInfo
from voxglove.core.model import ModelRequest, ModelResult, Notify
from voxglove.core.stores.memory import MemoryStore

BEGIN = "please tell me about the museum"
"""The typed turn that makes the talker talk."""

LONG_ANSWER = (
    "The museum opens at ten in the morning and closes at six in the evening. "
    "On Thursdays the doors stay open until nine, and the garden is lit with lanterns. "
    "The paintings hang on the second floor, behind the staircase with the blue carpet. "
    "Children under twelve come in for free, and students pay half of the usual price. "
    "The restaurant by the river serves soup, bread and a good apple cake."
)
"""About twenty seconds of ordinary speech."""


class Talker:
    """A Model: the long answer to `BEGIN`, an echo of anything else."""

    name = "talker"

    def set_system_prompt(self, prompt: str) -> None:
        """It follows none."""

    async def prompt(
        self, request: ModelRequest, notify: Notify, token: CancelToken
    ) -> ModelResult:
        """One streamed answer."""
        said = next((m.text for m in reversed(request.messages) if m.is_user_turn), "")
        answer = LONG_ANSWER if said == BEGIN else f"You said: {said}"
        return await ScriptedModel([Step((Text(answer),))]).prompt(request, notify, token)


def talker(info: CallInfo) -> Agent:
    """An AgentFactory."""
    return Glove(model=Talker(), store=MemoryStore(info.call_id)).build()
