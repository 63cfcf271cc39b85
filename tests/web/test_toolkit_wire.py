"""An answer that does not fit its slot comes back over the line, and the slot stays open."""

from __future__ import annotations

import asyncio

from tests.web.client import site
from voxglove.core import SlotRejected
from voxglove.core.renderers import InvalidAnswer, Problem
from voxglove.core.toolkit import FormField, form_answers
from voxglove.web import wire


async def test_a_permission_is_granted_by_true_alone() -> None:
    async with site() as here:
        client = await here.connect()
        await client.say(t="say", text="permit")
        slot = await client.until_kind("slot")
        await client.say(t="resolve", id=slot["id"], value="yes")
        error = await client.until_kind("error")
        assert (error["code"], error["id"], error["field"]) == ("bad_answer", slot["id"], "value")
        assert "slot_removed" not in client.kinds()
        await client.say(t="resolve", id=slot["id"], value=True)
        assert (await client.until_kind("slot_removed"))["id"] == slot["id"]
        assert (await client.until_kind("speech"))["text"] == "You said: True"
        await client.ws.close()


async def test_a_form_names_each_field_at_fault_and_takes_the_second_try() -> None:
    async with site() as here:
        client = await here.connect()
        await client.until_kind("ready")
        (brain,) = here.calls.brains.values()
        answers = form_answers(
            [
                FormField(name="email", label="E-mail", type="email"),
                FormField(name="people", label="People", type="number", required=True),
            ]
        )
        wait = asyncio.create_task(brain.display.push_and_wait("form", {}, answers=answers))
        slot = await client.until_kind("slot")
        await client.say(t="resolve", id=slot["id"], value={"email": "anna"})
        error = await client.until_kind("error")
        assert error["problems"] == [
            {"field": "email", "message": "Write an address such as name@example.org."},
            {"field": "people", "message": "Fill this in."},
        ]
        assert error["field"] == "email"
        flood = {f"key{n}" * 30: n for n in range(300)}
        await client.say(t="resolve", id=slot["id"], value=flood)
        await client.until(lambda client: client.kinds().count("error") == 2)
        assert client.texts[-1]["code"] == "bad_answer", "whatever its size, it is answered"
        await client.say(t="resolve", id=slot["id"], value={"email": "a@b.org", "people": 2})
        await client.until_kind("slot_removed")
        assert (await wait).by_name() == {"email": "a@b.org", "people": 2}
        await client.say(t="resolve", id=slot["id"], value=True)
        await client.until(lambda client: client.kinds().count("error") == 3)
        late = client.texts[-1]
        assert (late["code"], late["field"], late["id"]) == ("unknown_slot", "id", slot["id"])
        await client.ws.close()


async def test_a_validator_that_breaks_costs_the_answer_and_not_the_line() -> None:
    class Broken:
        @classmethod
        def __get_pydantic_core_schema__(cls, *_: object) -> object:
            from pydantic_core import core_schema

            def check(value: object) -> object:
                raise LookupError("a table is missing")

            return core_schema.no_info_plain_validator_function(check)

    async with site() as here:
        client = await here.connect()
        await client.until_kind("ready")
        (brain,) = here.calls.brains.values()
        wait = asyncio.create_task(brain.display.push_and_wait("form", {}, answers=Broken))
        slot = await client.until_kind("slot")
        await client.say(t="resolve", id=slot["id"], value=1)
        assert (await client.until_kind("error"))["code"] == "bad_answer"
        await client.say(t="reject", id=slot["id"])
        await client.until_kind("slot_removed")
        (outcome,) = await asyncio.gather(wait, return_exceptions=True)
        assert isinstance(outcome, SlotRejected)
        await client.ws.close()


def test_the_message_says_what_the_refusal_says() -> None:
    refused = InvalidAnswer("slot_1", (Problem("a", "No."), Problem("b.0", "Never.")))
    found = [(problem.field, problem.message) for problem in refused.problems]
    message = wire.bad_answer("slot_1", found)
    assert (message["message"], message["field"]) == (str(refused), refused.field)
