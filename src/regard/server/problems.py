"""Error answers: a status, a code, and a sentence with the cure.

Every refusal has one form, whatever it comes from::

    {"error": {"code": "bad_request", "message": "beam_size must be at least 1; got 0."}}
"""

import json
import logging
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus

from pydantic import BaseModel
from pydantic_core import ErrorDetails
from starlette.exceptions import HTTPException

from regard.checks import nearest
from regard.errors import DataError, SettingError, ShapeError

log = logging.getLogger("regard.server")

_QUOTED = 60  # characters of a value

# The code of each status, and when it comes.
STATUSES = {
    400: ("bad_request", "The request is no HTTP, or no JSON object whose members differ."),
    401: ("unauthorized", "The token is missing or wrong."),
    404: ("not_found", "There is no such run."),
    405: ("wrong_method", "The route takes another method."),
    408: ("too_slow", "The request came too slowly."),
    413: ("too_large", "The body or the list is too large."),
    415: ("wrong_type", "The body is not called application/json, or is compressed."),
    421: ("wrong_host", "A server on loopback was asked by another name."),
    422: ("bad_input", "A member is wrong; the message names it and says how it must be."),
    500: ("bug", "The server met a bug, whose number its log has too."),
    503: ("busy", "Too much waits, or the server stops; Retry-After says when to come again."),
    504: ("timeout", "It took too long and was given up."),
    505: ("wrong_version", "The request is not HTTP/1.1."),
}


@dataclass(eq=False)
class Problem(HTTPException):
    """An error: ``{name} must {rule}; got {value}. {cure}``, without paths of the machine."""

    status: int
    message: str
    members: Mapping[str, object] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    code: str | None = None

    def __str__(self) -> str:
        return self.message

    @property
    def status_code(self) -> int:  # type: ignore[override]
        """The status, as Starlette has it."""
        return self.status

    def body(self) -> bytes:
        """The answer's JSON."""
        code = self.code or STATUSES.get(self.status, ("refused",))[0]
        error = {"code": code, "message": self.message, **self.members}
        # Plain ASCII: whatever came, half a surrogate pair too, can be said again.
        return json.dumps({"error": error}).encode()


def bad_input(message: str) -> Problem:
    """The error answer for a member that is wrong."""
    return Problem(422, message)


def problem_of(error: Exception) -> Problem:
    """The error answer for an exception; a bug, which may name paths, is logged with an id."""
    if isinstance(error, Problem):
        return error
    # Only a request can be wrong in these ways once a server runs.
    if isinstance(error, SettingError | DataError | ShapeError):
        return bad_input(str(error))
    number = secrets.token_hex(4)
    log.error("bug %s", number, exc_info=error)
    return Problem(
        500,
        f"server must be able to answer; it met a bug. Its log has more, under {number}.",
        members={"id": number},
    )


def of_status(status: int, method: str, path: str, headers: Mapping[str, str]) -> Problem:
    """The error answer where no route matches."""
    if status == HTTPStatus.NOT_FOUND:
        message = f"route must be one of this server; got {quoted(path)}. GET /docs lists them."
    elif status == HTTPStatus.METHOD_NOT_ALLOWED:
        allowed = headers.get("allow", "another method")
        message = f"method of {quoted(path)} must be {allowed}; got {quoted(method)}."
    else:
        message = f"request must be answerable; got: {HTTPStatus(status).phrase}."
    return Problem(status, message, headers=dict(headers))


def quoted(value: object) -> str:
    """Quote a value in a message, shortened where it is long."""
    # Not all of a megabyte, only to throw it away.
    text = repr(value[: _QUOTED + 1] if isinstance(value, str) else value)
    return text if len(text) <= _QUOTED else f"{text[:_QUOTED]}…"


# Errors of pydantic, in our words; others keep pydantic's.
_RULES = {
    "string_type": "must be text",
    "string_unicode": "must be Unicode, without halves of surrogate pairs",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "int_parsing_size": "must be a whole number of usual size",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "list_type": "must be a list",
    "dict_type": "must be an object",
    "literal_error": "must be {expected}",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "too_long": "must be at most {max_length} long",
    "too_short": "must be at least {min_length} long",
}


def invalid(error: ErrorDetails, model: type[BaseModel]) -> Problem:
    """The error answer for a body that is no request of this model, by pydantic's first error."""
    path = error["loc"][1:]  # behind "body"
    if not path and error["type"] == "missing":
        return Problem(400, "body must be JSON; got nothing.")
    name = _name(path)
    if error["type"] == "extra_forbidden":
        members = list(model.model_fields)
        near = nearest(name, members)
        cure = f"Did you mean {near}?" if near else f"There are {', '.join(members)}."
        return bad_input(f"{quoted(name)} is no member of the request. {cure}")
    if error["type"] == "missing":
        got = quoted(list(error["input"]))
        return bad_input(f"{name} must be given; got {got}. GET /docs describes it.")
    rule = _RULES.get(error["type"])
    limits = {name: _figure(value) for name, value in error.get("ctx", {}).items()}
    broken = rule.format(**limits) if rule else f"must be right ({error['msg']})"
    return bad_input(f"{name} {broken}; got {quoted(error['input'])}.")


def _figure(value: object) -> object:
    """A limit as people write it: 100, not 100.0."""
    return f"{value:g}" if isinstance(value, float) else value


def _name(path: Sequence[str | int]) -> str:
    """``edits[3].layer``; branches of a union, which pydantic names too, are left out."""
    name, *steps = path or ["name of a member"]
    name = str(name)
    for before, at in zip(path, steps, strict=False):
        name += f"[{at}]" if isinstance(at, int) else f".{at}" if isinstance(before, int) else ""
    return name
