"""The configuration of an OpenAI realtime session: its defaults, and how an update is merged.

Pure. An update was checked for its form before (`openai_realtime_events`); here are the rules that
look at more than one field or at what the session already did. An update is taken whole or not at
all (protocols/openai-realtime section 3).
"""

from __future__ import annotations

import copy

from tests.simulators.openai_realtime_checks import Json, Refused, part, parts, word

SAMPLE_RATES = {"audio/pcm": 24_000, "audio/pcmu": 8_000, "audio/pcma": 8_000}
VAD: Json = {
    "type": "server_vad",
    "threshold": 0.5,
    "prefix_padding_ms": 300,
    "silence_duration_ms": 500,
    "create_response": True,
    "interrupt_response": True,
    "idle_timeout_ms": None,
}
SEMANTIC: Json = {
    "type": "semantic_vad",
    "eagerness": "auto",
    "create_response": True,
    "interrupt_response": True,
}
MODEL_ONLY = {
    "languages": ("gpt-transcribe", "gpt-live-transcribe"),
    "keywords": ("gpt-transcribe", "gpt-live-transcribe"),
    "delay": ("gpt-realtime-whisper",),
}
"""Settings of transcription that only these transcribers take."""


def default_session(model: str, silence_ms: int) -> Json:
    """What `session.created` tells, without the session's id and end."""
    pcm: Json = {"type": "audio/pcm", "rate": 24_000}
    return {
        "type": "realtime",
        "model": model,
        "output_modalities": ["audio"],
        "instructions": "",
        "audio": {
            "input": {
                "format": dict(pcm),
                "noise_reduction": None,
                "transcription": None,
                "turn_detection": VAD | {"silence_duration_ms": silence_ms},
            },
            "output": {"format": dict(pcm), "voice": "marin", "speed": 1.0},
        },
        "tools": [],
        "tool_choice": "auto",
        "max_output_tokens": "inf",
        "truncation": "auto",
        "tracing": None,
        "prompt": None,
    }


class Config:
    """The session's settings as they are now, and what locks some of them."""

    def __init__(self, model: str, silence_ms: int) -> None:
        self.model = model
        self.silence_ms = silence_ms
        """Of a turn's end where the client gives none, or leaves it to the model."""
        self.session = default_session(model, silence_ms)
        self.spoke = False
        """Audio of the model has gone out: its voice is locked."""

    def update(self, change: Json, *, busy: bool) -> None:
        """Merge a `session.update`. `busy`: a response runs. Raises Refused, then nothing changed.

        Omitted fields keep their value, `null` clears the fields that may be cleared.
        """
        if change.get("model", self.model) != self.model:
            raise Refused("invalid_value", "The model of a session cannot change.", "session.model")
        if busy and "speed" in part(change, "audio", "output"):
            param = "session.audio.output.speed"
            raise Refused("invalid_value", "Speed can only change between turns.", param)
        self.check(change, "session")
        merged = copy.deepcopy(self.session)
        for name, value in change.items():
            merged[name] = value if name != "audio" else self._audio(part(value))
        self.session = merged

    def check(self, change: Json, where: str) -> None:
        """What an update and a response's overrides have in common. Raises Refused."""
        modalities = change.get("output_modalities")
        if modalities is not None and modalities not in (["audio"], ["text"]):
            supported = "Supported combinations are: ['text'] and ['audio']."
            text = f"Invalid modalities: {modalities}. {supported}"
            raise Refused("invalid_value", text, f"{where}.output_modalities")
        voice = part(change, "audio", "output").get("voice", self.voice)
        if self.spoke and voice != self.voice:
            text = "Cannot update a conversation's voice if assistant audio is present."
            raise Refused("cannot_update_voice", text, f"{where}.audio.output.voice")
        for name in ("reasoning", "parallel_tool_calls"):
            if name in change and not self.model.startswith("gpt-realtime-2"):
                text = f"'{name}' is not supported by this model."
                raise Refused("invalid_value", text, f"{where}.{name}")
        names = [word(tool["name"]) for tool in parts(change.get("tools")) if "name" in tool]
        if len(set(names)) < len(names):
            raise Refused("invalid_value", "Tool names must be unique.", f"{where}.tools")
        choice = part(change.get("tool_choice"))
        known = names if "tools" in change else self.tool_names
        if choice.get("type") == "function" and choice.get("name") not in known:
            text = f"Tool choice '{choice.get('name')}' not found in 'tools'."
            raise Refused("invalid_value", text, f"{where}.tool_choice")

    def _audio(self, change: Json) -> Json:
        """The audio settings with a change merged in."""
        old = part(self.session, "audio")
        given = part(change, "input")
        heard = {**part(old, "input"), **given}
        if given.get("format"):
            heard["format"] = _format(part(given, "format"))
        if given.get("turn_detection"):
            detection = part(given, "turn_detection")
            before = part(old, "input", "turn_detection")
            fresh = VAD | {"silence_duration_ms": self.silence_ms}
            fresh = fresh if detection["type"] == "server_vad" else SEMANTIC
            same = before.get("type") == detection["type"]
            heard["turn_detection"] = {**(before if same else fresh), **detection}
        if given.get("transcription"):
            before = part(old, "input", "transcription")
            heard["transcription"] = _transcription(before, part(given, "transcription"))
        said = {**part(old, "output"), **part(change, "output")}
        said["format"] = _format(part(said, "format"))
        return {"input": heard, "output": said}

    @property
    def voice(self) -> object:
        return part(self.session, "audio", "output").get("voice")

    @property
    def tool_names(self) -> list[str]:
        """Of the session's function tools."""
        tools = parts(self.session.get("tools"))
        return [word(tool["name"]) for tool in tools if "name" in tool]

    @property
    def detection(self) -> Json | None:
        """The turn detection, None where the client ends turns."""
        return part(self.session, "audio", "input", "turn_detection") or None

    @property
    def input_type(self) -> str:
        """The audio format of the caller's sound."""
        return word(part(self.session, "audio", "input", "format").get("type"))

    @property
    def transcribes(self) -> bool:
        """The user's words are wanted."""
        return bool(part(self.session, "audio", "input").get("transcription") is not None)


def _format(given: Json) -> Json:
    """A format with what it leaves out."""
    return {**given, "rate": 24_000} if given.get("type") == "audio/pcm" else given


def _transcription(old: Json, given: Json) -> Json:
    """The settings of a transcriber, merged; another one drops what only the old one takes. Raises
    Refused for what it does not take itself."""
    merged = {**old, **given}
    model = merged.get("model")
    where = "session.audio.input.transcription"
    for name, models in MODEL_ONLY.items():
        if name not in merged or model in models:
            continue
        if name in given:
            text = f"'{name}' is only supported by {', '.join(models)}."
            raise Refused("invalid_value", text, f"{where}.{name}")
        del merged[name]
    return merged
