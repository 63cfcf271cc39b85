"""Fault 27: tools that run around the executor, without validation, permission and deadline."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RUNS_TOOLS = {"core/tool.py", "core/executor.py"}
"""Tool.call looks at the signature of `do`; only the executor calls Tool.call."""
PARTS = ("core", "pipelines", "realtime", "web", "adapters")


def _around_the_executor(text: str) -> Iterator[str]:
    """Calls of a tool's function: `….do(value)` and `tool.call(…)`; `step.do` is the turn machine's
    word for an effect."""
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        owner = ast.unparse(node.func.value)
        does = node.func.attr == "do" and owner.rpartition(".")[2] not in ("step", "move", "self")
        calls = node.func.attr == "call" and "tool" in owner.lower()
        if does or calls:
            yield f"line {node.lineno}: {ast.unparse(node.func)}"


def test_fault_27_only_the_executor_runs_a_tool() -> None:
    around = {}
    for path in (path for part in PARTS for path in (ROOT / part).rglob("*.py")):
        name, text = path.relative_to(ROOT).as_posix(), path.read_text()
        if name not in RUNS_TOOLS and (".do(" in text or ".call(" in text):
            around[name] = list(_around_the_executor(text))
    assert {name: found for name, found in around.items() if found} == {}


@pytest.mark.parametrize(
    "text",
    [
        "await tool.do(args)",
        "found.do(value, ctx)",
        "await tool.call(value, ctx)",
        "a.tool.call(1)",
    ],
)
def test_fault_27_the_guard_sees_what_it_is_for(text: str) -> None:
    assert list(_around_the_executor(f"async def f():\n    {text}"))
