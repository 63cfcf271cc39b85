"""Content skills: listing within a budget, reading by section, loading from a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.support import ScriptedModel, call, make_agent, results, stored
from voxglove.core import UsageError
from voxglove.core.directives.content_skills import (
    ContentSkill,
    load_skills,
    skill_list,
    use_read_skill,
)

READ = "glove_read_skill"
REFUNDS = ContentSkill(
    name="refunds",
    description="How to give money back",
    content="Ask for the order first.",
    sections={"limits": "Up to 50.", "letters": "Be kind."},
    path="skills/refunds",
)
SECRET = ContentSkill(name="secret", description="hush", content="Nobody knows.", hidden=True)


async def read(*inputs: dict[str, Any]) -> list[Any]:
    """What the model was told for each call."""
    agent = make_agent(ScriptedModel(call(*((READ, one) for one in inputs)), "done"))
    use_read_skill(agent, [REFUNDS, SECRET])
    await agent.process_request("go")
    return [one.result for one in (await results(agent)).values()]


async def test_core_row_065_a_skill_is_read_whole_or_by_section() -> None:
    whole, part = await read({"name": "refunds"}, {"name": "refunds", "section": "limits"})
    assert whole.data == (
        '<skill name="refunds" path="skills/refunds"><content>Ask for the order first.</content>'
        "<sections>limits,letters</sections></skill>"
    )
    assert '<skill name="refunds" path="skills/refunds" section="limits">' in part.data
    assert "<content>Up to 50.</content>" in part.data


async def test_core_row_065_hidden_skills_are_read_but_listed_nowhere() -> None:
    hidden, unknown, section = await read(
        {"name": "secret"}, {"name": "nothing"}, {"name": "refunds", "section": "x"}
    )
    assert "Nobody knows." in hidden.data
    assert unknown.message == "There is no skill 'nothing'. Skills: refunds."
    assert section.message == "refunds has no section 'x'. Sections: limits, letters."
    agent = make_agent(ScriptedModel())
    use_read_skill(agent, [REFUNDS, SECRET], description_suffix="Ask first.")
    assert "secret" not in agent.tools[0].description
    assert agent.tools[0].description.endswith("- refunds: How to give money back\nAsk first.")


def test_core_row_065_the_listing_degrades_within_its_budget() -> None:
    skills = [
        ContentSkill(name=f"s{n}", description="d" * 40, content="", priority=n % 2)
        for n in range(6)
    ]
    full = skill_list(skills, 1_000)
    assert [line[2:4] for line in full.splitlines()] == ["s1", "s3", "s5", "s0", "s2", "s4"]
    assert full.count("d" * 40) == 6
    lines = skill_list(skills, 30).splitlines()
    assert lines == [
        f"- s1: {'d' * 40}",
        f"- s3: {'d' * 40}",
        "- s5",
        "- s0",
        "- s2",
        "- s4",
    ]
    assert skill_list(skills, 3).splitlines() == [
        "- s1",
        "- s3",
        "<!-- 4 more skills are not listed -->",
    ]


@given(st.lists(st.text("ab ", max_size=60), max_size=12), st.integers(1, 80))
def test_core_row_065_no_listing_is_longer_than_its_budget(texts: list[str], budget: int) -> None:
    skills = [
        ContentSkill(name=f"n{at}", description=text, content="") for at, text in enumerate(texts)
    ]
    listed = [line for line in skill_list(skills, budget).splitlines() if line.startswith("- ")]
    assert sum(len(line) + 1 for line in listed) <= budget * 4


async def test_core_row_065_a_user_reads_one_by_its_name() -> None:
    agent = make_agent(ScriptedModel("ok", "ok"))
    use_read_skill(agent, [REFUNDS])
    await agent.process_request("/refunds please")
    first = (await stored(agent))[0]
    assert first.text == "[Skill: refunds]\nAsk for the order first." and first.is_skill_injection
    plain = make_agent(ScriptedModel("ok"))
    use_read_skill(plain, [REFUNDS], wire_user_directives=False, tool_name="read")
    await plain.process_request("/refunds please")
    assert (await stored(plain))[0].text == "/refunds please"
    assert plain.tools[0].name == "read"


def test_core_row_065_a_folder_is_loaded(tmp_path: Path) -> None:
    for name, text in {
        "refunds/SKILL.md": (
            '---\nname: money-back\ndescription: "Give: money back"\npriority: 3\n---\n\nAsk.\n'
        ),
        "refunds/limits.md": "Up to 50.",
        "plain/SKILL.md": "No head.\n---\nline",
        "quiet/SKILL.md": "---\nhidden: true\n---\nHush.",
        "notes/readme.md": "no skill",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    plain, quiet, refunds = load_skills(tmp_path)
    assert (plain.name, plain.content, plain.description) == ("plain", "No head.\n---\nline", "")
    assert (quiet.hidden, quiet.content) == (True, "Hush.")
    assert (refunds.name, refunds.description, refunds.priority) == (
        "money-back",
        "Give: money back",
        3,
    )
    assert (refunds.content, refunds.sections) == ("Ask.\n", {"limits": "Up to 50."})


def test_core_row_065_bad_skills_name_their_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no folder"):
        load_skills(tmp_path / "nothing")
    for text, words in (
        ("---\nname: two words\n---\n", "two words"),
        ("---\npriority: high\n---\n", "high"),
    ):
        (tmp_path / "a").mkdir(exist_ok=True)
        (tmp_path / "a" / "SKILL.md").write_text(text)
        with pytest.raises(UsageError, match=f"SKILL.md: .*{words}"):
            load_skills(tmp_path)
    (tmp_path / "a" / "SKILL.md").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="UTF-8"):
        load_skills(str(tmp_path))
    with pytest.raises(UsageError, match="same name"):
        use_read_skill(make_agent(ScriptedModel()), [REFUNDS, REFUNDS])


def test_core_row_065_odd_texts_keep_their_place(tmp_path: Path) -> None:
    skills = [
        ContentSkill(name="a", description="one\n- fake: two\r\n", content="x"),
        ContentSkill(name="b", description="  ", content="y"),
    ]
    assert skill_list(skills, 2_000).split("\n") == ["- a: one - fake: two", "- b"]
    odd = {
        "marked": "\ufeff---\nname: marked\ndescription: d\n---\nbody",
        "empty": "---\n---\nbody",
        "ruled": "---\ndescription: d\n----\nstill: head\n---  \nbody\n---\nmore",
        "windows": "---\r\nname: windows\r\ndescription: d\r\n---\r\nbody",
        "never": "---\nno end\n",
    }
    for name, text in odd.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "SKILL.md").write_bytes(text.encode())
    found = {skill.name: skill for skill in load_skills(tmp_path)}
    assert (found["marked"].description, found["marked"].content) == ("d", "body")
    assert found["empty"].content == "body"
    assert (found["ruled"].description, found["ruled"].content) == ("d", "body\n---\nmore")
    assert (found["windows"].description, found["windows"].content) == ("d", "body")
    assert found["never"].content == "---\nno end\n"
