"""What a session tells its provider: texts, context, tools, changes, cuts, summaries."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from ...core.messages import ToolCall
from ...core.model import ToolSpec
from ..commands import (
    AppendContext,
    CommitTurn,
    CutOutput,
    ForgetBefore,
    RequestResponse,
    SendImage,
    SendText,
    SendToolResults,
    SendVideoFrame,
    SpeechBoundary,
    Summarise,
    ToolOutput,
    UpdateAgent,
)
from ..events import (
    Audio,
    Closed,
    Interrupted,
    ProviderProblem,
    ResponseDone,
    ResponseStarted,
    Summary,
    ToolCalls,
)
from ..port import Capabilities, Setup
from .opening import LOOK
from .peer import Line, Trial

LONG = "alpha bravo charlie delta echo foxtrot golf hotel"
ASKED = Setup(instructions="Be brief.", tools=(LOOK,))
PAY = ToolSpec("pay_back", "Pays an order back.", {"type": "object", "properties": {}})


async def answers_typed_text(trial: Trial) -> None:
    """SendText reaches the peer; the response to it bears its request_id."""
    line = await trial.open()
    line.tell(SendText("where is my order", request_id="typed-1"))
    await trial.until(line, lambda: _answers(line, "typed-1"), "ResponseStarted.request_id")
    trial.need(
        trial.peer.received().count("where is my order") >= 1, "the text of SendText is sent"
    )
    await trial.until(line, lambda: _rested(line), "ResponseDone of the answer")
    trial.need(len(_answers(line, "typed-1")) == 1, "one response to one request", "", line)


async def speaks_when_asked(trial: Trial) -> None:
    """RequestResponse: the model speaks, once, and the response bears its request_id."""
    line = await trial.open()
    line.tell(RequestResponse("greet the caller", request_id="ask-1"))
    await trial.until(line, lambda: line.all(Audio), "a response to RequestResponse")
    await trial.until(line, lambda: _rested(line), "ResponseDone of the response")
    trial.need(len(_answers(line, "ask-1")) == 1, "ResponseStarted.request_id, once", "", line)
    trial.need("greet the caller" in trial.peer.received(), "the instruction is sent")


async def loses_no_request(trial: Trial) -> None:
    """Requests queue behind the response that runs (commands.RequestResponse)."""
    line = await trial.open()
    for number in (1, 2, 3):
        line.tell(RequestResponse(f"sentence {number}", request_id=f"ask-{number}"))
    wanted = [f"ask-{number}" for number in (1, 2, 3)]
    if trial.can.turn_taking == "full_duplex":  # speech there has no ends of its own
        received = trial.peer.received
        await trial.until(line, lambda: "sentence 3" in received(), "every request is sent")
        return
    await trial.until(line, lambda: len(_asked(line)) == 3, "a response to each request")
    got = _asked(line)
    trial.need(got == wanted, "responses in the order of the requests", got, line)
    await trial.until(line, lambda: _rested(line), "every response ends")


async def keeps_context_silent(trial: Trial) -> None:
    """AppendContext is not answered; the model knows it when it answers next."""
    line = await trial.open()
    line.tell(AppendContext("the caller is a friend"))
    await line.time(1.5)
    trial.need(not line.all(Audio), "context is not spoken about by itself", "", line)
    await _answer(trial, line)
    demand = "the model knows AppendContext when it answers next (commands.AppendContext)"
    await trial.until(line, lambda: "is a friend" in trial.peer.knows(), demand)
    trial.need(trial.peer.received().count("is a friend") == 1, "context is sent once")


async def replaces_context_of_one_key(trial: Trial) -> None:
    """`item_delete`: a later AppendContext of the same key replaces it; blank text takes it back.
    Elsewhere it comes on top."""
    line = await trial.open()
    knows = trial.peer.knows
    line.tell(AppendContext("it is noon", "clock"), AppendContext("sun shines", "weather"))
    line.tell(AppendContext("it is one o'clock", "clock"))
    await _answer(trial, line)
    await trial.until(line, lambda: "one o'clock" in knows(), "the new text of a key is known")
    trial.need("sun shines" in knows(), "another key is left alone", knows())
    if not trial.can.item_delete:
        return
    await trial.until(line, lambda: "it is noon" not in knows(), "the old text is gone")
    line.tell(AppendContext("", "clock"))
    await trial.until(line, lambda: "o'clock" not in knows(), "a blank text takes the key back")


async def tells_calls_and_takes_results(trial: Trial) -> None:
    """A call reaches us whole, once, under the id that its result goes back with, once."""
    line = await trial.open(ASKED)
    asked = (ToolCall(LOOK.name, {"order": "one"}, "call-a"),)
    await trial.peer.call_tools(line.connection, asked)
    await trial.until(line, lambda: line.all(ToolCalls), "ToolCalls (events.ToolCalls)")
    told = trial.only(line, ToolCalls, "one ToolCalls for a response (events.ToolCalls)")
    trial.need(len(told.calls) == 1, "one call", told)
    call = told.calls[0]
    trial.need(call.tool_name == LOOK.name, "the tool's own name", call)
    trial.need(call.input_args == {"order": "one"}, "arguments as a dict", call)
    await line.time(0.3)
    before = len(line.all(ResponseStarted))
    line.tell(SendToolResults((ToolOutput(call.id, call.tool_name, "it is on its way"),)))
    results = trial.peer.results
    await trial.until(line, results, "the result is sent (commands.SendToolResults)")
    await trial.until(line, lambda: len(line.all(ResponseStarted)) > before, "the model goes on")
    await trial.until(line, lambda: _rested(line), "the response to the results ends")
    trial.need(len(results()) == 1, "one result for a call", results())
    trial.need(results()[0][0] == call.id, "the result bears the call's id", results())
    trial.need("it is on its way" in results()[0][1], "the result's text", results())
    trial.need(len(line.all(ToolCalls)) == 1, "a call is told once", "", line)


async def tells_calls_of_one_response_together(trial: Trial) -> None:
    """Two calls of one response are one ToolCalls, in order; one response answers both results."""
    line = await trial.open(ASKED)
    asked = [ToolCall(LOOK.name, {"order": name}, f"call-{name}") for name in ("one", "two")]
    await trial.peer.call_tools(line.connection, asked)
    await trial.until(line, lambda: line.all(ToolCalls), "ToolCalls (events.ToolCalls)")
    told = trial.only(line, ToolCalls, "one ToolCalls for a response (events.ToolCalls)")
    orders = [call.input_args for call in told.calls]
    trial.need(orders == [call.input_args for call in asked], "all calls, in order", orders, line)
    await line.time(0.3)
    spoken = len(line.all(Audio))
    outputs = tuple(ToolOutput(call.id, call.tool_name, f"for {call.id}") for call in told.calls)
    line.tell(SendToolResults(outputs))
    await trial.until(line, lambda: len(trial.peer.results()) == 2, "both results are sent")
    await trial.until(line, lambda: len(line.all(Audio)) > spoken, "the model goes on")
    await trial.until(line, lambda: _rested(line), "the response to the results ends")
    ids = [call_id for call_id, _ in trial.peer.results()]
    trial.need(ids == [call.id for call in told.calls], "each result once, by its id", ids)


async def answers_nothing_to_silent_results(trial: Trial) -> None:
    """Results with `respond` off: the model knows them and goes on with the user's next turn."""
    line = await trial.open(ASKED)
    await trial.peer.call_tools(line.connection, (ToolCall(LOOK.name, {"order": "one"}, "c"),))
    await trial.until(line, lambda: line.all(ToolCalls), "ToolCalls (events.ToolCalls)")
    call = line.all(ToolCalls)[0].calls[0]
    await line.time(0.3)
    line.tell(SendToolResults((ToolOutput(call.id, call.tool_name, "done"),), respond=False))
    await trial.until(line, trial.peer.results, "the result is sent")
    await line.time(1.5)
    if trial.peer.holds_results:
        trial.need(not line.all(Audio), "`respond` off asks for no answer", "", line)
    await trial.until(line, lambda: _rested(line), "what was begun ends")


