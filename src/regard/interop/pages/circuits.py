"""Circuits of heads and the strongest neurons of an example, in words, for a page."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import cast

import torch
from torch import Tensor

from regard.errors import SettingError
from regard.interop.attribution.circuits import TopTokens, circuits_of, unique
from regard.interop.attribution.direct_path import DirectPath
from regard.interop.attribution.feed_forward import in_words, last_maps, strongest_neurons
from regard.interop.interventions.patching import Site
from regard.interop.pages.sums import short
from regard.viewer import Example, HeadCircuit, ScoreSum, StrongNeuron
from regard.viewer.circuits import Ranked
from regard.viewer.layer_summary import Kind

Name = Callable[[int], str]

_PRODUCTS = 4 * 10**10  # multiplications that nobody asked for
_HEADS = 3  # that nobody asked for
_TOP = 6  # tokens of a list
_MOST = 300  # neurons of an example
_WORDS = 4  # that a neuron raises, and that it lowers


def circuits_of_example(
    path: DirectPath,
    example: Example,
    heads: Sequence[tuple[int, int]] | None,
    position: int | None,
    names: tuple[Name, Name, Name],
) -> Example:
    """The example with circuits of some heads; None is some whose scores are taken apart.

    ``names`` are of tokens that are read, of tokens that are written, and of the logits.
    """
    wanted: list[tuple[Site, int]] = []
    if heads is None:
        wanted = _sharpest(() if example.stream is None else example.stream.scores)
    for layer, head in heads or ():
        sites = [site for site in path.run.calls if site[1] == layer]
        sites = [site for site in sites if head < path.run.calls[site].query.shape[-3]]
        if not sites:
            raise SettingError(
                f"circuits must be of heads that there are, LAYER.HEAD from 0; got {layer}.{head}."
            )
        wanted += [(site, head) for site in sites]
    made: list[HeadCircuit] = []
    for site, head in wanted:
        try:
            whole = heads is not None or _is_cheap(path, site, len(wanted))
            made.append(_head_circuit(path, site, head, position, names, vocabulary=whole))
        except SettingError:
            if heads is not None:
                raise
    return replace(example, circuits=tuple(made))


def _sharpest(scores: Sequence[ScoreSum]) -> list[tuple[Site, int]]:
    """Heads of the largest weights, of each kind of attention at least one."""
    order = sorted(scores, key=lambda one: -one.weight)
    kinds = [one.kind for one in order]
    first = {kinds.index(kind) for kind in kinds}
    order = [order[n] for n in sorted(range(len(order)), key=lambda n: n not in first)]
    heads: dict[tuple[Site, int], None] = {((one.kind, one.layer), one.head): None for one in order}
    return list(heads)[:_HEADS]


def _is_cheap(path: DirectPath, site: Site, count: int) -> bool:
    """Whether a whole vocabulary goes through the heads of each layer in little time."""
    size = sum(parameter.numel() for parameter in path.run.model.parameters())
    tables = {table.data_ptr(): table.numel() for table in path.run.tables.values()}
    blocks = size - sum(tables.values())
    return 2 * count * path.vocab_size(site, "key") * blocks <= _PRODUCTS


def _head_circuit(
    path: DirectPath,
    site: Site,
    head: int,
    position: int | None,
    names: tuple[Name, Name, Name],
    *,
    vocabulary: bool,
) -> HeadCircuit:
    made = circuits_of(path, site, head, position=position, top=_TOP, vocabulary=vocabulary)
    read, written, answered = names
    of_queries = read if site[0] == "encoder" else written
    of_keys = written if site[0] == "decoder" else read
    rows, columns = _first_positions(made.queries), _first_positions(made.keys)

    def ranked(tokens: TopTokens | None, at: list[int], name: Name) -> tuple[Ranked, ...]:
        return () if tokens is None else _ranked(tokens, at, name)

    changes: tuple[tuple[float, int], ...] = ()
    if made.own is not None and made.own_rank is not None:
        pairs = zip(made.own[columns].tolist(), made.own_rank[columns].tolist(), strict=True)
        changes = tuple((short(value), rank) for value, rank in pairs)
    key_scores = tuple(map(short, made.key_scores[columns].tolist()))
    return HeadCircuit(
        kind=cast("Kind", made.kind),
        layer=made.layer,
        head=made.head,
        queries=tuple(map(of_queries, made.queries[rows].tolist())),
        keys=tuple(map(of_keys, made.keys[columns].tolist())),
        scores=tuple(tuple(map(short, row)) for row in made.scores[rows][:, columns].tolist()),
        key_scores=key_scores if any(key_scores) else (),
        liked=ranked(made.liked, rows, of_keys),
        promoted=ranked(made.promoted, columns, answered),
        suppressed=ranked(made.suppressed, columns, answered),
        own=changes,
        copying=None if made.copying is None else short(made.copying),
    )


def _first_positions(ids: Tensor) -> list[int]:
    """Positions at which an id stands first."""
    different, where = unique(ids)
    first = torch.full((len(different),), len(ids))
    first.scatter_reduce_(0, where, torch.arange(len(ids)), "amin")
    return sorted(first.tolist())


def _ranked(tokens: TopTokens, rows: list[int], name: Name) -> tuple[Ranked, ...]:
    pairs = zip(tokens.ids[rows].tolist(), tokens.values[rows].tolist(), strict=True)
    return tuple(
        tuple((name(token), short(value)) for token, value in zip(*row, strict=True))
        for row in pairs
    )


def neurons_of_example(
    path: DirectPath, example: Example, names: tuple[Name, Name, Name]
) -> Example:
    """The example with the strongest neurons of its tokens; as it is where the model has none."""
    try:
        maps = last_maps(path)
    except SettingError:
        return example
    size = sum(parameter.numel() for parameter in path.run.model.parameters())
    most = max(1, min(_MOST, 5 * _PRODUCTS // (2 * size)))
    cells = sum(len(last.activations) for last in maps.values())
    top = max(1, min(3, most // cells))
    found = [
        one
        for site, last in maps.items()
        for one in strongest_neurons(site, last, range(len(last.activations)), top)
    ]
    found = sorted(found, key=lambda one: -one.size)[:most]
    read, written, answered = names
    made = []
    with suppress(SettingError):  # a model that takes more than tokens and lengths has no words
        found = in_words(path, maps, found, _WORDS)
    for one in found:
        name = read if one.kind == "encoder" else written
        ids = path.tokens((one.kind, one.layer), "query")[1]
        if one.position >= len(ids):  # of states that are none of tokens
            continue
        up, down = (
            tuple((answered(token), short(value)) for token, value in pairs)
            for pairs in (one.promoted, one.suppressed)
        )
        made.append(
            StrongNeuron(
                kind=cast("Kind", one.kind),
                layer=one.layer,
                position=one.position,
                token=name(int(ids[one.position])),
                number=one.number,
                activation=short(one.activation),
                size=short(one.size),
                promoted=up,
                suppressed=down,
            )
        )
    return replace(example, feed_forward=tuple(made))
