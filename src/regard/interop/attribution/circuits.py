"""Circuits of a head: the tokens that it likes to look at, and the logits that it then raises."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.checks import check_count
from regard.interop.attribution.attribute import position_of
from regard.interop.attribution.decomposition import (
    check_product,
    module_and_inputs,
    scale_of,
    site_of,
)
from regard.interop.attribution.direct_path import DirectPath
from regard.interop.interventions.patching import Site

_ROWS = 64  # tokens whose logits are computed at once


@dataclass(frozen=True, slots=True, eq=False)
class TopTokens:
    """Tokens of a vocabulary with the largest values of each row.

    Attributes:
        ids: (R, K) The tokens, the largest value first.
        values: (R, K) Their values.
    """

    ids: Int[Tensor, "R K"]
    values: Float[Tensor, "R K"]


@dataclass(frozen=True, slots=True, eq=False)
class HeadCircuits:
    """The query-key and the output-value circuit of a head; ``head_circuits`` returns it.

    Attributes:
        kind: "encoder", "decoder" or "cross".
        layer: Which layer, from 0.
        head: Which head, from 0.
        queries: (N,) Tokens of the text that look.
        keys: (M,) Tokens of the text that are looked at.
        scores: (N, M) Scores of these by content alone.
        key_scores: (M,) Terms of the score of a key by biases of the query, for any query.
        liked: For each query the tokens of the vocabulary with the largest scores; None if these
            were not wanted.
        promoted: For each key the tokens whose logits it raises most if it has the whole weight;
            None of a head whose output no logits are made of.
        suppressed: Those that it lowers most.
        own: (M,) The change of the logit of the key's own token; None where logits are of others.
        own_rank: (M,) How many tokens are raised more than it.
        copying: Σλ / Σ|λ| over the eigenvalues of the whole output-value circuit: 1 where every
            token raises itself, -1 where it lowers itself. None where logits are of other tokens,
            or if it was not wanted.
        position: Where in the text the scales of norms after the head are taken from.

    Example:
        >>> one = TopTokens(torch.tensor([[7, 4]]), torch.tensor([[1.5, 0.25]]))
        >>> print(HeadCircuits("decoder", 0, 1, torch.tensor([4]), torch.tensor([7]),
        ...     torch.tensor([[2.0]]), torch.zeros(1), one, one, one, torch.tensor([1.5]),
        ...     torch.tensor([0]), 0.75, 0))
        layer 0 head 1, copying 0.75
        query likes
        4     7 1.50, 4 0.25
        key   promotes         suppresses
        7     7 1.50, 4 0.25   7 1.50, 4 0.25
    """

    kind: str
    layer: int
    head: int
    queries: Int[Tensor, " N"]
    keys: Int[Tensor, " M"]
    scores: Float[Tensor, "N M"]
    key_scores: Float[Tensor, " M"]
    liked: TopTokens | None
    promoted: TopTokens | None
    suppressed: TopTokens | None
    own: Float[Tensor, " M"] | None
    own_rank: Int[Tensor, " M"] | None
    copying: float | None
    position: int

    def __str__(self) -> str:
        return self.table(str)

    def table(self, name: Callable[[int], str], *, count: int = 3) -> str:
        """Write both circuits as text, tokens by the names that a function has for them."""
        title = f"layer {self.layer} head {self.head}"
        lines = [title if self.copying is None else f"{title}, copying {self.copying:.2f}"]
        if self.liked is not None:
            lines.append("query likes")
            rows = zip(self.queries.tolist(), _listed(self.liked, name, count), strict=True)
            lines += [f"{name(token):5} {liked}" for token, liked in dict(rows).items()]
        if self.promoted is not None and self.suppressed is not None:
            up, down = (_listed(tokens, name, count) for tokens in (self.promoted, self.suppressed))
            width = max(map(len, [*up, "promotes"])) + 2
            lines.append(f"key   {'promotes':{width}} suppresses")
            of_keys = dict(zip(self.keys.tolist(), zip(up, down, strict=True), strict=True))
            lines += [
                f"{name(token):5} {one:{width}} {two}" for token, (one, two) in of_keys.items()
            ]
        return "\n".join(lines)


def head_circuits(
    model: nn.Module,
    inputs: Mapping[str, object] | Tensor,
    *,
    layer: int,
    head: int,
    kind: str | None = None,
    position: int | None = None,
    top: int = 10,
    vocabulary: bool = True,
) -> HeadCircuits:
    """The query-key and output-value circuits of a head, in tokens.

    Both are of tokens alone, by their embeddings E, as if nothing else were in the residual stream
    (Elhage et al., 2021, https://transformer-circuits.pub/2021/framework). *Query-key*: the score
    ``(W_Q N(E a)) · (W_K N(E b)) · scale`` of a token a that looks at b. *Output-value*: the change
    of all logits ``W_U N' W_O W_V N(E b)`` by a token b that has the whole weight.

    The norms N before the head are computed of the token's embedding alone, exactly; those after
    it, N', are linear with the scales of the text at one position, as in ``logit_attribution``, as
    are gates of an activation in the head for masked words. Positions are left out: those that are
    added, biases of scores, and rotations, as if the two stood at one position. So are biases; the
    terms by those of the query are returned beside, one for each key. A head in a later layer
    reads, in a text, the outputs of earlier parts, too: its circuits are one term of its effect.

    Memory grows with the vocabulary, never with its square. Time is that of one pass of the
    vocabulary through the head; in models with norms after the residual, also through all blocks
    before it.

    Args:
        model: As in ``decompose_score``.
        inputs: As in ``decompose_score``: the text whose tokens are looked at, and from which the
            scales of norms after the head are taken.
        layer: Which layer, from 0.
        head: Which head, from 0.
        kind: "encoder", "decoder" or "cross"; None where the layer has one of them only.
        position: Position whose scales of norms after the head are taken, from 0, or from the last
            below 0; None is the last, or the one that a classifier reads.
        top: How many tokens of each list.
        vocabulary: Whether keys are searched for in the whole vocabulary, and copying is computed.

    Raises:
        SettingError: The model is in training mode or cannot be taken apart, or has no such head or
            position.
        ShapeError: There is more than one text.

    Example:
        >>> from regard.models import Transformer, TransformerConfig
        >>> config = TransformerConfig(model_dim=8, num_heads=2, ffn_dim=16)
        >>> model = Transformer(config, source_vocab=11, target_vocab=11).eval()
        >>> text, length = torch.tensor([[4, 7, 5]]), torch.tensor([3])
        >>> inputs = dict(source=text, source_lengths=length, target=text)
        >>> made = head_circuits(model, inputs, layer=1, head=0, kind="cross", top=4)
        >>> made.scores.shape, made.liked.ids.shape, made.promoted.ids.shape
        (torch.Size([3, 3]), torch.Size([3, 4]), torch.Size([3, 4]))
    """
    check_count("top", top)
    path = DirectPath(*module_and_inputs(model, inputs))
    site = site_of(path.run, layer, kind)
    if position is not None:
        position = position_of(position, path.length)
    return circuits_of(path, site, head, position=position, top=top, vocabulary=vocabulary)


def circuits_of(
    path: DirectPath, site: Site, head: int, *, position: int | None, top: int, vocabulary: bool
) -> HeadCircuits:
    """The circuits of a head of a model whose paths are known."""
    call = path.run.calls[site]
    check_product(call, site, head)
    position = path.position if position is None else position
    H, G = call.query.shape[-3] if call.query.dim() > 3 else 1, call.key.shape[-3]
    group = head * (G if call.key.dim() > 3 else 1) // H
    queries, keys = path.tokens(site, "query")[1].cpu(), path.tokens(site, "key")[1].cpu()
    asking, asks = unique(queries)
    looked_at, looks = unique(keys)
    of_queries = path.of_tokens(site, "query", asking)
    is_one_text = site[0] != "cross"  # whose tokens look and are looked at
    of_keys = of_queries if is_one_text else path.of_tokens(site, "key", looked_at)
    query = of_queries.query[:, head] * scale_of(call)
    key, value = of_keys.key[:, group], of_keys.value[:, group]
    with_biases = path.of_tokens(site, "query", asking, has_biases=True)
    bias = with_biases.query[0, head] * scale_of(call) - query[0]
    writer = path.unembedding(site, head, value.shape[-1], position)  # (V, E)
    promoted = suppressed = logits = ranks = None
    if writer is not None:
        up, down, logits, ranks = _pushed(writer, value, looked_at, top, path.writes_keys(site))
        promoted, suppressed = _rows(up, looks), _rows(down, looks)
        logits, ranks = (None if column is None else column[looks] for column in (logits, ranks))
    liked, copying = None, None
    if vocabulary:
        liked, copying = _over_vocabulary(path, site, query, group, writer, top)
    return HeadCircuits(
        *site,
        head,
        queries,
        keys,
        (query @ key.mT)[asks][:, looks].cpu(),
        (key @ bias)[looks].cpu(),
        None if liked is None else _rows(liked, asks),
        promoted,
        suppressed,
        logits,
        ranks,
        copying,
        position,
    )


def _pushed(
    writer: Float[Tensor, "V E"],
    value: Float[Tensor, "M E"],
    ids: Int[Tensor, " M"],
    top: int,
    has_key_logits: bool,
) -> tuple[TopTokens, TopTokens, Tensor | None, Tensor | None]:
    """Tokens that values raise and lower most, and each token's own logit and its rank."""
    up: list[tuple[Tensor, Tensor]] = []
    down: list[tuple[Tensor, Tensor]] = []
    key_logits: list[Tensor] = []
    ranks: list[Tensor] = []
    chunks = zip(torch.split(value, _ROWS), torch.split(ids, _ROWS), strict=True)
    for rows, tokens in chunks:
        logits = rows @ writer.mT
        count = min(top, logits.shape[-1])
        up.append(_pair(logits.topk(count)))
        down.append(_pair(logits.topk(count, largest=False)))
        if has_key_logits:
            mine = logits.gather(1, tokens.to(logits.device)[:, None])
            key_logits.append(mine[:, 0].cpu())
            ranks.append((logits > mine).sum(dim=1).cpu())
    if not has_key_logits:
        return _joined(up), _joined(down), None, None
    return _joined(up), _joined(down), torch.cat(key_logits), torch.cat(ranks)


def _over_vocabulary(
    path: DirectPath,
    site: Site,
    query: Float[Tensor, "N D"],
    group: int,
    writer: Float[Tensor, "V E"] | None,
    top: int,
) -> tuple[TopTokens, float | None]:
    """The keys with the largest scores of all tokens, and the copying score."""
    size = path.vocab_size(site, "key")
    best, is_copying = None, writer is not None and path.writes_keys(site)
    E = 0 if writer is None else writer.shape[-1]
    product = torch.zeros(E, E, dtype=torch.float64)
    for tokens, made in path.chunks(site, "key", size):
        scores = query @ made.key[:, group].mT
        values, ids = scores.topk(min(top, len(tokens)))
        ids = ids + tokens.start
        if best is not None:
            values, ids = torch.cat([best[0], values], dim=1), torch.cat([best[1], ids], dim=1)
            values, order = values.topk(min(top, values.shape[1]))
            ids = ids.gather(1, order)
        best = values, ids
        if is_copying and writer is not None:
            rows = writer[tokens.start : tokens.stop].double().cpu()
            product += made.value[:, group].double().cpu().mT @ rows
    assert best is not None
    eigenvalues = torch.linalg.eigvals(product)
    size_of_all = float(eigenvalues.abs().sum())
    copying = float(eigenvalues.real.sum()) / size_of_all if is_copying and size_of_all else None
    return TopTokens(best[1].cpu(), best[0].cpu()), copying


def _pair(found: "torch.return_types.topk") -> tuple[Tensor, Tensor]:
    return found.values.cpu(), found.indices.cpu()


def _joined(parts: list[tuple[Tensor, Tensor]]) -> TopTokens:
    values, ids = (torch.cat(chunks) for chunks in zip(*parts, strict=True))
    return TopTokens(ids, values)


def _rows(tokens: TopTokens, rows: Int[Tensor, " R"]) -> TopTokens:
    return TopTokens(tokens.ids[rows], tokens.values[rows])


def unique(ids: Int[Tensor, " N"]) -> tuple[Int[Tensor, " M"], Int[Tensor, " N"]]:
    """Different ids, and where among them each is."""
    different, where = torch.unique(ids, return_inverse=True)
    return different, where


def _listed(tokens: TopTokens, name: Callable[[int], str], count: int) -> list[str]:
    """Rows of tokens as text."""
    listed = []
    for row in zip(tokens.ids.tolist(), tokens.values.tolist(), strict=True):
        pairs = list(zip(*row, strict=True))[:count]
        listed.append(", ".join(f"{name(token)} {value:.2f}" for token, value in pairs))
    return listed
