"""Narration: text spoken as it is, outside every turn (spec/voice 12).

Owned by one pipeline for one run. The machine chooses when one starts and ends; it has its own
voice, is no history, and never raises into the call: a failed voice fails the command's future.
"""

from __future__ import annotations

from ..media import events as call
from ..media.errors import LineClosed
from ..media.line import Progress
from . import vocabulary as voc
from .answers import Answers
from .parts import Parts
from .speech import Speech, SpeechFailed
from .turn_marks import ReplyMarks

MESSAGE = "narration"


class Narrations:
    """At most one at a time; all methods are synchronous."""

    def __init__(self, parts: Parts, answers: Answers) -> None:
        self._parts = parts
        self._answers = answers
        self._speech: Speech | None = None
        self._command: int | None = None
        self._failed: dict[int, SpeechFailed] = {}

    @property
    def running(self) -> bool:
        """Whether one is being spoken."""
        return self._command is not None

    def start(self, command: int, text: str) -> None:
        """Speak `text`; the microphone is closed meanwhile."""
        speech = self._answers.new_speech(ReplyMarks())
        self._speech, self._command = speech, command
        speech.say(MESSAGE, text)
        speech.finish()
        self._parts.line.emit(
            call.Transcript(role="assistant", text=text, partial=False, source="narration")
        )
        self._parts.spawn(self._run(command, speech))

    def end(self, command: int) -> None:
        """Silence now."""
        if self._command == command and self._speech is not None:
            self._speech.close()
            self._parts.line.cut()
            self._speech = self._command = None

    def on_progress(self, progress: Progress) -> bool:
        """Whether a segment was the narration's."""
        if self._speech is None:
            return False
        utterance = self._speech.owner_of(progress.segment)
        if utterance is not None and progress.event == "ended":
            utterance.ended = True
        return utterance is not None

    def failure(self, command: int) -> SpeechFailed | None:
        """Why narration `command` failed, told once."""
        return self._failed.pop(command, None)

    async def _run(self, command: int, speech: Speech) -> None:
        """Task of the brain's group."""
        try:
            await speech.run()
        except LineClosed:
            return
        except SpeechFailed as failed:
            if self._command != command:
                return
            self._failed[command] = failed
            self._parts.line.emit(call.Problem(code=failed.code, stage="tts", message=str(failed)))
            await self._finish(speech)
        if self._command == command:
            self._speech = self._command = None
            self._parts.feed(voc.Narrated(self._parts.now(), command))

    async def _finish(self, speech: Speech) -> None:
        """What was given of a broken narration is all of it."""
        try:
            for utterance in speech.utterances:
                await self._parts.line.finish(utterance.segment)
            await self._parts.line.drain()
        except LineClosed:
            return
