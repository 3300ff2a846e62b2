"""Recurrent cells, and layers of one over whole sequences, with attention at each step or without.

As operations of torch a step is some fifteen calls forward and forty backward, and each adds to the
gradients of all weights and keys. On a CPU a step is two products and two compiled passes each way,
and products that no step waits for are done once, for all steps.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.nn import functional as F

from regard.attention.attend import attend
from regard.attention.masks import lengths as lengths_mask
from regard.attention.scores import Additive
from regard.kernels import takes
from regard.kernels.threads import parallel_rows
from regard.layers.pointer import identity

Gradients = tuple[Tensor | None, ...]
# States, and with a memory contexts and weights, of all steps.
Steps = tuple[Tensor, Tensor | None, Tensor | None]


def _rnn(inputs: Tensor, hidden: Tensor, state: Tensor) -> Tensor:
    return torch.tanh(inputs + hidden)


def _gru(inputs: Tensor, hidden: Tensor, state: Tensor) -> Tensor:
    h = state.shape[1]
    reset, update = torch.sigmoid(inputs[:, : 2 * h] + hidden[:, : 2 * h]).chunk(2, dim=1)
    new = torch.tanh(inputs[:, 2 * h :] + reset * hidden[:, 2 * h :])
    return torch.lerp(new, state, update)


def _lstm(inputs: Tensor, hidden: Tensor, state: Tensor) -> Tensor:
    h = state.shape[1] // 2
    gates = inputs + hidden
    keep_in, forget, show = torch.sigmoid(gates[:, : 3 * h]).chunk(3, dim=1)
    cell = forget * state[:, h:] + keep_in * torch.tanh(gates[:, 3 * h :])
    return torch.cat([show * torch.tanh(cell), cell], dim=1)


Advance = Callable[[Tensor, Tensor, Tensor], Tensor]

CELLS: dict[str, tuple[Advance, int]] = {"rnn": (_rnn, 1), "gru": (_gru, 3), "lstm": (_lstm, 4)}

# Of a cell: its number in ``kernels.recurrent.CELLS``, and gates kept of a step for its gradients.
KINDS = {"rnn": (0, 0), "gru": (2, 4), "lstm": (3, 4)}


class AdditiveMemory(NamedTuple):
    """Memory that each step attends to by an additive score; its context adds to the gates.

    A ``coverage`` times the weights that a key had before is added to the key: See et al. (2017),
    https://arxiv.org/abs/1704.04368, equation 11.
    """

    query_weight: Float[Tensor, "A h"]
    units: Float[Tensor, " A"]
    context_weight: Float[Tensor, "G E"]
    coverage: Float[Tensor, " K"]  # of a key's weights so far: A numbers, or none
    keys: Float[Tensor, "B S A"]
    values: Float[Tensor, "B S E"]
    lengths: Int[Tensor, " B"]


def takes_sequences(*inputs: Tensor) -> bool:
    """Whether compiled passes can go over sequences of these tensors now."""
    if (
        torch._C._are_functorch_transforms_active()
        or forward_ad._current_level >= 0
        or torch._C._is_tracing()
        or torch._C._len_torch_function_stack()  # a mode is to see every function
    ):
        return False
    # Under autocast gates are of less precision; the states of a recurrence are not.
    with torch.no_grad():
        return all(tensor.dtype == torch.float32 for tensor in inputs[1:]) and takes(*inputs)


def is_changed(module: nn.Module) -> bool:
    """Whether a module has hooks, or does not compute as its class in the tree does."""
    hooks = (module._forward_hooks, module._forward_pre_hooks, module._backward_hooks)
    is_linear = not isinstance(module, nn.Linear) or type(module) is nn.Linear
    return not is_linear or any((*hooks, module._backward_pre_hooks))


def unroll(
    cell: str,
    gates: Float[Tensor, "B T G"],
    start: Float[Tensor, "B Y"],
    weight: Float[Tensor, "G h"],
    bias: Float[Tensor, " G"],
    memory: AdditiveMemory | None = None,
) -> tuple[Float[Tensor, "B T h"], Float[Tensor, "B T E"] | None, Float[Tensor, "B T S"] | None]:
    """States after each step, the context that each read and its weights: ``takes_sequences``.

    ``gates`` are those of inputs, ``weight`` and ``bias`` make those of the state before, which is
    the query as well; before the first step it is ``start``.
    """
    steps: Steps = in_whole_states(_Unrolled, cell, gates, start, weight, bias, *(memory or ()))
    return steps


def in_whole_states(
    passes: type[torch.autograd.Function], cell: str, gates: Tensor, *inputs: Tensor
) -> Any:
    """Results of passes whose states are of float32, and products of autocast's dtype."""
    is_mixed = torch.is_autocast_enabled("cpu")
    products = torch.get_autocast_dtype("cpu") if is_mixed else torch.float32
    with torch.autocast("cpu", enabled=False):
        return passes.apply(cell, products, gates.float(), *inputs)  # type: ignore[no-untyped-call]


