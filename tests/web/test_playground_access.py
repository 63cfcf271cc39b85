"""Who cannot use a mouse, see colours or read small print uses the page all the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.web.playground_page import Playground, playground

STATIC = Path(__file__).parents[2] / "web" / "static"

TEXT_ON = {
    "--ink": ("--paper", "--card", "--sunk", "--user"),
    "--soft": ("--paper", "--card", "--sunk", "--user"),
    "--accent": ("--paper", "--card"),
    "--on-accent": ("--accent",),
    "--on-stop": ("--stop",),
    "--warn": ("--warn-paper", "--card"),
    "--stop": ("--card", "--sunk"),
    "--good": ("--card", "--sunk"),
    "--you": ("--card", "--sunk"),
    "--agent": ("--card", "--sunk"),
    "--paper": ("--ink",),
    "--on-orb": ("--orb-2", "--orb-3"),
    "--card": tuple(f"--part-{part}" for part in ("vad-wait", "turn", "stt", "agent", "tts")),
}
"""Text colour -> the grounds it is written on somewhere on the page."""

DRAWN_ON = {"--rim": ("--card", "--paper"), "--part-output": ("--card",)}
"""Lines that say something by themselves, such as the border of a field."""


def colours(theme: int) -> dict[str, str]:
    """Custom property -> #rrggbb of theme 0 (light) or 1 (dark), as tokens.css has them first."""
    found: dict[str, str] = {}
    for name, value in re.findall(r"(--[\w-]+): ([^;]+);", (STATIC / "tokens.css").read_text()):
        shades = re.findall(r"#[0-9a-f]{6}", value)
        if shades:
            found.setdefault(name, shades[theme if len(shades) == 2 else 0])
    return found


def orbs() -> list[dict[str, str]]:
    """The other looks of the round button: while the agent speaks, while muted."""
    rules = re.findall(r"\[data-state=[^{]+\{([^}]+)\}", (STATIC / "tokens.css").read_text())
    return [dict(re.findall(r"(--orb-\d): (#[0-9a-f]{6})", rule)) for rule in rules]


def luminance(colour: str) -> float:
    """Relative luminance of #rrggbb (WCAG 2.2)."""
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_every_text_stands_out_from_its_ground(theme: int) -> None:
    found = colours(theme)
    for pairs, least in ((TEXT_ON, 4.5), (DRAWN_ON, 3.0)):
        for text, grounds in pairs.items():
            for ground in grounds:
                reached = contrast(found[text], found[ground])
                assert reached >= least, f"{text} on {ground}: {reached:.2f}"
    for look in orbs():
        assert len(look) == 3
        assert contrast(found["--on-orb"], look["--orb-2"]) >= 4.5


def test_no_colour_is_written_outside_the_tokens() -> None:
    for sheet in STATIC.glob("*.css"):
        if sheet.name != "tokens.css":
            stray = [
                c for c in re.findall(r"#[0-9a-fA-F]{3,8}\b", sheet.read_text()) if c != "#000"
            ]
            assert len(stray) <= 1, f"{sheet.name}: {stray}"


FOCUSED = """() => {
  const at = document.activeElement;
  const style = getComputedStyle(at.type === "radio" ? at.nextElementSibling ?? at : at);
  const box = at.getBoundingClientRect();
  return {
    id: at.id || at.name || at.getAttribute("role") || at.textContent.trim(),
    body: at === document.body,
    seen: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2,
    inside: box.left >= -1 && box.right <= innerWidth + 1,
  };
}"""


async def walk(open_page: Playground, most: int = 60) -> list[str]:
    """What Tab reaches, in order; each with its focus to be seen and within the window."""
    await open_page.page.focus("#talk")
    await open_page.page.keyboard.press("Shift+Tab")
    reached: list[str] = []
    for _ in range(most):
        await open_page.page.keyboard.press("Tab")
        found = await open_page.page.evaluate(FOCUSED)
        if found["body"] or found["id"] in reached[:1]:
            break
        assert found["seen"], f"the focus on {found['id']} is not to be seen"
        assert found["inside"], f"{found['id']} lies outside the window"
        reached.append(str(found["id"]))
    return reached


@pytest.mark.browser
async def test_every_control_is_reached_by_keyboard_and_has_a_name() -> None:
    async with playground() as open_page:
        page = open_page.page
        await open_page.booking()
        reached = await walk(open_page)
        call = ["talk", "wave", "wave-legend", "wave-pause", "save-sound", "save-timeline"]
        assert reached[:7] == [*call, "transcript"]
        hands = ["mute", "text", "send", "mode", "interrupt", "camera", "picture", "device"]
        details = ["tab-turns", "turns"]
        corner = ["theme", "help", "panel-toggle"]
        order = [name for name in reached if name in {*hands, *details, *corner}]
        assert order == [*hands, *details, *corner]
        for role in ("button", "tab", "radio", "combobox", "textbox", "meter", "img"):
            for one in await page.get_by_role(role).all():
                snapshot = await one.aria_snapshot()
                assert re.search(rf"- '?{role} \"[^\"]+", snapshot), snapshot
        await _tabs_and_help(open_page)


