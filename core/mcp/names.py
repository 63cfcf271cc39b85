"""Names of bridged tools: `<namespace>__<tool>`, fitted to what every provider takes. Pure.

Providers take 64 letters, digits, `_` and `-`; a server may name its tools as it likes. Whatever
does not fit, or differs from another tool's name only in case (agents compare without case, row
24), gets a digest of its full name. So a name depends on the server's list alone, stays the same
from start to start, and no two tools share one (core fault 22).
"""

import re
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256

from .port import MCP_NAMESPACE_SEP

LONGEST = 64
DIGEST_CHARS = 8

_FITS = re.compile(rf"[A-Za-z0-9_-]{{1,{LONGEST}}}")


def tool_names(namespace: str, names: Sequence[str]) -> list[str]:
    """A name for each of a server's tools, in their order; `names` must differ from each other."""
    full = [f"{namespace}{MCP_NAMESPACE_SEP}{name}" for name in names]
    spelled = Counter(name.lower() for name in full)
    taken = {name.lower() for name in full if _keeps(name, spelled)}
    found: list[str] = []
    for name in full:
        if _keeps(name, spelled):
            found.append(name)
            continue
        # A server may well have a tool named like the digest of another: then digest once more.
        seed, made = name, _digested(name, name)
        while made.lower() in taken:
            seed += "+"
            made = _digested(name, seed)
        taken.add(made.lower())
        found.append(made)
    return found


def tool_name(namespace: str, name: str) -> str:
    """The name of one tool that is alone with its spelling."""
    return tool_names(namespace, [name])[0]


def _keeps(full: str, spelled: Counter[str]) -> bool:
    return _FITS.fullmatch(full) is not None and spelled[full.lower()] == 1


def _digested(full: str, seed: str) -> str:
    digest = sha256(seed.encode(errors="surrogatepass")).hexdigest()[:DIGEST_CHARS]
    readable = re.sub(r"[^A-Za-z0-9_-]+", "_", full)[: LONGEST - DIGEST_CHARS - 1]
    return f"{readable}_{digest}"
