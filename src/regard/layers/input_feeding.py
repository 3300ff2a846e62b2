"""Recurrent decoders whose next step reads the last answer, over whole sequences on a CPU.

Input feeding of Luong et al. (2015), https://arxiv.org/abs/1508.04025, section 3.3, by the passes
of ``unrolled.py``: three products and two compiled passes a step, each way.
"""

from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from regard.attention.attend import attend
from regard.attention.masks import lengths as lengths_mask
from regard.attention.scores import Additive, Dot
from regard.kernels.threads import parallel_rows
from regard.layers.pointer import identity
from regard.layers.unrolled import (
    CELLS,
    KINDS,
    Gradients,
    add_product,
    contiguous,
    gradients,
    in_whole_states,
)

Steps = tuple[Tensor, Tensor, Tensor]  # answers, contexts and weights of all steps


class FedMemory(NamedTuple):
    """Memory that each state attends to, and the answer that is made of both and fed to the next.

    A score is additive where there are ``units``, else a dot product; without entries in
    ``query_weight`` the state is the query as it is.
    """

    query_weight: Float[Tensor, "K h"]
    units: Float[Tensor, " U"]
    fed_weight: Float[Tensor, "G C"]
    readout_weight: Float[Tensor, "C J"]  # of context and state side by side
    readout_bias: Float[Tensor, " C"]
    keys: Float[Tensor, "B S A"]
    values: Float[Tensor, "B S E"]
    lengths: Int[Tensor, " B"]


def unroll_fed(
    cell: str,
    gates: Float[Tensor, "B T G"],
    start: Float[Tensor, "B Y"],
    weight: Float[Tensor, "G h"],
    bias: Float[Tensor, " G"],
    memory: FedMemory,
) -> tuple[Float[Tensor, "B T C"], Float[Tensor, "B T E"], Float[Tensor, "B T S"]]:
    """Answers, contexts and weights of all steps, where ``takes_sequences``.

    ``gates`` are those of inputs; see ``unrolled.unroll``.
    """
    steps: Steps = in_whole_states(_Fed, cell, gates, start, weight, bias, *memory)
    return steps


def _stepwise(
    cell: str, gates: Tensor, start: Tensor, weight: Tensor, bias: Tensor, *of_memory: Tensor
) -> Steps:
    """Steps by operations of torch, whose gradients can be differentiated."""
    memory, state, h = FedMemory(*of_memory), start, weight.shape[1]
    score = Additive(memory.units) if memory.units.numel() else Dot()
    mask, width = lengths_mask(memory.lengths), memory.values.shape[2]
    values = torch.cat([memory.values, identity(memory.keys)], 2)
    answers: list[Tensor] = []
    mixed = []
    for of_step in gates.unbind(1):
        if answers:
            of_step = of_step + F.linear(answers[-1], memory.fed_weight)  # noqa: PLW2901
        state = CELLS[cell][0](of_step, F.linear(state[:, :h], weight, bias), state)
        query = top = state[:, :h]
        if memory.query_weight.numel():
            query = F.linear(top, memory.query_weight)
        both = attend(query.unsqueeze(1), memory.keys, values, score=score, mask=mask).squeeze(1)
        mixed.append(both)
        joined = torch.cat([both[:, :width], top], 1)
        answers.append(torch.tanh(F.linear(joined, memory.readout_weight, memory.readout_bias)))
    every = torch.stack(mixed, 1)
    return torch.stack(answers, 1), every[..., :width], every[..., width:]


class _Fed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, cell: str, products: torch.dtype, *inputs: Tensor) -> Steps:
        # Only here: where compiling fails, so does the import.
        from regard.kernels import unrolled

        gates, start, weight, bias = inputs[:4]
        memory = FedMemory(*contiguous(inputs[4:]))
        (B, T, G), h, (kind, kept) = gates.shape, weight.shape[1], KINDS[cell]
        (S, A), E, C = memory.keys.shape[1:], memory.values.shape[2], len(memory.readout_bias)
        carried, after = gates.new_empty(B, T + 1, start.shape[1]), gates.new_empty(B, T, kept * h)
        carried[:, 0] = start
        total, hidden = gates.clone(memory_format=torch.contiguous_format), gates.new_empty(B, G)
        weights, contexts = gates.new_empty(B, T, S), gates.new_empty(B, T, E)
        answers, queries = gates.new_empty(B, T, C), gates.new_empty(B, T, A)
        of_cell = [each.numpy() for each in (total, hidden, carried, after)]
        past, query = gates.new_empty(B, 0, 0), gates.new_empty(B, A)
        of_memory = _arrays(memory), *(each.numpy() for each in (weights, past, contexts))
        of_state, of_query, of_fed, of_readout = (
            each.to(products).t()
            for each in (weight, memory.query_weight, memory.fed_weight, memory.readout_weight)
        )
        for t in range(T):
            if t:
                add_product(total[:, t], answers[:, t - 1], of_fed)
            add_product(hidden.copy_(bias), carried[:, t, :h], of_state)
            parallel_rows(B, 32 * G, unrolled.advance, kind, t, *of_cell)
            top = carried[:, t + 1, :h]
            if of_query.numel():
                add_product(query.zero_(), top, of_query)
            else:
                query.copy_(top)
            queries[:, t] = query
            arguments = (t, 0, query.numpy(), *of_memory)
            parallel_rows(B, 32 * S * (A + E), unrolled.attend, *arguments)
            answer = answers[:, t].copy_(memory.readout_bias)
            add_product(answer, torch.cat([contexts[:, t], top], 1), of_readout)
            answer.tanh_()
        ctx.cell, ctx.products, ctx.count = cell, products, len(inputs)
        ctx.save_for_backward(*inputs, carried, after, queries, weights, contexts, answers)
        return answers, contexts, weights

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Gradients:
        return gradients(ctx, grads, _backward, _stepwise)