async def takes_new_instructions(trial: Trial) -> None:
    """UpdateAgent brings instructions to the open connection, which goes on."""
    line = await trial.open()
    line.tell(UpdateAgent(instructions="Speak like a banker."))
    received = trial.peer.received
    demand = "new instructions are sent (Capabilities.update_instructions)"
    await trial.until(line, lambda: "like a banker" in received(), demand)
    await _lives(trial, line)


async def takes_new_tools(trial: Trial) -> None:
    """UpdateAgent brings tools to the open connection, and the model can call them."""
    line = await trial.open(ASKED)
    line.tell(UpdateAgent(tools=(LOOK, PAY)))
    received = trial.peer.received
    demand = "new tools are sent (Capabilities.update_tools)"
    await trial.until(line, lambda: PAY.description in received(), demand)
    await trial.peer.call_tools(line.connection, (ToolCall(PAY.name, {}, "c"),))
    await trial.until(line, lambda: line.all(ToolCalls), "a new tool is called")
    trial.need(line.all(ToolCalls)[0].calls[0].tool_name == PAY.name, "the new tool's name")


async def confirms_every_cut(trial: Trial) -> None:
    """Each CutOutput is answered by one Interrupted, also when nothing is spoken."""
    line = await trial.open()
    line.tell(CutOutput())
    await trial.until(line, lambda: line.all(Interrupted), "Interrupted for a CutOutput")
    line.tell(CutOutput(), CutOutput(cancel=False))
    await trial.until(line, lambda: len(line.all(Interrupted)) == 3, "one for each CutOutput")
    await line.time(1.0)
    stops = len(line.all(Interrupted))
    trial.need(stops == 3, "exactly one Interrupted for each CutOutput", stops, line)
    await _lives(trial, line)


