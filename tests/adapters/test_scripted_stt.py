"""The scripted recogniser: the shared suite, then strictness, self-segmenting and faults."""

from __future__ import annotations

import numpy as np
import pytest

from tests.adapters.stt_suite import SttRig, SttSuite, connected
from voxglove.adapters.errors import ConnectionFailed
from voxglove.adapters.stt.port import Closed, Final, Partial, Problem
from voxglove.adapters.stt.scripted import ScriptedStt, Spoken, SttFaults, Word
from voxglove.media.errors import MediaValueError

FIRST = Spoken(1_600, 16_000, "I would like a table")
SECOND = Spoken(24_000, 36_800, "for two people tomorrow")
MIDDLE = 19_200
END = 38_400


def rig_of(stt: ScriptedStt) -> SttRig:
    return SttRig(stt, np.zeros(END, np.int16), MIDDLE, FIRST.text, SECOND.text)


class TestScripted(SttSuite):
    @pytest.fixture(params=[0, 200])
    def rig(self, request: pytest.FixtureRequest) -> SttRig:
        delay: int = request.param
        return rig_of(ScriptedStt([FIRST, SECOND], final_ms=delay, partial_ms=delay))


async def finals_of(stt: ScriptedStt) -> list[Final]:
    """Both parts flushed and settled, one after the other."""
    rig = rig_of(stt)
    async with connected(rig):
        for end in (MIDDLE, END):
            await rig.hear(end)
            stt.flush(end)
            stt.settle(end)
        await rig.wait(3_000)
    return rig.finals()


async def test_only_words_whose_audio_came_are_reported() -> None:
    words = (Word("no", 1_600, 4_800), Word("yes", 8_000, 9_600))
    rig = rig_of(ScriptedStt([Spoken(1_600, 9_600, "no yes", words)]))
    async with connected(rig):
        await rig.hear(END, skip=3_840)  # most of "no" is gated off
        rig.stt.flush(END)
        await rig.wait()
    assert rig.finals()[0].text == "yes"


async def test_words_that_no_final_covered_are_named() -> None:
    stt = ScriptedStt([FIRST, SECOND])
    rig = rig_of(stt)
    async with connected(rig):
        await rig.hear(MIDDLE)
        stt.flush(MIDDLE)
        await rig.wait()
    assert stt.unreported() == SECOND.text.split()


async def test_a_continuous_recogniser_reports_unasked() -> None:
    stt = ScriptedStt([FIRST, SECOND], continuous=True, segment_ms=40)
    rig = rig_of(stt)
    async with connected(rig):
        await rig.hear(END)
        await rig.wait()
    assert [final.text for final in rig.finals()] == [FIRST.text, SECOND.text]
    assert [(final.start, final.end) for final in rig.finals()] == [
        (FIRST.start, FIRST.end),
        (SECOND.start, SECOND.end),
    ]
    assert [partial.text for partial in rig.partials()[:3]] == ["I", "I would", "I would like"]
    assert stt.unreported() == []


async def test_a_continuous_recogniser_can_be_flushed_early() -> None:
    stt = ScriptedStt([FIRST], continuous=True)
    rig = rig_of(stt)
    async with connected(rig):
        await rig.hear(8_000)
        stt.flush(8_000)
        await rig.hear(END)
        await rig.wait()
    said = " ".join(final.text for final in rig.finals())
    assert said == FIRST.text, "a word was lost or doubled by the flush"


async def test_finals_go_wrong_as_told() -> None:
    faults = SttFaults(blank_finals={0}, final_texts={1: "four two people"}, double_finals={1})
    finals = await finals_of(ScriptedStt([FIRST, SECOND], faults=faults))
    assert [final.text for final in finals] == ["", "four two people", "four two people"]


async def test_a_final_may_be_lost_or_late() -> None:
    faults = SttFaults(late_finals_ms={0: 2_000})
    finals = await finals_of(ScriptedStt([FIRST, SECOND], faults=faults))
    assert [final.text for final in finals] == [SECOND.text, FIRST.text]
    lost = await finals_of(ScriptedStt([FIRST, SECOND], faults=SttFaults(lost_finals={0})))
    assert [final.text for final in lost] == [SECOND.text]


async def test_voice_row_049_a_close_is_its_last_word() -> None:
    problem = Problem("ERR_STT_CONNECTION", "hiccup")
    faults = SttFaults(problems=[(3_200, problem)], closed_at=8_000)
    rig = rig_of(ScriptedStt([FIRST], faults=faults))
    async with connected(rig):
        await rig.hear(END)
        rig.stt.flush(END)
        await rig.wait()
    assert rig.events == [problem, Closed("the script closed the recogniser")]


async def test_connecting_may_fail_first() -> None:
    stt = ScriptedStt([FIRST], faults=SttFaults(failing_connects=1))
    with pytest.raises(ConnectionFailed):
        await stt.connect(lambda event: None)
    await stt.connect(lambda event: None)
    await stt.aclose()


async def test_a_partial_on_its_way_is_dropped_by_the_next() -> None:
    rig = rig_of(ScriptedStt([FIRST], partial_ms=500))
    async with connected(rig):
        await rig.hear(MIDDLE)
        rig.stt.ask(8_000)
        rig.stt.ask(MIDDLE)
        await rig.wait()
    assert rig.events == [Partial(FIRST.text, 0, MIDDLE)]


@pytest.mark.parametrize(("start", "end", "text"), [(5, 5, "x"), (0, 10, " ")])
def test_a_script_without_sense_is_refused(start: int, end: int, text: str) -> None:
    with pytest.raises(MediaValueError):
        Spoken(start, end, text)
