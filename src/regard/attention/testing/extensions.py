"""Checks for scores and masks of one's own, by the standards of the built-in ones."""

from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from itertools import product

import torch
from torch import Tensor
from torch.autograd import gradcheck
from torch.utils._python_dispatch import TorchDispatchMode

from regard.attention.attend import attend
from regard.attention.masks.base import Mask, dense
from regard.attention.masks.bound import BoundMask
from regard.attention.masks.grid import Cover, KeyRanges, as_tensor
from regard.attention.reference import attend_by_loops
from regard.attention.scores import Score
from regard.attention.testing.report import CheckError

# All different and prime, so that exchanged axes cannot pass.
_B, _H, _N, _M, _E = 2, 3, 5, 7, 13
_LONG = 1031


def check(
    thing: Score | Mask,
    *,
    sizes: tuple[int, int, int, int] = (_B, _H, _N, _M),
    dim: int = 11,
    key_dim: int | None = None,
) -> None:
    """Raise unless a custom score or mask keeps the laws that the engine relies on.

    A score is compared with itself, pair by pair in float64 loops; its gradients with finite
    differences, and those of its learned tensors with autograd's; queries that see nothing get
    zeros; and over long sequences no tensor of N×M elements is made. A mask is compared with its own dense tensor, tile by tile, and attention
    under the one with attention under the other.

    Args:
        thing: The score or mask.
        sizes: B, H, N and M that it can serve, such as a mask with lengths needs.
        dim: Width of the queries that a score can serve.
        key_dim: Width of the keys; None is as wide as the queries.

    Raises:
        CheckError: The message says which property does not hold.

    Example:
        >>> from regard.attention import Custom, window
        >>> check(Custom(lambda q, k: -(q.unsqueeze(-2) - k.unsqueeze(-3)).abs().sum(-1)))
        >>> check(window(before=2, after=1))
        >>> check(Custom(lambda q, k: (q @ k.mT).softmax(-1)))
        Traceback (most recent call last):
        regard.attention.testing.report.CheckError: score must give a pair the same number in any company; ...
    """  # noqa: E501
    generator = torch.Generator().manual_seed(0)
    if isinstance(thing, Mask):
        _check_mask(thing, sizes, dim, generator)
    else:
        _check_score(thing, sizes, (dim, key_dim or dim), generator)


def _check_score(
    score: Score,
    sizes: tuple[int, int, int, int],
    widths: tuple[int, int],
    generator: torch.Generator,
) -> None:
    B, H, N, M = sizes

    def made(positions: int, width: int, *, batch: int = B) -> Tensor:
        shape = (batch, H, positions, width)
        return torch.randn(shape, dtype=torch.float64, generator=generator)

    query, key, value = made(N, widths[0]), made(M, widths[1]), made(M, _E)
    tensors = tuple(tensor.detach().double() for tensor in score.tensors())

    def pair(head: int) -> Callable[[Tensor, Tensor], Tensor]:
        def of(q: Tensor, k: Tensor) -> Tensor:
            tile = score.tile(q.expand(1, H, 1, -1), k.expand(1, H, 1, -1), *tensors)
            return tile[0, head, 0, 0]

        return of

    tile = score.tile(query, key, *tensors)
    _demand(tile.shape == sizes, f"score.tile must have shape {sizes}; got {tuple(tile.shape)}.")
    every = product(*map(range, sizes))
    numbers = [pair(h)(query[b, h, n], key[b, h, m]) for b, h, n, m in every]
    alone = torch.stack(numbers).view(sizes)
    _demand(
        _close(tile, alone),
        "score must give a pair the same number in any company; "
        f"got up to {_distance(tile, alone):.2g} of difference. Let it look at no other pair.",
    )
    _check_claims(score, query, key, tensors, tile)
    answer = attend_by_loops(query, key, value, pair).context
    for backend in (None, "tiled"):
        out = attend(query, key, value, score=score, backend=backend)
        _demand(
            _close(out, answer),
            "score.as_dot must be the same as score.tile, up to a number for each query; "
            f"got {_distance(out, answer):.2g} of difference.",
        )
    _check_gradients(score, query, key, value)
    _check_tensors(score, query, key, value)
    mask = dense(torch.arange(N)[:, None] % 2 == torch.zeros(M, dtype=torch.long))
    out = attend(query.requires_grad_(), key, value, score=score, mask=mask)
    (grad,) = torch.autograd.grad(out.sum(), query)
    _demand(
        bool(out[:, :, 1::2].eq(0).all()) and bool(grad[:, :, 1::2].eq(0).all()),
        "a query that sees nothing must get zeros and zero gradients; got others.",
    )
    _check_memory(score, made(_LONG, widths[0], batch=1), made(_LONG, widths[1], batch=1))


