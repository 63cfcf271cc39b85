"""What one run of a pipeline is made of, shared by those who carry out the machine's effects."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass

from ..core.agent import Agent
from ..core.turn_queue import Hold
from ..media.line import Line
from .acknowledge import Acknowledgements
from .detectors.port import TurnDetector
from .listen import Ear
from .speaker import Speaker
from .vocabulary import TurnEvent

Feed = Callable[[TurnEvent], None]
Spawn = Callable[[Coroutine[None, None, None]], asyncio.Task[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The call's line, agent, ear and voice; `feed` takes facts to the machine, `spawn` starts a
    task of the brain's group, `now` is the input sample heard last."""

    line: Line
    agent: Agent
    hold: Hold
    ear: Ear
    speaker: Speaker
    acknowledgements: Acknowledgements
    detector: TurnDetector | None
    feed: Feed
    spawn: Spawn
    now: Callable[[], int]
