"""Finds the model files of `models.lock` and checks that they are the exact bytes we tested.

Free functions; what they remember lies in the cache directory. A package is located without
running its code. Never downloads, never loads a model.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import tempfile
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

from .errors import MediaError, MediaValueError

_HOUSE = Path(__file__).resolve().parent.parent
_LOCK = Path(__file__).resolve().parent / "models.lock"

ModelState = Literal["ok", "own", "missing", "corrupt"]


class ModelMissing(MediaError):
    """A model file is not there. The message names it and how to get it."""

    code = "ERR_MODEL_MISSING"


class ModelCorrupt(MediaError):
    """A model file is not the one we tested. The message names it and the remedy."""

    code = "ERR_MODEL_CORRUPT"


@dataclass(frozen=True, slots=True)
class ModelFile:
    """One locked file: its path inside the package's folder, its size and its hash."""

    path: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Model:
    """One entry of `models.lock`."""

    name: str
    version: str
    package: str
    pip: str | None
    licence: str
    upstream: str
    files: tuple[ModelFile, ...]

    @property
    def remedy(self) -> str:
        """What to type to get this model."""
        return f"pip install {self.pip}" if self.pip else "pip install --force-reinstall voxglove"


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """A row of `voxglove models`. `own` is a path the user chose: present, its hash unchecked."""

    name: str
    state: ModelState
    path: Path | None
    licence: str
    upstream: str
    remedy: str | None = None


@lru_cache(maxsize=1)
def locked() -> Mapping[str, Model]:
    """The lock's models by name."""
    entries = tomllib.loads(_LOCK.read_text("utf-8"))["model"]
    return {entry["name"]: _model(entry) for entry in entries}


def locate(name: str, path: Path | None = None, *, cache: Path | None = None) -> Path:
    """Path of the model's first file, all its files checked; the others lie beside it.

    `path` overrides: a file, or a folder that holds the first file under its locked name. Its hash
    is the user's business. Raises ModelMissing, ModelCorrupt, MediaValueError for an unknown name.
    The hash of a file is computed once and remembered by (mtime, size) in `cache`, by default
    $XDG_CACHE_HOME/voxglove.
    """
    model = _named(name)
    if path is not None:
        return _own(model, path)
    root = _package_folder(model)
    for file in model.files:
        _check(model, file, root / file.path, cache or cache_folder())
    return root / model.files[0].path


def table(
    overrides: Mapping[str, Path] | None = None, *, cache: Path | None = None
) -> list[ModelStatus]:
    """The state of every locked model, in the order of the lock. Raises nothing."""
    return [_status(model, (overrides or {}).get(model.name), cache) for model in locked().values()]


def cache_folder(env: Mapping[str, str] = os.environ) -> Path:
    """Where checked hashes are remembered."""
    base = env.get("XDG_CACHE_HOME") or Path(env.get("HOME", tempfile.gettempdir())) / ".cache"
    return Path(base) / "voxglove"


def _model(entry: Mapping[str, object]) -> Model:
    files = entry["file"]
    if not isinstance(files, list):
        raise ModelCorrupt(f"{_LOCK}: {entry['name']} lists no files; reinstall voxglove")
    return Model(
        name=str(entry["name"]),
        version=str(entry["version"]),
        package=str(entry["package"]),
        pip=str(entry["pip"]) if "pip" in entry else None,
        licence=str(entry["licence"]),
        upstream=str(entry["upstream"]),
        files=tuple(ModelFile(f["path"], f["bytes"], f["sha256"]) for f in files),
    )


def _named(name: str) -> Model:
    if name not in locked():
        raise MediaValueError("model", repr(name), f"use one of {', '.join(locked())}")
    return locked()[name]


def _own(model: Model, path: Path) -> Path:
    wanted = path / Path(model.files[0].path).name if path.is_dir() else path
    if not wanted.is_file():
        raise ModelMissing(f"{model.name}: {wanted} does not exist; correct the path you set")
    return wanted


def _package_folder(model: Model) -> Path:
    if model.package == "voxglove":
        return _HOUSE
    spec = importlib.util.find_spec(model.package)
    if spec is None or not spec.submodule_search_locations:
        raise ModelMissing(f"{model.name}: {model.package} is not installed; {model.remedy}")
    return Path(spec.submodule_search_locations[0])


def _check(model: Model, file: ModelFile, path: Path, cache: Path) -> None:
    try:
        state = path.stat()
    except OSError:
        raise ModelMissing(f"{model.name}: {path} is missing; {model.remedy}") from None
    if state.st_size != file.size:
        raise ModelCorrupt(
            f"{model.name}: {path} has {state.st_size} bytes instead of {file.size}; {model.remedy}"
        )
    remembered = _remembered(cache)
    stamp = [state.st_mtime_ns, state.st_size, file.sha256]
    if remembered.get(str(path)) == stamp:
        return
    if _sha256(path) != file.sha256:
        raise ModelCorrupt(f"{model.name}: {path} has other content; {model.remedy}")
    _remember(cache, {**remembered, str(path): stamp})


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _remembered(cache: Path) -> dict[str, object]:
    """Empty when nothing readable is there: the hash is then computed again."""
    try:
        found = json.loads((cache / "models.json").read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _remember(cache: Path, stamps: Mapping[str, object]) -> None:
    """Replace the file in one step. A cache that cannot be written only costs time."""
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=cache, delete=False, encoding="utf-8") as file:
            json.dump(stamps, file)
        os.replace(file.name, cache / "models.json")
    except OSError:
        return


def _status(model: Model, path: Path | None, cache: Path | None) -> ModelStatus:
    state: ModelState = "ok" if path is None else "own"
    found: Path | None = None
    remedy: str | None = None
    try:
        found = locate(model.name, path, cache=cache)
    except ModelMissing as error:
        state, remedy = "missing", str(error)
    except ModelCorrupt as error:
        state, remedy = "corrupt", str(error)
    return ModelStatus(model.name, state, found, model.licence, model.upstream, remedy)
