"""The public names of realtime sessions, pinned: the seeds' surface in snake_case."""

from __future__ import annotations

import inspect

import voxglove.realtime as realtime
from voxglove.adapters.models.create import KEY_VARIABLES
from voxglove.realtime import RealtimeSession


def test_every_exported_name_exists_once() -> None:
    assert len(set(realtime.__all__)) == len(realtime.__all__)
    assert all(hasattr(realtime, name) for name in realtime.__all__)


def test_the_keys_are_vendors_that_a_log_knows() -> None:
    assert set(realtime.KEY_VARIABLES) <= set(KEY_VARIABLES)


def test_a_session_has_the_surface_of_the_seeds() -> None:
    for name in (
        *("start", "stop", "send_audio", "send_video_frame", "send_image", "say", "inject"),
        *("respond", "interrupt", "resume_output", "notify_user_speech", "notify_playback"),
        *("add_subscriber", "on"),
    ):
        assert callable(getattr(RealtimeSession, name)), name
    assert list(inspect.signature(RealtimeSession.start).parameters) == ["self", "resume_handle"]
    assert list(inspect.signature(RealtimeSession.inject).parameters) == ["self", "kind", "text"]
