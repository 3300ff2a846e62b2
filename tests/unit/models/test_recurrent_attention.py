"""Each way of looking at the source against its paper's formula, step by step in float64."""

from itertools import product

import pytest
import torch
from torch.nn import functional as F

from regard.attention import at, lengths, observe
from regard.layers import AdditiveAttention, BilinearAttention
from regard.models import RnnSeq2Seq, RnnSeq2SeqConfig, recurrent_attention
from regard.models.interfaces import SourceMemory
from regard.models.recurrent_attention import Covering, Mixture, Near, Sampled, Soft, reinforce
from regard.text import EOS_ID

B, S, Q, Y, E = 2, 7, 5, 3, 11
LENGTHS = torch.tensor([7, 4])
F64 = torch.float64


def memory(look):
    generator = torch.Generator().manual_seed(3)
    states = torch.randn(B, S, Y, dtype=F64, generator=generator)
    values = torch.randn(B, S, E, dtype=F64, generator=generator)
    keys = states if look is None else look.prepare(states)
    return SourceMemory(keys, values, LENGTHS, lengths(LENGTHS))


def queries(steps):
    return torch.randn(steps, B, Q, dtype=F64, generator=torch.Generator().manual_seed(4))


def bilinear():
    torch.manual_seed(2)
    return BilinearAttention(Q, Y).double()


def walk(attention, look, steps=3):
    """The outputs of some steps, and the weights that an observer saw."""
    calls, outputs = [], []
    source_memory = memory(look)
    state = attention.start(source_memory)
    with observe(calls.append), at("cross", 0):
        for query in queries(steps):
            outputs.append(attention(look, query, source_memory, state))
            state = outputs[-1].state
    assert [(call.kind, call.layer) for call in calls] == [("cross", 0)] * steps
    return outputs, torch.stack([call.weights()[:, 0] for call in calls])


def scores(look, step, row):
    """How well a query matches each real place."""
    return memory(look).keys[row, : LENGTHS[row]] @ (queries(3)[step, row] @ look.w)


def positions(row):
    """1 to the length, as the papers count."""
    return torch.arange(1, LENGTHS[row] + 1, dtype=F64)


def softmax_where(numbers, is_near):
    return numbers.masked_fill(~is_near, -torch.inf).softmax(0)


def assert_mixes(outputs, rows, expected):
    """The weights that were seen are these, and contexts are values mixed by them."""
    known = memory(None)
    for step, output in enumerate(outputs):
        for row in range(B):
            want = expected(step, row)
            want = F.pad(want, (0, S - len(want)))
            torch.testing.assert_close(rows[step, row], want, rtol=1e-6, atol=1e-7)
            context = rows[step, row] @ known.values[row]
            torch.testing.assert_close(output.context[row], context)


@torch.no_grad()
def test_local_p_is_a_softmax_near_the_predicted_position_times_a_gaussian():
    look, reach = bilinear(), 2
    attention = Near(Q, reach, is_predictive=True).double()
    outputs, rows = walk(attention, look)

    def expected(step, row):
        hidden = (attention.inner.weight @ queries(3)[step, row]).tanh()
        distance = positions(row) - LENGTHS[row] * torch.sigmoid(attention.outer.weight[0] @ hidden)
        align = softmax_where(scores(look, step, row), distance.abs() <= reach)
        return align * (-(distance**2) / (2 * (reach / 2) ** 2)).exp()

    assert_mixes(outputs, rows, expected)
    assert (rows.sum(-1) < 1).all()


@torch.no_grad()
def test_local_m_is_a_softmax_around_the_number_of_the_step():
    look, reach = bilinear(), 1
    outputs, rows = walk(Near(Q, reach, is_predictive=False), look)

    def expected(step, row):
        return softmax_where(scores(look, step, row), (positions(row) - (step + 1)).abs() <= reach)

    assert_mixes(outputs, rows, expected)


