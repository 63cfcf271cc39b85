"""What a page that comes anew is told of a realtime call, whose words come late and get their ids
only in history."""

from __future__ import annotations

from voxglove.core.events import MessageStored
from voxglove.core.messages import Message
from voxglove.media.events import Transcript, Turn
from voxglove.web.conversation import Conversation


def stored(past: Conversation, message_id: str, text: str) -> None:
    past.record(MessageStored(message=Message(sender="user", text=text, id=message_id)))


def test_typed_words_get_their_turn_where_they_are_stored() -> None:
    past = Conversation()
    past.on_event(0, Transcript(role="user", text="kilo", partial=False, source="typed", turn=4))
    stored(past, "m0", "of somebody else")
    stored(past, "m1", "kilo")
    stored(past, "m2", "kilo")
    told = [(one["id"], one.get("turn"), one.get("source")) for one in past.entries()]
    assert told == [("m0", None, None), ("m1", 4, "typed"), ("m2", None, None)]


def test_words_that_come_after_they_were_stored_stand_once() -> None:
    past = Conversation()
    past.on_event(0, Turn(event="committed", reason="provider", text="alp", turn=1, message="m1"))
    stored(past, "m1", "alpha")
    (before,) = past.entries()
    assert before["turn"] == 1, "an answer that begins now is known to be of this turn"
    past.on_event(0, Transcript(role="user", text="alpha", partial=False, turn=1, message="m1"))
    assert past.entries() == [before]
