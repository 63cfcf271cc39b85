"""What the page shows of a call, by a recorded message list: every view, no server behind it."""

from __future__ import annotations

import json

import pytest

from tests.web.playground_page import (
    PICTURE,
    Playground,
    latency,
    line,
    past_of,
    playground,
    recorded,
)

pytestmark = pytest.mark.browser


def spoken(turn: int, heard: str, unheard: str = "") -> dict[str, object]:
    cut = bool(unheard)
    return {"t": "heard", "turnId": turn, "heard": heard, "unheard": unheard, "interrupted": cut}


def shown(slot: str, **properties: object) -> dict[str, object]:
    return {"t": "slot", "id": slot, "renderer": "generic", "input": properties, "strategy": "stay"}


async def test_the_conversation_stands_in_the_order_it_happened() -> None:
    async with playground() as open_page:
        await open_page.booking()
        items = open_page.page.locator("#transcript > *")
        kinds = [
            str(await items.nth(place).get_attribute("class")).split()[:2]
            for place in range(await items.count())
        ]
        turn = [["said", "user"], ["said", "agent"]]
        looked_up = [turn[0], ["did", "success"], turn[1]]
        booked = [turn[0], ["did", "success"], ["slot", "to-read"], turn[1]]
        assert kinds == [*looked_up, *turn, *booked, *turn]
        assert await open_page.texts(".words s") == ["What name is it under?"]
        notes = open_page.page.locator(".agent .note")
        assert await notes.all_text_contents() == [
            "answered in 0.88 syou interrupted",
            "answered in 0.39 s",
            "answered in 0.60 s",
            "",
        ]
        assert (await open_page.texts(".user .note"))[-1] == "typed"
        await _the_tool_opens(open_page)
        await _growing_words_stay_last(open_page)


async def _the_tool_opens(open_page: Playground) -> None:
    chip = open_page.page.locator(".did").first
    assert (await chip.locator("summary").inner_text()).split("\n")[-1] == "done in 2 ms"
    assert not await chip.locator(".inside").is_visible()
    await chip.locator("summary").press("Enter")
    assert "2026-12-01" in await chip.locator(".inside").inner_text()
    await open_page.hear(
        line("tool", event="started", id="x", name="end_call", input={}),
        line("tool", event="result", id="x", name="end_call", status="error", duration_ms=1_250),
    )
    failed = open_page.page.locator(".did.error summary")
    assert "failed in 1.3 s" in await failed.inner_text()


async def _growing_words_stay_last(open_page: Playground) -> None:
    """A card that comes while the caller speaks stands above the words that still grow."""
    await open_page.hear(
        {"t": "partial", "text": "I would"},
        line("tool", event="started", id="y", name="look"),
        {"t": "partial", "text": "I would like"},
    )
    last = open_page.page.locator("#transcript > *").last
    assert await last.get_attribute("class") == "said user partial"
    await open_page.hear(line("turn", event="dropped", reason="unclaimed", turn=77, text=""))
    assert await open_page.page.locator(".partial").count() == 0


async def test_an_answer_around_a_tool_is_split_where_the_tool_stood() -> None:
    async with playground() as open_page:
        await open_page.hear(
            {"t": "speech", "turnId": 1, "text": "Let me look.", "pos": 0},
            line("tool", event="started", id="a", name="look"),
            line("tool", event="result", id="a", name="look", status="success", duration_ms=9),
            {"t": "speech", "turnId": 1, "text": "Let me look. At eight it is free.", "pos": 0},
        )
        assert await open_page.texts(".agent .words") == ["Let me look.", "At eight it is free."]
        between = open_page.page.locator(".agent + .did + .agent")
        assert await between.count() == 1
        await open_page.hear(spoken(1, "Let me look. At eight", " it is free."))
        assert await open_page.texts(".agent .words") == ["Let me look.", "At eight it is free."]
        assert await open_page.texts(".words s") == ["it is free."]


