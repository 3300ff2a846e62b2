"""Connections that cost their clients nothing are closed; those that get on are not."""

import asyncio
import re
from types import SimpleNamespace

import h11
import pytest

from regard.server.process import close_idle, unreadable


class Connection:
    """One of uvicorn's, as far as it is looked at."""

    def __init__(self, *, is_answering=False, left=0, speed=0.0):
        self.cycle = SimpleNamespace(response_complete=not is_answering)
        self.transport = self
        self.left, self.speed = left, speed
        self.is_closed = False

    def get_write_buffer_size(self):
        now = asyncio.get_running_loop().time()
        self.began = getattr(self, "began", now)
        return max(0, int(self.left - self.speed * (now - self.began)))

    def abort(self):
        self.is_closed = True


def test_only_those_that_wait_for_nothing_are_closed():
    silent, computing = Connection(), Connection(is_answering=True)
    untaken = Connection(is_answering=True, left=10**6)
    trickling = Connection(left=10**6, speed=300)
    reading = Connection(left=10**6, speed=50_000)

    async def scene():
        connections = {silent, computing, untaken, trickling, reading}
        task = asyncio.create_task(close_idle(connections, 0.2))
        await asyncio.sleep(0.6)
        task.cancel()

    asyncio.run(scene())
    assert silent.is_closed
    assert untaken.is_closed
    assert trickling.is_closed
    assert not computing.is_closed  # its answer is not there yet
    assert not reading.is_closed


@pytest.mark.parametrize(
    ("received", "expected"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "Host must be given once in a request; got none."),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "Host must .* got several."),
        (b"\x16\x03\x01\r\n\r\n", "request must be HTTP/1.1; got illegal request line."),
        (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", "HTTP/1.1; got illegal header line."),
        (b"GET" * 40_000, "request must be HTTP/1.1; got receive buffer too long."),
    ],
)
def test_an_unreadable_request_is_refused_with_its_reason(received, expected):
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=65536)
    connection.receive_data(received)
    with pytest.raises(h11.RemoteProtocolError) as error:
        connection.next_event()
    problem = unreadable(error.value)
    assert problem.status == 400
    assert re.match(expected, problem.message) or re.search(expected, problem.message)
