"""Embeddings: of tokens, of words made of parts, and of the patches of a picture."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention.graph.formula import is_exporting
from regard.checks import check_at_most, check_count, choose
from regard.errors import SettingError
from regard.layers.inputs import check_beside, real_positions, unknown_ids, whole
from regard.layers.recurrent import RecurrentEncoder


class TokenEmbedding(nn.Module):
    """A vector for every token id, optionally scaled by the square root of its width.

    The Transformer multiplies by sqrt(C) (Vaswani et al., 2017, section 3.4), and draws the table
    with deviation 1/sqrt(C), so that embeddings have unit size next to the positions while the
    same table, used as the last layer, gives logits of unit size.

    Args:
        vocab_size: Number of ids, V.
        model_dim: Width, C.
        pad_id: The id that begins as zeros and gets no gradient from where it is read; None if
            every id is a token.
        scaled: Whether embeddings are multiplied by sqrt(C).

    Example:
        >>> embedding = TokenEmbedding(vocab_size=11, model_dim=4)
        >>> states = embedding(torch.tensor([[7, 3, 0]]))
        >>> states.shape, states[0, 2].tolist()
        (torch.Size([1, 3, 4]), [0.0, 0.0, 0.0, 0.0])
        >>> embedding.logits(states).shape
        torch.Size([1, 3, 11])
    """

    def __init__(
        self, vocab_size: int, model_dim: int, *, pad_id: int | None = 0, scaled: bool = True
    ) -> None:
        super().__init__()
        check_count("vocab_size", vocab_size)
        check_count("model_dim", model_dim)
        if pad_id is not None:
            check_count("pad_id", pad_id, 0)
            check_at_most("pad_id", pad_id, vocab_size - 1)
        self.scale = model_dim**0.5 if scaled else 1.0
        self.pad_id = pad_id
        self.weight = nn.Parameter(torch.randn(vocab_size, model_dim) * model_dim**-0.5)
        if pad_id is not None:
            self.weight.data[pad_id] = 0

    def forward(self, ids: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch C"]:
        ids = whole("token ids", ids)
        try:
            return F.embedding(ids, self.weight, padding_idx=self.pad_id) * self.scale
        except IndexError:  # torch has looked at each id
            raise unknown_ids("token ids", ids, self.weight.shape[0]) from None

    def logits(
        self, states: Float[Tensor, "*batch C"], bias: Float[Tensor, " V"] | None = None
    ) -> Float[Tensor, "*batch V"]:
        """Logits of each token for each state: the table used as the last layer.

        Args:
            states: The vectors that predict tokens.
            bias: A number for each token, added to its logit.
        """
        return F.linear(states, self.weight, bias)

    def extra_repr(self) -> str:
        return f"{self.weight.shape[0]}, {self.weight.shape[1]}, scale={self.scale:.4g}"


class PatchEmbedding(nn.Module):
    """A state for each square patch of a picture: Dosovitskiy et al. (2021), equation 1."""

    def __init__(
        self, model_dim: int, *, size: tuple[int, int], patch: int, channels: int = 1
    ) -> None:
        super().__init__()
        check_count("model_dim", model_dim)
        check_count("patch", patch)
        check_count("channels", channels)
        if any(side < 1 or side % patch for side in size):
            raise SettingError(
                f"patch must divide the pictures' height and width, {size[0]} × {size[1]}; got "
                f"{patch}."
            )
        self.patch = patch
        self.grid = (size[0] // patch, size[1] // patch)
        self.weight = nn.Parameter(torch.empty(model_dim, channels, patch, patch))
        self.bias = nn.Parameter(torch.zeros(model_dim))
        nn.init.xavier_uniform_(self.weight.view(model_dim, -1))

    def forward(self, pictures: Float[Tensor, "B P Y X"]) -> Float[Tensor, "B N C"]:
        """The states of the patches, from channels, rows and columns."""
        states = F.conv2d(pictures, self.weight, self.bias, stride=self.patch)
        return states.flatten(2).mT


# How many parts a filter sees.
FILTER_WIDTHS = (2, 3, 4, 5)
_PARTS_DIM = 32  # of the vector of a part


def check_parts(parts: Tensor | None, kind: str, ids: Int[Tensor, "B N"]) -> None:
    """Raise SettingError unless parts are given where words are read from them, and only there.

    ShapeError if there are not some for each token.
    """
    if (parts is None) != (kind == "none"):
        raise SettingError(
            "parts must be given where model.parts is set, and there alone; got "
            f"{'none' if parts is None else 'some'} with model.parts = {kind!r}."
        )
    if parts is not None:
        check_beside("parts", parts, ids, parts.dim() == 3)


class PartsBag(nn.Module):
    """The mean of the parts, such as n-grams: Bojanowski et al. (2017), arXiv:1607.04606."""

    def __init__(self, embed_dim: int, output_dim: int) -> None:
        super().__init__()
        self.out = nn.Linear(embed_dim, output_dim)

    def forward(
        self, parts: Float[Tensor, "R L X"], lengths: Int[Tensor, " R"]
    ) -> Float[Tensor, "R W"]:
        mean: Tensor = self.out(parts.sum(1) / lengths.clamp(min=1)[:, None])
        return mean


class PartsConvolution(nn.Module):
    """The maximum of each filter: Ma & Hovy (2016), with the widths of Kim et al. (2016)."""

    def __init__(self, embed_dim: int, output_dim: int) -> None:
        super().__init__()
        share, remainder = divmod(output_dim, len(FILTER_WIDTHS))
        shares = [share + (index < remainder) for index in range(len(FILTER_WIDTHS))]
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
        beyond = ~real_positions(lengths.clamp(min=1), parts.shape[1])
        strongest = []
        for width, filters in self.filters.items():
            before = int(width) // 2  # so that there are as many answers as parts
            answers = filters(F.pad(parts.mT, (before, int(width) - 1 - before)))  # (R, W, L)
            strongest.append(answers.masked_fill(beyond[:, None], -torch.inf).amax(-1))
        return torch.cat(strongest, dim=-1)


class PartsLstm(nn.Module):
    """The last states of both directions: Lample et al. (2016), arXiv:1603.01360."""

    def __init__(self, embed_dim: int, output_dim: int) -> None:
        super().__init__()
        self.reader = RecurrentEncoder("lstm", embed_dim, output_dim // 2)

    def forward(
        self, parts: Float[Tensor, "R L X"], lengths: Int[Tensor, " R"]
    ) -> Float[Tensor, "R W"]:
        ends: Tensor = self.reader(parts, lengths.clamp(min=1))[1]
        return ends


PARTS: dict[str, Callable[[int, int], nn.Module]] = {
    "bag": PartsBag,
    "convolution": PartsConvolution,
    "lstm": PartsLstm,
}


class PartsEmbedding(nn.Module):
    """Words read from their parts: characters, or n-grams."""

    def __init__(self, kind: str, *, vocab_size: int, output_dim: int) -> None:
        super().__init__()
        check_count("parts_vocab", vocab_size, cure="Words read from parts need part ids.")
        self.embedding = TokenEmbedding(vocab_size, _PARTS_DIM, scaled=False)
        self.read: nn.Module = choose("parts", kind, PARTS)(_PARTS_DIM, output_dim)

    def forward(self, parts: Int[Tensor, "B N L"]) -> Float[Tensor, "B N W"]:
        """Vectors of words; each different word is read once."""
        # Parts are padded on the right with 0; padding has none at all.
        words = parts.flatten(0, 1)
        if is_exporting():  # how many differ is no size of a graph
            return self._read(words).view(*parts.shape[:2], -1)
        rows, inverse = torch.unique(words, dim=0, return_inverse=True)
        return self._read(rows)[inverse].view(*parts.shape[:2], -1)

    def _read(self, rows: Int[Tensor, "R L"]) -> Float[Tensor, "R W"]:
        is_real = rows > 0
        vectors: Tensor = self.read(self.embedding(rows) * is_real[..., None], is_real.sum(1))
        return vectors
