"""Roles of heads: how much of their weight goes to keys of a known kind, at any length."""

import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Unpack

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.attention.engine.options import WeightsOptions, options_of, takes
from regard.attention.engine.request import Request, make_weights_request, without_autocast
from regard.attention.inspect.summarize import summary_of
from regard.attention.inspect.summary import Summary
from regard.attention.inspect.weights import rows_of
from regard.attention.masks.grid import KeyRanges
from regard.attention.scores import ScaledDot
from regard.attention.weighting import Softmax
from regard.errors import ShapeError

_QUERIES, _PAIRS = 128, 2**14  # whose weights are held at once
_FEW = 12  # positions of a token up to which its pairs are cheaper one by one than as a product


@dataclass(frozen=True, slots=True, eq=False)
class HeadScores:
    """Weight of heads on keys of each kind; ``head_scores`` returns it.

    Attributes:
        weight: By kind of key: (H,) the mean weight of a query on its keys of that kind, over the
            queries that have some.
        even: By kind: the same of weights that are equal over all visible keys, to compare with.
        queries: By kind: how many queries have such keys.

    Example:
        >>> scores = HeadScores({"previous": torch.tensor([0.9, 0.1])}, {"previous": 0.2},
        ...     {"previous": 4})
        >>> print(scores)
         head  previous
            0      0.90
            1      0.10
         even      0.20
    """

    weight: Mapping[str, Float[Tensor, " H"]]
    even: Mapping[str, float]
    queries: Mapping[str, int]

    def of_heads(self, heads: Sequence[int]) -> "HeadScores":
        """The scores of some heads."""
        chosen = list(heads)
        return replace(self, weight={name: values[chosen] for name, values in self.weight.items()})

    def __str__(self) -> str:
        heads = len(next(iter(self.weight.values())))
        rows = [
            (str(head), [float(weights[head]) for weights in self.weight.values()])
            for head in range(heads)
        ]
        lines = [" head  " + "  ".join(f"{name:>8}" for name in self.weight)]
        for name, values in (*rows, ("even", list(self.even.values()))):
            cells = [
                f"{value:{max(8, len(kind))}.2f}"
                for kind, value in zip(self.weight, values, strict=True)
            ]
            lines.append(f"{name:>5}  " + "  ".join(cells))
        return "\n".join(lines)


@takes(WeightsOptions)
def head_scores(
    query: Float[Tensor, "*q N D"],
    key: Float[Tensor, "*k M K"],
    tokens: Sequence[str] | Sequence[int] | Tensor,
    *,
    links: Iterable[tuple[int, int]] | None = None,
    tree: Sequence[int] | None = None,
    summary: Summary | None = None,
    **options: Unpack[WeightsOptions],
) -> HeadScores:
    """Weight of each head on keys of known kinds, without the N×M matrix.

    In a text that attends to itself: the token before ("previous") and after ("next"), itself
    ("same"), earlier ones that are equal ("duplicate"), and those right after earlier equal ones
    ("induction": Olsson et al., 2022, https://arxiv.org/abs/2209.11895). Always: the "first" key,
    and "punctuation" where tokens are text. Of another text: near the "diagonal". Where they are
    given: "links", such as a gold alignment, and the syntactic head in a "tree" (Clark et al.,
    2019, https://arxiv.org/abs/1906.04341).

    Args:
        query: Of one text: (1, H, N, D) or (N, D).
        key: The keys.
        tokens: One for each key: strings, or ids, also as a tensor.
        links: Pairs (query, key).
        tree: For each token the number of its head from 1, and 0 for the root, as the column HEAD
            of CoNLL-U has it.
        summary: That of the same call, if it is at hand; it saves most of the time.
        **options: ``score``, ``mask``, ``bias`` and ``weighting``, as ``attend`` takes them.

    Raises:
        ShapeError: There is more than one text, or the tokens, links or tree do not fit.

    Example:
        >>> positions = 9 * torch.eye(4)
        >>> scores = head_scores(positions.roll(-1, 0), positions, ["I", "see", ",", "I"])
        >>> scores.weight["next"].round(decimals=2), scores.queries["duplicate"]
        (tensor([1.]), 1)
    """
    request = make_weights_request(query, key, options_of(head_scores, options))
    return scores_of(request, tokens, links, tree, summary)


