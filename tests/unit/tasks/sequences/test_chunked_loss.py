import pytest
import torch
from tests import cases
from torch import nn
from torch.nn import functional as F

from regard import kernels
from regard.tasks.sequences import chunked_loss
from regard.tasks.sequences.chunked_loss import backward_in_chunks, smoothed_cross_entropy

R, V, C = 7, 13, 5


def inputs(dtype=torch.float64, scale=3.0):
    logits = (torch.randn(R, V, dtype=torch.float64) * scale).to(dtype).requires_grad_()
    return logits, torch.randint(V, (R,))


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
def test_value_and_gradient_are_torchs(smoothing):
    logits, labels = inputs()
    ours = smoothed_cross_entropy(logits, labels, smoothing=smoothing)
    peer = F.cross_entropy(logits, labels, label_smoothing=smoothing, reduction="sum")
    torch.testing.assert_close(ours, peer)
    mine, peers = (torch.autograd.grad(3 * loss, logits)[0] for loss in (ours, peer))
    torch.testing.assert_close(mine, peers, atol=1e-6, rtol=1e-5)
    assert torch.autograd.gradcheck(
        lambda x: smoothed_cross_entropy(x, labels, smoothing=smoothing), logits
    )


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_half_precision_is_close(smoothing):
    logits = (torch.randn(500, 1000) * 2).bfloat16().requires_grad_()
    labels = torch.randint(1000, (500,))
    ours = smoothed_cross_entropy(logits, labels, smoothing=smoothing)
    exact = logits.detach().double().requires_grad_()
    peer = F.cross_entropy(exact, labels, label_smoothing=smoothing, reduction="sum")
    assert ours.dtype == torch.float32
    assert ours.item() == pytest.approx(peer.item(), rel=1e-3)
    mine, peers = (torch.autograd.grad(loss, x)[0] for loss, x in ((ours, logits), (peer, exact)))
    assert mine.dtype == torch.bfloat16
    torch.testing.assert_close(mine.double(), peers, atol=4e-3, rtol=1e-2)


def test_logits_far_apart_stay_finite():
    logits = torch.tensor([[500.0, -500.0, 0.0]], requires_grad=True)
    loss = smoothed_cross_entropy(logits, torch.tensor([1]), smoothing=0.1)
    loss.backward()
    assert loss.isfinite()
    assert logits.grad.isfinite().all()
    assert logits.grad[0, 1] < -0.9


def chunked(states, labels, last, **options):
    states.grad = last.weight.grad = last.bias.grad = None
    hidden = states * 2  # something below the states, as in a model
    total = backward_in_chunks(hidden, labels, last, **options)
    return total, *(t.grad.clone() for t in (states, last.weight, last.bias))


@pytest.mark.parametrize("chunk_rows", [1, 3, 7, 100])
def test_chunks_give_the_loss_and_gradients_of_the_whole(chunk_rows, monkeypatch):
    monkeypatch.setattr(chunked_loss, "CHUNK_ROWS", chunk_rows)
    states = torch.randn(R, C, dtype=torch.float64, requires_grad=True)
    labels, last = torch.randint(V, (R,)), nn.Linear(C, V).double()
    chunked_results = chunked(states, labels, last, smoothing=0.1)
    loss = F.cross_entropy(last(states * 2), labels, label_smoothing=0.1, reduction="sum")
    expected = torch.autograd.grad(loss, [states, last.weight, last.bias])
    assert not chunked_results[0].requires_grad
    torch.testing.assert_close(chunked_results[0], loss.detach())
    for gradient, reference in zip(chunked_results[1:], expected, strict=True):
        torch.testing.assert_close(gradient, reference)


def test_auxiliary_loss_adds_its_gradient_and_not_its_value():
    states = torch.randn(R, C, dtype=torch.float64, requires_grad=True)
    labels, last = torch.randint(V, (R,)), nn.Linear(C, V).double()
    total, grad, weight_grad, _ = chunked(states, labels, last)
    hidden = states * 2
    states.grad = last.weight.grad = None
    with_it = backward_in_chunks(hidden, labels, last, auxiliary=hidden.square().sum())
    assert with_it == total
    torch.testing.assert_close(states.grad, grad + 8 * states.detach())
    torch.testing.assert_close(last.weight.grad, weight_grad)


