"""Logits and scores of an example by the writers of the residual stream, for a page."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, cast

import torch
from torch import Tensor

from regard.errors import DataError, SettingError
from regard.interop.attribution.attribute import ExplainedText
from regard.interop.attribution.decomposition import (
    LogitParts,
    ScoreParts,
    is_product,
    logit_parts,
    score_parts,
)
from regard.interop.attribution.input_vectors import Output
from regard.interop.attribution.linear_functions import StreamPart
from regard.interop.attribution.linear_run import LinearRun
from regard.interop.record import Watched
from regard.viewer import Example, LogitSum, ScoreSum, StreamSums
from regard.viewer.layer_summary import AXES, Kind

# Layer and head, whose strongest link it is, or these and the positions of a query and a key.
ScoreNumber = tuple[int, ...]
_Cell = tuple[Watched, int, int, int]  # attention, head, query, key

_PRODUCTS = 4 * 10**10  # multiplications of scores that nobody asked for
_LISTED = 24  # pairs of a score


class Choice(NamedTuple):
    """An output that is explained."""

    number: Output  # computes it of the output of the model
    target: str  # the name of its token or class
    against: str = ""  # the name of the token or class it is held against
    output: int | None = None  # the token of the example that it predicts
    position: int | None = None  # of the input, that it is predicted at; None of a whole text


def sums_of(
    run: LinearRun,
    text: ExplainedText,
    example: Example,
    choices: Sequence[Choice],
    wanted: Sequence[ScoreNumber] | None,
    start: int,
) -> StreamSums | None:
    """Logits of the chosen outputs and scores of heads; None where a model has no such parts."""
    try:
        logits = [(choice, logit_parts(run, choice.number)) for choice in choices]
    except SettingError:
        if wanted is not None:
            raise
        return None
    cells = _strongest(text, run, example) if wanted is None else _wanted(text, example, wanted)
    made: list[ScoreSum] = []
    for one, head, query, key in cells:
        try:
            made.append(_score_sum(score_parts(run, (one.kind, one.layer), head, query, key)))
        except SettingError:  # it is no product of a query and a key
            if wanted is not None:
                raise
    parts = list(dict.fromkeys(part for _, logit in logits for part in logit.parts))
    parts.sort(key=StreamPart.order)
    return StreamSums(
        parts=tuple(part.name for part in parts),
        logits=tuple(_logit_sum(choice, logit, parts, start) for choice, logit in logits),
        scores=tuple(made),
    )


def _logit_sum(
    choice: Choice, made: LogitParts, parts: Sequence[StreamPart], start: int
) -> LogitSum:
    values = dict(zip(made.parts, made.values.tolist(), strict=True))
    return LogitSum(
        values=tuple(short(values.get(part, 0.0)) for part in parts),
        total=short(made.output),
        target=choice.target,
        against=choice.against,
        output=choice.output,
        position=None if choice.position is None else choice.position - start,
    )


def _score_sum(made: ScoreParts) -> ScoreSum:
    rows = list(dict.fromkeys(map(_group, made.query_parts)))
    columns = list(dict.fromkeys(map(_group, made.key_parts)))
    sums = torch.zeros(len(rows), len(columns), dtype=torch.float64)
    of_rows = torch.tensor([rows.index(_group(part)) for part in made.query_parts])
    of_columns = torch.tensor([columns.index(_group(part)) for part in made.key_parts])
    sums.index_put_((of_rows[:, None], of_columns), made.values, accumulate=True)
    return ScoreSum(
        kind=cast("Kind", made.kind),
        layer=made.layer,
        head=made.head,
        query=made.query,
        key=made.key,
        score=short(made.score),
        weight=short(made.weight),
        bias=short(made.bias),
        pairs=tuple((query.name, key.name, short(v)) for query, key, v in made.top(_LISTED)),
        rows=tuple(rows),
        columns=tuple(columns),
        values=tuple(tuple(map(short, row)) for row in sums.tolist()),
    )


def _group(part: StreamPart) -> str:
    """Name of a part, of heads that of all heads of the layer."""
    return part.name if part.head is None else f"{part.name.rpartition(' ')[0]}s"


def short(value: float, digits: int = 4) -> float:
    """Return a number as a page has it, to so many digits."""
    return float(f"{value:.{digits}g}")


def _wanted(
    text: ExplainedText, example: Example, wanted: Sequence[ScoreNumber]
) -> Iterator[_Cell]:
    """The scores that were asked for, in every kind of attention that has the head."""
    for number in wanted:
        if len(number) not in (2, 4):
            raise SettingError(
                f"scores must be (layer, head) or (layer, head, query, key); got {tuple(number)}."
            )
        layer, head, *pair = number
        found = [one for one in _shown(text, example) if one.layer == layer]
        found = [one for one in found if head in one.heads]
        if not found:
            raise SettingError(f"scores must be of heads that are shown; got {layer}.{head}.")
        cells = [
            (one, head, *(pair or _strongest_link(text, one, example)[head][1:])) for one in found
        ]
        fitting = [cell for cell in cells if _fits(cell, example)]
        if not fitting:
            raise DataError(
                f"scores must be of tokens of the text, from 0; got {pair[0]}.{pair[1]} of head "
                f"{layer}.{head}."
            )
        yield from fitting


def _fits(cell: _Cell, example: Example) -> bool:
    """Whether a query and a key are there, and the query may see the key."""
    one, _, query, key = cell
    queries, keys = one.summary.shape[-2:]
    return 0 <= query < queries and 0 <= key < keys and not (one.kind == "decoder" and key > query)


def _strongest(text: ExplainedText, run: LinearRun, example: Example) -> Iterator[_Cell]:
    """The strongest link of each layer, as far as the scores take little to take apart."""
    cost = 0
    for one in _shown(text, example):
        call = run.calls.get((one.kind, one.layer))
        if call is None or not is_product(call):
            continue
        D, width = call.query.shape[-1], call.query.shape[-1] * call.query.shape[-3]
        cost += 2 * D * (one.layer + 1) * width**2 * sum(call.query.shape[-2:-1])
        if cost > _PRODUCTS:
            return
        links = _strongest_link(text, one, example)
        head = max(links, key=lambda number: links[number][0])
        yield one, head, *links[head][1:]


def _shown(text: ExplainedText, example: Example) -> list[Watched]:
    """Attention of the layers that the example has."""
    heads = {(one.kind, one.layer, one.head) for one in example.maps}
    heads |= {(one.kind, one.layer, head) for one in example.summaries for head in one.heads}
    return [one for one in text.seen if any((one.kind, one.layer, h) in heads for h in one.heads)]


def _strongest_link(
    text: ExplainedText, one: Watched, example: Example
) -> dict[int, tuple[float, int, int]]:
    """For each head its largest weight between tokens of the text, its query and key."""
    weights = text.seen.rows(one.layer, range(one.summary.shape[-2]), one.kind, name=one.name)[0]
    weights = weights.reshape(-1, *weights.shape[-2:]).float()
    rows, columns = (
        torch.tensor(flags, device=weights.device) for flags in _are_text(one, example)
    )
    of_text = weights * rows[:, None] * columns
    if bool(of_text.any()):  # a token of no text, such as a start, gets the rest of a weight
        weights = of_text
    best: Tensor = weights.flatten(1).argmax(dim=1)
    width = weights.shape[-1]
    return {
        head: (float(weights[n].max()), int(best[n]) // width, int(best[n]) % width)
        for n, head in enumerate(one.heads)
    }


def _are_text(one: Watched, example: Example) -> tuple[list[bool], list[bool]]:
    """Whether queries and keys stand for something in the text."""
    tokens = {"source": example.source_tokens, "output": example.output_tokens}
    flags = {side: [token.end > token.start for token in listed] for side, listed in tokens.items()}
    queries, keys = (flags[side] for side in AXES[cast("Kind", one.kind)])
    if one.kind == "decoder" and example.started:
        keys = [False, *keys[:-1]]
    return queries, keys
