"""The guards themselves: each refuses the text it is there for, and lets good text pass."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

import pytest

from tests.support import guards, style_guards

ImportRule = Callable[[str, ast.Module], Iterator[str]]
StyleRule = Callable[[str, str, ast.Module], Iterator[str]]

BAD_IMPORTS: list[tuple[ImportRule, str, str]] = [
    (guards.wrong_floor, "core/loop.py", "from ..media.frame import AudioFrame"),
    (guards.wrong_floor, "media/line.py", "from .. import core"),
    (guards.wrong_floor, "media/vad/silero.py", "from ...core.errors import GloveError"),
    (guards.wrong_floor, "adapters/stt/port.py", "from ...pipelines import machine"),
    (guards.wrong_floor, "pipelines/reply.py", "from ..realtime.brain import RealtimeBrain"),
    (guards.wrong_floor, "pipelines/reply.py", "from ..adapters.stt.whisper import Whisper"),
    (guards.wrong_floor, "pipelines/reply.py", "from ..adapters.stt import whisper"),
    (guards.wrong_floor, "pipelines/reply.py", "from ..adapters import stt"),
    (guards.wrong_floor, "realtime/link.py", "from ..adapters.socket_pool import Pool"),
    (guards.wrong_floor, "core/loop.py", "import web"),
    (guards.wrong_floor, "core/loop.py", "import voxglove.core.tool"),
    (guards.wrong_floor, "web/app.py", "from voxglove.core import tool"),
    (guards.wrong_floor, "core/loop.py", "def f():\n    from ..media import line"),
    (guards.wrong_third_party, "core/loop.py", "import numpy as np"),
    (guards.wrong_third_party, "media/line.py", "import onnxruntime"),
    (guards.wrong_third_party, "media/line.py", "from scipy.signal import resample"),
    (guards.wrong_third_party, "pipelines/speech.py", "import voxnorm"),
    (guards.wrong_third_party, "adapters/stt/deepgram.py", "import openai"),
    (guards.wrong_third_party, "web/app.py", "import yaml"),
    (guards.dynamic_import, "core/loop.py", "import importlib\nimportlib.import_module('x')"),
    (guards.dynamic_import, "core/loop.py", "import importlib as i\nf = i.import_module"),
    (guards.dynamic_import, "core/loop.py", "from importlib import import_module as load"),
    (guards.dynamic_import, "core/loop.py", "__import__('voxglove.media')"),
    (guards.dynamic_import, "core/loop.py", "exec('import media')"),
    (guards.dynamic_import, "media/line.py", "import sys\nsys.modules['voxglove.core']"),
    (
        guards.dynamic_import,
        "web/app.py",
        "import importlib as i\ni.import_module('voxglove.x')",
    ),
    (guards.dynamic_import, "web/app.py", "import importlib\nimportlib.import_module('.x', 'a')"),
]

GOOD_IMPORTS: list[tuple[ImportRule, str, str]] = [
    (guards.wrong_floor, "core/stores/memory.py", "from ..messages import Message"),
    (guards.wrong_floor, "adapters/stt/port.py", "from ...media.frame import AudioFrame"),
    (guards.wrong_floor, "pipelines/reply.py", "from ..adapters.stt.port import Final"),
    (guards.wrong_floor, "pipelines/reply.py", "from ..adapters.stt import port"),
    (guards.wrong_floor, "realtime/link.py", "from ..adapters.socket import Socket"),
    (guards.wrong_floor, "realtime/link.py", "from ..adapters import errors, credentials"),
    (guards.wrong_floor, "web/build.py", "from ..adapters.stt.whisper import Whisper"),
    (guards.wrong_third_party, "core/schema.py", "import pydantic, json, asyncio"),
    (guards.wrong_third_party, "media/vad/silero.py", "import onnxruntime as ort"),
    (guards.dynamic_import, "media/models.py", "from importlib import util\nutil.find_spec('x')"),
    (guards.dynamic_import, "web/agents.py", "import importlib\nimportlib.import_module(name)"),
]

CIRCLES: list[dict[str, str]] = [
    {"core/a.py": "from .b import B", "core/b.py": "from .a import A"},
    {"core/a.py": "from .a import A"},
    {
        "core/a.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .b import B",
        "core/b.py": "def f():\n    from . import a",
    },
    {
        "media/a.py": "from .vad.b import B",
        "media/vad/b.py": "from ..c import C",
        "media/c.py": "from ..media import a",
    },
    {"media/vad/__init__.py": "from .b import B", "media/vad/b.py": "from . import SPEED"},
    {
        "core/agent.py": "from .a import A",  # stands outside, only leads into the circle
        "core/a.py": "from .b import B",
        "core/b.py": "from .a import A",
    },
]

NO_CIRCLES: list[dict[str, str]] = [
    {"core/a.py": "from .b import B\nfrom .c import C", "core/b.py": "from .c import C"},
    {
        "core/__init__.py": "from .a import A",
        "core/a.py": "from .b import B",
        "core/b.py": "import asyncio",
    },
    {"media/vad/__init__.py": "from .b import B", "media/vad/b.py": "from .c import C"},
    {"core/a.py": "from .types import A", "core/types.py": "import types"},
]

LONG = "def f():\n" + "    x = 1\n" * 60
GREEDY = "class C:\n    def go(self):\n" + "".join(f"        self.a{i} = 1\n" for i in range(11))
HOARDER = "class C:\n    def __init__(self):\n" + "".join(
    f"        self.a{i} = []\n" for i in range(11)
)
RECORD = "@dataclass(slots=True)\nclass C:\n" + "".join(f"    a{i}: int = 0\n" for i in range(11))

BAD_STYLE: list[tuple[StyleRule, str, str]] = [
    (style_guards.too_large, "core/a.py", "x = 1\n" * 401),
    (style_guards.too_large, "core/a.py", LONG),
    (style_guards.too_large, "core/a.py", "class C:\n " + LONG.replace("\n", "\n ")),
    (style_guards.too_large, "core/a.py", GREEDY),
    (style_guards.too_large, "core/a.py", HOARDER),
    (style_guards.too_large, "core/a.py", RECORD),
    (style_guards.unowned_task, "core/a.py", "asyncio.create_task(f())"),
    (style_guards.unowned_task, "core/a.py", "asyncio.get_running_loop().create_task(f())"),
    (style_guards.unowned_task, "core/a.py", "self._loop.create_task(f())"),
    (style_guards.unowned_task, "core/a.py", "start = asyncio.create_task"),
    (style_guards.unowned_task, "core/a.py", "asyncio.ensure_future(f())"),
    (style_guards.unowned_task, "core/a.py", "from asyncio import create_task as go"),
    (style_guards.wall_clock, "core/a.py", "time.monotonic()"),
    (style_guards.wall_clock, "core/a.py", "time.sleep(1)"),
    (style_guards.wall_clock, "core/a.py", "clock = time.perf_counter"),
    (style_guards.wall_clock, "core/a.py", "from time import time"),
    (style_guards.wall_clock, "core/a.py", "datetime.datetime.now()"),
    (style_guards.swallowed, "core/a.py", "try: f()\nexcept ValueError: pass"),
    (style_guards.swallowed, "core/a.py", "try: f()\nexcept: log()"),
    (style_guards.swallowed, "core/a.py", "try: f()\nexcept asyncio.CancelledError: log()"),
    (style_guards.swallowed, "core/a.py", "try: f()\nexcept (OSError, BaseException): log()"),
    (style_guards.swallowed, "core/a.py", "with contextlib.suppress(Exception): f()"),
    (style_guards.swallowed, "core/a.py", "with suppress(asyncio.CancelledError): f()"),
    (style_guards.unbounded_queue, "core/a.py", "asyncio.Queue()"),
    (style_guards.unbounded_queue, "core/a.py", "asyncio.Queue[int](0)"),
    (style_guards.unbounded_queue, "core/a.py", "queue.SimpleQueue()"),
    (style_guards.unbounded_queue, "core/a.py", "asyncio.Queue(maxsize=0)"),
    (style_guards.bad_name, "core/utils.py", "x = 1"),
    (style_guards.bad_name, "core/a.py", "class ToolManager: ..."),
    (style_guards.bad_name, "core/a.py", "class BaseTransport: ..."),
    (style_guards.loose_type, "core/a.py", "from typing import cast"),
    (style_guards.loose_type, "core/a.py", "typing.cast(int, x)"),
    (style_guards.loose_type, "adapters/stt/port.py", "from typing import Any"),
    (style_guards.undocumented, "core/a.py", "x = 1"),
]

GOOD_STYLE: list[tuple[StyleRule, str, str]] = [
    (style_guards.too_large, "core/a.py", "x = 1\n" * 399),
    (style_guards.too_large, "core/a.py", LONG.replace("    x = 1\n", "", 1)),
    (style_guards.too_large, "core/a.py", HOARDER.replace("[]", "3")),
    (style_guards.too_large, "core/a.py", RECORD.replace("slots", "frozen")),
    (
        style_guards.unowned_task,
        "core/a.py",
        "self._group.create_task(f())",
    ),
    (style_guards.wall_clock, "core/a.py", "asyncio.get_running_loop().time()"),
    (style_guards.wall_clock, "web/auth.py", "time.time()"),
    (style_guards.swallowed, "core/a.py", "try: f()\nexcept asyncio.CancelledError:\n    raise"),
    (style_guards.swallowed, "core/a.py", "with suppress(ValueError): f()"),
    (style_guards.unbounded_queue, "core/a.py", "asyncio.Queue(50)\nasyncio.Queue(maxsize=limit)"),
    (style_guards.bad_name, "core/a.py", "class Baseline: ..."),
    (style_guards.loose_type, "realtime/providers/openai_wire.py", "from typing import cast"),
    (style_guards.undocumented, "core/__init__.py", ""),
]


@pytest.mark.parametrize(("rule", "path", "text"), BAD_IMPORTS)
def test_a_bad_import_is_refused(rule: ImportRule, path: str, text: str) -> None:
    assert list(rule(path, ast.parse(text)))


@pytest.mark.parametrize(("rule", "path", "text"), GOOD_IMPORTS)
def test_a_good_import_passes(rule: ImportRule, path: str, text: str) -> None:
    assert list(rule(path, ast.parse(text))) == []


@pytest.mark.parametrize("part", CIRCLES)
def test_an_import_circle_is_refused(part: dict[str, str]) -> None:
    (found,) = guards.import_circles({path: ast.parse(text) for path, text in part.items()})
    assert found.split(" -> ")[0] == found.split(" -> ")[-1]


@pytest.mark.parametrize("part", NO_CIRCLES)
def test_imports_in_one_direction_pass(part: dict[str, str]) -> None:
    assert list(guards.import_circles({path: ast.parse(text) for path, text in part.items()})) == []


@pytest.mark.parametrize(("rule", "path", "text"), BAD_STYLE)
def test_bad_style_is_refused(rule: StyleRule, path: str, text: str) -> None:
    assert list(rule(path, text, ast.parse(text)))


@pytest.mark.parametrize(("rule", "path", "text"), GOOD_STYLE)
def test_good_style_passes(rule: StyleRule, path: str, text: str) -> None:
    assert list(rule(path, text, ast.parse(text))) == []
