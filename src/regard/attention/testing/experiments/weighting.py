"""Experiments on weights: their sums, and those that are returned."""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from math import prod, sqrt

import torch
from torch import Tensor, nn

from regard.attention.testing.call import Call
from regard.attention.testing.evidence import Attention, Traced, sizes
from regard.attention.testing.report import Fault

_NEAR = 1e-3  # how far a sum of weights may be from one


def rows(call: Call, traced: Traced) -> Iterator[Fault]:
    """Weights of a query that do not sum to one."""
    for attention in traced.attentions:
        fault = None
        if attention.kind in ("softmax", "pooled") and attention.weights is not None:
            fault = _sums(attention)
        elif attention.kind == "raw":
            fault = _without_softmax(call, traced, attention)
        if fault is not None:
            yield fault
            return
    yield from _returned_rows(call)


def _sums(attention: Attention) -> Fault | None:
    assert attention.weights is not None
    assert attention.softmax is not None
    sums = attention.weights if attention.kind == "pooled" else attention.weights.sum(-1)
    sums = sums.float()[sums.isfinite()]
    if "twice" in attention.steps:
        ratio = float((made := attention.softmax.weights).max() / made[made > 0].min())
        return Fault(
            "rows",
            ratio,
            "The softmax of a softmax mixes the values: its scores are weights, between 0 and 1, "
            f"so that no key can get more than e times the weight of another (here {ratio:.2g}).",
            (attention.softmax.line,),
            "weights = scores.softmax(dim=-1)  # once",
        )
    near = 2e-2 if attention.weights.dtype in (torch.float16, torch.bfloat16) else _NEAR
    off = ((sums - 1).abs() > near) & (sums.abs() > near)
    if not bool(off.any()) or {"part", "scaled"} & {*attention.steps}:
        return None
    worst = float(sums[off][(sums[off] - 1).abs().argmax()])
    if "log" in attention.steps:
        text = f"Logarithms of weights mix the values: the row of a query sums to {worst:.3g}."
        return Fault(
            "rows", worst, text, (attention.softmax.line,), "weights = scores.softmax(dim=-1)"
        )
    if "masked" in attention.steps:
        text = (
            f"After the softmax weights are masked, and the row of a query sums to {worst:.3g}: "
            "what the mask took is given to no other key."
        )
        return Fault("rows", worst, text, (attention.softmax.line, attention.line), _MASK_BEFORE)
    text = (
        f"The weights of a query sum to {worst:.3g}: the softmax runs over axis "
        f"{attention.softmax.axis} of {sizes(attention.softmax.weights.shape)}, and the keys are "
        "on another."
    )
    return Fault("rows", worst, text, (attention.softmax.line,), "weights = scores.softmax(dim=-1)")


_MASK_BEFORE = "weights = scores.masked_fill(~visible, float('-inf')).softmax(dim=-1)"


def _without_softmax(call: Call, traced: Traced, attention: Attention) -> Fault | None:
    origin = attention.origin
    if (
        origin is None
        or origin.product is None
        or origin.factor is None
        or attention.weights is None
    ):
        return None
    D, M = origin.product.query.shape[-1], origin.product.key.shape[-1]
    is_scaled = D > 1 and abs(origin.factor * sqrt(D) - 1) < 0.01
    subject = "Scaled scores" if is_scaled and not origin.steps else ""
    if attention.exponential is not None and attention.exponential not in traced.normalised:
        subject = "exp() of scores" if M in {call.length(s.tensor) for s in call.content} else ""
    if not subject:
        return None
    sums = attention.weights.sum(-1).flatten()
    worst = float(sums[(sums - 1).abs().argmax()])
    return Fault(
        "rows",
        worst,
        f"{subject} mix the values without a softmax: the row of a query sums to {worst:.3g}.",
        (origin.product.line, attention.line),
        "weights = scores.softmax(dim=-1)",
    )


def _returned_rows(call: Call) -> Iterator[Fault]:
    """Returned weights whose columns sum to one, and whose rows do not."""
    for tensor in call.base.tensors:
        if tensor is call.base.out or not tensor.is_floating_point() or tensor.dim() < 2:
            continue
        N, M = tensor.shape[-2:]
        if min(N, M) < 2 or bool((tensor < 0).any()) or not bool(tensor.isfinite().all()):
            continue
        by_row, by_column = tensor.sum(-1).detach(), tensor.sum(-2).detach()
        if _is_one(by_column) and not _is_one(by_row):
            worst = float(by_row.flatten()[(by_row.flatten() - 1).abs().argmax()])
            yield Fault(
                "rows",
                worst,
                f"Returned weights sum to one over the queries, and to {worst:.3g} over the keys.",
                (),
                "weights = scores.softmax(dim=-1)",
            )
            return


def _is_one(sums: Tensor) -> bool:
    return bool((sums - 1).abs().max() < _NEAR)


