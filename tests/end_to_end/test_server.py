"""The server as a process, under load, attacked and stopped; and its page in a browser."""

import asyncio
import json
import re
import shutil
import signal
import socket
import statistics
import time
from collections import Counter
from contextlib import suppress

import pytest
from tests.end_to_end.server_clients import (
    Client,
    ask,
    batch_sizes,
    expects,
    mean_batch,
    mixed,
    request,
    serving,
)

from regard.inference import Predictor

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(run):
    with serving(run) as server:
        yield server


@pytest.fixture(scope="module")
def impatient(run, tmp_path_factory):
    """A server whose patience with slow clients is short."""
    script = tmp_path_factory.mktemp("script") / "serve.py"
    script.write_text(
        "import sys\nfrom regard.inference import Predictor\nfrom regard.server import *\n"
        "serve({'run': Predictor.load(sys.argv[1])}, port=0, limits=Limits(patience=0.5),"
        " ready=lambda a: print(f'serving run at {a} ', file=sys.stderr, flush=True))\n"
    )
    with serving(run, script=script) as server:
        yield server


def test_alignments_documents_and_rows_are_those_of_the_run(server, run):
    look = Predictor.load(run).attention("我爱中国", "I love China.")
    question = {"text": "我爱中国", "target": "I love China."}
    document = ask(server.port, request("/attention", question)).json()
    assert (document["format"], len(document["examples"])) == ("regard.attention", 1)
    assert document["examples"][0]["output"] == "I love China."
    (layer, weights) = next((m.layer, m.weights[0]) for m in look.maps if m.kind == "cross")
    question["layer"] = layer
    rows = ask(server.port, request("/attention/rows", {**question, "head": 0})).json()
    assert rows["weights"] == [pytest.approx(row, abs=1e-5) for row in weights.tolist()]
    tile = {**question, "head": 0, "queries": [2, 0], "keys": [1, 3]}
    weights_of_tile = ask(server.port, request("/attention/rows", tile)).json()["weights"]
    assert weights_of_tile == [
        pytest.approx(row, abs=1e-5) for row in weights[[2, 0], 1:3].tolist()
    ]
    aligned = request("/predict", {"text": "我爱中国", "alignments": True})
    answer = ask(server.port, aligned).json()["translations"][0]
    assert len(answer["attention"]) == len(answer["output_tokens"])
    assert "unknown" not in answer
    strange = ask(server.port, request("/predict", {"text": "我爱Ω中国Ω"})).json()
    assert strange["translations"][0]["unknown"] == ["Ω"]
    for changed in ({"layer": 70, "head": 0}, {"head": 70}, {"queries": [99]}):
        reply = ask(server.port, request("/attention/rows", {**question, **changed}))
        assert expects(422)(reply) is None
        assert "must be" in reply.json()["error"]["message"]


def test_under_load_every_request_has_its_answer_and_memory_stays(server):
    asyncio.run(mixed(server, clients=100, seconds=1.0))  # what it keeps is there now
    first_batches = batch_sizes(server.port)
    outcome, num_rude, memory = asyncio.run(mixed(server, clients=100, seconds=4.0))
    assert not outcome.lost
    assert not outcome.wrong
    assert num_rude > 10
    assert {200, 400, 404, 405, 413, 415, 422} <= set(outcome.statuses) <= {
        200, 400, 404, 405, 413, 415, 422, 503,
    }  # fmt: skip
    assert mean_batch(first_batches, batch_sizes(server.port)) >= 4
    assert statistics.median(memory[-3:]) < memory[0] + 40 * 2**20
    assert expects(200)(ask(server.port, request("/health"))) is None
    assert b"regard_queue_sentences 0" in ask(server.port, request("/metrics")).body


def test_answers_come_at_once_on_a_persistent_connection(server):
    async def latencies():
        client, seconds = Client(server.port), []
        for _ in range(30):
            start = time.perf_counter()
            await client.ask(request("/health"))
            seconds.append(time.perf_counter() - start)
        client.close()
        return seconds

    # Nagle's algorithm and a delayed acknowledgement make 40 ms of each.
    assert min(asyncio.run(latencies())[1:]) < 0.02


def raw_answer(port, sent, wait=20.0):
    with socket.create_connection(("127.0.0.1", port), timeout=wait) as line:
        line.sendall(sent)
        received = b""
        while part := line.recv(65536):
            received += part
        return received


