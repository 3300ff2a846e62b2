"""The end-to-end memory network of Sukhbaatar et al. (2015), https://arxiv.org/abs/1503.08895."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention import Dot, at, attend
from regard.attention import lengths as visible
from regard.errors import ShapeError
from regard.layers import Dropout
from regard.models.configs.readers import MemoryNetworkConfig


class MemoryNetwork(nn.Module):
    """Memory network: selects the sentence, or the word, that answers a question, in several hops.

    A sentence is a memory ``m_i = Σ_j l_j ⊙ A x_ij + T_A(i)`` to be matched and ``c_i``, the same
    with C, to be mixed; l tells words' places apart, or is 1, and i counts sentences backwards from
    the last, which is nearest to the question (section 4.1). A hop adds what it
    finds to the question, ``u ← H u + Σ softmax_i(u · m_i) c_i``. The hops share their tables
    (section 2.2, layer-wise), and the question is read by A too, so that from the first step on it
    finds the sentences that have its words. In the paper a last layer answers with a word, by
    ``W u`` after the last hop; without answers to choose from ``u · m_i`` are the logits, and the
    answer is a sentence.

    Args:
        config: Sizes.
        vocab_size: Number of word ids, V; 0 is padding.
        num_answers: How many words may be the answer; None answers with a sentence.

    Example:
        >>> model = MemoryNetwork(MemoryNetworkConfig(model_dim=8), vocab_size=11)
        >>> sentences, question = torch.ones(2, 4, 5).long(), torch.ones(2, 3).long()
        >>> model(sentences, torch.tensor([4, 2]), question).softmax(-1)[1, 2:].tolist()
        [0.0, 0.0]
    """

    def __init__(
        self, config: MemoryNetworkConfig, *, vocab_size: int, num_answers: int | None = None
    ) -> None:
        super().__init__()
        self.config = config
        width = config.model_dim
        # The question's words are found from the first step on; a hop begins by adding little.
        self.match, self.mix = _table(vocab_size, width, 0.07), _table(vocab_size, width, 0.01)
        self.match_order, self.mix_order = (
            _table(config.max_sentences, width, 0.03) for _ in range(2)
        )
        self.between = nn.Linear(width, width, bias=False)
        nn.init.eye_(self.between.weight)
        self.answer = None if num_answers is None else nn.Linear(width, num_answers, bias=False)
        self.dropout = Dropout(config.dropout)

    def forward(
        self,
        sentences: Int[Tensor, "B M J"],
        counts: Int[Tensor, " B"],
        question: Int[Tensor, "B Q"],
    ) -> Float[Tensor, "B Y"]:
        """The logits of the answers; or of the sentences, −inf in padding.

        Args:
            sentences: Word ids, padded with 0 on the right, sentences too.
            counts: How many sentences are real.
            question: Word ids, padded with 0.

        Raises:
            ShapeError: There are more sentences than ``max_sentences``.
        """
        mask = visible(counts)
        u = self.dropout(self._read(question, self.match))
        places = self._places_of(sentences, counts)
        memory = self._memory(sentences, self.match, self.match_order[places])
        values = self._memory(sentences, self.mix, self.mix_order[places])
        for hop in range(self.config.num_hops):
            with at("cross", hop):
                found = attend(u[:, None], memory, values, score=Dot(), mask=mask)
            u = self.between(u) + found[:, 0]
        if self.answer is not None:
            words: Tensor = self.answer(u)
            return words
        logits: Tensor = (memory @ u[..., None]).squeeze(-1)
        padding = torch.arange(sentences.shape[1], device=u.device) >= counts[:, None]
        return logits.masked_fill(padding, -torch.inf)

    def _places_of(
        self, sentences: Int[Tensor, "B M J"], counts: Int[Tensor, " B"]
    ) -> Int[Tensor, "B M"]:
        """The number of each sentence, from 0; of padding any."""
        B, M, _ = sentences.shape
        if self.config.max_sentences < M:
            raise ShapeError(
                f"sentences must be at most max_sentences={self.config.max_sentences}; got {M}."
            )
        places = torch.arange(M, device=sentences.device).expand(B, M)
        if self.config.counted_from == "first":
            return places
        return (counts[:, None] - 1 - places).clamp(min=0)

    def _memory(self, sentences: Tensor, words: Tensor, order: Tensor) -> Tensor:
        memory: Tensor = self.dropout(self._read(sentences, words) + order)
        return memory

    def _read(self, ids: Tensor, words: Tensor) -> Tensor:
        """Sums of word vectors: a vector for each row of words."""
        vectors = words[ids] * (ids > 0)[..., None]
        if self.config.encoding == "position":
            vectors = vectors * _places(ids, words.shape[1])
        total: Tensor = vectors.sum(-2)
        return total


def _table(rows: int, width: int, deviation: float) -> nn.Parameter:
    return nn.Parameter(deviation * torch.randn(rows, width))


def _places(ids: Tensor, width: int) -> Tensor:
    """A weight for each word and number: ``(1 − j/J) − (k/d)(1 − 2j/J)``."""
    J, d = (ids > 0).sum(-1).clamp(min=1)[..., None, None], width
    j = torch.arange(1, ids.shape[-1] + 1, device=ids.device)[:, None]
    k = torch.arange(1, d + 1, device=ids.device)
    return (1 - j / J) - (k / d) * (1 - 2 * j / J)
