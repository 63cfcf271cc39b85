"""Skills: texts a user or the model asks for by name (spec core 13.4).

A user's `/name` puts the skill's text in front of the message; an exposed skill can be called by
the model through one tool. Values and texts only; what runs them is registry.Directives.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, Field

from ..errors import UsageError
from ..messages import ContentPart, Message
from .hooks import Controls

INVOKE_SKILL = "glove_invoke_skill"
SkillSource = Literal["user", "agent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillContext:
    """`parsed_text` is the user's working text, empty for a model's call; `args` the model's."""

    name: str
    parsed_text: str
    args: str | None
    source: SkillSource
    controls: Controls


SkillContent = str | Sequence[ContentPart]
SkillFunction = Callable[[SkillContext], Awaitable[SkillContent] | SkillContent]


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """One skill. Only an exposed one can be called by the model, which reads `description`."""

    name: str
    handler: SkillFunction
    description: str = ""
    expose_to_agent: bool = False

    def __post_init__(self) -> None:
        if self.expose_to_agent and not self.description.strip():
            raise UsageError(
                f"skill {self.name!r}: description is what the model chooses by; write one"
            )


class InvokeSkill(BaseModel):
    """What the model fills in."""

    name: str = Field(description="The skill's name, as listed")
    args: str | None = Field(default=None, description="What the skill should know, if anything")


def skill_listing(skills: Mapping[str, Skill]) -> str:
    """The description of the dispatch tool."""
    lines = [f"- {one.name}: {one.description}" for one in exposed(skills)]
    return "\n".join(["Read a skill: instructions for a kind of work. Skills:", *lines])


def exposed(skills: Mapping[str, Skill]) -> list[Skill]:
    """Those the model may call, in order of definition."""
    return [skill for skill in skills.values() if skill.expose_to_agent]


def text_of(content: SkillContent) -> str:
    """The text of a skill's content; media parts have none."""
    if isinstance(content, str):
        return content
    return "\n".join(part.text for part in content if part.type == "text" and part.text)


def injection(name: str, content: SkillContent) -> Message:
    """The synthetic user message that stands in front of the user's own."""
    head = f"[Skill: {name}]"
    text = f"{head}\n{text_of(content)}"
    if isinstance(content, str):
        return Message(sender="user", text=text, is_skill_injection=True)
    parts = (ContentPart("text", text=head), *content)
    return Message(sender="user", text=text, content=parts, is_skill_injection=True)
