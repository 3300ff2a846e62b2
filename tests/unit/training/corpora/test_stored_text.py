"""A text on disk is the text in memory; it is made once, and a kill costs little of it."""

import shutil

import numpy as np
import pytest
from tests.cases import slow_but

from regard.errors import DataError
from regard.text import BadLines, read_lines
from regard.training.corpora import encoding
from regard.training.corpora.encoding import ChunkEncoder
from regard.training.corpora.stored_text import StoredText

LM = {"task": "language_modelling", "data": {"context": 8, "valid_share": 0.2}}
MASKED = {"task": "masked_language_modelling", "data": {"context": 8, "valid_share": 0.2}}


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


def ids_of(stored):
    return {
        name: [array[index].tolist() for index in range(len(array))]
        for name, array in stored.arrays.items()
    }


def encoded(recipe, cache, *, processes=1, **tallies):
    text = StoredText.of(recipe, cache=cache)
    return text.encoded(text.learned(recipe), processes=processes, **tallies)


def as_in_memory(recipe, cache):
    """The task, the stored text, and the same in memory, which is compared."""
    text = StoredText.of(recipe, cache=cache)
    task = text.learned(recipe)
    stored = text.encoded(task, processes=1)
    pairs = task.drop_overlap(task.read(recipe, "train", merge=False), text.valid())
    expected = task.encode(pairs, training=True)
    assert len(stored) == len(expected) == 60 - len(text.valid())
    for sample, each in zip(stored, expected, strict=True):
        assert sample.source.tolist() == each.source.tolist()
        assert sample.target.tolist() == each.target.tolist()
    return task, stored, expected


def test_pairs_on_disk_are_those_of_memory(recipe, cache):
    task, stored, expected = as_in_memory(recipe(), cache)
    indices = np.array([3, 50, 7])
    assert (stored.lengths_at(indices) == task.lengths(expected)[:, indices]).all()


@pytest.mark.parametrize(("ending", "delimiter"), [(".csv", ","), (".tsv", "\t")])
def test_columns_go_by_their_header_as_in_memory(recipe, pairs, cache, ending, delimiter):
    for file in (pairs / "a.tsv", pairs / "b.tsv.gz"):
        lines = [line.text.split("\t") for line in read_lines(file)]
        rows = [("target", "id", "source"), *((target, "7", source) for source, target in lines)]
        text = "".join(f"{delimiter.join(row)}\n" for row in rows)
        file.unlink()
        (pairs / f"{file.name[0]}{ending}").write_text(text, encoding="utf-8")
    as_in_memory(recipe(), cache)


def test_several_processes_write_what_one_does(recipe, cache, tmp_path):
    one = encoded(recipe(), cache)
    assert ids_of(encoded(recipe(), tmp_path / "other", processes=2)) == ids_of(one)


