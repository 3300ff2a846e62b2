"""Multi30k en-de as all sides read it.

A prepared folder has ``train val test_2016_flickr test_2017_flickr`` as ``.en`` and ``.de``
(spaces made single, nothing else changed), one sentencepiece BPE model of 9,712 pieces learned from
both sides of ``train``, and its pieces in ``vocab.txt``. What is there already is kept.
"""

import gzip
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

import sentencepiece as spm

from benchmarks import measuring
from benchmarks.peers import batches

SOURCE, TARGET = "en", "de"
SPLITS = ("train", "val", "test_2016_flickr", "test_2017_flickr")
VOCAB_SIZE = measuring.sized(9712, 300)


def prepare(corpora: Path, out: Path) -> Path:
    """Make the folder complete and return it."""
    out.mkdir(parents=True, exist_ok=True)
    for split in SPLITS:
        for language in (SOURCE, TARGET):
            path = out / f"{split}.{language}"
            if not path.exists():
                lines = _raw_lines(corpora / "multi30k" / path.name)
                write_lines(path, (" ".join(line.split()) for line in lines))
    if not (out / "vocab.txt").exists():
        train_pieces(out)
    return out


def train_pieces(folder: Path) -> None:
    """Learn the shared BPE pieces of a prepared folder."""
    both = chain(*(read_lines(folder / f"train.{language}") for language in (SOURCE, TARGET)))
    spm.SentencePieceTrainer.train(
        sentence_iterator=both,
        model_prefix=str(folder / "spm"),
        model_type="bpe",
        vocab_size=VOCAB_SIZE,
        character_coverage=1.0,
        unk_id=batches.UNK,
        pad_id=batches.PAD,
        bos_id=batches.BOS,
        eos_id=batches.EOS,
        minloglevel=2,
    )
    pieces = spm.SentencePieceProcessor(model_file=str(folder / "spm.model"))
    write_lines(folder / "vocab.txt", (pieces.id_to_piece(i) for i in range(len(pieces))))
    (folder / "spm.vocab").unlink(missing_ok=True)


def encode(folder: Path, split: str) -> tuple[list[list[int]], list[list[int]]]:
    """The ids of a split's source and target sentences."""
    pieces = spm.SentencePieceProcessor(model_file=str(folder / "spm.model"))
    return (
        pieces.encode(read_lines(folder / f"{split}.{SOURCE}")),
        pieces.encode(read_lines(folder / f"{split}.{TARGET}")),
    )


def write_batches(folder: Path, *, updates: int) -> Path:
    """Draw batches of the training split into a batches file; the one that is there, if it is.

    ``.en`` and ``.de`` beside it hold the same sentences in the same order, for Joey NMT to read
    without shuffling.
    """
    path = folder / f"sorted-{updates}.jsonl"
    if path.exists():
        return path
    source, target = encode(folder, "train")
    drawn = batches.draw(source, target, updates=updates)
    order = list(chain(*drawn))
    for language in (SOURCE, TARGET):
        lines = read_lines(folder / f"train.{language}")
        write_lines(path.with_suffix(f".{language}"), (lines[n] for n in order))
    batches.write(path, drawn, source, target)
    return path


def read_lines(path: Path) -> list[str]:
    """The lines of a text file, split at LF only."""
    return path.read_text("utf-8").removesuffix("\n").split("\n")


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines to a text file."""
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")


def _raw_lines(path: Path) -> list[str]:
    packed = path.with_name(f"{path.name}.gz")
    if path.exists():
        return read_lines(path)
    text = gzip.decompress(packed.read_bytes()).decode("utf-8")
    return text.removesuffix("\n").split("\n")
