"""Random calls, on every path that serves them, against the dense formula in float64.

Sizes, dtypes, scores, masks, biases, weightings, shared heads, leading axes and garbage in hidden
keys are drawn anew for each seed; the context, the log-sum-exp and all gradients may be at most
four times as far from the truth as the naive formula in the same dtype.
"""

import random

import pytest
import torch
from tests.formulas.biases import BIASES
from tests.formulas.case import Case, assert_as_good, in_naive_dtype
from tests.formulas.masks import JOINS, MASKS
from tests.formulas.scores import SCORES
from tests.formulas.sizes import Sizes
from tests.formulas.weightings import WEIGHTINGS

from regard.attention import attend, causal, lengths
from regard.attention.backends import short

SEEDS = 60
DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]
DOTS = [name for name, case in SCORES.items() if case.is_dot]
# Tensors of four axes fit no call of fewer or more.
ONLY_FOUR_AXES = {"dense", "of heads", "of queries", "of pairs"}


@pytest.fixture(autouse=True)
def _short_for_few_pairs(monkeypatch):
    """Let the path for short rows serve calls as small as these."""
    monkeypatch.setattr(short, "FEWEST_PAIRS", 1)
    monkeypatch.setattr("regard.attention.engine.kinds.KINDS", {})


def draw_sizes(choose, axes):
    heads = choose.choice([1, 2, 3]) if axes > 3 else 1
    return Sizes(
        B=choose.choice([1, 2, 3]) if axes > 2 else 1,
        H=heads * choose.choice([1, 1, 2, 3]) if axes > 3 else 1,
        G=heads,
        N=choose.choice([1, 2, 3, 17, 70, 149]),
        M=choose.choice([1, 4, 33, 90, 137]),
        D=choose.choice([1, 4, 16]),
        E=choose.choice([1, 4, 16, 20, 67]),
    )


def draw_kind(choose, axes):
    """A score, mask, bias and weighting of any kind that such axes allow."""
    masks = [name for name in MASKS if axes == 4 or name not in ONLY_FOUR_AXES]
    biases = [name for name in BIASES if axes == 4 or name not in ONLY_FOUR_AXES]
    mask = choose.choice([None, *masks])
    if mask is not None and choose.random() < 0.4:
        mask = f"{mask} {choose.choice(list(JOINS))} {choose.choice(masks)}"
    return {
        "score": choose.choice(list(SCORES)),
        "mask": mask,
        "bias": choose.choice([None, None, *biases]),
        "weighting": choose.choice(["softmax", *WEIGHTINGS]),
    }


def made_plain(choose, sizes, kind):
    """Changed so that the fused paths serve it: they would be rare otherwise."""
    if choose.random() < 0.7:
        sizes = sizes._replace(G=sizes.H, E=choose.choice([sizes.D, 16]))
    if choose.random() < 0.4:
        kind["mask"] = choose.choice(["documents", "documents of rows", "documents & causal"])
    kind["score"], kind["weighting"] = choose.choice(DOTS), "softmax"
    if kind["bias"] not in ("of keys", "of heads"):
        kind["bias"] = None
    return sizes, kind


def made_additive(choose, kind):
    """Changed so that the loops of additive attention serve it."""
    kind["score"] = choose.choice(["additive", "additive per head"])
    kind["weighting"] = "softmax"
    if kind["bias"] not in ("of keys", "of heads", "of queries", "of pairs"):
        kind["bias"] = None
    return kind


def poisoned(case, choose):
    """The same call with garbage in the keys and values that no query sees."""
    sizes = case.sizes
    seen = case.seen.reshape(sizes.B, sizes.G, -1, sizes.N, sizes.M)
    hidden = ~seen.any(dim=3).any(dim=2)[..., None]
    query, *rest = case.inputs
    garbage = [choose.choice([float("nan"), float("inf")]) for _ in rest]
    filled = [t.masked_fill(hidden, bad) for t, bad in zip(rest, garbage, strict=True)]
    return case._replace(inputs=[query, *filled])


@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_path_is_as_good_as_the_naive_formula(seed):
    choose = random.Random(seed)
    torch.manual_seed(seed)
    dtype, axes = choose.choice(DTYPES), choose.choice([2, 3, 4, 4, 4, 4, 4, 5])
    sizes, kind = draw_sizes(choose, axes), draw_kind(choose, axes)
    if is_plain := seed % 2 == 0:
        sizes, kind = made_plain(choose, sizes, kind)
    elif seed % 3 == 0:
        kind = made_additive(choose, kind)
    case = Case.draw(sizes, dtype, **kind)
    wants = {
        "gradients": choose.random() < 0.6,
        "lse": not is_plain and kind["weighting"] in ("softmax", "sink") and choose.random() < 0.5,
    }
    truth = case.as_dtype(torch.float64).formula(**wants)
    naive = in_naive_dtype(case).formula(**wants)
    ours = poisoned(case, choose) if choose.random() < 0.4 else case
    for backend in [None, *ours.backends(axes=axes, **wants)]:
        found = ours.attend(backend=backend, axes=axes, **wants)
        assert_as_good(found, naive, truth)


@pytest.mark.parametrize("seed", range(16))
def test_what_is_not_finite_in_a_hidden_key_reaches_nobody(seed):
    choose = random.Random(seed)
    torch.manual_seed(seed)
    B, H, D = choose.choice([1, 2]), choose.choice([1, 3]), choose.choice([4, 16, 20])
    N, M = choose.choice([1, 5, 33, 300]), choose.choice([8, 17, 64, 600])
    dtype = choose.choice(DTYPES)
    inputs = [torch.randn(B, H, n, D, dtype=dtype) for n in (N, M, M)]
    seen = choose.randint(1, M - 1)
    masks = [lengths(torch.full((B,), seen)), lengths(seen) & causal(first=seen)]
    if N < M:
        masks.append(causal(first=0))  # a flag
    mask, one = choose.choice(masks), choose.choice([1, 2])
    place = choose.randint(max(seen, min(N, M - 1)), M - 1)
    backend = "sdpa" if dtype != torch.float64 else None

    def answer(filling):
        given = [tensor.clone() for tensor in inputs]
        given[one][:, :, place:] = filling
        given = [tensor.requires_grad_() for tensor in given]
        out = attend(*given, mask=mask, backend=backend)
        return [out, *torch.autograd.grad(out.float().square().sum(), given)]

    bad = choose.choice([float("nan"), float("inf"), float("-inf")])
    most = 5e-2 if dtype.itemsize == 2 else 1e-4
    for got, want in zip(answer(bad), answer(0.0), strict=True):
        torch.testing.assert_close(got, want, atol=most, rtol=most)
