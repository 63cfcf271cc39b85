"""How a user's own agent gets on a line: a function from a call to an agent."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from .agent import Agent
from .store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class CallInfo:
    """What is known about a call before it starts.

    `call_id` is also the store's id unless the factory decides otherwise; `line` names the kind of
    line (`websocket`, `webrtc`, `sip`, `fixture`, …); `caller` and `callee` are addresses where the
    line has them; `has_display` says whether slots can reach a person. `store` is what the server
    keeps this conversation in, with the call's id, closed when the call is over; an agent that
    wants it says `build(store=info.store)`.
    """

    call_id: str
    line: str = ""
    agent: str = ""
    caller: str | None = None
    callee: str | None = None
    has_display: bool = False
    store: Store | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)


AgentFactory = Callable[[CallInfo], Agent]