def _stepwise(
    cell: str, gates: Tensor, start: Tensor, weight: Tensor, bias: Tensor, *of_memory: Tensor
) -> Steps:
    """Steps by operations of torch, whose gradients can be differentiated."""
    state, states = start, []
    mixed: list[Tensor] = []
    if of_memory:
        memory = AdditiveMemory(*of_memory)
        keys, width = memory.keys, memory.values.shape[2]
        values = torch.cat([memory.values, identity(keys)], 2)
    for of_inputs in gates.unbind(1):
        query, of_step = state[:, : weight.shape[1]], of_inputs
        if of_memory:
            if memory.coverage.numel() and mixed:
                keys = keys + mixed[-1][:, width:, None] * memory.coverage
            answer = attend(
                F.linear(query, memory.query_weight).unsqueeze(1),
                *(keys, values),
                score=Additive(memory.units),
                mask=lengths_mask(memory.lengths),
            ).squeeze(1)
            mixed.append(answer)
            of_step = of_step + F.linear(answer[:, :width], memory.context_weight)
        state = CELLS[cell][0](of_step, F.linear(query, weight, bias), state)
        states.append(state[:, : weight.shape[1]])
    if not mixed:
        return torch.stack(states, 1), None, None
    both = torch.stack(mixed, 1)
    return torch.stack(states, 1), both[..., :width], both[..., width:]


class _Unrolled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, cell: str, products: torch.dtype, *inputs: Tensor) -> Steps:
        # Only here: where compiling fails, so does the import.
        from regard.kernels import unrolled

        gates, start, weight, bias = inputs[:4]
        (B, T, G), h = gates.shape, weight.shape[1]
        kind, kept = KINDS[cell]
        carried, after = gates.new_empty(B, T + 1, start.shape[1]), gates.new_empty(B, T, kept * h)
        carried[:, 0] = start
        total = gates.contiguous()
        weights: Tensor | None = None
        contexts: Tensor | None = None
        queries: Tensor | None = None
        past: Tensor | None = None
        if len(inputs) > 4:
            memory = AdditiveMemory(*contiguous(inputs[4:]))
            (S, E), A = memory.values.shape[1:], len(memory.units)
            total = gates.clone(memory_format=torch.contiguous_format)
            weight = torch.cat([weight, memory.query_weight])
            bias = torch.cat([bias, bias.new_zeros(A)])
            weights, contexts = gates.new_empty(B, T, S), gates.new_empty(B, T, E)
            queries = gates.new_empty(B, T, A)
            past = gates.new_zeros(B, T + 1, S if memory.coverage.numel() else 0)
            of_memory = _arrays(memory), *(each.numpy() for each in (weights, past, contexts))
            of_context = memory.context_weight.to(products).t()
        hidden, of_state = gates.new_empty(B, len(weight)), weight.to(products).t()
        of_inputs, of_hidden, *states = (t.numpy() for t in (total, hidden, carried, after))
        for t in range(T):
            add_product(hidden.copy_(bias), carried[:, t, :h], of_state)
            if contexts is not None and queries is not None:
                arguments = (t, G, of_hidden, *of_memory)
                parallel_rows(B, 32 * S * (A + E), unrolled.attend, *arguments)
                queries[:, t] = hidden[:, G:]
                add_product(total[:, t], contexts[:, t], of_context)
            arguments = (kind, t, of_inputs, of_hidden, *states)
            parallel_rows(B, 32 * G, unrolled.advance, *arguments)
        ctx.cell, ctx.products, ctx.count = cell, products, len(inputs)
        ctx.save_for_backward(*inputs, carried, after, queries, weights, past, contexts)
        return carried[:, 1:, :h], contexts, weights

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Gradients:
        return gradients(ctx, grads, _backward, _stepwise)


def gradients(
    ctx: Any, grads: Sequence[Any], passes: Callable[..., Gradients], stepwise: Callable[..., Any]
) -> Gradients:
    """Gradients of ``in_whole_states``: by passes, or if they are derived again, step by step."""
    inputs, kept = ctx.saved_tensors[: ctx.count], ctx.saved_tensors[ctx.count :]
    with torch.autocast("cpu", enabled=False):
        is_batched = torch._C._functorch.is_legacy_batchedtensor(grads[0])  # is_grads_batched
        if torch.is_grad_enabled() or is_batched:
            return None, None, *_differentiable(ctx, inputs, grads, stepwise)
        return None, None, *passes(KINDS[ctx.cell][0], ctx.products, inputs, kept, *grads)


