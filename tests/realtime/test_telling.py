"""The order in which a call is told of turns and words, whatever order a provider has."""

from __future__ import annotations

from dataclasses import dataclass, field

from voxglove.media import events as call
from voxglove.realtime.events import Words
from voxglove.realtime.providers.live_speech import Fragment
from voxglove.realtime.providers.live_turns import UserWords
from voxglove.realtime.session_events import TurnStored
from voxglove.realtime.telling import Telling


@dataclass
class Told:
    """A teller, its clock in input samples, and what it told."""

    now: int = 0
    events: list[call.CallEvent] = field(default_factory=list)
    telling: Telling = field(init=False)

    def __post_init__(self) -> None:
        self.telling = Telling(self.events.append, lambda: self.now, {})

    def words(self, text: str, *, final: bool = False) -> None:
        self.telling.user_words(Words("user", "u1", text, final))

    def taken(self, start: int | None = None, end: int | None = None) -> None:
        self.telling.turn_taken(TurnStored("u1", "msg_1", start, end), lambda at: at + 100)

    @property
    def final(self) -> call.Transcript:
        (found,) = [
            one for one in self.events if isinstance(one, call.Transcript) and not one.partial
        ]
        return found


def test_final_words_wait_for_their_turn_and_have_its_number_and_place() -> None:
    told = Told()
    told.now = 16_000
    told.words("hello ")
    told.now = 20_000
    told.words("hello there", final=True)
    assert [one.partial for one in told.events if isinstance(one, call.Transcript)] == [True, True]
    told.taken()
    assert [event.type for event in told.events[2:]] == ["turn", "transcript"]
    final = told.final
    assert (final.turn, final.start, final.end, final.message) == (1, 16_000, 20_000, "msg_1")


def test_a_turn_begins_where_the_voice_began_if_the_provider_does_not_say() -> None:
    told = Told()
    told.telling.speech_began(4_000)
    told.telling.speech_began(None)  # a misfire
    told.telling.speech_began(8_000)
    told.telling.speech_began(12_000)  # the same turn goes on after a pause
    told.now = 20_000
    told.words("hello")
    told.taken(end=18_000)
    told.words("hello", final=True)
    assert (told.final.start, told.final.end) == (8_000, 18_100)


def test_words_of_a_turn_that_is_taken_are_told_once_they_are_final() -> None:
    told = Told()
    told.taken(start=0, end=900)
    told.words("hel")
    told.words("hello", final=True)
    assert [event.type for event in told.events] == ["turn", "transcript"]
    assert (told.final.start, told.final.end) == (100, 1_000)


def test_what_the_model_says_of_itself_belongs_to_no_turn() -> None:
    told = Told()
    for _ in range(2):
        told.telling.response_started(turn=True)
        told.telling.rest(working=False, sounding=False, out=0)
    told.taken(start=0, end=900)
    for _ in range(2):
        told.telling.response_started(turn=True)
        told.telling.rest(working=False, sounding=False, out=0)
    begun = [
        one.turn for one in told.events if isinstance(one, call.Response) and one.event == "started"
    ]
    assert begun == [None, None, 1, None]


def test_gpt_live_ends_a_turn_where_the_model_begins_to_answer_it() -> None:
    user = UserWords()
    user.fragment(Fragment("hello", 0, 400), 500)
    assert user.answered(600) == [], "still in the middle of it, as far as anybody knows"
    assert [type(event).__name__ for event in user.answered(701)] == ["Words", "UserTurn"]
    user.fragment(Fragment("and", 900, 1_000), 1_100)
    user.boundary(True, 1_100)
    assert user.answered(5_000) == [], "the host hears the user speak: no answer to that"
    user.boundary(False, 5_000)
    assert len(user.answered(5_000)) == 2
    assert user.answered(9_000) == []
