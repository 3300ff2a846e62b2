"""The OpenAPI page: every answer is as it says, and every command that it shows is answered."""

import asyncio
import html
import json
import re
import shlex

import pytest
from pydantic import TypeAdapter
from tests.unit.server.conftest import Site
from tests.unit.server.test_jobs import LABELLERS

from regard.server import Limits, Service, answers, make_app

# One request that each route answers, and what is wrong with others, by their status.
RIGHT = {
    "/predict": {"text": "我爱中国"},
    "/attention": {"text": "菜很好", "run": "classification"},
    "/attribution": {"text": "菜很好", "run": "classification"},
    "/explain": {"mask": "causal()", "queries": 3},
}
TOKEN = {"Authorization": "Bearer s3cret"}
JSON = {"Content-Type": "application/json"}
WRONG = {
    400: {"content": b"{", "headers": TOKEN | JSON},
    401: {"json": {}},
    404: {"json": {"run": "nobody", "text": "a"}, "headers": TOKEN},
    413: {"content": b" " * 2_000_000, "headers": TOKEN | JSON},
    415: {"content": b"{}", "headers": TOKEN},
    421: {"json": {}, "headers": TOKEN | {"Host": "elsewhere"}},
    422: {"json": {"nothing": 1}, "headers": TOKEN},
}


class Everything(Site):
    """A server of a translator and of one run of each job; made anew for each request."""

    async def ask(self, method, path, **options):
        """One request."""
        is_stopping = self.service.is_stopping
        self.service = Service(self.runs, Limits())
        self.service.is_stopping = is_stopping
        self.app = make_app(self.service, **self.options)
        return await super().ask(method, path, **options)


def everything(site, first="turner", **options):
    plain = site()
    server = Everything(plain.turner, plain.service, plain.app)
    runs = {"turner": plain.turner, **LABELLERS}
    server.runs, server.options = {first: runs[first], **runs}, options
    return server


def is_as(schema, reply):
    """Raise unless an answer is what a schema says, by the model that it was made of."""
    names = re.findall(r'"#/components/schemas/(\w+)"', json.dumps(schema))
    assert names, schema
    kinds = [getattr(answers, name) for name in names]
    union = kinds[0]
    for kind in kinds[1:]:
        union = union | kind
    TypeAdapter(union).validate_json(json.dumps(reply), strict=True)


def test_every_answer_is_as_its_schema_says(site):
    server = everything(site)
    paths = server.get("/openapi.json").json()["paths"]
    num_replies = 0
    for path, methods in paths.items():
        for method, operation in methods.items():
            if path == "/attention/rows":
                continue  # a model of one's own has to be looked into: see the end-to-end test
            reply = server.get(path) if method == "get" else server.post(path, RIGHT[path])
            assert reply.status_code == 200, (path, reply.text)
            (kind, content), *others = operation["responses"]["200"]["content"].items()
            assert not others
            assert reply.headers["content-type"].startswith(kind)
            if kind == "application/json":
                is_as(content["schema"], reply.json())
            else:
                assert (path, content["schema"]) == ("/metrics", {"type": "string"})
            num_replies += 1
    assert num_replies == 9


def test_requested_members_are_in_the_schema(site):
    server = everything(site)
    schema = server.get("/openapi.json").json()["paths"]["/predict"]["post"]["responses"]["200"]
    for members in (
        {"text": "ab", "n_best": 2},
        {"text": "ab。" * 40},
        {"run": "tagging", "texts": ["江在京", "江"]},
        {"run": "language_modelling", "text": "abc", "max_tokens": 2},
        {"run": "classification", "records": [{"text": "菜", "aspect": "taste"}]},
    ):
        reply = server.post("/predict", members)
        assert reply.status_code == 200, reply.text
        is_as(schema["content"]["application/json"]["schema"], reply.json())


def test_every_refusal_is_announced_with_its_form(site):
    server = everything(site, hosts={"localhost"}, token="s3cret")
    paths = server.get("/openapi.json").json()["paths"]
    refusals = set()
    for path, methods in paths.items():
        for method, operation in methods.items():
            for status, options in WRONG.items():
                if status not in (401, 421) and method == "get":
                    continue  # what has no body
                if status == 404 and path == "/explain":
                    continue  # which is of no run
                if status == 401 and "security" not in operation:
                    assert "401" not in operation["responses"]
                    continue
                reply = asyncio.run(server.ask(method.upper(), path, **options))
                assert reply.status_code == status, (path, reply.text)
                content = operation["responses"][str(status)]["content"]["application/json"]
                assert content["schema"] == {"$ref": "#/components/schemas/Refusal"}
                is_as(content["schema"], reply.json())
                refusals.add((path, status))
    assert len(refusals) > 33
    for methods in paths.values():
        for operation in methods.values():
            assert {"400", "408", "413", "421", "500", "505"} < set(operation["responses"])


def test_a_server_that_stops_answers_as_it_says(site):
    server = everything(site)
    paths = server.get("/openapi.json").json()["paths"]
    server.service.is_stopping = True
    for path in ("/health", "/health/ready", "/runs", "/metrics"):
        reply = server.get(path)
        assert reply.status_code == 503
        announced = paths[path]["get"]["responses"]["503"]["content"]["application/json"]
        is_as(announced["schema"], reply.json())
    assert "503" not in paths["/health/live"]["get"]["responses"]
    assert server.get("/health/live").status_code == 200


def test_the_token_is_announced_where_it_is_required(site):
    schema = everything(site, token="s3cret").get("/openapi.json").json()
    scheme = schema["components"]["securitySchemes"]["token"]
    assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")
    guarded = {
        path: operation.get("security")
        for path, methods in schema["paths"].items()
        for operation in methods.values()
    }
    assert {path for path, security in guarded.items() if security is None} == {
        "/health",
        "/health/live",
        "/health/ready",
    }
    assert all(security in (None, [{"token": []}]) for security in guarded.values())
    without_token = everything(site).get("/openapi.json").json()
    assert not any(
        "security" in operation
        for each in without_token["paths"].values()
        for operation in each.values()
    )


def commands(page):
    return [shlex.split(html.unescape(each)) for each in re.findall(r"<pre>(.*?)</pre>", page)]


@pytest.mark.parametrize("first", ["turner", *LABELLERS])
def test_every_command_of_the_page_is_answered(site, first):
    server = everything(site, first)
    page_commands = commands(server.get("/docs").text)
    paths = [each[2].removeprefix("http://localhost") for each in page_commands]
    assert paths == ["/predict", "/attention", "/attribution", "/attention/rows", "/explain"]
    for path, (*_, header, flag, body) in zip(paths, page_commands, strict=True):
        assert (header, flag) == ("Content-Type: application/json", "-d")
        if path == "/attention/rows" or (path, first) == ("/attention", "turner"):
            continue  # the translator of these tests cannot be looked into
        reply = server.post(path, json.loads(body))
        assert reply.status_code == 200, (path, body, reply.text)


def test_a_route_that_no_run_answers_has_no_command(site):
    server = everything(site)
    server.runs = {"classification": LABELLERS["classification"]}
    page = server.get("/docs").text
    assert [each[2].rpartition("/")[2] for each in commands(page)] == [
        "predict",
        "attention",
        "attribution",
        "explain",
    ]
    assert "No run that is served here answers this." in page
    command = commands(site(token="a").get("/docs").text)[0]
    assert "Authorization: Bearer TOKEN" in command
