"""Cross-entropy with label smoothing, computed in chunks so that the logits never exist whole."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import BackwardCFunction, FunctionCtx
from torch.nn import functional as F

from regard.kernels import numbers, takes
from regard.kernels.threads import share_out

# Rows of logits that exist at once: 512 × 10,000 in bfloat16 stays in a CPU's last cache level.
CHUNK_ROWS = 512
# A GPU wants fewer and larger pieces: so many logits, 128 MB in bfloat16.
_GPU_LOGITS = 2**26


def smoothed_cross_entropy(
    logits: Float[Tensor, "R V"], labels: Int[Tensor, " R"], *, smoothing: float = 0.0
) -> Float[Tensor, ""]:
    """The summed cross-entropy against labels mixed with the uniform distribution."""
    # Each row adds -sum_v q(v) log p(v) with q = (1 - smoothing) * one_hot + smoothing / V: Szegedy
    # et al. (2016), section 7, https://arxiv.org/abs/1512.00567, as in section 5.4 of Vaswani et
    # al. (2017). The gradient takes the place of the probabilities: one matrix of logits' size.
    result: Tensor = _SmoothedCrossEntropy.apply(  # type: ignore[no-untyped-call]
        logits, labels, smoothing
    )
    return result


def backward_in_chunks(
    states: Float[Tensor, "R C"],
    labels: Int[Tensor, " R"],
    project: Callable[[Tensor], Tensor],
    *,
    auxiliary: Float[Tensor, ""] | None = None,
    smoothing: float = 0.0,
    r_drop: float = 0.0,
    scale: float = 1.0,
) -> Float[Tensor, ""]:
    """Return the summed loss, detached; its gradient is added below ``states`` and ``project``.

    With ``r_drop``, the rows are two passes over the same words, one behind the other: the loss is
    their mean, and to its gradient comes so many times that of how far the passes differ,
    ``(KL(p‖q) + KL(q‖p)) / 2``: Liang et al. (2021), https://arxiv.org/abs/2106.14448.
    """
    # The logits of a chunk of rows are made, used for loss and gradient, and dropped, before
    # the next; then one backward pass goes through the graph of ``states``.
    # An ``auxiliary`` loss of the model is not counted in the result; ``scale`` lets float16 hold
    # the gradient.
    passes = 2 if r_drop else 1
    total = torch.zeros((), dtype=_wide(states), device=states.device)
    grads = []
    detached = states.detach().view(passes, -1, states.shape[-1])
    labels = labels.view(passes, -1)
    chunk_rows = CHUNK_ROWS
    if states.device.type != "cpu":
        vocab = project(detached[0, :0]).shape[-1]
        chunk_rows = max(CHUNK_ROWS, _GPU_LOGITS // vocab)
    step = max(1, chunk_rows // passes)
    for start in range(0, labels.shape[1], step):
        rows = slice(start, start + step)
        leaf = detached[:, rows].flatten(0, 1).requires_grad_()
        logits = project(leaf)
        loss, slope = _with_gradient(logits.detach(), labels[:, rows].flatten(), smoothing, r_drop)
        total += loss
        logits.backward(slope if scale == 1 else slope * scale)  # type: ignore[no-untyped-call]
        assert leaf.grad is not None
        grads.append(leaf.grad.view(passes, -1, states.shape[-1]))
    roots, root_grads = [states], [torch.cat(grads, dim=1).flatten(0, 1)]
    if auxiliary is not None:
        roots.append(auxiliary)
        root_grads.append(torch.full_like(auxiliary, scale / passes))
    # Gradients have the dtypes that the forward pass chose; autocast is not to choose again.
    with torch.autocast(states.device.type, enabled=False):
        torch.autograd.backward(roots, root_grads)
    return total


@torch.no_grad()
def _with_gradient(
    logits: Tensor, labels: Tensor, smoothing: float, r_drop: float = 0.0
) -> tuple[Tensor, Tensor]:
    """The summed loss of a chunk, and its gradient by the logits."""
    # An id that is none would be read beyond the row; torch names it.
    if takes(logits) and len(labels) and labels.min() >= 0 and labels.max() < logits.shape[-1]:
        return _compiled(logits, labels, smoothing, r_drop)
    loss, gradient = _cross_entropy(logits, labels, smoothing)
    if r_drop:
        loss, gradient = loss / 2, gradient / 2 + r_drop * _slope_of_divergence(logits)
    return loss, gradient


def _compiled(
    logits: Tensor, labels: Tensor, smoothing: float, r_drop: float
) -> tuple[Tensor, Tensor]:
    # Only here: kernels that cannot be compiled cannot be imported.
    from regard.kernels import training as kernels

    passes = 2 if r_drop else 1
    gradient = torch.empty(logits.shape, dtype=logits.dtype)
    losses = torch.empty(len(labels) // passes)
    read, slopes = (numbers(rows).reshape(passes, len(losses), -1) for rows in (logits, gradient))
    once = labels[: len(losses)].contiguous().numpy()

    tasks, out = (-(-len(losses) // kernels.WORDS), len(losses)), losses.numpy()
    if r_drop:
        share_out(*tasks, kernels.two_passes, read, once, smoothing, r_drop, slopes, out)
    else:
        share_out(*tasks, kernels.cross_entropy, read[0], once, smoothing, slopes[0], out)
    return losses.sum(), gradient


def _cross_entropy(logits: Tensor, labels: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    with torch.enable_grad():
        leaf = logits.detach().requires_grad_()
        wide = leaf.to(_wide(leaf))
        loss = F.cross_entropy(wide, labels, reduction="sum", label_smoothing=smoothing)
    (gradient,) = torch.autograd.grad(loss, leaf)
    return loss.detach(), gradient


def _slope_of_divergence(logits: Tensor) -> Tensor:
    """Gradient of ``(KL(p‖q) + KL(q‖p)) / 2``, summed over the words; p is of the first half."""
    first, second = logits.to(_wide(logits)).log_softmax(-1).chunk(2)
    p, q = first.exp(), second.exp()
    gap = first - second
    to_second, to_first = ((probs * gap).sum(-1, keepdim=True) for probs in (p, q))
    # Of KL(p‖q) it is p · (gap − KL), of KL(q‖p) it is p − q; the other way round likewise.
    slope = p - q
    gradient = torch.cat([(gap - to_second).mul_(p) + slope, (to_first - gap).mul_(q) - slope])
    return (gradient / 2).to(logits.dtype)


class _SmoothedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: FunctionCtx, logits: Tensor, labels: Tensor, smoothing: float) -> Tensor:
        loss, gradient = _with_gradient(logits, labels, smoothing)
        ctx.save_for_backward(gradient)
        return loss

    @staticmethod
    def backward(ctx: BackwardCFunction, grad: Tensor) -> tuple[Tensor, None, None]:
        (gradient,) = ctx.saved_tensors
        # A sum's own backward pass brings exactly one: no second pass over the matrix for it. A
        # GPU would have to be waited for to be asked, and takes no time over the pass.
        if grad.device.type != "cpu" or grad.item() != 1:
            gradient = gradient * grad.to(gradient.dtype)
        return gradient, None, None


def _wide(tensor: Tensor) -> torch.dtype:
    """The dtype of sums: float32 at least."""
    return torch.promote_types(tensor.dtype, torch.float32)
