"""Position encodings, which tell equal words at different positions apart.

Added to the states (sinusoidal, learned), turning queries and keys (rotary), or added to scores
(relative, Shaw; ``regard.attention.alibi`` learns nothing and needs no layer).
"""

from math import log

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.biases import PositionBias, relative, shaw
from regard.attention.graph.formula import is_exporting
from regard.checks import check_count, check_flag, check_positive, choose
from regard.errors import SettingError, ShapeError


def sinusoidal(
    positions: Int[Tensor, " N"],
    model_dim: int,
    *,
    base: float = 10000.0,
    dtype: torch.dtype = torch.float32,
) -> Float[Tensor, "N C"]:
    """Sines and cosines of each position, from fast to slow.

    ``PE(p, 2i) = sin(p / 10000^(2i/C))`` and ``PE(p, 2i+1) = cos(p / 10000^(2i/C))``: Vaswani et
    al. (2017), section 3.5. Worked out in float64, since float32 angles are wrong at p = 10^6.

    Args:
        positions: The positions p, from 0.
        model_dim: C; an odd width leaves out the last cosine.
        base: The 10000 of the formula; larger has slower waves.
        dtype: Of the result.

    Example:
        >>> sinusoidal(torch.arange(3), 4)
        tensor([[ 0.0000,  1.0000,  0.0000,  1.0000],
                [ 0.8415,  0.5403,  0.0100,  0.9999],
                [ 0.9093, -0.4161,  0.0200,  0.9998]])
    """
    check_count("model_dim", model_dim)
    check_positive("base", base)
    if not isinstance(positions, Tensor):
        raise ShapeError(f"positions must be a tensor; got {type(positions).__name__}.")
    even = torch.arange(0, model_dim, 2, dtype=torch.float64, device=positions.device)
    angles = positions.double()[:, None] * torch.exp(even * (-log(base) / model_dim))
    waves = torch.stack((angles.sin(), angles.cos()), dim=-1)  # (N, C/2, 2)
    return waves.flatten(1)[:, :model_dim].to(dtype)


class SinusoidalPositions(nn.Module):
    """Adds ``sinusoidal`` positions; nothing is learned, and any length will do.

    Args:
        model_dim: Width of the states, C.
        max_length: Positions worked out beforehand; later ones are worked out each time.

    Raises:
        SettingError: ``model_dim`` is not positive.

    Example:
        >>> layer = SinusoidalPositions(4)
        >>> layer(torch.zeros(2, 4), first=1)  # positions 1 and 2
        tensor([[ 0.8415,  0.5403,  0.0100,  0.9999],
                [ 0.9093, -0.4161,  0.0200,  0.9998]])
    """

    table: Tensor

    def __init__(self, model_dim: int, *, max_length: int = 1024) -> None:
        super().__init__()
        check_count("max_length", max_length)
        table = sinusoidal(torch.arange(max_length), model_dim)
        self.register_buffer("table", table, persistent=False)

    def forward(
        self, states: Float[Tensor, "*batch N C"], *, first: int | Int[Tensor, " R"] = 0
    ) -> Float[Tensor, "*batch N C"]:
        """The states with their positions added.

        Args:
            states: One vector per position.
            first: The position of the first of them; one for each row where they differ. Positions
                below 0, before a row begins, are taken for 0.
        """
        N = states.shape[-2]
        # An exported program is for all lengths, of which none is known.
        is_in_table = not is_exporting() and _end(first, N) <= self.table.shape[0]
        if isinstance(first, int) and is_in_table:
            return states + self.table[first : first + N].to(states.dtype)
        positions = _positions(first, N, states.device)
        if is_in_table:
            rows = self.table[positions]
        else:
            flat = sinusoidal(positions.flatten(), self.table.shape[1])
            rows = flat.view(*positions.shape, -1)
        return states + rows.to(states.dtype)


class LearnedPositions(nn.Module):
    """Adds a learned vector for each position, up to a fixed length.

    Args:
        model_dim: Width of the states, C.
        max_length: How many positions there are.

    Raises:
        SettingError: ``max_length`` is not positive.

    Example:
        >>> layer = LearnedPositions(4, max_length=3)
        >>> out = layer(torch.zeros(1, 2, 4), first=1)  # positions 1 and 2
        >>> torch.equal(out[0], layer.table[1:])
        True
        >>> layer(torch.zeros(1, 2, 4), first=2)
        Traceback (most recent call last):
        regard.errors.ShapeError: positions must be at most max_length=3; got 4. Sinusoidal positions have no such limit.
    """  # noqa: E501

    def __init__(self, model_dim: int, *, max_length: int) -> None:
        super().__init__()
        check_count("model_dim", model_dim)
        check_count("max_length", max_length)
        self.table = nn.Parameter(torch.empty(max_length, model_dim))
        nn.init.normal_(self.table, std=model_dim**-0.5)

    def forward(
        self, states: Float[Tensor, "*batch N C"], *, first: int | Int[Tensor, " R"] = 0
    ) -> Float[Tensor, "*batch N C"]:
        """The states with their positions added; see :meth:`SinusoidalPositions.forward`.

        Raises:
            ShapeError: A position lies beyond ``max_length``.
        """
        if not isinstance(first, Tensor):
            check_count("first", first, 0)
        N = states.shape[-2]
        # The numbers in a program's inputs cannot be read while it is exported, only their sizes.
        is_open = isinstance(first, Tensor) and is_exporting()
        if not is_open and (last := _end(first, N)) > self.table.shape[0]:
            raise ShapeError(
                f"positions must be at most max_length={self.table.shape[0]}; got {last}. "
                "Sinusoidal positions have no such limit."
            )
        if not isinstance(first, Tensor):
            return states + self.table[first : first + N].to(states.dtype)
        return states + self.table[_positions(first, N, states.device)].to(states.dtype)


