"""Work of the model thread: whole batches of requests, with the served models."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, NamedTuple, TypeVar, cast

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention import explain
from regard.attention.masks.parse import parse_mask
from regard.config import JsonValue
from regard.errors import RegardError, SettingError
from regard.inference.look import Calls, weights_of_row
from regard.inference.use import InUse, Reply, RunInUse
from regard.interop.interventions.edit import edit
from regard.server.batching import AbandonedError
from regard.server.requests import (
    AttentionRequest,
    ExplainRequest,
    LookRequest,
    RowsRequest,
    sentences,
)
from regard.tasks import AnyTask, DecodingConfig
from regard.tasks.task import Answer
from regard.viewer import Document

# Texts looked at before whose queries and keys are cached, so that more rows are there at once; and
# how many numbers those are at most.
_CACHED_TEXTS = 64
_CACHED_NUMBERS = 16_000_000
# Larger masks are planned and not drawn.
_DRAWN = 64

WHOLE, EDITED = "all heads", "heads changed"  # labels of examples

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")


class Part(NamedTuple):
    """A part of a request as its model reads it, and the sentences that it counts as."""

    ids: Any
    sentences: int


@dataclass(frozen=True, slots=True)
class Job:
    """The part that the requests of one batch have in common."""

    kind: Literal["answer", "look", "attribute", "rows", "explain"]
    run: str = ""
    decoding: DecodingConfig | None = None
    attention: bool = False
    layers: Sequence[int] | None = None


class Worker:
    """Answers batches, one after another; a refused item has its error in its place."""

    def __init__(self, served: Mapping[str, InUse]) -> None:
        self._served = served
        self._calls: OrderedDict[tuple[object, ...], Calls] = OrderedDict()

    def __call__(
        self, job: Job, items: Sequence[Any], is_wanted: Callable[[], bool]
    ) -> Sequence[object]:
        """One answer for each item; an AbandonedError once nobody waits any more."""
        work = partial(getattr(self, f"_{job.kind}"), job)
        if job.kind != "answer":
            return _answer_items(work, items, is_wanted)
        try:
            return cast("Sequence[object]", work(items, is_wanted))
        except RegardError:  # of one of them, which the others are not to suffer from
            return _answer_items(lambda item: work([item], is_wanted)[0], items, is_wanted)

    def _answer(
        self, job: Job, parts: Sequence[Part], is_wanted: Callable[[], bool]
    ) -> Sequence[Answer]:
        return self._run(job).answer_parts(
            [part.ids for part in parts],
            decoding=job.decoding,
            attention=job.attention,
            layers=job.layers,
            progress=lambda _: _check_wanted(is_wanted),
        )

    def _look(self, job: Job, request: AttentionRequest) -> list[tuple[Document, Reply]]:
        """The document and the answer of a text; with edits once without and once with them."""

        def look(use: InUse) -> tuple[Document, Reply]:
            document = use.look(request.text, request.options(), explain=False).document
            return document, use.reply(request.text, document.examples[0])

        return [
            (_labelled(one, label), reply) for label, (one, reply) in self._made(job, request, look)
        ]

    def _attribute(self, job: Job, request: AttentionRequest) -> list[Document]:
        """The document of a text whose answer is explained; with edits two of them."""

        def look(use: InUse) -> Document:
            return use.look(request.text, request.options()).document

        return [_labelled(one, label) for label, one in self._made(job, request, look)]

    def _made(
        self, job: Job, request: LookRequest, look: Callable[[InUse], ResultT]
    ) -> list[tuple[str | None, ResultT]]:
        """A look by the model as it is, and with heads changed, each with its label."""
        use = self._served[job.run]
        if request.edits is None:
            return [(None, look(use))]
        first = look(use)
        with edited(use, request):
            return [(WHOLE, first), (EDITED, look(use))]

    def _explain(self, _: Job, request: ExplainRequest) -> dict[str, JsonValue]:
        return plan(request)

    def _run(self, job: Job) -> RunInUse[AnyTask]:
        return cast("RunInUse[AnyTask]", self._served[job.run])

    def _rows(self, job: Job, request: RowsRequest) -> list[list[float]]:
        key = job.run, request.text, request.target, request.beam_size, repr(request.edits)
        if key not in self._calls:
            use = self._run(job)
            with edited(use, request) if request.edits else nullcontext():
                self._calls[key] = use.translator.calls(
                    request.text, request.target, beam_size=request.beam_size
                )
        self._calls.move_to_end(key)
        while len(self._calls) > 1 and (
            len(self._calls) > _CACHED_TEXTS
            or sum(map(_size, self._calls.values())) > _CACHED_NUMBERS
        ):
            self._calls.popitem(last=False)
        rows: list[list[float]] = tile(self._calls[key], request).tolist()
        return rows


@contextmanager
def edited(use: InUse, request: LookRequest) -> Iterator[None]:
    """Mute and scale the heads that a request names inside the block."""
    with edit(use.model) as edits:
        for change in request.edits or ():
            edits.scale(change.factor, change.layer, change.heads, kind=change.kind)
        yield


def _labelled(document: Document, label: str | None) -> Document:
    if label is None:
        return document
    return replace(document, examples=(replace(document.examples[0], label=label),))


def tile(calls: Calls, request: RowsRequest) -> Float[Tensor, "N M"]:
    """Exact weights of the queries, keys, layer and head of a request."""
    layers = {layer: watched for (kind, layer), watched in calls.items() if kind == request.kind}
    if not layers:
        kinds = ", ".join(sorted({kind for kind, _ in calls})) or "none"
        raise SettingError(f"kind must be one the model has ({kinds}); got {request.kind!r}.")
    if request.layer == "mean" and request.head != "mean":
        raise SettingError("head must be mean where layer is mean: heads of layers differ.")
    if request.layer != "mean" and request.layer not in layers:
        raise SettingError(f"layer must be one of {_listed(layers)}; got {request.layer}.")
    chosen = list(layers.values()) if request.layer == "mean" else [layers[request.layer]]
    N, M = chosen[0].query.shape[-2], chosen[0].key.shape[-2]
    queries = range(N) if request.queries is None else request.queries
    if not set(queries) <= set(range(N)):
        raise SettingError(f"queries must be of {_listed(range(N))}; got {max(queries)}.")
    first, end = (0, M) if request.keys is None else request.keys
    if not 0 <= first <= end <= M:
        raise SettingError(f"keys must be [first, end) within 0 and {M}; got [{first}, {end}].")
    weights = [
        weights_of_row(watched, queries=queries)[..., first:end] for watched in chosen
    ]  # (H, P, M) each
    if request.head == "mean":
        return torch.stack([rows.mean(0) for rows in weights]).mean(0)
    if request.head not in range(len(weights[0])):
        raise SettingError(
            f"head must be one of {_listed(range(len(weights[0])))}; got {request.head}."
        )
    return weights[0][request.head]


def plan(call: ExplainRequest) -> dict[str, JsonValue]:
    """How ``attend`` would serve a call, and the drawing of its mask where that is small."""
    mask, keys = parse_mask(call.mask), call.queries if call.keys is None else call.keys
    # Nothing is written into these, so no memory is taken for them.
    query = torch.empty(1, 1, 1, 1).expand(1, call.heads, call.queries, call.head_dim)
    key = torch.empty(1, 1, 1, 1).expand(1, call.heads, keys, call.head_dim)
    planned = explain(query, key, mask=mask)
    names = ("backend", "reason", "bytes", "operations")
    figures: dict[str, JsonValue] = {name: getattr(planned, name) for name in names}
    is_small = max(call.queries, keys) <= _DRAWN
    return {
        "mask": repr(mask),
        "drawing": mask.draw(call.queries, keys) if is_small else None,
        "plan": {**figures, "notes": list(planned.notes)},
        "matrix_bytes": 4 * call.heads * call.queries * keys,
    }


def _answer_items(
    answer: Callable[[ItemT], ResultT], items: Sequence[ItemT], is_wanted: Callable[[], bool]
) -> list[ResultT | RegardError]:
    results: list[ResultT | RegardError] = []
    for item in items:
        _check_wanted(is_wanted)
        try:
            results.append(answer(item))
        except RegardError as error:
            results.append(error)
    return results


def _check_wanted(is_wanted: Callable[[], bool]) -> None:
    if not is_wanted():
        raise AbandonedError


def _size(calls: Calls) -> int:
    return sum(watched.query.numel() + watched.key.numel() for watched in calls.values())


def _listed(numbers: Iterable[int]) -> str:
    ordered = sorted(numbers)
    return f"{ordered[0]} to {ordered[-1]}" if len(ordered) > 1 else str(ordered[0])


# Sentences that are translated while a text is looked into: a short one, and any at most.
_SHORT_LOOK, _LONGEST_LOOK = 8, 64


# Tokens that a language model writes while a sentence is translated.
_WRITTEN = 32


def cost_of(use: RunInUse[AnyTask], decoding: DecodingConfig | None, text: str) -> int:
    """Cost of a text in sentences: by the tokens written after it, where their number is set."""
    if decoding is None or "max_tokens" in use.useless:
        return sentences(text)
    return min(_LONGEST_LOOK, 1 + decoding.n_best * decoding.max_tokens // _WRITTEN)


def weigh(job: Job, item: Any) -> int:
    """Cost of an item: attention weights grow with the square of a text."""
    match job.kind:
        case "answer":
            return int(item.sentences)
        case "look" | "attribute":
            longest = max(len(item.text), len(item.target or ""))
            short = _SHORT_LOOK if job.kind == "look" else _LONGEST_LOOK
            return min(_LONGEST_LOOK, short + (longest // 8) ** 2)
        case _:
            return 1
