"""Clients of a server under load: many at once, good requests and bad ones mixed, none lost.

They are plain asyncio, so that they take little from the server on the same machine.
"""

import asyncio
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

HOST = "127.0.0.1"
_SENTENCES = (
    "我爱中国",
    "他昨天去北京了",
    "我们明天去学校",
    "她有三本书",
    "你叫什么名字",
    "今天很冷",
)


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self):
        """The body, read."""
        return json.loads(self.body)


class Server:
    """A ``regard serve`` of its own process."""

    def __init__(self, process, port):
        self.process = process
        self.port = port
        self.address = f"http://127.0.0.1:{port}/"

    def stop(self, wait=60.0):
        """Ask it to stop; what it wrote to stderr since it was ready."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.communicate(timeout=wait)[1]

    def memory(self):
        """Bytes it uses now."""
        pages = Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def serving(*runs, options=(), threads=1, script=None):
    """A server of these runs at a free port, stopped at the end whatever happens."""
    command = [sys.executable, script, *runs]
    if script is None:
        command = [sys.executable, "-m", "regard", "serve", *runs, "--port", 0, *options]
    process = subprocess.Popen(
        list(map(str, command)),
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": str(threads)},
    )
    lines = []
    for line in process.stderr:
        lines.append(line)
        if match := re.match(r"serving .* at http://\S+:(\d+) ", line):
            break
    else:
        raise RuntimeError(f"the server did not start: {''.join(lines)}")
    server = Server(process, int(match[1]))
    try:
        yield server
    finally:
        with suppress(subprocess.TimeoutExpired, ValueError):
            server.stop(10)
        process.kill()


def request(path, members=None, *, body=None, method=None, **headers):
    """The bytes of a request; header names with _ for -."""
    if body is None and members is not None:
        body = json.dumps(members).encode()
    head = {"Host": HOST, "Content-Type": "application/json"}
    head |= {name.replace("_", "-"): value for name, value in headers.items()}
    if body is not None:
        head.setdefault("Content-Length", str(len(body)))
    lines = [f"{method or ('GET' if body is None else 'POST')} {path} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in head.items()]
    return "\r\n".join([*lines, "", ""]).encode() + (body or b"")


class Client:
    """One connection, made again when the server closed it."""

    def __init__(self, port):
        self._port = port
        self._streams = None

    async def ask(self, raw):
        """Send a request and read its answer."""
        if self._streams is None:
            self._streams = await asyncio.open_connection(HOST, self._port, limit=1 << 24)
        reader, writer = self._streams
        with suppress(ConnectionError):  # a refused body is not read to its end; the answer is
            writer.write(raw)
            await writer.drain()
        try:
            reply = await _read(reader)
        except BaseException:
            self.close()
            raise
        if reply.headers.get("connection") == "close":
            self.close()
        return reply

    def close(self):
        """Go away."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


def ask(port, raw):
    """One request on a connection of its own."""

    async def run():
        client = Client(port)
        try:
            return await client.ask(raw)
        finally:
            client.close()

    return asyncio.run(asyncio.wait_for(run(), 60))


async def _read(reader):
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    pairs = (line.partition(": ") for line in head[1:] if line)
    headers = {name.lower(): value for name, _, value in pairs}
    body = await reader.readexactly(int(headers["content-length"]))
    return Reply(int(head[0].split()[1]), headers, body)


@dataclass
class Outcome:
    statuses: Counter[int] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    lost: Counter[str] = field(default_factory=Counter)


async def drive(port, requests, *, clients, seconds, seed=0):
    """Many clients, each asking again as soon as it has its answer."""
    outcome = Outcome()
    until = time.perf_counter() + seconds

    async def one(number):
        client, draw = Client(port), random.Random(f"{seed} {number}")
        while time.perf_counter() < until:
            raw, judge = draw.choice(requests)
            try:
                reply = await asyncio.wait_for(client.ask(raw), 60)
            except (OSError, EOFError, TimeoutError) as error:
                outcome.lost[repr(error)[:80]] += 1
                continue
            outcome.statuses[reply.status] += 1
            if (complaint := judge(reply)) is not None and len(outcome.wrong) < 10:
                outcome.wrong.append(complaint)
        client.close()

    await asyncio.gather(*map(one, range(clients)))
    return outcome