async def test_a_question_is_answered_in_place_and_stays_as_an_answered_card() -> None:
    async with playground() as open_page:
        page = open_page.page
        await open_page.hear(
            shown("one", title="Which table?", options=["Window", {"label": "Bar", "value": 7}]),
            shown("two", title="Shall I wait?"),
        )
        await page.get_by_role("button", name="Bar").click()
        assert await open_page.asked("send") == [[{"id": "one", "t": "resolve", "value": 7}]]
        await page.get_by_role("button", name="Window").click()
        assert len(await open_page.asked("send")) == 1, "one answer at a time"
        assert await page.locator(".slot").count() == 2, "the server has not taken it yet"
        await open_page.hear({"t": "slot_removed", "id": "one"})
        assert await page.locator(".slot").count() == 1
        done = page.locator(".slot-done")
        assert (await done.inner_text()).split() == ["Which", "table?", "You", "answered:", "Bar"]
        assert await done.get_by_role("button").count() == 0
        assert await done.evaluate("card => document.activeElement === card"), "focus is kept"
        await open_page.hear({"t": "slot_removed", "id": "two"})
        assert "You answered: Bar" in (await open_page.texts(".slot-done"))[0]
        assert "No longer asked" in (await open_page.texts(".slot-done"))[1]
        await open_page.hear(shown("three", title="Still there?"))
        await open_page.hear(*(spoken(turn, "words " * 60) for turn in range(20)))
        await page.get_by_role("button", name="A question is open above").click()
        assert await page.locator(".slot").evaluate("card => document.activeElement === card")


async def test_the_waterfall_sums_and_names_what_owns_each_part() -> None:
    async with playground() as open_page:
        page = open_page.page
        await open_page.booking()
        told = [
            message
            for _, message in recorded()[0]
            if message["t"] == "metric" and message["name"] == "turn_latency"
        ]
        for metric in told:
            card = page.locator(f'.fall[data-turn="{metric["turn"]}"]')
            rows = await card.locator("tbody tr").all()
            values = [int(await row.locator(".ms").text_content() or "") for row in rows]
            owners = [await row.locator("code").text_content() for row in rows]
            assert abs(sum(values) - metric["total_ms"]) <= 1
            assert owners == [part["setting"] for part in metric["parts"]]
            assert f"{metric['total_ms']:.0f} ms" in await card.locator(".fall-total").inner_text()
        assert (await open_page.texts(".median-total")) == ["596 ms median of 3 answers"]
        assert await page.locator(".mismatch").count() == 0
        await open_page.hear(latency(9, 500, vad_wait=200, agent=250))
        assert "50 ms less than the total" in (await open_page.texts(".mismatch"))[0]
        await page.get_by_role("button", name="answered in 0.88 s").click()
        assert await page.locator('.fall[data-turn="1"] summary').evaluate(
            "head => document.activeElement === head && head.parentElement.open"
        )


async def test_marks_of_the_sound_are_read_by_keyboard_and_by_pointer() -> None:
    async with playground() as open_page:
        page = open_page.page
        await open_page.booking()
        told = [message["event"] for _, message in recorded()[0] if message["t"] == "event"]
        marked = [
            event
            for event in told
            if event["type"] in ("vad", "turn", "interruption") or event.get("event") == "audio"
        ]
        await page.focus("#wave")
        read = []
        await page.keyboard.press("Home")
        for _ in marked:
            read.append(await page.inner_text("#mark-words"))
            await page.keyboard.press("ArrowRight")
        assert len(set(read)) == len(marked)
        assert read[0].startswith("Voice begins at 0:01.0"), "dated back to where it began"
        assert any(
            "Turn 1 committed at 0:04.9" in one and "held 0 ms, p 0.98" in one for one in read
        )
        assert any("Barge-in: agent paused at 0:08.7" in one for one in read)
        assert any("Barge-in: answer cut at 0:09.3, because of words" in one for one in read)
        assert await page.get_attribute("#wave-pause", "aria-pressed") == "true"
        assert "Last mark:" in str(await page.get_attribute("#wave", "aria-label"))
        await page.focus("#text")
        assert await page.is_hidden("#mark-words")
        await _pointed_at(open_page, 9.32)
        unheard = await page.evaluate(TRACK)
        assert unheard["from"] == 8.78 and 9 < unheard["to"] < 12


async def _pointed_at(open_page: Playground, second: float) -> None:
    """The picture holds still around the last mark read; a mark out of it is not found."""
    page = open_page.page
    await page.focus("#wave")
    await page.keyboard.press("Home")
    await page.focus("#text")
    box = await page.locator("#wave").bounding_box()
    assert box is not None
    from_ = max(0.0, 1.056 - box["width"] / 128)
    await page.mouse.move(box["x"] + (second - from_) * 64, box["y"] + 60)
    assert "answer cut" in await page.inner_text("#mark-words")


TRACK = """async () => {
  const { Track } = await import("/static/track.js");
  const track = new Track();
  const t = (type, t, rest) => track.event({ type, t, ...rest });
  t("response", 5.26, { event: "audio", turn: 1 });
  t("interruption", 8.78, { event: "paused", reason: "wordless" });
  t("response", 9.32, { event: "cut", turn: 1, text: "x".repeat(80), heard: "x".repeat(57) });
  return track.unheard[0];
}"""