async def _tabs_and_help(open_page: Playground) -> None:
    page = open_page.page
    await page.focus("#tab-turns")
    await page.keyboard.press("ArrowRight")
    assert await page.get_by_role("tabpanel", name="Events").is_visible()
    assert not await page.get_by_role("tabpanel", name="Turns").is_visible()
    await page.keyboard.press("End")
    assert await page.get_attribute("#tab-developer", "aria-selected") == "true"
    await page.keyboard.press("?")
    assert await page.get_by_role("dialog", name="Keys and what they do").is_visible()
    await page.get_by_label("Single keys work").uncheck()
    await page.keyboard.press("Escape")
    assert not await page.get_by_role("dialog").count()
    await page.keyboard.press("m")
    assert await open_page.asked("mute") == [], "single keys can be turned off"
    assert await open_page.asked("send") == [], "Escape closed the help and nothing else"


@pytest.mark.browser
async def test_a_narrow_or_enlarged_window_loses_nothing() -> None:
    async with playground((360, 740)) as open_page:
        page = open_page.page
        await open_page.booking(12.5)
        for width, height in ((360, 740), (320, 600), (640, 400)):  # the last: 1280 x 800 at 200 %
            await page.set_viewport_size({"width": width, "height": height})
            for phase in ("conversation", "sheet"):
                if phase == "sheet":
                    await page.click("#panel-toggle")
                for tab in ("Turns", "Events", "Developer") if phase == "sheet" else ("",):
                    if tab:
                        await page.get_by_role("tab", name=tab).click()
                    assert await page.evaluate(TOO_WIDE) == [], f"{width} {phase} {tab}"
            assert await page.locator("#tab-developer").evaluate(
                "e => e === document.activeElement"
            )
            await page.keyboard.press("Escape")
            assert await page.locator("#panel-toggle").evaluate(
                "e => e === document.activeElement"
            ), "focus comes back from the sheet"
            assert await page.locator("#panel").is_hidden()
        assert await open_page.asked("send") == [], "Escape closed the sheet and cut nothing"
        for control in ("#talk", "#mute", "#text", "#send", "#device"):
            await page.locator(control).scroll_into_view_if_needed()
            await page.locator(control).click(trial=True)


TOO_WIDE = """() => {
  const wide = document.documentElement.scrollWidth > innerWidth ? ["page"] : [];
  for (const one of document.querySelectorAll("body *:not(option)")) {
    const box = one.getBoundingClientRect();
    const own = box.width > 1 && !one.closest(".hidden, canvas, .entry, .orb");
    if (own && box.right > innerWidth + 1) wide.push(one.id || one.className || one.tagName);
  }
  return wide;
}"""


@pytest.mark.browser
async def test_the_theme_is_chosen_and_remembered_and_motion_can_rest() -> None:
    async with playground(dark=True, start=False) as open_page:
        page = open_page.page
        ground = "getComputedStyle(document.documentElement).getPropertyValue('color-scheme')"
        assert await page.evaluate(ground) == "light dark"
        for wanted in ("light", "dark", "system", "light"):
            await page.locator("#theme").click()
            assert await page.get_by_role("button", name=f"Theme: {wanted}").count() == 1
        await page.reload()
        assert await page.evaluate(ground) == "light"
        await page.emulate_media(reduced_motion="reduce")
        moving = "document.getAnimations().length"
        assert await page.evaluate(moving) == 0
        await open_page.start()
        await open_page.booking(3)
        assert await page.evaluate(moving) == 0


@pytest.mark.browser
async def test_a_screen_reader_hears_of_questions_and_reads_final_words_when_asked_to() -> None:
    async with playground() as open_page:
        page = open_page.page
        log = page.get_by_role("log", name="Conversation")
        assert await log.get_attribute("aria-live") == "off", "the agent speaks aloud already"
        await page.click("#help")
        await page.get_by_label("A screen reader reads the conversation too").check()
        await page.get_by_role("button", name="Close", exact=True).click()
        assert await log.get_attribute("aria-live") == "polite"
        await open_page.hear({"t": "speech", "turnId": 1, "text": "It is", "pos": 0})
        bubble = page.locator(".said.agent")
        assert await bubble.get_attribute("aria-live") == "off", "words that grow"
        final = {"turnId": 1, "heard": "It is", "unheard": " done.", "interrupted": True}
        await open_page.hear({"t": "heard", **final})
        assert await bubble.get_attribute("aria-live") is None
        assert await page.locator("s").get_attribute("aria-label") == "not said:  done."
        slot = {"id": "a", "renderer": "generic", "input": {"title": "Which?"}, "strategy": "stay"}
        await open_page.hear({"t": "slot", **slot})
        assert await page.inner_text("#asks") == "The agent shows: Which?"
        assert await page.get_by_role("article", name="The agent shows: Which?").count() == 1
        assert await page.locator("[aria-live=assertive], [role=alert]").count() == 1
        assert await page.locator("#state").get_attribute("aria-live") == "polite"
