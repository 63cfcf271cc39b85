"""The turn machine by the rows of the specification and the numbers of CONTRACTS E."""

from __future__ import annotations

import pytest

from tests.pipelines.machine_world import Manners, Said, World, attached, ms
from voxglove.media.turns.bargein import BargeInConfig
from voxglove.pipelines import vocabulary as voc
from voxglove.pipelines.commit import TurnConfig
from voxglove.pipelines.machine import MachineConfig

TIERS = MachineConfig(detector=False)
CONTINUOUS = MachineConfig(detector=False, continuous=True)


def greeted(*said: Said, config: MachineConfig = TIERS, manners: Manners | None = None) -> World:
    """The agent speaks from 0.3 s to 10.3 s."""
    world = attached(config, *said, manners=manners or Manners(speak=10_000))
    world.feed(voc.Asked(0, 99, "respond", "Greet."))
    return world


def words(text: str, start: float, end: float, *, final: bool = True, at: float) -> voc.Words:
    return voc.Words(ms(at), text, ms(start), ms(end), final)


# ---- lifecycle and transcripts


def test_voice_row_003_manual_mode_starts_muted_unless_told_otherwise() -> None:
    assert World(MachineConfig(turn=TurnConfig(manual=True))).state.muted
    assert not World(MachineConfig(turn=TurnConfig(manual=True, start_muted=False))).state.muted
    assert not World(MachineConfig()).state.muted


def test_voice_row_010_a_blank_final_is_no_turn() -> None:
    world = attached(TIERS, Said(1000, 2000)).run(8000)
    assert world.turns() == []
    assert world.reasons() == ["no_words"]
    assert world.of(voc.StartReply) == []


def test_voice_row_011_partials_under_the_answer_are_told_only_after_a_cut() -> None:
    quiet = greeted(Said(2000, 2400, "mm-hm"))
    quiet.run(9000)
    assert quiet.of(voc.TellWords) == []
    cut = greeted(Said(2000, 4000, "what about next Friday please"))
    cut.run(6000)
    assert cut.when(voc.TellWords)[0] >= cut.when(voc.Cut)[0]


# ---- gate


def test_voice_row_013_a_burst_before_the_silent_agent_reaches_no_recogniser() -> None:
    world = attached(TIERS, Said(1000, 1200, "tap")).run(5000)
    assert [gate.move for gate in world.of(voc.Gate)] == ["hold", "cancel"]
    assert world.of(voc.FlushStt) == []


def test_voice_row_014_confirmed_speech_opens_the_gate_at_its_first_sample() -> None:
    world = attached(TIERS, Said(1000, 2000, "hello there.")).run(1400)
    assert world.of(voc.Gate) == [
        voc.Gate("hold", ms(1000)),
        voc.Gate("open", ms(1000)),
    ]


def test_voice_row_015_a_voice_pending_for_long_is_asked_about_and_so_let_through() -> None:
    world = attached(TIERS)
    world.feed(voc.Voice(ms(96), "start", 0))
    for at in range(320, ms(9000), 320):
        world.feed(voc.Tick(at, 0.9, 0.1))
    assert voc.Gate("open", 0) in world.of(voc.Gate)
    assert world.of(voc.AskStt)


def test_voice_row_016_speech_end_flushes_once_and_closes_the_gate() -> None:
    world = attached(TIERS, Said(1000, 2000, "hello there.")).run(2400)
    assert world.of(voc.FlushStt) == [voc.FlushStt(ms(2000))]
    assert world.of(voc.Gate)[-1] == voc.Gate("close")


def test_voice_row_017_a_misfire_without_a_gate_is_flushed() -> None:
    for config in (MachineConfig(gating=False), CONTINUOUS):
        world = attached(config, Said(1000, 1200, "no")).run(1500)
        assert world.of(voc.FlushStt) == [voc.FlushStt(ms(1200))]


# ---- barge-in


