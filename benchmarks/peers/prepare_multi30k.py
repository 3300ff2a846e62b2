"""Multi30k en-de as both sides train on it: pieces that both share, and files of batches.

One sentencepiece BPE model of 9,712 pieces is learned from both sides of the training part. What is
there already is kept.
"""

import gzip
from itertools import chain
from pathlib import Path

import sentencepiece as spm

from benchmarks.peers import batches

LANGUAGES = ("en", "de")


def prepare(corpora: Path, out: Path) -> None:
    """Make the folder complete: the text of each language, and ``spm.model``."""
    out.mkdir(parents=True, exist_ok=True)
    for language in LANGUAGES:
        path = out / f"train.{language}"
        if not path.exists():
            packed = corpora / "multi30k" / f"train.{language}.gz"
            lines = gzip.decompress(packed.read_bytes()).decode("utf-8").splitlines()
            path.write_text("".join(f"{' '.join(line.split())}\n" for line in lines), "utf-8")
    if not (out / "spm.model").exists():
        spm.SentencePieceTrainer.train(
            sentence_iterator=chain(*(_lines(out, language) for language in LANGUAGES)),
            model_prefix=str(out / "spm"),
            model_type="bpe",
            vocab_size=batches.VOCAB_SIZE,
            character_coverage=1.0,
            unk_id=batches.UNK,
            pad_id=batches.PAD,
            bos_id=batches.BOS,
            eos_id=batches.EOS,
            minloglevel=2,
        )


def write_batches(folder: Path, *, updates: int) -> Path:
    """Draw batches of the training part into a batches file; the one that is there, if it is."""
    path = folder / f"sorted-{updates}.jsonl"
    if not path.exists():
        pieces = spm.SentencePieceProcessor(model_file=str(folder / "spm.model"))
        source, target = (pieces.encode(_lines(folder, language)) for language in LANGUAGES)
        batches.write(path, batches.draw(source, target, updates=updates), source, target)
    return path


def _lines(folder: Path, language: str) -> list[str]:
    return (folder / f"train.{language}").read_text("utf-8").removesuffix("\n").split("\n")
