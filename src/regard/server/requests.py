"""The bodies of requests: models of FastAPI's, JSON read strictly, and what is wrong in words.

Whatever depends on the runs that are served, such as their names, is checked by ``service``.
"""

import json
import re
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, NoReturn, TypeAlias

from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import ErrorDetails

from regard.choices import nearest
from regard.config import JsonValue
from regard.errors import DataError
from regard.server.limits import Limits
from regard.server.problems import Problem, shown

# What no sentence holds: controls other than tab and line ends; halves of surrogate pairs.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_HALF = re.compile("[\ud800-\udfff]")
# What has no shape of its own: marks of width zero, of direction and of joining.
_UNSEEN = re.compile("[\\s\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]*")

Run = Annotated[
    str | None, Field(description="Name of the run, as GET /runs lists it; the first if left out.")
]
BeamSize = Annotated[
    int | None,
    Field(ge=1, description="Hypotheses kept at each step, 1 is greedy; the run's if left out."),
]

Place = Annotated[int, Field(ge=0)]
Number = Annotated[int, Field(ge=0)] | Literal["mean"]

# Tokens written after a text, and samples of it, at most.
_MOST_TOKENS, _MOST_SAMPLES = 2000, 16
# Tokens of a call that is planned, not run.
LARGEST_PLAN = 1 << 20


