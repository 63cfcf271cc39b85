"""Hold the sales conversation with a real provider, and check what it left behind.

    REALTIME_PROVIDER=gemini python -m examples.sales_call.verify
    python -m examples.sales_call.verify --provider openai-live --base-url wss://…/v1

The prospect types, so no microphone is needed; the agent speaks, and its words are printed. One
conversation costs some cents. Exit codes: 0 all checks hold, 1 something is wrong, 2 no key.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from voxglove.adapters.errors import AdapterError
from voxglove.core import Message, UsageError
from voxglove.core.goals import GoalInstance
from voxglove.realtime.factory import create_realtime_adapter
from voxglove.realtime.port import RealtimeAdapter
from voxglove.realtime.session import RealtimeSession
from voxglove.realtime.session_events import AnswerHeard, SessionEvent, SessionProblem

from .program import OFFER, sale

OPENING = "Introduce yourself and ask the first discovery question."
TALK = (
    "Hello. We are a physiotherapy practice, people book by telephone.",
    "About 300 appointments a month. Many people simply do not turn up.",
    OFFER,
    "What would that cost us a month now?",
    "No demonstration, thank you. I do not want a next step; that is final.",
)
"""What happens, in this order: the prospect types, or the price changes."""
PATIENCE_S = 90.0
QUIET_S = 1.5
"""After this long without work or sound, the other side goes on."""


@dataclass
class Held:
    """What a conversation left behind."""

    messages: list[Message] = field(default_factory=list)
    goals: GoalInstance | None = None
    problems: list[SessionProblem] = field(default_factory=list)


async def hold(adapter: RealtimeAdapter) -> Held:
    """The whole conversation. Raises AdapterError when it cannot be held, TimeoutError when the
    agent never comes to rest."""
    made, held = sale(), Held()
    session = RealtimeSession(made.agent, adapter=adapter)

    def hear(event: SessionEvent) -> None:
        if isinstance(event, AnswerHeard):
            print(f"agent:    {event.text}")
        elif isinstance(event, SessionProblem):
            print(f"          ({event.code}: {event.message})")
            held.problems.append(event)

    session.listen(hear)
    await session.start()
    try:
        session.respond(OPENING)
        await _rest(session)
        for step in TALK:
            if isinstance(step, str):
                print(f"prospect: {step}")
                await session.say(step)
            else:
                print(f"          ({step.source}: {step.content})")
                await made.agent.emit_event(step)
            await _rest(session)
    finally:
        await session.stop()
        held.messages = await made.agent.store.get_messages()
        held.goals = await made.goals.status()
    return held


async def _rest(session: RealtimeSession) -> None:
    """Until the agent neither works nor speaks for a while."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(PATIENCE_S):
        since = loop.time()
        while loop.time() - since < QUIET_S:
            await asyncio.sleep(0.05)
            if session.failure is not None:
                raise session.failure
            if session.working or session.speaking or session.state != "open":
                since = loop.time()


# ---- what must hold


def faults(held: Held) -> list[str]:
    """What is wrong, in words; empty when all is well."""
    return [*_goals(held), *_calls(held.messages), *_talk(held.messages), *_snapshots(held)]


def _goals(held: Held) -> list[str]:
    """Progress was made by the model, one version at a time; met and refused are both fine."""
    goals = held.goals
    if goals is None:
        return ["the program never began"]
    found = [f"goal {one.id} is still {one.status}" for one in goals.goals if not one.ended]
    if [one.version for one in goals.history] != list(range(2, goals.version + 1)):
        found.append("the versions of the goals have gaps")
    if any(one.author != "model" for one in goals.history):
        found.append("somebody else than the model changed a goal")
    written = [
        result
        for message in held.messages
        for result in message.tool_results
        if result.tool_name == "glove_goal_update" and result.result.status == "success"
    ]
    if len(written) < len(goals.history):
        found.append("a goal changed without glove_goal_update")
    return found


def _calls(messages: Sequence[Message]) -> list[str]:
    """Each call has one result, directly behind it."""
    found = []
    for at, message in enumerate(messages):
        behind = messages[at + 1 : at + 2]
        asked = [call.id for call in message.tool_calls]
        given = [result.call_id for one in behind for result in one.tool_results]
        if asked and asked != given:
            found.append(f"calls {asked} have the results {given}")
    calls = [call.tool_name for message in messages for call in message.tool_calls]
    results = sum(len(message.tool_results) for message in messages)
    if results != len(calls):
        found.append(f"{len(calls)} calls have {results} results")
    if not {"find_plan", "plan_details"} & set(calls):
        found.append("no product tool was asked")
    return found


def _talk(messages: Sequence[Message]) -> list[str]:
    """Greeting first, then what was typed, in order; the offer once, and the agent knows it."""
    found = []
    spoken = [one for one in messages if one.text and (one.is_user_turn or one.sender == "agent")]
    if not spoken or spoken[0].sender != "agent":
        found.append("the agent did not open the conversation")
    typed = [one.text for one in spoken if one.is_user_turn]
    if typed != [step for step in TALK if isinstance(step, str)]:
        found.append(f"the prospect's turns in the store are {typed}")
    offers = [at for at, one in enumerate(messages) if OFFER.content in one.text]
    if len(offers) != 1:
        return [*found, f"the offer is stored {len(offers)} times"]
    after = " ".join(one.text for one in messages[offers[0] :] if one.sender == "agent")
    if not re.search(r"39|thirty[- ]nine", after, re.IGNORECASE):
        found.append("the agent never mentioned the new price")
    return found


def _snapshots(held: Held) -> list[str]:
    """Where the goals stood was stored when it changed, each version at most once, in order."""
    told = [
        int(match[1])
        for one in held.messages
        if one.framework_context == "history"
        and (match := re.search(r"\] version (\d+)", one.text))
    ]
    if told[:1] != [1] or len(told) < 2 or told != sorted(set(told)):
        return [f"the stored snapshots are of the versions {told}"]
    return []


# ---- the command


async def verify(arguments: Sequence[str], env: Mapping[str, str]) -> int:
    """The command with these arguments; its exit code."""
    parser = argparse.ArgumentParser(prog="verify", description=__doc__)
    parser.add_argument("--provider", help="openai, gemini or openai-live")
    parser.add_argument("--base-url", help="where that provider's protocol is spoken")
    asked = parser.parse_args(arguments)
    try:
        adapter = create_realtime_adapter(asked.provider, base_url=asked.base_url, env=env)
    except UsageError as error:
        print(f"nothing was verified: {error}")
        return 2
    print(f"          ({adapter.provider}, {adapter.model})")
    try:
        wrong = faults(await hold(adapter))
    except (AdapterError, TimeoutError) as error:
        wrong = [f"the conversation broke off: {type(error).__name__}: {error}"]
    for one in wrong:
        print(f"WRONG     {one}")
    print("all checks hold" if not wrong else f"{len(wrong)} of the checks do not hold")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(verify(sys.argv[1:], os.environ)))
