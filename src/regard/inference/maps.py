"""From the calls of attention that a model made to the weights of each layer."""

from collections.abc import Iterable
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention import Seen, attend, observe
from regard.attention.observing import editing


def joined(calls: Iterable[Seen]) -> dict[tuple[str, int], Seen]:
    """One call for each kind and layer, with all its queries.

    A recurrent decoder calls once a token, always over the same keys and with a mask that says the
    same of every query; what differs is the bias, which holds weights that no softmax makes (see
    ``regard.layers.mix``). A Transformer calls once a layer.
    """
    found: dict[tuple[str, int], list[Seen]] = {}
    for seen in calls:
        found.setdefault((seen.kind, seen.layer), []).append(seen)
    return {place: _one_call(parts) for place, parts in found.items()}


def _one_call(parts: list[Seen]) -> Seen:
    first = parts[0]
    if len(parts) == 1:
        return first
    biases = [seen.bias for seen in parts if isinstance(seen.bias, Tensor)]
    return replace(
        first,
        query=torch.cat([seen.query for seen in parts], dim=-2),
        bias=torch.cat(biases, dim=-2) if biases else first.bias,
    )


def mean_weights(seen: Seen) -> Float[Tensor, "B N M"]:
    """The weights of a call, over its heads averaged.

    Weights are what attention makes of the identity, one value a key. That is the engine's own
    path: for an additive score ten times as fast as the matrix written out.
    """
    M = seen.key.shape[-2]
    identity = torch.eye(M, dtype=seen.query.dtype, device=seen.query.device)
    # Whoever watches or edits the model has nothing to do with this call.
    with observe(lambda seen: None), editing(lambda seen: None):
        found = attend(
            seen.query,
            seen.key,
            identity.expand(*seen.key.shape[:-1], M),
            score=seen.score,
            mask=seen.mask,
            bias=seen.bias,
            weighting=seen.weighting,
        )
    return found if found.dim() == 3 else found.mean(1)
