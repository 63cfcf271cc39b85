"""The limits and prohibitions of the house's style, as pure checks over one module's text.

Complexity, statements and prints are ruff's; here stands what ruff cannot say. Each check returns
what is wrong, in words; tests/house/test_guards.py feeds each of them text that it must refuse.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from fnmatch import fnmatch

MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60
MAX_MUTABLE_ATTRIBUTES = 10

CLOCK_ALLOWED: dict[str, str] = {
    "media/inference.py": "measures how long a job really took; decides nothing by it",
    "core/records.py": "an inbox item carries the time of day it was made",
    "web/auth.py": "a session token expires by the time of day",
    "web/logs.py": "a log line carries the time of day",
    "web/metrics.py": "exported metrics are in real seconds",
    "web/frontdesk/*": "a booking is for a date of the calendar",
    "web/build.py": "hands the calendar's clock to the front desk; reads it nowhere",
    "web/cli*": "progress of long work is shown in real seconds",
}
"""Files that may read the wall clock, and why. Logic reads loop time or sample counts."""

SWALLOW_ALLOWED: dict[str, str] = {
    "core/cancel.py": "takes delivery of the cancellation its own scope asked for",
}
"""Files that may end a cancellation, and why."""

TASK_ALLOWED: dict[str, str] = {
    "realtime/session.py": "start() has no owner but the session itself: stop() joins its one task",
}
"""Files that may start a task outside a TaskGroup, and why."""

_CLOCKS = {"time", "monotonic", "perf_counter", "process_time", "sleep", "localtime", "gmtime"}
_CLOCKS |= {f"{name}_ns" for name in ("time", "monotonic", "perf_counter", "process_time")}
_QUEUES = {"Queue", "LifoQueue", "PriorityQueue", "SimpleQueue"}
_OWNER = re.compile(r"(group|tasks)$", re.IGNORECASE)
_BAD_CLASS = re.compile(r"(Manager|Handler|Processor)$|^Base([A-Z]|$)")
_BAD_FILES = ("utils.py", "util.py", "helpers.py", "common.py", "misc.py")
_BROAD = {"BaseException", "CancelledError"}


def too_large(path: str, text: str, tree: ast.Module) -> Iterator[str]:
    """Files, functions and classes beyond the limits."""
    lines = text.count("\n") + 1
    if lines > MAX_FILE_LINES:
        yield f"{lines} lines, the limit is {MAX_FILE_LINES}"
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > MAX_FUNCTION_LINES:
                yield f"{node.name}: {length} lines, the limit is {MAX_FUNCTION_LINES}"
        elif isinstance(node, ast.ClassDef):
            mutable = mutable_attributes(node)
            if len(mutable) > MAX_MUTABLE_ATTRIBUTES:
                names = ", ".join(sorted(mutable))
                yield f"{node.name}: {len(mutable)} mutable attributes ({names})"


def mutable_attributes(node: ast.ClassDef) -> set[str]:
    """Attributes that change: bound outside `__init__`, or holding a container from the start.

    Fields of a dataclass that is not frozen count; what `__init__` binds once does not.
    """
    found: set[str] = set()
    if any(
        "dataclass" in ast.unparse(d) and "frozen=True" not in ast.unparse(d)
        for d in node.decorator_list
    ):
        found |= {
            s.target.id
            for s in node.body
            if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)
        }
    for method in node.body:
        if isinstance(method, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for name, value in _self_bindings(method):
                if method.name != "__init__" or _is_container(value):
                    found.add(name)
    return found


def _self_bindings(method: ast.AST) -> Iterator[tuple[str, ast.expr | None]]:
    for node in ast.walk(method):
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = [part for target in node.targets for part in _flat(target)]
        elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
            targets = [node.target]
        for target in targets:
            match target:
                case ast.Attribute(value=ast.Name(id="self"), attr=name):
                    yield name, getattr(node, "value", None)


def _flat(target: ast.expr) -> list[ast.expr]:
    return list(target.elts) if isinstance(target, (ast.Tuple, ast.List)) else [target]


def _is_container(value: ast.expr | None) -> bool:
    if isinstance(value, (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)):
        return True
    return isinstance(value, ast.Call) and _last_name(value.func) in {
        "list",
        "dict",
        "set",
        "deque",
        "bytearray",
        "defaultdict",
        "Counter",
        "Queue",
        "Event",
    }


def unowned_task(path: str, text: str, tree: ast.Module) -> Iterator[str]:
    """Tasks born outside a TaskGroup: the receiver of `create_task` must be called a group."""
    if path in TASK_ALLOWED:
        return
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(attr="ensure_future") | ast.Name(id="ensure_future"):
                yield f"line {node.lineno}: ensure_future has no owner, use a TaskGroup"
            case ast.Attribute(value=owner, attr="create_task") if not _OWNER.search(
                _last_name(owner)
            ):
                yield f"line {node.lineno}: create_task of {ast.unparse(owner)}, use a TaskGroup"
            case ast.ImportFrom(module="asyncio", names=names):
                for alias in names:
                    if alias.name in {"create_task", "ensure_future"}:
                        yield f"line {node.lineno}: {alias.name} has no owner, use a TaskGroup"


def wall_clock(path: str, text: str, tree: ast.Module) -> Iterator[str]:
    """Readings of the wall clock outside `CLOCK_ALLOWED`."""
    if any(fnmatch(path, allowed) for allowed in CLOCK_ALLOWED):
        return
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="time"), attr=name) if name in _CLOCKS:
                yield f"line {node.lineno}: time.{name}, use the loop's time or sample counts"
            case ast.ImportFrom(module="time"):
                yield f"line {node.lineno}: import from time, use the loop's time"
            case ast.Attribute(value=owner, attr="now" | "utcnow" | "today" as name) if _last_name(
                owner
            ) in {"datetime", "date"}:
                yield f"line {node.lineno}: {ast.unparse(owner)}.{name}, pass the time in"


def swallowed(path: str, text: str, tree: ast.Module) -> Iterator[str]:
    """Exceptions that vanish: `except: pass`, bare excepts, a cancellation not re-raised."""
    if path in SWALLOW_ALLOWED:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler):
            yield from _swallowing_handler(node)
        elif isinstance(node, ast.Call) and _last_name(node.func) == "suppress":
            broad = {_last_name(arg) for arg in node.args} & (_BROAD | {"Exception"})
            if broad:
                yield f"line {node.lineno}: suppress({', '.join(sorted(broad))})"


def _swallowing_handler(node: ast.ExceptHandler) -> Iterator[str]:
    caught = [node.type] if node.type else []
    if isinstance(node.type, ast.Tuple):
        caught = list(node.type.elts)
    names = {_last_name(kind) for kind in caught}
    raises = any(isinstance(inner, ast.Raise) for inner in ast.walk(node))
    if not caught and not raises:
        yield f"line {node.lineno}: bare except"
    elif names & _BROAD and not raises:
        yield f"line {node.lineno}: {', '.join(sorted(names & _BROAD))} is not raised again"
    elif all(isinstance(inner, ast.Pass) for inner in node.body):
        yield f"line {node.lineno}: except with pass, say with `suppress` and a comment why"


def unbounded_queue(path: str, text: str, tree: ast.Module) -> Iterator[str]:
    """Queues without a positive bound."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        kind = node.func.value if isinstance(node.func, ast.Subscript) else node.func
        if _last_name(kind) not in _QUEUES:
            continue
        sizes = [*node.args, *(k.value for k in node.keywords if k.arg == "maxsize")]
        if not sizes or (isinstance(sizes[0], ast.Constant) and sizes[0].value in (0, None)):
            yield f"line {node.lineno}: {_last_name(kind)} without a bound"


def bad_name(path: str, text: str, tree: ast.Module) -> Iterator[str]:
    """File and class names that say nothing about the domain."""
    if path.rsplit("/", 1)[-1] in _BAD_FILES:
        yield f"{path}: name the file after what lives there"
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and _BAD_CLASS.search(node.name):
            yield f"{node.name}: name the class after what it is"


def loose_type(path: str, text: str, tree: ast.Module) -> Iterator[str]:
    """`cast` outside wire modules, `Any` in ports."""
    banned = set() if path.endswith("_wire.py") else {"cast"}
    if path.endswith("/port.py"):
        banned.add("Any")
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module="typing", names=names):
                for alias in names:
                    if alias.name in banned:
                        yield f"line {node.lineno}: typing.{alias.name}"
            case ast.Attribute(value=ast.Name(id="typing"), attr=name) if name in banned:
                yield f"line {node.lineno}: typing.{name}"


def undocumented(path: str, text: str, tree: ast.Module) -> Iterator[str]:
    """Modules with code and no docstring."""
    if tree.body and not ast.get_docstring(tree):
        yield "no module docstring: what lives here, who owns it, what it never does"


def _last_name(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Call(func=func):
            return _last_name(func)
    return ""