def test_half_precision_products_train_whole_weights(monkeypatch):
    monkeypatch.setattr(chunked_loss, "CHUNK_ROWS", 3)
    states, labels, last = torch.randn(R, C), torch.randint(V, (R,)), nn.Linear(C, V)
    below = nn.Linear(C, C)
    with torch.autocast("cpu", torch.bfloat16):
        hidden = below(states)
        backward_in_chunks(hidden, labels, last)
    assert hidden.dtype == torch.bfloat16
    assert below.weight.grad.dtype == last.weight.grad.dtype == torch.float32
    loss = F.cross_entropy(last(below(states)), labels, reduction="sum")
    (expected,) = torch.autograd.grad(loss, below.weight)
    torch.testing.assert_close(below.weight.grad, expected, atol=0.1, rtol=0.05)


def kl(p, q):
    return F.kl_div(q, p, log_target=True, reduction="sum")


@pytest.mark.parametrize("chunk_rows", [2, 6, 100])
def test_two_passes_have_the_mean_loss_and_their_divergence_adds_its_gradient(
    chunk_rows, monkeypatch
):
    monkeypatch.setattr(chunked_loss, "CHUNK_ROWS", chunk_rows)
    states = torch.randn(2 * R, C, dtype=torch.float64, requires_grad=True)
    labels, last = torch.randint(V, (R,)).repeat(2), nn.Linear(C, V).double()
    options = {"smoothing": 0.1, "r_drop": 1.5}
    total, *grads = chunked(states, labels, last, **options)
    logits = last(states * 2)
    loss = F.cross_entropy(logits, labels, label_smoothing=0.1, reduction="sum") / 2
    torch.testing.assert_close(total, loss.detach())
    one, other = logits.log_softmax(-1).chunk(2)
    whole = loss + 1.5 * (kl(one, other) + kl(other, one)) / 2
    expected = torch.autograd.grad(whole, [states, last.weight, last.bias])
    for gradient, reference in zip(grads, expected, strict=True):
        torch.testing.assert_close(gradient, reference)


@pytest.mark.skipif(kernels.why_not() is not None, reason="nothing is compiled here")
@cases.pairwise(
    dtype=["float32", "bfloat16"],
    rows=[2, 62, 134],
    width=[2, 13, 1000],
    smoothing=[0.0, 0.1],
    r_drop=[0.0, 1.5],
    threads=[1, 2],
)
def test_compiled_passes_give_the_losses_and_gradients_of_torchs(
    dtype, rows, width, smoothing, r_drop, threads
):
    dtype = getattr(torch, dtype)
    logits = (torch.randn(rows, width) * 3).to(dtype).requires_grad_()
    labels = torch.randint(width, (rows // 2,)).repeat(2)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    total = backward_in_chunks(
        logits, labels, lambda rows: rows, smoothing=smoothing, r_drop=r_drop
    )
    torch.set_num_threads(before)
    exact = logits.detach().double().requires_grad_()
    loss = F.cross_entropy(exact, labels, label_smoothing=smoothing, reduction="sum")
    one, other = exact.log_softmax(-1).chunk(2)
    gap = (kl(one, other) + kl(other, one)) / 2
    loss = loss / (2 if r_drop else 1)
    (expected,) = torch.autograd.grad(loss + r_drop * gap, exact)
    assert total.item() == pytest.approx(loss.item(), rel=1e-5)
    rtol = 1e-5 if dtype == torch.float32 else 2**-8
    torch.testing.assert_close(logits.grad, expected.to(dtype), rtol=rtol, atol=1e-6)


@pytest.mark.parametrize("label", [-1, 3])
def test_a_label_that_is_no_id_is_an_error(label):
    with pytest.raises((IndexError, RuntimeError)):
        smoothed_cross_entropy(torch.randn(1, 3), torch.tensor([label]))


def test_a_logit_that_is_no_number_shows_in_the_loss():
    for dtype in (torch.float32, torch.bfloat16, torch.float64):
        logits = torch.tensor([[0.0, float("nan"), 1.0]], dtype=dtype)
        assert smoothed_cross_entropy(logits, torch.tensor([0])).isnan()
