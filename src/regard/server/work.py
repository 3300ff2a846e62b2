"""Work of the model thread: whole batches of texts, with the served models."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention import AttentionCall, explain
from regard.attention.masks.parse import parse_mask
from regard.config import JsonValue
from regard.errors import DataError, RegardError, SettingError
from regard.inference import Predictor
from regard.inference.generator import Continuations, Generator
from regard.inference.look import weights_of_row
from regard.inference.looking import look_at
from regard.server.batching import AbandonedError
from regard.tasks import DecodingConfig
from regard.tasks.translations import Translations
from regard.text import normalize
from regard.viewer import Example

# Texts looked at before whose queries and keys are kept, so that more rows are there at once; and
# how many numbers those are at most.
_KEPT_TEXTS = 64
_KEPT_NUMBERS = 16_000_000
# Larger masks are planned and not drawn.
_DRAWN = 64


ItemT = TypeVar("ItemT")
AnswerT = TypeVar("AnswerT")
AnswerT_co = TypeVar("AnswerT_co", covariant=True)


class Work(Generic[AnswerT_co]):
    """Key of a batch, shared by requests with equal ones; each item gets an ``AnswerT_co``."""


@dataclass(frozen=True, slots=True)
class Translating(Work[Translations]):
    """Requests for translations; everything is given."""

    run: str
    beam_size: int
    n_best: int
    length_penalty: float
    alignments: bool


@dataclass(frozen=True, slots=True)
class Looking(Work[Example]):
    """Requests for what a page shows of a text and its translation."""

    run: str
    beam_size: int


@dataclass(frozen=True, slots=True)
class Reading(Work[list[list[float]]]):
    """Requests for exact weights."""

    run: str
    beam_size: int


@dataclass(frozen=True, slots=True)
class Answering(Work[Mapping[str, JsonValue]]):
    """Requests for answers that are computed in one pass, such as labels."""

    run: str


@dataclass(frozen=True, slots=True)
class Continuing(Work[Mapping[str, JsonValue]]):
    """Requests for what a language model writes after texts, searched for alike."""

    run: str
    decoding: DecodingConfig


@dataclass(frozen=True, slots=True)
class Planning(Work[dict[str, JsonValue]]):
    """Requests to explain a call of ``attend``."""


@dataclass(frozen=True, slots=True)
class RecordItem:
    """Input of a task: a text or a record, and its name in the request."""

    record: str | Mapping[str, JsonValue]
    where: str


@dataclass(frozen=True, slots=True)
class TextItem:
    """A text to translate, or a part of one that is too long to be translated at once."""

    text: str
    is_first: bool


@dataclass(frozen=True, slots=True)
class Prompt:
    """A text to go on with, and how many tokens may be written for it in all."""

    text: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Subject:
    """A text to look into, and the translation to explain; None is the model's own."""

    text: str
    target: str | None = None


@dataclass(frozen=True, slots=True)
class Tile:
    """Some weights: of a head, or the mean over the heads of a layer, or over all layers.

    Attributes:
        subject: The text and the translation looked into.
        kind: ``cross``, ``encoder`` or ``decoder``.
        layer: Counted from 0.
        head: Counted from 0.
        queries: Places of those that look; None is all.
        keys: First and end of those looked at; None is all.
    """

    subject: Subject
    kind: str
    layer: int | Literal["mean"]
    head: int | Literal["mean"]
    queries: tuple[int, ...] | None = None
    keys: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """A call of ``attend`` to plan."""

    mask: str
    queries: int
    keys: int
    heads: int
    head_dim: int


Item = TextItem | RecordItem | Prompt | Subject | Tile | Call
# What ``attend`` was called with, by kind and layer.
_Calls = Mapping[tuple[str, int], AttentionCall]


