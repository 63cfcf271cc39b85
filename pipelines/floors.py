"""The three tables of the turn machine: who may move from where to where, and by what.

A transition that is not in a table does not exist: the machine ignores and counts its event
(DESIGN 4). The diagram in docs/turns.md is generated from here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from ..media.events import ModeName
from ..media.transport import LineState

UserFloor = Literal["silent", "tentative", "speaking", "holding"]
AgentFloor = Literal["idle", "thinking", "speaking", "paused", "narrating"]

LINE: Mapping[LineState, Mapping[str, LineState]] = {
    "detached": {"attached": "attached", "closed": "closed"},
    "attached": {"held": "held", "detached": "detached", "closed": "closed"},
    "held": {"attached": "attached", "detached": "detached", "closed": "closed"},
    "closed": {},
}

USER: Mapping[UserFloor, Mapping[str, UserFloor]] = {
    "silent": {"start": "tentative", "words": "holding", "talk": "speaking"},
    "tentative": {
        "confirmed": "speaking",
        "misfire": "silent",
        "misfire, turn pending": "holding",
        "over": "holding",
        "hush": "silent",
    },
    "speaking": {
        "end": "holding",
        "over": "holding",
        "echo": "silent",
        "hush": "silent",
    },
    "holding": {
        "start": "tentative",
        "talk": "speaking",
        "committed": "silent",
        "dropped": "silent",
        "hush": "silent",
    },
}
"""`words`: text came of a voice that is over already. `talk`: the button is down and no detector
listens. `over`: by command. `hush`: the microphone closed or the call moved on, so whatever was
being said is over."""

AGENT: Mapping[AgentFloor, Mapping[str, AgentFloor]] = {
    "idle": {"reply": "thinking", "narrate": "narrating"},
    "thinking": {
        "sounded": "speaking",
        "sounded, withheld": "paused",
        "answered": "idle",
        "cut": "idle",
        "narrate": "narrating",
    },
    "speaking": {
        "silenced": "thinking",
        "answered": "idle",
        "pause": "paused",
        "cut": "idle",
    },
    "paused": {
        "resume": "speaking",
        "silenced": "thinking",
        "cut": "idle",
        "answered": "idle",
    },
    "narrating": {
        "narrated": "idle",
        "narrated, reply open": "thinking",
        "narrated, reply audible": "speaking",
        "cut": "idle",
    },
}

MODES: Mapping[AgentFloor, ModeName] = {
    "idle": "listening",
    "thinking": "thinking",
    "speaking": "speaking",
    "paused": "speaking",
    "narrating": "listening",
}
"""The public mode of each agent floor; `idle` before the line was first attached and after it
closed, and a narration inside an answer keeps that answer's `thinking`."""


Table = (
    Mapping[LineState, Mapping[str, LineState]]
    | Mapping[UserFloor, Mapping[str, UserFloor]]
    | Mapping[AgentFloor, Mapping[str, AgentFloor]]
)


HEAD = """# Turns

Who has the floor is decided by one pure reducer per call
([why](decisions/0002-one-machine-per-call.md), [what it decides](decisions/0006-turn-machine.md)).
Its state is three floors and the guards between them. An event that no arrow names is ignored and
counted, never raised. This page is drawn from the tables in `pipelines/floors.py`; a test keeps it
so.

"""


TAIL = """
## Beside the machine

A recogniser that is asked reads at 96 ms of silence what the end of speech will want. The machine
knows nothing of it: the text is merely there when it is asked for. An answer that is slow is
announced by a short phrase, the first message of its own speech
([both](decisions/0009-speculative-recognition.md)).
"""


def page() -> str:
    """All of docs/turns.md."""
    modes = "".join(f"| {floor} | {mode} |\n" for floor, mode in MODES.items())
    public = f"## Public modes\n\n| agent's floor | mode |\n|---|---|\n{modes}"
    return f"{HEAD}{diagram()}\n{public}{TAIL}"


def diagram() -> str:
    """The three tables as Mermaid state diagrams."""
    parts = [
        _one("The line", "detached", LINE),
        _one("The user's floor", "silent", USER),
        _one("The agent's floor", "idle", AGENT),
    ]
    return "\n".join(parts)


def _one(title: str, first: str, table: Table) -> str:
    lines = [f"## {title}", "", "```mermaid", "stateDiagram-v2", f"    [*] --> {first}"]
    for state, moves in table.items():
        lines += [f"    {state} --> {target}: {trigger}" for trigger, target in moves.items()]
    return "\n".join([*lines, "```", ""])
