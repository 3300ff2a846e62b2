"""Routes and their guard, without a socket: every answer's form, and what no client can do."""

import asyncio
import json
import logging
import re

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.unit.server.conftest import refusal

from regard.server import Limits
from regard.server.guard import loopback_hosts
from regard.server.pages import page_files


def test_a_text_and_a_list_are_translated(site):
    reply = site().post("/predict", {"text": "我爱中国"})
    assert reply.status_code == 200
    expected = {"source": "我爱中国", "translation": "国中爱我", "score": -0.12345}
    expected["log_prob"] = -1.0
    assert reply.json() == {"run": "turner", "translations": [expected]}
    batch_reply = site().post("/predict", {"texts": [str(n) for n in range(1000)], "n_best": 2})
    assert [each["translation"] for each in batch_reply.json()["translations"]] == [
        str(n)[::-1] for n in range(1000)
    ]
    assert len(batch_reply.json()["translations"][7]["n_best"]) == 2
    assert site().post("/predict", {"texts": []}).json()["translations"] == []


def test_requests_of_one_moment_share_a_batch_and_those_with_other_options_do_not(site):
    server = site(Limits(max_batch=64))

    async def scene():
        requests = [server.ask("POST", "/predict", json={"text": f"{n}"}) for n in range(10)]
        # What a run would take anyway is the same as nothing.
        requests += [server.ask("POST", "/predict", json={"text": "ab", "beam_size": 4})]
        requests += [server.ask("POST", "/predict", json={"text": "cd", "beam_size": 2})]
        return await asyncio.gather(*requests)

    assert {answer.status_code for answer in asyncio.run(scene())} == {200}
    assert ["cd"] in server.turner.batches
    assert sum(map(len, server.turner.batches)) == 12
    assert max(map(len, server.turner.batches)) >= 8


def test_a_long_text_is_its_parts_put_together_again(site):
    server = site()
    text = "我爱中国。" * 20
    (translated,) = server.post("/predict", {"text": text}).json()["translations"]
    assert translated["source"] == text
    assert translated["translation"] == " ".join(["国中爱我"] * 20)
    assert translated["parts"] == 20
    assert max(map(len, server.turner.batches)) <= 20


@pytest.mark.parametrize(
    ("method", "path", "status", "message"),
    [
        ("GET", "/nowhere", 404, "route must be one of this server; got '/nowhere'."),
        ("GET", "/viewer/../../../etc/passwd", 404, "route must be"),
        ("GET", "/viewer/%2e%2e/page.py", 404, "route must be"),
        ("GET", "/inspector/inspector.html", 404, "route must be"),
        ("GET", "/predict", 405, "method of '/predict' must be POST; got 'GET'."),
        ("DELETE", "/runs", 405, "method of '/runs' must be GET; got 'DELETE'."),
        ("OPTIONS", "/predict", 405, "method of '/predict' must be POST"),
        ("POST", "/predict", 415, "Content-Type must be application/json; got ''."),
        ("GET", "/docs/", 404, "route must be one of this server; got '/docs/'."),
        ("POST", "/predict/", 415, "Content-Type must be"),
    ],
)
def test_other_routes_methods_and_types_are_refused(site, method, path, status, message):
    answer = asyncio.run(site().ask(method, path))
    assert refusal(answer, status).startswith(message)


def test_head_is_get_without_a_body(site):
    server = site()
    for path in ("/health", "/", "/docs"):
        head = asyncio.run(server.ask("HEAD", path))
        assert head.status_code == 200
        assert head.headers["content-length"] == server.get(path).headers["content-length"]
    assert asyncio.run(server.ask("HEAD", "/predict")).status_code == 405


def test_no_other_version_is_spoken(site):
    server = site()
    app = server.app
    server.app = lambda scope, *rest: app({**scope, "http_version": "2.0"}, *rest)
    assert refusal(server.get("/health"), 505) == "request must be HTTP/1.1; got HTTP/2.0."


