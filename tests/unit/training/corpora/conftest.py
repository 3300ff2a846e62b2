import gzip

import pytest

from regard.tasks import recipe_from_table
from regard.training.corpora import scanning

WORDS = [f"w{number}" for number in range(40)]


@pytest.fixture(autouse=True)
def few_lines_a_chunk(monkeypatch):
    """Chunks of seven lines, so that a small text has several."""
    monkeypatch.setattr(scanning, "CHUNK_LINES", 7)


def sentence(number):
    return " ".join(WORDS[(number * step) % 40] for step in range(1, 3 + number % 5))


@pytest.fixture
def pairs(tmp_path):
    """Sixty different pairs in two shards, one of them packed."""
    folder = tmp_path / "shards"
    folder.mkdir()
    rows = [f"a{n} {sentence(n)}\tb{n} {sentence(n)}\n" for n in range(60)]
    (folder / "a.tsv").write_text("".join(rows[:37]), encoding="utf-8")
    (folder / "b.tsv.gz").write_bytes(gzip.compress("".join(rows[37:]).encode()))
    return folder


@pytest.fixture
def recipe(tmp_path, pairs):
    def make(task="translation", **sections):
        data = {"train": str(pairs / "*"), **sections.pop("data", {})}
        table = {"task": task, "data": data, "tokenizer": {"type": "words"}, **sections}
        return recipe_from_table(table, folder=tmp_path)

    return make
