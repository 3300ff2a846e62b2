"""Input feeding over whole sequences by compiled passes, beside the formulas in float64."""

import pytest
import torch

from regard.kernels import uncompiled
from regard.layers.input_feeding import FedMemory, unroll_fed
from regard.layers.unrolled import CELLS
from regard.models import RnnSeq2Seq, RnnSeq2SeqConfig

B, T, S, H, A, E, C = 3, 5, 7, 11, 13, 17, 6
LENGTHS = torch.tensor([S, 3, 1])
SCORES = ("additive", "general", "dot")


def formula(cell, gates, start, weight, bias, *of_memory):
    """Luong et al. (2015), sections 3 and 3.3, with the cells of torch."""
    query_weight, units, fed_weight, readout_weight, readout_bias, keys, values = of_memory
    state, fed = start, torch.zeros(B, C, dtype=start.dtype)
    steps = []
    for t in range(T):
        of_inputs = gates[:, t] + fed @ fed_weight.T
        state = CELLS[cell][0](of_inputs, state[:, :H] @ weight.T + bias, state)
        top = state[:, :H]
        query = top @ query_weight.T if len(query_weight) else top
        hidden = torch.tanh(query[:, None] + keys) @ units if len(units) else None
        scores = (query[:, None] * keys).sum(-1) if hidden is None else hidden
        weights = scores.masked_fill(torch.arange(S) >= LENGTHS[:, None], -torch.inf).softmax(-1)
        context = (weights[..., None] * values).sum(1)
        fed = torch.tanh(torch.cat([context, top], 1) @ readout_weight.T + readout_bias)
        steps.append((fed, context, weights))
    return tuple(torch.stack(each, 1) for each in zip(*steps, strict=True))


def inputs_of(cell, score):
    num_gates, width = CELLS[cell][1], 2 * H if cell == "lstm" else H
    keys = H if score == "dot" else A
    shapes = [(B, T, num_gates * H), (B, width), (num_gates * H, H), (num_gates * H,)]
    shapes += [(0,) if score == "dot" else (A, H), (A if score == "additive" else 0,)]
    shapes += [(num_gates * H, C), (C, E + H), (C,), (B, S, keys), (B, S, E)]
    return [0.5 * torch.randn(*shape, dtype=torch.float64) for shape in shapes]


def fused(cell, *inputs):
    return unroll_fed(cell, *inputs[:4], FedMemory(*inputs[4:], LENGTHS))


def derivatives(function, cell, inputs, *, twice=False):
    leaves = [each.clone().requires_grad_() for each in inputs]
    out = function(cell, *leaves)
    loss = sum((3 * each).cos().sum() for each in out)
    grads = torch.autograd.grad(loss, leaves, create_graph=twice, materialize_grads=True)
    if twice:
        norm = sum(each.square().sum() for each in grads)
        grads = torch.autograd.grad(norm, leaves, materialize_grads=True)
    return *out, *grads


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("twice", [False, True])
def test_sequences_are_the_formulas_and_so_are_their_derivatives(cell, score, twice):
    inputs = inputs_of(cell, score)
    expected = derivatives(formula, cell, inputs, twice=twice)
    got = derivatives(fused, cell, [each.float() for each in inputs], twice=twice)
    for one, value in zip(got, expected, strict=True):
        size = max([1.0, *value.detach().abs().flatten().tolist()])
        torch.testing.assert_close(
            one.double(), value, rtol=0, atol=size * (3e-4 if twice else 1e-5)
        )


def test_what_lies_beyond_a_row_reaches_nothing():
    inputs = [each.float() for each in inputs_of("gru", "general")]
    expected = derivatives(fused, "gru", inputs)
    for each in inputs[-2:]:
        each[1, 3:] = torch.nan
    for one, other in zip(derivatives(fused, "gru", inputs), expected, strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("score", SCORES)
def test_products_of_less_precision_make_no_other_states(score):
    inputs = inputs_of("gru", score)
    expected = derivatives(formula, "gru", inputs)
    with torch.autocast("cpu", torch.bfloat16):
        got = derivatives(fused, "gru", [each.float() for each in inputs])
    for one, value in zip(got, expected, strict=True):
        assert one.dtype == torch.float32
        assert not value.numel() or 1e-6 < (one - value).norm() / value.norm() < 0.02


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize(
    ("attention", "options"),
    [("additive", {}), ("general", {}), ("dot", {}), ("general", {"copy": True})],
)
def test_models_learn_alike_with_compiled_passes_and_without(cell, attention, options):
    sizes = {"embed_dim": 5, "hidden_dim": 7, "attention_dim": 11}
    options = {"attention": attention, "decoder": "luong", **options}
    config = RnnSeq2SeqConfig(cell=cell, dropout=0.0, **options, **sizes)
    model = RnnSeq2Seq(config, source_vocab=17, target_vocab=17, shared_vocab=True)
    batch = (torch.randint(1, 17, (B, S)), LENGTHS, torch.randint(1, 17, (B, T)))
    gates = model._cells[0].project(model.target_embedding(batch[2]))
    assert model._unroll(gates, model.start(*batch[:2])) is not None

    def learn():
        model.zero_grad()
        states, _ = model(*batch)
        states.cos().sum().backward()
        return states, *(p.grad for p in model.parameters() if p.grad is not None)

    got = learn()
    with uncompiled():
        assert model._unroll(gates, model.start(*batch[:2])) is None
        expected = learn()
    assert len(got) == len(expected)
    for one, other in zip(got, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
