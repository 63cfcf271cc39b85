"""What the guards between the floors decide where two of them meet."""

from __future__ import annotations

import pytest

from tests.pipelines.machine_world import Manners, Said, World, attached, ms
from voxglove.media.transport import LineState
from voxglove.pipelines import vocabulary as voc
from voxglove.pipelines.commit import TurnConfig
from voxglove.pipelines.machine import MachineConfig

TIERS = MachineConfig(detector=False)
CONTINUOUS = MachineConfig(detector=False, continuous=True)


def asked(*said: Said, think: float = 3_000, stt: tuple[float, ...] = (60,)) -> World:
    """The caller asked something until 2 s, and the agent thinks about it."""
    question = Said(1000, 2000, "Is it open?")
    manners = Manners(think=think, stt=stt)
    return attached(TIERS, question, *said, manners=manners)


# ---- field fault 1 and 3: thinking


def test_field_fault_003_a_cough_while_thinking_withholds_and_keeps_the_reply() -> None:
    world = asked(Said(3000, 3200)).run(12_000)
    assert world.cuts() == []
    assert world.of(voc.Pause) == [voc.Pause(audible=False)]
    assert world.resumes() == ["misfire"]
    assert len(world.of(voc.StartReply)) == 1


def test_field_fault_003_a_long_cough_withholds_until_the_recogniser_says_no_words() -> None:
    world = asked(Said(3000, 4200), think=1000, stt=(60, 60, 60, 60, 700)).run(12_000)
    assert world.cuts() == []
    assert world.reasons() == ["no_words"]
    assert world.when(voc.Resume)[0] >= 4200 + 192
    assert world.state.agent == "idle"


def test_field_fault_001_nothing_sounds_over_words_that_are_not_recognised_yet() -> None:
    world = asked(Said(2700, 4500, "and on Sunday too"), think=800, stt=(60, 2500)).run(12_000)
    assert world.turns() == ["Is it open?", "and on Sunday too"]
    assert world.cuts() == ["words"]


def test_a_sentence_that_goes_on_after_an_early_commit_cuts_and_is_answered() -> None:
    world = asked(Said(2560, 3600, "on Friday I mean.")).run(12_000)
    assert world.cuts() == ["words"]
    assert world.turns() == ["Is it open?", "on Friday I mean."]


def test_a_voice_without_words_holds_an_answer_back_for_3_s_at_most() -> None:
    world = asked(Said(3000, 9000), think=1000).run(14_000)
    assert world.resumes() == ["wordless"]
    assert world.when(voc.Resume) == [6000]
    assert world.cuts() == []


def test_a_hum_that_never_ends_pauses_the_answer_for_3_s_at_most() -> None:
    world = attached(TIERS, Said(2000, 2400, "mm-hm"), manners=Manners(speak=10_000))
    world.feed(voc.Asked(0, 1, "respond", "Greet."))
    world.run(2090)
    world.feed(voc.Voice(ms(2096), "start", ms(2000)))
    world.feed(voc.Voice(ms(2260), "confirmed", ms(2000)))
    for at in range(ms(2280), ms(8000), 320):
        if at == ms(2400):
            world.feed(voc.Words(at, "mm-hm", ms(2000), ms(2400), final=False))
        world.feed(voc.Tick(at, 0.9, 0.1))
    assert world.resumes() == ["backchannel"]
    assert 4990 <= world.when(voc.Resume)[0] <= 5020


def test_a_voice_whose_end_is_lost_ends_by_itself() -> None:
    world = attached(TIERS)
    world.feed(voc.Voice(ms(96), "start", 0))
    world.feed(voc.Voice(ms(256), "confirmed", 0))
    for at in range(320, ms(4000), 320):
        world.feed(voc.Tick(at, 0.9 if at < ms(1000) else 0.0, 0.1))
    assert "vad_lost_end" in world.metrics()
    assert len(world.of(voc.FlushStt)) == 1
    assert abs(world.of(voc.FlushStt)[0].end - ms(1000)) <= 320


# ---- the recogniser late or silent


def test_a_recogniser_that_never_answers_is_given_up_and_the_agent_goes_on() -> None:
    world = asked(Said(3000, 4000, "hello"), think=1000, stt=(60, -1)).run(20_000)
    assert world.reasons() == ["final_timeout"]
    assert "stt_final_timeout" in world.metrics()
    assert world.state.agent == "idle"
    assert world.cuts() == []


def test_field_fault_012_a_final_after_the_drop_reopens_the_turn() -> None:
    world = attached(TIERS, Said(1000, 2000, "Is it open?"), manners=Manners(stt=(6000,)))
    world.run(15_000)
    assert world.reasons() == ["final_timeout"]
    assert world.turns() == ["Is it open?"]
    assert world.of(voc.StartReply)[0].text == "Is it open?"


