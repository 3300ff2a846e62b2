"""``attend`` as its formula, in torch's own operations, for graphs that go where regard is not."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from regard.attention.biases import PositionBias
from regard.attention.engine.request import make_request
from regard.attention.masks.base import Mask, as_mask
from regard.attention.masks.grid import Grid, Stretch
from regard.attention.scores import Score
from regard.attention.weighting import Softmax, Weighting
from regard.errors import SettingError

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
    (B, H, N, _), (_, G, M, _) = request.query.shape, request.key.shape
    wide = torch.promote_types(query.dtype, torch.float32)
    query, key, value = (t.to(wide) for t in (request.query, request.key, request.value))
    if H != G:
        key, value = (t.repeat_interleave(H // G, dim=1) for t in (key, value))
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