def test_voice_row_022_words_cut_the_answer() -> None:
    world = greeted(Said(2000, 3500, "what about Friday then"))
    world.run(3500)
    assert world.when(voc.Pause) == [2096]
    assert world.cuts() == ["words"]
    assert world.when(voc.Cut)[0] <= 2000 + 250 + 60 + 20


def test_voice_row_023_tentative_speech_pauses_and_a_misfire_resumes() -> None:
    world = greeted(Said(2000, 2150))
    world.run(6000)
    assert world.when(voc.Pause) == [2096]
    assert world.resumes() == ["misfire"]
    assert world.when(voc.Resume) == [2150 + 192]
    assert world.cuts() == []


def test_voice_row_024_a_waiting_slot_is_never_cut_by_voice_alone() -> None:
    world = greeted(Said(2000, 3200))
    world.feed(voc.Slots(0, 1))
    world.run(6000)
    assert world.resumes() == ["wordless"]
    assert world.cuts() == []


def test_voice_row_024_a_stop_word_cuts_the_sound_of_a_waiting_slot_but_not_its_tool() -> None:
    world = greeted(Said(2000, 2600, "stop"))
    world.feed(voc.Slots(0, 1))
    world.run(6000)
    assert world.cuts() == ["stop_word"]
    assert [cut.tools for cut in world.of(voc.Cut)] == [False]
    assert world.state.slots == 1


def test_voice_row_026_a_short_stop_cuts_and_is_answered() -> None:
    world = greeted(Said(2000, 2300, "stop"))
    world.run(6000)
    assert world.cuts() == ["stop_word"]
    assert [cut.tools for cut in world.of(voc.Cut)] == [True]
    assert world.turns() == ["stop"]
    assert [reply.text for reply in world.of(voc.StartReply)] == ["Greet.", "stop"]


@pytest.mark.parametrize("text", ["no", "stop", "not Friday"])
def test_voice_row_027_words_of_a_misfire_cut_and_are_answered(text: str) -> None:
    world = greeted(Said(2000, 2200, text), manners=Manners(speak=10_000, stt=(400,)))
    world.run(6000)
    assert world.resumes() == ["misfire"]
    assert len(world.cuts()) == 1
    assert world.turns() == [text]
    assert world.of(voc.StartReply)[-1].text == text


def test_voice_row_027_words_before_the_misfire_cut_without_a_resume() -> None:
    world = greeted(Said(2000, 2200))
    world.run(2100)
    world.feed(words("what is", 2000, 2150, at=2150, final=False))
    world.run(4000)
    assert world.cuts() == ["words"]
    assert world.resumes() == []


def test_voice_row_028_a_cough_resumes_and_is_no_turn() -> None:
    world = greeted(Said(2000, 2180))
    world.run(9000)
    assert world.resumes() == ["misfire"]
    assert world.cuts() == []
    assert world.turns() == []


def test_voice_row_028_a_backchannel_resumes_and_is_dropped_as_one() -> None:
    world = greeted(Said(2000, 2500, "mm-hm yeah"))
    world.run(9000)
    assert world.resumes() == ["backchannel"]
    assert world.cuts() == []
    assert world.reasons() == ["backchannel"]


def test_voice_row_029_a_clients_reflex_cuts_or_is_sent_on() -> None:
    world = greeted()
    world.run(2000)
    world.feed(voc.Asked(ms(2000), 1, "barge_in"))
    assert world.cuts() == ["command"]
    world.feed(voc.Asked(ms(2000), 2, "barge_in"))
    assert world.of(voc.AnswerClient) == [voc.AnswerClient(False), voc.AnswerClient(True)]


def test_voice_row_030_after_a_cut_the_old_generation_means_nothing() -> None:
    world = greeted()
    world.run(2000)
    world.feed(voc.Asked(ms(2000), 1, "interrupt"))
    before = world.state
    for event in (voc.Sounded(ms(2010), 1), voc.Silenced(ms(2010), 1), voc.Answered(ms(2010), 1)):
        assert world.feed(event) == ()
    assert world.state.ignored == before.ignored + 3
    assert world.state.agent == "idle"


