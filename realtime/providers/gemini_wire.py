"""Gemini Live (BidiGenerateContent): its JSON to port events, commands to its frames.

The codec of one connection, without I/O. Its parts: `gemini_setup` begins, `gemini_talk` keeps who
said what, `gemini_calls` the tool calls, `gemini_told` the texts that wait; `gemini_frames` reads
and queues, `gemini_reports` tells of the connection.
Source: protocols/gemini-live; spec/voice 18.10, 18.11b, 18.12.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..commands import (
    AppendContext,
    CommitTurn,
    CutOutput,
    ProviderCommand,
    RequestResponse,
    SendAudio,
    SendImage,
    SendText,
    SendToolResults,
    SendVideoFrame,
    SpeechBoundary,
    Summarise,
    ToolOutput,
    UpdateAgent,
)
from ..events import (
    Opened,
    ProviderProblem,
    RealtimeEvent,
    Summary,
    ToolsCancelled,
)
from ..port import Setup
from .codec import Frame
from .gemini_calls import Calls, response, with_notes
from .gemini_config import INPUT, GeminiLiveConfig
from .gemini_floor import Floor
from .gemini_frames import Outbox, samples
from .gemini_reports import ended, go_away, problem, resumable, turn_end, used, voice
from .gemini_setup import (
    GO_ON,
    NOTE,
    declared_tools,
    history_message,
    instruction,
    instructions,
    setup_message,
)
from .gemini_talk import ModelTurns, UserItems
from .gemini_told import Told
from .reading import Json, each, inner, parsed, text

PICTURES = ("image/jpeg", "image/png")


@dataclass(slots=True)
class _Life:
    """How far the connection has come. `history` follows the setup. `listened`: the host heard the
    user stop, and the provider has said nothing since: a live one would."""

    history: Json | None = None
    resumed: bool = False
    opened: bool = False
    talked: bool = False
    finishing: bool = False
    listened: bool = False
    over: bool = False


class GeminiCodec:
    """See codec.Codec."""

    def __init__(self, config: GeminiLiveConfig) -> None:
        self._config = config
        self._facts = config.generation
        self._outbox = Outbox()
        self._users = UserItems()
        self._model = ModelTurns()
        self._told = Told(self._facts, self._outbox, self._model)
        self._calls = Calls()
        self._life = _Life()
        self._floor = Floor()

    def begin(self, setup: Setup) -> None:
        """As Codec says."""
        self._life.resumed = bool(setup.resume_handle)
        self._floor = Floor(setup.manual_turns, setup.interruption)
        self._calls.name(setup.tools)
        self._life.history = history_message(self._config, setup)
        self._outbox.put_setup(setup_message(self._config, setup))

    def receive(self, frame: Frame) -> list[RealtimeEvent]:
        """As Codec says. One message may hold several of these, and does."""
        if self._life.over:
            return []
        self._life.listened = False
        message = parsed(frame)
        if message is None:
            return [ProviderProblem("bad_frame", "a frame that is no JSON object")]
        takers: dict[str, Callable[[Json], list[RealtimeEvent]]] = {
            "setupComplete": self._setup_complete,
            "usageMetadata": used,
            "voiceActivity": self._voice,
            "voiceActivityDetectionSignal": self._voice,
            "serverContent": self._server_content,
            "toolCall": self._tool_call,
            "toolCallCancellation": self._tool_cancellation,
            "sessionResumptionUpdate": resumable,
            "goAway": go_away,
        }
        events: list[RealtimeEvent] = []
        for key, take in takers.items():
            if key in message:
                events += take(inner(message, key))
        if not takers.keys() & message.keys():
            events.append(problem(message))
        self._flush()
        return events

    def tell(self, command: ProviderCommand) -> list[RealtimeEvent]:
        """As Codec says."""
        if self._life.over:
            return []
        events = self._talk(command)
        self._flush()
        return events

    def finish(self) -> bool:
        """As Codec says: this provider has no last word."""
        self._life.finishing = True
        return False

    def closed(self, code: int, reason: str) -> list[RealtimeEvent]:
        """As Codec says."""
        life = self._life
        if life.over:
            return []
        life.over = True
        self._outbox.clear()
        how = ended(
            code,
            reason,
            resumed=life.resumed,
            opened=life.opened,
            talked=life.talked,
            asked=life.finishing,
        )
        return [*self._model.close(self._users), *how]

    def take(self) -> list[Frame]:
        """As Codec says."""
        return self._outbox.take()

    @property
    def due(self) -> bool:
        """As Codec says. While the provider waits for our results, or for an answer to be played
        that is generated, it is silent for good reasons."""
        answers = self._model.generating or (self._model.owing and not self._blocked)
        return (answers or self._life.listened) and not self._life.over

    @property
    def finished(self) -> bool:
        """As Codec says."""
        return self._life.finishing

    # ---- what the provider says

    def _setup_complete(self, told: Json) -> list[RealtimeEvent]:
        if self._life.opened:
            return []
        self._life.opened = True
        if self._life.history is not None:
            self._outbox.put_first("clientContent", self._life.history)
            self._life.history = None
        self._outbox.open()
        return [Opened(text(told, "sessionId"), resumed=self._life.resumed)]

    def _server_content(self, told: Json) -> list[RealtimeEvent]:
        self._life.talked = True
        heard = inner(told, "inputTranscription")
        words = (text(heard, "text"), heard.get("finished") is True)
        if told.get("interrupted") is True:
            # What else is in such a message is of the answer that was cut.
            events = self._model.interrupt(self._users) + self._users.hear(*words)
            self._floor.expect()
        else:
            events = self._users.hear(*words) + self._spoken(told)
        if words[0] and not self._model.in_turn:
            self._floor.expect()
        if told.get("generationComplete") is True:
            events += self._model.rest()
        if told.get("turnComplete") is True:
            self._floor.answering = self._floor.answering and self._model.interrupted
            status, reason, listening = turn_end(told)
            events += self._model.complete(self._users, status, reason, listening=listening)
        return events

    def _spoken(self, told: Json) -> list[RealtimeEvent]:
        """Sound and words of the model; its thoughts are nobody's business."""
        events: list[RealtimeEvent] = []
        for part in each(inner(told, "modelTurn"), "parts"):
            blob = inner(part, "inlineData")
            if part.get("thought") is True or not text(blob, "mimeType").startswith("audio/"):
                continue
            pcm = samples(blob)
            if pcm is None:
                events.append(ProviderProblem("bad_audio", "sound that is no base64"))
            elif pcm:
                events += self._begin() + self._model.audio(pcm)
        said = text(inner(told, "outputTranscription"), "text")
        if said and self._model.may_word(self._users):
            # Words may come behind the end of what they are of; only sound begins anew then.
            events += [] if self._model.responding else self._begin()
            events += self._model.words(said)
        return events

    def _begin(self) -> list[RealtimeEvent]:
        self._floor.answering = False
        return self._model.begin(self._users)

    def _tool_call(self, told: Json) -> list[RealtimeEvent]:
        self._life.talked = True
        made = (self._calls.opened(call) for call in each(told, "functionCalls"))
        calls = tuple(call for call in made if call is not None)
        return self._begin() + self._model.call(calls) if calls else []

    def _tool_cancellation(self, told: Json) -> list[RealtimeEvent]:
        ids = told.get("ids")
        cancelled = self._calls.cancelled(ids if isinstance(ids, list) else ())
        return [ToolsCancelled(cancelled)] if cancelled else []

    def _voice(self, told: Json) -> list[RealtimeEvent]:
        events = voice(told)
        begins = any(event.event == "started" for event in events)
        return [*(self._users.begin() if begins else []), *events]

    # ---- what the session says

    def _talk(self, command: ProviderCommand) -> list[RealtimeEvent]:
        """The frames of a command, and what it causes at once."""
        match command:
            case SendImage(data, mime):
                return self._show(data, mime)
            case SendVideoFrame(jpeg):
                return self._show(jpeg, PICTURES[0])
            case CutOutput(_, cancel):
                return self._model.cut(cancel)
            case SpeechBoundary(speaking):
                self._life.listened = not speaking
                return self._boundary(speaking)
            case CommitTurn():
                return self._commit()
            case Summarise(request_id):
                return [Summary(request_id, "")]
            case _:
                self._send(command)
                return []

    def _send(self, command: ProviderCommand) -> None:
        """Commands that cause nothing by themselves. ForgetBefore is none of this provider's: its
        window is compressed by itself."""
        match command:
            case SendAudio(pcm):
                self._outbox.put_audio(pcm, INPUT.rate)
                self._floor.pass_by(pcm)
            case SendText():
                self._say(command)
            case AppendContext(said):
                self._told.note(f"{NOTE}\n{said}" if said.strip() else "")
            case SendToolResults(outputs, respond):
                self._answer(outputs, respond)
            case RequestResponse():
                self._told.request(instruction(command), command.request_id)
            case UpdateAgent():
                self._update(command)

    def _say(self, command: SendText) -> None:
        said = command.text if command.text.strip() else GO_ON
        if not command.respond:
            self._told.note(command.text)
        elif self._floor.interrupts or self._free:
            self._told.say(said, command.request_id)
        else:
            self._told.request(said, command.request_id)

    def _show(self, data: bytes, mime: str) -> list[RealtimeEvent]:
        if mime not in PICTURES or not data:
            return [ProviderProblem("bad_image", f"{mime}: send {' or '.join(PICTURES)}")]
        self._outbox.put_media("video", data, mime)
        return []

    def _answer(self, outputs: tuple[ToolOutput, ...], respond: bool) -> None:
        responses: list[Json] = []
        for output in outputs:
            name = self._calls.answered(output.call_id)
            if name:
                responses.append(response(output, name, self._scheduling(respond)))
            elif name is not None:
                # Cancelled, or of another connection: the wire takes no result for it.
                told = f"Tool {output.name}, used before, gave this result: {output.text}"
                self._told.note(f"{NOTE}\n{told}")
        if not responses:
            return
        # What waits to be known goes in the last one: anything else that is said while the model
        # waits for results would cancel them.
        responses[-1] = with_notes(responses[-1], self._told.take_notes())
        self._outbox.put("toolResponse", {"functionResponses": responses})
        if self._config.behavior == "NON_BLOCKING":
            if respond:
                self._model.follow()
        elif not self._calls:
            self._model.silenced = False
            self._model.ask()

    def _scheduling(self, respond: bool) -> str:
        """When the model takes a result that it does not wait for; "" where it waits."""
        if self._config.behavior == "BLOCKING":
            return ""
        return "WHEN_IDLE" if respond else "SILENT"

    def _update(self, command: UpdateAgent) -> None:
        if not self._facts.context_update:
            return
        update: dict[str, object] = {}
        if command.instructions is not None and command.instructions.strip():
            update["systemInstruction"] = instructions(command.instructions)
        if command.tools is not None:
            self._calls.name(command.tools)
            update["tools"] = {"tools": declared_tools(self._config, command.tools)}
        if update:
            self._outbox.put("contextUpdate", update)

    def _boundary(self, speaking: bool) -> list[RealtimeEvent]:
        floor = self._floor
        if floor.speaking == speaking:
            return []
        floor.speaking = speaking
        if not speaking:
            floor.expect()
        if not floor.manual:
            return []
        if not speaking:
            return self._commit()
        floor.open = True
        self._outbox.put_realtime("activityStart", {})
        return self._users.begin()

    def _commit(self) -> list[RealtimeEvent]:
        """End the turn. Where the provider's detector is on, the end of the stream lets it decide
        at once; sound that comes later opens it again."""
        floor = self._floor
        if not floor.manual:
            self._outbox.put_realtime("audioStreamEnd", True)
            return []
        if not floor.open:
            return []
        floor.open = floor.speaking = False
        self._outbox.put_realtime("activityEnd", {})
        self._model.ask()
        return self._users.take(spoken=True)

    # ---- when texts may go

    @property
    def _blocked(self) -> bool:
        """The model waits for results."""
        return self._config.behavior == "BLOCKING" and bool(self._calls)

    @property
    def _free(self) -> bool:
        """No turn of the model runs that is heard, up to its last sample, and none is owed."""
        runs = self._model.in_turn and not self._model.silenced
        return not (runs or self._model.owing or self._blocked)

    def _flush(self) -> None:
        """Send the texts that may go. While an answer may be on its way, which this provider does
        not tell, any text could cut it; while the host hears the user, nothing should be asked."""
        if not self._life.opened:
            return
        floor = self._floor
        known = floor.speaking or not floor.answering
        asks = known and not floor.speaking
        self._told.flush(requests=self._free and asks, notes=self._free and known)
