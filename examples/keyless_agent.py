"""Your own program as the agent, without a key: it counts your words. Copy this file and start

voxglove serve keyless_agent:factory
"""

from voxglove.core.agent import Agent
from voxglove.core.builder import Glove
from voxglove.core.cancel import CancelToken
from voxglove.core.events import ModelResponseComplete, TextDelta
from voxglove.core.factory import CallInfo
from voxglove.core.messages import Message
from voxglove.core.model import ModelRequest, ModelResult, Notify


class WordCounter:
    name = "word-counter"

    def set_system_prompt(self, prompt: str) -> None: ...

    async def prompt(self, request: ModelRequest, notify: Notify, _: CancelToken) -> ModelResult:
        answer = f"I heard {len(request.messages[-1].text.split())} words. Say some more."
        notify(TextDelta(text=answer))
        notify(ModelResponseComplete(text=answer))
        return ModelResult(messages=(Message(sender="agent", text=answer),))


def factory(info: CallInfo) -> Agent:
    return Glove(model=WordCounter()).build()
