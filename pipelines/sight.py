"""What the caller shows: pictures that wait for the user turn they belong to.

Owned by one pipeline for one run. Pictures never ask for an answer by themselves: they go to the
agent beside the words of the next user turn, as content parts, and into history with it.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence

from ..core.messages import ContentPart, ContentSource
from ..media.transport import Image

MAX_ATTACHED = 4
"""Attached pictures that may wait for words; a camera's newest frame comes on top."""
CAMERA = "camera"


class Sight:
    """See the module."""

    def __init__(self) -> None:
        self._attached: list[ContentPart] = []
        self._live: ContentPart | None = None

    def see(self, image: Image) -> bool:
        """Keep `image` for the next user turn; False when too many wait, and it is not kept."""
        source = ContentSource("base64", image.mime, data=b64encode(image.data).decode())
        if image.live:
            self._live = ContentPart("image", source=source, name=CAMERA)
            return True
        if len(self._attached) >= MAX_ATTACHED:
            return False
        self._attached.append(ContentPart("image", source=source))
        return True

    def show(self, text: str) -> str | tuple[ContentPart, ...]:
        """The user turn `text` with every picture that waits; those wait no longer."""
        pictures = [*self._attached, *([] if self._live is None else [self._live])]
        self._attached, self._live = [], None
        return (ContentPart("text", text=text), *pictures) if pictures else text

    def take_back(self, turn: str | Sequence[ContentPart]) -> str:
        """A turn that the agent never took: its pictures wait again; returns its words."""
        if isinstance(turn, str):
            return turn
        pictures = [part for part in turn if part.type == "image"]
        self._attached[:0] = [part for part in pictures if part.name != CAMERA]
        for part in pictures:
            if part.name == CAMERA and self._live is None:
                self._live = part
        return " ".join(part.text for part in turn if part.type == "text" and part.text)
