"""Whole sequences by compiled passes, beside the formulas step by step in float64."""

import pytest
import torch
from torch import nn
from torch.overrides import BaseTorchFunctionMode

from regard.kernels import uncompiled
from regard.layers import AdditiveAttention
from regard.layers.unrolled import CELLS, AdditiveMemory, is_changed, takes_sequences, unroll
from regard.models import RnnSeq2Seq, RnnSeq2SeqConfig

B, T, S, H, A, E = 3, 5, 7, 11, 13, 17
LENGTHS = torch.tensor([S, 3, 1])


def formula(cell, gates, start, weight, bias, *of_memory):
    """Bahdanau et al. (2015), A.1.2 and A.2.2; See et al. (2017), 11; with the cells of torch."""
    state, states, contexts, shares = start, [], [], []
    for t in range(T):
        query, of_step = state[:, :H], gates[:, t]
        if of_memory:
            query_weight, units, context_weight, coverage, keys, values = of_memory
            hidden = torch.tanh((query @ query_weight.T)[:, None] + keys)
            if shares and len(coverage):
                moved = sum(shares)[..., None] * coverage
                hidden = torch.tanh((query @ query_weight.T)[:, None] + keys + moved)
            hidden_keys = torch.arange(S) >= LENGTHS[:, None]
            weights = (hidden @ units).masked_fill(hidden_keys, -torch.inf).softmax(-1)
            shares.append(weights)
            contexts.append((weights[..., None] * values).sum(1))
            of_step = of_step + contexts[-1] @ context_weight.T
        state = CELLS[cell][0](of_step, query @ weight.T + bias, state)
        states.append(state[:, :H])
    return tuple(torch.stack(each, 1) if each else None for each in (states, contexts, shares))


def inputs_of(cell, *, attends, covers=False):
    num_gates, width = CELLS[cell][1], 2 * H if cell == "lstm" else H
    shapes = [(B, T, num_gates * H), (B, width), (num_gates * H, H), (num_gates * H,)]
    if attends:
        shapes += [(A, H), (A,), (num_gates * H, E), (A if covers else 0,), (B, S, A), (B, S, E)]
    return [0.5 * torch.randn(*shape, dtype=torch.float64) for shape in shapes]


def fused(cell, *inputs):
    return unroll(cell, *inputs[:4], AdditiveMemory(*inputs[4:], LENGTHS) if inputs[4:] else None)


def derivatives(function, cell, inputs, *, twice):
    leaves = [each.clone().requires_grad_() for each in inputs]
    out = [each for each in function(cell, *leaves) if each is not None]
    loss = sum((3 * each).cos().sum() for each in out)  # weights are small
    grads = torch.autograd.grad(loss, leaves, create_graph=twice, materialize_grads=True)
    if twice:
        norm = sum(each.square().sum() for each in grads)
        grads = torch.autograd.grad(norm, leaves, materialize_grads=True)
    return *out, *grads


@pytest.mark.parametrize(("attends", "covers"), [(False, False), (True, False), (True, True)])
@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("twice", [False, True])
def test_sequences_are_the_formulas_and_so_are_their_derivatives(cell, attends, covers, twice):
    inputs = inputs_of(cell, attends=attends, covers=covers)
    expected = derivatives(formula, cell, inputs, twice=twice)
    floats = [each.float() for each in inputs]
    assert takes_sequences(*floats)
    for got, value in zip(derivatives(fused, cell, floats, twice=twice), expected, strict=True):
        size = max([1.0, *value.detach().abs().flatten().tolist()])
        torch.testing.assert_close(
            got.double(), value, rtol=0, atol=size * (3e-4 if twice else 1e-5)
        )


@pytest.mark.parametrize("cell", CELLS)
def test_gradients_of_several_outputs_at_once_are_those_of_each(cell):
    inputs = [each.float().requires_grad_() for each in inputs_of(cell, attends=False)]
    assert takes_sequences(*inputs)
    out, *_ = fused(cell, *inputs)
    rows = torch.randn(4, *out.shape)
    together = torch.autograd.grad(out, inputs, rows, is_grads_batched=True, retain_graph=True)
    each = [torch.autograd.grad(out, inputs, row, retain_graph=True) for row in rows]
    for got, value in zip(together, map(torch.stack, zip(*each, strict=True)), strict=True):
        torch.testing.assert_close(got, value, rtol=0, atol=1e-5 * max(1.0, float(value.max())))


