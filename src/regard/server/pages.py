"""Pages of the server: the inspector's files, and the OpenAPI page with requests to try."""

import html
import json
import shlex
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeAlias, cast

from regard.config import JsonValue
from regard.errors import RegardError
from regard.inference.use import InUse, RunInUse
from regard.viewer.html import files_below, styles

# Packages whose static files a browser finds in these folders, and their media types.
_FOLDERS = {"/viewer": "regard.viewer", "/inspector": "regard.server"}
_KINDS = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml; charset=utf-8",
}


def page_files() -> dict[str, tuple[bytes, str]]:
    """Content and media type of every file a page may ask for, by its path."""
    pages = {}
    for folder, package in _FOLDERS.items():
        for path, file in files_below(files(package) / "static"):
            if kind := _KINDS.get(Path(path).suffix):
                pages[f"{folder}/{path}"] = file.read_bytes(), kind
    # The viewer's sheets as one; pages that are files carry the same.
    pages["/viewer/styles.css"] = styles().encode(), _KINDS[".css"]
    inspector = files("regard.server") / "static" / "inspector.html"
    pages["/"] = inspector.read_bytes(), "text/html; charset=utf-8"
    return pages


# A schema of OpenAPI: objects within objects, as deep as it says.
Schema: TypeAlias = Mapping[str, Any]


def reference_page(schema: Schema, address: str) -> str:
    """Every route of an OpenAPI schema as one HTML page, with commands to try at an address."""
    title = html.escape(schema["info"]["title"])
    routes = "".join(
        _route(schema, address, path, method, operation)
        for path, methods in schema["paths"].items()
        for method, operation in methods.items()
    )
    return (
        "<!doctype html>\n"
        f'<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><link rel="icon" href="data:,">'
        '<link rel="stylesheet" href="/inspector/reference.css"></head><body><main>'
        f"<h1>{title}</h1><p>{html.escape(schema['info'].get('description', ''))}</p>"
        '<p><a href="/openapi.json">openapi.json</a> · <a href="/">inspector</a></p>'
        f"{routes}</main></body></html>\n"
    )


def _route(schema: Schema, address: str, path: str, method: str, operation: Schema) -> str:
    parts = [f"<h2><code>{method.upper()} {html.escape(path)}</code></h2>"]
    parts.append(
        f"<p>{html.escape(operation.get('description') or operation.get('summary', ''))}</p>"
    )
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    if "schema" in content:
        body = schema["components"]["schemas"][content["schema"]["$ref"].rpartition("/")[2]]
        rows = "".join(_member(name, body) for name in body["properties"])
        parts.append(
            "<table><thead><tr><th>member</th><th>is</th><th>by default</th><th></th></tr></thead>"
            f"<tbody>{rows}</tbody></table>"
        )
        if "example" in content:
            command = _command(
                address + path, content["example"], has_token="security" in operation
            )
            parts.append(f"<pre>{html.escape(command)}</pre>")
        else:
            parts.append("<p>No run that is served here answers this.</p>")
    answers = (
        f"<dt>{status}</dt><dd>{html.escape(answer['description'])}</dd>"
        for status, answer in operation.get("responses", {}).items()
    )
    parts.append(f"<dl>{''.join(answers)}</dl>")
    return f"<section>{''.join(parts)}</section>"


def _member(name: str, body: Schema) -> str:
    member = body["properties"][name]
    default = "required" if name in body.get("required", ()) else json.dumps(member.get("default"))
    cells = (
        f"<code>{html.escape(name)}</code>",
        html.escape(", or ".join(_kinds(member))),
        html.escape("" if default == "null" else default),
        html.escape(member.get("description", "")),
    )
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _kinds(member: Schema) -> Iterator[str]:
    """Describe the type of a member."""
    for one in member.get("anyOf", [member]):
        if "const" in one or "enum" in one:
            yield " | ".join(map(str, one.get("enum", [one.get("const")])))
        elif one.get("type") == "array":
            yield f"list of {' or '.join(_kinds(one['items']))}"
        elif one.get("type") != "null":
            least = f" ≥ {one['minimum']}" if "minimum" in one else ""
            most = f" ≤ {one['maximum']}" if "maximum" in one else ""
            yield f"{one.get('type', 'anything')}{least}{most}"


def _command(url: str, members: Schema, *, has_token: bool) -> str:
    """A request to try, for a shell."""
    token = " -H 'Authorization: Bearer TOKEN'" if has_token else ""
    body = shlex.quote(json.dumps(members, ensure_ascii=False))
    return f"curl -s {shlex.quote(url)} -H 'Content-Type: application/json'{token} -d {body}"


_TEXT = "我爱中国"
_MASK = "causal() & window(before=2)"

# Example inputs; the first that a task accepts is used.
_INPUTS: tuple[str | Mapping[str, JsonValue], ...] = (
    _TEXT,
    "我爱[MASK]国",
    "0.5",
    {"text": _TEXT, "aspect": "taste"},
    {"first": _TEXT, "second": "我爱北京"},
    {"question": "谁爱中国?", "context": "我爱中国。他爱北京。"},
    {"question": "谁爱中国?", "context": "我爱中国。他爱北京。", "choices": ["我", "他"]},
)


def example_requests(served: Mapping[str, InUse]) -> dict[str, dict[str, JsonValue]]:
    """A request for each route that some run answers, by the route's path."""
    runs = {name: cast("RunInUse[Any]", use) for name, use in served.items() if use.answers_name}
    inputs = {name: _example_input(use) for name, use in runs.items()}
    requests: dict[str, dict[str, JsonValue]] = {"/explain": {"mask": _MASK}}

    def add(path: str, names: list[str], members: dict[str, JsonValue] | None = None) -> None:
        if names:
            run = {} if names[0] == next(iter(served)) else {"run": names[0]}
            requests[path] = {**(members or inputs.get(names[0], {"text": _TEXT})), **run}

    looked = [
        name
        for name, members in inputs.items()
        if "text" in members and runs[name].job != "regression"
    ]
    add("/predict", [name for name, members in inputs.items() if members])
    add("/attention", looked or [name for name in served if name not in runs])
    add("/attribution", [name for name in looked or served if served[name].explains])
    with_rows = [name for name, use in runs.items() if use.has_rows]
    add("/attention/rows", with_rows, {"text": _TEXT, "layer": 0, "head": 0})
    return requests


def _example_input(use: RunInUse[Any]) -> dict[str, JsonValue]:
    """A text or records that a run answers; empty if there are none."""
    for record in _INPUTS:
        with suppress(RegardError):
            use.parse(record, "")
            return {"text": record} if isinstance(record, str) else {"records": [record]}
    return {}
