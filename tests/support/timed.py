"""Scripted adapters that also note when they were used, on the loop's clock. For call tests."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from voxglove.adapters.models.scripted import ScriptedModel, Step
from voxglove.adapters.tts.scripted import ScriptedTts, ScriptedVoice
from voxglove.core.cancel import CancelToken
from voxglove.core.model import ModelRequest, ModelResult, Notify


class TimedModel(ScriptedModel):
    """A scripted model that notes the loop's time of each request."""

    def __init__(self, steps: Sequence[Step | str]) -> None:
        super().__init__(steps)
        self.asked_at: list[float] = []

    async def prompt(
        self, request: ModelRequest, notify: Notify, token: CancelToken
    ) -> ModelResult:
        self.asked_at.append(asyncio.get_running_loop().time())
        return await super().prompt(request, notify, token)


class TimedTts(ScriptedTts):
    """A scripted synthesiser that notes the loop's time at which its first text came."""

    born: float | None = None

    def send_text(self, text: str) -> None:
        if self.born is None:
            self.born = asyncio.get_running_loop().time()
        super().send_text(text)


class TimedVoice(ScriptedVoice):
    """The factory of them."""

    def __call__(self) -> TimedTts:
        faults = self.faults.get(len(self.made))
        voice = TimedTts(timing=self.timing, format=self.format, faults=faults)
        self.made.append(voice)
        return voice
