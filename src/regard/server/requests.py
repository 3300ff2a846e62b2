"""The bodies of requests: models of FastAPI's, JSON read strictly, and the limits of texts."""

import json
import re
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NoReturn, TypeAlias

from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, Field

from regard.config import JsonValue
from regard.errors import DataError
from regard.fields import Count, Positive, at_least, check_fields
from regard.server.problems import Problem, quoted

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
_MOST_TOKENS, MOST_SAMPLES = 2000, 16
# Tokens of a call that is planned, not run.
LARGEST_PLAN = 1 << 20


class _Request(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


# A text or a record, and its name in the request.
Input: TypeAlias = tuple[str | Mapping[str, JsonValue], str]


class PredictRequest(_Request):
    """Inputs of a request: one ``text``, several ``texts``, or ``records`` of several fields."""

    text: str | None = Field(None, description="One text.", examples=["我爱中国"])
    texts: list[str] | None = Field(None, description="Several texts, instead of one.")
    records: list[dict[str, object]] | None = Field(
        None,
        description="Of runs of other tasks than translation: records as in their files.",
        examples=[[{"text": "很好吃", "aspect": "水果"}]],
    )
    run: Run = None
    alignments: bool = Field(
        False, description="Add the tokens, and the weights with which the output looked at them."
    )
    method: Literal["beam", "greedy", "sample"] | None = Field(
        None, description="How to search; a beam of translators, else as the run's recipe says."
    )
    beam_size: BeamSize = None
    n_best: int = Field(
        1, ge=1, description="Outputs for each text: at most beam_size, or so many samples."
    )
    length_penalty: float | None = Field(
        None, ge=0, le=100, description="Higher gives longer outputs; the run's if left out."
    )
    max_tokens: int | None = Field(
        None, ge=1, le=_MOST_TOKENS, description="Language models: tokens written after a text."
    )
    one_line: bool | None = Field(
        None, description="Language models: whether to stop where a line ends."
    )
    temperature: float | None = Field(
        None, description="Of samples: below 1 likelier, above freer."
    )
    top_k: int | None = Field(None, ge=1, description="Of samples: from so many tokens only.")
    top_p: float | None = Field(None, description="Of samples: from so much probability only.")
    repetition_penalty: float | None = Field(None, description="Above 1 against repetitions.")
    seed: int | None = Field(None, ge=0, description="Of samples: the same gives the same.")

    def decoding(self) -> dict[str, JsonValue]:
        """The settings of the search that the request has."""
        others = {"text", "texts", "records", "run", "alignments"}
        return self.model_dump(exclude_none=True, exclude=others)


class HeadsEdit(_Request):
    """Heads of one layer that are muted or scaled."""

    kind: Literal["cross", "encoder", "decoder"] = Field(description="Whose heads.")
    layer: Place = Field(description="Counted from 0.")
    heads: list[Place] | None = Field(
        None, min_length=1, max_length=1024, description="Counted from 0; all if left out."
    )
    factor: float = Field(
        0.0, ge=0, le=2, description="What they mix is multiplied by it: 0 mutes them."
    )


class AttentionRequest(_Request):
    """A text whose translation is looked into."""

    text: str = Field(description="The text.", examples=["我爱中国"])
    target: str | None = Field(
        None, description="Explain this translation, instead of the model's own."
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


class RowsRequest(AttentionRequest):
    """Exact weights of one head, for the same text, target, run, beam_size and edits."""

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
        raise Problem(
            422,
            "request must have one of text, texts and records; "
            f"got {' and '.join(present) or 'none'}.",
        )
    (name,) = present
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
    """The text, if it is not too long, not empty, and Unicode without control characters."""
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
