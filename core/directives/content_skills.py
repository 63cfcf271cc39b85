"""Content skills: texts with sections that the model reads when it needs them (spec core 13.4).

    use_read_skill(agent, load_skills("skills"))

One tool reads them, its description lists them within a budget; a user reads one by `/name`. The
texts are the application's own and stand as they are. Files are read once, when they are loaded.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from pydantic import BaseModel, Field

from ..errors import UsageError
from ..outside import one_line, xml_escaped
from ..tool import Tool, ToolContext
from .parser import TOKEN
from .skills import SkillContext, SkillFunction

READ_SKILL = "glove_read_skill"
CHARACTERS_PER_TOKEN = 4
ENTRY_FILE = "SKILL.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentSkill:
    """One text. A hidden one can be read by whoever knows its name and is listed nowhere.

    sections  further texts, read one at a time by their name
    path      where it came from, told to the model so that relative links make sense
    priority  higher is listed first, and in full for longer
    """

    name: str
    content: str
    description: str = ""
    sections: Mapping[str, str] = field(default_factory=dict)
    path: str | None = None
    priority: int = 0
    hidden: bool = False

    def __post_init__(self) -> None:
        if not TOKEN.fullmatch(f"/{self.name}"):
            raise UsageError(
                f"ContentSkill.name: {self.name!r} must be a letter, then letters, digits, _ or -"
            )


class SkillHost(Protocol):
    """What of an agent, or of its builder, is used."""

    def fold(self, tool: Tool) -> object: ...

    def define_skill(self, name: str, handler: SkillFunction) -> object: ...


class ReadSkill(BaseModel):
    """What the model fills in."""

    name: str = Field(description="The skill's name, as listed")
    section: str | None = Field(default=None, description="One of its sections; leave out at first")


def use_read_skill(
    agent: SkillHost,
    skills: Sequence[ContentSkill],
    *,
    listing_budget_tokens: int = 2_000,
    tool_name: str = READ_SKILL,
    description_suffix: str = "",
    wire_user_directives: bool = True,
) -> None:
    """Offer the skills to the model, and to the user as `/name` unless that is switched off.

    Raises UsageError for two skills of one name, DuplicateToolError for a tool name that is taken.
    """
    known = {skill.name: skill for skill in skills}
    if len(known) < len(skills):
        raise UsageError("skills: two of them have the same name")

    async def read(value: ReadSkill, ctx: ToolContext) -> object:
        return _read(known, value)

    head = "Read a skill: instructions for a kind of work. Read one before you begin such work."
    listing = skill_list(skills, listing_budget_tokens)
    description = "\n".join(part for part in (head, listing, description_suffix) if part)
    agent.fold(
        Tool(
            name=tool_name,
            description=description,
            do=read,
            input_model=ReadSkill,
            read_only=True,
        )
    )
    if wire_user_directives:
        for skill in skills:
            agent.define_skill(skill.name, _for_user(skill))


def skill_list(skills: Sequence[ContentSkill], budget_tokens: int) -> str:
    """The listed skills within a budget: in full while they fit, then names, then a count."""
    listed = sorted(
        (skill for skill in skills if not skill.hidden),
        key=lambda skill: (-skill.priority, skill.name),
    )
    left = budget_tokens * CHARACTERS_PER_TOKEN
    lines: list[str] = []
    for at, skill in enumerate(listed):
        short, description = f"- {skill.name}", one_line(skill.description)
        for line in (f"{short}: {description}" if description else short, short):
            if len(line) + 1 <= left:
                lines.append(line)
                left -= len(line) + 1
                break
        else:
            lines.append(f"<!-- {len(listed) - at} more skills are not listed -->")
            break
    return "\n".join(lines)


def load_skills(folder: Path | str) -> list[ContentSkill]:
    """The skills of a folder: `<name>/SKILL.md`, its sections in the .md files beside it.

    SKILL.md may begin with lines `key: value` between two lines `---`: name, description, priority,
    hidden. Reads files: call it at start. Raises UsageError naming the file at fault.
    """
    root = Path(folder)
    if not root.is_dir():
        raise UsageError(f"folder: {root} is no folder")
    return [_load(entry.parent) for entry in sorted(root.glob(f"*/{ENTRY_FILE}"))]


def _load(folder: Path) -> ContentSkill:
    entry = folder / ENTRY_FILE
    head, content = _front_matter(_text(entry))
    sections = {
        path.stem: _text(path) for path in sorted(folder.glob("*.md")) if path.name != ENTRY_FILE
    }
    try:
        return ContentSkill(
            name=head.get("name", folder.name),
            description=head.get("description", ""),
            content=content,
            sections=sections,
            path=str(folder),
            priority=int(head.get("priority", "0")),
            hidden=head.get("hidden", "false").lower() == "true",
        )
    except (UsageError, ValueError) as error:
        raise UsageError(f"{entry}: {error}") from error


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")  # some editors write a mark
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read as UTF-8 text: {error}") from error


def _front_matter(text: str) -> tuple[dict[str, str], str]:
    """The keys at the head of a file, and the rest; no keys unless both lines `---` stand."""
    lines = text.splitlines(keepends=True)
    marks = [at for at, line in enumerate(lines) if line.rstrip() == "---"]
    if marks[:1] != [0] or len(marks) < 2:
        return {}, text
    pairs = (line.partition(":") for line in lines[1 : marks[1]] if ":" in line)
    keys = {key.strip(): value.strip().strip("\"'") for key, _, value in pairs}
    return keys, "".join(lines[marks[1] + 1 :]).lstrip("\n")


def _read(known: Mapping[str, ContentSkill], value: ReadSkill) -> object:
    skill = known.get(value.name)
    if skill is None:
        names = ", ".join(sorted(one.name for one in known.values() if not one.hidden))
        return _refused(f"There is no skill {value.name!r}. Skills: {names or 'none'}.")
    if value.section is None:
        return _xml(skill, skill.content, None)
    if value.section not in skill.sections:
        names = ", ".join(skill.sections) or "none"
        return _refused(f"{skill.name} has no section {value.section!r}. Sections: {names}.")
    return _xml(skill, skill.sections[value.section], value.section)


def _xml(skill: ContentSkill, content: str, section: str | None) -> str:
    named = (("name", skill.name), ("path", skill.path), ("section", section))
    attributes = "".join(f' {key}="{xml_escaped(text)}"' for key, text in named if text)
    sections = f"<sections>{','.join(skill.sections)}</sections>" if skill.sections else ""
    return f"<skill{attributes}><content>{content}</content>{sections}</skill>"


def _for_user(skill: ContentSkill) -> SkillFunction:
    def read(context: SkillContext) -> str:
        return skill.content

    return read


def _refused(message: str) -> dict[str, object]:
    return {"status": "error", "data": None, "message": message}
