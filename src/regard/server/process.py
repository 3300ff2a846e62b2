"""The server as a process: it listens, answers, and stops without losing accepted requests."""

import asyncio
import gc
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from types import FrameType
from typing import Any

import h11
import torch
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from regard.errors import SettingError
from regard.inference import Predictor
from regard.inference.use import InUse
from regard.server.app import make_app
from regard.server.guard import loopback_hosts
from regard.server.problems import Problem
from regard.server.requests import Limits
from regard.server.service import Service

log = logging.getLogger("regard.server")

_BACKLOG = 2048
# Seconds for which clients are still told that the server stops, once it has no more to do.
_FAREWELL = 0.3
# Seconds after its own limits at which a stop no longer waits.
_GRACE = 5.0
# Bytes a second at which an answer must at least be taken.
_SLOWEST = 1024


def serve(
    served: Mapping[str, Predictor | InUse],
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str | None = None,
    limits: Limits | None = None,
    ready: Callable[[str], None] = lambda address: None,
) -> None:
    """Serve runs until SIGTERM or Ctrl-C; a second Ctrl-C does not wait for answers.

    Args:
        served: Runs and Hugging Face models by name.
        host: Where to listen.
        port: 0 takes a free one.
        token: Secret that clients must send; None asks nobody.
        limits: How much is taken on; None takes the defaults.
        ready: Told the address once requests are taken.

    Raises:
        SettingError: The address cannot be listened at.

    Example:
        >>> serve({}, port=70_000)
        Traceback (most recent call last):
        regard.errors.SettingError: port must be between 0 and 65535; got 70000.
    """
    listener = _listener(host, port)
    name = f"[{host}]" if ":" in host else host
    address = f"http://{name}:{listener.getsockname()[1]}"
    # One core is left to the requests themselves.
    torch.set_num_threads(max(1, torch.get_num_threads() - 1))
    # Present objects stay: else each search for garbage goes through all of torch.
    gc.collect()
    gc.freeze()

    async def run() -> None:
        service = Service(served, limits or Limits())
        hosts = loopback_hosts(host)
        app = make_app(service, token=token, hosts=None if hosts is None else set(hosts))
        config = uvicorn.Config(
            app,
            http=Protocol,
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="error",  # else every request that is no HTTP is a line
            access_log=False,
            server_header=False,
            backlog=_BACKLOG,
            timeout_keep_alive=max(1, round(service.limits.patience)),
            timeout_graceful_shutdown=max(1, round(_GRACE)),
        )
        await _Server(config, service, lambda: ready(address)).serve([listener])

    with suppress(KeyboardInterrupt):
        asyncio.run(run())


class _Server(uvicorn.Server):
    """Uvicorn's server, which listens until the accepted requests are answered."""

    def __init__(self, config: uvicorn.Config, service: Service, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._service, self._ready = service, ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and say so."""
        await super().startup(sockets)
        connections = self.server_state.connections
        self._closing = asyncio.create_task(close_idle(connections, self._service.limits.patience))
        self._ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop in order; at once by a second Ctrl-C."""
        if self.should_exit and sig == signal.SIGINT:
            raise KeyboardInterrupt
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Answer the accepted requests; whoever comes meanwhile is told that the server stops."""
        service, now = self._service, asyncio.get_running_loop().time
        log.info("stopping: %d requests are being answered", service.active)
        service.is_stopping = True
        until = now() + service.limits.patience + service.limits.timeout + _GRACE
        while service.active and now() < until:
            await asyncio.sleep(0.02)
        await asyncio.sleep(_FAREWELL)
        await service.close()
        await super().shutdown(sockets)
        self._closing.cancel()


def check_address(host: str, port: int) -> None:
    """Raise SettingError if nothing can listen there now."""
    _listener(host, port).close()


def _listener(host: str, port: int) -> socket.socket:
    if not 0 <= port <= 65535:  # else the system takes another one, without a word
        raise SettingError(f"port must be between 0 and 65535; got {port}.")
    try:
        addresses = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP
        )
        family, kind, protocol, _, address = addresses[0]
        # With its protocol named: else asyncio leaves Nagle's algorithm on, 40 ms for each answer.
        listener = socket.socket(family, kind, protocol)
        try:
            if os.name == "posix":
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(_BACKLOG)
        except BaseException:
            listener.close()
            raise
    except OSError as error:
        raise SettingError(
            f"--host and --port must be an address to listen at; got {host}:{port}, and "
            f"{(error.strerror or str(error)).lower()}. Choose another --port, or 0 for a free one."
        ) from None
    return listener


class Protocol(H11Protocol):
    """HTTP/1.1 as uvicorn speaks it; other bytes are refused in the form of all refusals."""

    def send_400_response(self, msg: str) -> None:
        """Refuse unreadable bytes, saying why, and close."""
        problem = unreadable(sys.exception())
        if self.transport.is_closing():
            return
        if self.conn.our_state is h11.SEND_RESPONSE or self.conn.our_state is h11.IDLE:
            body = problem.body()
            head = {"content-type": "application/json", "content-length": str(len(body))}
            response = h11.Response(
                status_code=problem.status,
                headers=[*head.items(), ("connection", "close")],
                reason=b"",
            )
            for event in (response, h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


def unreadable(error: BaseException | None) -> Problem:
    """The error answer for bytes that are no HTTP request."""
    reason = str(error or "")
    if "Host:" in reason:
        got = "none" if reason.startswith("Missing") else "several"
        return Problem(
            400,
            f"Host must be given once in a request; got {got}. "
            "Send Host: and the name of the server.",
        )
    reason = f"{reason[0].lower()}{reason[1:]}" if reason else "something else"
    return Problem(400, f"request must be HTTP/1.1; got {reason}.")


async def close_idle(connections: Collection[Any], patience: float) -> None:
    """Close connections that were idle or stuck for so long, else a few thousand leave no room."""
    loop = asyncio.get_running_loop()
    # Each connection's last progress: its last answer, the bytes not taken, and the time.
    idle: dict[object, tuple[object, int, float]] = {}
    while True:
        await asyncio.sleep(patience / 4)
        now = loop.time()
        still_idle = {}
        for connection in list(connections):
            cycle = connection.cycle
            is_answering = cycle is not None and not cycle.response_complete
            left = connection.transport.get_write_buffer_size()
            if is_answering and not left:
                continue
            before, most, since = idle.get(connection, (None, 0, now))
            taken = most - left
            is_stuck = before is cycle and 0 <= taken < max(1, _SLOWEST * (now - since))
            still_idle[connection] = (cycle, most, since) if is_stuck else (cycle, left, now)
            if now - still_idle[connection][2] >= patience:
                connection.transport.abort()
        idle = still_idle
