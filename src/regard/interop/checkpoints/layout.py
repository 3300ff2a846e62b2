"""A family's checkpoint layout: its config and parameter names, and ours."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

import torch
from torch import Tensor, nn

from regard.checks import choose
from regard.config import JsonValue, build
from regard.errors import DataError, SettingError
from regard.models import DecoderConfig, EncoderConfig, TransformerConfig

CONFIG = "config.json"

Table = Mapping[str, JsonValue]
ModelT = TypeVar("ModelT", bound=nn.Module)
ConfigT = TypeVar("ConfigT", EncoderConfig, DecoderConfig, TransformerConfig)

# Names of sizes that BERT, GPT-NeoX and Llama share.
SIZES = {
    "hidden_size": "model_dim",
    "num_attention_heads": "num_heads",
    "num_hidden_layers": "num_layers",
    "intermediate_size": "ffn_dim",
    "max_position_embeddings": "max_length",
}
# Hugging Face's names of the activations of FeedForward.
ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
}


@dataclass(frozen=True, slots=True)
class Settings(Generic[ConfigT]):
    """Map from a family's config to our settings, and back."""

    config: type[ConfigT]
    sizes: Mapping[str, str]  # its names of whole numbers, with ours; two names of one must agree
    numbers: Mapping[str, tuple[str, float]]  # of other numbers, with ours and the default
    required: Table  # options of its config that have one value here
    fixed: Table  # our settings that have one value in it
    activation: tuple[str, str] | None = None  # its name of the activation, and the default

    def read(self, table: Table, **extra: JsonValue) -> ConfigT:
        """Return our settings from a config; ``extra`` are settings of this family only."""
        for name, value in self.required.items():
            require(table, name, value)
        values: dict[str, JsonValue] = {**self.fixed, **extra}
        for name, ours in self.sizes.items():
            if ours in values:
                require(table, name, values[ours])
            else:
                values[ours] = size_of(table, name)
        for name, (ours, default) in self.numbers.items():
            number = table.get(name, default)
            values[ours] = float(number) if isinstance(number, int) else number
        if self.activation is not None:
            name, usual = self.activation
            values["activation"] = choose(name, str(table.get(name, usual)), ACTIVATIONS)
        return build(self.config, values, where=CONFIG)

    def write(self, config: ConfigT) -> dict[str, JsonValue]:
        """Return a config from our settings; SettingError if one has no place in it."""
        for name, value in self.fixed.items():
            if (got := getattr(config, name)) != value:
                raise SettingError(
                    f"model.{name} must be {value!r} in this layout; got {got!r}. "
                    "It has no place for what differs."
                )
        names = {**self.sizes, **{name: ours for name, (ours, _) in self.numbers.items()}}
        table: dict[str, JsonValue] = {name: getattr(config, ours) for name, ours in names.items()}
        if self.activation is not None:
            ours = config.activation
            table[self.activation[0]] = next(
                n for n, function in ACTIVATIONS.items() if function == ours
            )
        return table


@dataclass(frozen=True, slots=True)
class TensorMap:
    """One parameter of ours, and the tensors of a checkpoint that it is made of."""

    ours: str
    theirs: tuple[str, ...]  # several are joined row after row
    is_transposed: bool = False  # stored input first, as GPT-2's are
    offset: int = 0  # rows of theirs before the first of ours
    has_axis: bool = False  # theirs have an axis of one before it
    sizes: tuple[int, ...] = ()  # rows of each of theirs; none where they have as many
    order: Tensor | None = None  # the position among our rows of each of theirs
    is_zero_where_absent: bool = False  # as biases are of layers that have none

    def read(self, tensors: dict[str, Tensor]) -> Tensor:
        """Return our parameter from their tensors."""
        parts = [tensors[name] for name in self.theirs]
        parts = [part.T if self.is_transposed else part for part in parts]
        whole = torch.cat(parts) if len(parts) > 1 else parts[0]
        if self.order is not None and len(whole) == len(self.order):
            whole = whole[self.order.argsort()]
        return (whole[0] if self.has_axis else whole)[self.offset :]

    def write(self, parameter: Tensor) -> dict[str, Tensor]:
        """Return their tensors from our parameter."""
        padding = parameter.new_zeros(self.offset, *parameter.shape[1:])
        whole = torch.cat([padding, parameter]) if self.offset else parameter
        whole = whole if self.order is None else whole[self.order]
        whole = whole[None] if self.has_axis else whole
        sizes = self.sizes or [len(whole) // len(self.theirs)] * len(self.theirs)
        parts: tuple[Tensor, ...] = torch.split(whole, list(sizes))
        parts = tuple(part.T if self.is_transposed else part for part in parts)
        return {
            name: part.clone(memory_format=torch.contiguous_format)
            for name, part in zip(self.theirs, parts, strict=True)
        }


@dataclass(frozen=True, slots=True)
class Layout:
    """Layout of one family's checkpoints."""

    build: Callable[[Table], nn.Module]  # a model of a config's sizes
    tensors: Callable[[nn.Module], Iterator[TensorMap]]
    prefix: str  # of the body's names; a file of the body alone leaves it out
    copies: tuple[str, ...]  # endings of names that repeat other tensors, or are not learned
    # The config of a model, and the class of transformers that it names; None is read, not written.
    describe: Callable[[nn.Module], dict[str, JsonValue]] | None = None
    architecture: str | None = None
    optional: tuple[str, ...] = ()  # beginnings of our names that a file may lack: heads
    sharing: int = 1  # layers, at most, that have one another's tensors


def weight_and_bias(ours: str, *theirs: str) -> Iterator[TensorMap]:
    """Map both parameters of a layer."""
    for part in ("weight", "bias"):
        yield TensorMap(f"{ours}.{part}", tuple(f"{name}.{part}" for name in theirs))


def of_layers(count: int, ours: str, theirs: str, parts: Mapping[str, str]) -> Iterator[TensorMap]:
    """Map the parts of every layer; a space is between names of theirs that make one of ours."""
    for layer in range(count):
        for our_part, their_parts in parts.items():
            names = (f"{theirs}.{layer}.{part}" for part in their_parts.split())
            yield from weight_and_bias(f"{ours}.{layer}.{our_part}", *names)


def size_of(table: Table, name: str) -> int:
    """Return a whole number that a config must hold."""
    value = table.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise DataError(f"{CONFIG} must say {name} as int; got {value!r}.")
    return value


def require(table: Table, name: str, value: JsonValue) -> None:
    """Raise unless an option has the only value that our models know."""
    if table.get(name, value) != value:
        raise SettingError(
            f"{name} must be {value!r} for a model of ours; got {table[name]!r}. "
            "regard.watch looks into other models as they are."
        )


def expect(model: nn.Module, expected: type[ModelT]) -> ModelT:
    """Return the model, which must be of the class that a layout is for."""
    if not isinstance(model, expected):
        raise SettingError(
            f"model must be a {expected.__name__} for this layout; got {type(model).__name__}."
        )
    return model
