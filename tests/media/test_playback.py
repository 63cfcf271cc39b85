"""The playback ledger against a model that keeps every sample by name."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from voxglove.media.playback import Chunk, Playback

KEEP = 64

Op = tuple[str, int, int]
OPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 60), st.integers(1, 3)),
        st.tuples(st.just("advance"), st.integers(0, 80), st.just(0)),
        st.tuples(st.just("close"), st.integers(-10, 200), st.just(0)),
        st.tuples(st.just("correct"), st.integers(-10, 200), st.integers(0, 2)),
        st.tuples(st.just("expire"), st.just(0), st.just(0)),
    ),
    max_size=60,
)


def names(chunks: list[Chunk]) -> list[tuple[int, int]]:
    """(segment, sample) of every sample, checked against the PCM, which counts its samples."""
    found = []
    for chunk in chunks:
        assert chunk.samples > 0
        assert list(np.frombuffer(chunk.pcm, np.int16)) == list(range(chunk.offset, chunk.end))
        found += [(chunk.segment, sample) for sample in range(chunk.offset, chunk.end)]
    return found


def chunk(segment: int, offset: int, samples: int) -> Chunk:
    return Chunk(segment, offset, np.arange(offset, offset + samples, dtype=np.int16).tobytes())


@dataclass
class Model:
    """The same ledger with one list entry per sample and nothing ever dropped."""

    base: int = 0
    advanced: int = 0
    epoch: int = 0
    live: list[tuple[int, int]] = field(default_factory=list)
    closed: tuple[int, int, list[tuple[int, int]]] | None = None
    expired: bool = False
    heard: set[tuple[int, int]] = field(default_factory=set)
    sent: dict[int, int] = field(default_factory=dict)


def run(ops: list[Op]) -> None:
    ledger, model = Playback(KEEP), Model()
    for name, amount, which in ops:
        STEPS[name](ledger, model, amount, which)
        assert ledger.end == model.base + len(model.live)
        assert ledger.epoch == model.epoch
        assert model.base <= ledger.advanced <= ledger.end
        assert all(sample < model.sent[segment] for segment, sample in model.heard)


def _append(ledger: Playback, model: Model, amount: int, segment: int) -> None:
    offset = model.sent.get(segment, 0)
    ledger.append(chunk(segment, offset, amount))
    model.live += [(segment, offset + n) for n in range(amount)]
    model.sent[segment] = offset + amount


def _advance(ledger: Playback, model: Model, amount: int, _: int) -> None:
    to = model.advanced + amount
    played = names(ledger.advance(to))
    assert played == model.live[model.advanced - model.base : to - model.base]
    assert not model.heard & set(played), "a sample was told to be played twice"
    model.heard |= set(played)
    model.advanced = min(to, model.base + len(model.live))


def _close(ledger: Playback, model: Model, amount: int, _: int) -> None:
    # A carrier's stop is never before what it reported as played.
    at = max(model.advanced, min(model.base + amount, model.base + len(model.live)))
    behind = names(ledger.close(at))
    assert behind == model.live[at - model.base :]
    model.heard |= set(model.live[: at - model.base])
    model.closed = (model.epoch, model.base, model.live)
    model.base = model.advanced = at
    model.epoch, model.live, model.expired = model.epoch + 1, [], False
    assert ledger.fresh and not ledger.stop_known


def _correct(ledger: Playback, model: Model, amount: int, back: int) -> None:
    epoch = model.epoch - 1 - back
    known = model.closed
    if known is None or known[0] != epoch:
        assert ledger.correct(epoch, amount) is None
        return
    _, base, sent = known
    pos = base + amount
    stop = max(base, min(pos, base + len(sent)))
    found = ledger.correct(epoch, pos)
    model.advanced += stop - model.base
    model.base, model.closed = stop, None
    assert ledger.correct(epoch, pos) is None, "a second word about the same stop counted"
    assert (found is None) == model.expired
    if found is None:
        return
    played, behind = names(found[0]), names(found[1])
    whole = sent[: stop - base], sent[stop - base :]
    # What lies further back than was promised to be kept may be missing, from the front only.
    assert whole[0][len(whole[0]) - len(played) :] == played
    assert whole[1][len(whole[1]) - len(behind) :] == behind
    model.heard -= set(whole[1])
    model.heard |= set(whole[0])
    assert ledger.stop_known == ledger.fresh


def _expire(ledger: Playback, model: Model, _: int, __: int) -> None:
    ledger.expire()
    model.expired = True


STEPS = {
    "append": _append,
    "advance": _advance,
    "close": _close,
    "correct": _correct,
    "expire": _expire,
}


@given(OPS)
def test_ledger_tells_exactly_what_was_played_and_what_lay_behind(ops: list[Op]) -> None:
    run(ops)


@given(st.integers(0, 100), st.integers(0, 100), st.integers(1, 100))
def test_slice_is_exact(start: int, stop: int, samples: int) -> None:
    whole = chunk(1, 7, samples)
    part = whole.slice(start, stop)
    assert list(np.frombuffer(part.pcm, np.int16)) == list(range(7, 7 + samples))[start:stop]
    assert part.offset == (7 + start if part.samples else part.offset)


def test_what_a_corrected_stop_needs_is_kept_and_no_more() -> None:
    ledger = Playback(KEEP)
    for n in range(100):
        ledger.append(chunk(1, 10 * n, 10))
    ledger.advance(990)
    ledger.close(990)
    found = ledger.correct(0, 990 - KEEP)
    assert found is not None
    assert names(found[1]) == [(1, n) for n in range(990 - KEEP, 1000)]
    assert len(names(found[0])) <= 10, "played sound is held beyond what is kept for replay"


def test_chunk_the_carrier_never_took_leaves_no_trace() -> None:
    ledger = Playback(KEEP)
    first, second = chunk(1, 0, 10), chunk(1, 10, 10)
    ledger.append(first)
    ledger.append(second)
    assert not ledger.retract(first)
    assert ledger.retract(second)
    assert ledger.end == 10
    ledger.close(4)
    assert not ledger.retract(first), "behind a stop it is no longer ours to take back"
