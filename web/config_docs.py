"""The configuration's reference page, made from the dataclasses that are the configuration.

Pure: reads source text of our own classes, no file and no environment. `voxglove config
reference` prints it; docs/configuration.md is that output, and a test compares the two.
"""

from __future__ import annotations

import ast
import inspect
import json
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass

from ..adapters.credentials import Secret
from .config import ENV_PREFIX, Config, PartConfig
from .config_words import FIXED, SECTIONS, WORDS

HEAD = f"""# Configuration

Made by `voxglove config reference`; do not edit it by hand.

Everything has a default; no file is needed. What is set, later over earlier:

1. the defaults below,
2. `voxglove.yaml` in the working folder, or the file that `--config` names,
3. the environment: `{ENV_PREFIX}SERVER__PORT=9000` sets `server.port`, `__` for each level,
4. options of the command line.

`voxglove config check` prints what is in force and where each value came from. A key that does not
exist or a value that cannot be used ends a command with exit code 2 and names the key.

`stt`, `tts` and `model` are written `name`, `name:argument`, or as a table with `name` and `arg`;
`model` also takes `base_url`, and for `openai` its wire, `api: responses` or `api: chat`:

```yaml
server: {{port: 9000, max_calls: 20}}
agents: {{reception: "my_agents:reception"}}
agent: reception
model: {{name: openai, arg: llama3.2, base_url: "http://127.0.0.1:11434/v1"}}
```
"""

PLACES: Mapping[str, str] = {
    "OPENAI_API_KEY": "key of OpenAI, or of the server at `base_url`; `auto` takes OpenAI then",
    "ANTHROPIC_API_KEY": "key of Anthropic; `auto` takes it when OpenAI has none",
    "GEMINI_API_KEY": "key of Gemini, or `GOOGLE_API_KEY`; `auto` takes it when neither has one",
    "OPENROUTER_API_KEY": "key of OpenRouter; `MINIMAX_`, `MOONSHOT_`, `ZAI_`, `MIMO_API_KEY` too",
    "OPENAI_BASE_URL": "another address for a provider: `<PROVIDER>_BASE_URL`",
    "DATABASE_URL": "PostgreSQL's address for `store: postgres`",
    "OLLAMA_HOST": "where Ollama is, in the forms Ollama takes; default 127.0.0.1:11434",
}
"""Variables that others defined and we read."""

PHRASES = "(built in)"


def page() -> str:
    """The whole page, Markdown, one final newline."""
    config = Config()
    single = [row for row in _rows(config, "") if "." not in row.key]
    blocks = [HEAD, "## One value each\n", _table(single)]
    for item in fields(config):
        value = getattr(config, item.name)
        if _is_section(value):
            rows = list(_rows(value, f"{item.name}."))
            blocks += [f"## `{item.name}`\n", f"{SECTIONS[item.name]}\n", _table(rows)]
    blocks += ["## Variables of others\n", *(f"- `{n}`: {what}" for n, what in PLACES.items()), ""]
    return "\n".join(blocks)


def undescribed() -> list[str]:
    """Keys that nobody has described, and descriptions of keys that are gone."""
    rows = list(_rows(Config(), ""))
    gone = (set(WORDS) | set(FIXED)) - {row.key for row in rows} - set(FIXED)
    return [*(row.key for row in rows if not row.what), *sorted(gone)]


@dataclass(frozen=True, slots=True)
class _Row:
    key: str
    default: str
    what: str


def _is_section(value: object) -> bool:
    return is_dataclass(value) and not isinstance(value, PartConfig | Secret)


def _rows(section: object, above: str) -> Iterator[_Row]:
    notes = _notes(type(section))
    for item in fields(section):  # type: ignore[arg-type]  # a dataclass, by _is_section
        value, key = getattr(section, item.name), f"{above}{item.name}"
        if _is_section(value):
            yield from _rows(value, f"{key}.")
        elif key not in FIXED:
            yield _Row(key, _default(value), WORDS.get(key) or notes.get(item.name, ""))


def _default(value: object) -> str:
    match value:
        case PartConfig():
            return f"`{value.text}`"
        case Secret() | "" | () | None:
            return "none"
        case bool():
            return "`true`" if value else "`false`"
        case frozenset():
            return PHRASES
        case Mapping():
            return "none"
        case tuple():
            return f"`{json.dumps(value)}`"
        case _:
            return f"`{value}`"


def _table(rows: Iterable[_Row]) -> str:
    lines = ["| key | default | what |", "|---|---|---|"]
    lines += [f"| `{row.key}` | {row.default} | {row.what} |" for row in rows]
    return "\n".join(lines) + "\n"


def _notes(kind: type) -> dict[str, str]:
    """Field -> the string that stands under it in the class."""
    source = textwrap.dedent(inspect.getsource(kind))
    tree = ast.parse(source).body[0]
    found: dict[str, str] = {}
    name = ""
    for node in tree.body if isinstance(tree, ast.ClassDef) else ():
        match node:
            case ast.AnnAssign(target=ast.Name(id=name)):
                continue
            case ast.Expr(value=ast.Constant(value=str(text))) if name:
                found[name] = " ".join(text.split())
        name = ""
    return found
