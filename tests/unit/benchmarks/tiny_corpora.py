"""The beginnings of the corpora that the benchmarks read, under the same names."""

import gzip
import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import IO

# What the scripts read; the rest of the corpora is left out.
FOLDERS = (
    "acl-titles",
    "brown",
    "chnsenticorp-htl",
    "classical-modern-zh",
    "cmn-eng",
    "cmrc2018",
    "csl-titles",
    "dialogsum",
    "fairytaleqa",
    "gutenberg-books",
    "msra-ner-zh",
    "multi30k",
    "online-shopping-10cats",
    "python-docs-en-zh",
    "scitldr",
    "squadshifts",
    "sst2",
    "tinyshakespeare",
    "ud-english-ewt",
    "wnut17",
    "word-alignments",
)
_TAGGED = ("msra-ner-zh", "ud-english-ewt", "wnut17")
_ENDINGS = (".gz", ".txt", ".tsv", ".jsonl", ".json", ".conll", ".conllu", ".en", ".de")
_LINES, _TRAINING_LINES, _ARTICLES = 16, 200, 12


def cut(corpora: Path, to: Path) -> Path:
    """A folder of the same files, each with its first lines, or its first articles."""
    for name in FOLDERS:
        for path in sorted((corpora / name).rglob("*")):
            if not (path.is_file() and path.name.endswith(_ENDINGS)):
                continue
            made = to / path.relative_to(corpora)
            made.parent.mkdir(parents=True, exist_ok=True)
            is_tagged = name in _TAGGED  # so few sentences lack tags: the same in each part
            (read,) = (corpora / name).glob("*train*") if is_tagged else (path,)
            with _opened(read, "rt") as file:
                text = _beginning(file, read.name, is_tagged=is_tagged)
            with _opened(made, "wt") as file:
                file.write(text)
    return to


def _opened(path: Path, mode: str) -> IO[str]:
    return (
        gzip.open(path, mode, encoding="utf-8")
        if path.suffix == ".gz"
        else path.open(mode, encoding="utf-8")
    )


def _beginning(file: IO[str], name: str, *, is_tagged: bool) -> str:
    if ".json" in name and ".jsonl" not in name:
        table = json.loads(file.read())
        articles = table["data"][: _ARTICLES if "tr" in name else _ARTICLES // 4]
        return json.dumps({**table, "data": [*_few(articles)]})
    lines = "".join(islice(file, _TRAINING_LINES if "train" in name or "input" in name else _LINES))
    return lines.rpartition("\n\n")[0] + "\n\n" if is_tagged else lines


def _few(articles: list[dict[str, object]]) -> Iterator[dict[str, object]]:
    """Articles, each with two of its paragraphs and two questions on each."""
    for article in articles:
        paragraphs = article["paragraphs"][:2]  # type: ignore[index]
        yield {**article, "paragraphs": [{**each, "qas": each["qas"][:2]} for each in paragraphs]}
