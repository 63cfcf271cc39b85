"""Barge-in, by scripted facts: what pauses, what cuts, what lets the agent go on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxglove.media.errors import MediaValueError
from voxglove.media.turns.bargein import (
    Ask,
    BargeIn,
    BargeInConfig,
    Confirmed,
    Cut,
    Effect,
    Fact,
    Misfire,
    Onset,
    Pause,
    Report,
    Resume,
    SpeechEnd,
    Tick,
    step,
)


def ms(value: float) -> int:
    return round(value * 16)


def onset() -> Onset:
    """Voice begins at 0; the detector says so after 96 ms."""
    return Onset(ms(96), 0)


def run(*facts: Fact, protected: bool = False) -> list[Effect]:
    """All effects of the facts, the recogniser's questions left out."""
    state = BargeIn()
    effects: list[Effect] = []
    for fact in facts:
        state, new = step(state, fact, protected=protected)
        effects += [effect for effect in new if not isinstance(effect, Ask)]
    return effects


def test_tentative_onset_pauses_at_once() -> None:
    state, effects = step(BargeIn(), onset())
    assert effects == (Pause(),)
    assert (state.stage, state.start) == ("paused", 0)


def test_voice_row_026_a_short_stop_is_cut_by_its_word() -> None:
    facts = (onset(), Confirmed(ms(256)), Report("Stop.", ms(300)))
    assert run(*facts) == [Pause(), Cut("stop_word")]


def test_voice_row_026_a_stop_word_cuts_even_after_its_misfire() -> None:
    facts = (onset(), Misfire(ms(400)), Report("no, stop", ms(450)))
    assert run(*facts) == [Pause(), Resume("misfire"), Cut("stop_word")]


def test_voice_row_027_words_before_the_misfire_cut_and_nothing_resumes() -> None:
    facts = (onset(), Report("what about", ms(200)), Misfire(ms(400)), Tick(ms(900)))
    assert run(*facts) == [Pause(), Cut("words")]


def test_voice_row_028_a_cough_resumes() -> None:
    cough = (
        onset(),
        Tick(ms(250), voiced_to=ms(180)),
        Report("", ms(250)),
        Tick(ms(360), voiced_to=ms(180)),
        Misfire(ms(372)),
    )
    assert run(*cough) == [Pause(), Resume("misfire")]


def test_voice_row_028_a_cough_without_any_report_resumes() -> None:
    assert run(onset(), Misfire(ms(372)), Tick(ms(600))) == [Pause(), Resume("misfire")]


@pytest.mark.parametrize(("voice", "effects"), [(249, []), (251, [Cut("wordless")])])
def test_voice_row_031_wordless_voice(voice: int, effects: list[Effect]) -> None:
    facts = (onset(), Tick(ms(voice), voiced_to=ms(voice)), Report("", ms(voice)))
    assert run(*facts) == [Pause(), *effects]


def test_voice_row_031_a_stop_word_needs_no_length() -> None:
    assert run(onset(), Report("stop", ms(120))) == [Pause(), Cut("stop_word")]


def test_confirmed_voice_counts_whatever_its_exact_length() -> None:
    assert run(onset(), Confirmed(ms(240)), Report("", ms(260))) == [Pause(), Cut("wordless")]


def test_voice_without_any_report_is_cut_500_ms_after_its_start() -> None:
    facts = (onset(), Confirmed(ms(256)), Tick(ms(499)))
    assert run(*facts) == [Pause()]
    assert run(*facts, Tick(ms(500))) == [Pause(), Cut("wordless")]


def test_a_report_of_too_little_voice_does_not_call_it_wordless() -> None:
    early = (onset(), Report("", ms(200)), Confirmed(ms(256)))
    assert run(*early) == [Pause()]
    assert run(*early, Report("", ms(260))) == [Pause(), Cut("wordless")]


def test_only_backchannels_resume_at_speech_end() -> None:
    hum = (onset(), Confirmed(ms(256)), Report("Mm-hm", ms(300)), Tick(ms(700), ms(600)))
    assert run(*hum) == [Pause()]
    assert run(*hum, SpeechEnd(ms(792), ms(600))) == [Pause(), Resume("backchannel")]


def test_a_backchannel_reported_after_speech_end_resumes() -> None:
    facts = (onset(), Confirmed(ms(256)), SpeechEnd(ms(470), ms(278)), Report("yeah", ms(480)))
    assert run(*facts) == [Pause(), Resume("backchannel")]


