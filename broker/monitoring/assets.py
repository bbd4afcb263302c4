"""The page itself: the files of the folder ``page``, as they are, read once when serving begins.

A browser runs and loads nothing but these files. The policy that goes with every answer
(``HEADERS``) says so; a text from outside, the name of a type say, is shown as text.
"""

from __future__ import annotations

from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

KINDS = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = [
    ("Content-Security-Policy", POLICY),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
]


def asset_routes() -> list[Route]:
    """The files by their paths; ``index.html`` is at ``/``."""
    folder = files("broker.monitoring") / "page"
    found = [one for one in folder.iterdir() if one.name.rpartition(".")[2] in KINDS]
    return [
        _route(f"/{'' if one.name == 'index.html' else one.name}", one.name, one.read_bytes())
        for one in found
    ]


def _route(path: str, name: str, content: bytes) -> Route:
    async def answer(request: Request) -> Response:
        headers = {"Cache-Control": "no-cache"}
        return Response(content, 200, headers, KINDS[name.rpartition(".")[2]])

    return Route(path, answer)
