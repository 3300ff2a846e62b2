"""First and second derivatives against finite differences, in float64."""

import pytest
import torch
from tests.cases import pairwise
from tests.formulas.case import Case
from tests.formulas.scores import SCORES
from tests.formulas.sizes import Sizes
from tests.formulas.weightings import WEIGHTINGS
from torch.autograd import gradcheck, gradgradcheck

import regard as rg

SMALL = Sizes(B=1, H=2, G=2, N=3, M=5, D=7, E=11)


@pairwise(
    score=["scaled dot", "soft-cap", *(name for name, case in SCORES.items() if case.shapes)],
    bias=[None, "of heads", "of queries", "alibi", "relative", "shaw", "shaw with values"],
    weighting=WEIGHTINGS,
    mask=[None, "lengths", "lengths & causal", "nothing"],
    dropout=[0.0, 0.4],
    sizes=[SMALL._replace(N=1), SMALL, SMALL._replace(H=4)],
)
def test_gradients_are_those_of_finite_differences_twice_for_softmax(
    score, bias, weighting, mask, dropout, sizes
):
    kind = {"score": score, "bias": bias, "weighting": weighting, "mask": mask}
    case = Case.draw(sizes, torch.float64, **kind)

    def call(*leaves):
        drawn = case.with_leaves(leaves)
        options = {**drawn.options(), "dropout": dropout, "generator": seeded()}
        return rg.attend(*drawn.inputs, **options)

    leaves = [leaf.requires_grad_() for leaf in case.leaves]
    assert gradcheck(call, leaves, fast_mode=True)
    if weighting in ("softmax", "sink"):
        assert gradgradcheck(call, leaves, fast_mode=True)


def seeded():
    return torch.Generator().manual_seed(3)


@pytest.mark.parametrize("needs", [(0,), (1,), (2,), (3,)])
def test_only_what_needs_a_gradient_gets_one(make_inputs, needs):
    inputs = [*make_inputs(), torch.randn(11, dtype=torch.float64)]
    for index in needs:
        inputs[index].requires_grad_()
    *qkv, w = inputs
    rg.attend(*qkv, score=rg.Additive(w)).sum().backward()
    assert [t.grad is not None for t in inputs] == [i in needs for i in range(4)]


COMPILED = {
    "additive_cpu": {"score": rg.Additive(torch.linspace(-1, 1, 5))},
    "dot_cpu": {"weighting": rg.Softmax(sink=0.5)},
    "tiled": {"weighting": rg.Entmax15()},
}


@pytest.mark.parametrize(
    ("backend", "options"),
    [
        ("short", {"mask": rg.causal()}),
        ("short", {"mask": rg.lengths([9, 4]), "dropout": 0.3}),
        ("sdpa", {"mask": rg.causal()}),
        ("packed", {"mask": rg.documents(torch.arange(9) // 4)}),
        ("dot_cpu", {"mask": rg.lengths([9, 4]), "bias": torch.randn(3, 1, 9), "dropout": 0.3}),
        ("dot_cpu", {"bias": rg.alibi(), "weighting": rg.Softmax(sink=0.0)}),
        ("additive_cpu", {"score": rg.Additive(torch.linspace(-1, 1, 5)), "mask": rg.causal()}),
    ],
)
def test_second_gradients_of_backends_are_those_of_the_tiled_engine(backend, options):
    def second(backend):
        leaves = [t.clone().requires_grad_() for t in inputs]
        out = rg.attend(*leaves, backend=backend, generator=seeded(), **options)
        grads = torch.autograd.grad(out.square().sum(), leaves, create_graph=True)
        return torch.autograd.grad(sum(grad.square().sum() for grad in grads), leaves)

    inputs = [torch.randn(2, 3, 9, 5) for _ in range(3)]
    for gradient, reference in zip(second(backend), second("tiled"), strict=True):
        torch.testing.assert_close(
            gradient, reference, atol=1e-4 * float(reference.abs().max()), rtol=1e-4
        )


@pytest.mark.parametrize("mask", [None, rg.window(before=4), rg.prefix(3) | rg.causal()])
@pytest.mark.parametrize("backend", COMPILED)
def test_gradients_of_compiled_loops_are_those_of_differences(backend, mask):
    shapes = [(1, 4, 29, 5), (1, 2, 37, 5), (1, 2, 37, 3), (1, 4, 29, 37)]
    inputs = [torch.randn(shape, requires_grad=True) for shape in shapes]
    grad = torch.randn(1, 4, 29, 3).double()

    def total(*tensors):
        *inputs, bias = tensors
        options = {"bias": bias, "mask": mask, "dropout": 0.2, "generator": seeded()}
        return grad.mul(rg.attend(*inputs, backend=backend, **options, **COMPILED[backend])).sum()

    for index, slope in enumerate(torch.autograd.grad(total(*inputs), inputs)):
        direction, step = torch.randn(shapes[index]), 5e-3
        ends = [
            total(*(t + s * direction if i == index else t for i, t in enumerate(inputs)))
            for s in (step, -step)
        ]
        difference = (ends[0] - ends[1]) / (2 * step)
        torch.testing.assert_close(
            difference, (slope * direction).sum().double(), atol=5e-3, rtol=1e-3
        )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_query_made_by_the_same_score_counts_it_once_where_gradients_are_differentiable(dtype):
    query, keys, values = torch.randn(2, 3), torch.randn(5, 3), torch.randn(5, 3)
    w = torch.randn(3, dtype=dtype, requires_grad=True)
    masked = torch.tensor([True, True, False, True, True])
    grads = []
    for create_graph in (False, True):
        state = query.to(dtype)
        for _ in range(3):
            score = rg.Additive(w)
            state = rg.attend(state, keys.to(dtype), values.to(dtype), score=score, mask=masked)
        grads += torch.autograd.grad(state.square().sum(), w, create_graph=create_graph)
    torch.testing.assert_close(grads[1], grads[0])
