"""Cross-entropy with label smoothing, computed in chunks so that the logits never exist whole."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import BackwardCFunction, FunctionCtx

# Rows of logits that exist at once: 512 × 10,000 in bfloat16 stays in a CPU's last cache level.
CHUNK_ROWS = 512


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
    scale: float = 1.0,
    chunk_rows: int = CHUNK_ROWS,
) -> Float[Tensor, ""]:
    """Return the summed loss, detached; its gradient is added below ``states`` and ``project``."""
    # The logits of ``chunk_rows`` rows are made, used for loss and gradient, and dropped, before
    # the next; then one backward pass goes through what made ``states``. An ``auxiliary`` loss of
    # the model is not counted in the result; ``scale`` lets float16 hold the gradient.
    total = torch.zeros((), dtype=_wide(states), device=states.device)
    grads = []
    detached = states.detach()
    for start in range(0, len(labels), chunk_rows):
        leaf = detached[start : start + chunk_rows].requires_grad_()
        answers = labels[start : start + chunk_rows]
        loss = smoothed_cross_entropy(project(leaf), answers, smoothing=smoothing)
        (loss if scale == 1 else loss * scale).backward()  # type: ignore[no-untyped-call]
        assert leaf.grad is not None
        grads.append(leaf.grad)
        total += loss.detach()
    roots, root_grads = [states], [torch.cat(grads)]
    if auxiliary is not None:
        roots.append(auxiliary)
        root_grads.append(torch.full_like(auxiliary, scale))
    # Gradients have the dtypes that the forward pass chose; autocast is not to choose again.
    with torch.autocast(states.device.type, enabled=False):
        torch.autograd.backward(roots, root_grads)
    return total


class _SmoothedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: FunctionCtx, logits: Tensor, labels: Tensor, smoothing: float) -> Tensor:
        # softmax keeps the dtype but computes in float32; log-sum-exp follows from one element.
        wide = _wide(logits)
        column = labels[:, None]
        uniform = smoothing / logits.shape[-1]
        gradient = torch.softmax(logits, dim=-1)
        right = logits.gather(-1, column).to(wide)
        probability = gradient.gather(-1, column).to(wide)
        log_sum_exp = right - probability.clamp_min(torch.finfo(torch.float32).tiny).log()
        loss = (log_sum_exp - (1 - smoothing) * right).sum()
        if smoothing:
            loss = loss - uniform * logits.sum(-1).to(wide).sum()
            gradient.sub_(uniform)
        right_gradient = probability - uniform - (1 - smoothing)
        rows = torch.arange(len(labels), device=labels.device)
        gradient[rows, labels] = right_gradient[:, 0].to(gradient.dtype)
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
