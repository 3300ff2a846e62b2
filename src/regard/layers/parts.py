"""A vector for each word from its parts, so that words never seen before have one too."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from regard.checks import check_positive
from regard.choices import choose
from regard.errors import SettingError
from regard.layers.embedding import TokenEmbedding
from regard.layers.recurrent import RecurrentEncoder

# How many parts a filter sees.
FILTER_WIDTHS = (2, 3, 4, 5)


def check_given(parts: Tensor | None, kind: str) -> None:
    """Raise SettingError unless parts are given where words are read from them, and only there."""
    if (parts is None) != (kind == "none"):
        raise SettingError(
            "parts must be given where model.parts is set, and there alone; got "
            f"{'none' if parts is None else 'some'} with model.parts = {kind!r}."
        )


class PartsBag(nn.Module):
    """The mean of the parts, such as n-grams: Bojanowski et al. (2017), https://arxiv.org/abs/1607.04606.

    Args:
        embed_dim: Width of a part's vector.
        output_dim: Width of a word's.
    """

    def __init__(self, embed_dim: int, output_dim: int) -> None:
        super().__init__()
        self.out = nn.Linear(embed_dim, output_dim)

    def forward(
        self, parts: Float[Tensor, "R L X"], lengths: Int[Tensor, " R"]
    ) -> Float[Tensor, "R W"]:
        """One vector a word."""
        mean: Tensor = self.out(parts.sum(1) / lengths.clamp(min=1)[:, None])
        return mean


class PartsConvolution(nn.Module):
    """The strongest answer of each filter: Ma & Hovy (2016), https://arxiv.org/abs/1603.01354.

    Their filters see three parts; ours see two to five, as in Kim et al. (2016),
    https://arxiv.org/abs/1508.06615, so that some match an ending and some a stem.

    Args:
        embed_dim: Width of a part's vector.
        output_dim: Width of a word's: how many filters, shared among the widths.
    """

    def __init__(self, embed_dim: int, output_dim: int) -> None:
        super().__init__()
        share, rest = divmod(output_dim, len(FILTER_WIDTHS))
        shares = [share + (place < rest) for place in range(len(FILTER_WIDTHS))]
        self.filters = nn.ModuleDict(
            {
                str(width): nn.Conv1d(embed_dim, count, width)
                for width, count in zip(FILTER_WIDTHS, shares, strict=True)
                if count
            }
        )

    def forward(
        self, parts: Float[Tensor, "R L X"], lengths: Int[Tensor, " R"]
    ) -> Float[Tensor, "R W"]:
        """One vector a word."""
        beyond = torch.arange(parts.shape[1], device=parts.device) >= lengths.clamp(min=1)[:, None]
        strongest = []
        for width, filters in self.filters.items():
            before = int(width) // 2  # so that there are as many answers as parts
            answers = filters(F.pad(parts.mT, (before, int(width) - 1 - before)))  # (R, W, L)
            strongest.append(answers.masked_fill(beyond[:, None], -torch.inf).amax(-1))
        return torch.cat(strongest, dim=-1)


class PartsLstm(nn.Module):
    """Where reading it in both directions ends: Lample et al. (2016), https://arxiv.org/abs/1603.01360.

    Args:
        embed_dim: Width of a part's vector.
        output_dim: Width of a word's; even.
    """

    def __init__(self, embed_dim: int, output_dim: int) -> None:
        super().__init__()
        self.reader = RecurrentEncoder("lstm", embed_dim, output_dim // 2)

    def forward(
        self, parts: Float[Tensor, "R L X"], lengths: Int[Tensor, " R"]
    ) -> Float[Tensor, "R W"]:
        """One vector a word."""
        ends: Tensor = self.reader(parts, lengths.clamp(min=1))[1]
        return ends


PARTS: dict[str, Callable[[int, int], nn.Module]] = {
    "bag": PartsBag,
    "convolution": PartsConvolution,
    "lstm": PartsLstm,
}


class PartsEmbedding(nn.Module):
    """Words read from their parts: characters, or n-grams.

    Args:
        kind: ``bag``, ``convolution`` or ``lstm``.
        vocab_size: Number of part ids; 0 is padding.
        output_dim: Width of a word's vector; even.
        embed_dim: Width of a part's.

    Raises:
        SettingError: The kind is unknown, or there are no parts.

    Example:
        >>> layer = PartsEmbedding("convolution", vocab_size=9, output_dim=6)
        >>> layer(torch.tensor([[[3, 4, 5], [6, 0, 0]]])).shape
        torch.Size([1, 2, 6])
    """

    def __init__(self, kind: str, *, vocab_size: int, output_dim: int, embed_dim: int = 32) -> None:
        super().__init__()
        check_positive("parts_vocab", vocab_size, cure="Words read from parts need part ids.")
        self.embedding = TokenEmbedding(vocab_size, embed_dim, scaled=False)
        self.read: nn.Module = choose("parts", kind, PARTS)(embed_dim, output_dim)

    def forward(self, parts: Int[Tensor, "B N L"]) -> Float[Tensor, "B N W"]:
        """One vector for each word; each different word is read once.

        Args:
            parts: Ids of each word's parts, padded on the right with 0; padding has none at all.
        """
        words = parts.flatten(0, 1)
        if torch.compiler.is_exporting():  # how many differ is no size of a graph
            return self._read(words).view(*parts.shape[:2], -1)
        rows, places = torch.unique(words, dim=0, return_inverse=True)
        return self._read(rows)[places].view(*parts.shape[:2], -1)

    def _read(self, rows: Int[Tensor, "R L"]) -> Float[Tensor, "R W"]:
        is_real = rows > 0
        vectors: Tensor = self.read(self.embedding(rows) * is_real[..., None], is_real.sum(1))
        return vectors
