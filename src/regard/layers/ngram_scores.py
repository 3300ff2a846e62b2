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
# Added to every count, as alpha in Wang & Manning (2012); and to every ratio: none is hidden.
_SMOOTHING, _LEAST_RATIO = 1.0, 0.05
_SCALE = 3.0  # of the logits, at first
_LEAST_TEXTS = 3  # of an aspect that have an n-gram, so that it is one of the aspect
_HIDDEN = -1e4  # the score of what is no n-gram; finite, so that none at all has gradients
# Scores, keys and scale are kept divided by it: Adam moves every number by about the learning rate,
# and these, each of which few texts have, need larger steps than the weights of layers.
STEP = 5.0


class NgramScores(nn.Module):
    """Scores of the labels from the n-grams of a text, weighed by attention: a learned NB-SVM."""

    # ``scale · Σ_g α_g r_g / ‖α‖`` with ``α = softmax(a_g)`` over the n-grams g of a text, where
    # r_g has a number for each label, and a_g is one number. The keys a_g begin as ``log(idf_g ·
    # |ρ_g|)`` with the log-count ratios ρ of Wang & Manning (2012),
    # https://aclanthology.org/P12-2018, and the scores r_g as zeros: the linear classifier of
    # TF-IDF times ratios, with its inputs of length 1. Division by the weights' length lets more
    # evidence count more, as a sum would, but less than n times as much. Where texts are read for
    # an aspect, each n-gram is also one of the aspect, with a key and scores of its own where
    # enough texts have it (Daumé, 2007, https://aclanthology.org/P07-1033).
    #
    # An n-gram belongs to the position it ends at: observers see one query and a weight for each
    # position, the sum of those of its n-grams. A text without any known n-gram has no scores. Of
    # ids 0 is padding, and 1 an unknown n-gram.

    def __init__(
        self, vocab_size: int, num_labels: int, *, num_aspects: int = 0, dropout: float = 0.0
    ) -> None:
        super().__init__()
        check_positive("parts_vocab", vocab_size, cure="Scores of n-grams need ids of n-grams.")
        check_positive("num_labels", num_labels)
        self.vocab_size, self.num_aspects, self.dropout = vocab_size, num_aspects, dropout
        rows = vocab_size * (1 + num_aspects)
        self.keys = nn.Parameter(torch.zeros(rows, 1))
        self.values = nn.Parameter(torch.zeros(rows, num_labels))
        self.scale = nn.Parameter(torch.tensor(_SCALE / STEP))

    @torch.no_grad()
    def initialise(
        self,
        texts: Sequence[Int[Tensor, "_ _"]],
        labels: Sequence[int],
        aspects: Sequence[int] | None = None,
    ) -> None:
        """Set the keys by these texts and their labels, each n-gram once in a text."""
        # ``ρ_gk = log((1 + p_gk) / Σ_h (1 + p_hk)) − log((1 + q_gk) / Σ_h (1 + q_hk))``, where p
        # counts the texts with the label k that have g, and q those without the label; of all
        # labels the largest. ``idf_g = 1 + log((1 + T) / (1 + t_g))``, where t of T texts have g.
        counts = torch.zeros_like(self.values)
        for number, (ids, label) in enumerate(zip(texts, labels, strict=True)):
            present = torch.unique(ids).long()
            counts[present, label] += 1
            if self.num_aspects and aspects is not None:
                counts[present + (1 + aspects[number]) * self.vocab_size, label] += 1
        known = counts[_FIRST:]
        among = known.sum(1, keepdim=True)
        ours, others = known + _SMOOTHING, among - known + _SMOOTHING
        ratios = ((ours / ours.sum(0)).log() - (others / others.sum(0)).log()).abs()
        telling = ratios.amax(1, keepdim=True) + _LEAST_RATIO
        rare = 1 + ((1 + len(texts)) / (1 + among)).log()
        self.keys[_FIRST:] = (rare * telling).log() / STEP
        own = self.keys[self.vocab_size :]
        own[among[self.vocab_size - _FIRST :] < _LEAST_TEXTS] = _HIDDEN / STEP

    def forward(
        self, parts: Int[Tensor, "B N L"], aspects: Int[Tensor, " B"] | None = None
    ) -> Float[Tensor, "B K"]:
        """The scores of the labels, from the n-grams that end at each position, padded with 0."""
        # Softmax over all n-grams is softmax over positions of the sums of exponentials, and then
        # within each position: the weights are those of one softmax, seen position by position.
        known = parts >= _FIRST
        if aspects is not None and self.num_aspects:
            own = parts + (1 + aspects[:, None, None]) * self.vocab_size
            parts, known = torch.cat([parts, own], -1), torch.cat([known, known], -1)
        if self.training and self.dropout:
            known = known & (torch.rand(known.shape, device=known.device) >= self.dropout)
        is_empty = ~known.any(-1, keepdim=True)
        scores = STEP * F.embedding(parts, self.keys).squeeze(-1)
        within = scores.masked_fill(~known, -torch.inf).masked_fill(is_empty, 0.0)
        keys = within.logsumexp(-1, keepdim=True)  # (B, N, 1)
        values = F.embedding(parts, self.values)
        values = (within - keys).exp()[..., None] * values  # (B, N, L, K)
        with at("cross", 1):
            mixed = attend(
                keys.new_ones(parts.shape[0], 1, 1, 1),
                keys[:, None],
                STEP * values.sum(-2)[:, None],
                score=Dot(),
                mask=dense(~is_empty.mT[:, None]),
            )
        # 1 / ‖α‖, from logarithms; a text of no known n-gram has the score 0 however it is scaled.
        every = scores.masked_fill(~known, _HIDDEN).flatten(1)
        length = every.logsumexp(-1, keepdim=True) - (2 * every).logsumexp(-1, keepdim=True) / 2
        return STEP * self.scale * mixed.flatten(1) * length.exp()
