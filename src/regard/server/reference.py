"""The OpenAPI page, made from the schema: no script, and nothing from the network."""

import html
import json
from collections.abc import Iterator, Mapping
from typing import Any


def reference_page(schema: Mapping[str, Any]) -> str:
    """Every route of an OpenAPI schema as one HTML page.

    Args:
        schema: As ``FastAPI.openapi`` gives it.
    """
    title = html.escape(schema["info"]["title"])
    routes = "".join(
        _route(path, method, said)
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


def _route(path: str, method: str, said: Mapping[str, Any]) -> str:
    parts = [f"<h2><code>{method.upper()} {html.escape(path)}</code></h2>"]
    parts.append(f"<p>{html.escape(said.get('description') or said.get('summary', ''))}</p>")
    body = said.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    if body is not None:
        rows = "".join(_member(name, body) for name in body["properties"])
        parts.append(
            "<table><thead><tr><th>member</th><th>is</th><th>by default</th><th></th></tr></thead>"
            f"<tbody>{rows}</tbody></table>"
        )
        parts.append(f"<pre>{html.escape(_example(path, body))}</pre>")
    answers = (
        f"<dt>{status}</dt><dd>{html.escape(answer['description'])}</dd>"
        for status, answer in said.get("responses", {}).items()
    )
    parts.append(f"<dl>{''.join(answers)}</dl>")
    return f"<section>{''.join(parts)}</section>"


def _member(name: str, body: Mapping[str, Any]) -> str:
    said = body["properties"][name]
    default = "required" if name in body.get("required", ()) else json.dumps(said.get("default"))
    cells = (
        f"<code>{html.escape(name)}</code>",
        html.escape(", or ".join(_kinds(said))),
        html.escape("" if default == "null" else default),
        html.escape(said.get("description", "")),
    )
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _kinds(said: Mapping[str, Any]) -> Iterator[str]:
    """What a member may be, in words."""
    for one in said.get("anyOf", [said]):
        if "const" in one or "enum" in one:
            yield " | ".join(map(str, one.get("enum", [one.get("const")])))
        elif one.get("type") == "array":
            yield f"list of {' or '.join(_kinds(one['items']))}"
        elif one.get("type") != "null":
            least = f" ≥ {one['minimum']}" if "minimum" in one else ""
            most = f" ≤ {one['maximum']}" if "maximum" in one else ""
            yield f"{one.get('type', 'anything')}{least}{most}"


def _example(path: str, body: Mapping[str, Any]) -> str:
    given = {
        name: said["examples"][0]
        for name, said in body["properties"].items()
        if said.get("examples")
    }
    text = json.dumps(given, ensure_ascii=False)
    return f"curl -H 'Content-Type: application/json' -d '{text}' ADDRESS{path}"
