"""``attend`` under the transforms of ``torch.func``, against itself without them."""

import pytest
import torch
from torch.func import grad, jacfwd, jacrev, vmap

import regard as rg
from regard.errors import SettingError, ShapeError

B, H, N, M, D, E = 2, 3, 5, 7, 4, 6

# torch's own, at the first forward-mode derivative and the first nested tensor.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors"),
]

OPTIONS = {
    "plain": {},
    "masked": {"mask": rg.lengths([0, 6]) & rg.window(3, 2)},
    "documents": {"mask": rg.documents(torch.tensor([0, 0, 1, 1, 1]), torch.arange(M) // 4)},
    "where": {"mask": rg.where(lambda batch, head, query, key: (query - key) % 2 == 0)},
    "additive": {"score": rg.Additive(torch.linspace(-1, 2, D).double()), "mask": rg.causal()},
    "custom": {"score": rg.Custom(lambda q, k: -(q.unsqueeze(-2) - k.unsqueeze(-3)).abs().sum(-1))},
    "alibi": {"bias": rg.alibi(), "weighting": rg.Softmax(0.3)},
    "shaw": {"bias": rg.shaw(torch.linspace(-1, 1, 5 * D).view(5, D).double())},
}


def inputs(dtype=torch.float64):
    return [torch.randn(B, H, *s, dtype=dtype) for s in ((N, D), (M, D), (M, E))]


@pytest.mark.parametrize("case", OPTIONS)
def test_vmap_gives_what_a_loop_gives(case):
    query, key, value = inputs()
    queries = torch.stack([query, 2 * query, query + 1])
    options = OPTIONS[case]

    def call(query):
        return rg.attend(query, key, value, **options)

    torch.testing.assert_close(vmap(call)(queries), torch.stack(list(map(call, queries))))


@pytest.mark.parametrize("case", ["masked", "additive"])
@pytest.mark.parametrize("transform", [jacrev, jacfwd])
def test_jacobians_are_those_of_autograd(transform, case):
    query, key, value = (t[:, :2, :, :2] for t in inputs())
    options = OPTIONS[case] | (
        {"score": rg.Additive(torch.ones(2).double())} if case == "additive" else {}
    )

    def call(query):
        return rg.attend(query, key, value, **options)

    want = torch.autograd.functional.jacobian(call, query)
    torch.testing.assert_close(transform(call)(query), want)


def test_each_row_of_a_vmap_has_lengths_of_its_own_and_nan_stays_hidden():
    query, key, value = inputs(torch.float32)
    key[:, :, 4:], value[:, :, 4:] = torch.nan, torch.nan

    def call(query, n):
        return rg.attend(query, key, value, mask=rg.lengths(n))

    many = torch.tensor([[3, 4], [2, 0]])
    out = vmap(call, in_dims=(None, 0))(query, many)
    torch.testing.assert_close(out, torch.stack([call(query, n) for n in many]))
    assert grad(lambda q: call(q, many[0]).sum())(query).isfinite().all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dropout": 0.1}, r"dropout must be 0\.0 under the transforms of torch\.func; got 0\.1\."),
        ({"weighting": rg.Sparsemax()}, r"weighting must be Softmax\(\) under .*; got Sparsemax\."),
        ({"backend": "sdpa"}, r"backend must be None under .*; got 'sdpa'\."),
    ],
)
def test_what_transforms_cannot_follow_is_refused(options, message):
    query, *_ = inputs()
    with pytest.raises(SettingError, match=message):
        vmap(lambda q: rg.attend(q, q, **options))(query)


def test_a_mask_of_another_shape_is_refused():
    query, key, _ = inputs()
    with pytest.raises(ShapeError, match=r"mask must broadcast to .* = \(3, 5, 7\); got"):
        vmap(lambda q, k: rg.attend(q, k, mask=torch.ones(N, 3, dtype=torch.bool)))(query, key)


@pytest.mark.parametrize("backend", ["short", "sdpa"])
def test_so_are_those_of_one_tensor_that_is_query_key_and_value(backend):
    def second(states, backend):
        states = states.requires_grad_()
        out = rg.attend(states, states, states, score=rg.Bilinear(weight), backend=backend)
        (grad,) = torch.autograd.grad(out.square().sum(), states, create_graph=True)
        return torch.autograd.grad(grad.square().sum(), [states, weight])

    weight, states = torch.randn(D, D, requires_grad=True), torch.randn(B, H, N, D)
    torch.testing.assert_close(
        second(states, backend), second(states, "tiled"), rtol=1e-4, atol=1e-4
    )


@pytest.mark.usefixtures("as_users_have_it")
@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
def test_a_nested_tensor_is_refused_with_what_to_do(layout):
    nested = torch.nested.nested_tensor([torch.ones(3, 4), torch.ones(5, 4)], layout=layout)
    with pytest.raises(ShapeError, match=r"query must be padded; got a nested tensor\. Pass query"):
        rg.attend(nested, nested)
