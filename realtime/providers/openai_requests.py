"""Which response may be asked for now: one at a time is spoken, whoever asked for it.

The provider refuses a second response in its default conversation while one runs, also one that
its own turn detector began. So requests wait here until nothing runs; those that want the same are
one. Verbatim speech is outside the conversation and waits all the same, as two voices at once
are none. Summaries are silent and run beside. Pure; owned by the codec.
Source: protocols/openai-realtime 4.1, 9.9.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Literal

RequestKind = Literal["plain", "instructed", "verbatim", "summary"]
ACTIVE = "conversation_already_has_active_response"


@dataclass(slots=True)
class Request:
    """A response that we want.

    unseen   items of ours that it is to answer, and of which we do not know yet that the provider
             holds them; None: it answers no items, it is wanted for itself
    tag      names it on the wire once it is sent
    cut      it was stopped before it began
    """

    kind: RequestKind
    text: str = ""
    request_id: str = ""
    unseen: set[str] | None = None
    tag: str = ""
    cut: bool = False

    @property
    def aside(self) -> bool:
        """Whether it is outside the conversation."""
        return self.kind in ("verbatim", "summary")


class Requests:
    """Those that wait, the one that was sent, and what runs."""

    def __init__(self) -> None:
        self._waiting: deque[Request] = deque()
        self._sent: dict[str, Request] = {}
        self._asked: Request | None = None
        self._running: set[str] = set()
        self._awaited = False
        self._blocked = False
        """Something runs of which we have not seen the beginning."""
        self._count = 0

    @property
    def due(self) -> bool:
        """A response runs, was asked for, or belongs to a turn that was taken."""
        waits = self._awaited or self._blocked or self._asked is not None
        return waits or bool(self._running)

    @property
    def wanted(self) -> bool:
        """The newest words of the user may still wait for their answer."""
        return self.due or bool(self._waiting)

    @property
    def asked(self) -> Request | None:
        """Sent, and not begun."""
        return self._asked

    def ask(self, request: Request) -> None:
        """Let it wait for its turn. One that wants no more than another is the same response."""
        if request.kind == "plain":
            for other in self._waiting:
                same = not (other.request_id and request.request_id)
                if other.kind == "plain" and (same or other.request_id == request.request_id):
                    other.request_id = other.request_id or request.request_id
                    other.unseen = _both(other.unseen, request.unseen)
                    return
        self._waiting.append(request)

    def next(self) -> Request | None:
        """The request to send now, tagged; None while something else is spoken or comes."""
        if self.due or not self._waiting:
            return None
        self._asked = self._waiting.popleft()
        return self.beside(self._asked)

    def beside(self, request: Request) -> Request:
        """Tag a request that is sent now without waiting."""
        self._count += 1
        request.tag = f"r{self._count}"
        self._sent[request.tag] = request
        return request

    def expect(self) -> None:
        """The provider took a turn and will answer it by itself."""
        self._awaited = True

    def created(self, response_id: str, tag: str) -> Request | None:
        """A response began; the request it answers, None for one of the provider's own alone."""
        request = self._sent.pop(tag, None)
        if not tag and not self._awaited and self._asked is not None:
            request = self._sent.pop(self._asked.tag, None)  # a server that drops metadata
        if request is None:
            self._awaited = self._blocked = False
            request = self._answered_too()
        elif request is self._asked:
            self._asked = None
        if request is None or request.kind != "summary":
            self._running.add(response_id)
        return request

    def seen(self, item_id: str) -> None:
        """The provider holds this item."""
        for request in self._waiting:
            if request.unseen is not None:
                request.unseen.discard(item_id)

    def _answered_too(self) -> Request | None:
        """The request that the provider's own response answers as well, because it began when all
        items of that were there: to ask again would make the model say everything twice."""
        for request in self._waiting:
            if request.kind == "plain" and request.unseen == set():
                self._waiting.remove(request)
                return request
        return None

    def done(self, response_id: str, *, known: bool) -> None:
        """A response ended. One that is not `known` to have begun is what stood in the way."""
        self._blocked = self._blocked and known
        self._running.discard(response_id)

    def refused(self, tag: str, code: str) -> Request | None:
        """The provider refused `tag`, or, without one, a response of its own. The request that
        will never run; one that only came too early waits again."""
        if not tag:
            if code == ACTIVE and self._awaited:
                self._awaited = False
                self.ask(Request("plain"))
            return None
        request = self._sent.pop(tag, None)
        if request is None:
            return None
        if request is self._asked:
            self._asked = None
        if code != ACTIVE or request.cut:
            return request
        self._blocked = not self._running
        self._waiting.appendleft(request)
        return None

    def summaries(self) -> list[Request]:
        """Summaries that were asked for and have not begun."""
        return [one for one in self._sent.values() if one.kind == "summary"]


def _both(one: set[str] | None, other: set[str] | None) -> set[str] | None:
    return None if one is None or other is None else one | other
