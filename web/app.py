"""The HTTP application: every door of a server, and its life from listening to drained.

`create_app` is what tests and embedders mount; `serve` runs it until a signal. Owns the Server
object. Prints nothing: `announce` is told the address.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import socket as net
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from ..core.model import Model
from .auth import Signer, is_loopback
from .calls import CallFactory, CallRegistry, RegistryLimits
from .config import Config
from .connections import IDLE_S, SPARE, Connections
from .metrics import Metrics
from .routes.chat import CHATS, add_chat_route
from .routes.health import get_livez, get_metrics, get_readyz
from .routes.page import add_security_headers, get_page, get_static
from .routes.rtc import get_line, post_candidate, post_offer
from .routes.session import MAX_BODY, post_session
from .routes.sessions import add_session_routes
from .routes.ws import get_ws
from .rtc_lines import RtcLines
from .server import SERVER, Server, problem, refuse_host
from .stores import Stores
from .tls import server_context
from .watchdog import Held, Watchdog

log = logging.getLogger(__name__)

SHUTDOWN_S = 5.0
"""How long aiohttp waits for handlers after the calls are gone."""


LINGERING_S = 2.0
"""How long the rest of a refused body is read, so that the client gets to see the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Behind:
    """What the doors of programs stand before: `stores` behind `/sessions`, a `model` for each
    answer of `/chat`. A door with nothing behind it answers 404."""

    stores: Stores | None = None
    model: Callable[[], Model] | None = None


def create_app(config: Config, build: CallFactory, behind: Behind | None = None) -> web.Application:
    """The application of `config`. `build` makes the calls: `build.call_factory(shared)`."""
    behind = behind or Behind()
    server = _server(config, build)
    app = web.Application(client_max_size=MAX_BODY, middlewares=[_plain_errors])
    app[SERVER] = server
    app.cleanup_ctx.append(_background)
    app.on_shutdown.append(_end_calls)
    app.on_response_prepare.append(add_security_headers)
    app.router.add_get("/", get_page)
    app.router.add_get("/static/{name}", get_static)
    app.router.add_post("/session", post_session)
    app.router.add_get("/ws", get_ws)
    app.router.add_post("/rtc/offer", post_offer)
    app.router.add_post("/rtc/candidate", post_candidate)
    app.router.add_get("/rtc/lines/{line_id}", get_line)
    add_session_routes(app, behind.stores)
    add_chat_route(app, behind.model, config.server.max_chats)
    server.metrics.gauge("chats_active", lambda: app[CHATS].active)
    app.router.add_get("/livez", get_livez)
    app.router.add_get("/readyz", get_readyz)
    app.router.add_get("/metrics", get_metrics)
    return app


