"""Sound and words in both directions: turns of the user, speech of the model, interruptions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import pairwise

from ...media.errors import MediaValueError
from ..commands import SendAudio
from ..events import (
    Audio,
    Interrupted,
    ItemDone,
    ResponseDone,
    ResponseStarted,
    Used,
    UserTurn,
    Words,
)
from ..port import Capabilities
from .peer import Line, Trial

LONG = "alpha bravo charlie delta echo foxtrot golf hotel"


async def tells_a_users_turn_once(trial: Trial) -> None:
    """A turn of the user is one UserTurn and final Words once, of one item."""
    line = await trial.open()
    await trial.peer.user_says(line.connection, "alpha bravo")
    await trial.until(line, lambda: _said(line, "user"), "final Words of the user (events.Words)")
    await trial.until(line, lambda: line.all(UserTurn), "UserTurn (events.UserTurn)")
    await line.time(1.0)
    trial.need(_said(line, "user") == ["alpha bravo"], "the words of the turn, once", "", line)
    turn = trial.only(line, UserTurn, "UserTurn at most once per item (events.UserTurn)")
    words = next(one for one in line.all(Words) if one.role == "user" and one.final)
    trial.need(words.item_id == turn.item_id, "words and turn are of one item", "", line)


async def keeps_two_turns_apart(trial: Trial) -> None:
    """Each turn of the user has an item of its own, in the order of the turns."""
    line = await trial.open()
    for count, text in enumerate(("alpha bravo", "charlie delta"), 1):
        await trial.peer.user_says(line.connection, text)
        await trial.until(line, _counted(line, UserTurn, count), "a UserTurn for each turn")
    await trial.until(line, lambda: len(_said(line, "user")) == 2, "final Words for each turn")
    said = _said(line, "user")
    trial.need(said == ["alpha bravo", "charlie delta"], "words in order", said, line)
    first, second = line.all(UserTurn)
    trial.need(first.item_id != second.item_id, "ids are unique within a connection")


async def tells_speech_from_beginning_to_end(trial: Trial) -> None:
    """Speech is ResponseStarted, Audio in the output format, Words, ItemDone, ResponseDone."""
    line = await trial.open()
    length_ms = await trial.peer.speak(line.connection, LONG)
    await trial.until(line, lambda: _over(line), "ResponseDone of the speech")
    await line.time(0.5)
    sounds = line.all(Audio)
    trial.need(sounds, "Audio of what the model speaks", "", line)
    rate = trial.can.output_format.rate
    told_ms = sum(len(sound.pcm) for sound in sounds) / 2 / rate * 1000
    demand = f"mono 16-bit PCM at {rate} Hz (port.Capabilities.output_format)"
    trial.need(0.9 * length_ms - 200 <= told_ms <= 1.1 * length_ms + 1_200, demand, f"{told_ms} ms")
    said = " ".join(_said(line, "assistant"))
    trial.need(said == LONG, "the words of the speech, finally", said, line)
    items = {sound.item_id for sound in sounds}
    done = [one.item_id for one in line.all(ItemDone)]
    trial.need(items <= set(done), "ItemDone of each item that sounded", "", line)
    spoken = {one.item_id for one in line.all(Words) if one.role == "assistant"}
    trial.need(spoken <= items, "words and sound of an answer are of one item", "", line)
    ends = [one.status for one in line.all(ResponseDone)]
    trial.need(set(ends) == {"completed"}, "a response that ended well is `completed`", ends)


async def tells_words_as_they_come(trial: Trial) -> None:
    """Words that are not final, put together, are the final ones (events.Words)."""
    line = await trial.open()
    await trial.peer.speak(line.connection, LONG)
    await trial.until(line, lambda: _over(line), "ResponseDone of the speech")
    await line.time(0.5)
    for final in [one for one in line.all(Words) if one.final and one.text]:
        pieces = [
            one.text for one in line.all(Words) if one.item_id == final.item_id and not one.final
        ]
        whole = " ".join("".join(pieces).split())
        demand = "Words not final go behind one another to make the final text"
        trial.need(not pieces or whole == final.text, demand, whole, line)
        at = line.events.index(final)
        later = [
            one
            for one in line.events[at + 1 :]
            if isinstance(one, Words) and one.item_id == final.item_id
        ]
        trial.need(not later, "no words of an item after the final ones", later, line)


async def carries_sound_to_the_sample(trial: Trial) -> None:
    """SendAudio reaches the peer whole, in order and unchanged, in the input format."""
    line = await trial.open()
    pcm = _ramp(trial.can.input_format.rate, 0.4)
    size = trial.can.input_format.rate // 50 * 2
    for at in range(0, len(pcm), size):
        line.tell(SendAudio(pcm[at : at + size]))
    demand = "the sound of SendAudio arrives as it was sent (commands.SendAudio)"
    await trial.until(line, lambda: pcm in trial.peer.sound(), demand)


async def carries_a_burst_of_twelve_seconds(trial: Trial) -> None:
    """Twelve seconds at once, as after a reconnect (DESIGN 5.8), arrive whole and harm nothing."""
    line = await trial.open()
    pcm = _ramp(trial.can.input_format.rate, 12.0, level=20)
    size = trial.can.input_format.rate // 10 * 2
    for at in range(0, len(pcm), size):
        line.tell(SendAudio(pcm[at : at + size]))
    await trial.until(line, lambda: pcm in trial.peer.sound(), "a burst of 12 s arrives whole")
    await trial.peer.speak(line.connection, "alpha")
    await trial.until(line, lambda: line.all(Audio), "the connection lives after a burst")


async def survives_half_a_sample(trial: Trial) -> None:
    """Half a sample is misuse: `tell` may raise MediaValueError, and close still works."""
    line = await trial.open()
    try:
        line.tell(SendAudio(b"\x01\x02\x03"))
    except MediaValueError:
        await trial.peer.speak(line.connection, "alpha")
        await trial.until(line, lambda: line.all(Audio), "the connection lives after misuse")


async def ends_speech_for_the_user(trial: Trial) -> None:
    """The user speaks over the model: Interrupted, and the response ends `cancelled`."""
    line = await trial.open()
    await trial.peer.speak(line.connection, LONG)
    await trial.until(line, lambda: len(line.all(Audio)) >= 2, "Audio of what the model speaks")
    speaking = line.all(Audio)[-1].item_id
    before = len(line.all(ResponseDone))
    await trial.peer.interrupt(line.connection)
    await trial.until(line, lambda: line.all(Interrupted), "Interrupted (events.Interrupted)")
    stop = line.all(Interrupted)[0]
    trial.need(stop.item_id in ("", speaking), "Interrupted names what was speaking", stop, line)
    await trial.until(line, lambda: len(line.all(ResponseDone)) > before, "the response ends")
    at = line.events.index(stop)
    late = [one for one in line.events[at:] if isinstance(one, Audio) and one.item_id == speaking]
    trial.need(not late, "no sound of an item after it was interrupted", len(late), line)


async def counts_what_was_used(trial: Trial) -> None:
    """Used, in the unit that the capabilities name, and the context's size where they claim it."""
    line = await trial.open()
    await trial.peer.speak(line.connection, "alpha bravo")
    await trial.until(line, lambda: _over(line), "ResponseDone of the speech")
    if trial.can.context_usage:
        for _ in range(4):
            if not _sized(line):
                await line.time(5.0)
        trial.need(
            _sized(line), "Used with the context's size (Capabilities.context_usage)", "", line
        )
    await line.connection.close()
    told = line.all(Used)
    if trial.can.usage == "tokens":
        total = sum(one.usage.total for one in told)
        trial.need(total > 0, "Used.usage counts tokens (Capabilities.usage)", told)
        return
    seconds = [one.seconds for one in told if one.seconds is not None]
    trial.need(seconds, "Used.seconds counts time (Capabilities.usage)", told)
    grows = all(first <= second for first, second in pairwise(seconds))
    trial.need(grows, "Used.seconds is cumulative", seconds)
    trial.need(told[-1].final, "the last Used before Closed is final", told[-1])