@pytest.mark.parametrize(
    ("header", "status", "message"),
    [
        ({"Content-Encoding": "gzip"}, 415, "body must be sent as it is; got Content-Encoding 'gz"),
        ({"Transfer-Encoding": "chunked"}, 400, "body must have one length; got both Content-Leng"),
    ],
    ids=["gzip", "two-lengths"],
)
def test_bodies_that_could_be_read_in_two_ways_are_refused(site, header, status, message):
    answer = site().post("/predict", {"text": "ab"}, headers=header)
    assert refusal(answer, status).startswith(message)
    plain = site().post("/predict", {"text": "ab"}, headers={"Content-Encoding": "identity"})
    assert plain.status_code == 200


@pytest.mark.parametrize(
    ("members", "status", "message"),
    [
        ({"text": "ja", "run": "../turner"}, 404, "run must be one of turner; got '../turner'."),
        ({"text": "ja", "n_best": 5}, 422, "n_best must be at most beam_size; got n_best=5, bea"),
        ({"text": "ja", "beam_size": 33}, 422, "beam_size must be at most 32; got 33."),
        ({"text": "ja", "beam_size": 10**30}, 422, "beam_size must be at most 32; got 1000"),
    ],
    ids=range(4),
)
def test_requests_beyond_the_run_and_the_limits_are_refused(site, members, status, message):
    assert refusal(site().post("/predict", members), status).startswith(message)


def test_a_body_too_large_is_refused_before_it_is_read(site):
    server = site()
    read = 0

    async def body():
        nonlocal read
        for _ in range(4000):
            read += 1
            yield b"x" * 10_000

    kind = {"Content-Type": "application/json"}
    answer = asyncio.run(server.ask("POST", "/predict", content=body(), headers=kind))
    assert (
        refusal(answer, 413) == "body must be at most 1,048,576 bytes; got more. Send it in parts."
    )
    assert answer.headers["connection"] == "close"
    assert read < 1500  # what is read away for politeness is bounded too
    headers = kind | {"Content-Length": "9" * 30}
    answer = asyncio.run(server.ask("POST", "/predict", content=b"", headers=headers))
    assert "got 999," in refusal(answer, 413)


def test_a_bug_gives_an_id_that_the_log_has_too(site, caplog):
    server = site()

    async def scene():
        return [await server.ask("POST", "/predict", json={"text": text}) for text in ("bug", "ab")]

    with caplog.at_level(logging.ERROR):
        answer, following = asyncio.run(scene())
    assert refusal(answer, 500).startswith("server must be able to answer; it met a bug.")
    number = answer.json()["error"]["id"]
    assert number in answer.json()["error"]["message"]
    assert f"bug {number}" in caplog.text
    assert "ZeroDivisionError" in caplog.text
    assert following.status_code == 200


def test_a_request_over_its_time_is_given_up_and_the_next_is_served(site):
    server = site(Limits(timeout=0.1))

    async def scene():
        server.turner.opened.clear()
        late = await server.ask("POST", "/predict", json={"text": "ab"})
        assert refusal(late, 504).startswith("request must be answered within 0.1 s")
        assert int(late.headers["retry-after"]) >= 1
        server.turner.opened.set()
        following = await server.ask("POST", "/predict", json={"text": "cd"})
        assert following.json()["translations"][0]["translation"] == "dc"

    asyncio.run(scene())


async def busy(server):
    """A request that is being worked on until the translator is let through."""
    server.turner.opened.clear()
    task = asyncio.create_task(server.ask("POST", "/predict", json={"text": "ab"}))
    while not server.turner.batches:
        await asyncio.sleep(0.001)
    return task


def test_a_full_line_says_when_to_come_again(site):
    server = site(Limits(queue=3))

    async def scene():
        first = await busy(server)
        second = asyncio.create_task(
            server.ask("POST", "/predict", json={"texts": ["1", "2", "3"]})
        )
        while not server.service.health()["waiting"]:
            await asyncio.sleep(0.001)
        full = await server.ask("POST", "/predict", json={"text": "cd"})
        assert refusal(full, 503).startswith("server must have room for a request; 3 sentences")
        assert int(full.headers["retry-after"]) >= 1
        server.turner.opened.set()
        assert [(await each).status_code for each in (first, second)] == [200, 200]

    asyncio.run(scene())


