"""The bodies of requests: models of FastAPI's, JSON read strictly, and the limits of texts."""

import json
import re
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn, TypeAlias, get_type_hints

from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, Field, create_model

from regard.config import JsonValue
from regard.errors import DataError
from regard.fields import Count, Positive, at_least, check_fields, meanings_of
from regard.inference.options import AnswerOptions
from regard.server.problems import Problem, bad_input, quoted
from regard.viewer.options import LookOptions

# Bytes of a request that any text fits in, below 10,000 characters.
_SMALL_BODY = 1 << 20
# Characters that cost about as much as one sentence.
_SENTENCE = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """Limits of requests and of the queue.

    Attributes:
        max_batch: Sentences translated at once; a long text counts as several.
        turn: Seconds of work on one request after which others have their turn, such as between
            the parts of a long text.
        queue: Sentences that may wait; beyond that, requests are refused with 503.
        timeout: Seconds within which a request is answered, or given up with 504.
        max_length: Characters of one text.
        max_looked: Characters of a text that is looked into.
        max_texts: Texts of one request.
        max_beam: Widest beam.
        patience: Seconds that a client may take to send its request.

    Raises:
        SettingError: A number is out of range.

    Example:
        >>> Limits(max_length=1_000_000).max_body
        6001024
        >>> Limits(max_batch=0)
        Traceback (most recent call last):
        regard.errors.SettingError: max_batch must be at least 1; got 0. Use 1 for no batches.
    """

    max_batch: Annotated[int, at_least(1, cure="Use 1 for no batches.")] = 64
    turn: Positive = 0.5
    queue: Count = 2000
    timeout: Positive = 30.0
    max_length: Count = 10_000
    max_looked: Count = 2000
    max_texts: Count = 1000
    max_beam: Count = 32
    patience: Positive = 10.0

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def max_body(self) -> int:
        """Bytes of one request: a text of the longest kind fits, each character escaped."""
        return max(_SMALL_BODY, 6 * self.max_length + 1024)


def sentences(text: str) -> int:
    """How many sentences a text counts as."""
    return 1 + len(text) // _SENTENCE


# Characters of no sentence: controls other than tab and line ends; halves of surrogate pairs.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_HALF = re.compile("[\ud800-\udfff]")
# Invisible characters: space, and marks of width zero, of direction and of joining.
_UNSEEN = re.compile("[\\s\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]*")

Run = Annotated[
    str | None, Field(description="Name of the run, as GET /runs lists it; the first if left out.")
]
BeamSize = Annotated[
    int | None,
    Field(ge=1, description="Hypotheses kept at each step, 1 is greedy; the run's if left out."),
]

Index = Annotated[int, Field(ge=0)]
Number = Annotated[int, Field(ge=0)] | Literal["mean"]

# Tokens written after a text, and samples of it, at most.
_MOST_TOKENS, MOST_SAMPLES = 2000, 16
# Longest output for a source.
_MOST_RATIO = 10
# Words that no output holds, each of which is spelled in all ways that tokens allow.
_MOST_AVOIDED = 100
# Tokens of a call that is planned, not run.
LARGEST_PLAN = 1 << 20


