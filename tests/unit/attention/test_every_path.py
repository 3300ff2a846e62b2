"""Every score, mask, weighting, bias and dtype, on every path that serves them.

Against the loops of ``reference.py``, at sizes that are all different primes. Whatever is too much
to go with everything goes with everything else two by two.
"""

from itertools import combinations

import pytest
import torch
from tests.cases import two_by_two
from tests.formulas.biases import BIASES
from tests.formulas.case import Case, assert_as_good, in_naive_dtype
from tests.formulas.masks import MASKS
from tests.formulas.scores import SCORES
from tests.formulas.sizes import Sizes
from tests.formulas.weightings import WEIGHTINGS

from regard.attention.call import choice
from regard.attention.masks.bound import Memory

pytestmark = pytest.mark.slow

DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]
JOINED = ["lengths & causal", "documents & window", "prefix | causal", "dense & ~ where"]
ALONE, GROUPED, AS_WIDE = Sizes(), Sizes(H=6), Sizes(E=11)
FACTORS = {
    "score": list(SCORES),
    "mask": [None, *MASKS, *JOINED],
    "weighting": list(WEIGHTINGS),
    "bias": [None, *BIASES],
    "dtype": DTYPES,
    "sizes": [ALONE, GROUPED, AS_WIDE],
}


COMBINATIONS = two_by_two(FACTORS)


def draw_case(sizes, dtype, **kind):
    torch.manual_seed(3)
    return Case.draw(sizes, dtype, **kind)


@pytest.fixture(autouse=True)
def _short_for_few_pairs(monkeypatch):
    """Let the path for short rows serve calls as small as these."""
    monkeypatch.setattr(choice, "FEWEST_PAIRS_OF_SHORT", 1)
    monkeypatch.setattr("regard.attention.call.plan.MEMORY", Memory())


def assert_every_path_is_right(case, truth, **wants):
    naive = in_naive_dtype(case).formula(**wants)
    for backend in [None, *case.backends(**wants)]:
        assert_as_good(case.attend(backend=backend, **wants), naive, truth)


def test_any_two_choices_meet():
    assert len(COMBINATIONS) < 2 * len(SCORES) * len(FACTORS["mask"])
    names = list(FACTORS)
    for one, other in combinations(names, 2):
        met = {(str(row[one]), str(row[other])) for row in COMBINATIONS}
        assert len(met) == len(FACTORS[one]) * len(FACTORS[other])


@pytest.mark.parametrize("score", SCORES)
def test_any_two_choices_together_give_what_the_loops_give(score):
    for row in COMBINATIONS:
        if row["score"] != score:
            continue
        case = draw_case(**row)
        truth = case.loops()
        exact = case.as_dtype(torch.float64).formula(lse=True)
        torch.testing.assert_close(exact.context, truth.context)
        torch.testing.assert_close(exact.lse, truth.lse)
        assert_every_path_is_right(case, truth)
        if row["weighting"] in ("softmax", "sink"):  # the log-sum-exp, which some paths refuse
            assert_every_path_is_right(case, truth, lse=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("score", SCORES)
def test_gradients_of_every_score_and_mask(score, dtype):
    for mask in FACTORS["mask"]:
        case = draw_case(AS_WIDE, dtype, score=score, mask=mask)
        truth = case.as_dtype(torch.float64).formula(gradients=True)
        assert_every_path_is_right(case, truth, gradients=True)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_gradients_of_every_weighting_bias_and_dtype(weighting, dtype):
    kind = {"mask": "lengths & causal", "weighting": weighting}
    for bias in BIASES:
        for sizes, score in ((ALONE, "scaled dot"), (GROUPED, "additive")):
            case = draw_case(sizes, dtype, score=score, bias=bias, **kind)
            truth = case.as_dtype(torch.float64).formula(gradients=True)
            assert_every_path_is_right(case, truth, gradients=True)
