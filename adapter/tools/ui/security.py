"""Who may read the page: programs of this machine that know its key, and no other site.

The server listens on loopback. Against other users of the machine, it asks for a key, which the
address that ``ui`` prints contains, and which becomes a cookie. Against pages of other sites, it
checks Host (a name that leads to this machine by DNS rebinding), Origin and Sec-Fetch-Site.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterable
from typing import Final, NamedTuple
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_METHODS: Final = ("GET", "HEAD")
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS: Final = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
_ADDRESS: Final = "open the address that `gpu-metrics-adapter ui` printed"
_MOST_ONCE: Final = 8


class Refusal(NamedTuple):
    """Why a request is rejected, in one sentence."""

    status: int
    text: str


class Access:
    """The key of the page, and the names of its address."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.token: Final = secrets.token_urlsafe(24)
        self.cookie: Final = f"gma_ui_{port}"
        names = ("127.0.0.1", "localhost")
        self.hosts: Final = frozenset(f"{name}:{port}" for name in names) | (
            frozenset(names) if port == 80 else frozenset()
        )
        self._once: list[str] = []

    @property
    def url(self) -> str:
        """The address with its key."""
        return self._url(self.token)

    def url_once(self) -> str:
        """Return an address whose key opens the page once.

        Other users of the machine can see the command line with which a browser is started.
        """
        self._once = [*self._once[1 - _MOST_ONCE :], secrets.token_urlsafe(24)]
        return self._url(self._once[-1])

    def opens(self, token: str) -> bool:
        """Return whether a key opens the page. A key for once opens it no more."""
        for key in [key for key in self._once if _is_same_key(key, token)]:
            self._once.remove(key)
            return True
        return _is_same_key(self.token, token)

    def knows(self, cookies: Iterable[str]) -> bool:
        """Return whether a Cookie header has the key."""
        pairs = (pair.strip().partition("=") for line in cookies for pair in line.split(";"))
        return any(
            name == self.cookie and _is_same_key(self.token, value) for name, _, value in pairs
        )

    def _url(self, token: str) -> str:
        return f"http://127.0.0.1:{self.port}/?token={token}"


def _is_same_key(key: str, token: str) -> bool:
    return hmac.compare_digest(key.encode(), token.encode("utf-8", "replace"))


class Guard:
    """Rejects requests from elsewhere, and adds the headers that a browser enforces.

    Args:
        app: what answers the other requests.
        access: the key and the address.
    """

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            return
        no_store = scope["path"].startswith("/api/")

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
                headers["cache-control"] = "no-store" if no_store else "no-cache"
            await send(message)

        answer = self._answer(scope)
        await (answer or self._app)(scope, receive, send_with_headers)

    def _answer(self, scope: Scope) -> Response | None:
        """Return the answer if the app does not give it."""
        headers = Headers(scope=scope)
        refusal = self._find_refusal(scope["method"], headers)
        if refusal is None:
            token = _token(scope)
            if token is not None:
                return self._open(token)
            if self._access.knows(headers.getlist("cookie")):
                return None
            refusal = Refusal(403, f"This page needs its key: {_ADDRESS}.")
        allow = {"allow": ", ".join(_METHODS)} if refusal.status == 405 else None
        return PlainTextResponse(f"{refusal.text}\n", refusal.status, allow)

    def _find_refusal(self, method: str, headers: Headers) -> Refusal | None:
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self._access.hosts:
            name = f"127.0.0.1:{self._access.port}"
            return Refusal(
                403, f"This page answers at {name} only; a forwarded port needs the same number."
            )
        own_origins = {f"http://{host}" for host in self._access.hosts}
        if any(origin.lower() not in own_origins for origin in headers.getlist("origin")):
            return Refusal(403, "This page does not answer other sites.")
        if any(site not in ("same-origin", "none") for site in headers.getlist("sec-fetch-site")):
            return Refusal(
                403, f"This page does not open by a link of another page: paste it, or {_ADDRESS}."
            )
        if method not in _METHODS:
            return Refusal(405, "This page only reads.")
        return None

    def _open(self, token: str) -> Response:
        if not self._access.opens(token):
            return PlainTextResponse(
                f"This key is not the page's, or was used: {_ADDRESS} last.\n", 403
            )
        answer = RedirectResponse("/", 303)
        answer.set_cookie(
            self._access.cookie, self._access.token, path="/", httponly=True, samesite="strict"
        )
        return answer


def _token(scope: Scope) -> str | None:
    """Return the key of an address; None for another address."""
    if scope["path"] != "/":
        return None
    try:
        query = parse_qs(scope["query_string"].decode("latin-1"), max_num_fields=8)
    except ValueError:
        return None
    return next(iter(query.get("token", ())), None)
