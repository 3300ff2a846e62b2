"""The routes."""

import json
from collections.abc import Callable, Collection
from functools import cache

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from regard.errors import RegardError
from regard.server.answers import (
    AttentionDocument,
    AttributionDocument,
    Explained,
    Health,
    JobAnswers,
    Live,
    Refusal,
    Rows,
    Runs,
    Translations,
)
from regard.server.guard import GONE, Guard
from regard.server.pages import Schema, page_files, reference_page
from regard.server.problems import STATUSES, Problem, invalid, of_status, problem_of
from regard.server.requests import (
    AttentionRequest,
    ExplainRequest,
    PredictRequest,
    RowsRequest,
    StrictRoute,
)
from regard.server.service import ClientGoneError, Service
from regard.version import __version__

# Responses of a route, by status, as FastAPI takes them.
Responses = dict[int | str, dict[str, object]]

_ABOUT = (
    "Translations, labels and tags, and what the model looked at. Every refusal has one form: "
    '{"error": {"code", "message"}}.'
)
_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)

# Statuses of errors of any route, and further ones of routes with a body.
_ANYWHERE = (400, 408, 413, 421, 500, 503, 505)
_OF_A_BODY = (401, 404, 415, 422, 504)
_HEADERS = {
    401: {"WWW-Authenticate": "Bearer."},
    503: {"Retry-After": "Seconds after which to come again."},
    504: {"Retry-After": "Seconds after which to come again."},
}


def make_app(
    service: Service, *, token: str | None = None, hosts: Collection[str] | None = None
) -> FastAPI:
    """The application, for any ASGI server.

    Args:
        service: Answers requests.
        token: Secret that ``Authorization: Bearer`` must have; None asks nobody.
        hosts: Allowed ``Host`` headers; None allows any.

    Example:
        >>> from starlette.testclient import TestClient
        >>> from regard.server import Limits
        >>> client = TestClient(make_app(Service({}, Limits()), token="open sesame"))
        >>> client.get("/health").json()["ready"], client.get("/runs").status_code
        (True, 401)
        >>> client.get("/runs", headers={"Authorization": "Bearer open sesame"}).json()
        {'runs': []}
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
    app.router.route_class = StrictRoute
    _add_work(app, service)
    _add_state(app, service)
    open_paths = {"/docs", "/openapi.json", "/health", "/health/live", "/health/ready"}
    schema = _described(app, service, open_paths, has_token=token is not None)
    pages = _add_pages(app, schema)
    for kind in (HTTPException, RequestValidationError, ClientGoneError, RegardError):
        app.add_exception_handler(kind, _refuse)
    routes = {route.path for route in app.routes if hasattr(route, "path")}
    app.add_middleware(
        Guard,
        service=service,
        routes=routes,
        open_paths=open_paths | set(pages),
        token=token,
        hosts=hosts,
    )
    return app


def _add_work(app: FastAPI, service: Service) -> None:
    """Routes that need a model."""

    @app.post("/predict", response_model=Translations | JobAnswers, responses=_OF_WORK)
    async def predict(body: PredictRequest, request: Request) -> Response:
        """Translate, continue, label or tag texts; like requests share a batch."""
        return _json(await service.predict(body, request.receive))

    @app.post("/attention", response_model=AttentionDocument, responses=_OF_WORK)
    async def attention(body: AttentionRequest, request: Request) -> Response:
        """Predict a text, with its attention: the viewer's document."""
        page = await service.look(body, request.receive)
        return Response(page, media_type="application/json")

    @app.post("/attribution", response_model=AttributionDocument, responses=_OF_WORK)
    async def attribution(body: AttentionRequest, request: Request) -> Response:
        """Explain a prediction: the document of /attention, with contributions of tokens."""
        page = await service.attribute(body, request.receive)
        return Response(page, media_type="application/json")

    @app.post("/attention/rows", response_model=Rows, responses=_OF_WORK)
    async def rows(body: RowsRequest, request: Request) -> Response:
        """Exact weights of one head: whole rows, or a tile of them."""
        return _json(await service.rows(body, request.receive))

    @app.post("/explain", response_model=Explained, responses=_OF_WORK)
    async def explain(body: ExplainRequest, request: Request) -> Response:
        """The drawing of a mask, and how the engine would serve a call with it."""
        return _json(await service.explain(body, request.receive))


