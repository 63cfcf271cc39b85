"""What whisper reads ahead of the flush: kept if nothing more was said, and never told before.

`Recorded` answers with the length of what it was given, so a text says which audio was read. The
caller of these tests says everything before `PAUSE`; a flush reads 96 ms more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.adapters.stt_suite import SttRig, connected
from tests.adapters.test_whisper import Recorded, rig_of
from tests.media.test_inference import occupy
from voxglove.adapters.stt.port import Final, Problem
from voxglove.adapters.stt.whisper import WhisperStt
from voxglove.media.inference import InferencePool, Jobs

PAUSE = 16_000
ASKED = 17_600
"""First whole frame with 96 ms of silence."""
ENDED = 19_200
"""First whole frame with 192 ms."""
TEXT = "<17536>"


@pytest.fixture
def pool() -> Iterator[InferencePool]:
    pool = InferencePool(2)
    yield pool
    pool.close()


async def paused(rig: SttRig) -> None:
    await rig.hear(ASKED)
    rig.stt.speculate(PAUSE)


async def test_a_pause_that_was_the_end_is_read_once_and_answered_sooner(
    pool: InferencePool,
) -> None:
    """300 ms count from the pause, not from the flush; nothing is told before the flush."""
    recorded = Recorded()
    rig = rig_of(recorded, pool)
    async with connected(rig):
        await paused(rig)
        await rig.hear(ENDED)
        rig.stt.flush(PAUSE)
        assert rig.events == []
        await rig.hear(ASKED + 4_800)
        assert rig.events == [Final(TEXT, 0, PAUSE)]
    assert recorded.given == [PAUSE + 1_536]


async def test_a_text_that_is_known_answers_the_flush_at_once(pool: InferencePool) -> None:
    recorded = Recorded()
    rig = rig_of(recorded, pool)
    async with connected(rig):
        await paused(rig)
        await rig.hear(ASKED + 8_000)
        assert rig.events == [] and recorded.given == [PAUSE + 1_536]
        rig.stt.flush(PAUSE)
        await rig.hear(ASKED + 8_320)
        assert rig.events == [Final(TEXT, 0, PAUSE)]
    assert len(recorded.given) == 1


async def test_the_text_is_the_same_with_and_without(pool: InferencePool) -> None:
    for until in range(ASKED, ENDED + 1, 320):
        texts = []
        for ahead in (True, False):
            rig = rig_of(Recorded(), pool)
            async with connected(rig):
                await rig.hear(until)
                if ahead:
                    rig.stt.speculate(PAUSE)
                await rig.hear(ENDED)
                rig.stt.flush(PAUSE)
                await rig.wait()
            texts.append(rig.finals())
        assert texts[0] == texts[1] == [Final(TEXT, 0, PAUSE)]


@pytest.mark.parametrize("withdrawn", [True, False])
async def test_speech_that_goes_on_throws_it_away(pool: InferencePool, withdrawn: bool) -> None:
    """Also where nobody says that it went on: another end is another audio."""
    rig = rig_of(Recorded(), pool)
    async with connected(rig):
        await paused(rig)
        if withdrawn:
            rig.stt.speculate(None)
        await rig.hear(40_000)
        rig.stt.flush(36_000)
        await rig.wait()
    assert rig.events == [Final("<37536>", 0, 36_000)]


async def test_a_later_pause_supersedes_an_earlier_one(pool: InferencePool) -> None:
    recorded = Recorded()
    rig = rig_of(recorded, pool)
    async with connected(rig):
        await paused(rig)
        await rig.hear(30_080)
        rig.stt.speculate(28_000)
        await rig.hear(31_360)
        rig.stt.flush(28_000)
        await rig.wait()
    assert rig.events == [Final("<29536>", 0, 28_000)]
    assert recorded.given.count(29_536) == 1


async def test_what_no_worker_has_begun_is_skipped(pool: InferencePool) -> None:
    held = occupy(pool)
    recorded, jobs = Recorded(), Jobs(pool)
    rig = rig_of(recorded, pool)
    rig.stt = WhisperStt(recorded, jobs)
    rig.tick = jobs.tick
    async with connected(rig):
        await paused(rig)
        rig.stt.speculate(None)
        await asyncio.sleep(0)
        assert pool.statistics().waiting == 0
        await rig.hear(40_000)
        rig.stt.flush(36_000)
        for job in held:
            job.go.set()
        await rig.wait()
    assert recorded.given == [37_536]
    assert rig.events == [Final("<37536>", 0, 36_000)]


async def test_a_busy_pool_does_no_work_that_nobody_asked_for(pool: InferencePool) -> None:
    """On a live call. On the frame clock a result must not depend on the machine."""
    recorded, jobs = Recorded(), Jobs(pool, frame_clocked=False)
    rig = rig_of(recorded, pool)
    rig.stt = WhisperStt(recorded, jobs)
    held = occupy(pool)
    async with connected(rig):
        await paused(rig)
        assert jobs.statistics().submitted == 0
        for job in held:
            job.go.set()
        await rig.hear(ENDED)
        rig.stt.flush(PAUSE)
        await rig.wait()
    assert rig.events == [Final(TEXT, 0, PAUSE)]


async def test_an_answer_that_is_due_goes_first(pool: InferencePool) -> None:
    recorded = Recorded()
    rig = rig_of(recorded, pool)
    async with connected(rig):
        await rig.hear(ASKED)
        rig.stt.ask(ASKED)
        rig.stt.speculate(PAUSE)
        await rig.hear(ENDED)
        rig.stt.flush(PAUSE)
        await rig.wait()
    assert rig.events == [Final(TEXT, 0, PAUSE)]
    assert recorded.given.count(PAUSE + 1_536) == 1


async def test_an_ask_overtakes_it(pool: InferencePool) -> None:
    rig = rig_of(Recorded(), pool)
    async with connected(rig):
        await paused(rig)
        await rig.hear(17_920)
        rig.stt.ask(17_920)
        await rig.wait()
    assert [(one.text, one.end) for one in rig.partials()] == [("<17920>", 17_920)]
    assert rig.finals() == []


async def test_a_failure_is_silent_and_the_request_tries_again(pool: InferencePool) -> None:
    recorded = Recorded()
    recorded.error = RuntimeError("out of memory")
    rig = rig_of(recorded, pool)
    async with connected(rig):
        await paused(rig)
        await rig.hear(ASKED + 8_000)
        assert rig.events == []
        recorded.error = None
        rig.stt.flush(PAUSE)
        await rig.wait()
    assert rig.events == [Final(TEXT, 0, PAUSE)]


async def test_a_failure_of_what_was_taken_is_the_requests(pool: InferencePool) -> None:
    recorded = Recorded()
    recorded.error = RuntimeError("out of memory")
    rig = rig_of(recorded, pool)
    async with connected(rig):
        await paused(rig)
        await rig.hear(ENDED)
        rig.stt.flush(PAUSE)
        await rig.wait()
    problem, blank = rig.events
    assert isinstance(problem, Problem) and blank == Final("", 0, PAUSE)
    assert len(recorded.given) == 1


async def test_a_full_backlog_refuses_it_silently(pool: InferencePool) -> None:
    small = InferencePool(1, backlog=1)
    held = occupy(small)
    recorded, jobs = Recorded(), Jobs(small)
    rig = rig_of(recorded, pool)
    rig.stt, rig.tick = WhisperStt(recorded, jobs), jobs.tick
    try:
        small.submit(int)
        async with connected(rig):
            await paused(rig)
            assert rig.events == []
            for job in held:
                job.go.set()
    finally:
        small.close()


async def test_closing_drops_it_and_leaves_no_job_behind(pool: InferencePool) -> None:
    recorded, jobs = Recorded(), Jobs(pool)
    recorded.go.clear()
    rig = rig_of(recorded, pool)
    rig.stt, rig.tick = WhisperStt(recorded, jobs), jobs.tick
    async with connected(rig):
        await paused(rig)
    await asyncio.sleep(0)
    recorded.go.set()
    assert jobs.statistics().pending == 0
    assert rig.events == []


async def test_nothing_heard_is_nothing_to_read(pool: InferencePool) -> None:
    recorded, jobs = Recorded(), Jobs(pool)
    rig = rig_of(recorded, pool)
    rig.stt, rig.tick = WhisperStt(recorded, jobs), jobs.tick
    async with connected(rig):
        rig.stt.speculate(PAUSE)
        assert jobs.statistics().submitted == 0


async def test_settling_knows_nothing_of_what_was_only_read_ahead(pool: InferencePool) -> None:
    """Speech that goes on right behind a pause is in no turn yet."""
    rig = rig_of(Recorded(), pool)
    async with connected(rig):
        await paused(rig)
        rig.stt.settle(PAUSE)
        await rig.hear(40_000)
        rig.stt.flush(36_000)
        await rig.wait()
    assert rig.finals() == [Final("<21536>", PAUSE, 36_000)]