def weights(call: Call, traced: Traced, notes: list[str]) -> Iterator[Fault]:
    """Returned weights that are not those that mixed the values."""
    yield from _no_weights(call, traced)
    used = [
        (attention, made)
        for attention in traced.attentions
        if (made := _weights_of(attention)) is not None
    ]
    if not used or len(used) < len(traced.attentions):
        return
    for tensor in call.base.tensors:
        if tensor is call.base.out or not tensor.is_floating_point() or tensor.dim() < 2:
            continue
        returned = tensor.detach().float()
        alike = [(e, w) for e, w in used if w.shape[-2:] == returned.shape[-2:]]
        mean = call.batch * prod(returned.shape[-2:])  # over heads
        alike = [(e, w) for e, w in alike if returned.numel() in (w.numel(), mean)]
        if not alike or bool(((returned == 0) | (returned == 1)).all()):
            continue
        if any(_is_one_of(returned, w, call.batch) for _, w in alike):
            continue
        attention, made = alike[0]
        scores = attention.softmax.scores.float() if attention.softmax is not None else made
        is_scores = scores is not made and _is_one_of(returned, scores, call.batch)
        is_weights = bool((returned >= 0).all()) and bool((returned <= 1 + _NEAR).all())
        if is_scores or is_weights:
            off = _distance(returned, made, call.batch)
            difference = (
                "they are the scores before the softmax"
                if is_scores
                else (f"they differ by up to {off:.2g}")
            )
            yield Fault(
                "weights",
                off,
                f"The weights that are returned are not those that mixed the values: {difference}.",
                (attention.line,),
                "return weights @ value, weights",
            )
            return


_NAMED = re.compile(r"^(attns?|attentions?|(attn_|attention_)?weights|alphas?)$")


def _no_weights(call: Call, traced: Traced) -> Iterator[Fault]:
    """Find an output under the name of attention weights that has not their shape."""
    function = call.given.forward if isinstance(call.given, nn.Module) else call.given
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return
    returns = [node.value for node in ast.walk(tree) if isinstance(node, ast.Return)]
    names = [
        part.id
        for value in returns
        if isinstance(value, ast.Tuple)
        for part in value.elts[1:]
        if isinstance(part, ast.Name) and _NAMED.match(part.id)
    ]
    made = {_pairs_of(attention) for attention in traced.attentions} - {None}
    outs = [
        tensor for tensor in call.base.tensors if tensor is not call.base.out and tensor.dim() > 2
    ]
    outs = [tensor for tensor in outs if tensor.is_floating_point()]
    if names and made and outs and not any(tuple(tensor.shape[-2:]) in made for tensor in outs):
        yield Fault(
            "weights",
            float(outs[0].shape[-1]),
            f"What is returned as {names[0]!r} has the shape {sizes(outs[0].shape)}, and weights "
            f"are {' or '.join(sorted(sizes(pair) for pair in made if pair))}: it holds states.",
            (),
            "context, weights = self.attention(x, x, x)  # the second is the weights",
        )


def _pairs_of(attention: Attention) -> tuple[int, int] | None:
    product = attention.origin.product if attention.origin is not None else None
    if product is not None:
        return product.query.shape[-2], product.key.shape[-1]
    return None if attention.softmax is None else tuple(attention.softmax.weights.shape[-2:])  # type: ignore[return-value]


def _weights_of(attention: Attention) -> Tensor | None:
    """The weights of an attention, as they were used or as its arguments make them."""
    if attention.kind == "softmax" and attention.weights is not None:
        return attention.weights.float()
    if attention.kind != "fused" or attention.origin is None or attention.origin.product is None:
        return None
    product = attention.origin.product
    scores = (product.query @ product.key).float() * product.factor
    if attention.mask is not None:
        hidden = ~attention.mask if attention.mask.dtype == torch.bool else None
        scores = (
            scores + attention.mask if hidden is None else scores.masked_fill(hidden, -torch.inf)
        )
    if attention.is_causal:
        scores = scores.masked_fill(torch.ones_like(scores).triu(1) > 0, -torch.inf)
    return scores.softmax(-1)


def _forms(made: Tensor, batch: int) -> list[Tensor]:
    """The used weights in the shapes that they are returned in: by head, or as a mean of heads."""
    N, M = made.shape[-2:]
    flat = made.reshape(-1, N, M)
    forms = [flat]
    if len(flat) % batch == 0:
        by_head = flat.view(batch, -1, N, M)
        outer = flat.view(-1, batch, N, M)
        forms += [by_head.mean(1), outer.mean(0), outer.transpose(0, 1).reshape(-1, N, M)]
        forms += [by_head.transpose(0, 1).reshape(-1, N, M), by_head.sum(1)]
    return forms


def _is_one_of(returned: Tensor, made: Tensor, batch: int) -> bool:
    flat = returned.reshape(-1, *returned.shape[-2:])
    return any(
        form.shape == flat.shape and torch.allclose(form, flat, atol=1e-3)
        for form in _forms(made, batch)
    )


def _distance(returned: Tensor, made: Tensor, batch: int) -> float:
    flat = returned.reshape(-1, *returned.shape[-2:])
    alike = [form for form in _forms(made, batch) if form.shape == flat.shape]
    return min((float((form - flat).abs().max()) for form in alike), default=1.0)
