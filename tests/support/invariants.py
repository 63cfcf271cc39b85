"""What must hold of every call, whatever its callers, models, tools and faults do (DESIGN 5).

Each check takes a held call and looks at three independent witnesses: the sound the caller heard,
the stored history, and the timeline. Owned by the test suite; it never asks the code under test
whether it was right. The numbers are those of DESIGN section 5. Output clocks at 16 kHz.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TypeGuard

from voxglove.core.messages import Message
from voxglove.core.view import STILL_RUNNING
from voxglove.media import events
from voxglove.media.turns.words import words
from voxglove.pipelines import vocabulary as voc

from .calls import RATE, Held
from .hearing import Piece, heard_samples, heard_words

SILENCE = RATE * 60 // 1000
"""Sound may go on for this long after a decision (invariant 1)."""

TICK = RATE // 50


def check_all(held: Held, *, word_tolerance: int = 0, exact: bool = True) -> None:
    """Every invariant that a call without a web server can break. `exact`: the playback clock
    is, so a resume is bit-identical."""
    check_silence_after_cuts(held)
    check_no_uninvited_sound(held)
    if exact:
        check_sound_unbroken(held)
    check_history_is_what_was_heard(held, tolerance=word_tolerance, exact=exact)
    check_turns_are_kept(held)
    check_tools(held)
    check_requests_valid(held)
    check_end(held)
    check_latency(held)
    check_timeline(held)
    check_replay(held)


def _born(held: Held, piece: Piece) -> int:
    """When the text of `piece` was given to be spoken. A phrase that announces an answer was made
    at the start of the call, and counts from where it was told last."""
    voice = held.voices[piece.response]
    said = words(" ".join(voice.texts))
    asides = [
        sample
        for sample, event in held.timeline
        if _is_aside(event) and words(event.text) == said and sample <= piece.at
    ]
    if asides:
        return asides[-1]
    return held.sample(voice.born) if voice.born is not None else -1


def _is_aside(event: events.CallEvent) -> TypeGuard[events.Transcript]:
    """A narration that belongs to an answer announces it, and is cut with it."""
    told = isinstance(event, events.Transcript) and event.source == "narration"
    return told and event.gen is not None


def check_silence_after_cuts(held: Held) -> None:
    """1: 60 ms after a cut no sample of what was being said is played, on any carrier."""
    cuts = [at for at, effect in held.effects() if isinstance(effect, voc.Cut | voc.EndNarration)]
    for piece in _all_pieces(held):
        born, end = _born(held, piece), piece.at + piece.end - piece.start
        for cut in cuts:
            late = born < cut and end > cut + SILENCE
            kept = late and _survives(held, piece.response, cut)
            assert not late or kept, _say(held, f"{piece} sounds after the cut at {cut}")


def _survives(held: Held, response: int, cut: int) -> bool:
    """Whether what a response said was not what the cut at `cut` ended: a narration is not ended
    by the cut of an answer, nor the answer by the end of a narration in its tool."""
    narrated = {words(effect) for effect in _narrations(held)}
    is_narration = words(" ".join(held.voices[response].texts)) in narrated
    kinds = [type(effect) for at, effect in held.effects() if at == cut]
    return (voc.EndNarration not in kinds) if is_narration else (voc.Cut not in kinds)


def _narrations(held: Held) -> list[str]:
    told = held.of(events.Transcript)
    return [event.text for event in told if event.source == "narration" and not _is_aside(event)]


def check_no_uninvited_sound(held: Held) -> None:
    """2: from a pause until it is resumed or cut nothing sounds, and no answer begins."""
    spans: list[tuple[int, int]] = []
    since: int | None = None
    for at, effect in held.effects():
        if isinstance(effect, voc.Pause):
            since = at if since is None else since
        elif isinstance(effect, voc.Resume | voc.Cut) and since is not None:
            spans.append((since + SILENCE, at))
            since = None
    for piece in _all_pieces(held):
        end = piece.at + piece.end - piece.start
        for start, stop in spans:
            assert end <= start or piece.at >= stop, _say(
                held, f"{piece} sounds inside the pause {start}..{stop}"
            )


def check_sound_unbroken(held: Held) -> None:
    """3: of each response the samples were heard from the first on, each once, none left out."""
    reached: dict[int, int] = {}
    for piece in _all_pieces(held):
        expected = reached.get(piece.response, 0)
        assert piece.start == expected, _say(held, f"{piece}: expected sample {expected}")
        reached[piece.response] = piece.end


def check_history_is_what_was_heard(held: Held, *, tolerance: int, exact: bool) -> None:
    """4: what is stored as heard is what sounded; cut answers are marked, none stays pending."""
    found = _all_pieces(held)
    owners = list(_owners(held))
    for message in held.history:
        if message.sender != "agent" or not message.text.strip():
            continue
        assert message.playback == "settled", _say(held, f"not settled: {message}")
        assert (message.heard or "") + (message.unheard or "") == message.text, message
        response = next((r for r, owner in owners if owner is message), None)
        heard = words(message.heard or "")
        if response is None:
            assert not heard, _say(held, f"never spoken, stored as heard: {message}")
            continue
        voice = held.voices[response]
        sounded = heard_samples(found, response)
        truth = words(" ".join(heard_words(voice, held.script.tts_timing, sounded)))
        written = words(message.text)
        assert written[: len(heard)] == heard, _say(held, f"not a prefix: {message}")
        assert abs(len(heard) - len(truth)) <= tolerance, _say(
            held, f"heard {truth}, stored {heard} (of {written})"
        )
        if exact:
            assert message.interrupted == (bool((message.unheard or "").strip())), message
        if not sounded:
            assert not heard, _say(held, f"nothing was played, stored {heard}")


def _owners(held: Held) -> Iterator[tuple[int, Message]]:
    """Which stored message each synthesiser spoke, in the order in which they got their text."""
    spoken = [m for m in held.history if m.sender == "agent" and m.text.strip()]
    used = [(voice.born, at) for at, voice in enumerate(held.voices) if voice.born is not None]
    next_at = 0
    for _, index in sorted(used):
        said = words(" ".join(held.voices[index].texts))
        for place in range(next_at, len(spoken)):
            if said and words(spoken[place].text)[: len(said)] == said:
                yield index, spoken[place]
                next_at = place + 1
                break


def check_turns_are_kept(held: Held) -> None:
    """5: each committed turn is a user message, once, in order, as (last) told; no word of the
    caller is in two of them."""
    told: dict[int, str] = {}
    typed = {event.turn for event in held.of(events.Turn) if event.reason == "typed"}
    for event in held.of(events.Turn):
        if event.event in ("committed", "corrected") and event.turn is not None:
            told[event.turn] = event.text
    speech = [m.text for m in held.history if m.is_user_turn]
    for text in told.values():
        assert speech.count(text) >= 1, _say(held, f"turn {text!r} is not in {speech}")
    said = Counter(word for one in held.script.caller for word in words(one.text))
    spoken = [text for turn, text in told.items() if turn not in typed]
    stored = Counter(word for text in spoken for word in words(text))
    if not held.script.stt_faults:
        assert stored <= said, _say(held, f"words twice: {stored - said}")


def check_tools(held: Held) -> None:
    """6: one terminal result for each call, and no request after it shows anything else."""
    calls = [call for message in held.history for call in message.tool_calls]
    results = [result for message in held.history for result in message.tool_results]
    asked = Counter(call.id for call in calls)
    answered = Counter(result.call_id for result in results)
    assert all(count == 1 for count in asked.values()), _say(held, f"call ids twice: {asked}")
    assert answered == asked, _say(held, f"results {answered} of calls {asked}")
    final = {result.call_id: result for result in results}
    seen: set[str] = set()
    for request in held.model.requests:
        for result in (one for m in request.messages for one in m.tool_results):
            if result.result.data == STILL_RUNNING:
                assert result.call_id not in seen, _say(held, "ran again after its result")
            else:
                seen.add(result.call_id)
                assert result.result.data == final[result.call_id].result.data, held.told()


def check_requests_valid(held: Held) -> None:
    """7: in each request every call has its results right behind it, and no result is alone."""
    for request in held.model.requests:
        messages = request.messages
        assert messages, "an empty request"
        assert messages[-1].sender == "user", _say(held, f"ends with the agent: {messages[-1]}")
        for at, message in enumerate(messages):
            if message.tool_calls:
                behind = messages[at + 1].tool_results if at + 1 < len(messages) else ()
                assert [r.call_id for r in behind] == [c.id for c in message.tool_calls], messages
            if message.tool_results:
                assert at and messages[at - 1].tool_calls, messages
            assert message.text.strip() or message.tool_calls or message.tool_results, messages


def check_end(held: Held) -> None:
    """10: a hang-up ends the call within 2 s; every command has an end; the last mode is idle."""
    assert held.took_to_end <= 2.0, f"the call took {held.took_to_end:.2f} s to end"
    assert all(future.done() for future in held.futures), "a command never ended"
    assert not held.modes or held.modes[-1] == "idle", _say(held, "did not end idle")
    assert all(voice.closed for voice in held.voices), "a synthesiser was left open"
    assert isinstance(held.timeline[-1][1], events.CallEnded)


def check_latency(held: Held) -> None:
    """12: the parts of each turn's latency sum to its total and name their setting."""
    for metric in held.of(events.Metric):
        if metric.name != "turn_latency":
            continue
        parts = metric.parts or ()
        assert metric.total_ms is not None and metric.total_ms >= 0, metric
        assert abs(sum(part.ms for part in parts) - metric.total_ms) <= 1, metric
        assert all(part.setting and part.ms >= 0 for part in parts), metric


