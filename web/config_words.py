"""What each key of the configuration is for, in a sentence: text for people, no logic.

Keys whose dataclass field has a docstring are described there; a test says when one has neither.
"""

from __future__ import annotations

from collections.abc import Mapping

SECTIONS: Mapping[str, str] = {
    "server": "Where the server listens, and who may come in.",
    "webrtc": "Calls over WebRTC, where the extra `webrtc` is installed.",
    "call": "How long a call lives, and where it is kept.",
    "vad": "Voice activity. A frame (32 ms) is voiced at `positive` and silent below `negative`;"
    " while the agent is audible the `ducked_` pair decides.",
    "turn": "When the caller's turn is over.",
    "barge_in": "What interrupts the agent. A pause comes first, a cut only with a reason.",
    "store": "What keeps conversations: `memory`, `sqlite:PATH`, `postgres:DSN` or `remote:URL` as"
    " one text, or a table. Anything but `memory` outlives the process and opens the"
    " [store door](stores.md).",
    "models": "Files that replace the shipped models.",
    "log": "What the server writes to stderr.",
}

WORDS: Mapping[str, str] = {
    "agents": "your own agents: `name: module:factory`",
    "agent": "the one a call gets that asks for none",
    "brain": "`cascade` (stt, agent, tts), or a [realtime model](realtime.md): `openai[:model]`,"
    " `gemini[:model]`, `gpt-live[:model]`. As a table: `name`, `arg`, `voice`, `base_url` (a"
    " server of your own with the provider's protocol), `language` (of the transcript, where the"
    " provider takes it), `text_only` (openai: answers are written, not spoken), `greeting` (an"
    " instruction for the first words of a call)",
    "stt": "recogniser: `whisper[:folder]`",
    "tts": "voice: `piper_onnx[:voice.onnx]`, `flite`",
    "model": "`auto`, `demo`, `scripted:echo`, or `provider[:model]` of openai, anthropic, gemini,"
    " openrouter, minimax, kimi, glm, mimo, ollama, lmstudio, vllm",
    "server.host": "address to listen on; 0.0.0.0 for every machine of the network",
    "server.port": "0 picks a free one",
    "server.origins": "pages of other origins that may open calls, or `*`",
    "server.tls.mode": "`off`, `self-signed` or `files`; a phone's browser gives its microphone"
    " only to https",
    "server.tls.cert": "PEM file, with mode `files`",
    "server.tls.key": "PEM file, with mode `files`",
    "server.api_keys": "Bearer keys of programs, at least 16 characters; needed unless bound to"
    " loopback",
    "server.secret": "signs session tokens, at least 16 characters; random at each start if empty",
    "server.max_calls": "more are refused with 503",
    "server.max_chats": "answers of `POST /chat` under way at once; more are refused with 503,"
    " 0 closes the door",
    "server.drain_s": "how long a stop waits for calls to end by themselves",
    "server.developer": "`true`, `false` or `auto` (when bound to loopback): clients may ask for"
    " loss and jitter on their own line",
    "webrtc.enabled": "`false` leaves `/ws` alone",
    "webrtc.host_addresses": "own addresses to offer, of one network card for instance; by default"
    " all, and 127.0.0.1 when bound to loopback",
    "webrtc.ice_servers": "STUN and TURN servers of page and server: a list of tables with `urls`"
    " and, for TURN, `username` and `credential`, or `auth_secret` (coturn's `use-auth-secret`) and"
    " `ttl_s`, how long a name made from it works (default 86400); the server itself uses"
    " the first STUN and the first TURN address",
    "webrtc.relay_only": "the server sends sound through TURN only",
    "webrtc.connect_s": "a line that is not connected after this long is given up; at most 10",
    "call.linger_s": "how long a call waits for a line that was lost",
    "call.idle_s": "a call in which nobody speaks for this long ends",
    "call.max_s": "longest call",
    "call.record_dir": "folder for the recording and the timeline of each call",
    "vad.positive": "probability from which a frame is voiced",
    "vad.negative": "probability below which it is silent",
    "vad.ducked_positive": "the same while the agent is audible",
    "vad.ducked_negative": "the same while the agent is audible",
    "vad.onset_ms": "voice this long is a tentative start",
    "vad.confirm_ms": "voice this long is a confirmed start",
    "vad.silence_ms": "silence this long ends speech",
    "turn.manual": "turns are opened and closed by the talk button alone",
    "turn.start_muted": "whether calls begin with the microphone off; by default as `manual`",
    "turn.detector.commit_p": "turn model: probability from which the turn is over",
    "turn.detector.question_p": "the same when the text is a question",
    "turn.detector.ask_again_ms": "below that it is asked again after this much silence",
    "turn.detector.hard_end_ms": "this much silence ends a turn whatever it says",
    "turn.detector.dictation_end_ms": "the same while digits or letters are dictated",
    "turn.detector_timeout_ms": "an answer later than this counts as none: the tiers decide",
    "turn.tiers.question_ms": "silence after a question, without a turn model",
    "turn.tiers.statement_ms": "after a statement",
    "turn.tiers.unfinished_ms": "after an unfinished sentence",
    "turn.tiers.dictation_ms": "after digits or letters",
    "turn.stable_ms": "text of a segmenting recogniser that stands this long is asked about",
    "turn.stable_again_ms": "and again every so often",
    "turn.stable_hold_ms": "and is a turn if the answer is to hold no longer than this",
    "turn.sweep_ms": "how often text that nobody claimed is looked for",
    "turn.sweep_still_ms": "unclaimed text that stands this long is a turn",
    "turn.final_timeout_ms": "how long a recogniser's last word on an utterance is awaited",
    "turn.fresh_ms": "text is the caller's only with a voice this recent",
    "turn.evidence_p": "probability from which a frame counts as a voice for that",
    "turn.room_p": "probability under which a frame shows how loud the room is",
    "turn.voice_p": "probability from which quiet is over",
    "turn.deaf_ms": "words without a voice for this long mean that the voice detector is deaf",
    "turn.deaf_again_ms": "how often it is reset then at most",
    "turn.quiet_ms": "quiet after which the agent may speak by itself",
    "turn.long_again_ms": "how often a long voice is asked about again",
    "turn.talk_click_ms": "a talk button held shorter is a click: it opens the microphone",
    "turn.talk_minimum_ms": "shortest recording after a held talk button",
    "turn.near_field.half_life_s": "how fast the caller's usual loudness is forgotten",
    "barge_in.by_request": "the recogniser reports only when asked; follows from `stt`",
    "barge_in.request_wordless_ms": "with such a recogniser, a voice that goes on this long without"
    " words cuts",
    "barge_in.request_report_ms": "and one that goes on this long without a report",
    "barge_in.lexicon.backchannels": "phrases that let the agent go on",
    "barge_in.lexicon.stops": "phrases that stop it",
    "barge_in.lexicon.fillers": "phrases that may stand beside a stop",
    "barge_in.lexicon.max_words": "more words than this are a turn whatever they are",
    "store.kind": "`memory`, `sqlite`, `postgres` or `remote`",
    "store.path": "the SQLite file; made when it is missing",
    "store.dsn": "PostgreSQL's address, `postgresql://user:password@host/database`; if empty,"
    " `DATABASE_URL`",
    "store.url": "another voxglove server, `http[s]://host[:port]`",
    "store.key": "one of that server's `api_keys`",
    "models.stt": "a CTranslate2 whisper folder",
    "models.tts": "a Piper `.onnx` with its `.onnx.json` beside it",
    "models.vad": "a Silero 16 kHz `.onnx`",
    "models.turn": "a smart-turn v3 `.onnx`",
    "log.level": "`debug`, `info`, `warning` or `error`",
    "log.json": "one JSON object a line; `false` writes plain lines",
    "log.pii": "`true` lets spoken and typed words into the log",
}

FIXED = ("turn.near_field.rate", "barge_in.rate")
"""Keys that follow the audio path and are nobody's choice: left out of the page."""
