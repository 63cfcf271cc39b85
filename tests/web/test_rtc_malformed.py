"""A thousand malformed offers and candidates against a running server: each is answered, nothing
breaks, nothing is left, and the next call works."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import random
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.adapters.transports_webrtc.peer import Peer
from tests.support.leaks import open_fds
from tests.web.client import Site, eventually
from tests.web.rtc_client import rtc_client, rtc_config, rtc_site

pytestmark = pytest.mark.real_loop

WARM_UP, OFFERS, CANDIDATES, CALLS = 800, 700, 300, 12
RSS_LIMIT_MIB = 5.0

Mutation = Callable[[random.Random, list[str]], list[str]]


def lost_lines(rnd: random.Random, lines: list[str]) -> list[str]:
    gone = set(rnd.sample(range(len(lines)), rnd.randint(1, 4)))
    return [line for number, line in enumerate(lines) if number not in gone]


def truncated(rnd: random.Random, lines: list[str]) -> list[str]:
    text = "\r\n".join(lines)
    return text[: rnd.randrange(len(text))].split("\r\n")


def noise(rnd: random.Random, lines: list[str]) -> list[str]:
    text = list("\r\n".join(lines))
    for _ in range(rnd.randint(1, 12)):
        text[rnd.randrange(len(text))] = chr(rnd.choice((0, 7, 10, 32, 127, 233, 0xD800, 0x1F600)))
    return "".join(text).split("\r\n")


def huge_numbers(rnd: random.Random, lines: list[str]) -> list[str]:
    at = rnd.choice([n for n, line in enumerate(lines) if re.search(r"\d", line)] or [0])
    number = rnd.choice(("9" * 30, "-1", "0", "65536", "4294967296", "1e9", "٣", "9" * 5_000))
    changed = re.sub(r"\d+", number, lines[at], count=rnd.randint(1, 3))
    return [*lines[:at], changed, *lines[at + 1 :]]


def doubled_section(rnd: random.Random, lines: list[str]) -> list[str]:
    starts = [n for n, line in enumerate(lines) if line.startswith("m=")] + [len(lines)]
    section = rnd.randrange(max(1, len(starts) - 1))
    return lines + lines[starts[section] : starts[-1]] * rnd.randint(1, 20)


def without(prefix: str) -> Mutation:
    def mutate(rnd: random.Random, lines: list[str]) -> list[str]:
        return [line for line in lines if not line.startswith(prefix)]

    return mutate


def instead(prefix: str, *others: str) -> Mutation:
    def mutate(rnd: random.Random, lines: list[str]) -> list[str]:
        other = rnd.choice(others)
        return [other if line.startswith(prefix) else line for line in lines]

    return mutate


def shuffled(rnd: random.Random, lines: list[str]) -> list[str]:
    return rnd.sample(lines, len(lines))


MUTATIONS: tuple[Mutation, ...] = (
    lost_lines,
    truncated,
    noise,
    huge_numbers,
    doubled_section,
    shuffled,
    without("a=fingerprint"),
    without("a=ice-ufrag"),
    without("a=ice-pwd"),
    without("a=setup"),
    without("a=mid"),
    without("a=group"),
    without("a=rtpmap"),
    without("m="),
    instead("a=ice-pwd", "a=ice-pwd:", "a=ice-pwd:x", "a=ice-pwd:" + "y" * 9_000),
    instead("a=ice-ufrag", "a=ice-ufrag:", "a=ice-ufrag:" + "z" * 9_000),
    instead("a=fingerprint", "a=fingerprint:sha-256 00:11", "a=fingerprint:md5", "a=fingerprint"),
    instead("a=setup", "a=setup:holdconn", "a=setup:", "a=setup:active", "a=setup:passive"),
    instead("a=group", "a=group:BUNDLE", "a=group:BUNDLE 9 9 9", "a=group:BUNDLE 1 0 1"),
    instead("m=audio", "m=audio", "m=audio x y z", "m=video 9 UDP/TLS/RTP/SAVPF 96", "m= "),
    instead("a=candidate", "a=candidate", "a=candidate:1 1 udp 1 host.example 9 typ host"),
    instead("a=sctp-port", "a=sctp-port:x", "a=sctp-port:99999999999"),
    instead("a=rtpmap", "a=rtpmap:x opus/48000/2", "a=rtpmap:96 opus/0/0", "a=rtpmap:96"),
    instead("a=sendrecv", "a=sendonly", "a=inactive", "a=recvonly", "a=sendrecv\r\na=inactive"),
)

BODIES: tuple[bytes, ...] = (
    b"",
    b"{",
    b"null",
    b"[]",
    b'"text"',
    b"\xff\xfe\x00",
    b"[" * 5_000,
    b'{"token": null, "sdp": null}',
    b'{"token": [], "sdp": {}}',
    b'{"token": "a", "sdp": 1e999}',
    b'{"sdp": "v=0", "token": ' + b"9" * 6_000 + b"}",
    b'{"line_id": {}, "candidate": []}',
    b'{"line_id": "\\ud800", "candidate": "\\ud800", "token": "\\ud800", "sdp": "\\ud800"}',
)

CANDIDATE_WORDS = (
    *("candidate:1", "1", "udp", "2130706431", "127.0.0.1", "50000", "typ", "host", "raddr"),
    *("rport", "-1", "9" * 40, "::1", "fe80::1%lo", "a.local", "host.example", "0.0.0.0", "tcp"),
    *("relay", "prflx", "srflx", "\0", "\ud800", "x" * 500, "tcptype", "active", "٣", ""),
)


async def test_a_thousand_malformed_requests(
    tell: Callable[[str], None], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    rnd = random.Random(7)
    async with rtc_site(rtc_config(connect_s=0.4), linger_s=60) as site:
        model = await _an_offer()
        tokens = [str((await site.session())["token"]) for _ in range(CALLS)]
        await offers(site, rnd, model, tokens, WARM_UP)
        await candidates(site, rnd, tokens[0], WARM_UP // 4)
        before = await settled(site)
        counts = await offers(site, rnd, model, tokens, OFFERS)
        counts += await candidates(site, rnd, tokens[0], CANDIDATES)
        after = await settled(site)
        told = ", ".join(f"{status}: {n}" for status, n in sorted(counts.items()))
        grown = after[0] - before[0]
        fds, tasks = after[1] - before[1], after[2] - before[2]
        tell(
            f"webrtc, {sum(counts.values())} malformed requests: {told};"
            f" RSS {grown:+.1f} MiB, descriptors {fds:+d}, tasks {tasks:+d}"
        )
        assert sum(counts.values()) >= 1_000
        assert all(status in (200, 204) or 400 <= status < 500 for status in counts), told
        assert counts[400] >= 300 and counts[200] + counts[204] >= 20, "both ways are walked"
        assert grown <= RSS_LIMIT_MIB
        assert fds <= 0 and tasks <= 0
        wrong = [r for r in caplog.records if r.name.startswith(("asyncio", "voxglove", "aiohttp"))]
        assert not wrong, [r.getMessage() for r in wrong]
        async with rtc_client(site) as page:
            page.peer.say({"t": "say", "text": "still well?"})
            await page.until_kind("heard")
            await page.until(lambda: page.loud_ms() >= 600)


async def offers(
    site: Site, rnd: random.Random, model: str, tokens: list[str], count: int
) -> Counter[int]:
    """Send `count` bad offers; how each was answered."""
    counts: Counter[int] = Counter()
    for number in range(count):
        if number % 10 == 9:
            body = rnd.choice(BODIES)
        else:
            lines = model.rstrip("\r\n").split("\r\n")
            for _ in range(rnd.choice((1, 1, 1, 2))):
                lines = rnd.choice(MUTATIONS)(rnd, lines) if len(lines) > 4 else lines
            sdp = "\r\n".join(lines) + "\r\n"
            body = json.dumps({"token": tokens[number % CALLS], "sdp": sdp}).encode()
        counts[await post(site, "offer", body)] += 1
    return counts


async def candidates(site: Site, rnd: random.Random, token: str, count: int) -> Counter[int]:
    """Send `count` bad candidates to a living line (it takes a hundred); how each was answered."""
    counts: Counter[int] = Counter()
    for start in range(0, count, 100):
        async with rtc_client(site, token) as page:
            for _ in range(min(100, count - start)):
                words = [rnd.choice(CANDIDATE_WORDS) for _ in range(rnd.randint(0, 14))]
                if rnd.random() < 0.5:  # a good one with one or two words changed
                    words = list(CANDIDATE_WORDS[:8])
                    for _ in range(rnd.randint(1, 2)):
                        words[rnd.randrange(8)] = rnd.choice(CANDIDATE_WORDS)
                body: dict[str, object] = {
                    "line_id": page.line_id,
                    "candidate": rnd.choice((" ".join(words), " ".join(words), 5, None, [])),
                    "sdpMid": rnd.choice(("0", "0", "9", "", "x" * 99, 0, None)),
                    "sdpMLineIndex": rnd.choice((0, 0, -1, 10**30, 1.5, "0", True, None)),
                }
                raw = rnd.choice(BODIES) if rnd.random() < 0.1 else json.dumps(body).encode()
                counts[await post(site, "candidate", raw)] += 1
    return counts


async def post(site: Site, door: str, body: bytes) -> int:
    async with site.http.post(f"{site.url}/rtc/{door}", data=body) as answer:
        text = await answer.text()
        if answer.status >= 400:
            assert {"code", "message"} <= json.loads(text).keys()
        return answer.status


async def settled(site: Site) -> tuple[float, int, int]:
    """RSS in MiB, descriptors and tasks, when every line is gone."""
    await eventually(lambda: site.server.metrics.value("rtc_lines_active") == 0)
    await asyncio.sleep(0.3)
    gc.collect()
    return rss_mib(), len(open_fds()), len(asyncio.all_tasks())


def rss_mib() -> float:
    found = re.search(r"VmRSS:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) / 1024


async def _an_offer() -> str:
    peer = Peer()
    sdp = await peer.offer()
    await peer.pc.close()
    return sdp
