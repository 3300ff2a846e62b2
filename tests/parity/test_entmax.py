"""Against the entmax package, by the authors of the mappings: weights and gradients."""

import entmax
import pytest
import torch

from regard.attention import Entmax15, Sparsemax, attend, lengths, weights
from regard.attention.engine.tiled import row_weights

pytestmark = [pytest.mark.parity, pytest.mark.slow]

# By tensor operations, and by compiled loops.
DTYPES = pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
PAIRS = [
    pytest.param(Sparsemax(), entmax.sparsemax, id="sparsemax"),
    pytest.param(Entmax15(), entmax.entmax15, id="entmax15"),
    pytest.param(Entmax15(), lambda s, dim: entmax.entmax_bisect(s, 1.5, dim), id="bisection"),
]


@DTYPES
@pytest.mark.parametrize(("weighting", "theirs"), PAIRS)
@pytest.mark.parametrize("spread", [0.1, 1.0, 5.0])
def test_weights_of_rows(weighting, theirs, spread, dtype):
    scores = spread * torch.randn(31, 47, dtype=dtype)
    torch.testing.assert_close(row_weights(weighting, scores), theirs(scores, dim=-1))


@DTYPES
@pytest.mark.parametrize(("weighting", "theirs"), PAIRS[:2])
def test_attention_and_its_gradients(weighting, theirs, dtype):
    query, key, value = (
        torch.randn(2, 3, n, 11, dtype=dtype, requires_grad=True) for n in (5, 7, 7)
    )
    seen = torch.arange(7) < torch.tensor([4, 7])[:, None, None, None]
    scores = (query @ key.mT / 11**0.5).masked_fill(~seen, -1e9)
    want = theirs(scores, dim=-1) @ value
    options = {"weighting": weighting, "mask": lengths([4, 7])}
    out = attend(query, key, value, **options)
    torch.testing.assert_close(out, want)
    torch.testing.assert_close(weights(query, key, **options), theirs(scores, dim=-1))
    grad = torch.randn_like(out)
    for ours, other in zip(
        torch.autograd.grad(out, (query, key, value), grad),
        torch.autograd.grad(want, (query, key, value), grad),
        strict=True,
    ):
        torch.testing.assert_close(ours, other)
