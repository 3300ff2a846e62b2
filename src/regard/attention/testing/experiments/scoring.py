"""Experiments on scores: their scale, and the memory that they take."""

from collections.abc import Iterator
from math import prod, sqrt

from torch import Tensor

from regard.attention.testing.call import Call
from regard.attention.testing.evidence import Attention, Product, Traced, sizes
from regard.attention.testing.report import Fault

_MANY = 1 << 20  # weights of a head, N×M, that are worth a fused kernel


def scale(call: Call, traced: Traced, notes: list[str]) -> Iterator[Fault]:
    """Scores that are divided by another number than the root of the width of a head."""
    for attention in traced.attentions:
        origin = attention.origin
        if origin is None or origin.product is None or origin.factor is None:
            continue
        product = origin.product
        D, f = product.query.shape[-1], origin.factor
        if attention.kind == "raw" or D == 1 or f == 0 or abs(f * sqrt(D) - 1) < 0.02:
            continue
        spread = float((product.query @ product.key).float().std()) * abs(f / product.prescale)
        named = "" if _has_norm_one(product) else _named_factor(call, product, f)
        lines = tuple(
            dict.fromkeys([product.line, *([attention.softmax.line] if attention.softmax else [])])
        )
        cure = "scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])"
        if named:
            yield Fault(
                "scale",
                f,
                f"Scores are multiplied by {f:.3g}, which is {named}; "
                f"1/√{D} = {D**-0.5:.3g} is that of heads of width {D}.",
                lines,
                cure,
            )
            return
        is_missing = abs(f - 1) < 0.01 and not _is_scaled(product)
        if is_missing and spread > (0.5 if product.is_projected else 1.5):
            yield Fault(
                "scale",
                f,
                f"Scores are not divided by √{D}: their standard deviation is {spread:.2g}, and "
                f"would be {spread / sqrt(D):.2g}.",
                lines,
                cure,
            )
            return
        notes.append(
            f"scale: scores are multiplied by {f:.3g}, not by 1/√{D} = {D**-0.5:.3g}; with a "
            f"standard deviation of {spread:.2g} that may be meant ({product.line})."
        )
        return


def _named_factor(call: Call, product: Product, f: float) -> str:
    """The wrong number that a factor is; nothing of one that is none of them."""
    D, N, M = product.query.shape[-1], product.query.shape[-2], product.key.shape[-1]
    widths = {slot.tensor.shape[-1] for slot in call.content if slot.role == "states"}
    heads = product.query.shape[:-2]
    widths |= {D * heads[-1]} if heads else set()
    widths |= {D * heads[0] // call.batch} if len(heads) == 1 else set()
    names = {
        f"1/√{C}, of the width of the model": C**-0.5 for C in sorted(widths) if C != D and C > 1
    }
    if heads:
        number = heads[-1] if len(heads) > 1 else heads[0] // call.batch
        names |= (
            {f"1/√{number}, of the number of heads": number**-0.5} if number not in (1, D) else {}
        )
    names[f"√{D}: multiplied, not divided"] = sqrt(D)
    names[f"1/{D}, without the root"] = 1 / D
    for length in {N, M} - {1, D}:
        names[f"1/√{length}, of the number of tokens"] = length**-0.5
    return next((name for name, value in names.items() if abs(f / value - 1) < 0.005), "")


def _norms(product: Product) -> tuple[Tensor, Tensor]:
    return product.query.float().norm(dim=-1), product.key.mT.float().norm(dim=-1)


def _has_norm_one(product: Product) -> bool:
    """Whether queries or keys are unit vectors, whose scale is a temperature."""
    return any(float((norm - 1).abs().max()) < 1e-2 for norm in _norms(product))


def _is_scaled(product: Product) -> bool:
    """Whether the factors themselves are small enough: normalised, or initialised so."""
    if _has_norm_one(product):
        return True
    D, norms = product.query.shape[-1], _norms(product)
    query_norm, key_norm = (float(norm.square().mean().sqrt()) for norm in norms)
    return min(query_norm, key_norm) < max(query_norm, key_norm) * float(D**-0.25)


def memory(call: Call, traced: Traced) -> Iterator[Fault]:
    """Tensors of all pairs of tokens that a layer can do without."""
    for shape, line in traced.outers:
        if len(shape) >= 3 and min(shape[-3:]) > 1:
            D = shape[-1]
            yield Fault(
                "memory",
                float(prod(shape)),
                f"A product over all pairs is written out before it is summed: {sizes(shape)}, "
                f"{prod(shape):,} numbers, where a matrix product takes {prod(shape) // D:,}.",
                (line,),
                "scores = query @ key.transpose(-2, -1)",
            )
            return
    for attention in traced.attentions:
        fault = _reordered(attention) or _thrown_away(call, attention)
        if fault is not None:
            yield fault
            return


def _reordered(attention: Attention) -> Fault | None:
    origin, made = attention.origin, attention.softmax
    if origin is None or origin.steps or origin.product is None:
        return None
    if attention.kind != "raw" and not (
        made is not None and made.is_by_hand and not attention.steps
    ):
        return None
    N, M = origin.product.query.shape[-2], origin.product.key.shape[-1]
    D = origin.product.query.shape[-1]
    if N < 2 or M < 2 or (origin.factor is not None and abs(origin.factor * sqrt(D) - 1) < 0.01):
        return None
    return Fault(
        "memory",
        float(N * M),
        f"Nothing stands between two products, so that their order is free: (query keyᵀ) value "
        f"makes {N}×{M} scores, query (keyᵀ value) makes {D}×{attention.shape[-1]}.",
        (origin.product.line, attention.line),
        "out = query @ (key.transpose(-2, -1) @ value)",
    )


def _thrown_away(call: Call, attention: Attention) -> Fault | None:
    made = attention.weights
    if attention.kind != "softmax" or made is None or made.dim() < 2:
        return None
    N, M = made.shape[-2:]
    if min(N, M) < 512 or any(t.shape[-2:] == (N, M) for t in call.base.tensors if t.dim() > 1):
        return None
    width = int((made > 0).sum(-1).max())
    if width * 8 <= M:
        text = f"A query sees at most {width} keys, and {N}×{M} weights are made for each head"
        cure = f"rg.attend(query, key, value, mask=rg.window(before={width - 1}))"
    elif N * M >= _MANY:
        text = f"{N}×{M} weights are made for each head and are not returned"
        cure = "F.scaled_dot_product_attention(query, key, value)  # or rg.attend(…)"
    else:
        return None
    size = made.numel() * made.element_size() / 2**20
    return Fault("memory", size, f"{text}: {size:,.0f} MiB.", (attention.line,), cure)
