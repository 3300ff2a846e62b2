"""Connections: what is no HTTP, and clients that open one and send nothing."""

import asyncio
import ctypes
import select
import socket
import struct
import sys
from collections.abc import Collection
from contextlib import suppress
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from regard.server.problems import Problem

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
    """HTTP/1.1 as uvicorn speaks it; what is none is refused in the form of all refusals."""

    def send_400_response(self, msg: str) -> None:
        """Refuse what cannot be read, saying why, and close."""
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
    """Error answer for bytes that are no request.

    Example:
        >>> unreadable(h11.RemoteProtocolError("Missing mandatory Host: header")).message
        'Host must be given once in a request; got none. Send Host: and the name of the server.'
    """
    said = str(error or "")
    if "Host:" in said:
        got = "none" if said.startswith("Missing") else "several"
        return Problem(
            400,
            f"Host must be given once in a request; got {got}. "
            "Send Host: and the name of the server.",
        )
    reason = f"{said[0].lower()}{said[1:]}" if said else "something else"
    return Problem(400, f"request must be HTTP/1.1; got {reason}.")


def hold_shut(listener: socket.socket) -> None:
    """Let no new connection come to a listening socket; those that stand before it can come in.

    Clients try again for a second and are refused once it is closed. Where the system is not Linux,
    nothing happens.
    """
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
    """Close connections on which nothing was asked for so long; runs until it is cancelled.

    A connection without a whole request, or whose answer is not taken or a byte now and then, costs
    the client nothing; without this, a few thousand of them would leave no room for others.

    Args:
        connections: Those of uvicorn, as they come and go.
        patience: Seconds.
    """
    loop = asyncio.get_running_loop()
    # What each was doing when it last got on: the answer it gave last, and the bytes not taken.
    seen: dict[object, tuple[object, int, float]] = {}
    while True:
        await asyncio.sleep(patience / 4)
        now = loop.time()
        idle = {}
        for connection in list(connections):
            cycle = connection.cycle
            is_answering = cycle is not None and not cycle.response_complete
            left = connection.transport.get_write_buffer_size()
            if is_answering and not left:
                continue
            before, most, since = seen.get(connection, (None, 0, now))
            taken = most - left
            is_stuck = before is cycle and 0 <= taken < max(1, _SLOWEST * (now - since))
            idle[connection] = (cycle, most, since) if is_stuck else (cycle, left, now)
            if now - idle[connection][2] >= patience:
                connection.transport.abort()
        seen = idle