def check_timeline(held: Held) -> None:
    """Order of the call events (CONTRACTS A): one response per generation, each with one end;
    `audio` before it at most once; modes that follow the table; the user's line at the commit."""
    told = [event for event in held.of(events.Response)]
    by_gen: dict[int, list[str]] = {}
    for event in told:
        assert event.gen is not None
        by_gen.setdefault(event.gen, []).append(event.event)
    legal = (
        ["started", "audio", "ended"],
        ["started", "audio", "cut"],
        ["started", "ended"],
        ["started", "cut"],
    )
    for gen, kinds in by_gen.items():
        assert kinds in legal, _say(held, f"generation {gen}: {kinds}")
    assert sorted(by_gen) == list(by_gen), by_gen
    lines = [e.text for e in held.of(events.Transcript) if e.role == "user" and not e.partial]
    committed = [e.turn for e in held.of(events.Turn) if e.event == "committed"]
    assert len(committed) == len(set(committed)), committed
    assert len(lines) >= len(committed), _say(held, "a turn without its user line")
    modes = held.modes
    assert all(a != b for a, b in zip(modes, modes[1:], strict=False)), modes
    stamps = [sample for sample, _ in held.timeline]
    assert stamps == sorted(stamps), "positions run backwards"


def check_replay(held: Held) -> None:
    """The recorded turn events give the same state and the same told facts again (DESIGN 4)."""
    moves = held.moves()
    if not moves:
        return
    assert moves[-1][1] == held.brain.state, "a replay ends in another state"
    effects = [effect for _, _, some in moves for effect in some]
    assert [e.mode for e in effects if isinstance(e, voc.TellMode)] == held.modes
    turns = [(e.event, e.reason, e.text) for e in effects if isinstance(e, voc.TellTurn)]
    assert turns == [(e.event, e.reason, e.text) for e in held.of(events.Turn)]
    started = [(e.gen, e.turn) for e in effects if isinstance(e, voc.StartReply)]
    told = [e for e in held.of(events.Response) if e.event == "started"]
    assert started == [(e.gen, e.turn) for e in told]


def _all_pieces(held: Held) -> list[Piece]:
    """Of all carriers, in order, on the call's input clock."""
    found: list[Piece] = []
    for index in range(len(held.lines)):
        offset = held.line_starts[index]
        for piece in held.pieces(index):
            found.append(Piece(piece.at + offset, piece.response, piece.start, piece.end))
    return found


def _say(held: Held, what: str) -> str:
    return f"{what}\n{held.told()}"


def heard_text(messages: Sequence[Message]) -> list[str]:
    """What is stored as heard of each answer."""
    return [message.heard or "" for message in messages if message.sender == "agent"]
