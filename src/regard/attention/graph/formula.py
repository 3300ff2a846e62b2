"""``attend`` as its formula, in torch's own operations, for graphs that go where regard is not."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.autograd import forward_ad

from regard.attention.biases import PositionBias
from regard.attention.engine.request import Request, make_request
from regard.attention.masks.base import Mask, as_mask
from regard.attention.masks.grid import Grid, Stretch
from regard.attention.scores import Score
from regard.attention.weighting import Softmax, Weighting, apply_sink
from regard.errors import SettingError, ShapeError

# How many write formulas, in whatever thread: a compiler cannot follow context variables. Whoever
# else traces meanwhile gets a formula too, which says the same.
_writers = 0


@contextmanager
def written_out() -> Iterator[None]:
    """Programs that are exported inside hold the formula of attention, and no operator of ours.

    They run wherever torch does, or what its graphs are translated for; with the whole matrix of
    scores in memory, as the formula has it. Attention must be softmax attention without a sink,
    under masks that ask for places alone.
    """
    global _writers  # noqa: PLW0603  (see above)
    _writers += 1
    try:
        yield
    finally:
        _writers -= 1


def is_written_out() -> bool:
    """Whether a formula is to be written; a compiler can ask."""
    return _writers > 0 and torch.compiler.is_exporting()


def attend_by_formula(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    score: Score,
    mask: Mask | Tensor | None,
    bias: Tensor | PositionBias | None,
    weighting: Weighting,
) -> Tensor:
    """``softmax(score(query, key) + bias) · value`` over visible keys, whatever the sizes.

    Raises:
        ShapeError: Shapes, dtypes or devices do not fit together.
        SettingError: The weighting is another, or the mask cannot be written out.
    """
    if not isinstance(weighting, Softmax) or weighting.sink is not None:
        came = "a sink" if isinstance(weighting, Softmax) else type(weighting).__name__
        raise SettingError(f"weighting must be Softmax() to be written out; got {came}.")
    request = make_request(
        query, key, value, score=score, mask=None, bias=bias, weighting=weighting
    )
    (B, H, N, _), M = request.query.shape, request.key.shape[2]
    wide = torch.promote_types(query.dtype, torch.float32)
    query, key, value = _wide(request)
    scores = score.tile(query, key, *score.tensors())
    rows, keys = Stretch(0, N), Stretch(0, M)
    if request.bias is not None:
        scores = scores + request.bias
    position = request.position
    if position is not None:
        steps = position.steps(rows, keys, (N, M), query.device)
        scores = scores + position.tile(query, steps, *position.tensors())
    if mask is None:
        weights = scores.softmax(-1)
    else:
        seen = as_mask(mask).formula(Grid((B,), H, N, M, query.device))
        # Not −inf: a row that sees nothing would be NaN, and is zeros.
        hidden = torch.finfo(wide).min
        weights = scores.masked_fill(~seen, hidden).softmax(-1) * seen
    mixed = weights @ value
    if position is not None:
        added = position.mix(weights, steps, *position.tensors())
        mixed = mixed if added is None else mixed + added
    return mixed.to(request.query.dtype).reshape(*request.leading, N, mixed.shape[-1])


def is_transformed() -> bool:
    """Whether a transform of ``torch.func`` or forward-mode differentiation is at work."""
    return torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0


def attend_under_transforms(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    score: Score,
    mask: Mask | Tensor | None,
    bias: Tensor | PositionBias | None,
    weighting: Weighting,
    dropout: float,
    generator: torch.Generator | None,
    backend: str | None,
    return_lse: bool,
) -> Tensor | tuple[Tensor, Tensor]:
    """``attend`` by its formula where ``is_transformed``: transforms follow torch's operations.

    The whole matrix of scores is made, for all of a vmapped axis at once.

    Raises:
        ShapeError: Shapes, dtypes or devices do not fit together.
        SettingError: The weighting is another than softmax, there is dropout, or a backend is
            pinned.
    """
    for name, given, plain in (("dropout", dropout, 0.0), ("backend", backend, None)):
        if given != plain:
            raise SettingError(
                f"{name} must be {plain} under the transforms of torch.func; got {given!r}. "
                "Call attend without them: its leading axes are batch axes."
            )
    if not isinstance(weighting, Softmax):
        raise SettingError(
            "weighting must be Softmax() under the transforms of torch.func; "
            f"got {type(weighting).__name__}. Call attend without them."
        )
    request = make_request(
        query, key, value, score=score, mask=None, bias=bias, weighting=weighting
    )
    (B, H, N, _), M = request.query.shape, request.key.shape[2]
    query, key, value = _wide(request)
    seen = None if mask is None else _seen(as_mask(mask), request.leading, (B, H, N, M), query)
    if seen is not None:
        # 0 · NaN is NaN, in the gradient too: what no query sees is left out.
        unseen = ~seen.expand(*seen.shape[:2], N, M).any(dim=2).unsqueeze(-1)
        key, value = key.masked_fill(unseen, 0), value.masked_fill(unseen, 0)
    scores = score.tile(query, key, *score.tensors())
    if request.bias is not None:
        scores = scores + request.bias
    position = request.position
    if position is not None:
        steps = position.steps(range(N), range(M), (N, M), query.device)
        scores = scores + position.tile(query, steps, *position.tensors())
    if seen is not None:
        scores = scores.masked_fill(~seen, float("-inf"))
    top = scores.detach().amax(dim=-1, keepdim=True) if M else scores.new_zeros(B, H, N, 1)
    is_empty = top == float("-inf")
    powers = (scores - top.masked_fill(is_empty, 0)).exp()
    total = powers.sum(dim=-1, keepdim=True)
    is_empty = is_empty | (total == 0)
    weights = powers / total.masked_fill(is_empty, 1)
    mixed = weights @ value
    if (
        position is not None
        and (added := position.mix(weights, steps, *position.tensors())) is not None
    ):
        mixed = mixed + added
    lse = (top + total.masked_fill(is_empty, 1).log()).masked_fill(is_empty, float("-inf"))
    lse = lse.squeeze(-1)
    mixed = mixed.to(request.query.dtype)
    if request.sink is not None:
        mixed, lse = apply_sink(request.sink, mixed, lse)
    mixed = mixed.reshape(*request.leading, N, mixed.shape[-1])
    return (mixed, lse.reshape(*request.leading, N)) if return_lse else mixed


def _seen(
    mask: Mask, leading: tuple[int, ...], sizes: tuple[int, int, int, int], query: Tensor
) -> Tensor:
    """All pairs of a mask, (B or 1, H or 1, N or 1, M or 1)."""
    *_, N, M = sizes
    heads = leading[-1] if len(leading) > 1 else None
    grid = Grid(leading if heads is None else leading[:-1], heads, N, M, query.device)
    try:
        seen = mask.formula(grid)
    except SettingError:  # it has none, and is asked pair by pair
        seen = mask.pairs(grid, range(N), range(M))
    seen = seen.reshape((1,) * (4 - seen.dim()) + seen.shape)
    if any(have not in (1, want) for have, want in zip(seen.shape, sizes, strict=True)):
        raise ShapeError(
            f"mask must broadcast to (*batch, N, M) = {grid.shape}; got {tuple(seen.shape)}."
        )
    return seen


def _wide(request: Request) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values in float32 at least, with as many heads each."""
    wide = torch.promote_types(request.query.dtype, torch.float32)
    query, key, value = (t.to(wide) for t in (request.query, request.key, request.value))
    H, G = query.shape[1], key.shape[1]
    if H != G:
        key, value = (t.repeat_interleave(H // G, dim=1) for t in (key, value))
    return query, key, value
