"""``attend`` inside ``torch.compile``: one graph, the numbers of eager calls."""

import pytest
import torch
from tests.cases import slow_but

import regard as rg
from regard.attention.engine.options import CallOptions
from regard.attention.graph.tracing import attend_in_graph
from regard.errors import SettingError, ShapeError

B, H, N, M, D, E = 2, 3, 5, 7, 4, 6


# torch's own warning, where a graph that breaks hands on what has a gradient.
pytestmark = pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")


@pytest.fixture(autouse=True)
def _without_graphs_of_before(as_users_have_it):
    torch._dynamo.reset()


def inputs(queries=N, keys=M, *, learned=True):
    shapes = [(B, H, queries, D), (B, H, keys, D), (B, H, keys, E)]
    return [torch.randn(s).requires_grad_(learned) for s in shapes]


def traced(function, **options):
    """The function compiled, and how many graphs that took."""
    from torch._dynamo.testing import CompileCounterWithBackend  # loads all of the compiler

    counter = CompileCounterWithBackend("aot_eager")
    return torch.compile(function, backend=counter, **options), counter


def assert_same(function, compiled, tensors):
    """Answer and gradients agree with those of the function itself."""
    want, got = function(*tensors), compiled(*tensors)
    torch.testing.assert_close(got, want)
    learned = [each for each in tensors if each.requires_grad]
    for one, other in zip(
        torch.autograd.grad(got.square().sum(), learned, allow_unused=True),
        torch.autograd.grad(want.square().sum(), learned, allow_unused=True),
        strict=True,
    ):
        assert (one is None) == (other is None)
        if one is not None:
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


def weight(*shape):
    return (torch.rand(shape, generator=torch.Generator().manual_seed(1)) + 0.5).requires_grad_()


# CallOptions of ``attend``, made from a learned tensor inside the function that is compiled.
CASES = {
    "plain": (weight(), lambda w: {}),
    "causal": (weight(), lambda w: {"mask": rg.causal()}),
    "lengths": (weight(), lambda w: {"mask": rg.lengths(torch.tensor([3, 7]))}),
    "both": (weight(), lambda w: {"mask": rg.lengths(torch.tensor([3, 7])) & rg.window(3, 2)}),
    "either": (weight(), lambda w: {"mask": rg.prefix(torch.tensor([2, 9])) | rg.causal()}),
    "documents": (
        weight(),
        lambda w: {
            "mask": rg.documents(torch.tensor([0, 0, 1, 1, 2]), torch.tensor([0, 0, 0, 1, 1, 2, 2]))
        },
    ),
    "dense": (weight(), lambda w: {"mask": torch.ones(N, M, dtype=torch.bool).tril()}),
    "dot": (weight(), lambda w: {"score": rg.Dot()}),
    "soft-cap": (weight(), lambda w: {"score": rg.ScaledDot(scale=0.3, softcap=2.0)}),
    "bilinear": (weight(D, D), lambda w: {"score": rg.Bilinear(w)}),
    "cosine": (weight(H, 1), lambda w: {"score": rg.Cosine(w)}),
    "gaussian": (weight(H, 1), lambda w: {"score": rg.Gaussian(w)}),
    "laplace": (weight(), lambda w: {"score": rg.Laplace(2.0)}),
    "box": (weight(), lambda w: {"score": rg.Box(9.0)}),
    "epanechnikov": (weight(), lambda w: {"score": rg.Epanechnikov(9.0)}),
    "student": (weight(), lambda w: {"score": rg.StudentT(w)}),
    "additive": (weight(D), lambda w: {"score": rg.Additive(w)}),
    "bias": (weight(H, N, M), lambda w: {"bias": w}),
    "alibi": (weight(H), lambda w: {"bias": rg.alibi(w)}),
    "relative": (weight(8, H), lambda w: {"bias": rg.relative(w)}),
    "shaw": (weight(5, D), lambda w: {"bias": rg.shaw(w)}),
    "sink": (weight(H), lambda w: {"weighting": rg.Softmax(w), "mask": rg.causal()}),
    "sparsemax": (weight(), lambda w: {"weighting": rg.Sparsemax()}),
    "entmax": (weight(), lambda w: {"weighting": rg.Entmax15()}),
    "hard": (weight(), lambda w: {"weighting": rg.Hard()}),
    "pinned": (weight(), lambda w: {"backend": "tiled"}),
}


# Each form of a thing that a graph holds once; the rest with the slow tests.
QUICK = [
    "plain",
    "both",
    "documents",
    "gaussian",
    "additive",
    "alibi",
    "sink",
    "sparsemax",
    "pinned",
]


@pytest.mark.parametrize("case", slow_but(QUICK, CASES))
def test_one_graph_gives_answer_and_gradients(case):
    learned, options = CASES[case]

    def call(query, key, value, learned):
        return rg.attend(query * 2, key, value, **options(learned)) * 3

    compiled, counter = traced(call, fullgraph=True)
    assert_same(call, compiled, [*inputs(), learned])
    assert counter.frame_count == 1


def names_in_graph(function, *tensors):
    names = []

    def record(graph, _):
        for module in graph.modules():  # the branches are modules of their own
            names.extend(
                str(node.target) for node in getattr(module, "graph", torch.fx.Graph()).nodes
            )
        return graph

    compiled = torch.compile(function, backend=record, fullgraph=True)
    compiled(*tensors)
    return " ".join(names), compiled