@pytest.mark.parametrize(("voiced", "cut"), [(249, False), (251, True)])
def test_voice_row_031_wordless_voice_cuts_from_250_ms(voiced: int, cut: bool) -> None:
    world = greeted()
    world.run(2000)
    world.feed(voc.Voice(ms(2096), "start", ms(2000)))
    world.feed(voc.Tick(ms(2000 + voiced), 0.9, 0.1))
    world.feed(words("", 2000, 2260, at=2260, final=False))
    assert bool(world.cuts()) is cut
    world.feed(voc.Voice(ms(2460), "misfire", ms(2000 + voiced)))
    assert world.resumes() == ([] if cut else ["misfire"])


def test_contract_e_without_any_report_voice_cuts_500_ms_after_its_onset() -> None:
    world = greeted(Said(2000, 4000, "hello"), manners=Manners(speak=10_000, stt=(-1,)))
    world.run(4000)
    assert world.cuts() == ["wordless"]
    assert world.when(voc.Cut) == [2500]


def test_contract_e_the_recogniser_is_asked_at_250_ms_and_every_250_ms() -> None:
    world = greeted(Said(2000, 3000, "yeah ok yeah ok"))
    world.run(3000)
    assert world.when(voc.AskStt) == [2250, 2500, 2760, 3000]


# ---- push-to-talk

PTT = MachineConfig(turn=TurnConfig(manual=True))


def pressed(down: float, up: float, *said: Said, config: MachineConfig = PTT) -> World:
    world = attached(config, *said)
    world.later(down, lambda at: voc.Talk(at, 1, True))
    world.later(up, lambda at: voc.Talk(at, 2, False))
    return world


def test_voice_row_056_an_early_release_commits_at_the_minimum_recording() -> None:
    world = pressed(1000, 1000 + 300 + 200, Said(1100, 1600, "book it"))
    world.run(1640)
    assert world.state.user == "speaking"
    assert not world.state.muted
    world.run(1660)
    assert world.of(voc.FlushStt) == [voc.FlushStt(ms(1660))]
    assert world.state.muted
    world.run(3000)
    assert world.turns() == ["book it"]


def test_voice_row_056_a_long_hold_commits_at_its_release() -> None:
    world = pressed(1000, 3000, Said(1100, 2900, "book it for Friday"))
    world.run(4000)
    assert world.of(voc.FlushStt) == [voc.FlushStt(ms(3000))]
    assert world.turns() == ["book it for Friday"]
    assert world.reasons("committed") == ["talk"]


def test_voice_row_057_a_click_toggles_mute_and_is_no_turn() -> None:
    world = pressed(1000, 1150, Said(1000, 1150, "click"))
    world.run(1200)
    assert not world.state.muted
    world.later(2000, lambda at: voc.Talk(at, 3, True))
    world.later(2150, lambda at: voc.Talk(at, 4, False))
    world.run(5000)
    assert world.state.muted
    assert world.turns() == []
    assert [mic.on for mic in world.of(voc.Microphone)] == [True, False]


def test_voice_row_058_a_press_while_a_commit_waits_keeps_the_microphone_hot() -> None:
    world = pressed(1000, 1400, Said(1100, 3000, "book it for Friday please"))
    world.later(1500, lambda at: voc.Talk(at, 3, True))
    world.later(3200, lambda at: voc.Talk(at, 4, False))
    world.run(3100)
    assert [mic.on for mic in world.of(voc.Microphone)] == [True]
    world.run(6000)
    assert world.turns() == ["book it for Friday please"]


def test_a_press_cuts_the_answer_and_nothing_starts_under_it() -> None:
    world = greeted(config=MachineConfig(turn=TurnConfig(manual=True)))
    world.later(2000, lambda at: voc.Talk(at, 1, True))
    world.later(2100, lambda at: voc.Asked(at, 2, "respond", "Go on."))
    world.later(2100, voc.Woken)
    world.run(5000)
    assert world.cuts() == ["command"]
    assert len(world.of(voc.StartReply)) == 1


