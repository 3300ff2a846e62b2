"""Scores of attention and logits, taken apart into the writers of the residual stream."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention import AttentionCall, Cover, Dot, ScaledDot, Softmax
from regard.attention.engine.blocks import whole_scores
from regard.attention.engine.gradients import inputs_of
from regard.attention.scores import Score
from regard.errors import SettingError
from regard.interop.attribution.attribute import output_of
from regard.interop.attribution.input_vectors import Output, checked_inputs
from regard.interop.attribution.linear_functions import StreamPart
from regard.interop.attribution.linear_run import LinearRun
from regard.interop.interventions.patching import Site
from regard.interop.modules.inside import module_of
from regard.interop.record import KINDS


@dataclass(frozen=True, slots=True, eq=False)
class ScoreParts:
    """A score of attention as a sum over pairs of parts; ``decompose_score`` returns it.

    Attributes:
        kind: "encoder", "decoder" or "cross".
        layer: Which layer, from 0.
        head: Which head, from 0.
        query: Position of the query.
        key: Position of the key.
        query_parts: Parts of the query, P of them.
        key_parts: Parts of the key, Q of them.
        values: (P, Q) Contribution of each pair to the score.
        bias: Term that the model adds by the two positions, such as ALiBi; 0 of most.
        score: The score that the model computed, before softmax (and before a soft cap).
        weight: The weight that came of it.

    Example:
        >>> parts = StreamPart("token"), StreamPart("position")
        >>> print(ScoreParts("encoder", 0, 1, 5, 4, parts, parts,
        ...     torch.tensor([[0.5, -0.25], [1.0, 3.0]]), 0.0, 4.25, 0.9))
        query     key          value
        position  position    3.0000
        position  token       1.0000
        token     token       0.5000
        token     position   -0.2500
        sum                   4.2500
    """

    kind: str
    layer: int
    head: int
    query: int
    key: int
    query_parts: tuple[StreamPart, ...]
    key_parts: tuple[StreamPart, ...]
    values: Float[Tensor, "P Q"]
    bias: float
    score: float
    weight: float

    @property
    def sum(self) -> float:
        """All values and the bias: the score, but for rounding."""
        return float(self.values.double().sum()) + self.bias

    def top(self, count: int = 10) -> list[tuple[StreamPart, StreamPart, float]]:
        """The pairs of the largest values, up or down."""
        flat = self.values.flatten()
        order = flat.abs().argsort(descending=True, stable=True)[:count].tolist()
        width = len(self.key_parts)
        return [
            (self.query_parts[n // width], self.key_parts[n % width], float(flat[n])) for n in order
        ]

    def __str__(self) -> str:
        rows = [((query.name, key.name), value) for query, key, value in self.top()]
        return _table(("query", "key"), rows, self.values.numel(), self.sum, bias=self.bias)


@dataclass(frozen=True, slots=True, eq=False)
class LogitParts:
    """A logit, or the difference of two, as a sum over parts; ``logit_attribution`` returns it.

    Attributes:
        parts: Writers of the residual stream, P of them.
        values: (P,) Contribution of each part to the output.
        output: The logit, or the difference, that the model computed.
        target: Position and token (or class) that is explained, and the token it is held against;
            None where a function chose.

    Example:
        >>> print(LogitParts((StreamPart("token"), StreamPart("head", "decoder", 0, 1)),
        ...     torch.tensor([0.5, -2.0]), -1.5, None))
        part               value
        layer 0 head 1   -2.0000
        token             0.5000
        sum              -1.5000
    """

    parts: tuple[StreamPart, ...]
    values: Float[Tensor, " P"]
    output: float
    target: tuple[int | None, int, int | None] | None

    @property
    def sum(self) -> float:
        """All values: the output, but for rounding."""
        return float(self.values.double().sum())

    def top(self, count: int = 10) -> list[tuple[StreamPart, float]]:
        """The parts of the largest values, up or down."""
        order = self.values.abs().argsort(descending=True, stable=True)[:count].tolist()
        return [(self.parts[n], float(self.values[n])) for n in order]

    def __str__(self) -> str:
        rows = [((part.name,), value) for part, value in self.top()]
        return _table(("part",), rows, len(self.parts), self.sum)


def _table(
    titles: tuple[str, ...],
    rows: Sequence[tuple[tuple[str, ...], float]],
    count: int,
    total: float,
    bias: float = 0.0,
) -> str:
    """Rows of names and values, the sum of the rows left out, and the total."""
    columns = zip(titles, *(names for names, _ in rows), strict=True)
    widths = [max(map(len, column)) + 2 for column in columns]
    lines = [("".join(map(str.ljust, names, widths)), value) for names, value in rows]
    if len(rows) < count:
        left = total - bias - sum(value for _, value in rows)
        lines.append((f"{count - len(rows)} others", left))
    lines += [("bias", bias)] * bool(bias) + [("sum", total)]
    title = "".join(map(str.ljust, titles, widths)) + f"{'value':>8}"
    return "\n".join([title, *(f"{name:{sum(widths)}}{value:8.4f}" for name, value in lines)])


def decompose_score(
    model: nn.Module,
    inputs: Mapping[str, object] | Tensor,
    *,
    layer: int,
    head: int,
    query: int,
    key: int,
    kind: str | None = None,
) -> ScoreParts:
    """The score of a head for one query and one key, in pairs of the parts that wrote them.

    A query is a linear map of the residual stream, to which the embeddings, each earlier head, each
    earlier feed-forward part and biases were added, and so is a key; their product is a sum over
    pairs of these (Elhage et al., 2021, https://transformer-circuits.pub/2021/framework). A norm is
    linear where its scale is held at this run's: each part is centred by its own mean, and divided
    by the deviation of all. Rotary positions turn each part of a query or key as they turn it all.

    Args:
        model: One that ``edit`` can reach, in evaluation mode: Hugging Face's, and those of this
            package.
        inputs: Inputs by name for one text, tensors with a batch axis of one; or a tensor, which is
            the first argument.
        layer: Which layer, from 0.
        head: Which head, from 0.
        query: Position of the query, from 0, or from the last below 0.
        key: Position of the key, likewise.
        kind: "encoder", "decoder" or "cross"; None where the layer has one of them only.

    Raises:
        SettingError: The model is in training mode or cannot be taken apart, or has no such head or
            position, or the query does not see the key.
        ShapeError: There is more than one text.

    Example:
        >>> from regard.models import Transformer, TransformerConfig
        >>> config = TransformerConfig(model_dim=8, num_heads=2, ffn_dim=16)
        >>> model = Transformer(config, source_vocab=11, target_vocab=11).eval()
        >>> text, length = torch.tensor([[4, 7, 5]]), torch.tensor([3])
        >>> inputs = dict(source=text, source_lengths=length, target=text)
        >>> parts = decompose_score(model, inputs, layer=1, head=0, query=2, key=0, kind="encoder")
        >>> [part.name for part in parts.key_parts[:4]]
        ['token', 'position', 'layer 0 head 0', 'layer 0 head 1']
        >>> abs(parts.sum - parts.score) < 1e-4
        True
    """
    run = linear_run(model, inputs)
    return score_parts(run, site_of(run, layer, kind), head, query, key)


def logit_attribution(
    model: nn.Module,
    inputs: Mapping[str, object] | Tensor,
    *,
    target: int | Output | None = None,
    against: int | None = None,
    position: int | None = None,
) -> LogitParts:
    """Direct logit attribution: which embedding, head and feed-forward part made a logit, and how.

    The logit is a linear map of the residual stream where the scale of the last norm is held, and
    so is the sum of the parts' outputs, read as the model reads the whole. A part's effect by way
    of later parts counts as theirs. Where an activation stands in the head after the last layer, as
    in BERT's for masked words, its gate (output over input) is held too.

    Args:
        model: As in ``decompose_score``; its output as in ``attribute``.
        inputs: As in ``decompose_score``.
        target: Token or class; None is the likeliest; or a function of the model's output that
            gives (B,) numbers, linear in it.
        against: A token or class whose logit is subtracted: why *target*, and not *against*.
        position: Position of the output, from 0, or from the last below 0; None is the last.

    Raises:
        SettingError: The model is in training mode, has no such output, or cannot be taken apart.
        ShapeError: There is more than one text.

    Example:
        >>> from regard.models import Transformer, TransformerConfig
        >>> config = TransformerConfig(model_dim=8, num_heads=2, ffn_dim=16)
        >>> model = Transformer(config, source_vocab=11, target_vocab=7).eval()
        >>> text, length = torch.tensor([[4, 6, 5]]), torch.tensor([3])
        >>> made = logit_attribution(model, dict(source=text, source_lengths=length, target=text))
        >>> abs(made.sum - made.output) < 1e-4
        True
    """
    run = linear_run(model, inputs)
    number, chosen = output_of(run.answer, run.model, target, against, position)
    return logit_parts(run, number, chosen)


def linear_run(model: nn.Module, inputs: Mapping[str, object] | Tensor) -> LinearRun:
    """Run a model on one text so that its scores and logits can be taken apart."""
    return LinearRun(*module_and_inputs(model, inputs))


def module_and_inputs(
    model: nn.Module, inputs: Mapping[str, object] | Tensor
) -> tuple[nn.Module, Mapping[str, object]]:
    """Return a model in evaluation mode, and the inputs of one text by name."""
    model = module_of(model)
    return model, checked_inputs(model, inputs)


def site_of(run: LinearRun, layer: int, kind: str | None) -> Site:
    """The attention of a layer; SettingError unless there is one."""
    sites = [site for site in run.calls if site[1] == layer and kind in (None, site[0])]
    if len(sites) != 1:
        raise SettingError(
            f"layer and kind must name one attention: {_listed(run)}; got layer={layer}, "
            f"kind={kind!r}."
        )
    return sites[0]


def is_product(call: AttentionCall) -> bool:
    """Whether scores are products of queries and keys, for a softmax."""
    return isinstance(call.score, ScaledDot | Dot) and isinstance(call.weighting, Softmax)


def check_product(call: AttentionCall, site: Site, head: int) -> None:
    """Raise SettingError unless scores of a head are products of queries and keys."""
    if not is_product(call):
        raise SettingError(
            "score must be a product of a query and a key, for a softmax, to be taken apart; got "
            f"{call.score!r} of {' '.join(map(str, site))}."
        )
    count = call.query.shape[-3] if call.query.dim() > 3 else 1
    if not 0 <= head < count:
        raise SettingError(f"head must be one of {count}; got {head}.")


def scale_of(call: AttentionCall) -> float:
    """The factor of the products of queries and keys."""
    if not isinstance(call.score, ScaledDot):
        return 1.0
    return call.query.shape[-1] ** -0.5 if call.score.scale is None else call.score.scale


def logit_parts(
    run: LinearRun, number: Output, chosen: tuple[int | None, int, int | None] | None = None
) -> LogitParts:
    """Take a number of a run's output apart."""
    made, output = run.output(number)
    values = torch.tensor(list(made.values()), dtype=torch.float64)
    parts = LogitParts(tuple(made), values, output, chosen)
    _check_sum(run, values, parts.sum, output)
    return parts


def score_parts(run: LinearRun, site: Site, head: int, query: int, key: int) -> ScoreParts:
    """Take a score of a run apart."""
    call = run.calls[site]
    check_product(call, site, head)
    queries, keys = run.spans[site]
    query, key = (
        _position(name, number, span)
        for name, number, span in (("query", query, queries), ("key", key, keys))
    )
    score, product, weight = _score(call, head, query - queries.start, key - keys.start)
    scale = scale_of(call)
    query_parts = run.query(site, head, query - queries.start)
    key_parts = run.key(site, head, key - keys.start)
    values = scale * (_stacked(query_parts, call) @ _stacked(key_parts, call).mT)
    parts = ScoreParts(
        *site,
        head,
        query,
        key,
        tuple(query_parts),
        tuple(key_parts),
        values,
        score - product,
        score,
        weight,
    )
    _check_sum(run, values, parts.sum, score)
    return parts


@torch.no_grad()
def _score(call: AttentionCall, head: int, query: int, key: int) -> tuple[float, float, float]:
    """The score of a pair, the part of it that is a product, and the weight."""
    mask = call.mask
    if mask is not None:
        *batch, H, N, _ = call.query.shape if call.query.dim() > 3 else (1, *call.query.shape)
        bound = mask.bind(tuple(batch), H, N, call.key.shape[-2], call.query.device)
        tile = bound.tile(range(query, query + 1), range(key, key + 1))
        is_seen = tile is Cover.ALL
        if isinstance(tile, Tensor):
            is_seen = bool(tile.expand(*batch, H, 1, 1)[0, head])
        if not is_seen:
            raise SettingError(
                f"key must be one that the query sees; got query {query} and key {key}, which the "
                "mask hides from it."
            )
    score: Score = call.score
    if isinstance(score, ScaledDot):
        score = replace(score, softcap=None)
    request = replace(call, score=score).request()
    whole = float(whole_scores(request, inputs_of(request))[0, head, query, key])
    product = whole
    if request.bias is not None or request.position is not None:
        keys = request.key[0]
        group = head * len(keys) // request.query.shape[1]
        pair = request.query[0, head, query][None], keys[group, key][None]
        product = float(score.tile(*pair))
    weight = float(call.rows([query]).reshape(-1, call.key.shape[-2])[head, key])
    return whole, product, weight


def _stacked(parts: Mapping[StreamPart, Tensor], call: AttentionCall) -> Float[Tensor, "P D"]:
    if not parts:
        return torch.zeros(0, call.query.shape[-1], dtype=torch.float64)
    return torch.stack(list(parts.values())).cpu()


def _position(name: str, number: int, span: range) -> int:
    position = number + span.stop * (number < 0)
    if position not in span:
        raise SettingError(
            f"{name} must be a position from {span.start} to {span.stop - 1}; got {number}."
        )
    return position


def _check_sum(run: LinearRun, values: Tensor, total: float, number: float) -> None:
    """Raise SettingError if the parts are not all that there is."""
    # Of numbers of this precision, of the size of the parts; many norms are of float32 at most.
    dtypes = (next(iter(run.calls.values())).query.dtype, torch.float32)
    size = max(float(values.abs().sum()), abs(number))
    if abs(total - number) > max(torch.finfo(dtype).eps for dtype in dtypes) ** 0.5 * size:
        raise SettingError(
            "model must add up what its embeddings, heads and feed-forward parts write for these "
            f"to be told apart; got {type(run.model).__name__}, whose parts sum to {total:.4g} "
            f"where it has {number:.4g}."
        )


def _listed(run: LinearRun) -> str:
    sites: Sequence[Site] = sorted(run.calls, key=lambda site: (KINDS.index(site[0]), site[1]))
    return ", ".join(f"{kind} {layer}" for kind, layer in sites)
