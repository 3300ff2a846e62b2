"""The server as a process: it listens, answers, and stops without losing what it took."""

import asyncio
import gc
import logging
import os
import signal
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import cast

import torch
import uvicorn

from regard.errors import SettingError
from regard.inference import Predictor
from regard.server.app import make_app
from regard.server.connections import Protocol, close_idle, hold_shut, stand_before
from regard.server.guard import loopback_hosts
from regard.server.limits import Limits
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
    predictors: Mapping[str, Predictor],
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str | None = None,
    limits: Limits | None = None,
    ready: Callable[[str], None] = lambda address: None,
) -> None:
    """Serve runs until SIGTERM or Ctrl-C; a second Ctrl-C does not wait for answers.

    Args:
        predictors: The models by name.
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
            _serve(predictors, listener, host, token, limits or Limits(), lambda: ready(address))
        )


async def _serve(
    predictors: Mapping[str, Predictor],
    listener: socket.socket,
    host: str,
    token: str | None,
    limits: Limits,
    ready: Callable[[], None],
) -> None:
    service = Service(predictors, limits)
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

    def told(number: int) -> None:
        if stop.is_set() and number == signal.SIGINT:
            server.force_exit = True
            raise KeyboardInterrupt
        stop.set()

    # After uvicorn has set its own, which would close the door before the work is done.
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, told, number)
    return stop


async def _wind_up(service: Service, limits: Limits) -> None:
    """Answer what was accepted; whoever comes meanwhile is told that the server stops."""
    log.info("stopping: %d requests are being answered", service.active)
    service.is_stopping = True
    loop = asyncio.get_running_loop()
    until = loop.time() + limits.patience + limits.timeout + _GRACE
    while service.active and loop.time() < until:
        await asyncio.sleep(0.02)
    await asyncio.sleep(_FAREWELL)
    await service.close()


async def _close_door(server: uvicorn.Server, listener: socket.socket) -> None:
    """Let nobody in any more, and hear everyone who has come in.

    To close a listening socket breaks the connections that stand before it, and uvicorn drops
    those that are in and were not heard yet.
    """
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


def _listener(host: str, port: int) -> socket.socket:
    if not 0 <= port <= 65535:  # else the system takes another one, without a word
        raise SettingError(f"port must be between 0 and 65535; got {port}.")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
        family, kind, protocol, _, address = found[0]
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
