"""The server as a process: it listens, answers, and stops without losing what it took."""

import asyncio
import ctypes
import gc
import logging
import os
import select
import signal
import socket
import struct
import sys
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import Any, cast

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
# Seconds for which those who come while the server stops are told so, once it has no more to do.
_FAREWELL = 0.3
# Seconds in which those who stand before the closed door come in; and after which someone who came
# in and has asked nothing is no longer waited for.
_ENTERING, _UNHEARD = 0.05, 2.0
# Seconds after its own limits at which a stop no longer waits.
_GRACE = 5.0


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
        token: What clients must send; None asks nobody.
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
    # What is there now stays: else each search for garbage goes through all of torch.
    gc.collect()
    gc.freeze()
    with suppress(KeyboardInterrupt):
        asyncio.run(
            _serve(served, listener, host, token, limits or Limits(), lambda: ready(address))
        )


async def _serve(
    served: Mapping[str, Predictor | InUse],
    listener: socket.socket,
    host: str,
    token: str | None,
    limits: Limits,
    ready: Callable[[], None],
) -> None:
    service = Service(served, limits)
    hosts = loopback_hosts(host)
    config = uvicorn.Config(
        make_app(service, token=token, hosts=None if hosts is None else set(hosts)),
        http=Protocol,
        ws="none",
        loop="asyncio",
        lifespan="off",
        log_config=None,
        log_level="error",  # else every request that is no HTTP is a line
        access_log=False,
        server_header=False,
        backlog=_BACKLOG,
        timeout_keep_alive=max(1, round(limits.patience)),
        timeout_graceful_shutdown=max(1, round(_GRACE)),
    )
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    while not server.started and not serving.done():
        await asyncio.sleep(0.01)
    sweeping = asyncio.create_task(close_idle(server.server_state.connections, limits.patience))
    stop = _stop_signals(server)
    ready()
    await asyncio.wait({serving, asyncio.ensure_future(stop.wait())}, return_when="FIRST_COMPLETED")
    await _wind_up(service, limits)
    await _close_door(server, listener)
    server.should_exit = True
    await serving
    sweeping.cancel()


def _stop_signals(server: uvicorn.Server) -> asyncio.Event:
    """Set at the first SIGTERM or Ctrl-C; at the next, the server leaves at once."""
    stop = asyncio.Event()

    def receive(number: int) -> None:
        if stop.is_set() and number == signal.SIGINT:
            server.force_exit = True
            raise KeyboardInterrupt
        stop.set()

    # After uvicorn has set its own, which would close the door before the work is done.
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, receive, number)
    return stop


async def _wind_up(service: Service, limits: Limits) -> None:
    """Answer the accepted requests; whoever comes meanwhile is told that the server stops."""
    log.info("stopping: %d requests are being answered", service.active)
    service.is_stopping = True
    loop = asyncio.get_running_loop()
    until = loop.time() + limits.patience + limits.timeout + _GRACE
    while service.active and loop.time() < until:
        await asyncio.sleep(0.02)
    await asyncio.sleep(_FAREWELL)
    await service.close()


async def _close_door(server: uvicorn.Server, listener: socket.socket) -> None:
    """Let nobody in any more, and hear everyone who has come in."""
    hold_shut(listener)
    await asyncio.sleep(_ENTERING)
    until = asyncio.get_running_loop().time() + _UNHEARD
    while stand_before(listener) and asyncio.get_running_loop().time() < until:
        await asyncio.sleep(_ENTERING)
    for door in server.servers:
        door.close()
    loop = asyncio.get_running_loop()
    closed, connections = loop.time(), cast("set[Protocol]", server.server_state.connections)
    while (waited := loop.time() - closed) < _UNHEARD:
        is_unheard = any(each.cycle is None for each in connections)
        if waited >= _FAREWELL and not is_unheard:
            return
        await asyncio.sleep(0.02)


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


# Bytes a second at which an answer must at least be taken.
_SLOWEST = 1024


# Linux's name for a filter of packets, and one that drops whatever asks for a connection: what each
# instruction does, how many to skip if that is true and if not, and its operand. To drop all would
# break those that are half open: their clients take them for open, and are reset once the listener
# is closed.
_ATTACH_FILTER = 26
_LOAD_BYTE, _IF_ANY_BIT, _RETURN = 0x30, 0x45, 0x06
_FLAGS, _SYN, _NOTHING, _ALL = 13, 0x02, 0, 0xFFFFFFFF
_NO_NEWCOMERS = (
    (_LOAD_BYTE, 0, 0, _FLAGS),
    (_IF_ANY_BIT, 0, 1, _SYN),
    (_RETURN, 0, 0, _NOTHING),
    (_RETURN, 0, 0, _ALL),
)


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


def hold_shut(listener: socket.socket) -> None:
    """Drop new connections to a listening socket; those that stand before it can come in."""
    if not sys.platform.startswith("linux"):
        return
    code = b"".join(struct.pack("HBBI", *each) for each in _NO_NEWCOMERS)
    drop = ctypes.create_string_buffer(code)
    program = struct.pack("HP", len(_NO_NEWCOMERS), ctypes.addressof(drop))
    with suppress(OSError):  # a container may forbid it: then the door is closed at once
        listener.setsockopt(socket.SOL_SOCKET, _ATTACH_FILTER, program)


def stand_before(listener: socket.socket) -> bool:
    """Whether there are connections that wait to be let in."""
    return bool(select.select([listener], [], [], 0)[0])


async def close_idle(connections: Collection[Any], patience: float) -> None:
    """Close connections that were idle or stuck for so long, else a few thousand leave no room."""
    loop = asyncio.get_running_loop()
    # What each was doing when it last got on: the answer it gave last, and the bytes not taken.
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
