"""Middleware before the routes: who may ask, how much, how slowly; and every refusal's form.

Nothing leaves without its headers, and nothing that goes wrong inside is told to a client otherwise
than as a ``Problem``.
"""

import asyncio
import hmac
import logging
import re
import time
from collections.abc import Collection, Iterable
from dataclasses import KW_ONLY, dataclass, replace
from ipaddress import ip_address

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from regard.server.problems import Problem, problem_of, quoted
from regard.server.service import ClientGoneError, Service, stopping

log = logging.getLogger("regard.server")

# Nothing from elsewhere, nothing inline, no frames around the page.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
]

# A name or an address, in brackets where it has colons itself; and a port.
_HOST = re.compile(r"(\[[^\[\]]*\]|[^\[\]:]*)(?::[0-9]*)?")
_VERSIONS = ("1.0", "1.1")

# Whatever else is asked for is counted under one name, so that the counts stay few.
_METHODS = frozenset({"GET", "POST", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH"})
# Status counted for a client that went away before its answer.
GONE = 499

# Bytes and seconds of a refused body that are still read, so that the client gets to see why.
_LINGER_BYTES = 8 << 20
_LINGER_SECONDS = 2.0


@dataclass(eq=False)
class Guard:
    """Middleware that checks a request before it reaches the routes, and counts it."""

    app: ASGIApp
    service: Service
    _: KW_ONLY
    routes: Collection[str]
    open_paths: Collection[str] = ()
    token: str | None = None
    hosts: Collection[str] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began = time.perf_counter()
        exchange = _Exchange(scope, receive, send)
        self.service.active += 1
        try:
            await self._answer(exchange)
        except ClientGoneError:
            exchange.status = str(GONE)
        finally:
            self.service.active -= 1
            path, method = scope["path"], scope["method"]
            route = path if path in self.routes else "other"
            method = method if method in _METHODS else "other"
            meters = self.service.meters
            meters.requests.labels(route, method, exchange.status).inc()
            meters.seconds.labels(route).observe(time.perf_counter() - began)

    async def _answer(self, exchange: "_Exchange") -> None:
        try:
            self._check(exchange)
            await exchange.read_body(self.service.limits.max_body, self.service.limits.patience)
            scope = exchange.scope
            if scope["method"] == "HEAD":  # as GET; uvicorn sends the answer without its body
                scope = {**scope, "method": "GET"}
            await self.app(scope, exchange.receive, exchange.send)
        except (ClientGoneError, asyncio.CancelledError):
            raise
        except Exception as error:  # whatever it is, the client gets an answer and no traceback
            if not exchange.has_begun:
                await exchange.refuse(problem_of(error))
            elif not exchange.is_done:
                log.exception("an answer to %s broke off", quoted(exchange.scope["path"]))
                raise  # the connection is closed, so that nobody takes half for all
            # Otherwise the framework raises again an error that it has answered.

    def _check(self, exchange: "_Exchange") -> None:
        """Check the head of a request, before the body is read."""
        path = exchange.scope["path"]
        if exchange.scope["http_version"] not in _VERSIONS:
            raise Problem(
                505, f"request must be HTTP/1.1; got HTTP/{exchange.scope['http_version']}."
            )
        if exchange.header(b"transfer-encoding") and exchange.header(b"content-length"):
            raise Problem(
                400, "body must have one length; got both Content-Length and Transfer-Encoding."
            )
        host = exchange.header(b"host").decode("latin-1")
        if self.hosts is not None and _name(host) not in self.hosts:
            raise Problem(
                421,
                "Host must be a name of this machine's loopback, such as localhost; got "
                f"{quoted(host) if host else 'none'}. "
                "To serve others, start with --host and --token.",
            )
        if self.service.is_stopping and not path.startswith("/health"):
            raise stopping()
        if self.token is not None and path not in self.open_paths:
            self._check_token(exchange.header(b"authorization"))
        if exchange.scope["method"] == "POST":
            kind = exchange.header(b"content-type").split(b";")[0].strip().lower()
            if kind != b"application/json":
                raise Problem(
                    415,
                    f"Content-Type must be application/json; got {quoted(kind.decode('latin-1'))}.",
                )
            packed = exchange.header(b"content-encoding").strip().lower()
            if packed not in (b"", b"identity"):
                raise Problem(
                    415,
                    "body must be sent as it is; got Content-Encoding "
                    f"{quoted(packed.decode('latin-1'))}.",
                )

    def _check_token(self, header: bytes) -> None:
        scheme, _, token = header.partition(b" ")
        # Compared in a time that does not depend on how much of it is right.
        is_right = hmac.compare_digest(token.strip(), (self.token or "").encode())
        if scheme.lower() != b"bearer" or not is_right:
            got = "another one" if token else "none"
            raise Problem(
                401,
                f"token must be the server's; got {got}. Whoever started the server has it: type "
                "it into the page, or send it with each request as Authorization: Bearer TOKEN.",
                headers={"WWW-Authenticate": "Bearer"},
            )


class _Exchange:
    """One request and its answer: the body is read once, and every answer gets the headers."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope = scope
        self.status = "none"
        self.has_begun = False
        self.is_done = False
        self._receive = receive
        self._send = send
        self._is_read = False
        self._body: bytes | None = None

    def header(self, name: bytes) -> bytes:
        """The value of a header, empty if there is none."""
        return next((value for key, value in self.scope["headers"] if key == name), b"")

    async def read_body(self, most: int, patience: float) -> None:
        """Read the body, within bounds of size and time."""
        length = self.header(b"content-length")
        if length.isdigit() and (len(length) > 18 or int(length) > most):
            raise _too_large(most, f"{int(length[:18]):,}{'…' if len(length) > 18 else ''}")
        parts, size = [], 0
        try:
            async with asyncio.timeout(patience):
                while not self._is_read:
                    part = await self._part()
                    parts.append(part)
                    size += len(part)
                    if size > most:
                        raise _too_large(most, "more")
        except TimeoutError:
            raise Problem(
                408,
                f"request must arrive within {patience:g} s; got {size:,} bytes of it.",
                headers={"Connection": "close"},
            ) from None
        self._body = b"".join(parts)

    async def receive(self) -> Message:
        """The body in one piece; after that, whatever comes of the client, such as its leaving."""
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        return await self._receive()

    async def send(self, message: Message) -> None:
        """Send on, with the headers that every answer has."""
        if message["type"] == "http.response.start":
            self.has_begun = True
            self.status = str(message["status"])
            message = {**message, "headers": [*message.get("headers", []), *_HEADERS]}
        else:
            self.is_done = not message.get("more_body", False)
        await self._send(message)

    async def refuse(self, problem: Problem) -> None:
        """Say why there is no answer; a client still sending is read away first, to see it."""
        if not self._is_read:
            problem = replace(problem, headers={**problem.headers, "Connection": "close"})
        body = problem.body()
        headers = {"Content-Type": "application/json", "Content-Length": str(len(body))}
        raw = [
            (key.lower().encode(), value.encode())
            for key, value in {**problem.headers, **headers}.items()
        ]
        await self.send({"type": "http.response.start", "status": problem.status, "headers": raw})
        await self.send({"type": "http.response.body", "body": body, "more_body": True})
        await self._read_away()
        await self.send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _read_away(self) -> None:
        size = 0
        try:
            async with asyncio.timeout(_LINGER_SECONDS):
                while not self._is_read and size < _LINGER_BYTES:
                    size += len(await self._part())
        except TimeoutError:
            return

    async def _part(self) -> bytes:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        self._is_read = not message.get("more_body", False)
        part: bytes = message.get("body", b"")
        return part


def _too_large(most: int, got: str) -> Problem:
    return Problem(413, f"body must be at most {most:,} bytes; got {got}. Send it in parts.")


def _name(host: str) -> str:
    """The host of a ``Host`` header, without its port; all of it where it is no host."""
    parts = _HOST.fullmatch(host.lower())
    return parts[1] if parts else host


def loopback_hosts(host: str) -> Iterable[str] | None:
    """Names under which a server at ``host`` may be asked for; None if it is not on loopback."""
    names = {"localhost", "127.0.0.1", "[::1]"}
    try:
        is_loopback = host == "localhost" or ip_address(host).is_loopback
    except ValueError:  # a name, whatever it begins with
        is_loopback = False
    if not is_loopback:
        return None
    return names | ({host} if ":" not in host else set())