async def test_the_inspector_filters_copies_holds_still_and_counts_what_it_dropped() -> None:
    async with playground() as open_page:
        page = open_page.page
        await open_page.booking()
        await page.get_by_role("tab", name="Events").click()
        await open_page.pictures()
        whole = len(recorded()[0]) + 1  # `ready` came twice
        assert (await open_page.texts(".counted")) == [f"{whole} of {whole} messages"]
        await page.get_by_label("Only messages of this type").select_option("turn")
        await page.get_by_label("Only messages that contain this text").fill("anna SMITH")
        await open_page.pictures()
        assert (await open_page.texts(".counted")) == [f"1 of {whole} messages"]
        await page.get_by_role("button", name="Copy all").click()
        lines = await _clipboard(open_page, "1 message is on the clipboard")
        assert [one["event"]["text"] for one in lines] == ["My name is Anna Smith."]
        await page.get_by_label("Only messages that contain this text").fill("")
        listbox = page.get_by_role("listbox", name="Messages")
        await listbox.focus()
        await page.keyboard.press("Home")
        await page.keyboard.press("ArrowDown")
        await open_page.pictures()
        active = str(await listbox.get_attribute("aria-activedescendant"))
        assert "2 committed" in await page.locator(f"#{active}").inner_text()
        await page.get_by_role("button", name="Copy", exact=True).click()
        copied = await _clipboard(open_page, "The message is on the clipboard")
        assert [one["event"]["turn"] for one in copied] == [2]
        await page.locator("#events").get_by_role("button", name="Hold still").click()
        await open_page.hear(line("turn", event="committed", reason="x", turn=50, text="late"))
        await open_page.pictures()
        assert "holding still" in (await open_page.texts(".counted"))[0]
        assert not await page.get_by_text("50 committed").count()


async def _clipboard(open_page: Playground, said: str) -> list[dict[str, dict[str, object]]]:
    await open_page.page.get_by_text(said).wait_for()
    text = await open_page.page.evaluate("navigator.clipboard.readText()")
    return [json.loads(one) for one in text.splitlines()]


FLOOD = """() => new Promise((done) => {
  const [list, counted] = [".entries", ".counted"].map((name) => document.querySelector(name));
  let most = 0, slowest = 0, sent = 0, before = performance.now();
  const tick = (now) => {
    slowest = Math.max(slowest, now - before);
    before = now;
    for (let n = 0; n < 100; n += 1, sent += 1)
      fakeCall.on.message({ t: "event", event: { t: sent / 50, type: "gap", samples: n } });
    most = Math.max(most, list.querySelectorAll(".entry").length);
    if (sent < 5000) requestAnimationFrame(tick);
    else requestAnimationFrame(() => done({ most, slowest, counted: counted.textContent }));
  };
  requestAnimationFrame(tick);
})"""


async def test_a_flood_of_messages_is_bounded_and_only_what_is_in_sight_is_drawn() -> None:
    async with playground() as open_page:
        await open_page.page.get_by_role("tab", name="Events").click()
        found = await open_page.page.evaluate(FLOOD)
        assert found["most"] < 60, "rows exist only where one can see them"
        assert found["counted"].startswith("4000 of 4000 messages")
        assert "older dropped (4000 are kept)" in found["counted"]
        assert found["slowest"] < 500, (
            "a hundred messages for each picture, and it never stood for long"
        )


