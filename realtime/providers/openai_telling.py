"""What a session tells an OpenAI Realtime model: its commands as frames, in their order.

Owned by the codec, whose parts it uses. Responses it only asks for; `Requests` decides when one
may be sent. Never reads a frame of the provider. Source: protocols/openai-realtime 4, 8.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import assert_never

from ..commands import (
    AppendContext,
    CommitTurn,
    CutOutput,
    ForgetBefore,
    ProviderCommand,
    RequestResponse,
    SendAudio,
    SendImage,
    SendText,
    SendToolResults,
    SendVideoFrame,
    SpeechBoundary,
    Summarise,
    UpdateAgent,
)
from ..events import Interrupted, ProviderProblem, RealtimeEvent
from ..port import Setup
from .openai_answers import Answers, heard_whole
from .openai_config import OpenAIRealtimeConfig
from .openai_conversation import Conversation
from .openai_frames import Outbox, ms
from .openai_hearing import Hearing
from .openai_items import (
    IMAGES,
    ToolNames,
    history_items,
    image_part,
    image_url,
    session_fields,
    text_part,
    user_item,
)
from .openai_requests import Request, RequestKind, Requests

SETUP = "setup"
"""Event id of the first session.update."""
ALOUD = "Read the following text aloud, word for word. Add nothing, leave nothing out.\n\n"

_Content = (
    SendText
    | SendImage
    | SendVideoFrame
    | AppendContext
    | SendToolResults
    | UpdateAgent
    | ForgetBefore
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a connection remembers, each in its place."""

    outbox: Outbox
    names: ToolNames
    requests: Requests
    answers: Answers
    hearing: Hearing
    conversation: Conversation


def new_parts(config: OpenAIRealtimeConfig) -> Parts:
    """Of a connection that begins."""
    outbox, names = Outbox(), ToolNames()
    return Parts(
        outbox=outbox,
        names=names,
        requests=Requests(),
        answers=Answers(names),
        hearing=Hearing(outbox, config.transcription is not None),
        conversation=Conversation(outbox),
    )