def _counted(line: Line, kind: type[object], count: int) -> Callable[[], bool]:
    return lambda: len(line.all(kind)) == count


def _sized(line: Line) -> list[Used]:
    """Counts that tell the size of the context."""
    sizes = ((one, one.context_tokens, one.context_ratio) for one in line.all(Used))
    return [one for one, tokens, ratio in sizes if tokens is not None or ratio is not None]


def _said(line: Line, role: str) -> list[str]:
    """Final words of one side that are not blank."""
    return [one.text for one in line.all(Words) if one.role == role and one.final and one.text]


def _over(line: Line) -> bool:
    """Something was spoken, and nothing is under way."""
    started, done = len(line.all(ResponseStarted)), len(line.all(ResponseDone))
    return bool(line.all(Audio)) and started == done


def _ramp(rate: int, seconds: float, level: int = 3_000) -> bytes:
    """Sound that looks like no other part of itself for a while."""
    count = round(rate * seconds)
    samples = ((at * at // 7 + at) % level - level // 2 for at in range(count))
    return b"".join(sample.to_bytes(2, "little", signed=True) for sample in samples)


def _always(can: Capabilities) -> bool:
    return True


CASES: tuple[tuple[Callable[[Trial], Awaitable[None]], Callable[[Capabilities], bool]], ...] = (
    (tells_a_users_turn_once, _always),
    (keeps_two_turns_apart, _always),
    (tells_speech_from_beginning_to_end, lambda can: "audio" in can.outputs),
    (tells_words_as_they_come, lambda can: "audio" in can.outputs),
    (carries_sound_to_the_sample, lambda can: "audio" in can.inputs),
    (carries_a_burst_of_twelve_seconds, lambda can: "audio" in can.inputs),
    (survives_half_a_sample, lambda can: "audio" in can.inputs),
    (ends_speech_for_the_user, lambda can: can.turn_taking == "provider"),
    (counts_what_was_used, _always),
)
