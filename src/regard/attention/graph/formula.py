"""``attend`` as its formula, in torch's own operations, for graphs that go where regard is not."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from regard.attention.engine.blocks import BlockInputs, mixed_by, whole_scores
from regard.attention.engine.gradients import weights_of
from regard.attention.engine.options import CallOptions
from regard.attention.engine.request import Call, make_request
from regard.attention.masks.base import Mask, as_mask
from regard.attention.masks.grid import Grid
from regard.attention.weighting import Softmax, apply_sink
from regard.errors import SettingError, ShapeError

# How many write formulas, in whatever thread: a compiler cannot follow context variables. Whoever
# else traces meanwhile gets a formula too, which says the same.
_writers = 0


@contextmanager
def written_out() -> Iterator[None]:
    """Let exported programs hold the formula of attention and no operator of ours."""
    global _writers  # noqa: PLW0603  (see above)
    _writers += 1
    try:
        yield
    finally:
        _writers -= 1


def is_written_out() -> bool:
    """Whether a formula is to be written; a compiler can ask."""
    return _writers > 0 and is_exporting()


def is_exporting() -> bool:
    """Whether ``torch.export`` traces: its own function says so of torch 2.11's compiler, too."""
    return torch.compiler._is_exporting_flag


def attend_by_formula(query: Tensor, key: Tensor, value: Tensor, options: CallOptions) -> Tensor:
    """``softmax(score(query, key) + bias) · value`` over visible keys, whatever the sizes."""
    mask, weighting = options.mask, options.weighting
    if not isinstance(weighting, Softmax) or weighting.sink is not None:
        came = "a sink" if isinstance(weighting, Softmax) else type(weighting).__name__
        raise SettingError(f"weighting must be Softmax() to be written out; got {came}.")
    request = make_request(Call(query, key, value, options._replace(mask=None)))
    inputs = BlockInputs.of(request)
    scores = whole_scores(request, inputs)
    if mask is None:
        weights = scores.softmax(-1)
    else:
        (B, H, N, _), M = inputs.query.shape, inputs.key.shape[2]
        visible = as_mask(mask).formula(Grid((B,), H, N, M, query.device))
        # Not −inf: a row that sees nothing would be NaN, and is zeros.
        hidden = torch.finfo(scores.dtype).min
        weights = scores.masked_fill(~visible, hidden).softmax(-1) * visible
    mixed = mixed_by(request, inputs, weights).to(query.dtype)
    return mixed.reshape(*request.leading, *mixed.shape[2:])


def attend_under_transforms(
    query: Tensor, key: Tensor, value: Tensor, options: CallOptions
) -> Tensor | tuple[Tensor, Tensor]:
    """``attend`` by its formula, with the whole matrix of scores, as transforms need it.

    Those of ``torch.func``, and forward-mode differentiation. Under ``torch.jit.trace`` it raises
    SettingError.
    """
    if torch._C._is_tracing():
        cure = (
            "torch.onnx.export(..., dynamo=True)"
            if torch.onnx.is_in_onnx_export()
            else "torch.export.export(model, inputs), or torch.compile(model)"
        )
        raise SettingError(
            "attend must be exported or compiled where sizes may change; got torch.jit.trace, "
            f"whose graph is right for one example. Use {cure}."
        )
    mask, weighting = options.mask, options.weighting
    for name in ("dropout", "backend"):
        if (actual := getattr(options, name)) != (plain := CallOptions._field_defaults[name]):
            raise SettingError(
                f"{name} must be {plain} under the transforms of torch.func; got {actual!r}. "
                "Call attend without them: its leading axes are batch axes."
            )
    if not isinstance(weighting, Softmax):
        raise SettingError(
            "weighting must be Softmax() under the transforms of torch.func; "
            f"got {type(weighting).__name__}. Call attend without them."
        )
    request = make_request(Call(query, key, value, options._replace(mask=None)))
    inputs = BlockInputs.of(request)
    (B, H, N, _), M = inputs.query.shape, inputs.key.shape[2]
    visible = None
    if mask is not None:
        visible = _visible_pairs(as_mask(mask), request.leading, (B, H, N, M), query.device)
        # 0 · NaN is NaN, in the gradient too: keys that no query sees are left out.
        unseen = ~visible.expand(*visible.shape[:2], N, M).any(dim=2).unsqueeze(-1)
        key, value = (t.masked_fill(unseen, 0) for t in inputs[1:3])
        inputs = inputs._replace(key=key, value=value)
    scores = whole_scores(request, inputs)
    if visible is not None:
        scores = scores.masked_fill(~visible, float("-inf"))
    if M:
        weights, lse, _ = weights_of(weighting, scores, None)
    else:
        weights, lse = scores, scores.new_full((B, H, N), float("-inf"))
    mixed = mixed_by(request, inputs, weights).to(request.query.dtype)
    if request.sink is not None:
        mixed, lse = apply_sink(request.sink, mixed, lse)
    mixed = mixed.reshape(*request.leading, N, mixed.shape[-1])
    return (mixed, lse.reshape(*request.leading, N)) if options.return_lse else mixed


def _visible_pairs(
    mask: Mask, leading: tuple[int, ...], sizes: tuple[int, int, int, int], device: torch.device
) -> Tensor:
    """Visible pairs of a mask, (B or 1, H or 1, N or 1, M or 1)."""
    *_, N, M = sizes
    heads = leading[-1] if len(leading) > 1 else None
    grid = Grid(leading if heads is None else leading[:-1], heads, N, M, device)
    try:
        visible = mask.formula(grid)
    except SettingError:  # it has none, and is asked pair by pair
        visible = mask.pairs(grid, range(N), range(M))
    visible = visible.reshape((1,) * (4 - visible.dim()) + visible.shape)
    if any(have not in (1, want) for have, want in zip(visible.shape, sizes, strict=True)):
        raise ShapeError(
            f"mask must broadcast to (*batch, N, M) = {grid.shape}; got {tuple(visible.shape)}."
        )
    return visible