def _add_state(app: FastAPI, service: Service) -> None:
    """Routes about the server."""

    @app.get("/runs", response_model=Runs, responses=_refusals(401))
    async def runs() -> Response:
        """The runs that are served; the first is asked where a request names none."""
        return _json({"runs": service.runs()})

    unready: Responses = {
        503: {"model": Health, "description": "The server stops; ready is false."}
    }

    @app.get("/health", response_model=Health, responses=_refusals() | unready)
    async def health() -> Response:
        """Whether requests are taken: 503 while the server stops."""
        return _json(service.health(), status=200 if service.health()["ready"] else 503)

    app.get("/health/ready", response_model=Health, responses=_refusals() | unready)(health)

    @app.get("/health/live", response_model=Live, responses=_refusals(but=503))
    async def live() -> Response:
        """That the process runs."""
        return _json({"live": True})

    text: Responses = {
        200: {
            "description": "In the text format of Prometheus.",
            "content": {"text/plain": {"schema": {"type": "string"}}},
        }
    }

    # A plain Response: its refusals are JSON, as all are.
    @app.get("/metrics", response_class=Response, responses=text | _refusals(401))
    async def metrics() -> Response:
        """Counts of requests, their times, sizes of batches, who waits, memory: for Prometheus."""
        return Response(service.metrics(), media_type="text/plain; version=0.0.4; charset=utf-8")


def _add_pages(app: FastAPI, schema: Callable[[], Schema]) -> Collection[str]:
    """The inspector and the OpenAPI page; gives the paths of the inspector's files."""
    pages = page_files()

    async def file(request: Request) -> Response:
        content, kind = pages[request.scope["path"]]
        # Asked for again each time: the files change with the version of regard.
        return Response(content, media_type=kind, headers={"Cache-Control": "no-cache"})

    for path in pages:
        app.add_api_route(path, file, include_in_schema=False)

    @app.get("/docs", include_in_schema=False)
    async def docs(request: Request) -> Response:
        page = reference_page(schema(), str(request.base_url).rstrip("/"))
        return Response(page, media_type="text/html; charset=utf-8")

    @app.get("/openapi.json", include_in_schema=False)
    async def openapi() -> Response:
        return _json(schema())

    return pages


def _described(
    app: FastAPI, service: Service, open_paths: Collection[str], *, has_token: bool
) -> Callable[[], Schema]:
    """The OpenAPI schema of this very server: routes that need its token, and requests to try."""
    note = "Whoever started the server has it." if has_token else "This server asks nobody for one."

    @cache
    def schema() -> Schema:
        document = app.openapi()
        document["components"]["securitySchemes"] = {
            "token": {"type": "http", "scheme": "bearer", "description": note}
        }
        examples = service.examples()
        for path, methods in document["paths"].items():
            for operation in methods.values():
                if has_token and path not in open_paths:
                    operation["security"] = [{"token": []}]
                if path in examples:
                    content = operation["requestBody"]["content"]["application/json"]
                    content["example"] = examples[path]
        return document

    return schema


def _refusals(*statuses: int, but: int | None = None) -> Responses:
    """Further error answers of a route."""
    return {
        status: {
            "description": STATUSES[status][1],
            "model": Refusal,
            "headers": {
                name: {"description": says, "schema": {"type": "string"}}
                for name, says in _HEADERS.get(status, {}).items()
            },
        }
        for status in sorted({*_ANYWHERE, *statuses} - {but})
    }


# Of routes with a body.
_OF_WORK = _refusals(*_OF_A_BODY)


def _json(members: object, *, status: int = 200) -> Response:
    # A broken byte token may bring half a surrogate pair into a translation.
    content = _JSON.encode(members).encode("utf-8", "replace")
    return Response(content, status, media_type="application/json")


async def _refuse(request: Request, error: Exception) -> Response:
    """Any error in the form of all refusals; a client that has gone gets an empty answer."""
    if isinstance(error, ClientGoneError):
        return Response(status_code=GONE)
    if isinstance(error, RequestValidationError):
        model = request.scope["route"].body_field.field_info.annotation
        problem = invalid(error.errors()[0], model)
    elif isinstance(error, HTTPException) and not isinstance(error, Problem):
        headers = {key.lower(): value for key, value in (error.headers or {}).items()}
        problem = of_status(error.status_code, request.method, request.url.path, headers)
    else:
        problem = problem_of(error)
    return Response(
        problem.body(), problem.status, headers=dict(problem.headers), media_type="application/json"
    )
