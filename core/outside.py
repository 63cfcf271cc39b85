"""Texts from outside the conversation, made safe to show to a model (spec core 19.19).

Whoever wrote them may be anybody. They are escaped so that they cannot end the frame they are put
into, and cleaned of control and layout characters. Pure.
"""

from .messages import data_text


def clean(text: str) -> str:
    """Control, format and line-separator characters become spaces; line ends and tabs stay."""
    return "".join(char if char.isprintable() or char in "\n\t" else " " for char in text)


def xml_escaped(text: str) -> str:
    """For XML text and double-quoted attributes."""
    safe = clean(text)
    for plain, escaped in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;")):
        safe = safe.replace(plain, escaped)
    return safe


def quoted(text: str) -> str:
    """As a JSON string on one line."""
    return data_text([clean(text)])[1:-1]


def one_line(text: str) -> str:
    """Unquoted on one line, white space runs as one space."""
    return " ".join(clean(text).split())
