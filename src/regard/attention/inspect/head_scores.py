"""Roles of heads: how much of their weight goes to keys of a known kind, at any length."""

import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Unpack

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.engine.blocks import BlockPass
from regard.attention.engine.gradients import inputs_of
from regard.attention.engine.options import WeightsOptions, options_of, takes
from regard.attention.engine.request import Request, make_weights_request, without_autocast
from regard.attention.weighting import apply_sink
from regard.errors import ShapeError

_Kind = Callable[[Tensor, Tensor], Tensor]


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
        return replace(self, weight={name: each[chosen] for name, each in self.weight.items()})

    def __str__(self) -> str:
        heads = len(next(iter(self.weight.values())))
        rows = [
            (str(head), [float(each[head]) for each in self.weight.values()])
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
    **options: Unpack[WeightsOptions],
) -> HeadScores:
    """How much each head looks at keys of a known kind, without the N×M matrix.

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
        **options: ``score``, ``mask``, ``bias`` and ``weighting``, as ``attend`` takes them.

    Raises:
        ShapeError: There is more than one text, or the tokens, links or tree do not fit.

    Example:
        >>> places = 9 * torch.eye(4)
        >>> scores = head_scores(places.roll(-1, 0), places, ["I", "see", ",", "I"])
        >>> scores.weight["next"].round(decimals=2), scores.queries["duplicate"]
        (tensor([1.]), 1)
    """
    request = make_weights_request(query, key, options_of(head_scores, options))
    return scores_of(request, tokens, links, tree)


@torch.no_grad()
def scores_of(
    request: Request,
    tokens: Sequence[str] | Sequence[int] | Tensor,
    links: Iterable[tuple[int, int]] | None,
    tree: Sequence[int] | None,
) -> HeadScores:
    """Scores of the heads of a request; see ``head_scores``."""
    B, H, N, _ = request.query.shape
    M = request.key.shape[2]
    if B != 1:
        raise ShapeError(f"query must be of one text; got {B}.")
    if isinstance(tokens, Tensor):  # whose elements are all different keys of a table
        tokens = tokens.flatten().tolist()
    if len(tokens) != M:
        raise ShapeError(f"tokens must be one for each of {M} keys; got {len(tokens)}.")
    kinds = _kinds(tokens, N, links, tree)
    job, inputs = BlockPass.of_whole_rows(request), inputs_of(request)
    # By kind and head, even weights last; and the queries that have keys of each kind.
    sums = torch.zeros(len(kinds), H + 1, device=request.query.device)
    counts = torch.zeros(len(kinds), N, dtype=torch.bool)
    with without_autocast(request.query.device.type):
        for block in job.blocks() if M else ():
            own = inputs.of_block(block)
            scores = job.scores(block, own)
            weights = job.weighting.rows(scores)
            if own.sink is not None:
                weights, _ = apply_sink(own.sink, weights, scores.logsumexp(dim=-1))
            hidden = scores.new_zeros(1, dtype=torch.bool) if block.hidden is None else block.hidden
            # Most masks are the same for all heads.
            visible = ~hidden.view((1,) * (4 - hidden.dim()) + hidden.shape)[0]
            visible = visible.expand(-1, *scores.shape[-2:])
            even = visible / visible.sum(dim=-1, keepdim=True).clamp(min=1)
            queries = torch.tensor(block.rows)[:, None]
            keys = block.along_keys(torch.tensor)
            is_key = torch.stack([kind(queries, keys) for kind in kinds.values()])
            is_key &= visible.any(dim=-1, keepdim=True).any(dim=0).cpu()
            counts[:, block.rows.start : block.rows.stop] |= is_key.any(dim=-1)
            chosen = is_key.flatten(1).to(weights)
            heads = slice(block.heads.start, block.heads.stop)
            sums[:, heads] += chosen @ weights[0].flatten(1).mT
            sums[:, -1] += (chosen @ even.to(weights).flatten(1).mT).mean(dim=-1) * (
                len(block.heads) / H
            )
    queries_of = counts.sum(dim=-1)
    means = dict(zip(kinds, sums.cpu() / queries_of[:, None].clamp(min=1), strict=True))
    return HeadScores(
        {name: each[:-1] for name, each in means.items()},
        {name: float(each[-1]) for name, each in means.items()},
        dict(zip(kinds, queries_of.tolist(), strict=True)),
    )


def _kinds(
    tokens: Sequence[str] | Sequence[int],
    N: int,
    links: Iterable[tuple[int, int]] | None,
    tree: Sequence[int] | None,
) -> dict[str, _Kind]:
    """By kind, which of some keys (m) of each of some queries (n, 1) are of it: (n, m)."""
    numbers: dict[object, int] = {}
    ids = torch.tensor([numbers.setdefault(token, len(numbers)) for token in tokens])
    M = len(ids)
    kinds: dict[str, _Kind] = {}
    if N == M:
        kinds["previous"] = lambda queries, keys: keys == queries - 1
        kinds["same"] = lambda queries, keys: keys == queries
        kinds["next"] = lambda queries, keys: keys == queries + 1
        kinds["duplicate"] = lambda queries, keys: (keys < queries) & (ids[keys] == ids[queries])
        kinds["induction"] = lambda queries, keys: (
            (keys > 0) & (keys <= queries) & (ids[keys - 1] == ids[queries])
        )
    else:
        places = (torch.arange(N) * (M - 1) / max(1, N - 1)).round()
        kinds["diagonal"] = lambda queries, keys: keys == places[queries]
    if tree is not None:
        heads = torch.tensor(list(tree))
        if len(heads) != N or N != M or not bool(((heads >= 0) & (heads <= N)).all()):
            raise ShapeError(f"tree must be {N} numbers from 0 to {N}; got {list(tree)[:8]}.")
        kinds["tree"] = lambda queries, keys: keys == heads[queries] - 1
    if links is not None:
        pairs = torch.tensor(sorted(set(links)), dtype=torch.long).reshape(-1, 2)
        if len(pairs) and not bool(((pairs >= 0) & (pairs < torch.tensor([N, M]))).all()):
            raise ShapeError(f"links must be pairs (query, key) below {(N, M)}; got others.")
        # Each pair is a number, since a matrix of them would be as large as that of the weights.
        linked = pairs[:, 0] * M + pairs[:, 1]
        kinds["links"] = lambda queries, keys: torch.isin(queries * M + keys, linked)
    kinds["first"] = lambda queries, keys: (keys == 0) & (queries >= 0)
    if isinstance(tokens[0], str):
        marks = torch.tensor([_is_punctuation(str(each)) for each in tokens])
        kinds["punctuation"] = lambda queries, keys: marks[keys] & (queries >= 0)
    return kinds


def _is_punctuation(token: str) -> bool:
    """Whether a token is punctuation, whatever marks a tokenizer puts before it."""
    plain = token.lstrip("▁Ġ# ") or token
    return all(unicodedata.category(letter)[0] == "P" for letter in plain)
