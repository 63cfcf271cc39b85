"""The reader of golden transcripts itself: it must fail where a codec and a file differ."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.realtime import golden_runner
from voxglove.realtime.commands import ProviderCommand, SendAudio, SendText
from voxglove.realtime.events import Audio, Closed, Opened, RealtimeEvent
from voxglove.realtime.port import Setup
from voxglove.realtime.providers.codec import Frame


class Parrot:
    """Sends back what it is told; a Codec of the smallest kind."""

    due = False
    finished = False

    def __init__(self) -> None:
        self.out: list[Frame] = []

    def begin(self, setup: Setup) -> None:
        self.out.append(json.dumps({"say": setup.instructions}))

    def receive(self, frame: Frame) -> list[RealtimeEvent]:
        return [Opened(json.loads(frame)["id"])]

    def tell(self, command: ProviderCommand) -> list[RealtimeEvent]:
        if isinstance(command, SendText):
            self.out.append(json.dumps({"text": command.text, "n": 1}))
        return [Audio("i", command.pcm)] if isinstance(command, SendAudio) else []

    def finish(self) -> bool:
        return True

    def closed(self, code: int, reason: str) -> list[RealtimeEvent]:
        return [Closed(str(code), reason)]

    def take(self) -> list[Frame]:
        out, self.out = self.out, []
        return out


GOOD = """# a remark
% {"colour": "red"}

! begin {"instructions": "be"}
> {"say": "be"}
< {"id": "s1"}
= Opened {"session_id": "s1"}
! SendText {"text": "hi"}
> {"n": "…", "text": "hi"}
! SendAudio {"pcm": "{zeros:4}"}
= Audio {"item_id": "i", "pcm": "AAAAAA=="}
! finish wait
! closed 1001 the end
= Closed {"code": "1001", "reason": "the end"}
"""


def run(tmp_path: Path, text: str) -> None:
    file = tmp_path / "one.jsonl"
    file.write_text(text, encoding="utf-8")
    golden_runner.run(file, lambda options: Parrot(), binary=True)


def test_a_codec_that_does_what_the_file_says_passes(tmp_path: Path) -> None:
    run(tmp_path, GOOD)
    assert golden_runner.read(tmp_path / "one.jsonl").options == {"colour": "red"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('{"say": "be"}', '{"say": "bee"}'),
        ('> {"say": "be"}\n', ""),
        ('"n": "…", ', ""),
        ('= Opened {"session_id": "s1"}\n', ""),
        ('"s1"}\n!', '"s1", "resumed": true}\n!'),
        ("AAAAAA==", "AAAA"),
        ("! finish wait", "! finish"),
        ('"reason": "the end"', '"reason": "end"'),
    ],
)
def test_each_difference_fails(tmp_path: Path, old: str, new: str) -> None:
    assert old in GOOD
    with pytest.raises(AssertionError):
        run(tmp_path, GOOD.replace(old, new))


def test_a_line_without_a_mark_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"one\.jsonl:1"):
        run(tmp_path, "{}\n")