def test_whoever_hung_up_keeps_nobody_out(site):
    server = site(Limits(queue=3))
    body = json.dumps({"texts": [str(n) for n in range(500)]}).encode()
    left = asyncio.Event()

    async def receive():
        if not sent:
            sent.append(body)
            return {"type": "http.request", "body": body, "more_body": False}
        await left.wait()
        return {"type": "http.disconnect"}

    async def send(message):
        """Nobody is there to be sent anything."""

    sent = []
    headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": "/predict", "raw_path": b"/predict"}
    scope |= {"http_version": "1.1", "headers": headers, "query_string": b"", "scheme": "http"}

    async def scene():
        first = await busy(server)
        gone = asyncio.create_task(server.app(scope, receive, send))
        while not server.service.health()["waiting"]:
            await asyncio.sleep(0.001)
        following = asyncio.create_task(server.ask("POST", "/predict", json={"text": "cd"}))
        await asyncio.sleep(0.05)  # it has come, and is told nothing yet
        left.set()
        await gone
        server.turner.opened.set()
        assert (await following).json()["translations"][0]["translation"] == "dc"
        assert (await first).status_code == 200

    asyncio.run(scene())


def test_a_server_that_stops_answers_what_it_took_and_refuses_the_rest(site):
    server = site()

    async def scene():
        taken = await busy(server)
        server.service.is_stopping = True
        late = await server.ask("POST", "/predict", json={"text": "cd"})
        assert refusal(late, 503).startswith("server must be running")
        assert late.headers["retry-after"] == "5"
        server.turner.opened.set()
        await server.service.close()
        assert (await taken).json()["translations"][0]["translation"] == "ba"

    asyncio.run(scene())


def test_a_token_is_required_for_work_and_not_for_the_page(site):
    server = site(token="s3cret")
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic s3cret"}):
        answer = server.post("/predict", {"text": "ab"}, headers=headers)
        message = refusal(answer, 401)
        assert message.startswith("token must be the server's; got")
        assert "Whoever started the server has it: type it into the page, or send it" in message
        assert answer.headers["www-authenticate"] == "Bearer"
        assert refusal(server.get("/metrics", headers=headers), 401)
        assert refusal(server.get("/runs", headers=headers), 401)
    right = {"Authorization": "bearer s3cret"}
    assert server.post("/predict", {"text": "ab"}, headers=right).status_code == 200
    for path in ("/", "/docs", "/openapi.json", "/health", "/viewer/page/viewer.js"):
        assert server.get(path).status_code == 200, path
    latin = {b"Authorization": "Bearer é".encode("latin-1")}
    assert refusal(server.post("/predict", {"text": "ab"}, headers=latin), 401)


def test_a_name_from_elsewhere_does_not_reach_a_server_on_loopback(site):
    server = site(hosts=loopback_hosts("127.0.0.1"))
    assert server.get("/runs").status_code == 200
    for host in (
        *("evil.example", "evil.example:8000", "localhost.evil.example", "", "[::1]evil.example"),
        *("[::1]:8000.evil.example", "[::1", "localhost:evil", "localhost:80:80", "[localhost]"),
        *("127.0.0.1@evil.example", "localhost/", "localhost "),
    ):
        assert "Host must be" in refusal(server.get("/runs", headers={"Host": host}), 421)
    for host in ("localhost:8000", "127.0.0.1", "[::1]:8000", "LOCALHOST"):
        assert server.get("/runs", headers={"Host": host}).status_code == 200


def test_loopback_is_an_address_and_not_how_a_name_begins():
    assert "127.0.0.2" in loopback_hosts("127.0.0.2")
    assert loopback_hosts("::1") == loopback_hosts("localhost")
    for host in ("127.evil.example", "0.0.0.0", "::", "evil.example"):
        assert loopback_hosts(host) is None


