"""The form most tests fill, hooks that keep a diary, and short ways to ask where a form stands."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from pydantic import BaseModel, Field

from voxglove.core.forms import (
    Effect,
    FieldSpec,
    FormBuilder,
    FormDefinition,
    FormRunner,
    HookContext,
    MemoryFormAdapter,
    define_form,
)

Effects = Effect | list[Effect] | None


class Claimant(BaseModel):
    full_name: str = Field(min_length=2)
    email: str = Field(pattern=r".+@.+", title="Work email")


class Travel(BaseModel):
    mode: Annotated[str, FieldSpec(ask="How did they travel?")]
    miles: Annotated[int, Field(ge=1), FieldSpec(when=lambda a: a.mode == "car")]
    total: float
    note: str = ""


ALL = {"full_name": "Ada Lovelace", "email": "ada@example.org", "mode": "rail", "total": 90.0}


def claim(version: int = 1) -> FormBuilder:
    """Two steps; miles apply to a car only; the note is optional."""
    return (
        define_form(
            id="claim",
            version=version,
            name="Travel claim",
            description="Who travelled, and how.",
            conduct="One question at a time.",
        )
        .step("claimant", title="Claimant", fields=Claimant, preview="name, email")
        .step("travel", title="Travel", fields=Travel, preview="how, how far")
    )


def runner(
    *forms: FormDefinition, adapter: MemoryFormAdapter | None = None, **options: Any
) -> FormRunner:
    return FormRunner(
        forms or (claim().build(),),
        scope="call_1",
        adapter=adapter,
        clock=lambda: "2030-01-01T00:00:00Z",
        **options,
    )


class Diary:
    """Hooks that write down their key, and answer what they are told to."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.contexts: list[HookContext] = []

    @property
    def hooks(self) -> list[str]:
        """Without instance: `fill.mode:1`."""
        return [key.partition(":")[2] for key in self.keys]

    def hook(self, *outcomes: Effects | Exception) -> Callable[[HookContext], Awaitable[Effects]]:
        """Answers in turn, and the last for ever; an exception is raised."""
        left = list(outcomes)

        async def run(context: HookContext) -> Effects:
            self.keys.append(context.key)
            self.contexts.append(context)
            if not left:
                return None
            outcome = left.pop(0) if len(left) > 1 else left[0]
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        return run


async def values(forms: FormRunner) -> dict[str, object]:
    """The answers that count."""
    evaluation = (await forms.status()).evaluation
    assert evaluation is not None
    return dict(evaluation.answers)


async def held(forms: FormRunner) -> tuple[str, ...]:
    evaluation = (await forms.status()).evaluation
    assert evaluation is not None
    return evaluation.held


async def state(forms: FormRunner) -> str:
    return (await forms.status()).instance.status


async def run_states(forms: FormRunner) -> dict[str, str]:
    """The state of each hook's run, by `hook:occurrence`."""
    instance = (await forms.status()).instance
    return {f"{one.hook}:{one.occurrence}": one.state for one in instance.ledger}