@dataclass(slots=True)
class Telling:
    """Our side of a connection."""

    parts: Parts
    manual: bool = False
    """Our side ends turns."""
    instructions: str = ""
    camera: bytes | None = field(default=None, repr=False)
    """The newest frame of video that the model has not seen."""

    def begin(self, config: OpenAIRealtimeConfig, setup: Setup) -> None:
        """The session is there: say what it is to be, and what was said before."""
        self.instructions = setup.instructions
        tools = self.parts.names.show(setup.tools)
        session = session_fields(config, setup, tools)
        self.parts.outbox.put("session.update", SETUP, session=session)
        for item in history_items(setup.history):
            self.parts.conversation.put(item)

    def obey(self, command: ProviderCommand) -> list[RealtimeEvent]:
        """Queue what a command says; the events that it causes by itself."""
        match command:
            case SendAudio(pcm):
                self.parts.hearing.hear(pcm)
            case SpeechBoundary(speaking):
                self._boundary(speaking)
            case CommitTurn():
                self._commit()
            case RequestResponse():
                self._request(command)
            case CutOutput():
                return self._cut(command)
            case Summarise(request_id, instructions):
                self._summarise(request_id, instructions)
            case _:
                return self._put(command)
        return []

    def _put(self, command: _Content) -> list[RealtimeEvent]:
        match command:
            case SendText():
                self._typed(command)
            case SendImage(data, mime):
                return self._picture(data, mime)
            case SendVideoFrame(jpeg):
                self.camera = jpeg
            case AppendContext(words, key):
                self.parts.conversation.know(words, key)
            case SendToolResults(outputs, respond):
                given = self.parts.conversation.answer(outputs)
                if given and respond:
                    self.parts.requests.ask(Request("plain", unseen=given))
            case UpdateAgent():
                self._update(command)
            case ForgetBefore(summary):
                self._forget(summary)
            case _:
                assert_never(command)
        return []

    def _typed(self, command: SendText) -> None:
        self.show_frame()
        item_id = self.parts.conversation.put(user_item(text_part(command.text)))
        if command.respond:
            request = Request("plain", request_id=command.request_id, unseen={item_id})
            self.parts.requests.ask(request)

    def _picture(self, data: bytes, mime: str) -> list[RealtimeEvent]:
        if mime not in IMAGES:
            return [
                ProviderProblem("unsupported_image", f"{mime}: use {', '.join(sorted(IMAGES))}")
            ]
        self.parts.conversation.put(user_item(image_part(image_url(data, mime))))
        return []

    def show_frame(self) -> None:
        """The model sees what the camera saw last when somebody begins to speak, not all of it."""
        if self.camera is not None:
            self.parts.conversation.see(self.camera)
            self.camera = None

    def _request(self, command: RequestResponse) -> None:
        words = command.instruction
        if command.verbatim and words.strip():
            self.parts.requests.ask(Request("verbatim", words, command.request_id))
        else:
            kind: RequestKind = "instructed" if words.strip() else "plain"
            self.parts.requests.ask(Request(kind, words, command.request_id))

    def _update(self, command: UpdateAgent) -> None:
        session: dict[str, object] = {"type": "realtime"}
        if command.instructions is not None:
            self.instructions = session["instructions"] = command.instructions
        if command.tools is not None:
            session["tools"] = self.parts.names.show(command.tools)
        if len(session) > 1:
            self.parts.outbox.put("session.update", session=session)

    def _cut(self, command: CutOutput) -> list[RealtimeEvent]:
        running = self.parts.answers.running
        speaking = next((one for response in running for one in reversed(response.items)), "")
        if command.cancel:
            for response in running:
                if not response.dropped:
                    response.dropped = True
                    self.parts.outbox.put("response.cancel", response_id=response.id)
            if self.parts.requests.asked is not None:
                self.parts.requests.asked.cut = True
        for item_id, heard_ms in command.heard_ms.items():
            self.keep(item_id, max(0, heard_ms))
        return [Interrupted(speaking or next(reversed(list(command.heard_ms)), ""))]

    def keep(self, item_id: str, heard_ms: int) -> None:
        """Let the provider's conversation hold `heard_ms` of an item (voice row 92). One that still
        grows, because its response was left alone, is cut when that is over."""
        item = self.parts.answers.item(item_id)
        if item is None or not item.stored or heard_whole(item, heard_ms):
            return
        if self.parts.answers.goes_on(item_id):
            item.cut_ms = heard_ms
            return
        if heard_ms == 0:
            self.parts.conversation.note({"id": item_id})
            self.parts.conversation.delete(item_id)
            self.parts.answers.forget(item_id)
            return
        keep = min(heard_ms, ms(item.received))
        if keep > 0 and (item.kept_ms is None or keep < item.kept_ms):
            item.kept_ms = keep
            self.parts.outbox.put(
                "conversation.item.truncate", item_id=item_id, content_index=0, audio_end_ms=keep
            )

    def _boundary(self, speaking: bool) -> None:
        if self.manual and speaking:
            self.parts.hearing.onset()
            self.show_frame()
        elif self.manual:
            self._commit()

    def _commit(self) -> None:
        if self.parts.hearing.commit(manual=self.manual) and self.manual:
            self.parts.requests.ask(Request("plain"))

    def _summarise(self, request_id: str, instructions: str) -> None:
        request = self.parts.requests.beside(Request("summary", instructions, request_id))
        self.parts.conversation.summarising(request_id)
        self._create(request)

    def _forget(self, summary: str) -> None:
        running = {item_id for response in self.parts.answers.running for item_id in response.items}
        wanted = self.parts.requests.wanted
        for item_id in self.parts.conversation.replace_by(summary, running=running, wanted=wanted):
            self.parts.answers.forget(item_id)

    def interrupted(self) -> list[RealtimeEvent]:
        """The user begins to speak, and may interrupt: verbatim speech, which the provider itself
        does not end for that, ends too."""
        aloud = [one for one in self.parts.answers.running if not (one.stored or one.dropped)]
        for response in aloud:
            response.dropped = True
            self.parts.outbox.put("response.cancel", response_id=response.id)
        return [Interrupted(next(reversed(one.items), "")) for one in aloud]

    def cut_late(self) -> None:
        """A response is over: cut what had to wait for that."""
        for item_id, heard_ms in self.parts.answers.cut_late():
            self.keep(item_id, heard_ms)

    def next_request(self) -> None:
        """Send the next request that waits, if nothing is spoken now."""
        request = self.parts.requests.next()
        if request is not None:
            self._create(request)

    def _create(self, request: Request) -> None:
        """Ask for a response. What it is for comes back in its metadata, nothing else would."""
        metadata = {"request": request.tag}
        response: dict[str, object] = {"metadata": metadata}
        match request.kind:
            case "instructed":
                both = f"{self.instructions}\n\n{request.text}".strip()
                response |= {"instructions": both}
            case "verbatim":
                aloud = f"{ALOUD}{request.text}"
                response |= {"conversation": "none", "input": [], "tools": []}
                response |= {"instructions": aloud}
            case "summary":
                metadata["purpose"] = "summary"
                response |= {"conversation": "none", "output_modalities": ["text"], "tools": []}
                response |= {"instructions": request.text}
            case "plain":
                pass
        self.parts.outbox.put("response.create", request.tag, response=response)