async def serve(
    config: Config,
    announce: Callable[[str], None],
    *,
    build: CallFactory,
    behind: Behind | None = None,
    state_folder: Path | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT, then drain. A second signal ends the drain at once.

    Raises ConfigError when the address or the certificate cannot be used.
    """
    runner = web.AppRunner(
        create_app(config, build, behind),
        access_log=None,
        shutdown_timeout=SHUTDOWN_S,
        keepalive_timeout=IDLE_S,
        lingering_time=LINGERING_S,
    )
    folder = state_folder or Path.home() / ".local" / "state" / "voxglove"
    context = server_context(config.server.tls, folder / "tls", own_names(config.server.host))
    stop, force = asyncio.Event(), asyncio.Event()
    await runner.setup()
    try:
        site = web.TCPSite(runner, config.server.host, config.server.port, ssl_context=context)
        await site.start()
        _on_signals(lambda: force.set() if stop.is_set() else stop.set())
        for url in urls(config, runner.addresses, secure=context is not None):
            announce(url)
        await _until_stopped(runner, config, stop, force)
    finally:
        gc.unfreeze()
        await runner.cleanup()


async def _until_stopped(
    runner: web.AppRunner, config: Config, stop: asyncio.Event, force: asyncio.Event
) -> None:
    """Wait for the first signal, and drain; silent connections are swept out meanwhile."""
    server = runner.app[SERVER]
    async with asyncio.TaskGroup() as group:
        sweeping = group.create_task(
            server.connections.run(lambda: runner.server.connections if runner.server else ()),
            name="connections",
        )
        # Only now: the address was announced as soon as it could be.
        warming = group.create_task(_warm(server), name="webrtc import")
        await stop.wait()
        warming.cancel()
        await _drain(server, config.server.drain_s, force)
        sweeping.cancel()


async def _warm(server: Server) -> None:
    """Import what calls need later. What is there then stays to the end: the collector need not
    walk it, which would hold every call for 40 ms now and then (5 ms without it)."""
    await server.lines.warm()
    gc.freeze()


def urls(config: Config, addresses: list[object], *, secure: bool) -> list[str]:
    """What to open in a browser, the best one first."""
    scheme = "https" if secure else "http"
    found = []
    for address in addresses:
        port = address[1] if isinstance(address, tuple) else config.server.port
        host = config.server.host
        if host in ("0.0.0.0", "::", ""):
            host = "localhost"
        shown = f"[{host}]" if ":" in host else host
        found.append(f"{scheme}://{shown}:{port}/")
    return list(dict.fromkeys(found))


def own_names(host: str) -> list[str]:
    """Names and addresses under which a browser may reach this machine."""
    names = ["localhost", "127.0.0.1"]
    if not is_loopback(host):
        names.append(net.gethostname())
        with suppress(OSError):
            found = net.getaddrinfo(net.gethostname(), None)
            names += [str(info[4][0]).partition("%")[0] for info in found]
        if host not in ("0.0.0.0", "::", ""):
            names.append(host)
    return list(dict.fromkeys(names))


def _server(config: Config, build: CallFactory) -> Server:
    metrics = Metrics()
    watchdog = Watchdog(lambda held: _count_held(metrics, held))
    signer = Signer.of(config.server.secret.reveal() or None)
    registry = CallRegistry(
        build,
        signer=signer,
        metrics=metrics,
        limits=RegistryLimits(
            max_calls=config.server.max_calls,
            call_s=config.call.max_s,
            developer=config.server.for_developers,
        ),
        lagging=lambda: watchdog.lagging,
    )
    keys = tuple(key.reveal() for key in config.server.api_keys)
    connections = Connections(config.server.max_calls + SPARE)
    lines = RtcLines(config, registry, metrics)
    server = Server(
        config, signer, registry, metrics, watchdog, keys, connections=connections, lines=lines
    )
    metrics.gauge("loop_lag_seconds", lambda: watchdog.lag_s)
    metrics.gauge("sockets_active", lambda: server.open_sockets)
    metrics.gauge("tasks", lambda: len(asyncio.all_tasks()))
    return server


def _count_held(metrics: Metrics, held: Held) -> None:
    metrics.count("loop_held_total")


async def _background(app: web.Application) -> AsyncIterator[None]:
    """Owns the server's tasks: the watchdog here, WebRTC lines and calls in their own groups."""
    server = app[SERVER]
    async with asyncio.TaskGroup() as group:
        watching = group.create_task(server.watchdog.run(), name="watchdog")
        async with server.lines.running(), server.registry.running():
            yield
        watching.cancel()


async def _end_calls(app: web.Application) -> None:
    """`on_shutdown`: calls and answers end before aiohttp waits for their connections."""
    app[CHATS].end_all()
    await app[SERVER].registry.drain(0)


async def _drain(server: Server, within_s: float, force: asyncio.Event) -> None:
    """Drain, or stop at the second signal."""
    async with asyncio.TaskGroup() as group:
        draining = group.create_task(server.registry.drain(within_s), name="drain")
        forced = group.create_task(force.wait(), name="second signal")
        await asyncio.wait((draining, forced), return_when=asyncio.FIRST_COMPLETED)
        draining.cancel()
        forced.cancel()


def _on_signals(stop: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        with suppress(NotImplementedError):  # Windows: Ctrl-C raises KeyboardInterrupt instead
            loop.add_signal_handler(number, stop)


@web.middleware
async def _plain_errors(
    request: web.Request, handler: Callable[[web.Request], object]
) -> web.StreamResponse:
    """Host check for every door, and JSON instead of HTML for what aiohttp refuses."""
    request.app[SERVER].connections.asked(request)
    refused = refuse_host(request, request.app[SERVER])
    if refused is not None:
        return refused
    try:
        return await handler(request)  # type: ignore[misc, no-any-return]
    except web.HTTPException as error:
        if error.status < 400:
            raise
        found = problem(error.status, error.reason.lower().replace(" ", "_"), error.reason)
        if "Allow" in error.headers:
            found.headers["Allow"] = error.headers["Allow"]
        return found
    except ConnectionResetError:
        log.debug("client went away", extra={"path": request.path})
        raise
    except web.RequestPayloadError:
        return problem(400, "bad_body", "the body does not match its headers")
    except Exception:
        log.exception("request failed", extra={"path": request.path})
        return problem(500, "internal", "this request failed; see the server's log")