def test_what_is_no_http_is_refused_in_the_same_form(impatient):
    for sent in (b"\x16\x03\x01\x02\x00\x01\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"GET" * 40_000):
        received = raw_answer(impatient.port, sent)
        head, _, body = received.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 400 ")
        assert json.loads(body)["error"]["code"] == "bad_request"


def test_clients_that_send_slowly_or_nothing_are_let_go(impatient):
    head = request("/predict", {"text": "ab"}, Content_Length="1000")
    received = raw_answer(impatient.port, head)
    assert received.startswith(b"HTTP/1.1 408 ")
    assert b"request must arrive within 0.5 s" in received
    for silent in (b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n"):
        start = time.monotonic()
        with suppress(ConnectionResetError):
            assert raw_answer(impatient.port, silent) == b""
        assert time.monotonic() - start < 15
    assert ask(impatient.port, request("/health")).status == 200


@pytest.mark.parametrize(
    ("path", "text", "fraction"),
    [
        ("/attention", "我爱中国。他昨天去北京了。" * 40, 0.2),
        ("/predict", "我爱中国。他昨天去北京了。" * 769, 0.5),
    ],
)
def test_a_long_text_leaves_room_for_others(server, path, text, fraction):
    async def scene():
        other, client, waits = Client(server.port), Client(server.port), []
        long = asyncio.create_task(other.ask(request(path, {"text": text})))
        await asyncio.sleep(0.1)
        while not long.done():
            began = time.perf_counter()
            await client.ask(request("/predict", {"text": "我爱中国"}))
            waits.append(time.perf_counter() - began)
        client.close()
        other.close()
        return await long, waits

    began = time.perf_counter()
    reply, waits = asyncio.run(scene())
    total, body = time.perf_counter() - began, reply.json()
    is_look = path == "/attention"
    assert len(body["examples"]) > 20 if is_look else body["translations"][0]["parts"] > 300
    assert len(waits) > 2
    assert statistics.median(waits) < total * fraction
    assert is_look or max(waits) < max(2.0, total * fraction)


def test_a_run_that_is_deleted_after_it_was_loaded_answers_on(run, tmp_path):
    predictor = Predictor.load(shutil.copytree(run, tmp_path / "gone"))
    shutil.rmtree(tmp_path / "gone")
    assert predictor.translate(["我爱中国"])
    assert predictor.look("我爱中国").document.examples


def test_commands_that_cannot_serve_say_why(regard, run, tmp_path, monkeypatch):
    assert "RUN must name a run folder, or --model" in regard.refused("serve")
    assert "must have different names; got 'run' twice" in regard.refused("serve", run, run)
    assert "must" in regard.refused("serve", tmp_path / "nothing")
    assert "--max-batch must be at least 1; got 0" in regard.refused("serve", run, "--max-batch", 0)
    assert "--port must be from 0 to 65535" in regard.refused("serve", run, "--port", 99999)
    assert "--token must be printable ASCII" in regard.refused("serve", run, "--token", "é")
    monkeypatch.setenv("REGARD_TOKEN", " ")
    message = regard.refused("serve", run)
    assert "REGARD_TOKEN must be printable ASCII; got nothing" in message
    both = regard.refused("serve", run, "--token", "a", "--token-file", tmp_path / "token")
    assert "--token must be left out beside --token-file" in both
    missing = regard.refused("serve", run, "--token-file", tmp_path / "token")
    assert re.search("--token-file must be a file that can be read; got .*token: No such", missing)
    monkeypatch.delenv("REGARD_TOKEN")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = regard.refused("serve", tmp_path / "nothing", "--port", port)
    assert "--port must be an address to listen at" in refused  # before the run is looked for
    monkeypatch.setattr("regard.cli.serve.find_spec", lambda name: None)
    message = regard.refused("serve", run)
    assert message.endswith("Install them: pip install 'regard[serve]'.")


def test_every_request_before_a_stop_is_answered(run):
    """Sixty clients, a new connection for each request, in the moment of SIGTERM."""
    raw = request("/predict", {"text": "我爱中国"}, Connection="close")
    outcomes, stopped = Counter(), asyncio.Event()

    async def once(port):
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
        except ConnectionRefusedError:
            return "refused"
        except OSError:
            return "reset"
        try:
            writer.write(raw)
            return (await reader.read())[9:12].decode() or "nothing"
        except OSError:
            return "reset"
        finally:
            writer.close()

    async def client(port):
        outcome = ""
        while outcome != "refused":
            is_before = not stopped.is_set()
            outcome = await once(port)
            outcomes[outcome] += is_before

    with serving(run) as server:

        async def scene():
            clients = [asyncio.create_task(client(server.port)) for _ in range(60)]
            await asyncio.sleep(1.0)
            stopped.set()
            server.process.send_signal(signal.SIGTERM)
            await asyncio.gather(*clients)

        asyncio.run(scene())
        assert server.process.wait(20) == 0
    assert set(+outcomes) <= {"200", "503"}, outcomes
    assert outcomes["200"]