def test_a_click_does_not_lose_the_turn_that_waits_for_its_text() -> None:
    world = attached(PTT, Said(1100, 1900, "book it"), manners=Manners(stt=(600,)))
    presses = [(1000, True), (2000, False), (2200, True), (2300, False)]
    for number, (at_ms, down) in enumerate(presses):
        world.later(at_ms, lambda at, n=number, d=down: voc.Talk(at, n, d))  # type: ignore[misc]
    world.run(6000)
    assert world.turns() == ["book it"]


def pausing(up: float) -> World:
    """A caller with the button down who pauses for 3.5 s, on a line that also listens by itself."""
    said = Said(1100, 1900, "my name is Anna Smith."), Said(5400, 6000, "and I come at eight.")
    return pressed(1000, up, *said, config=MachineConfig())


def test_a_pause_ends_no_turn_while_the_button_is_held() -> None:
    world = pausing(up=6500)
    world.run(6400)
    assert world.turns() == []
    world.run(9000)
    assert world.turns() == ["my name is Anna Smith. and I come at eight."]
    assert world.reasons("committed") == ["talk"]


def test_a_release_in_a_pause_ends_the_turn_there() -> None:
    world = pausing(up=4000)
    world.run(5000)
    assert world.turns() == ["my name is Anna Smith."]
    assert world.reasons("committed") == ["talk"]


def test_a_lost_line_releases_the_button() -> None:
    world = pausing(up=60_000)
    world.later(4000, lambda at: voc.LineMoved(at, "detached"))
    world.run(5000)
    assert world.state.talk.down_at is None
    assert world.turns() == ["my name is Anna Smith."]


# ---- the end of a turn


