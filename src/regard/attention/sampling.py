"""Hard attention that draws one key for each query, and says how probable that was."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.attention.biases import PositionBias
from regard.attention.engine import tiled
from regard.attention.engine.blocks import BlockInputs, BlockPass, Sizes, rows_of
from regard.attention.engine.numerics import gumbel_noise
from regard.attention.engine.options import CallOptions
from regard.attention.engine.request import Call, Request, make_request
from regard.attention.masks.base import Mask, as_mask
from regard.attention.masks.rules import where
from regard.attention.scores import ScaledDot, Score
from regard.errors import ShapeError

_SCALED_DOT = ScaledDot()


@dataclass(frozen=True, slots=True, eq=False)
class SampledKey:
    """Keys that were drawn, one for each query.

    Attributes:
        context: The value of the key that was drawn; zeros where no key is visible.
        index: Its number; 0 where no key is visible.
        log_prob: The logarithm of the probability of drawing it; −inf where no key is visible.
            Differentiable: its product with a reward is the REINFORCE objective.

    Example:
        >>> import torch
        >>> from regard.attention import sample_key
        >>> keys = torch.tensor([[0.0], [99.0]])  # which are the values, too
        >>> drawn = sample_key(torch.tensor([[1.0]]), keys)
        >>> drawn.index, drawn.context
        (tensor([1]), tensor([[99.]]))
    """

    context: Float[Tensor, "*b N E"]
    index: Int[Tensor, "*b N"]
    log_prob: Float[Tensor, "*b N"]


def sample_key(
    query: Float[Tensor, "*q N D"],
    key: Float[Tensor, "*k M K"],
    value: Float[Tensor, "*v M E"] | None = None,
    *,
    score: Score = _SCALED_DOT,
    mask: Mask | Bool[Tensor, "..."] | None = None,
    bias: Float[Tensor, "..."] | PositionBias | None = None,
    generator: torch.Generator | None = None,
) -> SampledKey:
    """Draw a key for each query, with the probability that softmax attention gives as weight.

    Stochastic hard attention, Xu et al. (2015), section 4.1, https://arxiv.org/abs/1502.03044, in
    memory that grows with N. The mean of many draws is soft attention.

    Takes the arguments of ``attend``, and forms heads alike; the generator seeds the draw.

    Raises:
        ShapeError: Shapes, dtypes or devices do not fit together, or there are no keys.

    Example:
        >>> keys = torch.tensor([[9.0, 0.0], [0.0, 9.0]])
        >>> drawn = sample_key(torch.tensor([[9.0, 0.0]]), keys, torch.tensor([[1.0], [2.0]]))
        >>> drawn.index.tolist(), drawn.context.tolist()
        ([0], [[1.0]])
    """
    value = key if value is None else value
    options = CallOptions(score, mask, bias, generator=generator, return_lse=True)
    request = make_request(Call(query, key, value, options))
    if not request.key.shape[2]:
        raise ShapeError("key must have at least one position to draw from; got none.")
    # As in ``attend``, automatic precision narrows nothing.
    with torch.autocast(request.query.device.type, enabled=False):
        inputs = BlockInputs.of(request)
        with torch.no_grad():
            index = _draw(request, inputs)
        drawn = where(lambda batch, head, query, key: key == index[batch, head, query])
        # Where only the key that was drawn is visible, the log-sum-exp is its score.
        options = options._replace(mask=drawn if mask is None else as_mask(mask) & drawn)
        _, chosen = tiled.run(make_request(Call(query, key, value, options)))
        _, lse = tiled.run(request)
    assert chosen is not None
    assert lse is not None
    log_prob = chosen - lse
    sees_any = (lse > float("-inf")).unsqueeze(-1)
    of_values = index.unsqueeze(-1).expand(*index.shape, inputs.value.shape[-1])
    context = inputs.value.gather(2, of_values).masked_fill(~sees_any, 0)
    log_prob = log_prob.masked_fill(~sees_any.squeeze(-1), float("-inf"))
    leading = request.leading
    return SampledKey(
        context.to(request.query.dtype).reshape(*leading, *context.shape[2:]),
        index.masked_fill(~sees_any.squeeze(-1), 0).reshape(*leading, index.shape[-1]),
        log_prob.reshape(*leading, log_prob.shape[-1]),
    )


def _draw(request: Request, inputs: BlockInputs) -> Int[Tensor, "B H N"]:
    """The best key of each query once Gumbel noise is added."""
    B, H, N, D = inputs.query.shape
    # Four more than the score needs: random bits, and their logarithm in float64.
    sizes = Sizes.of(request, request.score.floats_per_pair(D) + 4, cuts_keys=False)
    job = BlockPass.of(request, sizes)
    seed = int(torch.randint(2**31 - 1, (), generator=request.generator))
    index = torch.zeros(B, H, N, dtype=torch.long, device=inputs.query.device)
    for block in job.blocks():
        scores = job.scores_of(block, inputs)
        lead = block.batch, block.heads, block.rows
        noise = block.along_keys(lambda keys: gumbel_noise(seed, (*lead, keys), like=scores))  # noqa: B023
        best = (scores + noise).argmax(dim=-1)
        positions = block.along_keys(lambda keys: torch.arange(keys.start, keys.stop))
        rows_of(index, block).copy_(positions.to(index.device)[best])
    return index