def _check_claims(
    score: Score, query: Tensor, key: Tensor, tensors: tuple[Tensor, ...], tile: Tensor
) -> None:
    if score.has_like_heads and not tensors:
        part = score.tile(query[:, 1:], key[:, 1:])
        _demand(
            _close(part, tile[:, 1:]),
            "score.has_like_heads must be said only where a tile may hold a part of the heads; "
            f"got {_distance(part, tile[:, 1:]):.2g} of difference. Leave it out.",
        )
    form = score.as_dot(query, key) if score.is_dot_product else None
    if form is not None:
        product = form.scale * form.query @ form.key.mT
        _demand(
            _close(product, tile),
            "score.is_dot_product must be said only where as_dot is the score itself; "
            f"got {_distance(product, tile):.2g} of difference. Leave it out.",
        )


def _check_gradients(score: Score, query: Tensor, key: Tensor, value: Tensor) -> None:
    inputs = [t.detach().requires_grad_() for t in (query, key, value)]
    try:
        is_right = gradcheck(
            lambda *three: attend(*three, score=score), inputs, fast_mode=True, raise_exception=True
        )
    except RuntimeError as error:
        raise CheckError(
            f"score.tile must be differentiable by autograd; its gradients are off: {error}"
        ) from error
    _demand(is_right, "score.tile must be differentiable by autograd.")


def _check_tensors(score: Score, query: Tensor, key: Tensor, value: Tensor) -> None:
    tensors = [tensor for tensor in score.tensors() if tensor.requires_grad]
    names = (
        [field.name for field in fields(score)]
        if is_dataclass(score)
        else list(getattr(score, "__dict__", ()))
    )
    held = [getattr(score, name) for name in names]
    learned = [
        attribute for attribute in held if isinstance(attribute, Tensor) and attribute.requires_grad
    ]
    _demand(
        {id(tensor) for tensor in learned} <= {id(tensor) for tensor in tensors},
        "score.tensors must list every tensor that needs a gradient; got "
        f"{len(tensors)} of {len(learned)}. Return them there, and use what tile is passed.",
    )
    if not tensors:
        return

    def gradients(out: Tensor) -> tuple[Tensor, ...]:
        return torch.autograd.grad(out.square().sum(), tensors, materialize_grads=True)

    tile = score.tile(query, key, *(tensor.double() for tensor in score.tensors()))
    wanted = gradients(tile.softmax(-1) @ value)
    for backend in (None, "tiled"):
        given = gradients(attend(query, key, value, score=score, backend=backend))
        _demand(
            all(
                torch.allclose(actual, expected, atol=1e-4, rtol=1e-4)
                for actual, expected in zip(given, wanted, strict=True)
            ),
            "score.tile must use the tensors that it is passed, not those of self; "
            "got gradients of tensors() that are lost or off.",
        )


