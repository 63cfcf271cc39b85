"""Your own agent on the line. Copy this file to where you work and start

voxglove serve own_agent:factory
"""

from voxglove.adapters.models.openai import OpenAIConfig, OpenAIModel
from voxglove.core.agent import Agent
from voxglove.core.builder import Glove
from voxglove.core.factory import CallInfo
from voxglove.core.tool import tool

PROMPT = "You are on the phone. Answer in one short sentence, without lists or symbols."
LOCAL = OpenAIConfig(model="llama3.2", base_url="http://127.0.0.1:11434/v1")  # Ollama, no key


@tool(read_only=True)
def stock(item: str) -> int:
    """How many of an item are in stock."""
    return {"umbrella": 3, "hat": 0}.get(item.lower(), 0)


def factory(info: CallInfo) -> Agent:
    """Make the agent of one call; called when the call begins."""
    return Glove(model=OpenAIModel(LOCAL), system_prompt=PROMPT).fold(stock).build()