def test_every_answer_has_the_headers_that_keep_pages_from_elsewhere_out(site):
    server = site()
    for answer in (
        server.get("/"),
        server.get("/nowhere"),
        server.post("/predict", {"text": "ab"}),
    ):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in answer.headers
        assert "server" not in answer.headers


def test_no_page_requests_anything_from_elsewhere(site):
    server = site()
    for path in [*page_files(), "/docs"]:
        answer = server.get(path)
        assert answer.status_code == 200
        assert not re.search(
            r"""(?:src|href|url\(|from|import)\s*[=(]?\s*["']?(?:https?:)?//""", answer.text
        )
    assert "text/javascript" in server.get("/inspector/inspector.js").headers["content-type"]


def test_the_page_of_routes_has_every_route_and_member(site):
    server = site()
    schema, page = server.get("/openapi.json").json(), server.get("/docs").text
    assert set(schema["paths"]) == {
        "/attention", "/attention/rows", "/attribution", "/explain", "/health", "/health/live",
        "/health/ready", "/metrics", "/predict", "/runs",
    }  # fmt: skip
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            assert f"{method.upper()} {path}" in page
            if (body := operation.get("requestBody")) is not None:
                kind = body["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
                for name in schema["components"]["schemas"][kind]["properties"]:
                    assert f"<code>{name}</code>" in page
    assert "<script" not in page


def test_what_was_done_is_counted_under_few_names(site):
    server = site()
    for number in range(20):
        server.get(f"/{number}")
        asyncio.run(server.ask(f"M{number}", "/"))
    server.post("/predict", {"texts": ["ab", "cd"]})
    text = server.get("/metrics").text
    figures = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert figures["regard_requests_total", "GET", "other", "404"] == 20
    assert figures["regard_requests_total", "other", "/", "405"] == 20
    assert figures["regard_requests_total", "POST", "/predict", "200"] == 1
    assert figures["regard_request_seconds_bucket", "+Inf", "/predict"] == 1
    assert figures["regard_batch_size_bucket", "1.0"] == 0
    assert figures["regard_batch_size_bucket", "2.0"] == 1
    assert figures["regard_queue_sentences",] == 0
    assert figures["process_resident_memory_bytes",] > 1 << 20
    assert not any(name.endswith("_created") for name, *_ in figures)
    for line in text.splitlines():
        assert re.fullmatch(r'# (HELP|TYPE) \w+ .+|\w+(\{(\w+="[^"]*",?)+\})? \S+', line), line


def test_runs_and_health_say_nothing_of_the_machine(site):
    server = site()
    assert server.get("/runs").json()["runs"] == [
        {
            "name": "turner", "task": "translation", "model": "turner", "parameters": 9,
            "source_language": "zh", "target_language": "en", "beam_size": 4, "max_tokens": 64,
            "explains": False,
        }
    ]  # fmt: skip
    assert server.get("/health").json() == {"live": True, "ready": True, "runs": 1, "waiting": 0}


def test_a_mask_is_explained(site):
    explained = (
        site().post("/explain", {"mask": "causal() & window(before=1)", "queries": 3}).json()
    )
    assert explained["drawing"] == "1 . .\n1 1 .\n. 1 1"
    assert explained["mask"] == "causal() & window(before=1)"
    assert explained["plan"]["bytes"] >= 0
    assert explained["plan"]["backend"]
    large = site().post("/explain", {"mask": "causal()", "queries": 1 << 20}).json()
    assert large["drawing"] is None
    wrong = site().post("/explain", {"mask": "casual()"})
    assert refusal(wrong, 422).endswith("Did you mean 'causal'?")
    assert refusal(site().post("/explain", {"mask": "__import__('os')"}), 422)


def test_the_message_on_a_broken_byte_is_json(site):
    kind = {"Content-Type": "application/json"}
    body = b'{"text": "ab", "run": "\\ud800"}'
    answer = asyncio.run(site().ask("POST", "/predict", content=body, headers=kind))
    assert json.loads(answer.content)["error"]["code"] == "not_found"