def expects(*statuses, translation=None):
    """Judges an answer by its status, the form of refusals, and the translation if it is given."""

    def judge(reply):
        if reply.status not in statuses:
            return f"{reply.status} instead of {statuses}: {reply.body[:200]!r}"
        if reply.status != 200:
            refusal = reply.json()
            if not isinstance(refusal["error"]["code"], str) or not refusal["error"]["message"]:
                return f"no refusal: {reply.body[:200]!r}"
            return "a traceback" if b"Traceback" in reply.body or b"/src/" in reply.body else None
        if translation is not None:
            translated = reply.json()["translations"][0]["translation"]
            return (
                None if translated == translation else f"{translated!r} instead of {translation!r}"
            )
        return None

    return judge


def good(port, sentences):
    """Requests for translations, each with its answer when sent alone."""
    requests = []
    for sentence in sentences:
        raw = request("/predict", {"text": sentence})
        expected = ask(port, raw).json()["translations"][0]["translation"]
        requests.append((raw, expects(200, 503, translation=expected)))
    return requests


def bad():
    """Requests that cannot be answered, each with the expected answer."""
    json_type = {"Content_Type": "application/json"}
    return [
        (request("/predict", body=b"{"), expects(400)),
        (request("/predict", body=b"[" * 50_000), expects(400)),
        (request("/predict", body=b"\xff\xfe{}"), expects(400)),
        (request("/predict", body=b'{"text": NaN}'), expects(400)),
        (
            request("/predict", body=b'{"text": "a", "beam_size": 1' + b"0" * 5000 + b"}"),
            expects(400),
        ),
        (request("/predict", {"text": "a", "beam_size": "4"}), expects(422)),
        (request("/predict", {"text": ""}), expects(422)),
        (request("/predict", {"text": "字" * 1_000_000}), expects(413)),
        (request("/predict", body=b'{"text": "\\ud800"}'), expects(422)),
        (request("/predict", {"text": "我", "run": "../demo"}), expects(404)),
        (request("/attention/rows", {"text": "我", "layer": 99, "head": 0}), expects(422)),
        (request("/nowhere"), expects(404)),
        (request("/predict"), expects(405)),
        (request("/predict", body=b"text=a", Content_Type="text/plain"), expects(415)),
        (request("/health", **json_type), expects(200)),
    ]


def batch_sizes(port):
    """The counts of the histogram of batch sizes, with its sum and count."""
    text = ask(port, request("/metrics")).body.decode()
    return {
        name: float(value)
        for name, value in re.findall(
            r'^regard_batch_size_(\w+(?:\{le="[^"]+"\})?) (\S+)$', text, re.M
        )
    }


def mean_batch(before, after):
    """The mean size of the batches between two looks at the histogram."""
    count = after["count"] - before.get("count", 0.0)
    return (after["sum"] - before.get("sum", 0.0)) / count


async def rude(port, seconds):
    """Clients that go away in the middle of what they ask for; how many there were."""
    until, count = time.perf_counter() + seconds, 0
    whole = request("/predict", {"text": "我爱中国"})
    while time.perf_counter() < until:
        _, writer = await asyncio.open_connection(HOST, port)
        writer.write(whole if count % 2 else whole[: len(whole) // 2])
        await writer.drain()
        await asyncio.sleep(0.002 * (count % 3))
        writer.transport.abort()
        count += 1
        await asyncio.sleep(0.02)
    return count


async def mixed(server, *, clients, seconds):
    """Good, bad and rude clients at once; the outcome, the rude ones, and the memory meanwhile."""
    requests = await asyncio.to_thread(good, server.port, _SENTENCES)
    memory = []

    async def sample_memory():
        while True:
            memory.append(server.memory())
            await asyncio.sleep(0.5)

    sampler = asyncio.create_task(sample_memory())
    # As many good ones as bad ones.
    requests = [*requests * 4, *bad()]
    outcome, num_rude = await asyncio.gather(
        drive(server.port, requests, clients=clients, seconds=seconds), rude(server.port, seconds)
    )
    sampler.cancel()
    return outcome, num_rude, memory