@torch.no_grad()
def test_graves_window_is_a_sum_of_bumps_that_only_move_on():
    torch.manual_seed(5)
    way = Mixture(Q, 3).double()
    outputs, rows = walk(way, None)
    hats = (queries(3) @ way.window.weight.T + way.window.bias).exp()  # (steps, B, 9)
    alpha, beta, moves = hats.chunk(3, dim=-1)
    kappa = moves.cumsum(0)

    def expected(step, row):
        a, b, k = (each[step, row, :, None] for each in (alpha, beta, kappa))
        return (a * (-b * (k - positions(row)) ** 2).exp()).sum(0)

    assert_mixes(outputs, rows, expected)
    torch.testing.assert_close([output.state.past for output in outputs], list(kappa))


@pytest.mark.parametrize("make", [bilinear, lambda: AdditiveAttention(Q, Y, 13).double()])
@torch.no_grad()
def test_coverage_joins_the_score_and_looking_again_costs(make):
    look = make()
    is_additive = isinstance(look, AdditiveAttention)
    attention = Covering(13 if is_additive else Y).double()
    torch.nn.init.normal_(attention.w)
    outputs, rows = walk(attention, look)
    covered, source_memory = torch.zeros(B, S, dtype=F64), memory(look)

    def expected(step, row):
        query, real = queries(3)[step, row], slice(LENGTHS[row])
        keys = source_memory.keys[row, real] + covered[row, real, None] * attention.w
        if is_additive:  # See et al., equation 11: v · tanh(W_h h_i + W_s s_t + w_c c_i + b)
            return ((keys + look.query(query)).tanh() @ look.w).softmax(0)
        return (keys @ (query @ look.w)).softmax(0)

    penalties = attention.penalties(torch.stack([output.weights for output in outputs], 1))
    for step, output in enumerate(outputs):
        assert_mixes([output], rows[step : step + 1], lambda _, row: expected(step, row))  # noqa: B023
        torch.testing.assert_close(penalties[:, step], torch.minimum(rows[step], covered).sum(-1))
        covered += rows[step]
    assert penalties[:, 0].abs().max().item() == 0
    torch.testing.assert_close(outputs[-1].state.past, covered)
    torch.testing.assert_close(outputs[1].weights, rows[1])


def test_weights_of_soft_attention_are_those_that_mix():
    look = bilinear()
    outputs, rows = walk(Soft(shows_weights=True), look)
    plain, _ = walk(Soft(), look)
    for output, reference, row in zip(outputs, plain, rows, strict=True):
        torch.testing.assert_close(output.weights, row)
        torch.testing.assert_close(output.context, reference.context)


def test_hard_attention_takes_the_best_position_in_use():
    look = bilinear()
    outputs, rows = walk(Sampled().eval(), look)
    for step, output in enumerate(outputs):
        for row in range(B):
            best = scores(look, step, row).argmax()
            assert torch.equal(output.context[row], memory(look).values[row, best])
            assert rows[step, row].argmax() == best
            assert rows[step, row].sum() == 1


def test_some_sentences_get_the_mean_at_every_step_of_training_and_no_reward():
    look, source_memory = bilinear(), memory(bilinear())
    soft, _ = walk(Soft(), look)
    attention, state = Sampled(mean_share=1.0).train(), None
    for step, query in enumerate(queries(3)):
        output = attention(
            look, query, source_memory, attention.start(source_memory) if state is None else state
        )
        state = output.state
        torch.testing.assert_close(output.context, soft[step].context)
        assert output.log_prob.eq(0).all()
    many = source_memory.select(torch.zeros(1000, dtype=torch.long))
    torch.manual_seed(9)
    has_mean = Sampled(mean_share=0.25).train().start(many).past
    assert set(has_mean.tolist()) == {0.0, 1.0}
    assert 0.2 < has_mean.mean() < 0.3


