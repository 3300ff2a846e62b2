import gzip

import pytest
import torch

from regard.errors import DataError
from regard.text.vectors import read_vectors, write_vectors


@pytest.mark.parametrize("has_header", [True, False])
def test_what_is_written_comes_back(tmp_path, has_header):
    words, table = ["the", "我", ",", "3"], torch.randn(4, 5)
    path = tmp_path / "vectors.txt"
    write_vectors(path, words, table, has_header=has_header)
    vectors = read_vectors(path)
    assert vectors.words == tuple(words)
    assert vectors.table.equal(table)
    assert path.read_text().startswith("4 5\n") == has_header
    assert [each.name for each in tmp_path.iterdir()] == ["vectors.txt"]


def test_only_words_of_the_vocabulary_are_read(tmp_path):
    path = tmp_path / "vectors.txt.gz"
    path.write_bytes(gzip.compress(b"the 1 2\ndog 3 4\nCat 5 6\nthe 7 8\n"))
    vectors = read_vectors(path, wanted=["The", "Cat", "mouse"])
    assert vectors.words == ("the", "Cat")
    assert vectors.table.tolist() == [[1, 2], [5, 6]]


def test_vectors_are_placed_into_an_embedding(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("2 2\nthe 1 2\nDog 3 4 \n")
    table = torch.nn.Embedding(4, 2)
    before = table.weight[2].clone()
    assert read_vectors(path).place(table.weight, ["Dog", "The", "dog", "the"]) == 3
    assert table.weight[[0, 1, 3]].tolist() == [[3, 4], [1, 2], [1, 2]]
    assert table.weight[2].equal(before)
    with pytest.raises(DataError, match=r"must be 3 wide.*got 2\. Set model\.embed_dim = 2"):
        read_vectors(path).place(torch.zeros(1, 3), ["the"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("the 1 2\nNew York 3 4\n", r":2: expected a word and its numbers.*space in the word"),
        ("the 1 2\ndog 3\n", r":2: expected 2 numbers, found 1"),
        ("3 2\nthe 1 nan\n", r":2: expected finite numbers; found nan or inf"),
        ("the 1 2\ndog 1 x\n", r":2: expected a word and its numbers"),
        ("", "must hold words with their vectors; got none"),
        ("2 3\n", "must hold words with their vectors; got none"),
    ],
)
def test_what_is_no_vector_is_named(tmp_path, text, message):
    path = tmp_path / "vectors.txt"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        read_vectors(path)


def test_what_cannot_be_written_is_named(tmp_path):
    path = tmp_path / "vectors.txt"
    with pytest.raises(DataError, match=r"words must be without spaces.*got 'New York'"):
        write_vectors(path, ["New York"], torch.zeros(1, 2))
    with pytest.raises(DataError, match="words must be one for each row, 2; got 1"):
        write_vectors(path, ["a"], torch.zeros(2, 2))
    with pytest.raises(DataError, match=r"none\.txt must exist; it does not"):
        read_vectors(tmp_path / "none.txt")
    assert not list(tmp_path.iterdir())
