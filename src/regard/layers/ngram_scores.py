"""Attention over the scores that n-grams give the labels of a text."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention import attend, dense
from regard.attention.observing import at
from regard.attention.scores import Dot
from regard.checks import check_positive

# Ids below are no n-gram of training: padding, and what is unknown.
_FIRST = 2
# Added to every count, as alpha in Wang & Manning (2012).
_SMOOTHING = 1.0
# The mean of ratios is small beside logits: what it is multiplied with at first.
_SCALE = 3.0
# Scores, keys and scale are kept divided by it: Adam moves every number by about the learning rate,
# and these, each of which few texts have, need larger steps than the weights of layers.
STEP = 5.0


class NgramScores(nn.Module):
    """Scores of the labels from the n-grams of a text, mixed by attention: a learned NB-SVM.

    ``scale · Σ_g α_g r_g`` with ``α = softmax(a_g)`` over the n-grams g of a text, where r_g has a
    number for each label and a_g is one number. They begin as the log-count ratios of Wang &
    Manning (2012), https://aclanthology.org/P12-2018, and as zeros: naive Bayes with the mean of
    the evidence in place of its sum.

    An n-gram belongs to the position it ends at: observers see one query and a weight for each
    position, the sum of those of its n-grams. A text without any known n-gram has no scores.

    Args:
        vocab_size: Number of ids of n-grams; 0 is padding, and 1 an unknown one.
        num_labels: Number of labels, K.

    Raises:
        SettingError: A number is not positive.

    Example:
        >>> layer = NgramScores(vocab_size=4, num_labels=2)
        >>> texts = [torch.tensor([[2], [3]]), torch.tensor([[2], [2]]), torch.tensor([[3], [0]])]
        >>> layer.initialise(texts, [0, 0, 1])
        >>> layer(torch.tensor([[[2], [0]], [[3], [3]]])).argmax(-1)
        tensor([0, 1])
    """

    def __init__(self, vocab_size: int, num_labels: int) -> None:
        super().__init__()
        check_positive("parts_vocab", vocab_size, cure="Scores of n-grams need ids of n-grams.")
        check_positive("num_labels", num_labels)
        self.keys = nn.Parameter(torch.zeros(vocab_size, 1))
        self.values = nn.Parameter(torch.zeros(vocab_size, num_labels))
        self.scale = nn.Parameter(torch.tensor(_SCALE / STEP))

    @torch.no_grad()
    def initialise(self, texts: Sequence[Int[Tensor, "_ _"]], labels: Sequence[int]) -> None:
        """Set every score to its log-count ratio in these texts, each n-gram once in a text.

        ``r_gk = log((1 + p_gk) / Σ_h (1 + p_hk)) − log((1 + q_gk) / Σ_h (1 + q_hk))``, where p
        counts the texts with the label k that have g, and q those without the label.

        Args:
            texts: Ids of the n-grams at each position, padded with 0.
            labels: The number of each text's label.
        """
        counts = torch.zeros_like(self.values)
        for ids, label in zip(texts, labels, strict=True):
            counts[torch.unique(ids).long(), label] += 1
        known = counts[_FIRST:]
        ours, others = known + _SMOOTHING, known.sum(1, keepdim=True) - known + _SMOOTHING
        ratios = (ours / ours.sum(0)).log() - (others / others.sum(0)).log()
        self.values[_FIRST:] = ratios / STEP

    def forward(self, parts: Int[Tensor, "B N L"]) -> Float[Tensor, "B K"]:
        """The scores of the labels.

        Args:
            parts: Ids of the n-grams that end at each position, padded with 0.
        """
        # Softmax over all n-grams is softmax over positions of the sums of exponentials, and then
        # within each position: the weights are those of one softmax, seen position by position.
        known = parts >= _FIRST
        is_empty = ~known.any(-1, keepdim=True)
        scores = STEP * F.embedding(parts, self.keys).squeeze(-1)
        within = scores.masked_fill(~known, -torch.inf).masked_fill(is_empty, 0.0)
        keys = within.logsumexp(-1, keepdim=True)  # (B, N, 1)
        values = (within - keys).exp()[..., None] * F.embedding(parts, self.values)  # (B, N, L, K)
        with at("cross", 1):
            mixed = attend(
                keys.new_ones(parts.shape[0], 1, 1, 1),
                keys[:, None],
                STEP * values.sum(-2)[:, None],
                score=Dot(),
                mask=dense(~is_empty.mT[:, None]),
            )
        return STEP * self.scale * mixed.flatten(1)
