"""Queries and keys of heads for a page, which shows the dimensions that make a score."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from regard.attention import ScaledDot
from regard.attention.engine.blocks import whole_scores
from regard.attention.engine.gradients import inputs_of
from regard.errors import SettingError
from regard.interop.attribution.decomposition import is_product, scale_of
from regard.interop.record import Watched
from regard.tasks.drawing import CrossAttention, TextPart
from regard.viewer import Example, HeadVectors, pack

MOST_BYTES = 1_500_000  # of a page

HeadNumber = tuple[int, int]  # layer and head


def vectors_of(
    seen: Sequence[Watched],
    example: Example,
    wanted: Sequence[HeadNumber] | None,
    part: CrossAttention | None = None,
) -> tuple[HeadVectors, ...]:
    """Queries and keys of an example's heads, or the wanted ones; none where all are too many."""
    heads = {(one.kind, one.layer, one.head) for one in example.maps}
    heads |= {(one.kind, one.layer, head) for one in example.summaries for head in one.heads}
    if wanted is None and sum(map(_least_bytes, seen)) > MOST_BYTES:
        return ()
    made = tuple(
        vectors
        for one in seen
        for vectors in _of_layer(one, part, wanted)
        if (vectors.kind, vectors.layer, vectors.head) in heads
    )
    there = {(vectors.layer, vectors.head) for vectors in made}
    missing = [f"{layer}.{head}" for layer, head in wanted or () if (layer, head) not in there]
    if missing and part is None:  # of two texts, each has layers of its own
        raise SettingError(
            "neurons must name heads LAYER.HEAD, from 0, whose scores are products of a query and "
            f"a key; got {', '.join(missing)}."
        )
    return made


def fitting(
    examples: Sequence[Example], wanted: Sequence[HeadNumber] | None
) -> tuple[Example, ...]:
    """Examples whose vectors fit a page, in 32 bits or 16; without any where they do not."""
    for bits in (32, 16):
        examples = [
            replace(example, vectors=tuple(_in_bits(one, bits) for one in example.vectors))
            for example in examples
        ]
        vectors = [one for example in examples for one in example.vectors]
        size = sum(len(array.data) for one in vectors for array in one.arrays().values())
        if size <= MOST_BYTES:
            return tuple(examples)
    if wanted is not None:
        raise SettingError(
            f"neurons must name heads whose queries and keys take at most {MOST_BYTES / 1e6} MB in "
            f"a page; got {len(vectors)}, which take {size / 1e6:.1f} MB. Name fewer of them."
        )
    return tuple(replace(example, vectors=()) for example in examples)


def _in_bits(vectors: HeadVectors, bits: int) -> HeadVectors:
    arrays = vectors.arrays().items()
    packed = {name: pack(array.values(), bits=bits) for name, array in arrays if array.bits != bits}
    return replace(vectors, **packed)  # type: ignore[arg-type]


def _least_bytes(one: Watched) -> float:
    """Bytes of all heads in 16 bits, written in base 64, but for a bias."""
    if one.attention is None:
        return 0
    query, key = one.attention.query, one.attention.key
    return len(one.heads) * (query.shape[-2] + key.shape[-2]) * query.shape[-1] * 2 * 4 / 3


@torch.no_grad()
def _of_layer(
    one: Watched, part: CrossAttention | None, wanted: Sequence[HeadNumber] | None
) -> Iterator[HeadVectors]:
    heads = [head for head in one.heads if wanted is None or (one.layer, head) in wanted]
    call = one.attention
    if call is None or not heads or not is_product(call):
        return
    if part is not None and call.query.shape[-2] == 1:  # a pooling
        return
    request = call.request()
    query, key = request.query[0], request.key[0]
    key = key.repeat_interleave(len(query) // len(key), dim=0)
    arrays = {"query": query, "key": key}
    if request.bias is not None or request.position is not None:
        bias = whole_scores(request, inputs_of(request))[0] - call.score.tile(query, key)
        arrays["bias"] = bias.nan_to_num(0.0, 0.0, 0.0)  # infinite where it hides a key
    softcap = call.score.softcap if isinstance(call.score, ScaledDot) else None
    for kind, queries, keys in _sides(one, part):
        of_tokens = arrays
        if queries is not None and keys is not None:
            of_tokens = {
                "query": _of_tokens(query, queries, -2),
                "key": _of_tokens(key, keys, -2),
            }
            if "bias" in arrays:
                rows = _of_tokens(arrays["bias"], queries, -2)
                of_tokens["bias"] = _of_tokens(rows, keys, -1)
        packed = {name: tensor.double().cpu() for name, tensor in of_tokens.items()}
        for head in heads:
            yield HeadVectors(
                kind=kind,  # type: ignore[arg-type]
                layer=one.layer,
                head=head,
                **{name: pack(tensor[head], bits=32) for name, tensor in packed.items()},
                scale=scale_of(call),
                softcap=softcap,
            )


# A kind of attention on a page, and the texts of queries and of keys, where these are parts.
_Side = tuple[str, TextPart | None, TextPart | None]


def _sides(one: Watched, part: CrossAttention | None) -> list[_Side]:
    """Attention of a layer as a page has it."""
    if part is None:
        return [(one.kind, None, None)]
    if one.kind != part.kind or (part.layers is not None and one.layer not in part.layers):
        return []
    sides: list[_Side] = [("cross", part.queries, part.keys)]
    if one.kind == "encoder":
        sides.append(("encoder", part.keys, part.keys))
    return sides


def _of_tokens(tensor: Tensor, part: TextPart, axis: int) -> Tensor:
    """Select the values of a text's tokens from those of a model's row; zero of unread."""
    tensor = tensor.movedim(axis, 0)
    of_tokens = tensor.new_zeros(len(part.text.tokens), *tensor.shape[1:])
    of_tokens[part.tokens] = tensor[part.in_row]
    return of_tokens.movedim(0, axis)