def added_positions(
    name: str, model_dim: int, *, max_length: int
) -> SinusoidalPositions | LearnedPositions | None:
    """Position embedding to add where a config says ``sinusoidal`` or ``learned``; else None."""
    if name == "learned":
        return LearnedPositions(model_dim, max_length=max_length)
    return SinusoidalPositions(model_dim) if name == "sinusoidal" else None


def turned_positions(
    name: str, head_dim: int, *, base: float = 10_000.0
) -> "RotaryPositions | None":
    """Rotation of queries and keys where a config says ``rotary``; else None."""
    return RotaryPositions(head_dim, base=base) if name == "rotary" else None


def _end(first: int | Tensor, count: int) -> int:
    """The position after the last of ``count`` states from ``first`` on, of any row."""
    return count + (int(first.max()) if isinstance(first, Tensor) else first)


def _positions(first: int | Tensor, count: int, device: torch.device) -> Tensor:
    """The positions of ``count`` states from ``first`` on: (N,), or (R, N) where rows differ."""
    ahead = torch.arange(count, device=device)
    return (first[:, None] + ahead).clamp(min=0) if isinstance(first, Tensor) else ahead + first


# A head's components as a table of pairs, and the axis along which the two of a pair lie.
PAIRS = {"interleaved": ((-1, 2), -1), "halves": ((2, -1), -2)}


class RotaryPositions(nn.Module):
    """Turns queries and keys by an angle that grows with their position; nothing is learned.

    Pair i of a vector at position m turns by ``m / base^(2i/D)``: the rotary embedding of Su et al.
    (2021), https://arxiv.org/abs/2104.09864, equation 34. The dot product of a query and a key
    that are turned depends on their distance alone, and any length will do.

    Which two components make pair i differs between implementations, and weights trained with one
    way are wrong with the other. ``interleaved``: 2i and 2i + 1, as in the paper, RoFormer and
    GPT-J. ``halves``: i and i + D/2, as in GPT-NeoX and most of Hugging Face's models.

    Args:
        head_dim: Width of a query or key in a head, D; even.
        base: The 10000 of the paper; larger turns more slowly, for long contexts.
        pairs: "interleaved" or "halves".
        max_length: Angles worked out beforehand; later ones are worked out each time.

    Raises:
        SettingError: ``head_dim`` is odd, or ``base`` or ``pairs`` is out of range.

    Example:
        >>> rotary = RotaryPositions(head_dim=4)
        >>> query, key = torch.ones(1, 1, 5, 4), torch.ones(1, 1, 5, 4)
        >>> scores = rotary(query) @ rotary(key).mT
        >>> bool(scores[0, 0, 3, 1].isclose(scores[0, 0, 4, 2]))
        True
    """

    table: Tensor

    def __init__(
        self,
        head_dim: int,
        *,
        base: float = 10000.0,
        pairs: str = "interleaved",
        max_length: int = 1024,
    ) -> None:
        super().__init__()
        check_count("head_dim", head_dim)
        check_positive("base", base)
        check_count("max_length", max_length, 0)
        if head_dim % 2:
            raise SettingError(
                f"head_dim must be even for rotary positions, which turn pairs; got {head_dim}."
            )
        self.head_dim = head_dim
        self.base = base
        self.pairs = pairs
        self._table_shape, self._axis = choose("pairs", pairs, PAIRS)
        # As integers, the same bits: casting the model to half precision must not round them.
        table = sinusoidal(torch.arange(max_length), head_dim, base=base).view(torch.int32)
        self.register_buffer("table", table, persistent=False)

    def forward(
        self, heads: Float[Tensor, "*batch N D"], *, first: int = 0
    ) -> Float[Tensor, "*batch N D"]:
        """Queries or keys turned by their positions; in float32 at least, whatever their dtype.

        Args:
            heads: One vector per position.
            first: The position of the first of them.

        Raises:
            ShapeError: They are not ``head_dim`` wide.
        """
        check_count("first", first, 0)
        if heads.shape[-1] != self.head_dim:
            raise ShapeError(
                f"heads must be head_dim={self.head_dim} wide; got {tuple(heads.shape)}."
            )
        wide = torch.promote_types(heads.dtype, torch.float32)
        sines, cosines = self._waves(first, first + heads.shape[-2], heads.device, wide)
        in_pairs: Tensor = heads.to(wide).unflatten(-1, self._table_shape)  # type: ignore[no-untyped-call]
        first_parts, second_parts = in_pairs.unbind(self._axis)
        turned = (
            first_parts * cosines - second_parts * sines,
            second_parts * cosines + first_parts * sines,
        )
        return torch.stack(turned, dim=self._axis).flatten(-2).to(heads.dtype)

    def extra_repr(self) -> str:
        return f"{self.head_dim}, base={self.base:g}, pairs={self.pairs}"

    def _waves(
        self, first: int, last: int, device: torch.device, dtype: torch.dtype
    ) -> tuple[Tensor, Tensor]:
        """Sines and cosines of the angles, one of each for a pair."""
        is_in_table = not is_exporting() and last <= len(self.table)
        if is_in_table and dtype == torch.float32:
            rows = self.table[first:last].view(dtype)
        else:
            positions = torch.arange(first, last, device=device)
            rows = sinusoidal(positions, self.head_dim, base=self.base, dtype=dtype)
        return rows[:, ::2], rows[:, 1::2]


