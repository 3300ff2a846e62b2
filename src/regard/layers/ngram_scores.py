"""Scores of the labels of a text from its n-grams: a linear model that is fitted, not trained."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from regard.checks import check_count
from regard.layers.inputs import valid_ids


class NgramScores(nn.Module):
    """Logits of the labels of a text from the TF-IDF of its n-grams.

    ``scale · (Σ_g x_g w_g + b)``, where x_g is the TF-IDF of the n-gram g in the text. The weights,
    one for each label, are those of a logistic regression: buffers that ``set`` fills, so that no
    step of training changes them. Of ids 0 is padding.
    """

    def __init__(self, num_ngrams: int, num_labels: int) -> None:
        super().__init__()
        check_count("num_ngrams", num_ngrams, least=0)
        check_count("num_labels", num_labels)
        self.weights: Tensor
        self.bias: Tensor
        self.scale: Tensor
        self.register_buffer("weights", torch.zeros(num_ngrams + 1, num_labels))
        self.register_buffer("bias", torch.zeros(num_labels))
        self.register_buffer("scale", torch.ones(()))

    def set(self, weights: Float[Tensor, "V K"], bias: Float[Tensor, " K"]) -> None:
        """Take a fitted model: the weights of each n-gram, and the bias."""
        self.weights[1:] = weights
        self.bias.copy_(bias)

    def forward(
        self, ngrams: Int[Tensor, "B M"], values: Float[Tensor, "B M"]
    ) -> Float[Tensor, "B K"]:
        """The logits, from the ids of each text's n-grams, padded with 0, and their TF-IDF."""
        ngrams = valid_ids("ngrams", ngrams, len(self.weights))
        # Padding has the weights 0.
        scores = (values[..., None] * F.embedding(ngrams, self.weights)).sum(1)
        logits: Tensor = self.scale * (scores + self.bias)
        return logits

    def log_odds(
        self, ngrams: Int[Tensor, " M"], values: Float[Tensor, " M"], label: int
    ) -> Float[Tensor, " M"]:
        """The term of each n-gram of a text in a label's logit, less the mean of the others'."""
        mean_weights = (self.weights.sum(1) - self.weights[:, label]) / (self.weights.shape[1] - 1)
        terms: Tensor = self.scale * values * (self.weights[:, label] - mean_weights)[ngrams]
        return terms
