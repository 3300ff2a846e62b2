"""Small calls alike are planned once; what they answer is what a plan would have answered."""

import pytest
import torch

import regard as rg
from regard.attention import Backend, Offer, attend, register_backend
from regard.attention.call import plan
from regard.attention.call.choice import BACKENDS
from regard.attention.engine import tiled
from regard.attention.masks.bound import Memory

B, H, N, M, D = 2, 3, 5, 7, 8
MASKS = {
    "none": lambda: None,
    "causal": rg.causal,
    "causal from the first": lambda: rg.causal(first=0),
    "window": lambda: rg.window(before=2, after=1),
    "lengths": lambda: rg.lengths([3, 7]),
    "nothing visible": lambda: rg.lengths([0, 7]),
    "dense": lambda: rg.dense(torch.eye(N, M).bool()),
}
every_mask = pytest.mark.parametrize("mask", MASKS)


@pytest.fixture(autouse=True)
def _nothing_is_known(monkeypatch):
    monkeypatch.setattr(plan, "MEMORY", Memory())


@pytest.fixture
def planned(monkeypatch):
    """Counts the calls that are planned."""
    calls, choose_backend = [], plan.choose_backend
    monkeypatch.setattr(
        plan, "choose_backend", lambda *all_: calls.append(1) or choose_backend(*all_)
    )
    return calls


def make(**options):
    sizes = [(B, H, N, D), (B, H, M, D), (B, H, M, D)]
    return [torch.randn(size, **options) for size in sizes]


@every_mask
@pytest.mark.parametrize("requires_grad", [False, True])
def test_calls_alike_are_planned_once_and_answer_as_the_blocks_do(mask, requires_grad, planned):
    made = MASKS[mask]()
    for _ in range(3):
        inputs = make(requires_grad=requires_grad)
        out = attend(*inputs, mask=made)
        torch.testing.assert_close(out, attend(*inputs, mask=made, backend="tiled"))
    assert len(planned) == 2


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_each_dtype_and_size_has_a_plan_of_its_own(dtype, planned):
    for inputs in (make(), make(dtype=dtype), [t[:, :, :4] for t in make()]):
        for _ in range(2):
            attend(*inputs)
    assert len(planned) == 3


def test_one_causal_mask_is_like_another(planned):
    for _ in range(3):
        attend(*make(), mask=rg.causal())
    assert len(planned) == 1


@every_mask
@pytest.mark.parametrize("number", [float("nan"), float("inf")])
@pytest.mark.parametrize("which", range(3))
def test_what_is_not_finite_reaches_what_it_reaches_in_blocks(mask, number, which):
    made = MASKS[mask]()
    attend(*make(), mask=made)
    inputs = make()
    inputs[which][1, 2, 3, 4] = number
    out = attend(*inputs, mask=made)
    torch.testing.assert_close(out, attend(*inputs, mask=made, backend="tiled"), equal_nan=True)


@every_mask
def test_gradients_and_theirs_are_those_of_blocks(mask):
    made = MASKS[mask]()
    inputs = make(requires_grad=True)

    def gradients(**options):
        out = attend(*inputs, mask=made, **options)
        first = torch.autograd.grad(out.square().sum(), inputs, create_graph=True)
        return [*first, *torch.autograd.grad(sum(each.square().sum() for each in first), inputs)]

    gradients()
    for one, other in zip(gradients(), gradients(backend="tiled"), strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)


def test_a_mask_of_a_tensor_is_asked_each_time(planned):
    inputs = make()
    for _ in range(2):
        hidden = attend(*inputs, mask=torch.zeros(N, M, dtype=torch.bool))
        assert not hidden.any()
    assert attend(*inputs).all()
    assert len(planned) == 3


@pytest.mark.usefixtures("unchecked_shapes")
def test_a_call_of_three_axes_says_nothing_about_one_of_four():
    query, mask = torch.randn(B, N, D), rg.dense(torch.ones(B, N, N, dtype=torch.bool))
    attend(query, query, query, mask=mask)
    for function in (attend, rg.explain, rg.weights):
        with pytest.raises(rg.errors.ShapeError, match="mask must broadcast to"):
            function(query[:, None], query[:, None], mask=mask)


@pytest.mark.parametrize(
    "options",
    [
        {"dropout": 0.5},
        {"return_lse": True},
        {"bias": torch.ones(M)},
        {"score": rg.ScaledDot(softcap=1.0)},
        {"score": rg.Dot()},
        {"weighting": rg.Softmax(sink=1.0)},
        {"backend": "tiled"},
    ],
)
def test_other_calls_have_other_plans(options, planned):
    inputs, answers = make(), []
    for each in (options, {}, options):
        torch.manual_seed(0)
        answers.append(attend(*inputs, **each))
    torch.testing.assert_close(answers[0], answers[2], rtol=0, atol=0)
    assert len(planned) >= 2


def test_a_scale_of_ones_own_is_none_of_another_call():
    inputs = make()
    for scale in (None, 3.0, None, 3.0):
        score = rg.ScaledDot(scale=scale)
        torch.testing.assert_close(
            attend(*inputs, score=score), attend(*inputs, score=score, backend="tiled")
        )


def test_observers_and_registered_backends_are_not_passed_over():
    inputs, seen = make(), []
    attend(*inputs)
    with rg.observe(seen.append):
        attend(*inputs)
    assert len(seen) == 1
    served = []

    class Spy(Backend):
        def offer(self, request):
            return Offer(lambda request: served.append(1) or tiled.run(request))

    before = dict(BACKENDS)
    register_backend("spy", Spy())
    try:
        attend(*inputs)
    finally:
        BACKENDS.clear()
        BACKENDS.update(before)
    assert served == [1]


def test_calls_alike_may_lie_otherwise_in_memory(planned):
    attend(*make())
    query, key, value = (t.mT.contiguous().mT for t in make())
    out = attend(query, key, value)
    torch.testing.assert_close(out, attend(query, key, value, backend="tiled"))
    assert len(planned) == 1 + 1


def test_large_calls_have_no_bare_kernel(planned):
    inputs = [torch.zeros(1, 4, 256, 64) for _ in range(3)]
    for _ in range(2):
        attend(*inputs)
    assert len(planned) == 1
    assert rg.explain(*inputs).kernel is None