class Worker:
    """Answers batches, one after another.

    Whatever it refuses of an item stands in the item's place, so that the others have answers.

    Args:
        predictors: The models by name.
    """

    def __init__(self, predictors: Mapping[str, Predictor]) -> None:
        self._predictors = predictors
        self._calls: OrderedDict[tuple[Reading, Subject], _Calls] = OrderedDict()

    def __call__(
        self, task: Work[object], items: Sequence[Any], is_wanted: Callable[[], bool]
    ) -> Sequence[object]:
        """One answer for each item.

        Args:
            task: What is to be done with all of them.
            items: Parts of texts for ``Translating``, records for ``Answering``, prompts for
                ``Continuing``, subjects for ``Looking``, tiles for ``Reading``, calls for
                ``Planning``.
            is_wanted: Whether anybody still waits.

        Raises:
            AbandonedError: Nobody waits any more.
        """
        match task:
            case Translating():
                return self._translate(task, items, is_wanted)
            case Answering():
                return self._answer(task, items, is_wanted)
            case Continuing():
                return self._go_on(task, items, is_wanted)
            case Looking():
                return _each(lambda subject: self._example(task, subject), items, is_wanted)
            case Reading():
                return _each(lambda asked: self._tile(task, asked), items, is_wanted)
            case Planning():
                return _each(plan, items, is_wanted)
            case _:
                raise AssertionError(task)

    def _translate(
        self, task: Translating, parts: Sequence[TextItem], is_wanted: Callable[[], bool]
    ) -> list[Translations]:
        return self._predictors[task.run].translate_parts(
            [part.text for part in parts],
            [part.is_first for part in parts],
            beam_size=task.beam_size,
            n_best=task.n_best,
            length_penalty=task.length_penalty,
            attention=task.alignments,
            progress=lambda _: _check_wanted(is_wanted),
        )

    def _answer(
        self, task: Answering, items: Sequence[RecordItem], is_wanted: Callable[[], bool]
    ) -> list[Mapping[str, JsonValue] | RegardError]:
        model = self._predictors[task.run]
        found = _each(lambda asked: model.task.request(asked.record, asked.where), items, is_wanted)
        examples = [each for each in found if not isinstance(each, RegardError)]
        answers = iter(model.answers(examples, progress=lambda _: _check_wanted(is_wanted)))
        return [
            each if isinstance(each, RegardError) else next(answers).to_dict() for each in found
        ]

    def _go_on(
        self, task: Continuing, prompts: Sequence[Prompt], is_wanted: Callable[[], bool]
    ) -> Sequence[Mapping[str, JsonValue] | RegardError]:
        """Texts and what follows them, given up after a while where nobody waits any more."""
        generator = Generator.of(self._predictors[task.run])

        def go_on(asked: Sequence[Prompt]) -> list[dict[str, JsonValue]]:
            texts = [prompt.text for prompt in asked]
            found = generator.continuations_of(
                texts, task.decoding, progress=lambda: _check_wanted(is_wanted)
            )
            return [
                Continuations(text, tuple(each)).to_dict()
                for text, each in zip(texts, found, strict=True)
            ]

        try:
            return go_on(prompts)
        except RegardError:  # of one of them, which the others are not to suffer from
            return _each(lambda prompt: go_on([prompt])[0], prompts, is_wanted)

    def _example(self, task: Looking, subject: Subject) -> Example:
        model = self._predictors[task.run]
        return look_at(model, subject.text, subject.target, beam_size=task.beam_size)

    def _tile(self, task: Reading, asked: Tile) -> list[list[float]]:
        key = task, asked.subject
        if key not in self._calls:
            self._calls[key] = _calls(
                self._predictors[task.run], asked.subject, beam_size=task.beam_size
            )
        self._calls.move_to_end(key)
        while len(self._calls) > 1 and (
            len(self._calls) > _KEPT_TEXTS or sum(map(_size, self._calls.values())) > _KEPT_NUMBERS
        ):
            self._calls.popitem(last=False)
        found: list[list[float]] = tile(self._calls[key], asked).tolist()
        return found