@pytest.mark.parametrize("settings", [LM, MASKED], ids=lambda each: each["task"])
def test_running_text_on_disk_is_that_of_memory(recipe, cache, settings, tmp_path):
    (tmp_path / "text").mkdir()
    lines = [f"l{n} " + " ".join(f"w{(n * m) % 50}" for m in range(1, 9)) for n in range(301)]
    (tmp_path / "text" / "a.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    data = {**settings["data"], "train": "text"}
    recipe = recipe(settings["task"], data=data)
    text = StoredText.of(recipe, cache=cache)
    task = text.learned(recipe)
    stored = text.encoded(task, processes=1)
    learned = [line for passage in text.sample() for line in passage.lines]
    held_out = [line for passage in text.valid() for line in passage.lines]
    assert (learned, held_out) == (lines[:241], lines[241:])
    (tmp_path / "text" / "a.txt").write_text("\n".join(lines[:241]) + "\n", encoding="utf-8")
    expected = task.encode(task.read(recipe, "train"), training=True)
    assert abs(len(stored) - len(expected)) <= 1  # in memory there is a line end before all text
    shift = len(expected[0].ids) - len(stored[0].ids)
    assert stored[0].ids.tolist() == expected[0].ids[shift:].tolist()
    if settings is MASKED:
        assert stored[0].words.tolist() == expected[0].words.tolist()
    indices = np.arange(len(stored))
    assert (stored.lengths_at(indices)[0] == task.lengths([*stored])).all()
    assert stored[1].first == expected[1].first


def test_what_is_encoded_once_is_not_again(recipe, cache, pairs, monkeypatch):
    first, bad = encoded(recipe(), cache), BadLines()

    def fail(*_):
        raise AssertionError("read again")

    monkeypatch.setattr(ChunkEncoder, "encode", fail)
    shutil.move(pairs, pairs.with_name("elsewhere"))
    moved = recipe(data={"train": str(pairs.with_name("elsewhere"))})
    assert ids_of(encoded(moved, cache, bad_lines=bad)) == ids_of(first)


@pytest.mark.parametrize("change", ["text", "tokenizer", "length", "lines"])
def test_what_differs_is_encoded_anew(recipe, cache, pairs, change):
    first = ids_of(encoded(recipe(), cache))
    sections = {}
    if change == "text":
        (pairs / "a.tsv").write_text("one\ttwo\nthree\tfour\n", encoding="utf-8")
    elif change == "tokenizer":
        sections = {"tokenizer": {"type": "characters"}}
    elif change == "length":
        sections = {"data": {"max_length": 8}}
    elif change == "lines":
        sections = {"data": {"columns": [2, 1]}}
    assert ids_of(encoded(recipe(**sections), cache)) != first


def test_what_is_left_out_is_counted_in_every_chunk_and_again_of_the_cache(recipe, cache, pairs):
    with (pairs / "a.tsv").open("a") as file:
        file.write("no tab\n" * 9)
    counts = []
    for _ in range(2):
        tallies = {"bad_lines": BadLines(), "too_long": BadLines()}
        data = {"on_bad_line": "skip", "max_length": 8}
        stored = encoded(recipe(data=data), cache, **tallies)
        assert tallies["bad_lines"].counts == {"columns": 9}
        first = tallies["bad_lines"].examples["columns"][0]
        assert first.startswith(f"{pairs / 'a.tsv'}:38: expected 2 columns")
        counts.append(tallies["too_long"])
    assert counts[0] == counts[1]
    assert counts[0].total == 59 - len(stored) > 10


@pytest.mark.parametrize("processes", slow_but([1], [1, 2]))
def test_a_line_that_cannot_be_used_is_named(recipe, cache, pairs, processes):
    with (pairs / "a.tsv").open("a") as file:
        file.write("no tab\n")
    text = StoredText.of(recipe(data={"on_bad_line": "skip"}), cache=cache)
    task = text.learned(text.recipe)
    strict = StoredText.of(recipe(), cache=cache)
    with pytest.raises(DataError, match=r"a\.tsv:38: expected 2 columns, found 1"):
        strict.encoded(task, processes=processes)


@pytest.mark.parametrize("after", range(1, 9, 2))
def test_a_killed_encoding_resumes_where_its_files_are_complete(recipe, cache, tmp_path, after):
    expected = ids_of(encoded(recipe(), tmp_path / "other"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoding, "_SAVED_EVERY", 0.0)
        encode, calls = ChunkEncoder.encode, []

        def killed(self, chunk):
            calls.append(chunk)
            if len(calls) > after:
                raise KeyboardInterrupt
            return encode(self, chunk)

        patch.setattr(ChunkEncoder, "encode", killed)
        with pytest.raises(KeyboardInterrupt):
            encoded(recipe(), cache)
    for file in cache.rglob("*.ids"):  # what was written after the last moment that counts
        with file.open("ab") as partial:
            partial.write(b"half")
    with pytest.MonkeyPatch.context() as patch:
        chunks = []

        def recorded(self, chunk):
            chunks.append(chunk)
            return encode(self, chunk)

        patch.setattr(ChunkEncoder, "encode", recorded)
        assert ids_of(encoded(recipe(), cache)) == expected
    assert len(chunks) == 10 - after
    assert not list(cache.rglob("*.partial"))


def test_files_that_are_shorter_than_they_were_are_made_anew(recipe, cache):
    expected = ids_of(encoded(recipe(), cache))
    (folder,) = cache.glob("*/encoded/*")
    (folder / "about.json").unlink()
    folder.rename(folder.with_name(f"{folder.name}.partial"))
    (partial,) = cache.glob("*/encoded/*")
    (partial / "source.ids").write_bytes(b"")
    assert ids_of(encoded(recipe(), cache)) == expected


def test_a_validation_file_holds_nothing_out(recipe, cache, tmp_path):
    (tmp_path / "valid.tsv").write_text("x y\tz\n", encoding="utf-8")
    recipe = recipe(data={"valid": str(tmp_path / "valid.tsv")})
    text = StoredText.of(recipe, cache=cache)
    assert [pair.source for pair in text.valid()] == ["x y"]
    assert len(text.encoded(text.learned(recipe), processes=1)) == 60


def test_a_text_with_no_pair_short_enough_is_an_error(recipe, cache):
    with pytest.raises(
        DataError, match=r"pairs that can be learned from; got none\. .*tsv:\d+: the"
    ):
        encoded(recipe(data={"max_length": 1}), cache)