def test_a_backchannel_that_becomes_words_cuts() -> None:
    facts = (onset(), Confirmed(ms(256)), Report("yeah", ms(300)), Report("yeah I think", ms(500)))
    assert run(*facts) == [Pause(), Cut("words")]


def test_a_late_blank_report_does_not_undo_a_backchannel() -> None:
    facts = (onset(), Confirmed(ms(256)), Report("yeah", ms(300)), Report("", ms(500)))
    assert run(*facts, Tick(ms(2000))) == [Pause()]


def asked(*facts: Fact, protected: bool = False) -> list[int]:
    """Where the recogniser was asked."""
    state = BargeIn()
    questions: list[int] = []
    for fact in facts:
        state, effects = step(state, fact, protected=protected)
        questions += [effect.at for effect in effects if isinstance(effect, Ask)]
    return questions


def test_the_recogniser_is_asked_at_250_ms_and_every_250_ms() -> None:
    ticks = [Tick(ms(at), ms(120)) for at in range(100, 1000, 10)]
    assert asked(onset(), *ticks) == [ms(250), ms(500), ms(750)]


def test_the_recogniser_is_asked_once_more_when_speech_ends_unexplained() -> None:
    state, _ = step(BargeIn(), onset())
    state, _ = step(state, Confirmed(ms(248)))
    _, effects = step(state, SpeechEnd(ms(450), ms(258)))
    assert effects == (Ask(ms(450)),)


def test_voice_row_024_protected_wordless_voice_is_resumed_never_cut() -> None:
    facts = (onset(), Confirmed(ms(256)), Report("", ms(260)), Tick(ms(900)), Report("", ms(950)))
    ended = SpeechEnd(ms(1200), ms(1000))
    assert run(*facts, ended, protected=True) == [Pause(), Resume("wordless")]


def test_voice_row_024_a_stop_word_cuts_protected_sound() -> None:
    voice = (onset(), Confirmed(ms(256)), Report("", ms(260)))
    expected = [Pause(), Resume("wordless"), Cut("stop_word")]
    assert run(*voice, Report("stop", ms(700)), protected=True) == expected


def test_a_protected_utterance_is_still_listened_to_after_it_resumed() -> None:
    voice = (onset(), Confirmed(ms(256)), Report("", ms(260)), Tick(ms(500)), Tick(ms(750)))
    assert asked(*voice, protected=True) == [ms(256), ms(500), ms(750)]


def test_a_second_onset_after_an_unexplained_end_stays_paused() -> None:
    facts = (onset(), Confirmed(ms(256)), SpeechEnd(ms(450), ms(258)), Onset(ms(496), ms(480)))
    assert run(*facts, Misfire(ms(700))) == [Pause(), Resume("misfire")]


def test_facts_of_nobody_speaking_change_nothing() -> None:
    blank, hum = Report("", 1), Report("mm", 1)
    facts: tuple[Fact, ...] = (Confirmed(1), Misfire(1), SpeechEnd(1, 1), blank, hum, Tick(1))
    for fact in facts:
        assert step(BargeIn(), fact) == (BargeIn(), ())


FACTS = st.one_of(
    st.builds(Onset, st.just(0), st.just(0)),
    st.builds(Confirmed, st.just(0)),
    st.builds(Misfire, st.just(0)),
    st.builds(SpeechEnd, st.just(0), st.just(0)),
    st.builds(Report, st.sampled_from(["", "mm", "stop", "I think so"]), st.just(0)),
    st.builds(Tick, st.just(0)),
)


def placed(fact: Fact, at: int) -> Fact:
    match fact:
        case Onset():
            return Onset(at, at - ms(96))
        case SpeechEnd():
            return SpeechEnd(at, at - ms(192))
        case Report():
            return Report(fact.text, at)
        case Tick():
            return Tick(at, at)
        case _:
            return type(fact)(at)


@given(st.lists(st.tuples(FACTS, st.integers(1, 400))), st.booleans())
def test_in_any_order_pauses_are_ended_once_and_blanks_never_cut_protected_sound(
    script: list[tuple[Fact, int]], protected: bool
) -> None:
    state, at, paused = BargeIn(), ms(1000), False
    for fact, gap in script:
        at += ms(gap)
        state, effects = step(state, placed(fact, at), protected=protected)
        for effect in effects:
            match effect:
                case Pause():
                    assert not paused
                    paused = True
                case Resume():
                    assert paused
                    paused = False
                case Cut(reason):
                    assert not (protected and reason == "wordless")
                    paused = False
        assert (state.stage == "paused") == paused