def _calls(predictor: Predictor, subject: Subject, *, beam_size: int) -> _Calls:
    """Calls of ``attend`` for the translation: one forward pass."""
    source = normalize(subject.text)
    if subject.target is None:
        best = predictor.translate([source], beam_size=beam_size)[0][0]
        if best.parts > 1:
            raise DataError(
                f"text must be one that the model reads at once; got one of {best.parts} parts. "
                "Ask for each of them."
            )
        written: Sequence[int] = best.tokens
    else:
        written = predictor.tokenizer.target.encode(normalize(subject.target))
    return predictor.observed(predictor.tokenizer.source.encode(source), written)


def tile(calls: _Calls, asked: Tile) -> Float[Tensor, "N M"]:
    """Exact weights, worked out for the queries that are asked for.

    Raises:
        SettingError: There is no such kind, layer, head, query or key.
    """
    layers = {layer: seen for (kind, layer), seen in calls.items() if kind == asked.kind}
    if not layers:
        kinds = ", ".join(sorted({kind for kind, _ in calls})) or "none"
        raise SettingError(f"kind must be one the model has ({kinds}); got {asked.kind!r}.")
    if asked.layer == "mean" and asked.head != "mean":
        raise SettingError("head must be mean where layer is mean: heads of layers differ.")
    if asked.layer != "mean" and asked.layer not in layers:
        raise SettingError(f"layer must be one of {_listed(layers)}; got {asked.layer}.")
    chosen = list(layers.values()) if asked.layer == "mean" else [layers[asked.layer]]
    N, M = chosen[0].query.shape[-2], chosen[0].key.shape[-2]
    queries = range(N) if asked.queries is None else asked.queries
    if not set(queries) <= set(range(N)):
        raise SettingError(f"queries must be of {_listed(range(N))}; got {max(queries)}.")
    first, end = (0, M) if asked.keys is None else asked.keys
    if not 0 <= first <= end <= M:
        raise SettingError(f"keys must be [first, end) within 0 and {M}; got [{first}, {end}].")
    found = [
        weights_of_row(seen, queries=queries)[..., first:end] for seen in chosen
    ]  # (H, P, M) each
    if asked.head == "mean":
        return torch.stack([each.mean(0) for each in found]).mean(0)
    if asked.head not in range(len(found[0])):
        raise SettingError(
            f"head must be one of {_listed(range(len(found[0])))}; got {asked.head}."
        )
    return found[0][asked.head]


def plan(call: Call) -> dict[str, JsonValue]:
    """How ``attend`` would serve a call, and the drawing of its mask where that is small.

    Example:
        >>> print(plan(Call("causal()", 2, 3, 1, 8))["drawing"])
        1 1 .
        1 1 1
    """
    mask = parse_mask(call.mask)
    # Nothing is written into these, so no memory is taken for them.
    query = torch.empty(1, 1, 1, 1).expand(1, call.heads, call.queries, call.head_dim)
    key = torch.empty(1, 1, 1, 1).expand(1, call.heads, call.keys, call.head_dim)
    found = explain(query, key, mask=mask)
    is_small = max(call.queries, call.keys) <= _DRAWN
    return {
        "mask": repr(mask),
        "drawing": mask.draw(call.queries, call.keys) if is_small else None,
        "plan": {
            "backend": found.backend,
            "reason": found.reason,
            "notes": list(found.notes),
            "bytes": found.bytes,
            "operations": found.operations,
        },
        "matrix_bytes": 4 * call.heads * call.queries * call.keys,
    }


def _each(
    answer: Callable[[ItemT], AnswerT], items: Sequence[ItemT], is_wanted: Callable[[], bool]
) -> list[AnswerT | RegardError]:
    found: list[AnswerT | RegardError] = []
    for item in items:
        _check_wanted(is_wanted)
        try:
            found.append(answer(item))
        except RegardError as error:
            found.append(error)
    return found


def _check_wanted(is_wanted: Callable[[], bool]) -> None:
    if not is_wanted():
        raise AbandonedError


def _size(calls: _Calls) -> int:
    return sum(seen.query.numel() + seen.key.numel() for seen in calls.values())


def _listed(numbers: Iterable[int]) -> str:
    found = sorted(numbers)
    return f"{found[0]} to {found[-1]}" if len(found) > 1 else str(found[0])
