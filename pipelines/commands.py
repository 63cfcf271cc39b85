"""Commands of the brain port on their way: numbered as events for the machine, open until their
effect is over.

Owned by one pipeline for one run. It decides nothing and knows no effect.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from ..media import brain as port
from . import vocabulary as voc


@dataclass(slots=True)
class Command:
    """An open command: its future and its text."""

    done: asyncio.Future[None]
    text: str = ""


@dataclass(slots=True)
class Commands:
    """All open commands by number."""

    open: dict[int, Command] = field(default_factory=dict)
    count: int = 0

    def add(self, text: str = "") -> tuple[int, asyncio.Future[None]]:
        """A new one."""
        self.count += 1
        command = Command(asyncio.get_running_loop().create_future(), text)
        self.open[self.count] = command
        return self.count, command.done

    def complete(self, number: int, failure: Exception | None = None) -> None:
        """Its effect is over."""
        command = self.open.pop(number, None)
        if command is None or command.done.done():
            return
        if failure is None:
            command.done.set_result(None)
        else:
            command.done.set_exception(failure)

    def cancel(self) -> None:
        """The call is over."""
        for command in self.open.values():
            command.done.cancel()
        self.open.clear()


def event_of(command: port.Command, number: int, at: int) -> voc.TurnEvent:
    """What the machine is told of `command`."""
    match command:
        case port.Say(text):
            return voc.Asked(at, number, "say", text)
        case port.Respond(instruction):
            return voc.Asked(at, number, "respond", instruction)
        case port.Inject(kind, text):
            return voc.Asked(at, number, "inject" if kind == "user" else "context", text)
        case port.Narrate(text):
            return voc.Asked(at, number, "narrate", text)
        case port.Interrupt():
            return voc.Asked(at, number, "interrupt")
        case port.Commit():
            return voc.Asked(at, number, "commit")
        case port.ClientBargeIn():
            return voc.Asked(at, number, "barge_in")
        case port.Mute(on):
            return voc.Muted(at, number, on)
        case port.PushToTalk(down):
            return voc.Talk(at, number, down)