class RelativePositions(nn.Module):
    """A learned number for each bucket of distances and head, to be added to scores: T5.

    Raffel et al. (2020), https://arxiv.org/abs/1910.10683; see ``regard.attention.relative``. The
    layers of a model may share one. All distances are alike at first.

    Args:
        num_heads: Attention heads, H.
        num_buckets: Rows of the table; even where both directions count.
        max_distance: Where the last bucket begins, about.
        is_bidirectional: Whether keys after the query have buckets of their own.

    Raises:
        SettingError: There are too few buckets, or ``max_distance`` is not beyond those of a
            single distance.

    Example:
        >>> from regard.layers import MultiHeadAttention
        >>> layer, positions = MultiHeadAttention(8, 2), RelativePositions(2)
        >>> layer(torch.zeros(1, 5, 8), bias=positions())[0].shape
        torch.Size([1, 5, 8])
    """

    def __init__(
        self,
        num_heads: int,
        *,
        num_buckets: int = 32,
        max_distance: int = 128,
        is_bidirectional: bool = True,
    ) -> None:
        super().__init__()
        check_count("num_heads", num_heads)
        check_flag("is_bidirectional", is_bidirectional)
        sides = 2 if is_bidirectional else 1
        check_count("num_buckets", num_buckets, 2 * sides)
        if num_buckets % sides:
            raise SettingError(
                f"num_buckets must be even where both directions count; got {num_buckets}."
            )
        single = num_buckets // sides // 2
        check_count("max_distance", max_distance, single + 1)
        self.max_distance = max_distance
        self.is_bidirectional = is_bidirectional
        self.table = nn.Parameter(torch.zeros(num_buckets, num_heads))

    def forward(self, *, first: int | None = None) -> PositionBias:
        """The bias to pass to attention.

        Args:
            first: The position of query 0 among the keys. None aligns the last query with the last
                key, also behind a cache.
        """
        return relative(
            self.table,
            is_bidirectional=self.is_bidirectional,
            max_distance=self.max_distance,
            first=first,
        )


class ShawPositions(nn.Module):
    """A learned vector for each distance, matched with queries and added to values.

    Shaw et al. (2018), https://arxiv.org/abs/1803.02155, equations 3 and 4; see
    ``regard.attention.shaw``. Heads share the vectors, as in the paper.

    Args:
        head_dim: Width of a query or key in a head, D.
        max_distance: The largest distance k told apart; those beyond are taken for it.
        value_head_dim: Width of a value in a head, E. None is ``head_dim``.
        has_values: Whether values have vectors too; without them equation 3 is left out.

    Raises:
        SettingError: A size is not positive.

    Example:
        >>> from regard.layers import MultiHeadAttention
        >>> layer, positions = MultiHeadAttention(8, 2), ShawPositions(4, max_distance=3)
        >>> layer(torch.zeros(1, 5, 8), bias=positions())[0].shape
        torch.Size([1, 5, 8])
    """

    def __init__(
        self,
        head_dim: int,
        *,
        max_distance: int,
        value_head_dim: int | None = None,
        has_values: bool = True,
    ) -> None:
        super().__init__()
        value_head_dim = head_dim if value_head_dim is None else value_head_dim
        check_count("head_dim", head_dim)
        check_count("value_head_dim", value_head_dim)
        check_count("max_distance", max_distance)
        rows = 2 * max_distance + 1
        self.key_table = nn.Parameter(torch.empty(rows, head_dim))
        nn.init.xavier_uniform_(self.key_table)
        self.value_table: nn.Parameter | None = None
        if has_values:
            self.value_table = nn.Parameter(torch.empty(rows, value_head_dim))
            nn.init.xavier_uniform_(self.value_table)

    def forward(self, *, first: int | None = None) -> PositionBias:
        """The bias to pass to attention; see :class:`RelativePositions`."""
        return shaw(self.key_table, self.value_table, first=first)
