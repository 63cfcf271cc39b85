"""The first example of docs/forms.md does what the page says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tests.core.support import ScriptedModel, make_agent
from voxglove.core.forms import FormRefused
from voxglove.core.forms.errors import RefusalCode

PAGE = (Path(__file__).parents[3] / "docs" / "forms.md").read_text()


class Claims:
    def __init__(self) -> None:
        self.filed: list[tuple[dict[str, object], str]] = []

    async def file(self, values: dict[str, object], *, idempotency_key: str) -> None:
        self.filed.append((values, idempotency_key))


async def test_the_example_runs_and_files_one_claim() -> None:
    (source,) = re.findall(r"```python\n(from typing.*?)```", PAGE, re.DOTALL)
    claims, agent = Claims(), make_agent(ScriptedModel())
    names: dict[str, Any] = {"claims": claims, "agent": agent, "call_id": "call_1"}
    exec(compile(source, "docs/forms.md", "exec", dont_inherit=True), names)
    forms = names["forms"]
    await forms.start("claim", {"Full name": "Ada", "work email": "a@b", "mode": "rail"})
    await forms.fill({"total": 2000})
    assert await forms.line() == "[form: claim] all answered, but refused: above the limit"
    await forms.fill({"total": 700})
    ((values, key),) = claims.filed
    assert values == {"full_name": "Ada", "email": "a@b", "mode": "rail", "total": 700.0}
    assert key.endswith(":form.complete:1")


def test_every_refusal_is_explained() -> None:
    codes = RefusalCode.__args__  # type: ignore[attr-defined]
    assert FormRefused("form_blocked", "m").code in codes
    assert [code for code in codes if f"`{code}`" not in PAGE] == []
