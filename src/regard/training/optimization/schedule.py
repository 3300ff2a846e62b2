"""The learning rate over the course of training."""

import math

from regard.training.settings import TrainingConfig

# What the cosine falls to, as a share of the peak: Hoffmann et al. (2022), section 3.
_COSINE_END = 0.1


def peak_rate(config: TrainingConfig, model_dim: int) -> float:
    """The highest learning rate: as set, or the paper's, (model_dim * warmup) ** -0.5."""
    if config.learning_rate is not None:
        return config.learning_rate
    return float((model_dim * config.warmup) ** -0.5)


def rate_at(update: int, share: float, *, peak: float, config: TrainingConfig) -> float:
    """The learning rate of one update, at a fraction ``share`` of the training."""
    # With ``inverse_sqrt`` and the paper's peak this is equation 3 of Vaswani et al. (2017):
    # ``model_dim ** -0.5 * min(update ** -0.5, update * warmup ** -1.5)``.
    warmup = _warmup(update, share, config)
    if update < warmup:
        return peak * update / warmup
    if config.schedule == "inverse_sqrt":
        return float(peak * (warmup / update) ** 0.5)
    # The end of warm-up as a share of training follows from where we are now.
    warm = share * warmup / update
    left = max(0.0, 1 - share) / max(1e-9, 1 - warm)
    if config.schedule == "linear":
        return peak * left
    if config.schedule == "cosine":
        wave = 0.5 * (1 - math.cos(math.pi * min(1.0, left)))
        return peak * (_COSINE_END + (1 - _COSINE_END) * wave)
    return peak


def _warmup(update: int, share: float, config: TrainingConfig) -> float:
    """Updates of warm-up: as set, or its largest share of all that there will be."""
    if config.warmup_share is None or share == 0:
        return float(config.warmup)
    return float(min(config.warmup, max(1.0, config.warmup_share * update / share)))