async def ends_what_is_cut(trial: Trial) -> None:
    """CutOutput while the model speaks: one Interrupted, the response ends, no more of its sound;
    with `item_truncate` the conversation holds what was heard."""
    line = await trial.open()
    await trial.peer.speak(line.connection, LONG)
    await trial.until(line, lambda: len(line.all(Audio)) >= 2, "Audio of what the model speaks")
    item = line.all(Audio)[-1].item_id
    line.tell(CutOutput({item: 100}))
    await trial.until(line, lambda: line.all(Interrupted), "Interrupted for a CutOutput")
    at = line.events.index(line.all(Interrupted)[0])
    await trial.until(line, lambda: _rested(line), "the response ends")
    await line.time(1.0)
    late = [one for one in line.events[at:] if isinstance(one, Audio) and one.item_id == item]
    trial.need(not late, "no sound of an item after the cut was confirmed", len(late), line)
    trial.need(len(line.all(Interrupted)) == 1, "exactly one Interrupted", "", line)
    if trial.can.item_truncate:
        knows = trial.peer.knows()
        trial.need("hotel" not in knows, "the conversation holds what was heard", knows)


async def summarises_out_of_band(trial: Trial) -> None:
    """Summarise is answered by one Summary that is not spoken and is no turn."""
    line = await trial.open()
    await trial.peer.speak(line.connection, "alpha bravo")
    await trial.until(line, lambda: line.all(Audio) and _rested(line), "ResponseDone")
    spoken = len(line.all(Audio))
    line.tell(Summarise("summary-1", "Summarise the call."))
    await trial.until(line, lambda: line.all(Summary), "Summary (events.Summary)")
    await line.time(1.0)
    summary = trial.only(line, Summary, "one Summary for a Summarise (events.Summary)")
    trial.need(summary.request_id == "summary-1", "Summary.request_id", summary)
    trial.need(summary.text.strip(), "Summary.text", summary)
    trial.need(len(line.all(Audio)) == spoken, "a summary is not spoken", "", line)