async def test_push_to_talk_mute_and_the_other_hands_do_what_they_say() -> None:
    async with playground() as open_page:
        page = open_page.page
        await page.get_by_label("Push to talk").check()
        await open_page.hear({"t": "state", "state": "listening", "muted": False})
        assert await open_page.texts("#state") == ["Hold Space to talk."]
        await page.keyboard.down("Space")
        await page.keyboard.up("Space")
        await page.focus("#talk")
        await page.keyboard.down("Space")
        await page.keyboard.up("Space")
        assert await page.get_attribute("html", "data-phase") == "live", "Space does not hang up"
        await page.focus("#text")
        await page.keyboard.type("a b")
        assert await page.input_value("#text") == "a b", "in text Space is a space"
        await page.locator("#ptt").hover()
        await page.mouse.down()
        await page.mouse.move(5, 5)
        await page.mouse.up()
        await page.focus("#ptt")
        await page.keyboard.down("Enter")
        await page.focus("#text")
        assert await open_page.asked("talk") == [[True], [False]] * 4
        await page.focus("#talk")
        await page.keyboard.press("m")
        await page.keyboard.press("Escape")
        await page.keyboard.press("t")
        await page.keyboard.press("Enter")
        assert await open_page.asked("mute") == [[True]]
        sent = [message for (message,) in await open_page.asked("send")]
        assert sent == [{"t": "interrupt"}, {"t": "say", "text": "a b"}]
        await page.get_by_role("combobox", name="Microphone").select_option(label="Headset")
        assert await open_page.asked("useDevice") == [["two"]]
        await page.set_input_files(
            "#picture-file", {"name": "menu.png", "mimeType": "image/png", "buffer": PICTURE}
        )
        picture = page.get_by_alt_text("Picture you showed: menu.png")
        await picture.wait_for()
        assert await picture.evaluate("image => image.naturalWidth") == 8
        assert await open_page.asked("sendImage") == [["menu.png"]]
        await page.get_by_role("button", name="Camera").click()
        assert await page.get_attribute("#camera", "aria-pressed") == "true"


async def test_the_injector_says_what_it_does_and_the_line_says_why() -> None:
    async with playground() as open_page:
        page = open_page.page
        await page.get_by_role("tab", name="Developer").click()
        await page.get_by_label("Loss").fill("10")
        await page.get_by_label("Burst").fill("3")
        await page.get_by_label("Jitter").fill("80")
        await page.get_by_label("On the agent's sound too").check()
        told = page.get_by_text("10 % lost in runs of 3, up to 80 ms late, both ways.")
        await told.wait_for()
        wanted = {"loss": 0.1, "burst": 3, "jitter_ms": 80, "down": True}
        assert (await open_page.asked("impair"))[-1] == [wanted]
        await page.get_by_role("button", name="No trouble").click()
        calm = {"loss": 0, "burst": 1, "jitter_ms": 0, "down": False}
        assert (await open_page.asked("impair"))[-1] == [calm]
        await page.get_by_label("Loudspeaker").select_option(label="Earphones")
        assert await open_page.asked("useSpeaker") == [["ear"]]
        why = "ICE found no way within 9 s."
        await page.evaluate("why => fakeCall.on.line('websocket', why)", why)
        assert (await open_page.texts(".rule")) == [why]
        assert await page.get_by_text(f"This call runs over WebSocket. {why}").is_visible()
        assert await page.text_content("#line") == "Connected · WebSocket"
        await page.get_by_role("radio", name="WebSocket").check()
        await page.click("#talk")
        await page.click("#talk")
        assert (await open_page.asked("start"))[-1][0]["line"] == "websocket"


async def test_errors_say_what_to_do_once_and_can_be_dismissed() -> None:
    async with playground() as open_page:
        page = open_page.page
        lost = {"t": "error", "code": "ERR_TTS_CONNECTION", "message": "The voice was lost."}
        await open_page.hear(lost, lost)
        words = await open_page.texts("#notice p")
        assert words == ["The voice was lost. The agent may stay silent. Its words appear below."]
        assert await page.get_attribute("#notice", "role") == "alert"
        await page.get_by_role("button", name="Dismiss").click()
        assert await page.is_hidden("#notice")


async def test_a_reload_shows_what_the_server_tells_and_goes_on_by_itself() -> None:
    async with playground() as open_page:
        page = open_page.page
        await open_page.booking()
        ready = recorded()[0][0][1] | {"resumed": True}
        past = past_of([message for _, message in recorded()[0]])
        before = await open_page.conversation()
        await page.evaluate("sessionStorage.setItem('fake.resumable', 'yes')")
        await page.reload()
        await page.wait_for_selector('html[data-phase="live"]')
        assert (await open_page.asked("start"))[-1][0]["resume"] is True
        assert await open_page.conversation() == [], "the page has no truth of its own"
        await open_page.hear(ready, past, {"t": "state", "state": "listening", "muted": False})
        rule = ["rule", "Continued after reload"]
        assert await open_page.conversation() == [*before, rule]
        assert (await open_page.texts(".median-total")) == ["596 ms median of 3 answers"]
        await open_page.hear(ready, past, {"t": "state", "state": "listening", "muted": False})
        assert await open_page.conversation() == before, "a line that was lost: once, as before"
        await open_page.hear(recorded()[0][0][1] | {"callId": "another", "resumed": False})
        assert await open_page.texts(".words") == [], "what was there belonged to another call"
