import pytest
import torch
from tests.formulas.case import Case
from tests.formulas.masks import MASKS
from tests.formulas.scores import SCORES
from tests.formulas.sizes import Sizes
from tests.formulas.weightings import WEIGHTINGS
from torch.utils.flop_counter import FlopCounterMode

import regard as rg

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("score", SCORES)
def test_the_path_that_runs_is_the_one_explained(served, score, requires_grad):
    sizes = Sizes(N=61, M=67, E=11)
    kinds = [{"mask": mask} for mask in (None, *MASKS)]
    kinds += [{"weighting": weighting} for weighting in WEIGHTINGS]
    for kind in kinds:
        case = Case.draw(sizes, torch.float32, score=score, **kind)
        case = case.as_dtype(torch.float32, requires_grad=requires_grad)
        for backend in [None, *case.backends(gradients=requires_grad)]:
            served.clear()
            plan = rg.explain(*case.inputs, **case.options(), backend=backend)
            assert not served
            rg.attend(*case.inputs, **case.options(), backend=backend)
            assert served[0] == plan.backend
            assert backend in (None, plan.backend)
            # Documents are each handed on; nothing else is.
            passed_on = {"short", "sdpa", "tiled"} if plan.backend == "packed" else set()
            assert set(served[1:]) <= passed_on


HIDING = pytest.mark.parametrize(
    ("mask", "share"),
    [
        (rg.causal(), 0.6),
        (rg.window(before=40, after=0), 0.2),
        (rg.documents(torch.arange(1511) // 100), 0.3),
        (rg.lengths([200]), 0.3),
        (rg.prefix(40) | rg.window(before=40, after=0), 0.3),
    ],
)


@HIDING
def test_what_is_hidden_is_not_worked_out(mask, share):
    inputs = [torch.randn(1, 2, 1511, 4, requires_grad=True) for _ in range(3)]

    def operations(mask):
        with FlopCounterMode(display=False) as counter:
            rg.attend(*inputs, mask=mask, backend="tiled").sum().backward()
        return counter.get_total_flops()

    assert operations(mask) < share * operations(None)
