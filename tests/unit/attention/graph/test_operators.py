"""The operators that graphs hold: what they say of themselves, and their gradients."""

import pytest
import torch
from tests.cases import slow_but

import regard as rg
from regard.attention.engine import tiled
from regard.attention.graph.operators import encode

B, H, N, M, D, E = 2, 3, 5, 7, 4, 6
ATTEND = torch.ops.regard.attend.default
BACKWARD = torch.ops.regard.attend_backward.default
SCALED_DOT, SOFTMAX = rg.ScaledDot(), rg.Softmax()


@pytest.fixture(autouse=True)
def _without_shape_checks(unchecked_shapes):
    """Sizes in a graph are no ints."""


def tensor(*shape, dtype=torch.float64):
    return torch.randn(shape, dtype=dtype, requires_grad=True)


def arguments(
    query,
    key,
    value,
    *,
    score=SCALED_DOT,
    mask=None,
    bias=None,
    weighting=SOFTMAX,
    dropout=0.0,
    seed=None,
    backend=None,
    wants_lse=False,
    wants_grad=True,
):
    parts = (score, mask, bias, weighting, dropout, seed, backend, wants_lse, "", -1)
    form, tensors, integers, floats = encode(*parts)
    learned = [wants_grad and t.requires_grad for t in (query, key, value, *tensors)]
    return query, key, value, tensors, form, integers, floats, learned


def samples():
    n = torch.tensor([3, 7])
    four = [(B, H, N, D), (B, H, M, D), (B, H, M, E)]
    grouped = [(B, H, N, D), (B, 1, M, D), (B, 1, M, E)]
    three = [(B, N, D), (B, M, D), (B, M, E)]
    cases = {
        "plain": (four, {}),
        "additive": (
            four,
            {"score": rg.Additive(tensor(D)), "mask": rg.lengths(n), "wants_lse": True},
        ),
        "tiled": (
            grouped,
            {
                "mask": rg.window(2, 1),
                "bias": tensor(H, N, M),
                "dropout": 0.3,
                "seed": torch.tensor(5),
            },
        ),
        "three axes": (
            three,
            {"score": rg.StudentT(torch.tensor(1.5, dtype=torch.float64, requires_grad=True))},
        ),
        "shaw": (four, {"bias": rg.shaw(tensor(5, D), tensor(5, E))}),
    }
    return {
        name: (arguments(*(tensor(*s) for s in shapes), **rest), rest.get("wants_lse", False))
        for name, (shapes, rest) in cases.items()
    }


def of_backward(args, answer):
    query, key, value, tensors, *rest = args
    inputs = [query, key, value, *tensors]
    needs_grad = [each.requires_grad for each in inputs]
    out, lse, sums = answer
    d_answer = [torch.randn_like(each).requires_grad_() for each in (out, lse)]
    return (*d_answer, out.detach(), sums.detach(), inputs, *rest, needs_grad)


@pytest.mark.parametrize(
    "name", slow_but(["plain", "shaw"], ["plain", "additive", "tiled", "three axes", "shaw"])
)
def test_the_operators_are_what_they_say(name):
    args, _ = samples()[name]
    torch.library.opcheck(ATTEND, args)
    backward_arguments = of_backward(args, ATTEND(*args))
    detached = [
        each.detach() if isinstance(each, torch.Tensor) else each for each in backward_arguments
    ]
    detached[4] = [each.detach() for each in backward_arguments[4]]
    torch.library.opcheck(BACKWARD, detached)


@pytest.mark.parametrize("name", ["plain", "additive", "tiled", "three axes", "shaw"])
def test_gradients_are_right(name):
    args, wants_lse = samples()[name]
    inputs = [*args[:3], *args[3]]
    learned = [each for each in inputs if each.requires_grad]

    def call(*leaves):
        leaf_of = iter(leaves)
        each = [next(leaf_of) if t.requires_grad else t for t in inputs]
        out, lse, _ = ATTEND(*each[:3], each[3:], *args[4:])
        return (out, lse) if wants_lse else out

    assert torch.autograd.gradcheck(call, learned, fast_mode=True)


def test_gradients_of_the_tiled_engine_come_without_another_forward_pass(monkeypatch):
    inputs = arguments(
        tensor(B, H, N, D),
        tensor(B, H, M, D),
        tensor(B, H, M, E),
        bias=rg.alibi(),
        mask=rg.causal(),
    )
    expected = torch.autograd.grad(
        rg.attend(*inputs[:3], bias=rg.alibi(), mask=rg.causal()).square().sum(), inputs[:3]
    )
    out, *_ = ATTEND(*inputs)
    monkeypatch.setattr(tiled, "forward", None)
    gradients = torch.autograd.grad(out.square().sum(), inputs[:3])
    torch.testing.assert_close(gradients, expected)


def test_without_keys_gradients_are_zeros():
    inputs = arguments(tensor(B, H, N, D), tensor(B, H, 0, D), tensor(B, H, 0, E), bias=rg.alibi())
    out, *_ = ATTEND(*inputs)
    (grad,) = torch.autograd.grad(out.sum(), inputs[:1], create_graph=True)
    assert torch.equal(out, torch.zeros(B, H, N, E, dtype=torch.float64))
    assert torch.equal(grad, torch.zeros_like(grad))


def test_gradients_at_large_scores_are_those_of_eager_calls():
    inputs = arguments(
        *(tensor(B, H, n, d, dtype=torch.float32) for n, d in ((N, D), (M, D), (M, E))),
        score=rg.ScaledDot(scale=1e4),
        bias=rg.alibi(),
    )
    expected = rg.attend(*inputs[:3], score=rg.ScaledDot(scale=1e4), bias=rg.alibi())
    torch.testing.assert_close(
        torch.autograd.grad(ATTEND(*inputs)[0].square().sum(), inputs[:3]),
        torch.autograd.grad(expected.square().sum(), inputs[:3]),
    )


def test_the_plan_is_that_of_an_eager_call(served):
    query = torch.randn(32, 4, 32, 16, requires_grad=True)
    ATTEND(*arguments(query, query, query))[0].sum().backward()
    ATTEND(*arguments(query, query, query, wants_grad=False))
    assert served == ["short", "short", "sdpa"]
