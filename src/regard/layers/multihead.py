"""Multi-head attention of Vaswani et al. (2017), section 3.2.2."""

from itertools import accumulate, chain
from math import sqrt

from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention.attend import attend
from regard.attention.biases import PositionBias
from regard.attention.engine.options import refuse_options
from regard.attention.key_value_cache import KeyValueCache
from regard.attention.masks.base import Mask
from regard.attention.scores import ScaledDot, Score
from regard.checks import check_count, check_divides, check_fraction
from regard.errors import SettingError, ShapeError
from regard.layers.heads import PROJECTIONS, Packing, Part, cut, rename_torchs
from regard.layers.positions import RotaryPositions
from regard.layers.residual import dropout as drop

_SCALED_DOT = ScaledDot()


class MultiHeadAttention(nn.Module):
    """Attention in several heads, each on its own projection of the states.

    ``concat(head_1, ..., head_H) W^O`` with ``head_i = attend(x W_i^Q, m W_i^K, m W_i^V)``. Over
    its own states queries, keys and values come out of one matrix product; over a memory
    (``key_value_dim``), keys and values do; ``key_dim`` and ``value_dim`` are for keys and values
    of different inputs, with a product each.

    Fewer heads of keys than of queries, each shared by a group: Shazeer (2019),
    https://arxiv.org/abs/1911.02150, for one; Ainslie et al. (2023),
    https://arxiv.org/abs/2305.13245, for some. A cache is smaller by the same factor.

    Positions: ``rotary`` turns queries and keys; ``bias=`` of a call takes ``alibi()``, or the
    bias of ``RelativePositions`` and ``ShawPositions``.

    ``load_state_dict`` takes torch's ``nn.MultiheadAttention`` as well as its own. That torch adds
    a key of zeros (``add_zero_attn``) cannot be seen in one; ``from_torch`` refuses it.

    Args:
        model_dim: Width of the states and of the answer, C, and of all heads side by side.
        num_heads: Heads of queries, H; divides model_dim unless ``head_dim`` is given.
        num_key_heads: Heads of keys and values, G; divides H. None is H, 1 is multi-query.
        head_dim: Width of a query or key in a head, D. None is model_dim / H.
        value_head_dim: Width of a value in a head, E. None is ``head_dim``.
        query_dim: Width of the states where it is not model_dim.
        key_dim: Width of the inputs of keys. None is ``value_dim`` where that is given.
        value_dim: Width of the inputs of values. None is ``key_dim`` where that is given.
        key_value_dim: Width of a memory that both are made of. Where none of the three is given,
            attention is over the states themselves.
        output_dim: Width of the answer where it is not model_dim.
        bias: Whether the projections have biases.
        dropout: The fraction of attention weights set to zero in training.
        head_dropout: The fraction of heads left out for a query in training, Zhou et al. (2020),
            https://arxiv.org/abs/2004.13342: no head may rely on another to find the right key.
        score: How queries and keys of a head match; per head by tensors such as (H, 1). An
            ``nn.Parameter`` in it is trained, moved and saved with the layer.
        rotary: Turns queries and keys by their positions; in attention over the states themselves.
        **foreign: Options of other libraries; the error gives their names here.

    Raises:
        SettingError: Heads do not divide, a width is not positive, widths contradict each other, a
            dropout is not below 1, or ``rotary`` is for heads of another width.

    Example:
        >>> import torch
        >>> layer = MultiHeadAttention(64, 8, num_key_heads=2, rotary=RotaryPositions(8))
        >>> out, _ = layer(torch.zeros(3, 5, 64))
        >>> out.shape
        torch.Size([3, 5, 64])
        >>> layer.empty_cache(3).key.shape
        torch.Size([3, 2, 0, 8])
    """

    def __init__(
        self,
        model_dim: int,
        num_heads: int,
        *,
        num_key_heads: int | None = None,
        head_dim: int | None = None,
        value_head_dim: int | None = None,
        query_dim: int | None = None,
        key_dim: int | None = None,
        value_dim: int | None = None,
        key_value_dim: int | None = None,
        output_dim: int | None = None,
        bias: bool = True,
        dropout: float = 0.0,
        head_dropout: float = 0.0,
        score: Score = _SCALED_DOT,
        rotary: RotaryPositions | None = None,
        **foreign: object,
    ) -> None:
        super().__init__()
        refuse_options(MultiHeadAttention, foreign)
        if head_dim is None:
            check_divides("num_heads", num_heads, "model_dim", model_dim)
        self.num_heads = num_heads
        self.num_key_heads = num_heads if num_key_heads is None else num_key_heads
        check_divides("num_key_heads", self.num_key_heads, "num_heads", num_heads)
        self.head_dim = model_dim // num_heads if head_dim is None else head_dim
        self.value_head_dim = self.head_dim if value_head_dim is None else value_head_dim
        self.query_dim = model_dim if query_dim is None else query_dim
        output_dim = model_dim if output_dim is None else output_dim
        has_separate_dims = key_dim is not None or value_dim is not None
        if has_separate_dims and key_value_dim is not None:
            raise SettingError(
                "key_value_dim must be left out where key_dim or value_dim is given; got "
                f"key_value_dim={key_value_dim}, key_dim={key_dim}, value_dim={value_dim}."
            )
        self.key_dim = _first(key_dim, value_dim, key_value_dim, self.query_dim)
        self.value_dim = _first(value_dim, key_dim, key_value_dim, self.query_dim)
        for name in ("head_dim", "value_head_dim", "query_dim", "key_dim", "value_dim"):
            check_count(name, getattr(self, name))
        check_count("output_dim", output_dim)
        check_fraction("dropout", dropout)
        check_fraction("head_dropout", head_dropout)
        self.dropout = dropout
        self.head_dropout = head_dropout
        if not isinstance(score, Score):
            raise SettingError(f"score must be a Score such as ScaledDot(); got {score!r}.")
        self.score = score
        if of_score := [t for t in score.tensors() if isinstance(t, nn.Parameter)]:
            self.score_parameters = nn.ParameterList(of_score)
        self.rotary = rotary
        self._check_rotary(is_memory=has_separate_dims or key_value_dim is not None)
        self._add_projections(has_separate_dims, key_value_dim is not None, output_dim, bias)
        self._initialise()
        self.register_load_state_dict_pre_hook(rename_torchs)  # type: ignore[no-untyped-call]

    def forward(
        self,
        states: Float[Tensor, "*positions Q"],
        memory: Float[Tensor, "B M K"] | KeyValueCache | None = None,
        values: Float[Tensor, "B M V"] | None = None,
        *,
        mask: Mask | Bool[Tensor, "..."] | None = None,
        bias: Float[Tensor, "..."] | PositionBias | None = None,
        cache: KeyValueCache | None = None,
        packing: Packing | None = None,
        **foreign: object,
    ) -> tuple[Float[Tensor, "*positions O"], KeyValueCache | None]:
        """Multi-head attention of each state over the others, or over a memory.

        Args:
            states: The inputs of queries, (B, N, C); (R, C) with a packing.
            memory: The inputs of keys, or keys and values from ``project_memory``. None is the
                states themselves.
            values: The inputs of values instead of the memory, position for position.
            mask: Which keys a state may look at. With a cache, keys count from its beginning.
            bias: Added to the scores, such as ``alibi()``; broadcasts to (B, H, N, M).
            cache: Keys and values of earlier positions, put before those of ``states``. None and
                ``KeyValueCache.empty()`` say that there are none.
            packing: Where the positions of packed states stand. None: they are not packed.
            **foreign: Options of other libraries; the error gives their names here.

        Returns:
            The gathered states, and the cache to pass with the positions that follow: earlier keys
            and values with those of ``states``. None over a memory, and of packed states.

        Raises:
            SettingError: A cache, or a layer with ``rotary``, was given together with a memory; or
                a layer made for a memory got none.
            ShapeError: An input is not of the layer's width, or has not the axes above.
        """
        if foreign:
            refuse_options(MultiHeadAttention.forward, foreign)
        self._check_call(states, memory, values, cache)
        _check_states("states", states, self.query_dim, packing)
        if memory is None:
            assert self.query_key_value is not None
            projected: Tensor = self.query_key_value(states)
            query, key, value = _heads(projected, self._parts, packing)
            if self.rotary is not None:
                first = 0 if cache is None else cache.length
                query, key = self.rotary(query, first=first), self.rotary(key, first=first)
            cached = KeyValueCache(key, value) if cache is None else cache.append(key, value)
        else:
            cached = (
                memory if isinstance(memory, KeyValueCache) else self.project_memory(memory, values)
            )
            projected = self._project(states, 0, 1)
            (query,) = _heads(projected, self._parts[:1], packing)
        mixed = attend(
            query,
            cached.key,
            cached.value,
            score=self.score,
            mask=mask,
            bias=bias,
            dropout=self.dropout if self.training else 0.0,
        )
        if self.training and self.head_dropout:
            mixed = mixed * drop(mixed.new_ones(*mixed.shape[:3], 1), self.head_dropout)
        joined = mixed.transpose(1, 2).flatten(2)
        if packing is not None:
            joined = packing.pack(joined)
        # Heads may be wider than the projection they were cut from.
        out: Tensor = self.output(joined.to(projected.dtype))
        # Padding of packed states is no position to go on from.
        is_whole = memory is None and (packing is None or cache is not None)
        return out, cached if is_whole else None

    def project_memory(
        self,
        memory: Float[Tensor, "*positions K"],
        values: Float[Tensor, "*positions V"] | None = None,
        *,
        packing: Packing | None = None,
    ) -> KeyValueCache:
        """The keys and values of a memory: compute them once, look at them in every step.

        Args:
            memory: The inputs of keys, and of values too unless they are given.
            values: The inputs of values instead, position for position.
            packing: Where the positions of a packed memory stand. None: it is not packed.

        Raises:
            ShapeError: An input is not of the layer's width, or they differ in positions.
        """
        _check_states("memory", memory, self.key_dim, packing)
        source = memory if values is None else values
        _check_states("memory" if values is None else "values", source, self.value_dim, packing)
        if source.shape[:-1] != memory.shape[:-1]:
            raise ShapeError(
                f"values must have the positions of the memory, {tuple(memory.shape[:-1])}; "
                f"got {tuple(source.shape[:-1])}."
            )
        of_key, of_value = self._parts[1:]
        if values is None and "key" not in self._modules:
            key, value = _heads(self._project(memory, 1, 3), (of_key, of_value), packing)
        else:
            (key,) = _heads(self._project(memory, 1, 2), (of_key,), packing)
            (value,) = _heads(self._project(source, 2, 3), (of_value,), packing)
        return KeyValueCache(key, value)

    @classmethod
    def from_torch(cls, peer: nn.MultiheadAttention) -> "MultiHeadAttention":
        """A layer that gives the same numbers as torch's, with a copy of its weights.

        Torch's masks are True where a query may *not* look.

        Args:
            peer: With nothing added to the keys. Where it has one matrix for queries, keys and
                values, the layer is for attention over the states themselves, and takes a memory
                of their width as well.

        Raises:
            SettingError: It has ``bias_k`` or ``add_zero_attn``.
        """
        added = {"bias_k": peer.bias_k is not None, "add_zero_attn": peer.add_zero_attn}
        for name, is_there in added.items():
            if is_there:
                raise SettingError(
                    f"peer must look at its inputs and nothing else; got one with {name}. "
                    "regard.use(peer) serves it."
                )
        is_joint, has_separate_dims = peer.in_proj_weight is not None, peer.kdim != peer.vdim
        layer = cls(
            peer.embed_dim,
            peer.num_heads,
            key_dim=peer.kdim if has_separate_dims else None,
            value_dim=peer.vdim if has_separate_dims else None,
            key_value_dim=None if is_joint or has_separate_dims else peer.kdim,
            bias=peer.in_proj_bias is not None,
            dropout=peer.dropout,
        ).to(peer.out_proj.weight)
        layer.load_state_dict(peer.state_dict())
        return layer.train(peer.training)

    def empty_cache(self, batch: int) -> KeyValueCache:
        """A cache of no positions yet, for ``batch`` rows."""
        like = next(chain(self.output.parameters(), self.output.buffers()))
        nothing = like.new_empty(batch, self.num_key_heads, 0, self.head_dim)
        return KeyValueCache(nothing, nothing.new_empty(*nothing.shape[:3], self.value_head_dim))

    @property
    def _parts(self) -> tuple[Part, Part, Part]:
        """Heads and their width of queries, keys and values."""
        H, G, D, E = self.num_heads, self.num_key_heads, self.head_dim, self.value_head_dim
        return (H, D), (G, D), (G, E)

    @property
    def _widths(self) -> tuple[int, ...]:
        return tuple(heads * width for heads, width in self._parts)

    def _project(self, inputs: Tensor, first: int, last: int) -> Tensor:
        """Parts ``first`` to ``last`` of query, key and value; of a joint product only its rows."""
        ends = (0, *accumulate(self._widths))
        for name, parts in PROJECTIONS.items():
            layer = self._modules.get(name)
            if layer is None or first < parts[0] or last > parts[-1] + 1:
                continue
            if last - first == len(parts):
                projected: Tensor = layer(inputs)
                return projected
            assert isinstance(layer, nn.Linear)
            rows = slice(ends[first] - ends[parts[0]], ends[last] - ends[parts[0]])
            return F.linear(
                inputs, layer.weight[rows], None if layer.bias is None else layer.bias[rows]
            )
        raise AssertionError("every layer makes queries, keys and values")

    def _add_projections(
        self, has_separate_dims: bool, has_memory: bool, output_dim: int, bias: bool
    ) -> None:
        """Join the projections of the same input into one product."""
        query, key, value = self._widths
        self.query_key_value: nn.Linear | None = None
        self.key_value: nn.Linear | None = None
        if has_separate_dims:
            self.query = nn.Linear(self.query_dim, query, bias=bias)
            self.key = nn.Linear(self.key_dim, key, bias=bias)
            self.value = nn.Linear(self.value_dim, value, bias=bias)
        elif has_memory:
            self.query = nn.Linear(self.query_dim, query, bias=bias)
            self.key_value = nn.Linear(self.key_dim, key + value, bias=bias)
        else:
            self.query_key_value = nn.Linear(self.query_dim, query + key + value, bias=bias)
        self.output = nn.Linear(self.num_heads * self.value_head_dim, output_dim, bias=bias)

    def _check_rotary(self, *, is_memory: bool) -> None:
        if self.rotary is None:
            return
        if is_memory:
            raise SettingError(
                "rotary must be left out of a layer over a memory, whose positions are not "
                f"those of the states; got {self.rotary!r}."
            )
        if self.rotary.head_dim != self.head_dim:
            raise SettingError(
                f"rotary must be for heads of width head_dim={self.head_dim}; got {self.rotary!r}."
            )

    def _check_call(
        self,
        states: Tensor,
        memory: Tensor | KeyValueCache | None,
        values: Tensor | None,
        cache: KeyValueCache | None,
    ) -> None:
        if memory is None and self.query_key_value is None:
            raise SettingError(
                "memory must be given to a layer made with key_value_dim, key_dim or value_dim; "
                "got None."
            )
        if values is not None and not isinstance(memory, Tensor):
            raise SettingError(
                "values must come with a memory that is not projected yet; got "
                f"{type(memory).__name__}."
            )
        if memory is not None and cache is not None:
            raise SettingError(
                "cache must be left out where there is a memory; got both. "
                "Pass project_memory(memory) as the memory to keep its keys and values."
            )
        if memory is not None and self.rotary is not None:
            raise SettingError(
                "memory must be left out where there is rotary, since its positions are not those "
                "of the states; got both."
            )

    def _initialise(self) -> None:
        """Xavier as if queries, keys and values were one matrix; biases zero."""
        for name, layer in self.named_children():
            if not isinstance(layer, nn.Linear):
                continue
            # The sum of fans of the joint matrix, whichever way it is cut.
            rows = layer.out_features if name == "output" else sum(self._widths)
            bound = sqrt(6 / (layer.in_features + rows))
            nn.init.uniform_(layer.weight, -bound, bound)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)


def _first(*widths: int | None) -> int:
    """The first width that is given."""
    return next(width for width in widths if width is not None)


def _heads(
    projected: Tensor, parts: tuple[Part, ...], packing: Packing | None
) -> tuple[Tensor, ...]:
    return cut(projected if packing is None else packing.pad(projected), parts)


def _check_states(name: str, states: Tensor, width: int, packing: Packing | None) -> None:
    if not isinstance(states, Tensor):
        raise ShapeError(
            f"{name} must be a tensor; got {type(states).__name__}. Use torch.as_tensor({name})."
        )
    if states.dim() != (3 if packing is None else 2) or states.shape[-1] != width:
        shape = f"(B, N, {width})" if packing is None else f"(R, {width}) with a packing"
        raise ShapeError(f"{name} must have shape {shape}; got {tuple(states.shape)}.")
