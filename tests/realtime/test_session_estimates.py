"""A host that tells nothing of its playback: sound is over when it has run out, whatever comes."""

from __future__ import annotations

from tests.realtime.sessions import held
from voxglove.realtime.events import Audio
from voxglove.realtime.scripted import ScriptedAdapter


async def test_sound_runs_out_when_nothing_comes_behind_it() -> None:
    """A provider that fell silent in the middle of an answer: no word, no end of the item. The
    agent speaks no longer than its sound, so that a quiet pause can come."""
    async with held(ScriptedAdapter()) as call:
        call.session.respond("alpha bravo charlie delta echo foxtrot")
        await call.until(lambda: [one for one in call.events if isinstance(one, Audio)])
        call.wire.silent = True
        assert call.session.speaking
        await call.rest(3)
        assert not call.session.speaking
