"""What the benchmark of classifiers trains on, without training."""

import json

import pytest
from benchmarks import classification
from benchmarks.classification import CORPORA, HEADS, NEVER, Bench


@pytest.fixture
def bench(tmp_path):
    folder = tmp_path / "data" / CORPORA["sst2"].folder
    folder.mkdir(parents=True)
    rows = "".join(f"text {number}\t{number % 2}\n" for number in range(200))
    (folder / "train.tsv").write_text(rows, encoding="utf-8")
    (folder / "dev.tsv").write_text(rows, encoding="utf-8")
    (tmp_path / "work").mkdir()
    return Bench(tmp_path / "work", tmp_path / "data")


def test_a_part_holds_other_examples_for_each_seed_and_the_same_each_time(bench):
    one, other = (bench.part("sst2", 100, seed) for seed in (1, 2))
    rows = [json.loads(line) for line in one.read_text().splitlines()]
    assert len({row["text"] for row in rows}) == 100
    assert one.read_text() != other.read_text()
    one.unlink()
    assert [
        json.loads(line) for line in bench.part("sst2", 100, 1).read_text().splitlines()
    ] == rows


@pytest.mark.parametrize("name", HEADS)
def test_every_head_is_trained_for_its_epochs_and_nothing_is_chosen(bench, name):
    recipe = bench.recipe(HEADS[name], "sst2", 2, None)
    assert recipe.training["validate_every"] == NEVER
    assert recipe.training["seed"] == 2
    assert recipe.training["epochs"] in (7, 10)
    assert "ema" not in recipe.training
    few = bench.recipe(HEADS[name], "sst2", 2, 100)
    assert few.training["epochs"] == classification.SIZES[100]
