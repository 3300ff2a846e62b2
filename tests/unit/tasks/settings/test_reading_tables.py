"""Every task reads Parquet, and several files, by what its recipe calls columns."""

import gzip

import pytest

from regard.errors import DataError, SettingError
from regard.tasks import TASKS, recipe_from_table
from regard.text.reading.questions import Answer

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

# task, row, settings of [data], and attributes of the example
TABLES = [
    (
        "translation",
        {"translation": {"de": "ja", "en": "yes"}},
        {"columns": ["translation.de", "translation.en"]},
        {"source": "ja", "target": "yes"},
    ),
    (
        "classification",
        {"review": "good", "stars": 5, "kind": "book"},
        {"text": "review", "label": "stars", "aspect": "kind"},
        {"text": "good", "label": "5", "aspect": "book"},
    ),
    (
        "pair_matching",
        {"premise": "a", "second": "b", "label": 1},
        {"first": "premise"},
        {"first": "a", "second": "b", "label": "1"},
    ),
    (
        "tagging",
        {"tokens": ["a", "b"], "ner": [1, 2]},
        {"tag": "ner"},
        {"words": ("a", "b"), "tags": ("1", "2")},
    ),
    ("language_modelling", {"story": "a\nb"}, {"column": "story"}, {"lines": ("a", "b")}),
    ("masked_language_modelling", {"text": "one"}, {}, {"lines": ("one",)}),
    (
        "question_answering",
        {"question": "?", "context": "by Ann", "answers": {"text": ["Ann"], "answer_start": [3]}},
        {},
        {"answers": (Answer("Ann", 3),)},
    ),
    (
        "generation",
        {"article": "Long.", "highlights": "Short."},
        {"document": "article", "answer": "highlights"},
        {"source": "Long.", "target": "Short."},
    ),
    (
        "regression",
        {"area": 50, "rent": 800.5},
        {"inputs": ["area"], "target": "rent"},
        {"inputs": (50.0,), "target": 800.5},
    ),
    ("image_classification", {"pixels": [[0, 9], [9, 0]], "label": "/"}, {}, {"label": "/"}),
]


def read(task, folder, split="train", **data):
    recipe = recipe_from_table({"task": task, "data": data}, folder=folder)
    return TASKS[task].task.read(recipe, split)


@pytest.mark.parametrize(("task", "row", "data", "expected"), TABLES, ids=[t[0] for t in TABLES])
def test_a_table_is_read_by_the_names_of_its_columns(tmp_path, task, row, data, expected):
    parquet.write_table(pyarrow.Table.from_pylist([row]), tmp_path / "a.parquet")
    (example,) = read(task, tmp_path, train="a.parquet", **data)
    assert {name: getattr(example, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (
            "translation",
            r"a\.parquet:1: expected the key 'source'; found 'x', 'y'\..*data\.columns",
        ),
        ("classification", r"a\.parquet:1: expected the key 'text'; found 'x', 'y'\..*data\.text"),
        ("language_modelling", r"a\.parquet:1: .* key 'text'; found 'x', 'y'\..*data\.column"),
        ("tagging", r"a\.parquet:1: expected a JSON object \{\"tokens\": .* found '\{\"x\""),
    ],
)
def test_a_table_without_the_column_says_which_it_has(tmp_path, task, message):
    parquet.write_table(pyarrow.table({"x": ["a"], "y": ["b"]}), tmp_path / "a.parquet")
    with pytest.raises(DataError, match=message):
        read(task, tmp_path, train="a.parquet")


def test_names_and_numbers_of_columns_do_not_go_together(tmp_path):
    (tmp_path / "a.tsv").write_text("a\tb\n", encoding="utf-8")
    with pytest.raises(SettingError, match=r"all be numbers, or all names; got \[1, 'en'\]"):
        read("translation", tmp_path, train="a.tsv", columns=[1, "en"])


def write_shards(folder, ending, texts):
    folder.mkdir()
    for number, text in enumerate(texts):
        packed = gzip.compress(text.encode())
        (folder / f"part-{number:02}-of-{len(texts):02}{ending}.gz").write_bytes(packed)


@pytest.mark.parametrize("name", ["shards", "shards/*.tsv.gz"])
def test_shards_are_read_one_after_the_other(tmp_path, name):
    write_shards(tmp_path / "shards", ".tsv", ["a\tA\nb\tB\n", "c\tC\n"])
    pairs = read("translation", tmp_path, train=name)
    assert [(pair.source, pair.target) for pair in pairs] == [("a", "A"), ("b", "B"), ("c", "C")]
    assert pairs[2].where.endswith("part-01-of-02.tsv.gz:1")


def test_shards_of_sources_and_targets_belong_together(tmp_path):
    write_shards(tmp_path / "de", ".txt", ["a\nb\n", "c\n"])
    write_shards(tmp_path / "en", ".txt", ["A\nB\n", "C\n"])
    pairs = read("translation", tmp_path, train=["de", "en"])
    assert [(pair.source, pair.target) for pair in pairs] == [("a", "A"), ("b", "B"), ("c", "C")]
    for file in (tmp_path / "en").iterdir():
        file.rename(tmp_path / "en" / file.name.replace("-of-02", ""))
    (tmp_path / "en" / "part-01.txt.gz").unlink()
    with pytest.raises(SettingError, match="as many files of sources as of targets; got 2 and 1"):
        read("translation", tmp_path, train=["de", "en"])


def test_pairs_of_one_source_are_one_across_shards(tmp_path):
    write_shards(tmp_path / "test", ".tsv", ["a\tA\n", "a\tB\n"])
    (pair,) = read("translation", tmp_path, "test", test="test")
    assert pair.references == ("A", "B")


def test_a_recipe_keeps_what_it_names_not_what_was_found(tmp_path):
    write_shards(tmp_path / "shards", ".tsv", ["a\tA\n", "b\tB\n"])
    recipe = recipe_from_table({"data": {"train": "shards/*.gz"}}, folder=tmp_path)
    assert recipe.table()["data"]["train"] == [str(tmp_path / "shards" / "*.gz")]
