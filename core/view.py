"""What a model sees of history: pure functions from stored messages to a valid request.

After any interleaving of requests, aborts, late results and amendments the view has, for every
tool call, exactly one result directly behind it, and of spoken answers only what was heard
(DESIGN 5.4, 5.7; voice row 33). Nothing here changes what is stored.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from .messages import MEDIA_ONLY, ContentPart, Message, ToolCall, ToolResult, ToolResultData

INTERRUPTED = "[interrupted]"
NOTHING_HEARD = "[the user interrupted before anything was heard]"
STILL_RUNNING = "still running"
NO_RESULT = "No result available"
RESULTS_TEXT = "tool results"


def model_view(
    messages: Sequence[Message], running: Collection[str] = (), *, summaries: bool = False
) -> list[Message]:
    """The messages of the next model request.

    `running` holds the ids of calls without a terminal result whose tools still run; they get a
    transient `still running` result. With `summaries`, results before the last user turn show
    their summary instead of their data (spec core 4, row 28).
    """
    recent = since_compaction(messages)
    paired = _pair_results(recent, frozenset(running))
    if summaries:
        paired = _summarise(paired)
    return _heard_only(paired)


def since_compaction(messages: Sequence[Message]) -> Sequence[Message]:
    """From the last compaction summary on; everything if there is none."""
    for at in range(len(messages) - 1, 0, -1):
        if messages[at].is_compaction:
            return messages[at:]
    return messages


def merge_user_messages(messages: Sequence[Message]) -> list[Message]:
    """Adjacent user messages as one, media kept, for wires that demand alternation (row 33).

    Tool results stay messages of their own; adapters place them as their wire wants.
    """
    merged: list[Message] = []
    for message in messages:
        last = merged[-1] if merged else None
        if last is not None and _is_plain_user(last) and _is_plain_user(message):
            merged[-1] = replace(
                last,
                text=f"{last.text}\n\n{message.text}",
                content=_parts(last) + _parts(message) if last.content or message.content else (),
            )
        else:
            merged.append(message)
    return merged


def paired_results(messages: Sequence[Message]) -> list[Message]:
    """Each call directly followed by one result; orphans and doubles go, a gap says so (row 33).

    What model_view has done already, for adapters whose caller made its messages by hand.
    """
    return _pair_results(messages, frozenset())


def _is_plain_user(message: Message) -> bool:
    return message.sender == "user" and not message.tool_results


def _parts(message: Message) -> tuple[ContentPart, ...]:
    """Its content, with its text where no part says it."""
    said = message.text and message.text != MEDIA_ONLY
    if not message.content or (said and all(one.type != "text" for one in message.content)):
        return (ContentPart("text", text=message.text), *message.content)
    return message.content


@dataclass(slots=True)
class _Answers:
    """The results collected for one call message."""

    results_id: str = ""
    by_call: dict[str, ToolResult] = field(default_factory=dict)


def _pair_results(messages: Sequence[Message], running: frozenset[str]) -> list[Message]:
    """Put exactly one results message behind each call message; drop orphans and doubles."""
    answers = _collect_results(messages)
    view: list[Message] = []
    for at, message in enumerate(messages):
        if message.is_tool_results or message.tool_results:
            continue
        view.append(message)
        if message.tool_calls:
            view.append(_results_for(message, answers[at], running))
    return view


def _collect_results(messages: Sequence[Message]) -> dict[int, _Answers]:
    answers: dict[int, _Answers] = {}
    asked_by: dict[str, int] = {}  # call id -> the latest message that asked it
    for at, message in enumerate(messages):
        for call in message.tool_calls:
            asked_by[call.id] = at
            answers.setdefault(at, _Answers())
        for result in message.tool_results:
            asker = asked_by.get(result.call_id)
            if asker is None:
                continue
            answers[asker].results_id = answers[asker].results_id or message.id
            answers[asker].by_call.setdefault(result.call_id, result)
    return answers


def _results_for(asked: Message, answers: _Answers, running: frozenset[str]) -> Message:
    results = tuple(
        _for_model(answers.by_call.get(call.id) or _placeholder(call, running))
        for call in asked.tool_calls
    )
    return Message(
        sender="user",
        text=RESULTS_TEXT,
        id=answers.results_id or f"{asked.id}_results",
        tool_results=results,
        is_tool_results=True,
    )


def _placeholder(call: ToolCall, running: frozenset[str]) -> ToolResult:
    text = STILL_RUNNING if call.id in running else NO_RESULT
    return ToolResult(call.tool_name, call.id, ToolResultData("success", text))


def _for_model(result: ToolResult) -> ToolResult:
    """Without what is for people only (row 26)."""
    data = result.result
    if data.render_data is None and data.generate_summary_args is None:
        return result
    return replace(result, result=replace(data, render_data=None, generate_summary_args=None))


def _summarise(messages: list[Message]) -> list[Message]:
    last_turn = max((at for at, one in enumerate(messages) if one.is_user_turn), default=-1)

    def short(result: ToolResult) -> ToolResult:
        data = result.result
        if data.summary is None:
            return result
        return replace(result, result=replace(data, data=data.summary, summary=None))

    return [
        replace(message, tool_results=tuple(short(result) for result in message.tool_results))
        if at <= last_turn and message.tool_results
        else message
        for at, message in enumerate(messages)
    ]


def _heard_only(messages: list[Message]) -> list[Message]:
    """Replace spoken answers by what was heard of them and leave empty ones out."""
    view: list[Message] = []
    heard_at: int | None = None  # the answer in `view` heard since the last user turn, if any
    notice = False
    for message in messages:
        if message.sender == "user":
            if message.is_user_turn:
                message, notice, heard_at = _with_notice(message, notice), False, None
            view.append(message)
            continue
        text, nothing_heard = _heard_text(message)
        if nothing_heard and heard_at is None:
            notice = True
        elif nothing_heard and heard_at is not None:
            view[heard_at] = _mark(view[heard_at])
        if text or message.tool_calls:
            view.append(message if text == message.text else replace(message, text=text))
        if text:
            heard_at = len(view) - 1
    return view


def _heard_text(message: Message) -> tuple[str, bool]:
    """(the text the model sees, whether a spoken answer was cut before any of it was heard)."""
    if not message.interrupted:
        return message.text, False
    if message.playback == "settled":
        heard = (message.heard or "").strip()
        return (f"{heard} {INTERRUPTED}", False) if heard else ("", True)
    return (f"{message.text} {INTERRUPTED}" if message.text.strip() else ""), False


def _mark(message: Message) -> Message:
    if message.text.endswith(INTERRUPTED):
        return message
    return replace(message, text=f"{message.text} {INTERRUPTED}")


def _with_notice(message: Message, notice: bool) -> Message:
    if not notice:
        return message
    content = message.content
    if content:
        content = (ContentPart("text", text=NOTHING_HEARD), *content)
    return replace(message, text=f"{NOTHING_HEARD}\n{message.text}", content=content)
