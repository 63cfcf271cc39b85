"""What the tests of examples/sales_call share: its modules, the simulators, a model that sells."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from tests.examples.page import ROOT
from tests.simulators.gemini_live import gemini_live
from tests.simulators.gpt_live import gpt_live
from tests.simulators.openai_realtime import openai_realtime
from tests.simulators.realtime_script import Asked, Call, Fault, Reply, Script
from voxglove.core import Message
from voxglove.realtime.asks import GO_ON
from voxglove.realtime.factory import create_realtime_adapter
from voxglove.realtime.port import RealtimeAdapter

PROVIDERS: dict[str, Any] = {
    "openai": openai_realtime,
    "gemini": gemini_live,
    "openai-live": gpt_live,
}
KEYS = {"OPENAI_API_KEY": "test-key", "GEMINI_API_KEY": "test-key"}


def part(name: str) -> ModuleType:
    """A module of the example; the package is loaded as its users load it, without our root on
    the path."""
    package = "sales_call_example"
    if package not in sys.modules:
        folder = ROOT / "examples" / "sales_call"
        spec = importlib.util.spec_from_file_location(
            package, folder / "__init__.py", submodule_search_locations=[str(folder)]
        )
        assert spec is not None and spec.loader is not None
        module = sys.modules[package] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return importlib.import_module(f"{package}.{name}")


verify: Any = part("verify")
program: Any = part("program")
server: Any = part("server")
offer: Any = part("offer")


@dataclass
class Seller:
    """A model that works as the prompt says, one step at a time: it finds out the version before
    it updates, asks the product tools, and takes a no for an answer."""

    steps: list[str] = field(default_factory=list)
    stale: bool = True
    """Its first update names an old version, is refused, and made again."""
    greeted: int = 0
    offers: int = 0
    results: list[str] = field(default_factory=list)

    last: Reply = field(default_factory=Reply)

    def __call__(self, asked: Asked) -> Reply:
        if asked.by == "context":
            return Reply()
        if asked.by == "results":
            self.results += asked.results.values()
            found = self._next(" ".join(asked.results.values()))
        else:
            found = self._answer(f"{asked.instruction} {asked.text}", asked)
        if found != Reply():
            self.last = found
        return found

    def _answer(self, wish: str, asked: Asked) -> Reply:
        if GO_ON[:20] in wish:
            return self._again(asked) if self.last.calls else self._rest(asked)
        if verify.OPENING in wish:
            self.greeted += 1
            return Reply(text="Hello, this is Nova.")
        if "physiotherapy" in wish:
            self.steps = ["status", "say How many a month?"]
        elif "300 appointments" in wish:
            self.steps = ["met needs", "find", "met fit", "say Growth fits, for 49 dollars."]
        elif "cost us a month" in wish:
            self.steps = ["details", "say Growth is 39 dollars a month now."]
        elif "that is final" in wish:
            self.steps = ["refused next_step", "say Thank you, and good luck."]
        elif not self.offers and program.OFFER.content in _told(asked):
            self.offers += 1
            return Reply(text="News: Growth costs 39 dollars.")
        else:
            return self._again(asked)
        return self._next("")

    def _rest(self, asked: Asked) -> Reply:
        """The words of the answer that broke off which the conversation does not show yet."""
        words = self.last.text.split()
        shown = " ".join(text for role, text in asked.history if role == "assistant")
        heard = next((n for n in range(len(words), 0, -1) if " ".join(words[:n]) in shown), 0)
        return Reply(text=" ".join(words[heard:]))

    def _again(self, asked: Asked) -> Reply:
        """Asked anew without a reason: what was owed, or the step behind results that are told."""
        if not self.last.calls:
            return self.last if self.last.text not in _told(asked) else Reply()
        lately = " ".join(text for _, text in asked.history[-3:])
        marks = {"glove_goal_status": "[goals", "glove_goal_update": "version", "find_plan": "usd"}
        if marks.get(self.last.calls[0].name, "includes") not in lately:
            return self.last
        self.results.append(lately)
        return self._next(lately)

    def _next(self, result: str) -> Reply:
        if "goals are at version" in result and "not 0" in result:
            self.steps.insert(0, "met needs")
        if not self.steps:
            return Reply()
        kind, _, rest = self.steps.pop(0).partition(" ")
        match kind:
            case "say":
                return Reply(text=rest)
            case "status":
                return Reply(calls=(Call(name="glove_goal_status"),))
            case "find":
                return Reply(
                    calls=(Call(name="find_plan", arguments={"appointments_a_month": 300}),)
                )
            case "details":
                return Reply(calls=(Call(name="plan_details", arguments={"name": "Growth"}),))
            case _:
                return Reply(calls=(self._update(kind, rest),))

    def _update(self, status: str, goal: str) -> Call:
        versions = re.findall(r"version (\d+)", " ".join(self.results))
        version = 0 if self.stale else int(versions[-1])
        self.stale = False
        change = {"goal_id": goal, "status": status, "note": goal, "expected_version": version}
        return Call(name="glove_goal_update", arguments=change)


def _told(asked: Asked) -> str:
    return " ".join([*(text for _, text in asked.history), asked.text])


@asynccontextmanager
async def simulated(
    provider: str, model: Callable[[Asked], Reply], *faults: Fault
) -> AsyncIterator[tuple[Any, str]]:
    """A running simulator, and its address."""
    async with PROVIDERS[provider](Script(answer=model, faults=list(faults))) as server:
        yield server, server.origin if provider == "gemini" else f"{server.origin}/v1"


def adapter_of(provider: str, address: str) -> RealtimeAdapter:
    return create_realtime_adapter(provider, base_url=address, env=KEYS)


def versions(messages: Sequence[Message]) -> list[int]:
    """Of the goal snapshots that the store holds."""
    texts = [one.text for one in messages if one.framework_context == "history"]
    return [int(found[1]) for text in texts if (found := re.search(r"version (\d+)", text))]


def offers(messages: Sequence[Message]) -> list[Message]:
    return [one for one in messages if program.OFFER.content in one.text]