async def forgets_what_was_summarised(trial: Trial) -> None:
    """ForgetBefore leaves the summary alone of the conversation so far."""
    line = await trial.open()
    await trial.peer.user_says(line.connection, "charlie delta")
    knows = trial.peer.knows
    await trial.until(line, lambda: "charlie" in knows() and _rested(line), "the turn is known")
    line.tell(ForgetBefore("they spoke of letters"))
    await trial.until(line, lambda: "they spoke of letters" in knows(), "the summary is known")
    await trial.until(line, lambda: "charlie" not in knows(), "what it replaces is gone")
    await _lives(trial, line)


async def ignores_what_it_does_not_claim(trial: Trial) -> None:
    """Commands beyond the capabilities do no harm: no exception, and the connection goes on."""
    line = await trial.open()
    can = trial.can
    line.tell(SpeechBoundary(True), SpeechBoundary(False), CutOutput({"no-such-item": 10}))
    if not can.item_delete:
        line.tell(ForgetBefore("a summary"), AppendContext("", "no-such-key"))
    if not can.out_of_band:
        line.tell(Summarise("summary-1", "Summarise."))
    if "image" not in can.inputs:
        line.tell(SendImage(b"\x89PNG", "image/png"))
    if "video" not in can.inputs:
        line.tell(SendVideoFrame(b"\xff\xd8"))
    if can.turn_taking != "host":
        line.tell(CommitTurn())
    if can.update_tools != "live":
        line.tell(UpdateAgent(tools=(LOOK,)))
    await line.time(1.0)
    trial.need(not line.all(Closed), "the connection goes on", "", line)
    fatal = [one for one in line.all(ProviderProblem) if one.code in ("1007", "1008")]
    trial.need(not fatal, "nothing that the provider ends the connection for", fatal)
    await _lives(trial, line)


async def _answer(trial: Trial, line: Line) -> None:
    """Let the model answer the user."""
    if "text" in trial.can.inputs:
        line.tell(SendText("what now", request_id="next"))
        await trial.until(line, lambda: _answers(line, "next"), "an answer to typed text")
    else:
        await _lives(trial, line)


async def _lives(trial: Trial, line: Line) -> None:
    """The connection still works: the model speaks and is heard."""
    spoken = len(line.all(Audio))
    await trial.peer.speak(line.connection, "alpha")
    await trial.until(line, lambda: len(line.all(Audio)) > spoken, "the connection goes on")


def _asked(line: Line) -> list[str]:
    """Ids of the requests that got a response, in order."""
    return [one.request_id for one in line.all(ResponseStarted) if one.request_id]


def _answers(line: Line, request_id: str) -> list[ResponseStarted]:
    return [one for one in line.all(ResponseStarted) if one.request_id == request_id]


def _rested(line: Line) -> bool:
    """Every response that began is over."""
    return len(line.all(ResponseStarted)) == len(line.all(ResponseDone))


def _always(can: Capabilities) -> bool:
    return True


CASES: tuple[tuple[Callable[[Trial], Awaitable[None]], Callable[[Capabilities], bool]], ...] = (
    (answers_typed_text, lambda can: "text" in can.inputs),
    (speaks_when_asked, lambda can: can.response_request),
    (loses_no_request, lambda can: can.response_request),
    (keeps_context_silent, _always),
    (replaces_context_of_one_key, _always),
    (tells_calls_and_takes_results, _always),
    (tells_calls_of_one_response_together, _always),
    (answers_nothing_to_silent_results, _always),
    (takes_new_instructions, lambda can: can.update_instructions != "reconnect"),
    (takes_new_tools, lambda can: can.update_tools == "live"),
    (confirms_every_cut, _always),
    (ends_what_is_cut, _always),
    (summarises_out_of_band, lambda can: can.out_of_band),
    (forgets_what_was_summarised, lambda can: can.item_delete),
    (ignores_what_it_does_not_claim, _always),
)