class _Request(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


# A text or a record, and its name in the request.
Input: TypeAlias = tuple[str | Mapping[str, JsonValue], str]


class TextsRequest(_Request):
    """Texts that a run is to answer, and settings of the search."""

    text: str | None
    texts: list[str] | None
    run: Run

    def decoding(self) -> dict[str, JsonValue]:
        """The settings of the search that the request has."""
        others = {"text", "texts", "records", "run", "alignments"}
        return self.model_dump(exclude_none=True, exclude=others)


class PredictRequest(TextsRequest):
    """Inputs of a request: one ``text``, several ``texts``, or ``records`` of several fields."""

    text: str | None = Field(None, description="One text.", examples=["我爱中国"])
    texts: list[str] | None = Field(None, description="Several texts, instead of one.")
    records: list[dict[str, object]] | None = Field(
        None,
        description="Of runs of other tasks than translation: records as in their files.",
        examples=[[{"text": "很好吃", "aspect": "水果"}]],
    )
    run: Run = None
    beam_size: BeamSize = None
    n_best: int = Field(1, ge=1, description="Translations of each text, at most beam_size.")
    length_penalty: float | None = Field(
        None, ge=0, le=100, description="Higher gives longer outputs; the run's if left out."
    )
    alignments: bool = Field(
        False, description="Add the tokens, and the weights with which the output looked at them."
    )


class ContinueRequest(TextsRequest):
    """One ``text``, or several ``texts``, that a language model continues."""

    text: str | None = Field(None, description="How a text begins.", examples=["Once upon a"])
    texts: list[str] | None = Field(None, description="Several of them, instead of one.")
    run: Run = None
    method: Literal["beam", "greedy", "sample"] | None = Field(
        None, description="How to search; as the run's recipe says if left out."
    )
    n_best: int | None = Field(
        None,
        ge=1,
        le=_MOST_SAMPLES,
        description="Samples of each text; more than 1 of sample only.",
    )
    max_tokens: int | None = Field(
        None, ge=1, le=_MOST_TOKENS, description="Tokens written after each text; the run's."
    )
    temperature: float | None = Field(
        None, description="Of samples: below 1 likelier, above freer."
    )
    top_k: int | None = Field(None, ge=1, description="Of samples: from so many tokens only.")
    top_p: float | None = Field(None, description="Of samples: from so much probability only.")
    repetition_penalty: float | None = Field(None, description="Above 1 against repetitions.")
    seed: int | None = Field(None, ge=0, description="Of samples: the same gives the same.")
    one_line: bool | None = Field(None, description="Whether to stop where a line ends.")


class AttentionRequest(_Request):
    """A text whose translation is looked into."""

    text: str = Field(description="The text.", examples=["我爱中国"])
    target: str | None = Field(
        None, description="Explain this translation, instead of the model's own."
    )
    run: Run = None
    beam_size: BeamSize = None


class RowsRequest(AttentionRequest):
    """Exact weights of one head, for the same text, target, run and beam_size."""

    kind: Literal["cross", "encoder", "decoder"] = Field(
        "cross", description="Output to source, source to itself, or output to itself."
    )
    layer: Number = Field("mean", description="Counted from 0; or mean, over all layers.")
    head: Number = Field("mean", description="Counted from 0; or mean, over all heads.")
    queries: list[Place] | None = Field(
        None,
        min_length=1,
        max_length=1024,
        description="Places of the tokens that look; all if left out.",
    )
    keys: list[Place] | None = Field(
        None,
        min_length=2,
        max_length=2,
        description="[first, end) of the tokens looked at; all if left out.",
    )


class ExplainRequest(_Request):
    """A mask, and the sizes of a call of ``attend`` to plan with it."""

    mask: str = Field(description="An expression.", examples=["causal() & window(before=2)"])
    queries: int = Field(8, ge=1, le=LARGEST_PLAN, description="Queries, N.")
    keys: int | None = Field(None, ge=1, le=LARGEST_PLAN, description="Keys, M; N if left out.")
    heads: int = Field(8, ge=1, le=128, description="Heads, H.")
    head_dim: int = Field(64, ge=1, le=512, description="Width of a head, D.")


class StrictRequest(Request):
    """A request whose JSON has one meaning: UTF-8, each member once, no number beside JSON's."""

    async def json(self) -> Mapping[str, JsonValue]:
        """The object that the body is.

        Raises:
            Problem: It is not UTF-8, not JSON, or not an object.
        """
        return read_object(await self.body())


class StrictRoute(APIRoute):
    """A route that takes a ``StrictRequest``."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler of FastAPI's, given the stricter request."""
        handle = super().get_route_handler()

        async def strictly(request: Request) -> Response:
            return await handle(StrictRequest(request.scope, request.receive))

        return strictly


def read_object(body: bytes) -> Mapping[str, JsonValue]:
    """The JSON object that a body is.

    Raises:
        Problem: It is not UTF-8, not JSON, or not an object.
    """
    try:
        found = _JSON.decode(body.decode("utf-8-sig"))  # some editors put a mark before it
    except UnicodeDecodeError as error:
        raise Problem(400, f"body must be UTF-8; got a bad byte at {error.start}.") from None
    except RecursionError:
        raise Problem(400, "body must be JSON; got brackets nested too deep.") from None
    except ValueError as error:
        raise Problem(400, f"body must be JSON; got {_said(error)}.") from None
    if not isinstance(found, dict):
        raise Problem(400, f"body must be a JSON object; got {shown(found)}.")
    return found


def inputs_of(request: TextsRequest, limits: Limits) -> list[Input]:
    """The texts or records of a request, each checked and with its name in the request.

    Raises:
        Problem: There is not exactly one of ``text``, ``texts`` and ``records``, there are too
            many, or one of them is no good.
    """
    names = [name for name in ("text", "texts", "records") if name in type(request).model_fields]
    given = [name for name in names if getattr(request, name) is not None]
    if len(given) != 1:
        *first, last = names
        raise Problem(
            422,
            f"request must have one of {', '.join(first)} and {last}; "
            f"got {' and '.join(given) or 'none'}.",
        )
    (name,) = given
    if request.text is not None:
        return [(checked(name, request.text, limits.max_length), name)]
    inputs = [(value, f"{name}[{place}]") for place, value in enumerate(getattr(request, name))]
    if len(inputs) > limits.max_texts:
        raise Problem(
            413,
            f"{name} must be at most {limits.max_texts:,}; got {len(inputs):,}. "
            "Send them in several requests.",
        )
    for value, place in inputs:
        for text in _texts_in(value):
            checked(place, text, limits.max_length, is_whole=name == "texts")
    return inputs


def _texts_in(value: object) -> Iterator[str]:
    """Every text of a record, however deep."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield name
            yield from _texts_in(inner)
    elif isinstance(value, list):
        yield from (
            (" ".join(value),)
            if all(isinstance(each, str) for each in value)
            else (text for inner in value for text in _texts_in(inner))
        )


def checked(name: str, text: str, longest: int, *, is_whole: bool = True) -> str:
    r"""The text, if it is one.

    Args:
        name: What it is called.
        text: What came.
        longest: Most characters.
        is_whole: Whether it must hold something; a part of a record need not.

    Raises:
        Problem: It is empty, too long, or has control characters or half a surrogate pair.

    Example:
        >>> checked("text", "a\x07", 10_000)
        Traceback (most recent call last):
        regard.server.problems.Problem: text must hold no control characters; got '\x07' at 1.
    """
    if len(text) > longest:
        raise Problem(
            422,
            f"{name} must be at most {longest:,} characters long; got {len(text):,}. "
            "Send it in parts.",
        )
    if not text.isascii() and (half := _HALF.search(text)):
        raise Problem(422, f"{name} must be Unicode; got half a surrogate pair at {half.start()}.")
    if control := _CONTROL.search(text):
        raise Problem(
            422,
            f"{name} must hold no control characters; got {control[0]!r} at {control.start()}.",
        )
    if is_whole and _UNSEEN.fullmatch(text):
        raise Problem(422, f"{name} must hold something to read; got an empty text.")
    return text


# What pydantic finds wrong, in our words; the others are told as they are.
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
    """Error answer for a body that is no request of this model.

    Args:
        error: The first that pydantic found.
        model: The request's.
    """
    place = error["loc"][1:]  # behind "body"
    if not place and error["type"] == "missing":
        return Problem(400, "body must be JSON; got nothing.")
    name = _name(place)
    if error["type"] == "extra_forbidden":
        members = list(model.model_fields)
        near = nearest(name, members)
        cure = f"Did you mean {near}?" if near else f"There are {', '.join(members)}."
        return Problem(422, f"{shown(name)} is no member of the request. {cure}")
    if error["type"] == "missing":
        return Problem(422, f"{name} must be given; got {shown(list(error['input']))}.")
    rule = _RULES.get(error["type"])
    known = {name: _figure(value) for name, value in error.get("ctx", {}).items()}
    said = rule.format(**known) if rule else f"must be right ({error['msg']})"
    return Problem(422, f"{name} {said}; got {shown(error['input'])}.")


def _figure(value: object) -> object:
    """A limit as people write it: 100, not 100.0."""
    return f"{value:g}" if isinstance(value, float) else value


def _name(place: Sequence[str | int]) -> str:
    """``texts[3]``; branches of a union, which pydantic names too, are left out."""
    first, *rest = place or ["name of a member"]
    return str(first) + "".join(f"[{at}]" for at in rest if isinstance(at, int))


def _said(error: ValueError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg[0].lower()}{error.msg[1:]} at character {error.pos}"
    return "a number with too many digits" if "digits" in str(error) else str(error)


def _members(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    """An object of JSON, each of whose members has its own name."""
    found: dict[str, JsonValue] = {}
    for name, value in pairs:
        if name in found:
            raise Problem(400, f"members must have different names; got {shown(name)} twice.")
        found[name] = value
    return found


def _no_constant(name: str) -> NoReturn:
    raise DataError(f"{name}, which is no number in JSON")


# Made once: json.loads makes one for each call that has options.
_JSON = json.JSONDecoder(parse_constant=_no_constant, object_pairs_hook=_members)