def _backward(
    kind: int,
    products: torch.dtype,
    inputs: tuple[Tensor, ...],
    kept: tuple[Tensor, ...],
    *grads: Tensor,
) -> Gradients:
    from regard.kernels import unrolled

    gates, start, weight, _ = inputs[:4]
    memory = FedMemory(*contiguous(inputs[4:]))
    carried, after, queries, weights, contexts, answers = kept
    (B, T, G), h = gates.shape, weight.shape[1]
    (S, A), E = memory.keys.shape[1:], memory.values.shape[2]
    d_answers, d_contexts = (each.clone().contiguous() for each in grads[:2])
    slope, d_top, d_gates, d_hidden, d_query, d_keys, d_past, sums = (
        torch.zeros(shape)
        for shape in (
            *(start.shape, (B, T, h), gates.shape, gates.shape, queries.shape, memory.keys.shape),
            *((B, S), (B, 2, len(memory.units))),
        )
    )
    of_cell = [each.numpy() for each in (carried, after, d_top, slope, d_gates, d_hidden)]
    read = [queries.numpy(), _arrays(memory), weights.numpy(), weights.new_empty(B, 0, 0).numpy()]
    given = (grads[2].contiguous().numpy(), d_contexts.numpy())
    written = tuple(each.numpy() for each in (d_query, d_keys, d_past, sums))
    of_state, of_query, of_fed, of_readout = (
        each.to(products)
        for each in (weight, memory.query_weight, memory.fed_weight, memory.readout_weight)
    )
    for t in reversed(range(T)):
        if t + 1 < T:
            add_product(d_answers[:, t], d_gates[:, t + 1], of_fed)
        d_answers[:, t] *= 1 - answers[:, t].square()
        d_joined = torch.zeros(B, E + h)
        add_product(d_joined, d_answers[:, t], of_readout)
        d_contexts[:, t] += d_joined[:, :E]
        d_top[:, t] = d_joined[:, E:]
        parallel_rows(B, 32 * S * (A + E), unrolled.attend_back, t, 0, *read, given, written)
        if of_query.numel():
            add_product(d_top[:, t], d_query[:, t], of_query)
        else:
            d_top[:, t] += d_query[:, t]
        parallel_rows(B, 32 * G, unrolled.advance_back, kind, t, *of_cell)
        add_product(slope[:, :h], d_hidden[:, t], of_state)
    before, states = carried[:, :T, :h], carried[:, 1:, :h]
    joined = torch.cat([contexts, states], 2)
    d_query_weight = torch.zeros(memory.query_weight.shape)
    if len(d_query_weight):
        _add_outer(d_query_weight, d_query, states, products)
    d_weight, d_fed, d_readout = (
        _add_outer(torch.zeros(of.shape), left, right, products)
        for of, left, right in (
            (weight, d_hidden, before),
            (memory.fed_weight, d_gates[:, 1:], answers[:, :-1]),
            (memory.readout_weight, d_answers, joined),
        )
    )
    d_units = sums.sum(0)[0]
    if len(d_units):
        d_keys *= memory.units
    of_scores = (d_query_weight, d_units, d_fed, d_readout, d_answers.sum((0, 1)), d_keys)
    d_values = weights.transpose(1, 2) @ d_contexts
    return d_gates, slope, d_weight, d_hidden.sum((0, 1)), *of_scores, d_values, None


def _add_outer(out: Tensor, left: Tensor, right: Tensor, products: torch.dtype) -> Tensor:
    """Add the sum over rows and steps of ``left ⊗ right`` in place."""
    add_product(out, left.flatten(0, 1).t(), right.flatten(0, 1).to(products))
    return out


def _arrays(memory: FedMemory) -> tuple[Any, ...]:
    """Numbers of a memory as the passes take them; it has no coverage."""
    nothing = memory.units[:0]
    return tuple(each.numpy() for each in (memory.units, nothing, *memory[5:]))
