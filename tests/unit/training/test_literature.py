"""How the paper's models are trained, as numbers: see docs/literature.md."""

from math import exp, log

import pytest
import torch

from regard.tasks.sequences.chunked_loss import smoothed_cross_entropy
from regard.training.optimization import peak_rate, rate_at
from regard.training.settings import TrainingConfig


def test_training_settings_are_the_papers():
    config = TrainingConfig(updates=100_000)
    assert (config.betas, config.eps) == ((0.9, 0.98), 1e-9)
    assert (config.warmup, config.schedule, config.label_smoothing) == (4000, "inverse_sqrt", 0.1)


@pytest.mark.parametrize("update", [1, 100, 3999, 4000, 4001, 100_000])
def test_the_learning_rate_is_equation_3(update):
    config = TrainingConfig(updates=100_000)
    rate = rate_at(update, update / 100_000, peak=peak_rate(config, 512), config=config)
    assert rate == pytest.approx(512**-0.5 * min(update**-0.5, update * 4000**-1.5))


def test_label_smoothing_spreads_its_share_over_the_vocabulary():
    V, epsilon, label = 7, 0.1, 2
    logits = torch.randn(1, V)
    total = sum(exp(x) for x in logits[0].tolist())
    by_hand = 0.0
    for v in range(V):
        target = epsilon / V + (1 - epsilon if v == label else 0)
        by_hand -= target * log(exp(logits[0, v].item()) / total)
    loss = smoothed_cross_entropy(logits, torch.tensor([label]), smoothing=epsilon)
    assert loss.item() == pytest.approx(by_hand, rel=1e-5)