def test_field_fault_012_a_late_final_under_another_answer_is_a_turn_too() -> None:
    world = attached(TIERS, Said(1000, 2000, "Is it open?"), manners=Manners(stt=(6000,)))
    world.later(6500, voc.Woken)
    world.run(15_000)
    assert [reply.source for reply in world.of(voc.StartReply)] == ["wake", "speech"]
    assert world.turns() == ["Is it open?"]


def test_a_final_of_an_earlier_flush_does_not_end_the_wait_for_the_newest() -> None:
    said = (Said(1000, 2000, "book a table"), Said(2600, 3600, "for four."))
    world = attached(TIERS, *said, manners=Manners(stt=(1500, 1500))).run(9000)
    assert world.turns() == ["book a table for four."]


# ---- commands


def test_mute_in_the_middle_of_speech_ends_and_keeps_what_was_said() -> None:
    world = attached(TIERS, Said(1000, 3000, "book a table for four please"))
    world.later(2000, lambda at: voc.Muted(at, 1, on=True)).run(6000)
    assert world.of(voc.FlushStt)[0].end == ms(2000)
    assert world.turns() == ["book a table"]


def test_mute_while_the_answer_is_paused_lets_it_go_on() -> None:
    world = attached(TIERS, Said(2000, 2240), manners=Manners(speak=6000))
    world.feed(voc.Asked(0, 1, "respond", "Greet."))
    world.later(2110, lambda at: voc.Muted(at, 2, on=True)).run(9000)
    assert world.resumes() == ["misfire"]
    assert world.state.agent == "idle"


def test_a_commit_in_the_middle_of_speech_takes_all_of_it_at_once() -> None:
    world = attached(TIERS, Said(1000, 3000, "book a table for"))
    world.later(2000, lambda at: voc.Asked(at, 1, "commit")).run(2500)
    assert world.turns() == ["book a"]
    assert world.of(voc.Complete) == [voc.Complete(1)]


def test_a_commit_of_a_voice_not_yet_confirmed_lets_it_through_the_gate() -> None:
    world = attached(TIERS, Said(1000, 1230, "no"))
    world.later(1200, lambda at: voc.Asked(at, 1, "commit")).run(3000)
    assert voc.Gate("open", ms(1000)) in world.of(voc.Gate)
    assert world.turns() == ["no"]


def test_typed_text_while_speaking_cuts_and_is_answered() -> None:
    world = attached(TIERS, manners=Manners(speak=5000))
    world.feed(voc.Asked(0, 1, "respond", "Greet."))
    world.later(2000, lambda at: voc.Asked(at, 2, "say", "stop that")).run(9000)
    assert world.cuts() == ["command"]
    assert [reply.source for reply in world.of(voc.StartReply)] == ["respond", "typed"]


def test_typed_text_does_not_lose_the_spoken_turn_that_waits() -> None:
    world = attached(TIERS, Said(1000, 2000, "yes"), manners=Manners(stt=(900,), think=200))
    world.later(2400, lambda at: voc.Asked(at, 1, "say", "typed")).run(9000)
    assert world.turns() == ["typed", "yes"]


def test_narrations_while_thinking_are_spoken_in_turn_and_the_answer_follows() -> None:
    world = attached(TIERS, manners=Manners(think=4000, narrate=600))
    world.feed(voc.Asked(0, 1, "say", "book it"))
    for number in (2, 3):
        world.later(500, lambda at, n=number: voc.Asked(at, n, "narrate", "One moment."))  # type: ignore[misc]
    world.run(12_000)
    assert world.of(voc.StartNarration) == [voc.StartNarration(2), voc.StartNarration(3)]
    assert world.of(voc.Complete) == [voc.Complete(2), voc.Complete(3), voc.Complete(1)]
    assert world.cuts() == []


def test_a_narration_waits_for_the_turn_being_said() -> None:
    world = attached(TIERS, Said(1000, 2000, "Is it open?"), manners=Manners(think=1000))
    world.later(1500, lambda at: voc.Asked(at, 1, "narrate", "One moment.")).run(9000)
    assert world.turns() == ["Is it open?"]
    assert world.when(voc.StartNarration)[0] >= world.when(voc.StartReply)[0]


def test_an_answer_that_sounds_right_behind_a_narration_is_heard_of() -> None:
    world = attached(TIERS)
    world.feed(voc.Asked(0, 1, "say", "hello"))
    world.feed(voc.Asked(0, 2, "narrate", "One moment."))
    world.feed(voc.Sounded(320, 1))
    world.feed(voc.Narrated(640, 2))
    assert world.state.agent == "speaking"
    assert world.state.mode == "speaking"


