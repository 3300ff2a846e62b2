"""Attribution against closed forms, laws, and formulas written out in float64."""

import pytest
import torch
from tests.unit.interop.test_torch_functions import Own
from tests.unit.interop.test_watch import make_model, pair
from tests.unit.interop.tiny_models import V
from torch import nn
from torch.testing import assert_close

import regard as rg
from regard.errors import SettingError, ShapeError
from regard.interop.attribution.attribute import METHODS
from regard.layers import MultiHeadAttention

N, C, K = 5, 3, 7
GRADIENTS = METHODS[:3]
IDS = torch.tensor([[4, 9, 5, 7, 9]])


class Linear(nn.Module):
    """Logits that are linear in the vectors of the tokens."""

    def __init__(self):
        super().__init__()
        self.table, self.out = nn.Embedding(V, C), nn.Linear(N * C, K)

    def forward(self, ids):
        return self.out(self.table(ids).flatten(1))


class Causal(nn.Module):
    """A small language model of one's own, in float64."""

    def __init__(self, **form):
        super().__init__()
        self.table, self.body, self.out = nn.Embedding(V, 12), Own(**form), nn.Linear(12, V)

    def forward(self, ids):
        return self.out(self.body(self.table(ids)).tanh()), None


@pytest.fixture
def model():
    return Causal().double().eval()


@pytest.mark.parametrize("method", GRADIENTS)
@pytest.mark.parametrize("baseline", [None, 3])
def test_a_linear_model_is_explained_by_its_weights(method, baseline):
    model = Linear().eval()
    attribution = rg.attribute(model, IDS, target=2, against=6, method=method, baseline=baseline)
    weight = (model.out.weight[2] - model.out.weight[6]).view(N, C)
    base = 0.0 if baseline is None or method == "gradient_times_input" else model.table.weight[3]
    assert_close(attribution.values, (weight * (model.table(IDS)[0] - base)).sum(-1))
    assert attribution.target == (None, 2, 6)
    if attribution.gap is not None:
        assert abs(attribution.gap) < 1e-5


def test_integrated_gradients_are_complete_and_those_of_the_formula(model):
    attribution = rg.attribute(model, IDS, position=3, target=5, steps=64, rows=7)
    assert abs(attribution.gap) < 1e-8
    vectors = model.table(IDS).detach()
    total = torch.zeros_like(vectors)
    for step in range(2000):
        point = ((step + 0.5) / 2000 * vectors).requires_grad_()
        logit = model.out(model.body(point).tanh())[0, 3, 5]
        total += torch.autograd.grad(logit, point)[0] / 2000
    assert_close(attribution.values, (total * vectors).sum(-1)[0], atol=1e-6, rtol=1e-5)
    assert attribution.values[4] == 0  # the place after the output
    assert "completeness: values sum to" in str(attribution)


def test_leave_one_out_is_what_a_replaced_token_changes(model):
    attribution = rg.attribute(model, IDS, target=5, method="leave_one_out", baseline=3, rows=2)
    logit = model(IDS)[0][0, -1, 5]
    for position in range(N):
        ids = IDS.clone()
        ids[0, position] = 3
        assert_close(attribution.values[position], logit - model(ids)[0][0, -1, 5])


def test_vectors_and_functions_are_explained_too(model):
    class OfVectors(nn.Module):
        def forward(self, vectors):
            return model.out(model.body(vectors).tanh())

    expected = rg.attribute(model, IDS, target=5, method="gradient_times_input")
    vectors = model.table(IDS).detach()
    attribution = rg.attribute(OfVectors().eval(), vectors, target=5, method="gradient_times_input")
    assert_close(attribution.values, expected.values)
    by_function = rg.attribute(
        model, IDS, target=lambda answer: answer[0][:, -1, 5], method="gradient_times_input"
    )
    assert_close(by_function.values, expected.values)
    assert by_function.target is None


def eager(model, ids):
    """The weights (1, H, N, N) of each layer, parts of the graph."""
    weights_of_layers, states = [], model.table(ids)
    for block in model.body.h:
        attn = block.attn
        q, k, v = (
            each.unflatten(2, (-1, 4)).transpose(1, 2) for each in attn.project(states).split(12, 2)
        )
        scores = (q @ k.mT / 2).masked_fill(~torch.ones(N, N).tril().bool(), -torch.inf)
        weights_of_layers.append(scores.softmax(-1))
        states = states + attn.out((weights_of_layers[-1] @ v).transpose(1, 2).flatten(2))
    return weights_of_layers, model.out(states.tanh())


