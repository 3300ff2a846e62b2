"""Error answers: a status, a code, and a sentence with the cure.

Every refusal has one form, whatever it comes from::

    {"error": {"code": "bad_request", "message": "beam_size must be at least 1; got 0."}}
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus

from starlette.exceptions import HTTPException

from regard.errors import DataError, RegardError, SettingError, ShapeError

# Statuses of errors that frameworks raise themselves, and what they are called here.
_CODES = {
    400: "bad_request",
    401: "unauthorized",
    404: "not_found",
    405: "wrong_method",
    408: "too_slow",
    413: "too_large",
    415: "wrong_type",
    421: "wrong_host",
    422: "bad_input",
    500: "bug",
    503: "busy",
    504: "timeout",
    505: "wrong_version",
}


@dataclass(eq=False)
class Problem(HTTPException):
    """An answer that says why there is none.

    Attributes:
        status: Of HTTP.
        message: ``{name} must {rule}; got {what came}. {cure}``, without paths of the machine.
        members: More that the client may want, such as the id of a bug in the log.
        headers: Of the answer, such as ``Retry-After``.
        code: For programs; None takes the status's own.
    """

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
        r"""The answer's JSON.

        Example:
            >>> Problem(404, "route must be known; got '/x'.").body().decode()
            '{"error": {"code": "not_found", "message": "route must be known; got \'/x\'."}}'
        """
        code = self.code or _CODES.get(self.status, "refused")
        error = {"code": code, "message": self.message, **self.members}
        # Plain ASCII: whatever came, half a surrogate pair too, can be said again.
        return json.dumps({"error": error}).encode()


def of_error(error: RegardError) -> Problem | None:
    """Error answer for an exception; None where it is no fault of the client's.

    Only what was asked can be wrong in these ways once a server runs; other errors may name paths
    of the machine.

    Example:
        >>> of_error(SettingError("n_best must be at least 1; got 0.")).status
        422
    """
    if isinstance(error, SettingError | DataError | ShapeError):
        return Problem(422, str(error))
    return None


def of_status(status: int, method: str, path: str, headers: Mapping[str, str]) -> Problem:
    """Error answer where no route matches.

    Args:
        status: 404, 405 or another that a router gives.
        method: What was asked for.
        path: Where.
        headers: The router's, such as which methods are allowed.
    """
    if status == HTTPStatus.NOT_FOUND:
        message = f"route must be one of this server; got {shown(path)}. GET /docs lists them."
    elif status == HTTPStatus.METHOD_NOT_ALLOWED:
        allowed = headers.get("allow", "another method")
        message = f"method of {shown(path)} must be {allowed}; got {shown(method)}."
    else:
        message = f"request must be answerable; got: {HTTPStatus(status).phrase}."
    return Problem(status, message, headers=dict(headers))


def shown(value: object, longest: int = 60) -> str:
    """Shorten a value for a message.

    Example:
        >>> shown("a" * 100, longest=10)
        "'aaaaaaaaa…"
    """
    # Not all of a megabyte, only to throw it away.
    text = repr(value[: longest + 1] if isinstance(value, str) else value)
    return text if len(text) <= longest else f"{text[:longest]}…"
