"""A table is booked by a form: answers in any order, one corrected, one that needs the manager.

    python booking_form.py

The form is filled by the model through tools; what it must ask next is told to it at every call.
The checkpoint and the booking are ordinary functions. For a real model replace
ScriptedModel(SCRIPT) by create_adapter("openai") of voxglove.adapters.models.create.
"""

import asyncio
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from voxglove.adapters.models.scripted import Call, ScriptedModel, Step, say
from voxglove.core import Glove
from voxglove.core.forms import Fail, FieldSpec, HookContext, Passed, define_form, use_form_runner


class Table(BaseModel):
    party: int = Field(ge=1, description="how many people")
    area: Literal["inside", "garden"]
    dog: Annotated[bool, FieldSpec(when=lambda a: a.area == "garden")] = False


class Guest(BaseModel):
    name: str = Field(min_length=2)


async def large_party(context: HookContext) -> Passed | Fail:
    """The form is closed to answers until this has decided. It may as well ask a person."""
    return Passed() if context.values.area == "garden" else Fail("more than 8: garden only")


async def book(context: HookContext) -> None:
    """Runs when the form is complete. At least once: context.key is the same each time."""
    print(f"booked:   {dict(context.values)}")


FORM = (
    define_form(id="table", version=1, name="Table", description="Books a table for tonight.")
    .step("table", title="Table", fields=Table)
    .step("guest", title="Guest", fields=Guest)
    .checkpoint(
        "large", when=lambda answers: (answers.party or 0) > 8, blocking=True, run=large_party
    )
    .on_complete(book)
    .build()
)

SCRIPT: list[Step | str] = [
    say(Call("glove_form_start", {"form": "table", "values": {"name": "Ada", "party": 4}})),
    "Gladly, Ada, for four. Inside or in the garden?",
    say(Call("glove_form_fill", {"values": {"area": "garden", "party": 9}})),
    "Nine in the garden, it is booked.",
]


async def main() -> None:
    model = ScriptedModel(SCRIPT)
    agent = Glove(model=model, system_prompt="You take bookings.").build()
    forms = use_form_runner(agent, [FORM], scope="call-1")
    for words in ("A table for four, please. I am Ada.", "The garden. And we are nine, sorry."):
        print(f"guest:    {words}")
        result = await agent.process_request(words)
        print(f"agent:    {result.text}")
        print(f"line:     {await forms.line() or '(nothing is open)'}")


if __name__ == "__main__":
    asyncio.run(main())