@pytest.mark.parametrize("form", [{}, {"by_hand": True}])
def test_gradients_by_weights_are_those_of_the_written_out_model(form):
    model = Causal(**form).double().eval()
    weights_of_layers, logits = eager(model, IDS)
    expected = torch.autograd.grad(logits[0, -1, 5], weights_of_layers, retain_graph=True)
    with rg.watch(model, keep=True, gradients=True) as watched:
        output = model(IDS)[0]
    assert_close(output, logits)
    for layer in (0, 1):
        slopes = watched.weight_gradients(layer, range(N), output[0, -1, 5])
        assert_close(slopes, expected[layer])
    rows = watched.rows(1, range(N))
    by_table = torch.autograd.grad(rows[..., 0].sum(), model.table.weight, retain_graph=True)[0]
    assert_close(
        by_table, torch.autograd.grad(weights_of_layers[1][..., 0].sum(), model.table.weight)[0]
    )
    entropy = torch.autograd.grad(watched.summary(0).entropy.sum(), model.table.weight)[0]
    assert entropy.abs().sum() > 0


def test_relevance_is_chefers_and_rollout_that_of_the_layers(model):
    weights_of_layers, logits = eager(model, IDS)
    gradients = torch.autograd.grad(logits[0, -1, 5], weights_of_layers)
    relevance = torch.eye(N, dtype=torch.float64)
    for weights, gradient in zip(weights_of_layers, gradients, strict=True):
        relevance = relevance + (weights * gradient).clamp(min=0).mean(1)[0] @ relevance
    attribution = rg.attribute(model, IDS, target=5, method="attention_gradient")
    assert_close(attribution.values, relevance[-1])
    mixed = torch.eye(N, dtype=torch.float64)
    for weights in weights_of_layers:
        mixed = (0.5 * torch.eye(N) + 0.5 * weights.mean(1)[0]) @ mixed
    assert_close(rg.attribute(model, IDS, method="rollout").values, mixed[-1])
    mean = torch.stack(weights_of_layers).mean((0, 2))[0, -1]
    assert_close(rg.attribute(model, IDS, method="attention").values, mean)


@pytest.mark.parametrize("method", METHODS)
def test_a_model_that_reads_and_writes_is_explained_but_by_rollout(method):
    inputs = {name: each[:1] for name, each in pair().items()}
    if method != "rollout":
        assert rg.attribute(make_model(), inputs, method=method, target=3).values.abs().sum() > 0
        return
    with pytest.raises(SettingError, match="must not be 'rollout' for a model that reads"):
        rg.attribute(make_model(), inputs, method=method)


def test_what_cannot_be_explained_says_why(model):
    with pytest.raises(SettingError, match="method must be one of"):
        rg.attribute(model, IDS, method="integrated")
    with pytest.raises(SettingError, match=r"got training. Call model.eval\(\)"):
        rg.attribute(Causal(), IDS)
    with pytest.raises(ShapeError, match="inputs must be of one text; got ids of 2"):
        rg.attribute(model, IDS.expand(2, -1))
    with pytest.raises(SettingError, match="target must be a token or class below 23; got 40"):
        rg.attribute(model, IDS, target=40)
    with pytest.raises(SettingError, match="position must be one of 5; got 9"):
        rg.attribute(model, IDS, position=9)
    with pytest.raises(SettingError, match="position must be None where logits are"):
        rg.attribute(Linear().eval(), IDS, position=1)
    with pytest.raises(SettingError, match="name must be of an input of token ids"):
        rg.attribute(model, IDS, name="words")
    with pytest.raises(SettingError, match="baseline must be None for vectors; got 3"):
        rg.attribute(nn.Linear(C, K).eval(), torch.ones(1, N, C), baseline=3)
    with rg.watch(model) as watched:
        answer = model(IDS)[0]
    with pytest.raises(SettingError, match="gradients must be True; got False"):
        watched.weight_gradients(0, [0], answer.sum())


class _OneHot(nn.Module):
    """A model that looks its tokens up in no table."""

    def __init__(self):
        super().__init__()
        self.vectors, self.head = nn.Linear(V, 8, bias=False), nn.Linear(8, V)
        self.attend = MultiHeadAttention(8, 2)

    def forward(self, input_ids):
        states = self.vectors(nn.functional.one_hot(input_ids, V).float())
        return self.head(self.attend(states)[0])


def test_attention_explains_a_model_without_a_table():
    torch.manual_seed(0)
    model, ids = _OneHot().eval(), torch.tensor([[1, 2, 3]])
    with pytest.raises(SettingError, match="look input_ids up in a table"):
        rg.attribute(model, ids, method="leave_one_out")
    found = rg.attribute(model, ids, method="attention")
    with rg.watch(model, keep=True) as seen:
        model(ids)
    assert_close(found.values, seen.rows(0, [2]).mean(dim=1).flatten())
