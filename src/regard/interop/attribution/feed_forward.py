"""Neurons of feed-forward parts: the strongest on a text, and their outputs in words."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from regard.checks import check_count
from regard.errors import SettingError
from regard.interop.attribution.attribute import position_of
from regard.interop.attribution.decomposition import module_and_inputs
from regard.interop.attribution.direct_path import DirectPath
from regard.interop.interventions.edit import edit
from regard.interop.interventions.patching import Site
from regard.interop.modules.hooks import hooked
from regard.interop.record import KINDS

_ROWS = 64  # neurons whose logits are computed at once


@dataclass(frozen=True, slots=True, eq=False)
class Neuron:
    """A neuron of a feed-forward part at one position of a text.

    Attributes:
        kind: "encoder" or "decoder".
        layer: Which layer, from 0.
        position: Which position of the text, from 0.
        number: Which neuron of the layer, from 0.
        activation: Factor of its value vector.
        size: Length of its output, the activation times the value vector.
        promoted: Tokens whose logits it raises most there, with the changes.
        suppressed: Tokens whose logits it lowers most.
    """

    kind: str
    layer: int
    position: int
    number: int
    activation: float
    size: float
    promoted: tuple[tuple[int, float], ...] = ()
    suppressed: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Neurons:
    """The strongest neurons on a text; ``feed_forward_neurons`` returns it.

    Attributes:
        neurons: By kind, layer and position, the strongest first.
        has_words: Whether the model makes logits of their outputs.

    Example:
        >>> one = Neuron("decoder", 0, 2, 17, 1.5, 3.0, ((7, 0.5),), ((4, -0.25),))
        >>> print(Neurons((one,), has_words=True))
        layer  position  neuron  activation    size  promotes / suppresses
            0         2      17       1.500   3.000  7 0.50 / 4 -0.25
    """

    neurons: tuple[Neuron, ...]
    has_words: bool

    def of(self, layer: int, position: int, kind: str | None = None) -> list[Neuron]:
        """Neurons of a layer at a position, the strongest first."""
        return [
            neuron
            for neuron in self.neurons
            if (neuron.layer, neuron.position) == (layer, position) and kind in (None, neuron.kind)
        ]

    def strongest(self, count: int = 10) -> list[Neuron]:
        """The strongest of all layers and positions."""
        return sorted(self.neurons, key=lambda neuron: -neuron.size)[:count]

    def __str__(self) -> str:
        return self.table(str)

    def table(self, name: Callable[[int], str], *, count: int = 10) -> str:
        """Write the strongest as text, tokens by the names that a function has for them."""

        def listed(pairs: Sequence[tuple[int, float]]) -> str:
            return ", ".join(f"{name(token)} {value:.2f}" for token, value in pairs)

        lines = ["layer  position  neuron  activation    size"]
        lines[0] += "  promotes / suppresses" * self.has_words
        for neuron in self.strongest(count):
            words = f"  {listed(neuron.promoted)} / {listed(neuron.suppressed)}" * self.has_words
            lines.append(
                f"{neuron.layer:5}{neuron.position:10}{neuron.number:8}{neuron.activation:12.3f}"
                f"{neuron.size:8.3f}{words}"
            )
        return "\n".join(lines)


def feed_forward_neurons(
    model: nn.Module,
    inputs: Mapping[str, object] | Tensor,
    *,
    layer: int | None = None,
    position: int | None = None,
    top: int = 5,
    words: int = 5,
) -> Neurons:
    """The strongest neurons of feed-forward parts on a text, and their outputs in words.

    The output of a feed-forward part is a sum over its neurons, exactly but for its bias: each
    adds its activation times its value vector, a row of the last matrix (Geva et al., 2022,
    https://arxiv.org/abs/2203.14680). In a gated part, as Llama's, the activation is the product of
    gate and value. A neuron is strong by the length of its output. In words: the changes of the
    logits at its position, read as ``logit_attribution`` reads them, so with the sign of the
    activation; its effect by way of later parts is left out.

    Args:
        model: As in ``decompose_score``.
        inputs: As in ``decompose_score``.
        layer: Which layer, from 0; None is all.
        position: Which position, from 0, or from the last below 0; None is all.
        top: How many neurons of each layer at each position.
        words: How many tokens that each raises, and that it lowers; 0 computes none.

    Raises:
        SettingError: The model is in training mode or cannot be taken apart, has no such layer or
            position, or its feed-forward parts end with no matrix.
        ShapeError: There is more than one text.

    Example:
        >>> from regard.models import Transformer, TransformerConfig
        >>> config = TransformerConfig(model_dim=8, num_heads=2, ffn_dim=16)
        >>> model = Transformer(config, source_vocab=11, target_vocab=11).eval()
        >>> text, length = torch.tensor([[4, 7, 5]]), torch.tensor([3])
        >>> inputs = dict(source=text, source_lengths=length, target=text)
        >>> made = feed_forward_neurons(model, inputs, layer=1, position=-1, top=2, words=3)
        >>> [(one.kind, one.position, len(one.promoted)) for one in made.neurons]
        [('encoder', 2, 0), ('encoder', 2, 0), ('decoder', 2, 3), ('decoder', 2, 3)]
    """
    check_count("top", top)
    check_count("words", words, 0)
    path = DirectPath(*module_and_inputs(model, inputs))
    maps = last_maps(path)
    chosen = [site for site in maps if layer in (None, site[1])]
    if not chosen:
        layers = ", ".join(map(str, sorted({number for _, number in maps})))
        raise SettingError(f"layer must be one of {layers}; got {layer}.")
    made: list[Neuron] = []
    for site in chosen:
        length = len(maps[site].activations)
        positions = range(length) if position is None else [position_of(position, length)]
        made += strongest_neurons(site, maps[site], positions, top)
    return Neurons(tuple(in_words(path, maps, made, words)), path.logits is not None)


class LastMap(NamedTuple):
    """The last matrix of a feed-forward part, and its factor."""

    activations: Float[Tensor, "N F"]
    values: Float[Tensor, "F C"]  # the value vectors


def strongest_neurons(
    site: Site, last: LastMap, positions: Sequence[int], top: int
) -> list[Neuron]:
    """The neurons that write most at some positions, without words."""
    rows = torch.tensor(list(positions), device=last.activations.device)
    activations = last.activations[rows].float()
    sizes = activations.abs() * last.values.float().norm(dim=1)
    best = sizes.topk(min(top, sizes.shape[1]))
    chosen = activations.gather(1, best.indices)
    columns = (best.indices.tolist(), chosen.tolist(), best.values.tolist())
    return [
        Neuron(*site, position, number, activation, size)
        for position, *row in zip(positions, *columns, strict=True)
        for number, activation, size in zip(*row, strict=True)
    ]


def in_words(
    path: DirectPath, maps: Mapping[Site, LastMap], neurons: Sequence[Neuron], words: int
) -> list[Neuron]:
    """Add to neurons the tokens that they raise and lower, where logits are made of their layer."""
    made = list(neurons)
    for site, last in maps.items():
        at = [n for n, neuron in enumerate(made) if (neuron.kind, neuron.layer) == site]
        for start in range(0, len(at) if words and path.writes_logits(site) else 0, _ROWS):
            rows = at[start : start + _ROWS]
            numbers = torch.tensor([made[n].number for n in rows])
            activations = torch.tensor([made[n].activation for n in rows])
            vectors = last.values[numbers.to(last.values.device)]
            vectors = vectors * activations.to(vectors)[:, None]
            positions = [made[n].position for n in rows]
            logits = path.effects(site, vectors, positions=positions)
            count = min(words, logits.shape[1])
            up, down = logits.topk(count), logits.topk(count, largest=False)
            for n, *row in zip(rows, *_lists(up), *_lists(down), strict=True):
                promoted, suppressed = zip(*row[:2], strict=True), zip(*row[2:], strict=True)
                made[n] = replace(made[n], promoted=tuple(promoted), suppressed=tuple(suppressed))
    return made


def _lists(found: "torch.return_types.topk") -> tuple[list[list[int]], list[list[float]]]:
    return found.indices.tolist(), found.values.tolist()


@torch.no_grad()
def last_maps(path: DirectPath) -> dict[Site, LastMap]:
    """The last matrices of the feed-forward parts of a model, run on its text.

    Raises:
        SettingError: No part ends with one that makes all of its output.
    """
    run, maps = path.run, dict[Site, LastMap]()
    mode = _LastProducts()
    layers = {id(module): site for site, module in run.feed_forward.items()}

    def begin(module: nn.Module, args: object, options: object) -> None:
        mode.last = None
        mode.is_on = True

    def end(module: nn.Module, args: object, options: object, output: object) -> None:
        mode.is_on = False
        kind, layer = layers[id(module)]
        layers[id(module)] = kind, layer + 1  # of layers that share it
        first = output[0] if isinstance(output, tuple) else output
        if mode.last is None or not isinstance(first, Tensor):
            return
        states, values, made = mode.last
        is_whole = made.shape[-1] == first.shape[-1] and made.numel() == first.numel()
        if is_whole and torch.allclose(made.reshape(first.shape), first, rtol=1e-4, atol=1e-6):
            maps[kind, layer] = LastMap(states.reshape(-1, states.shape[-1]), values)

    # As runs of other threads have it: theirs could begin and end in the middle of a plain one.
    parts = run.feed_forward.values()
    with hooked(parts, before=begin, after=end), edit(run.model), mode:
        run.model(**run.inputs)
    if not maps:
        raise SettingError(
            "model must have feed-forward parts that end with a matrix for their neurons to be "
            f"seen; got {type(run.model).__name__} with {len(run.feed_forward)} parts, none of "
            "which does."
        )
    return dict(sorted(maps.items(), key=lambda item: (KINDS.index(item[0][0]), item[0][1])))


class _LastProducts(TorchFunctionMode):
    """Notes the last product of states with a matrix."""

    def __init__(self) -> None:
        super().__init__()
        self.is_on = False
        self.last: tuple[Tensor, Tensor, Tensor] | None = None

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> object:
        """Compute a function, and note its operands if it is a product."""
        out = func(*args, **(kwargs or {}))
        name = getattr(func, "__name__", "")
        if not self.is_on or name not in ("linear", "addmm", "matmul", "__matmul__"):
            return out
        states, matrix = args[1:3] if name == "addmm" else args[:2]
        if isinstance(matrix, Tensor) and matrix.dim() == 2:
            values = matrix.mT if name == "linear" else matrix
            self.last = states, values, out
        return out
