"""The OpenAPI page, made from the schema: no script, and nothing from the network."""

import html
import json
import shlex
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

# A schema of OpenAPI: objects within objects, as deep as it says.
Schema: TypeAlias = Mapping[str, Any]


def reference_page(schema: Schema, address: str) -> str:
    """Every route of an OpenAPI schema as one HTML page.

    Args:
        schema: As ``FastAPI.openapi`` gives it, with an example of each request.
        address: Where the server is, for commands to try.
    """
    title = html.escape(schema["info"]["title"])
    routes = "".join(
        _route(schema, address, path, method, said)
        for path, methods in schema["paths"].items()
        for method, said in methods.items()
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


def _route(schema: Schema, address: str, path: str, method: str, said: Schema) -> str:
    parts = [f"<h2><code>{method.upper()} {html.escape(path)}</code></h2>"]
    parts.append(f"<p>{html.escape(said.get('description') or said.get('summary', ''))}</p>")
    content = said.get("requestBody", {}).get("content", {}).get("application/json", {})
    if "schema" in content:
        body = schema["components"]["schemas"][content["schema"]["$ref"].rpartition("/")[2]]
        rows = "".join(_member(name, body) for name in body["properties"])
        parts.append(
            "<table><thead><tr><th>member</th><th>is</th><th>by default</th><th></th></tr></thead>"
            f"<tbody>{rows}</tbody></table>"
        )
        if "example" in content:
            command = _command(address + path, content["example"], has_token="security" in said)
            parts.append(f"<pre>{html.escape(command)}</pre>")
        else:
            parts.append("<p>No run that is served here answers this.</p>")
    answers = (
        f"<dt>{status}</dt><dd>{html.escape(answer['description'])}</dd>"
        for status, answer in said.get("responses", {}).items()
    )
    parts.append(f"<dl>{''.join(answers)}</dl>")
    return f"<section>{''.join(parts)}</section>"


def _member(name: str, body: Schema) -> str:
    said = body["properties"][name]
    default = "required" if name in body.get("required", ()) else json.dumps(said.get("default"))
    cells = (
        f"<code>{html.escape(name)}</code>",
        html.escape(", or ".join(_kinds(said))),
        html.escape("" if default == "null" else default),
        html.escape(said.get("description", "")),
    )
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _kinds(said: Schema) -> Iterator[str]:
    """Describe the type of a member."""
    for one in said.get("anyOf", [said]):
        if "const" in one or "enum" in one:
            yield " | ".join(map(str, one.get("enum", [one.get("const")])))
        elif one.get("type") == "array":
            yield f"list of {' or '.join(_kinds(one['items']))}"
        elif one.get("type") != "null":
            least = f" ≥ {one['minimum']}" if "minimum" in one else ""
            most = f" ≤ {one['maximum']}" if "maximum" in one else ""
            yield f"{one.get('type', 'anything')}{least}{most}"


def _command(url: str, members: Schema, *, has_token: bool) -> str:
    r"""A request that the server answers, for a shell.

    Example:
        >>> print(_command("http://a/predict", {"text": "I'm"}, has_token=False))
        curl -s http://a/predict -H 'Content-Type: application/json' -d '{"text": "I'"'"'m"}'
    """
    token = " -H 'Authorization: Bearer TOKEN'" if has_token else ""
    body = shlex.quote(json.dumps(members, ensure_ascii=False))
    return f"curl -s {shlex.quote(url)} -H 'Content-Type: application/json'{token} -d {body}"