@pytest.mark.parametrize(
    ("text", "tier", "hold"),
    [
        ("Can you help me?", "question", 0),
        ("I want to go.", "statement", 600),
        ("I want to", "unfinished", 900),
        ("four seven 8", "dictation", 2000),
    ],
)
def test_voice_row_062_without_a_detector_the_hold_of_the_tier_counts_from_speech_end(
    text: str, tier: str, hold: int
) -> None:
    world = attached(TIERS, Said(1000, 2000, text), manners=Manners(stt=(60,))).run(8000)
    assert world.turns() == [text]
    assert world.reasons("committed") == [tier]
    known = 2000 + 192 + 60  # the text is there
    frame = -(-max(known, 2000 + hold) // 20) * 20
    assert frame - 20 < world.when(voc.StartReply)[0] <= frame


@pytest.mark.parametrize(
    ("text", "p", "committed_at"),
    [
        ("I want to go", 0.5, 2260),
        ("Is it open?", 0.2, 2260),
        ("I want to go", 0.49, 3500),
        ("Is it open?", 0.19, 3500),
        ("my number is 4 7", 0.1, 4800),
    ],
)
def test_contract_e_the_detector_decides_by_p(text: str, p: float, committed_at: float) -> None:
    manners = Manners(verdict=((0, p),), stt=(40,))
    world = attached(MachineConfig(), Said(1000, 2000, text), manners=manners).run(9000)
    assert committed_at - 40 <= world.when(voc.StartReply)[0] <= committed_at


def test_contract_e_the_detector_is_asked_again_at_600_ms() -> None:
    manners = Manners(verdict=((0, 0.3), (0, 0.8)), stt=(20,))
    world = attached(MachineConfig(), Said(1000, 2000, "I want"), manners=manners).run(5000)
    asked = [(at, e.again) for at, e in world.done if isinstance(e, voc.AskDetector)]
    assert asked == [(ms(2192), False), (ms(2600), True)]
    assert world.when(voc.StartReply) == [2600]


@pytest.mark.parametrize("late", [400.0, -1.0])
def test_voice_row_061_a_late_detector_is_replaced_by_the_tiers(late: float) -> None:
    manners = Manners(verdict=((late, 0.9),), stt=(20,))
    world = attached(MachineConfig(), Said(1000, 2000, "Is it open?"), manners=manners).run(6000)
    assert world.reasons("committed") == ["fallback:question"]
    assert 2192 + 350 <= world.when(voc.StartReply)[0] <= 2192 + 370


def test_voice_row_063_speech_in_the_hold_cancels_it_and_both_parts_are_one_turn() -> None:
    world = attached(TIERS, Said(1000, 2000, "my name is"), Said(2600, 3200, "John.")).run(8000)
    assert world.turns() == ["my name is John."]
    assert world.turns("resumed") == ["my name is"]


def test_a_prompt_answer_to_the_agent_does_not_stretch_the_next_hold() -> None:
    said = (Said(1000, 2000, "I am"), Said(5500, 6500, "Anna"), Said(10_000, 11_000, "Smith"))
    world = attached(TIERS, *said).run(16_000)
    assert world.turns() == ["I am", "Anna", "Smith"]
    held = [told.hold_ms for told in world.of(voc.TellTurn) if told.event == "committed"]
    assert held == [900, 900, 900]


def test_field_fault_023_a_pause_of_a_second_inside_a_clause_is_one_turn() -> None:
    manners = Manners(verdict=((30, 0.1), (30, 0.1), (30, 0.9)))
    said = (Said(1000, 2000, "I would like to book"), Said(3000, 4000, "a table for four."))
    world = attached(MachineConfig(), *said, manners=manners).run(9000)
    assert world.turns() == ["I would like to book a table for four."]


def test_voice_row_064_punctuation_churn_does_not_hold_a_turn() -> None:
    world = attached(CONTINUOUS)
    world.feed(voc.Voice(ms(96), "start", 0))
    world.feed(voc.Voice(ms(256), "confirmed", 0))
    churn = ("i want to go", "I want to go.", "I want to go", "I want, to go.")
    for at in range(320, ms(4000), 320):
        if at % ms(200) == 0 and at >= ms(1000):
            world.feed(voc.Words(at, churn[at // ms(200) % 4], 0, ms(900), False))
        world.feed(voc.Tick(at, 0.9, 0.1))
    assert world.reasons("committed") == ["stable"]
    assert world.when(voc.StartReply)[0] - 1000 < 2500


def test_voice_row_065_an_echo_of_the_committed_words_is_one_turn_and_a_repeat_is_two() -> None:
    world = attached(CONTINUOUS, Said(1000, 2000), Said(8000, 9000))
    world.run(1800)
    world.feed(words("Yes please", 1000, 1900, at=1800, final=False))
    world.run(5000)
    world.feed(words("Yes, please.", 1000, 1900, at=5000))
    world.feed(words("yes please", 1000, 1900, at=5000))
    world.run(8800)
    assert world.turns() == ["Yes please"]
    world.feed(words("Yes please", 8000, 8900, at=8800, final=False))
    world.run(12_000)
    assert world.turns() == ["Yes please", "Yes please"]


def confirmed_by(final: str) -> World:
    world = attached(CONTINUOUS, Said(1000, 2000))
    world.run(1800)
    world.feed(words("I want two tickets.", 1000, 1900, at=1800, final=False))
    world.run(4000)
    assert world.turns() == ["I want two tickets."]
    world.feed(words(final, 1000, 2000, at=4000))
    world.run(9000)
    assert world.turns() == ["I want two tickets."]
    return world


def test_voice_row_066_a_final_that_differs_corrects_the_turn() -> None:
    world = confirmed_by("I want ten tickets.")
    assert world.turns("corrected") == ["I want ten tickets."]
    assert world.of(voc.TellTurn)[-1].turn == 1


def test_voice_row_066_a_short_tail_is_only_counted() -> None:
    world = confirmed_by("I want two tickets please")
    assert world.turns("corrected") == []
    assert world.metrics() == ["stt_tail_extension"]


def test_voice_row_066_a_final_confirms_only_what_was_a_partial() -> None:
    world = attached(CONTINUOUS, Said(1000, 3000))
    world.run(2900)
    world.feed(words("I want two tickets.", 1000, 2000, at=2000))
    world.feed(words("For frday.", 2000, 2900, at=2900, final=False))
    world.run(5000)
    assert world.turns() == ["I want two tickets. For frday."]
    world.feed(words("For Friday.", 2000, 2900, at=5000))
    assert world.turns("corrected") == ["I want two tickets. For Friday."]


def test_field_fault_011_a_late_final_is_not_put_before_the_next_turn() -> None:
    world = attached(CONTINUOUS, Said(1000, 2000), Said(5000, 6000))
    world.run(1800)
    world.feed(words("One thing.", 1000, 1900, at=1800, final=False))
    world.run(5800)
    world.feed(words("One thing. And another one.", 1000, 5900, at=5800, final=True))
    world.run(9000)
    assert world.turns() == ["One thing.", "And another one."]


def test_voice_row_067_text_in_silence_is_a_phantom() -> None:
    world = attached(CONTINUOUS).run(9000)
    world.feed(words("Thank you for watching.", 7000, 8500, at=9000))
    world.run(12_000)
    assert world.turns() == []
    assert world.reasons() == ["phantom"]
    assert world.turns("dropped") == ["Thank you for watching."]


def test_voice_row_067_a_quiet_talker_is_kept() -> None:
    world = attached(CONTINUOUS)
    for at in range(320, ms(5000), 320):
        if at == ms(2000):
            world.feed(words("are you there", 1000, 1900, at=2000))
        world.feed(voc.Tick(at, 0.2 if ms(1000) < at < ms(2000) else 0.0, 0.004))
    assert world.turns() == ["are you there"]
    assert world.reasons("committed") == ["sweep"]


def levels(*given: float) -> World:
    said = [
        Said(1000 + 8000 * i, 2000 + 8000 * i, f"part {i}.", level) for i, level in enumerate(given)
    ]
    return attached(TIERS, *said, manners=Manners(speak=400)).run(8000 * len(given) + 4000)


def test_voice_row_068_a_neighbour_is_dropped_and_the_caller_at_half_level_is_kept() -> None:
    world = levels(0.1, 0.1 * 10 ** (-16 / 20), 0.05)
    assert world.turns() == ["part 0.", "part 2."]
    assert world.reasons() == ["far_field"]


def test_voice_row_068_the_third_rejection_anchors_anew() -> None:
    world = levels(0.4, 0.03, 0.03, 0.03, 0.03)
    assert world.turns() == ["part 0.", "part 3.", "part 4."]


def test_voice_row_069_a_deaf_detector_is_reset_once_in_5_s_while_words_flow() -> None:
    world = attached(CONTINUOUS, Said(1000, 2000))
    for second in range(3, 30):
        world.run(second * 1000)
        text = " ".join(f"word{n}" for n in range(3, second))
        world.feed(words(text, 3000, second * 1000, at=second * 1000, final=False))
    resets = world.when(voc.ResetVad)
    assert 11_000 <= resets[0] <= 13_100
    assert all(later - before >= 5000 for before, later in zip(resets, resets[1:], strict=False))
    assert len(resets) >= 3


def test_voice_row_073_typed_text_is_a_turn_at_once() -> None:
    world = attached(TIERS)
    world.feed(voc.Asked(0, 1, "say", "hello"))
    assert world.turns() == ["hello"]
    assert world.of(voc.StartReply) == [voc.StartReply(1, 1, "typed", "hello")]
    world.run(5000)
    assert world.of(voc.Complete) == [voc.Complete(1)]


def test_the_numbers_of_contract_e_are_the_defaults() -> None:
    turn, barge = TurnConfig(), BargeInConfig()
    assert (barge.wordless_ms, barge.report_ms, barge.ask_ms) == (250, 500, 250)
    assert (turn.detector.commit_p, turn.detector.question_p) == (0.5, 0.2)
    assert (turn.detector.ask_again_ms, turn.detector.hard_end_ms) == (600, 1500)
    assert (turn.detector.dictation_end_ms, turn.detector_timeout_ms) == (2800, 350)
    assert turn.near_field.half_life_s == 20
    assert turn.quiet_ms == 700