class _Request(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


# A text or a record, and its name in the request.
Input: TypeAlias = tuple[str | Mapping[str, JsonValue], str]


class _Inputs(_Request):
    """Inputs of a request: one ``text``, several ``texts``, or ``records`` of several fields."""

    text: str | None = Field(None, description="One text.", examples=["我爱中国"])
    texts: list[str] | None = Field(None, description="Several texts, instead of one.")
    records: list[dict[str, object]] | None = Field(
        None,
        description="Records as in the run's files, of several fields each.",
        examples=[[{"text": "很好吃", "aspect": "水果"}]],
    )
    run: Run = None

    def options(self) -> AnswerOptions:
        """The settings of the search that the request has, and the additions to its answers."""
        return AnswerOptions(**_given(self, AnswerOptions))


def _given(request: _Request, kind: type) -> dict[str, Any]:
    """Members of a request for the fields of a class of options; lists of its tuples are tuples."""
    values = {f.name: getattr(request, _NAMES.get(f.name, f.name), None) for f in fields(kind)}
    return {
        name: tuple(map(_plain, value)) if isinstance(value, list) else value
        for name, value in values.items()
        if value is not None
    }


def _plain(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


# Names of options that the server has others for.
_NAMES = {"attention": "alignments"}
# Members whose form or bounds are the server's.
_FORMS: dict[str, Any] = {
    "beam_size": Annotated[int | None, Field(ge=1)],
    "n_best": int,
    "min_length": Annotated[int | None, Field(le=_MOST_TOKENS)],
    "max_tokens": Annotated[int | None, Field(ge=1, le=_MOST_TOKENS)],
    "max_ratio": Annotated[float | None, Field(ge=0, le=_MOST_RATIO)],
    "avoid": Annotated[list[str] | None, Field(max_length=_MOST_AVOIDED)],
    "attribute": list[str] | None,
    "layers": list[Index] | None,
    "heads": list[Index] | None,
    "neurons": list[Annotated[list[Index], Field(min_length=2, max_length=2)]] | None,
    "circuits": list[Annotated[list[Index], Field(min_length=2, max_length=2)]] | None,
    "scores": list[Annotated[list[Index], Field(min_length=2, max_length=4)]] | None,
}
_DEFAULTS = {"n_best": 1}


def _members_of(kind: type, without: Collection[str] = ()) -> dict[str, Any]:
    """Members of a request for the fields of a class of options."""
    hints, meanings = get_type_hints(kind), meanings_of(kind)
    return {
        _NAMES.get(field.name, field.name): (
            _FORMS.get(field.name, hints[field.name]),
            Field(_DEFAULTS.get(field.name, field.default), description=meanings[field.name]),
        )
        for field in fields(kind)
        if field.name not in without
    }


class HeadsEdit(_Request):
    """Heads of one layer that are muted or scaled."""

    kind: Literal["cross", "encoder", "decoder"] = Field(description="Whose heads.")
    layer: Index = Field(description="Counted from 0.")
    heads: list[Index] | None = Field(
        None, min_length=1, max_length=1024, description="Counted from 0; all if left out."
    )
    factor: float = Field(0.0, ge=0, le=2, description="Factor of their outputs: 0 mutes them.")


class LookRequest(_Request):
    """A text whose answer is looked into."""

    text: str = Field(description="The text.", examples=["我爱中国"])
    target: str | None = Field(
        None, description="Explain this output or class, instead of the model's own."
    )
    run: Run = None
    beam_size: BeamSize = None
    edits: list[HeadsEdit] | None = Field(
        None,
        min_length=1,
        max_length=1024,
        description="Heads to mute or scale; the answer without them comes first.",
        examples=[None],
    )

    def options(self) -> LookOptions:
        """Options of attention shown and of answers explained."""
        return LookOptions(**_given(self, LookOptions))


if TYPE_CHECKING:

    class PredictRequest(_Inputs):
        """Inputs, and how they are answered."""

    class AttentionRequest(LookRequest):
        """A text, and the parts of the attention to show and explain."""

else:
    PredictRequest = create_model(
        "PredictRequest", __base__=_Inputs, __doc__=_Inputs.__doc__, **_members_of(AnswerOptions)
    )

    AttentionRequest = create_model(
        "AttentionRequest",
        __base__=LookRequest,
        __doc__=LookRequest.__doc__,
        **_members_of(LookOptions, ("target", "beam_size")),
    )


class RowsRequest(LookRequest):
    """Exact weights of one head, for the same text, target, run, beam_size and edits."""

    kind: Literal["cross", "encoder", "decoder"] = Field(
        "cross", description="Output to source, source to itself, or output to itself."
    )
    layer: Number = Field("mean", description="Counted from 0; or mean, over all layers.")
    head: Number = Field("mean", description="Counted from 0; or mean, over all heads.")
    queries: list[Index] | None = Field(
        None,
        min_length=1,
        max_length=1024,
        description="Positions of the tokens that look; all if left out.",
    )
    keys: list[Index] | None = Field(
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
        """The object that the body is."""
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
    """The JSON object that a body is; a Problem if it is not UTF-8, not JSON, or not an object."""
    try:
        members = _JSON.decode(body.decode("utf-8-sig"))  # some editors put a mark before it
    except UnicodeDecodeError as error:
        raise Problem(400, f"body must be UTF-8; got a bad byte at {error.start}.") from None
    except RecursionError:
        raise Problem(400, "body must be JSON; got brackets nested too deep.") from None
    except ValueError as error:
        raise Problem(400, f"body must be JSON; got {_reason(error)}.") from None
    if not isinstance(members, dict):
        raise Problem(400, f"body must be a JSON object; got {quoted(members)}.")
    return members


def inputs_of(request: PredictRequest, limits: Limits) -> list[Input]:
    """The texts or records of a request, each checked and with its name in the request."""
    names = ("text", "texts", "records")
    present = [name for name in names if getattr(request, name) is not None]
    if len(present) != 1:
        raise bad_input(
            "request must have one of text, texts and records; "
            f"got {' and '.join(present) or 'none'}.",
        )
    (name,) = present
    if request.text is not None:
        return [(checked(name, request.text, limits.max_length), name)]
    inputs = [(value, f"{name}[{index}]") for index, value in enumerate(getattr(request, name))]
    if len(inputs) > limits.max_texts:
        raise Problem(
            413,
            f"{name} must be at most {limits.max_texts:,}; got {len(inputs):,}. "
            "Send them in several requests.",
        )
    for value, where in inputs:
        for text in _texts_in(value):
            checked(where, text, limits.max_length, is_whole=name == "texts")
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
            if all(isinstance(text, str) for text in value)
            else (text for inner in value for text in _texts_in(inner))
        )


def checked(name: str, text: str, longest: int, *, is_whole: bool = True) -> str:
    """The text, if it is not too long, not empty, and Unicode without control characters."""
    if len(text) > longest:
        raise bad_input(
            f"{name} must be at most {longest:,} characters long; got {len(text):,}. "
            "Send it in parts.",
        )
    if not text.isascii() and (half := _HALF.search(text)):
        raise bad_input(f"{name} must be Unicode; got half a surrogate pair at {half.start()}.")
    if control := _CONTROL.search(text):
        raise bad_input(
            f"{name} must hold no control characters; got {control[0]!r} at {control.start()}."
        )
    if is_whole and _UNSEEN.fullmatch(text):
        raise bad_input(f"{name} must hold something to read; got an empty text.")
    return text


def _reason(error: ValueError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg[0].lower()}{error.msg[1:]} at character {error.pos}"
    return "a number with too many digits" if "digits" in str(error) else str(error)


def _members(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    """An object of JSON, each of whose members has its own name."""
    members: dict[str, JsonValue] = {}
    for name, value in pairs:
        if name in members:
            raise Problem(400, f"members must have different names; got {quoted(name)} twice.")
        members[name] = value
    return members


def _no_constant(name: str) -> NoReturn:
    raise DataError(f"{name}, which is no number in JSON")


# Made once: json.loads makes one for each call that has options.
_JSON = json.JSONDecoder(parse_constant=_no_constant, object_pairs_hook=_members)
