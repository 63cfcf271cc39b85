"""Word error rate of whole calls over the human recordings with safe transcripts."""

from __future__ import annotations

import pytest

from tests.audio_fixtures.load import human_set
from tests.regression.drive import Tell
from tests.support.wer import wer_of_set
from voxglove.media import events as call
from voxglove.media.virtual_loop import run_virtual
from voxglove.web.build import Shared
from voxglove.web.wav_call import WavCall, hold

pytestmark = [pytest.mark.local_speech, pytest.mark.slow]


def test_word_error_rate_of_the_human_set(shared: Shared, tell: Tell) -> None:
    triples = []
    for item in human_set():
        order = WavCall(audio=item.pcm, name=item.name, agent="demo", fast=True)
        result = run_virtual(hold(shared, order))
        assert result.completed, item.name
        finals = [e for _, e in result.events if isinstance(e, call.Transcript) and not e.partial]
        said = " ".join(e.text for e in finals if e.role == "user")
        triples.append((item.name, item.transcript, said))
    measured = wer_of_set(triples)
    tell(measured.report())
    assert measured.rate <= 0.08, measured.report()