def _differentiable(
    ctx: Any, inputs: Sequence[Tensor], grads: Sequence[Any], stepwise: Callable[..., Any]
) -> Gradients:
    """Gradients that can be differentiated, or of several outputs at once."""
    with torch.enable_grad():
        # One tensor may stand in several places.
        views = [tensor.view_as(tensor) for tensor in inputs]
        outputs = [each for each in stepwise(ctx.cell, *views) if each is not None]
    needed = [view for view, need in zip(views, ctx.needs_input_grad[2:], strict=True) if need]
    is_again = torch.is_grad_enabled()
    given = torch.autograd.grad(
        outputs, needed, grads[: len(outputs)], create_graph=is_again, allow_unused=True
    )
    found = iter(given)
    return tuple(next(found) if need else None for need in ctx.needs_input_grad[2:])


def _backward(
    kind: int,
    products: torch.dtype,
    inputs: tuple[Tensor, ...],
    kept: tuple[Any, ...],  # tensors, or None for those of a memory that there is not
    grad: Tensor,
    d_contexts: Tensor | None,
    d_weights: Tensor | None,
) -> Gradients:
    from regard.kernels import unrolled

    gates, start, weight, _ = inputs[:4]
    carried, after, queries, weights, past, contexts = kept
    (B, T, G), h = gates.shape, weight.shape[1]
    d_gates, d_hidden = torch.empty(gates.shape), torch.empty(B, T, G)
    slope = torch.zeros(start.shape)
    memory = None
    if len(inputs) > 4:
        assert d_contexts is not None
        assert d_weights is not None
        memory, weight = AdditiveMemory(*contiguous(inputs[4:])), torch.cat([weight, inputs[4]])
        S, A = memory.keys.shape[1:]
        d_hidden, d_contexts = torch.empty(B, T, G + A), d_contexts.clone().contiguous()
        d_keys, d_past, sums = (torch.zeros(s) for s in (memory.keys.shape, (B, S), (B, 2, A)))
        of_context = memory.context_weight.to(products)
        read = [queries.numpy(), _arrays(memory), weights.numpy(), past.numpy()]
        given = (d_weights.contiguous().numpy(), d_contexts.numpy())
        written = tuple(each.numpy() for each in (d_hidden, d_keys, d_past, sums))
    of_state = weight.to(products)
    numbers = (carried, after, grad.contiguous(), slope, d_gates, d_hidden)
    of_cell = [array.numpy() for array in numbers]
    for t in reversed(range(T)):
        parallel_rows(B, 32 * G, unrolled.advance_back, kind, t, *of_cell)
        if memory is not None and d_contexts is not None:
            add_product(d_contexts[:, t], d_gates[:, t], of_context)
            E = memory.values.shape[2]
            parallel_rows(B, 32 * S * (A + E), unrolled.attend_back, t, G, *read, given, written)
        add_product(slope[:, :h], d_hidden[:, t], of_state)
    flat, before = d_hidden.flatten(0, 1), carried[:, :T, :h].reshape(B * T, h)
    d_weight, d_bias = torch.zeros(weight.shape), flat[:, :G].sum(0)
    add_product(d_weight, flat.t(), before.to(products))
    if memory is None or d_contexts is None:
        return d_gates, slope, d_weight, d_bias
    d_context_weight = torch.zeros(memory.context_weight.shape)
    add_product(d_context_weight, d_gates.flatten(0, 1).t(), contexts.flatten(0, 1).to(products))
    d_values = weights.transpose(1, 2) @ d_contexts
    d_units, d_coverage = sums.sum(0)
    d_coverage = (d_coverage * memory.units)[: len(memory.coverage)]
    of_scores = (d_weight[G:], d_units, d_context_weight, d_coverage, d_keys * memory.units)
    return d_gates, slope, d_weight[:G], d_bias, *of_scores, d_values, None


def add_product(out: Tensor, left: Tensor, right: Tensor) -> None:
    """Add ``left @ right`` in place, multiplied in the dtype of ``right``."""
    if right.dtype == out.dtype:
        out.addmm_(left, right)
    else:
        out.add_(left.to(right.dtype) @ right)


def _arrays(memory: AdditiveMemory) -> tuple[np.ndarray, ...]:
    """Numbers of a memory as loops take them: ``units``, ``coverage``, keys, values and lengths."""
    return tuple(tensor.numpy() for tensor in (memory.units, *memory[3:]))


def contiguous(of_memory: Sequence[Tensor]) -> Iterator[Tensor]:
    """The tensors of a memory as loops take them; the last, the lengths, within its values."""
    *before, lengths = (tensor.detach().contiguous() for tensor in of_memory)
    yield from before
    yield lengths.long().clamp(0, before[-1].shape[1])
