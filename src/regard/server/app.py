"""The routes."""

import json
from collections.abc import Collection
from typing import Any

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from regard import __version__
from regard.errors import RegardError
from regard.server.files import page_files
from regard.server.guard import GONE, Guard, problem_of
from regard.server.problems import Problem, of_status
from regard.server.reference import reference_page
from regard.server.requests import (
    AttentionRequest,
    ContinueRequest,
    ExplainRequest,
    PredictRequest,
    RowsRequest,
    read_request,
)
from regard.server.service import ClientGoneError, Gone, Service

_ABOUT = (
    "Translations, labels and tags, and what the model looked at. Every refusal has one form: "
    '{"error": {"code", "message"}}.'
)
_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)

_REFUSALS = {
    400: "The body is no JSON object.",
    401: "The token is missing or wrong.",
    404: "There is no such run.",
    408: "The request came too slowly.",
    413: "The body or the list is too large.",
    415: "The body is not called application/json, or is compressed.",
    422: "A member is wrong; the message names it and says how it must be.",
    503: "Too much waits, or the server is stopping; Retry-After says when to come again.",
    504: "It took too long and was given up.",
}


def make_app(
    service: Service, *, token: str | None = None, hosts: Collection[str] | None = None
) -> ASGIApp:
    """The whole application, for any ASGI server.

    Args:
        service: What answers.
        token: What ``Authorization: Bearer`` must say; None asks nobody.
        hosts: What the ``Host`` header may be; None allows any.
    """
    app = FastAPI(
        title="regard",
        version=__version__,
        description=_ABOUT,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # a redirect would say the client's Host again
    )
    _add_work(app, service)
    _add_state(app, service)
    pages = _add_pages(app)
    app.add_exception_handler(HTTPException, _say_status)
    app.add_exception_handler(ClientGoneError, _say_nothing)
    for kind in (Problem, RegardError, Exception):
        app.add_exception_handler(kind, _say_problem)
    routes = {route.path for route in app.routes if hasattr(route, "path")}
    open_paths = {*pages, "/docs", "/openapi.json", "/health", "/health/live", "/health/ready"}
    return Guard(app, service, routes=routes, open_paths=open_paths, token=token, hosts=hosts)


def _add_work(app: FastAPI, service: Service) -> None:
    """What needs a model."""

    @app.post("/predict", **_takes(PredictRequest))
    async def predict(request: Request) -> Response:
        """Translate texts, or label and tag them; like requests share a batch."""
        asked = read_request(PredictRequest, await request.body())
        return _json(await service.predict(asked, _gone(request)))

    @app.post("/continue", **_takes(ContinueRequest))
    async def go_on(request: Request) -> Response:
        """What a language model writes after texts."""
        asked = read_request(ContinueRequest, await request.body())
        return _json(await service.go_on(asked, _gone(request)))

    @app.post("/attention", **_takes(AttentionRequest))
    async def attention(request: Request) -> Response:
        """What the model says of a text, and what it looks at: the viewer's document."""
        asked = read_request(AttentionRequest, await request.body())
        found = await service.document(asked, _gone(request))
        return Response(found, media_type="application/json")

    @app.post("/attention/rows", **_takes(RowsRequest))
    async def rows(request: Request) -> Response:
        """Exact weights of one head: whole rows, or a tile of them."""
        asked = read_request(RowsRequest, await request.body())
        return _json(await service.rows(asked, _gone(request)))

    @app.post("/explain", **_takes(ExplainRequest))
    async def explain(request: Request) -> Response:
        """The drawing of a mask, and how the engine would serve a call with it."""
        asked = read_request(ExplainRequest, await request.body())
        return _json(await service.explain(asked, _gone(request)))


def _add_state(app: FastAPI, service: Service) -> None:
    """What the server says of itself."""

    @app.get("/runs", responses=_refusals(401))
    async def runs() -> Response:
        """The runs that are served; the first is asked where a request names none."""
        return _json({"runs": service.runs()})

    @app.get("/health", responses=_refusals(503))
    async def health() -> Response:
        """Whether requests are taken: 503 while the server stops."""
        return _json(service.health(), status=200 if service.health()["ready"] else 503)

    app.get("/health/ready", responses=_refusals(503))(health)

    @app.get("/health/live")
    async def live() -> Response:
        """That the process runs."""
        return _json({"live": True})

    @app.get("/metrics", responses=_refusals(401))
    async def metrics() -> Response:
        """Counts of requests, their times, sizes of batches, who waits, memory: for Prometheus."""
        return Response(service.metrics(), media_type="text/plain; version=0.0.4; charset=utf-8")


def _add_pages(app: FastAPI) -> Collection[str]:
    """The inspector and the OpenAPI page; gives the paths of the inspector's files."""
    pages = page_files()

    async def file(request: Request) -> Response:
        found = pages[request.scope["path"]]
        # Asked for again each time: the files change with the version of regard.
        return Response(found.content, media_type=found.kind, headers={"Cache-Control": "no-cache"})

    for path in pages:
        app.add_api_route(path, file, include_in_schema=False)

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return Response(reference_page(app.openapi()), media_type="text/html; charset=utf-8")

    @app.get("/openapi.json", include_in_schema=False)
    async def openapi() -> Response:
        return _json(app.openapi())

    return pages


def _takes(model: Any) -> dict[str, Any]:
    """What the OpenAPI page says of a route that takes such a body."""
    schema = model.model_json_schema()
    return {
        "responses": _refusals(400, 401, 404, 408, 413, 415, 422, 503, 504),
        "openapi_extra": {
            "requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}
        },
    }


def _refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: {"description": _REFUSALS[status]} for status in statuses}


def _json(members: object, *, status: int = 200) -> Response:
    # A broken byte token may bring half a surrogate pair into a translation.
    content = _JSON.encode(members).encode("utf-8", "replace")
    return Response(content, status, media_type="application/json")


def _gone(request: Request) -> Gone:
    """Waits until the client has gone; nothing else comes after the body."""
    return request.receive


async def _say_status(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    found = dict(error.headers or {})
    headers = {key.lower(): value for key, value in found.items()}
    return _said(of_status(error.status_code, request.method, request.url.path, headers))


async def _say_problem(request: Request, error: Exception) -> Response:
    return _said(problem_of(error))


async def _say_nothing(request: Request, error: Exception) -> Response:
    return Response(status_code=GONE)


def _said(problem: Problem) -> Response:
    return Response(
        problem.body(),
        problem.status,
        headers=dict(problem.headers),
        media_type="application/json",
    )
