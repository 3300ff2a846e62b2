"""The Transformers that all programs train in a measurement of speed, by name."""

from dataclasses import dataclass, replace

from benchmarks import measuring


@dataclass(frozen=True, kw_only=True, slots=True)
class Size:
    """A Transformer of as many layers on each side, and how it learns.

    Attributes:
        model_dim: Width of its states.
        ffn_dim: Width inside its feed-forward layers.
        num_heads: Of each attention.
        num_layers: Of the encoder, and of the decoder.
        dropout: Everywhere.
        rate: The peak of the learning rate.
        warmup: Updates until then.
        budget: Tokens of a batch on its longer side, padding included.
    """

    model_dim: int
    ffn_dim: int
    num_heads: int
    num_layers: int
    dropout: float
    rate: float
    warmup: int
    budget: int


# In tiny runs every one is as small as a model can be.
_LEAST = {"model_dim": 16, "ffn_dim": 16, "num_heads": 2, "num_layers": 1, "budget": 256}
# Transformer-tiny of Wu et al. (2021), and the base model of Vaswani et al. (2017).
_SIZES = {
    "tiny": Size(
        model_dim=128,
        ffn_dim=256,
        num_heads=4,
        num_layers=4,
        dropout=0.3,
        rate=0.005,
        warmup=2000,
        budget=4096,
    ),
    "base": Size(
        model_dim=512,
        ffn_dim=2048,
        num_heads=8,
        num_layers=6,
        dropout=0.1,
        rate=0.0007,
        warmup=4000,
        budget=25_000,
    ),
}
SIZES = measuring.sized(_SIZES, {name: replace(size, **_LEAST) for name, size in _SIZES.items()})