@pytest.mark.parametrize(
    ("score", "mask"),
    [
        (rg.ScaledDot(), None),
        (rg.Dot(), rg.causal()),
        (rg.Cosine(0.5), rg.window(2, 0) & torch.rand(B, 1, 1, N).gt(0.3)),
        (rg.Bilinear(torch.rand(D, D)), None),
    ],
)
def test_a_dot_product_on_a_cpu_is_planned_when_it_runs_and_keeps_nan_where_it_is(score, mask):
    query, *_ = inputs(learned=False)
    names, compiled = names_in_graph(lambda q: rg.attend(q, q, score=score, mask=mask), query)
    assert "scaled_dot_product_attention" not in names
    assert "regard" in names
    for _ in range(2):
        expected = rg.attend(query, query, score=score, mask=mask)
        torch.testing.assert_close(compiled(query), expected, equal_nan=True)
        query[0, 1, 2] = torch.nan


@pytest.mark.parametrize(
    ("mask", "keys", "is_flag"),
    [
        (rg.causal(), N, True),
        (rg.causal(first=0), N, True),
        (rg.causal(first=0), M, False),
        (rg.causal(first=1), N, False),
        (rg.window(2, 0), N, False),
    ],
)
def test_off_the_cpu_a_causal_mask_is_a_flag(monkeypatch, mask, keys, is_flag):
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda kind: False)  # unknown to "meta"
    flags = []
    monkeypatch.setattr(
        torch.nn.functional,
        "scaled_dot_product_attention",
        lambda query, key, value, **options: flags.append(options["is_causal"]) or query,
    )
    query, key = (torch.empty(B, H, n, D, device="meta") for n in (N, keys))
    out = attend_in_graph(query, key, key, CallOptions(mask=mask), outside=rg.attend)
    assert out.shape == query.shape
    assert flags == [True] * is_flag


@pytest.mark.parametrize("is_built_inside", [True, False])
def test_other_lengths_take_no_other_graph(is_built_inside):
    def call(query, mask):
        return rg.attend(query, query, mask=rg.lengths(mask) if is_built_inside else mask)

    compiled, counter = traced(call, fullgraph=True)
    query, *_ = inputs()
    for n in map(torch.tensor, ([3, 5], [1, 2], [5, 5], [0, 4])):
        expected = rg.attend(query, query, mask=rg.lengths(n))
        argument = n if is_built_inside else rg.lengths(n)
        if not is_built_inside:
            rg.attend(query, query, mask=argument)  # a mask that was used knows more of itself
        torch.testing.assert_close(compiled(query, argument), expected)
    assert counter.frame_count == 1


@pytest.mark.slow
@pytest.mark.parametrize("mask", [rg.causal(), rg.window(2, 1), None])
def test_other_sizes_take_one_more_graph(mask):
    compiled, counter = traced(lambda q, k: rg.attend(q, k, mask=mask), fullgraph=True)
    for n, m in [(5, 5), (6, 6), (11, 11), (130, 130)]:
        query, key, _ = inputs(n, m)
        torch.testing.assert_close(compiled(query, key), rg.attend(query, key, mask=mask))
    assert counter.frame_count == 2


DOUBLED = rg.Custom(lambda q, k, s: s * (q @ k.mT), torch.tensor(2.0))


@pytest.mark.parametrize(
    "options",
    [
        lambda: {"score": DOUBLED},
        lambda: {"mask": rg.causal() & rg.where(lambda b, h, q, k: q != k)},
    ],
)
def test_what_a_user_wrote_runs_between_two_graphs(options):
    def call(query, key, value):
        return rg.attend(query * 2, key, value, **options()) * 3

    compiled, counter = traced(call)
    assert_same(call, compiled, inputs())
    assert counter.frame_count == 2
    with pytest.raises(torch._dynamo.exc.Unsupported, match="must be built in to be part of a"):
        torch.compile(call, backend="eager", fullgraph=True)(*inputs())


@pytest.mark.parametrize(("learned", "weighting"), [(True, rg.Softmax()), (False, rg.Softmax(0.5))])
def test_an_observer_sees_calls_of_a_function_compiled_before(learned, weighting):
    calls = []

    def call(query, key):
        with rg.at("encoder", 1):
            with rg.at("cross", 3):
                out = rg.attend(query * 2, key, mask=mask, weighting=weighting)
            return rg.attend(out, key) * 3

    mask = rg.causal() if learned else None
    tensors = inputs(M, learned=learned)[:2]
    compiled, counter = traced(call, fullgraph=True)
    expected = compiled(*tensors)
    with rg.observe(calls.append):
        torch.testing.assert_close(compiled(*tensors), expected)
        compiled(*tensors)
    assert [(each.kind, each.layer) for each in calls] == [("cross", 3), ("encoder", 1)] * 2
    torch.testing.assert_close(calls[0].query, tensors[0] * 2)
    torch.testing.assert_close(
        rg.weights(calls[0].query, calls[0].key, mask=calls[0].mask, weighting=calls[0].weighting),
        rg.weights(tensors[0] * 2, tensors[1], mask=mask, weighting=weighting),
    )
    torch.testing.assert_close(compiled(*tensors), expected)
    assert len(calls) == 4
    assert counter.frame_count <= 2


def test_errors_are_those_without_a_compiler():
    query, *_ = inputs()
    compiled, _ = traced(lambda q, n: rg.attend(q, q, mask=rg.lengths(n)))
    compiled(query, torch.tensor([3, 5]))
    with pytest.raises(ShapeError, match=r"lengths must be at most M = 5; got 9\."):
        compiled(query, torch.tensor([3, 9]))
    with pytest.raises(ShapeError, match=r"value must have as many positions as key, M = 5; got 2"):
        traced(lambda q: rg.attend(q, q, q[:, :, :2]))[0](query)
    with pytest.raises(SettingError, match=r"return_lse must go with Softmax\(\)"):
        traced(lambda q: rg.attend(q, q, weighting=rg.Hard(), return_lse=True))[0](query)