def test_bad_config_names_the_field() -> None:
    with pytest.raises(MediaValueError, match="wordless_ms"):
        BargeInConfig(wordless_ms=0)


# ---- a recogniser that reports only when asked (docs/decisions/0006)

BY_REQUEST = BargeInConfig(by_request=True)


def run_by_request(*facts: Fact) -> list[Effect]:
    """As `run`, with a recogniser that answers late and only when asked."""
    state = BargeIn()
    effects: list[Effect] = []
    for fact in facts:
        state, new = step(state, fact, BY_REQUEST)
        effects += [effect for effect in new if not isinstance(effect, Ask)]
    return effects


def test_by_request_a_wordless_voice_that_ended_resumes() -> None:
    cough = (onset(), Confirmed(ms(256)), Report("", ms(250)), SpeechEnd(ms(640), ms(448)))
    assert run_by_request(*cough) == [Pause()]
    assert run_by_request(*cough, Report("", ms(448))) == [Pause(), Resume("misfire")]


def test_by_request_the_first_answer_may_take_its_time() -> None:
    facts = (onset(), Confirmed(ms(256)), Tick(ms(700), ms(700)))
    assert run_by_request(*facts) == [Pause()]
    assert run_by_request(*facts, Report("Wait", ms(250))) == [Pause(), Cut("stop_word")]


@pytest.mark.parametrize(("voice", "effects"), [(999, []), (1001, [Cut("wordless")])])
def test_by_request_a_voice_that_goes_on_without_words_cuts(
    voice: int, effects: list[Effect]
) -> None:
    facts = (onset(), Confirmed(ms(256)), Tick(ms(voice), ms(voice)), Report("", ms(voice)))
    assert run_by_request(*facts) == [Pause(), *effects]


def test_by_request_a_silent_recogniser_leaves_it_to_the_voice() -> None:
    facts = (onset(), Confirmed(ms(256)), Tick(ms(1499), ms(1499)))
    assert run_by_request(*facts) == [Pause()]
    assert run_by_request(*facts, Tick(ms(1500), ms(1500))) == [Pause(), Cut("wordless")]


def test_by_request_words_after_the_voice_ended_still_cut() -> None:
    facts = (onset(), Confirmed(ms(256)), SpeechEnd(ms(640), ms(448)), Report("stop", ms(448)))
    assert run_by_request(*facts) == [Pause(), Cut("stop_word")]


def test_a_hum_that_never_ends_is_let_go_after_3_s_and_still_watched() -> None:
    state, _ = step(BargeIn(), onset())
    state, _ = step(state, Confirmed(ms(256)))
    state, _ = step(state, Report("mm-hm", ms(300)))
    state, effects = step(state, Tick(ms(2990), ms(2990)))
    assert Resume("backchannel") not in effects
    state, effects = step(state, Tick(ms(3000), ms(3000)))
    assert effects == (Resume("backchannel"),)
    assert step(state, Report("mm-hm wait", ms(3200)))[1] == (Cut("stop_word"),)


def test_before_the_answer_is_heard_voice_alone_neither_cuts_nor_frees_it() -> None:
    state, _ = step(BargeIn(), onset(), withheld=True)
    facts = (Confirmed(ms(256)), Report("", ms(400)), Tick(ms(900), ms(900)))
    for fact in facts:
        state, effects = step(state, fact, withheld=True)
        assert not any(isinstance(effect, Cut | Resume) for effect in effects)
    assert step(state, Report("what is that", ms(950)), withheld=True)[1] == (Cut("words"),)


def test_by_request_half_a_hum_is_not_believed_before_the_voice_is_over() -> None:
    facts = (onset(), Confirmed(ms(256)), Report("I have", ms(500)))
    assert run_by_request(*facts) == [Pause()]
    ended = (SpeechEnd(ms(800), ms(608)), Report("Uh-huh.", ms(608)))
    assert run_by_request(*facts, *ended) == [Pause(), Resume("backchannel")]


@pytest.mark.parametrize("second", ["I have a", "I had"])
def test_by_request_a_second_report_of_words_cuts(second: str) -> None:
    facts = (onset(), Confirmed(ms(256)), Report("I have", ms(250)), Report(second, ms(500)))
    assert run_by_request(*facts) == [Pause(), Cut("words")]


def test_by_request_three_words_cut_at_once() -> None:
    facts = (onset(), Confirmed(ms(256)), Report("what about tomorrow", ms(500)))
    assert run_by_request(*facts) == [Pause(), Cut("words")]