@torch.no_grad()
def scores_of(
    request: Request,
    tokens: Sequence[str] | Sequence[int] | Tensor,
    links: Iterable[tuple[int, int]] | None,
    tree: Sequence[int] | None,
    summary: Summary | None,
) -> HeadScores:
    """Scores of the heads of a request; see ``head_scores``."""
    B, _, N, _ = request.query.shape
    M = request.key.shape[2]
    if B != 1:
        raise ShapeError(f"query must be of one text; got {B}.")
    if isinstance(tokens, Tensor):  # whose elements are all different keys of a table
        tokens = tokens.flatten().tolist()
    if len(tokens) != M:
        raise ShapeError(f"tokens must be one for each of {M} keys; got {len(tokens)}.")
    if summary is None:
        summary = summary_of(request, 0, 1, None, (0, 0))
    counts = summary.counts.reshape(-1, N).any(dim=0).cpu()
    with without_autocast(request.query.device.type):
        reader = _Products.of(request, summary) or _Rows(request)
        sums = {
            name: _sum(reader, target, counts)
            for name, target in _targets(reader, _numbered(tokens), N, M, links, tree).items()
        }
        received = summary.received.reshape(-1, M).cpu()
        lists = {"first": torch.arange(M) == 0}
        if isinstance(tokens[0], str):
            lists["punctuation"] = torch.tensor([_is_punctuation(str(token)) for token in tokens])
        for name, chosen in lists.items():
            even = reader.even(chosen)[counts].sum().reshape(1)
            sums[name] = torch.cat([received[:, chosen].sum(dim=-1), even]), int(counts.sum())
    means = {name: (total / max(1, count)).tolist() for name, (total, count) in sums.items()}
    return HeadScores(
        {name: torch.tensor(values[:-1]) for name, values in means.items()},
        {name: values[-1] for name, values in means.items()},
        {name: count for name, (_, count) in sums.items()},
    )


# Queries and keys: pair by pair, or all of some with all of others that come early enough, and
# which pairs of them count. A query is in one part only.
_Pairs = tuple[Tensor, Tensor]
_Block = tuple[Tensor, Tensor, Tensor]


def _targets(
    reader: "_Products | _Rows",
    ids: Tensor,
    N: int,
    M: int,
    links: Iterable[tuple[int, int]] | None,
    tree: Sequence[int] | None,
) -> dict[str, list[_Pairs | _Block]]:
    """Pairs of a query and a key of each kind."""
    positions = torch.arange(N)
    targets: dict[str, list[_Pairs | _Block]] = {}
    if N == M:
        targets["previous"] = [(positions[1:], positions[:-1])]
        targets["same"] = [(positions, positions)]
        targets["next"] = [(positions[:-1], positions[1:])]
        targets["duplicate"] = list(_equal(ids, 0, reader.few))
        targets["induction"] = list(_equal(ids, 1, reader.few))
    else:
        targets["diagonal"] = [(positions, (positions * (M - 1) / max(1, N - 1)).round().long())]
    if tree is not None:
        heads = torch.tensor(list(tree))
        if len(heads) != N or N != M or not bool(((heads >= 0) & (heads <= N)).all()):
            raise ShapeError(f"tree must be {N} numbers from 0 to {N}; got {list(tree)[:8]}.")
        targets["tree"] = [(positions[heads > 0], heads[heads > 0] - 1)]
    if links is not None:
        pairs = torch.tensor(sorted(set(links)), dtype=torch.long).reshape(-1, 2)
        if len(pairs) and not bool(((pairs >= 0) & (pairs < torch.tensor([N, M]))).all()):
            raise ShapeError(f"links must be pairs (query, key) below {(N, M)}; got others.")
        targets["links"] = [(pairs[:, 0], pairs[:, 1])]
    return targets


def _equal(ids: Tensor, shift: int, few: int) -> Iterator[_Pairs | _Block]:
    """Queries, and the keys ``shift`` after earlier positions with the same token."""
    order = ids.argsort(stable=True)
    sizes = torch.unique(ids, return_counts=True)[1]
    groups = torch.split(order, sizes.tolist())
    for size in range(2, few + 1):
        if alike := [some for some in groups if len(some) == size]:
            later, earlier = torch.tril_indices(size, size, -1)
            there = torch.stack(alike)
            yield there[:, later].flatten(), there[:, earlier].flatten() + shift
    for some in groups:
        for start in range(0, len(some) if len(some) > max(1, few) else 0, _QUERIES):
            part = some[start : start + _QUERIES]
            earlier = some[: start + _QUERIES]
            yield part, earlier + shift, earlier < part[:, None]


def _sum(
    reader: "_Products | _Rows", target: list[_Pairs | _Block], counts: Tensor
) -> tuple[Tensor, int]:
    """Sum the weights (H + 1,), even ones last, and count the queries."""
    total, count = torch.zeros(reader.heads + 1), 0
    for part in target:
        if len(part) == 2:
            queries, keys = (positions[counts[part[0]]] for positions in part)
            for start in range(0, len(queries), _PAIRS):
                some = slice(start, start + _PAIRS)
                total += reader.pairs(queries[some], keys[some]).sum(dim=-1).cpu()
            count += len(set(queries.tolist()))
            continue
        queries, keys, is_pair = part
        there = counts[queries] & is_pair.any(dim=1)
        if bool(there.any()):
            is_target = is_pair[there]
            width = int(is_target[-1].sum())  # the last query has most
            total += reader.sums(queries[there], keys[:width], is_target[:, :width]).cpu()
            count += len(is_target)
    return total, count