def test_a_mode_sees_every_function():
    inputs = [each.float() for each in inputs_of("gru", attends=False)]
    assert takes_sequences(*inputs)
    with BaseTorchFunctionMode():
        assert not takes_sequences(*inputs)


def test_inputs_may_lie_in_any_order_and_threads_change_no_bit():
    inputs = [each.float() for each in inputs_of("gru", attends=True)]
    expected = derivatives(fused, "gru", inputs, twice=False)
    turned = [each.mT.contiguous().mT if each.dim() > 1 else each for each in inputs]
    threads = torch.get_num_threads()
    try:
        for count in (1, 2):
            torch.set_num_threads(count)
            large = [each.repeat_interleave(64, 0) if each.dim() == 3 else each for each in turned]
            large[1] = turned[1].repeat_interleave(64, 0)
            memory = AdditiveMemory(*large[4:], LENGTHS.repeat_interleave(64))
            states, *read = unroll("gru", *large[:4], memory)
            for got, value in zip((states, *read), expected, strict=False):
                torch.testing.assert_close(got[::64], value)
            torch.testing.assert_close(states[::64], states[63::64], rtol=0, atol=0)
    finally:
        torch.set_num_threads(threads)


def test_what_lies_beyond_a_row_reaches_nothing():
    inputs = [each.float() for each in inputs_of("gru", attends=True, covers=True)]
    expected = derivatives(fused, "gru", inputs, twice=False)
    for each in inputs[-2:]:
        each[1, 3:] = torch.nan
    got = derivatives(fused, "gru", inputs, twice=False)
    for one, other in zip(got, expected, strict=True):
        assert torch.equal(one, other)


def test_other_dtypes_and_modules_with_hooks_are_left_to_torch():
    floats = [each.float() for each in inputs_of("gru", attends=False)]
    assert not takes_sequences(*floats[:-1], floats[-1].double())
    with uncompiled():
        assert not takes_sequences(*floats)
    layer = AdditiveAttention(2, 3, 5)
    assert not is_changed(layer)
    handle = layer.register_forward_hook(lambda *_: None)
    assert is_changed(layer)
    handle.remove()

    class Low(nn.Linear):
        """A linear map that computes something else."""

    assert is_changed(Low(2, 3))


@pytest.mark.parametrize("attends", [False, True])
def test_products_of_less_precision_make_no_other_states(attends):
    inputs = inputs_of("gru", attends=attends, covers=attends)
    expected = derivatives(formula, "gru", inputs, twice=False)
    floats = [each.float() for each in inputs]
    with torch.autocast("cpu", torch.bfloat16):
        got = derivatives(fused, "gru", floats, twice=False)
        rounded = fused("gru", floats[0].bfloat16(), *floats[1:])[0]
    for one, value in zip(got, expected, strict=True):
        assert one.dtype == torch.float32
        error = (one - value).norm() / value.norm()
        assert 1e-6 < error < 0.02
    assert rounded.dtype == torch.float32


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize(
    "options",
    [
        {"attention": "none"},
        {"attention": "additive"},
        {"copy": True},
        {"coverage": True},
        {"coverage": True, "copy": True},
    ],
    ids="_".join,
)
def test_models_learn_alike_with_compiled_passes_and_without(cell, options):
    sizes = {"embed_dim": 5, "hidden_dim": 7, "attention_dim": 11}
    config = RnnSeq2SeqConfig(cell=cell, dropout=0.0, **options, **sizes)
    model = RnnSeq2Seq(config, source_vocab=17, target_vocab=17, shared_vocab=True)
    batch = (torch.randint(1, 17, (B, S)), LENGTHS, torch.randint(1, 17, (B, T)))
    gates = model._cells[0].project(model.target_embedding(batch[2]))
    assert model._unroll(gates, model.start(*batch[:2])) is not None

    def learn():
        model.zero_grad()
        states, penalty = model(*batch, torch.tensor([T, 2, 1]))
        loss = states.cos().sum() if penalty is None else states.cos().sum() + penalty
        loss.backward()
        return states, *(p.grad for p in model.parameters() if p.grad is not None)

    got = learn()
    with uncompiled():
        expected = learn()
    assert len(got) == len(expected)
    for one, other in zip(got, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
