"""What goes into process_request, what it becomes there, and what comes out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from .cancel import CancelToken
from .commit import CommitGate
from .errors import UsageError
from .events import ToolSettledIdle
from .messages import MEDIA_ONLY, ContentPart, IdSource, Message
from .model import ModelLimits
from .notify import Emitter
from .usage import Usage

WakeReason = Literal["event", "tool_settled", "brain"]
StopKind = Literal["text", "max_turns", "hook", "nothing_new"]


@dataclass(frozen=True, slots=True)
class Wake:
    """A turn without a user message. `note` is shown to the model in this request only."""

    reason: WakeReason = "brain"
    note: str = ""

    @classmethod
    def tool_settled(cls, event: ToolSettledIdle) -> "Wake":
        """Answer a result that came while nobody was asking."""
        note = f"[The result of {event.tool_name} ({event.call_id}) has arrived; it is above.]"
        return cls("tool_settled", note)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One accepted request. `user` is None for a wake; `in_call` says that it runs in a hold."""

    id: str
    user: Message | None
    wake: Wake | None
    token: CancelToken
    gate: CommitGate
    emitter: Emitter
    playback: bool
    in_call: bool
    limits: ModelLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestResult:
    """The end of one request.

    messages     the final model answer (one message), or what a hook answered; none if nothing was
                 new
    usage        the sum over the request's model calls
    model_calls  how many there were
    stop         `max_turns` if the canned message ended it, `hook` if a hook answered,
                 `nothing_new` if a turn before this wake has answered its event already
    """

    request_id: str
    user_message_id: str | None
    messages: tuple[Message, ...]
    usage: Usage
    model_calls: int
    stop: StopKind = "text"

    @property
    def text(self) -> str:
        return "\n".join(message.text for message in self.messages if message.text)


UserInput = str | Sequence[ContentPart] | Wake | None


def read_input(
    request: UserInput, message_id: str | None, new_id: IdSource
) -> tuple[Wake | None, Message | None]:
    """The wake or the user message a request stands for; raises UsageError."""
    if request is None or isinstance(request, Wake):
        if message_id is not None:
            raise UsageError("message_id: a wake has no user message")
        return request or Wake(), None
    identity = message_id or new_id("msg")
    if isinstance(request, str):
        return None, Message(sender="user", id=identity, text=request)
    parts = tuple(request)
    if not parts:
        raise UsageError("request: an empty list of content parts says nothing")
    text = "\n".join(part.text for part in parts if part.type == "text" and part.text)
    content = parts if any(part.type != "text" for part in parts) else ()
    return None, Message(sender="user", id=identity, text=text or MEDIA_ONLY, content=content)
