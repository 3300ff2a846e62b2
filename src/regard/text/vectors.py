"""Static word vectors in the text formats of word2vec and GloVe, read and written.

A line is a word and its numbers; word2vec's files begin with a line of their counts. Nothing is
unpickled, and a file may be gzip or zstd.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard.errors import DataError
from regard.text.reading.lines import Line, read_lines, readable


@dataclass(frozen=True)
class WordVectors:
    """Words and their vectors.

    Attributes:
        words: Each once, in the order of the file.
        table: One row a word.

    Example:
        >>> vectors = WordVectors(("love", "china"), torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
        >>> embedding = torch.zeros(3, 2)
        >>> vectors.place(embedding, ["I", "love", "China"]), embedding.tolist()
        (2, [[0.0, 0.0], [1.0, 2.0], [3.0, 4.0]])
    """

    words: tuple[str, ...]
    table: Float[Tensor, "V C"]

    def place(self, embedding: Float[Tensor, "W C"], words: Sequence[str]) -> int:
        """Write the vectors of ``words`` into the rows of an embedding; says how many were found.

        A word that is not there is looked for in lower case; where that is not there either, its
        row stays as it is.

        Args:
            embedding: Changed in place; its rows stand for ``words``.
            words: What each row stands for.

        Raises:
            DataError: The vectors are of another width.
        """
        if self.table.shape[1] != embedding.shape[1]:
            raise DataError(
                f"vectors must be {embedding.shape[1]} wide, as the model's embeddings are; "
                f"got {self.table.shape[1]}. Set model.embed_dim = {self.table.shape[1]}."
            )
        rows = {word: row for row, word in enumerate(self.words)}
        rows_of_words = [
            (target, row)
            for target, word in enumerate(words)
            if (row := rows.get(word, rows.get(word.lower()))) is not None
        ]
        if rows_of_words:
            targets, sources = (torch.tensor(each) for each in zip(*rows_of_words, strict=True))
            with torch.no_grad():
                embedding[targets] = self.table[sources].to(embedding)
        return len(rows_of_words)


def read_vectors(path: Path, *, wanted: Sequence[str] | None = None) -> WordVectors:
    r"""The vectors in a file.

    Args:
        path: In word2vec's or GloVe's text format.
        wanted: Words to keep, in this or in lower case, so that a file of millions need not fit;
            None keeps all.

    Raises:
        DataError: The file is missing or empty, or a line is no word with as many finite numbers as
            the others; named as ``file:line``.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "vectors.txt"
        >>> _ = path.write_text("love 1 2\nhate -1 -2\n", encoding="utf-8")
        >>> found = read_vectors(path, wanted=["Love"])
        >>> found.words, found.table.tolist()
        (('love',), [[1.0, 2.0]])
    """
    forms = None if wanted is None else {*wanted, *(word.lower() for word in wanted)}
    words: dict[str, None] = {}
    rows: list[np.ndarray] = []
    width: int | None = None
    for line in _vector_lines(path):
        word, space, numbers = line.text.rstrip(" ").partition(" ")
        if width is None:
            width = len(numbers.split(" ")) if space else 0
        if word in words or (forms is not None and word not in forms):
            continue
        words[word] = None
        rows.append(_numbers(line, numbers, width))
    if not width:
        raise DataError(f"{path} must hold words with their vectors; got none.")
    table = torch.from_numpy(np.stack(rows)) if rows else torch.zeros(0, width)
    return WordVectors(tuple(words), table)


def write_vectors(
    path: Path, words: Sequence[str], table: Float[Tensor, "V C"], *, has_header: bool = True
) -> None:
    """Write vectors as text, complete or not at all.

    Args:
        path: Where to.
        words: One for each row; none may be empty or have a space or line break in it.
        table: The vectors.
        has_header: Whether the counts come first, as in word2vec's files; GloVe's have none.

    Raises:
        DataError: There is not one word for each row, or a word cannot be written.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "vectors.txt"
        >>> write_vectors(path, ["love", "hate"], torch.tensor([[1.0, 2.0], [-1.0, -2.5]]))
        >>> print(path.read_text(encoding="utf-8").rstrip())
        2 2
        love 1 2
        hate -1 -2.5
    """
    if len(words) != len(table):
        raise DataError(f"words must be one for each row, {len(table)}; got {len(words)}.")
    for word in words:
        if not word or word.split() != [word]:
            raise DataError(
                f"words must be without spaces to be written as text; got {word!r}. "
                "Leave it out, or write it in another way."
            )
    part = path.with_name(f"{path.name}.part")
    with part.open("w", encoding="utf-8", newline="\n") as file:
        if has_header:
            file.write(f"{table.shape[0]} {table.shape[1]}\n")
        for word, row in zip(words, table.detach().cpu().float().tolist(), strict=True):
            file.write(f"{word} {' '.join(f'{number:.9g}' for number in row)}\n")
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def _vector_lines(path: Path) -> Iterator[Line]:
    """The lines with vectors in them: without the counts that word2vec writes first."""
    for number, line in enumerate(read_lines(path)):
        parts = readable(line).split()
        is_header = number == 0 and len(parts) == 2 and all(part.isdigit() for part in parts)
        if parts and not is_header:
            yield line


def _numbers(line: Line, numbers: str, width: int) -> np.ndarray:
    try:
        row = np.array(numbers.split(" "), dtype=np.float32)
    except ValueError as error:
        raise DataError(
            f"{line.where}: expected a word and its numbers, separated by single spaces; "
            f"{error}. Is there a space in the word?"
        ) from error
    if len(row) != width:
        raise DataError(f"{line.where}: expected {width} numbers, found {len(row)}.")
    if not np.isfinite(row).all():
        raise DataError(f"{line.where}: expected finite numbers; found nan or inf.")
    return row
