"""The page and its files: a closed list out of static/, sent with the strictest headers."""

from __future__ import annotations

from pathlib import Path

from aiohttp import web

STATIC = Path(__file__).parents[1] / "static"

CONTENT_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "worker-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src 'self' data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
"""Peer connections, media elements with a `srcObject`, and downloads of a Blob need no entry (tried
in Chromium 156); a Blob's address in an image or an audio element would."""

SECURITY_HEADERS = {
    "Content-Security-Policy": CONTENT_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "microphone=(self), camera=(self), geolocation=()",
}

CONTENT_TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}


async def get_page(request: web.Request) -> web.StreamResponse:
    """The page."""
    return _file(STATIC / "index.html")


async def get_static(request: web.Request) -> web.StreamResponse:
    """One of its files; 404 for anything that does not lie right in static/."""
    name = request.match_info["name"]
    if name not in {path.name for path in STATIC.iterdir() if path.suffix in CONTENT_TYPES}:
        raise web.HTTPNotFound
    return _file(STATIC / name)


async def add_security_headers(request: web.Request, response: web.StreamResponse) -> None:
    """`on_response_prepare` signal: the same headers on every answer."""
    for name, value in SECURITY_HEADERS.items():
        response.headers.setdefault(name, value)


def _file(path: Path) -> web.FileResponse:
    kind = f"{CONTENT_TYPES[path.suffix]}; charset=utf-8"
    return web.FileResponse(path, headers={"Content-Type": kind, "Cache-Control": "no-cache"})
