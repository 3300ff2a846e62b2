"""Work of the model thread: whole batches of requests, with the served models."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention import AttentionCall, explain
from regard.attention.masks.parse import parse_mask
from regard.config import JsonValue
from regard.errors import DataError, RegardError, SettingError
from regard.inference import Predictor
from regard.inference.checkpoint_predictor import CheckpointPredictor
from regard.inference.look import calls_for_output, weights_of_row
from regard.inference.requests import request_of, unknown_in
from regard.server.batching import AbandonedError
from regard.server.requests import AttentionRequest, ExplainRequest, Input, RowsRequest
from regard.server.served import Served, edited, look
from regard.server.served import explain as explain_answer
from regard.tasks import AnyTask, DecodingConfig
from regard.text import normalize

# Texts looked at before whose queries and keys are cached, so that more rows are there at once; and
# how many numbers those are at most.
_CACHED_TEXTS = 64
_CACHED_NUMBERS = 16_000_000
# Larger masks are planned and not drawn.
_DRAWN = 64

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")

# Attention calls, by kind and layer.
_Calls = Mapping[tuple[str, int], AttentionCall]


@dataclass(frozen=True, slots=True)
class Job:
    """The part that the requests of one batch have in common."""

    kind: Literal["translate", "predict", "look", "attribute", "rows", "explain"]
    run: str = ""
    decoding: DecodingConfig | None = None
    alignments: bool = False


class Worker:
    """Answers batches, one after another; a refused item has its error in its place."""

    def __init__(self, served: Mapping[str, Served]) -> None:
        self._served = served
        self._calls: OrderedDict[tuple[object, ...], _Calls] = OrderedDict()

    def __call__(
        self, job: Job, items: Sequence[Any], is_wanted: Callable[[], bool]
    ) -> Sequence[object]:
        """One answer for each item; an AbandonedError once nobody waits any more."""
        match job.kind:
            case "translate":
                assert job.decoding is not None
                return self._run(job.run).translate_parts(
                    items,
                    decoding=job.decoding,
                    attention=job.alignments,
                    progress=lambda _: _check_wanted(is_wanted),
                )
            case "predict":
                return self._predict(job, items, is_wanted)
            case "look":
                return _each(lambda request: look(self._served[job.run], request), items, is_wanted)
            case "attribute":
                served = self._served[job.run]
                return _each(lambda request: explain_answer(served, request), items, is_wanted)
            case "rows":
                return _each(lambda request: self._rows(job.run, request), items, is_wanted)
            case "explain":
                return _each(plan, items, is_wanted)

    def _predict(
        self, job: Job, records: Sequence[Input], is_wanted: Callable[[], bool]
    ) -> list[Mapping[str, JsonValue] | RegardError]:
        predictor = self._run(job.run)
        requests = _each(lambda record: request_of(predictor.task, *record), records, is_wanted)
        usable = [each for each in requests if not isinstance(each, RegardError)]

        def predictions(some: Sequence[object]) -> list[Mapping[str, JsonValue]]:
            written = predictor.predictions(
                some, decoding=job.decoding, progress=lambda _: _check_wanted(is_wanted)
            )
            return [
                {**each.to_dict(), **named_unknown(predictor.task, request)}
                for each, request in zip(written, some, strict=True)
            ]

        try:
            answers: Sequence[Mapping[str, JsonValue] | RegardError] = predictions(usable)
        except RegardError:  # of one of them, which the others are not to suffer from
            answers = _each(lambda request: predictions([request])[0], usable, is_wanted)
        rest = iter(answers)
        return [each if isinstance(each, RegardError) else next(rest) for each in requests]

    def _run(self, name: str) -> Predictor:
        served = self._served[name]
        assert not isinstance(served, CheckpointPredictor), "refused before"
        return served

    def _rows(self, run: str, request: RowsRequest) -> list[list[float]]:
        key = run, request.text, request.target, request.beam_size, repr(request.edits)
        if key not in self._calls:
            predictor = self._run(run)
            with edited(predictor, request) if request.edits else nullcontext():
                self._calls[key] = _calls(predictor, request)
        self._calls.move_to_end(key)
        while len(self._calls) > 1 and (
            len(self._calls) > _CACHED_TEXTS
            or sum(map(_size, self._calls.values())) > _CACHED_NUMBERS
        ):
            self._calls.popitem(last=False)
        rows: list[list[float]] = tile(self._calls[key], request).tolist()
        return rows


def _calls(predictor: Predictor, request: AttentionRequest) -> _Calls:
    """Calls of ``attend`` for the translation: one forward pass."""
    source = normalize(request.text)
    if request.target is None:
        (translations,) = predictor.translate([source], beam_size=request.beam_size)
        if translations.parts > 1:
            raise DataError(
                "text must be one that the model reads at once; got one of "
                f"{translations.parts} parts. Ask for each of them."
            )
        written: Sequence[int] = translations.best.tokens
    else:
        written = predictor.tokenizer.target.encode(normalize(request.target))
    read = predictor.tokenizer.source.encode(source)
    return calls_for_output(predictor.seq2seq, predictor.sequence_task, read, written)


def tile(calls: _Calls, request: RowsRequest) -> Float[Tensor, "N M"]:
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
        return torch.stack([each.mean(0) for each in weights]).mean(0)
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
    is_small = max(call.queries, keys) <= _DRAWN
    return {
        "mask": repr(mask),
        "drawing": mask.draw(call.queries, keys) if is_small else None,
        "plan": {
            "backend": planned.backend,
            "reason": planned.reason,
            "notes": list(planned.notes),
            "bytes": planned.bytes,
            "operations": planned.operations,
        },
        "matrix_bytes": 4 * call.heads * call.queries * keys,
    }


def named_unknown(task: AnyTask, request: object) -> dict[str, JsonValue]:
    """Member of an answer for what of its text is not in the vocabulary; none if all of it is."""
    named = list(dict.fromkeys(unknown_in(task, request)))
    return {"unknown": [*named]} if named else {}


def _each(
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


def _size(calls: _Calls) -> int:
    return sum(watched.query.numel() + watched.key.numel() for watched in calls.values())


def _listed(numbers: Iterable[int]) -> str:
    ordered = sorted(numbers)
    return f"{ordered[0]} to {ordered[-1]}" if len(ordered) > 1 else str(ordered[0])
