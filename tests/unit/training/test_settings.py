import pytest

from regard.config import build
from regard.errors import SettingError
from regard.training import TrainingConfig
from regard.training.position import Position


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"updates": 0}, "updates must be at least 1; got 0"),
        ({"minutes": 0.0}, "minutes must be above 0; got 0.0"),
        ({"updates": None}, "one of updates, epochs, minutes must be set; got none. Training"),
        ({"validation_pairs": -1}, "validation_pairs must be at least 0; got -1"),
        ({"weight_decay": -0.1}, "weight_decay must be at least 0; got -0.1"),
        ({"label_smoothing": 1.0}, "label_smoothing must be at least 0 and below 1; got 1.0"),
        ({"seed": 99999999999999999999}, r"seed must be a number below 2 \*\* 63; got 9999999"),
        ({"batch_tokens": 10**400}, r"batch_tokens must be a number below 2 \*\* 63; got 1000"),
        ({"minutes": float("inf")}, "minutes must be a finite number; got inf"),
        ({"minutes": float("nan")}, "minutes must be above 0; got nan"),
        ({"betas": (0.9,)}, r"betas must be two numbers, .* got \[0.9\]"),
        ({"betas": (0.9, 1.0)}, r"betas must be two numbers, .* got \[0.9, 1.0\]"),
        (
            {"metric": "bleu", "validation_pairs": 0},
            "validation_pairs must be above 0 where metric is bleu; got 0. BLEU is measured",
        ),
    ],
)
def test_wrong_value_is_named(settings, message):
    with pytest.raises(SettingError, match=message):
        TrainingConfig(**{"updates": 1} | settings)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"minutes": 10**400}, r"training.minutes must be a number below 2 \*\* 63; got 1000"),
        ({"update": 1}, "training.update is not a setting. Did you mean training.updates"),
        ({"updates": 1, "keep": True}, "training.keep must be a whole number; got True"),
        (
            {"updates": 1, "precision": "bf16"},
            "training.precision must be one of auto, bfloat16, float16, .*; got 'bf16'",
        ),
    ],
)
def test_wrong_line_of_a_recipe_is_named(table, message):
    with pytest.raises(SettingError, match=message):
        build(TrainingConfig, table, where="training")


def test_a_small_text_is_read_until_the_least_updates_are_made():
    small = TrainingConfig(epochs=2, least_updates=30)
    assert Position(update=10, epoch=2).share(small, 5) == pytest.approx(1 / 3)
    assert Position(update=30, epoch=6).share(small, 5) == 1
    large = TrainingConfig(epochs=2, least_updates=30)
    assert Position(update=40, epoch=1).share(large, 40) == 0.5