class _Products:
    """Weights of chosen queries on chosen keys, of softmax over dot products."""

    few = _FEW

    def __init__(self, query: Tensor, key: Tensor, lse: Tensor, ranges: KeyRanges) -> None:
        self._query, self._key, self._lse = query, key, lse
        self._first = ranges.first[0].clamp(min=0).long()
        self._stop = ranges.stop[0].clamp(max=key.shape[1]).long()
        self.heads = len(query)

    @classmethod
    def of(cls, request: Request, summary: Summary) -> "_Products | None":
        """None where scores are others, or a mask is more than a range for each query."""
        form = None if request.mask is None else request.mask.form
        is_range = request.mask is None or request.mask.is_range
        is_plain = request.bias is None and request.position is None
        is_plain = is_plain and isinstance(request.weighting, Softmax)
        if not (is_range and is_plain and request.score.is_dot_product):
            return None
        dot = request.score.as_dot(request.query.float(), request.key.float())
        if dot is None:
            return None
        (H, N), (G, M) = request.query.shape[1:3], request.key.shape[1:3]
        ends = torch.zeros(1, N), torch.full((1, N), M)
        device = request.query.device
        ranges = KeyRanges(*ends) if form is None else KeyRanges.of(form, N, M, device)
        key = dot.key[0].repeat_interleave(H // G, dim=0)
        return cls(dot.query[0] * dot.scale, key, summary.lse.reshape(H, N), ranges)

    def pairs(self, queries: Tensor, keys: Tensor) -> Float[Tensor, "h P"]:
        scores = (self._query[:, queries] * self._key[:, keys]).sum(dim=-1)
        weights = (scores - self._lse[:, queries]).exp()
        even = self._even(queries, keys)
        return torch.cat([weights * (even > 0), even[None]])

    def sums(self, queries: Tensor, keys: Tensor, is_pair: Tensor) -> Float[Tensor, " h"]:
        weights = self._query[:, queries] @ self._key[:, keys].mT
        weights.sub_(self._lse[:, queries, None]).exp_()
        even = self._even(queries[:, None], keys) * is_pair.to(weights.device)
        counted = (even > 0).to(weights.dtype).flatten()
        # The score of a pair that is hidden may be larger than any that counts.
        weights = weights.clamp_(max=1).flatten(1)
        return torch.cat([weights @ counted, even.sum()[None]])

    def even(self, chosen: Bool[Tensor, " M"]) -> Float[Tensor, " N"]:
        before = torch.nn.functional.pad(chosen.float().cumsum(0), (1, 0))
        stop = torch.maximum(self._first, self._stop)
        return (before[stop] - before[self._first]) / (stop - self._first).clamp(min=1)

    def _even(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Even weights of visible keys."""
        first, stop = self._first[queries], self._stop[queries]
        is_visible = (keys >= first) & (keys < stop)
        return is_visible / (stop - first).clamp(min=1)


class _Rows:
    """Weights of chosen queries on chosen keys, of any score, mask, bias and weighting."""

    few = 1  # a pair costs a row

    def __init__(self, request: Request) -> None:
        self._request, self.heads = request, request.query.shape[1]
        query, key = (
            tensor.new_zeros(()).expand(tensor.shape) for tensor in (request.query, request.key)
        )
        self._even = replace(
            request,
            query=query,
            key=key,
            score=ScaledDot(),
            weighting=Softmax(),
            bias=None,
            position=None,
            sink=None,
        )

    def pairs(self, queries: Tensor, keys: Tensor) -> Float[Tensor, "h P"]:
        parts = []
        for start in range(0, len(queries), _QUERIES):
            some = slice(start, start + _QUERIES)
            parts.append(self._block(queries[some], keys[some]).diagonal(dim1=-2, dim2=-1))
        return torch.cat(parts, dim=-1)

    def sums(self, queries: Tensor, keys: Tensor, is_pair: Tensor) -> Float[Tensor, " h"]:
        weights = self._block(queries, keys)
        return (weights * is_pair.to(weights.device)).sum(dim=(-2, -1))

    def _block(self, queries: Tensor, keys: Tensor) -> Tensor:
        rows = [rows_of(request, queries) for request in (self._request, self._even)]
        weights, even = (block.reshape(-1, *block.shape[-2:])[..., keys] for block in rows)
        return torch.cat([weights, even.mean(dim=0, keepdim=True)])

    def even(self, chosen: Bool[Tensor, " M"]) -> Float[Tensor, " N"]:
        N = self._request.query.shape[2]
        parts = []
        for start in range(0, N, _QUERIES):
            rows = rows_of(self._even, slice(start, start + _QUERIES))
            mean = rows.reshape(-1, *rows.shape[-2:]).mean(dim=0)
            parts.append(mean[..., chosen].sum(dim=-1))
        return torch.cat(parts).cpu()


def _numbered(tokens: Sequence[str] | Sequence[int]) -> Tensor:
    numbers: dict[object, int] = {}
    return torch.tensor([numbers.setdefault(token, len(numbers)) for token in tokens])


def _is_punctuation(token: str) -> bool:
    """Whether a token is punctuation, whatever marks a tokenizer puts before it."""
    plain = token.lstrip("▁Ġ# ") or token
    return all(unicodedata.category(letter)[0] == "P" for letter in plain)
