"""Settings of Hugging Face's checkpoint families, in their config and in ours."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from torch import nn

from regard.choices import choose
from regard.config import JsonValue, build
from regard.errors import DataError, SettingError
from regard.interop.checkpoint_names import Tie
from regard.models import DecoderConfig, EncoderConfig, TransformerConfig

CONFIG = "config.json"

Table = Mapping[str, JsonValue]
ModelT = TypeVar("ModelT", bound=nn.Module)
ConfigT = TypeVar("ConfigT", EncoderConfig, DecoderConfig, TransformerConfig)

# Hugging Face's names of what FeedForward has.
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
    """Map from a family's config to our settings.

    Attributes:
        config: Our settings.
        sizes: Its names of whole numbers, with ours; of several names of one, all must agree.
        shares: Its names of other numbers, with ours and what a config that is silent means.
        activation: Its name of the activation, and which it is where a config is silent.
        only: What else its config may say, which has one value here.
        settled: Our settings that have one value in it.
    """

    config: type[ConfigT]
    sizes: Mapping[str, str]
    shares: Mapping[str, tuple[str, float]]
    only: Table
    settled: Table
    activation: tuple[str, str] | None = None

    def read(self, table: Table, **more: JsonValue) -> ConfigT:
        """Our settings, of a config.

        Args:
            table: The config.
            more: Settings that its family has besides.

        Raises:
            DataError: A size is missing.
            SettingError: An option has no place here.
        """
        for name, value in self.only.items():
            require(table, name, value)
        found: dict[str, JsonValue] = {**self.settled, **more}
        for name, ours in self.sizes.items():
            if ours in found:
                require(table, name, found[ours])
            else:
                found[ours] = size_of(table, name)
        for name, (ours, silent) in self.shares.items():
            share = table.get(name, silent)
            found[ours] = float(share) if isinstance(share, int) else share
        if self.activation is not None:
            name, usual = self.activation
            found["activation"] = choose(name, str(table.get(name, usual)), ACTIVATIONS)
        return build(self.config, found, where=CONFIG)

    def write(self, config: ConfigT) -> dict[str, JsonValue]:
        """A config, of our settings.

        Raises:
            SettingError: A setting has no place in it.
        """
        for name, value in self.settled.items():
            if (got := getattr(config, name)) != value:
                raise SettingError(
                    f"model.{name} must be {value!r} in this layout; got {got!r}. "
                    "It has no place for what differs."
                )
        names = {**self.sizes, **{name: ours for name, (ours, _) in self.shares.items()}}
        table: dict[str, JsonValue] = {name: getattr(config, ours) for name, ours in names.items()}
        if self.activation is not None:
            ours = config.activation
            table[self.activation[0]] = next(n for n, each in ACTIVATIONS.items() if each == ours)
        return table


@dataclass(frozen=True, slots=True)
class Layout:
    """How one family's checkpoints are made.

    Attributes:
        build: A model of the sizes that a config names.
        describe: The config of a model.
        ties: Which parameter is which tensor.
        prefix: What the names of the body begin with; a file of the body alone leaves it out.
        copies: What names end with that only repeat other tensors, or none that is learned.
        architecture: The class of transformers that the written config names.
        optional: What our names begin with that a file may lack: heads.
    """

    build: Callable[[Table], nn.Module]
    describe: Callable[[nn.Module], dict[str, JsonValue]]
    ties: Callable[[nn.Module], Iterator[Tie]]
    prefix: str
    copies: tuple[str, ...]
    architecture: str
    optional: tuple[str, ...] = ()


def size_of(table: Table, name: str) -> int:
    """A whole number that a config must say."""
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


def expect(model: nn.Module, wanted: type[ModelT]) -> ModelT:
    """The model, of the class that a layout is for.

    Raises:
        SettingError: It is of another.
    """
    if not isinstance(model, wanted):
        raise SettingError(
            f"model must be a {wanted.__name__} for this layout; got {type(model).__name__}."
        )
    return model
