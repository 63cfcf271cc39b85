"""Turn detectors: the tiers, the decision rule, and what decides where a detector has no answer."""

import numpy as np
import pytest

from voxglove.pipelines.commit import Answer, TurnConfig, hold_for
from voxglove.pipelines.detectors.heuristic import (
    Tiers,
    is_dictation,
    is_spelling,
    tier_of,
)
from voxglove.pipelines.detectors.port import (
    Decision,
    DetectorError,
    PauseEma,
    TurnQuery,
)
from voxglove.pipelines.detectors.smart_turn import (
    Features,
    Samples,
    SmartTurnConfig,
    SmartTurnDetector,
    weigh,
)

AUDIO = np.ones(16_000, np.int16)


@pytest.mark.parametrize(
    ("text", "hold", "tier"),
    [
        ("", 0, "empty"),
        ("  ", 0, "empty"),
        ("What time is it?", 0, "question"),
        ("Stop!", 0, "question"),
        ("你好吗？", 0, "question"),
        ("I would like a table.", 600, "statement"),
        ("Well…", 600, "statement"),
        ("I want to go.", 600, "statement"),
        ("Yes, that is it.", 600, "statement"),
        ("So do I.", 600, "statement"),
        ("I would like a", 900, "unfinished"),
        ("and then we", 900, "unfinished"),
        ("my code is A B", 2000, "dictation"),
        ("It is B-X", 2000, "dictation"),
        ("my number is 555", 2000, "dictation"),
        ("five 5 5 5.", 2000, "dictation"),
    ],
)
def test_voice_row_059_heuristic_tiers(text: str, hold: int, tier: str) -> None:
    assert (Tiers().hold(tier_of(text)), tier_of(text)) == (hold, tier)


@pytest.mark.parametrize("text", ["Can you help me?", "Is it B?", "Is my code A B?", "At 7?"])
def test_voice_row_060_a_question_is_never_dictation(text: str) -> None:
    assert tier_of(text) == "question"


@pytest.mark.parametrize("text", ["go to it", "so am I", "give it to me", "ok", "B", ""])
def test_ordinary_short_words_are_no_dictation(text: str) -> None:
    assert not is_dictation(text)


def _without_answer(text: str, pauses: PauseEma, *, late: bool) -> Decision:
    return hold_for(text, TurnConfig(), Answer(text, None, late=late), waited_ms=0, pauses=pauses)


def test_voice_row_061_without_an_answer_the_tier_decides_and_says_so() -> None:
    unfinished = _without_answer("I would like a", PauseEma(), late=True)
    assert (unfinished.hold_ms, unfinished.reason) == (900, "fallback:unfinished")
    slow = _without_answer("Fine.", PauseEma(ms=1400), late=True)
    assert (slow.hold_ms, slow.reason) == (1200, "fallback:statement")
    alone = _without_answer("Fine.", PauseEma(), late=False)
    assert (alone.hold_ms, alone.reason) == (600, "statement")


def test_pauses_stretch_long_holds_between_one_and_three_times() -> None:
    assert PauseEma().stretch(900) == 900
    assert PauseEma(ms=1400).stretch(900) == 1800
    assert PauseEma(ms=1400).stretch(400) == 400
    assert PauseEma(ms=100).stretch(900) == 900
    assert PauseEma(ms=9000).stretch(900) == 2700
    assert PauseEma(ms=9000).stretch(2000) == 2800


def test_pauses_learn_from_gaps_up_to_five_seconds() -> None:
    assert PauseEma().after(1700).ms == pytest.approx(1000)
    assert PauseEma().after(5001) == PauseEma()
    assert PauseEma().after(-1) == PauseEma()


@pytest.mark.parametrize(
    ("p", "text", "silence", "hold", "again"),
    [
        (0.5, "I would like a", 200, 0, None),
        (0.49, "I would like a", 200, 1500, 600),
        (0.49, "I would like a", 600, 1500, None),
        (0.2, "Can you help me?", 200, 0, None),
        (0.19, "Can you help me?", 200, 1500, 600),
        (0.49, "my code is A B", 600, 2800, None),
        (0.49, "my number is 555", 600, 2800, None),
    ],
)
def test_decision_rule(p: float, text: str, silence: int, hold: int, again: int | None) -> None:
    decision = weigh(p, TurnQuery(transcript=text, silence_ms=silence))
    assert (decision.hold_ms, decision.ask_again_ms, decision.p) == (hold, again, p)


@pytest.mark.parametrize(("p", "hold"), [(0.95, 1500), (0.96, 0)])
def test_a_second_answer_must_be_nearly_certain(p: float, hold: int) -> None:
    query = TurnQuery(transcript="He might even have been made", silence_ms=620, again=True)
    assert weigh(p, query).hold_ms == hold


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        *(("X", True), ("L.", True), ("X 7 L", True), ("X7L4", True), ("B, C-D", True)),
        *(("7", False), ("29340", False), ("2 9", False), ("I", False), ("a", False)),
        *(("no", False), ("OK.", False), ("at 7", False), ("COVID", False), ("", False)),
    ],
)
def test_spelling_is_letters_and_digits_alone(text: str, spelled: bool) -> None:
    assert is_spelling(text) is spelled


def test_a_spelled_letter_is_held_however_final_it_sounds() -> None:
    assert weigh(0.98, TurnQuery(transcript="X")).hold_ms == 1000
    assert weigh(0.98, TurnQuery(transcript="7")).hold_ms == 0


async def test_smart_turn_hears_the_last_eight_seconds() -> None:
    heard: list[int] = []

    def mel(audio: Samples) -> Features:
        heard.append(len(audio))
        return np.zeros((1, 80, 800), np.float32)

    detector = SmartTurnDetector(lambda features: float(features.sum()) + 0.9, mel)
    query = TurnQuery(transcript="so", audio=np.zeros(200_000, np.int16))
    assert (await detector.decide(query)).hold_ms == 0
    assert heard == [128_000]


async def test_smart_turn_names_what_is_wrong() -> None:
    def wrong(audio: Samples) -> Features:
        return np.zeros((80, 800), np.float32)

    detector = SmartTurnDetector(lambda features: 1.0, wrong)
    with pytest.raises(DetectorError, match="shape"):
        await detector.decide(TurnQuery(transcript="", audio=AUDIO))
    with pytest.raises(DetectorError, match="audio"):
        await detector.decide(TurnQuery(transcript=""))


def test_bad_numbers_name_the_field() -> None:
    with pytest.raises(ValueError, match="commit_p"):
        SmartTurnConfig(commit_p=1.5)
    with pytest.raises(ValueError, match="ask_again_ms"):
        SmartTurnConfig(ask_again_ms=2000)
    with pytest.raises(ValueError, match="statement_ms"):
        Tiers(statement_ms=-1)
