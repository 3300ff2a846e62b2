"""Equal budgets: the recipes build, differ in the model only, and seconds are the process's own."""

import time

from benchmarks.equal_budgets import SYSTEMS, cpu_clock, recipe_table

import regard.training.trainer as trainer
from regard.tasks import recipe_from_table
from regard.tasks.translation import TranslationTask
from regard.text import TokenizerConfig, train_pair_tokenizer


def make_table(system: str) -> dict[str, object]:
    return recipe_table(system, data={}, tokenizer={"type": "words", "shared": False}, minutes=2)


def test_the_three_are_of_about_one_size():
    words = [f"w{number}" for number in range(3000)]
    settings = TokenizerConfig(type="words", shared=False)
    tokenizer = train_pair_tokenizer(words, words, settings)
    sizes = []
    for system in SYSTEMS:
        model = TranslationTask(recipe_from_table(make_table(system)), tokenizer).build_model()
        sizes.append(sum(p.numel() for p in model.parameters()))
    assert max(sizes) < 1.15 * min(sizes)


def test_waiting_costs_no_budget():
    with cpu_clock():
        start = trainer.time.perf_counter()
        time.sleep(0.2)
        spent = trainer.time.perf_counter() - start
    assert spent < 0.1
    assert trainer.time is time