def _check_memory(score: Score, query: Tensor, key: Tensor) -> None:
    query.requires_grad_()
    with _Largest() as largest:  # type: ignore[no-untyped-call]
        scores = score.tile(query, key, *(t.to(query.dtype) for t in score.tensors()))
        torch.autograd.grad(scores.sum(), query)
    held = largest.numel / scores.numel()
    claimed = score.floats_per_pair(query.shape[-1])
    _demand(
        held < 2 * claimed,
        f"score.floats_per_pair must say how many numbers a pair takes; got {claimed}, but a tile "
        f"took about {held:.0f}. Raise it, so that tiles are cut smaller.",
    )


def _check_mask(
    mask: Mask, sizes: tuple[int, int, int, int], dim: int, generator: torch.Generator
) -> None:
    B, H, N, M = sizes
    bound = mask.bind(B, H, N, M)
    whole = bound.dense().expand(sizes)
    wide = mask.extent(bound.grid)
    _demand(
        all(
            have in (1, most)
            for have, most in zip(reversed(bound.dense().shape), reversed(wide), strict=False)
        ),
        f"mask.extent must be the shape of the dense mask at most; got {wide} "
        f"for {tuple(bound.dense().shape)}.",
    )
    for rows, keys in _tiles(N, M):
        part = whole[:, :, rows.start : rows.stop, keys.start : keys.stop]
        tile = as_tensor(mask.tile(bound.grid, rows, keys), bound.grid)
        _demand(
            torch.equal(tile.expand(part.shape), part),
            f"mask must answer for a tile as for the whole; it does not for queries {rows} "
            f"and keys {keys}.",
        )
        cover = mask.cover(bound.grid, rows, keys)
        _demand(
            cover is None or bool((part == (cover is Cover.ALL)).all()),
            f"mask.cover must be true of every pair; it is not for queries {rows}, keys {keys}.",
        )
    _check_form(bound, whole)
    query, key = (
        torch.randn(B, H, length, dim, dtype=torch.float64, generator=generator)
        for length in (N, M)
    )
    for backend in (None, "tiled"):
        out = attend(query, key, mask=mask, backend=backend)
        want = attend(query, key, mask=dense(whole), backend="tiled")
        _demand(_close(out, want), "attention under the mask must be that under its dense tensor.")


def _check_form(bound: BoundMask, whole: Tensor) -> None:
    form = bound.form
    if form is None:
        return
    N, M = whole.shape[-2:]
    first, stop = (limit[:, None, :, None] for limit in KeyRanges.of(form, N, M, whole.device))
    keys = torch.arange(M)
    inside = ((keys >= first) & (keys < stop)).expand(whole.shape)
    _demand(not bool((whole & ~inside).any()), "mask.form must hold every visible pair.")
    _demand(
        not form.is_exact or torch.equal(whole, inside),
        "mask.form must say is_exact only where all of it is visible.",
    )


def _tiles(queries: int, keys: int) -> list[tuple[range, range]]:
    rows = [range(a, b) for a in range(queries) for b in range(a + 1, queries + 1)]
    columns = [range(a, b) for a in range(keys) for b in range(a + 1, keys + 1)]
    return [(r, c) for r in rows for c in columns]


def _close(actual: Tensor, expected: Tensor) -> bool:
    return torch.allclose(actual, expected, atol=1e-7, rtol=1e-7, equal_nan=True)


def _distance(actual: Tensor, expected: Tensor) -> float:
    return float((actual - expected).detach().nan_to_num().abs().max())


def _demand(holds: bool, message: str) -> None:
    if not holds:
        raise CheckError(message)


class _Largest(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Remembers how many elements the largest tensor had that any operation made."""

    numel = 0

    def __torch_dispatch__(
        self,
        func: Callable[..., object],
        types: Sequence[type],
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        out = func(*args, **(kwargs or {}))
        made = out if isinstance(out, tuple | list) else [out]
        sizes = [tensor.numel() for tensor in made if isinstance(tensor, Tensor)]
        self.numel = max([self.numel, *sizes])
        return out
