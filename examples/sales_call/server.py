"""The agent of one call, for a server whose brain is a realtime model.

    voxglove serve --config examples/sales_call/voxglove.yaml

Speak, or type. The page's conversation shows every tool call with its input, its Agent tab where
the goals stand, its Events tab all of it. What the agent was told of its goals is stored, and can
be read with the `callId` of `ready`, the first message in the Events tab:

    curl http://127.0.0.1:8080/sessions/CALL/messages
"""

from __future__ import annotations

from voxglove.core import Agent, CallInfo

from .program import sale


def factory(info: CallInfo) -> Agent:
    """A prospect calls: a fresh agent, its goals at the beginning."""
    return sale(info.store).agent