def test_reinforce_weighs_each_draw_by_its_later_reward_less_that_of_the_others():
    log_probs = torch.tensor([[-1.0, -2.0, -0.5], [-0.3, -0.7, -9.0]], requires_grad=True)
    gains = torch.tensor([[-1.0, -4.0, -2.0], [-3.0, -5.0, 77.0]])
    is_real = torch.tensor([[True, True, True], [True, True, False]])
    reinforce(log_probs, gains, is_real).backward()
    # Rewards to come: 7, 6, 2 lost over 3, 2, 1 tokens; 8 and 5 over 2 and 1.
    expected = [[-(-7 + 3 * 8 / 2), -(-6 + 2 * 5), 2.0], [-(-8 + 2 * 7 / 3), -(-5 + 6 / 2), 0]]
    torch.testing.assert_close(log_probs.grad, torch.tensor(expected))


def test_the_gradient_of_hard_attention_is_exact_on_average(monkeypatch):
    config = RnnSeq2SeqConfig(
        **{"embed_dim": 3, "hidden_dim": 4, "attention_dim": 3, "dropout": 0.0, "cell": "rnn"},
        **{"hard": True, "mean_share": 0.0, "reward_weight": 1.0, "entropy_weight": 0.0},
    )
    model = RnnSeq2Seq(config, source_vocab=9, target_vocab=9).double().train()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter)
    source, source_lengths = torch.tensor([[4, 5], [6, 7]]), torch.tensor([2, 2])
    target, target_lengths = torch.tensor([[2, 8], [2, 5]]), torch.tensor([2, 1])
    labels = torch.tensor([[8, EOS_ID], [EOS_ID, 0]])
    names = [name for name, _ in model.named_parameters()]
    exact, mean = [
        {name: torch.zeros_like(p) for name, p in model.named_parameters()} for _ in range(2)
    ]
    total = 0.0
    for draws in product(range(2), repeat=4):
        chosen = iter(torch.tensor(draws).view(2, 2, 1))  # step, row
        chances = []

        def draw(rows):
            index = next(chosen)  # noqa: B023
            chances.append(rows.gather(1, index))  # noqa: B023
            return index[:, 0]

        monkeypatch.setattr(recurrent_attention, "draw", draw)
        states, auxiliary = model(source, source_lengths, target, target_lengths)
        logits = model.project(states)
        loss = F.cross_entropy(
            logits.flatten(0, 1), labels.flatten(), ignore_index=0, reduction="sum"
        )
        chance = torch.cat(chances, 1).prod()
        total += chance.item()
        for sums, objective, share in (
            (mean, loss + auxiliary, chance.item()),
            (exact, chance * loss, 1.0),
        ):
            grads = torch.autograd.grad(
                objective, list(model.parameters()), retain_graph=True, allow_unused=True
            )
            for name, grad in zip(names, grads, strict=True):
                if grad is not None:
                    sums[name] += share * grad
    assert abs(total - 1) < 1e-9
    assert exact["attention.w"].abs().max() > 1e-3
    for name in names:
        torch.testing.assert_close(mean[name], exact[name], rtol=1e-5, atol=1e-6)


def test_the_loss_of_coverage_is_summed_over_real_tokens():
    config = RnnSeq2SeqConfig(
        embed_dim=6, hidden_dim=10, attention_dim=7, dropout=0.0, coverage=True, coverage_weight=0.5
    )
    model = RnnSeq2Seq(config, source_vocab=23, target_vocab=23)
    source, target = torch.randint(4, 23, (B, S)), torch.randint(4, 23, (B, 5))
    n = torch.tensor([5, 2])
    _, loss = model.train()(source, LENGTHS, target, n)
    calls = []
    with observe(calls.append):
        assert model.eval()(source, LENGTHS, target, n)[1] is None
    rows = [c.weights()[:, 0] for c in calls]
    expected = 0.0
    for row, count in enumerate(n.tolist()):
        for t in range(count):
            before = sum((rows[k][row] for k in range(t)), torch.zeros(S))
            expected += torch.minimum(rows[t][row], before).sum().item()
    torch.testing.assert_close(loss.item(), expected / 2)