def test_a_wake_waits_for_700_ms_of_quiet_and_loses_against_a_user_turn() -> None:
    quiet = attached(TIERS, Said(1000, 1200))
    quiet.later(1100, voc.Woken).run(5000)
    assert 1392 + 700 <= quiet.when(voc.StartReply)[0] <= 1392 + 740
    lost = attached(TIERS, Said(1000, 2000, "Is it open?"))
    lost.later(1100, voc.Woken).run(2500)
    assert [reply.source for reply in lost.of(voc.StartReply)] == ["speech"]


@pytest.mark.parametrize("state", ["detached", "held"])
def test_the_agents_own_turns_wait_for_a_line(state: LineState) -> None:
    world = attached(TIERS)
    world.feed(voc.LineMoved(0, state))
    world.feed(voc.Asked(0, 1, "respond", "Greet."))
    world.run(3000)
    assert world.of(voc.StartReply) == []
    world.feed(voc.LineMoved(world.at, "attached"))
    assert len(world.of(voc.StartReply)) == 1


def test_a_line_lost_while_speaking_keeps_the_answer() -> None:
    world = attached(TIERS, manners=Manners(speak=3000))
    world.feed(voc.Asked(0, 1, "respond", "Greet."))
    world.later(1000, lambda at: voc.LineMoved(at, "detached"))
    world.later(6000, lambda at: voc.LineMoved(at, "attached")).run(12_000)
    assert world.cuts() == []
    assert world.of(voc.Complete) == [voc.Complete(1)]


HANG_UPS = (200, 1100, 1600, 2100, 2300, 3500, 4600, 5100)


@pytest.mark.parametrize("at_ms", HANG_UPS)
def test_a_hang_up_in_any_state_ends_the_answer_and_every_command(at_ms: float) -> None:
    world = attached(TIERS, Said(1000, 2000, "Is it open?"), Said(5000, 5200))
    world.feed(voc.Asked(0, 1, "context", "x"))
    world.later(1500, lambda at: voc.Asked(at, 2, "narrate", "One moment."))
    world.later(4500, lambda at: voc.Asked(at, 3, "respond", "go"))
    world.run(at_ms)
    world.feed(voc.LineMoved(world.at, "closed"))
    assert world.state.reply is None
    assert world.state.mode == "idle"
    assert all(cut.tools for cut in world.of(voc.Cut) if cut.reason == "closed")
    known = {event.command for event in world.events if isinstance(event, voc.Asked)}
    assert sorted(done.command for done in world.of(voc.Complete)) == sorted(known)


def test_manual_mode_commits_nothing_by_itself() -> None:
    config = MachineConfig(
        detector=False, continuous=True, turn=TurnConfig(manual=True, start_muted=False)
    )
    world = attached(config, Said(1000, 2000, "Is it open?")).run(9000)
    assert world.turns() == []
    world.feed(voc.Asked(world.at, 1, "commit"))
    world.run(12_000)
    assert world.turns() == ["Is it open?"]


def test_echo_takes_back_its_own_words_and_keeps_the_turn_that_waits() -> None:
    world = attached(CONTINUOUS, manners=Manners(speak=9000))
    world.feed(voc.Asked(0, 1, "respond", "Greet."))
    world.run(2000)
    world.feed(voc.Voice(ms(2000), "start", ms(1900)))
    world.feed(voc.Voice(ms(2200), "echo", ms(2200)))
    world.feed(voc.Words(ms(2300), "welcome to", ms(1900), ms(2150), final=False))
    world.run(9500)
    assert world.resumes() == ["misfire"]
    assert world.cuts() == []
    assert world.turns() == []


def test_a_sample_that_left_before_the_pause_does_not_leave_the_sound_paused() -> None:
    world = attached(TIERS)
    world.feed(voc.Asked(0, 1, "say", "hello"))
    world.feed(voc.Voice(ms(196), "start", ms(100)))
    world.feed(voc.Sounded(ms(200), 1))
    floors = [str(world.state.agent)]
    world.feed(voc.Voice(ms(500), "misfire", ms(200)))
    assert world.resumes() == ["misfire"]
    assert [*floors, world.state.agent] == ["paused", "speaking"]


def test_field_fault_002_an_answer_paused_at_its_last_sample_does_not_speak_on_in_silence() -> None:
    world = attached(TIERS)
    world.feed(voc.Asked(0, 1, "say", "hello"))
    world.feed(voc.Sounded(ms(50), 1))
    world.feed(voc.Voice(ms(196), "start", ms(100)))
    world.feed(voc.Silenced(ms(200), 1))
    world.feed(voc.Voice(ms(500), "misfire", ms(200)))
    assert world.state.mode == "thinking"
    assert world.resumes() == ["misfire"]
