"""Shortlists: what answers to a source may be made of, learned from the pairs a run has seen."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Int32

from regard.checks import check_at_least
from regard.devices import CPU
from regard.inference import Predictor
from regard.models.shortlist import Shortlist
from regard.runs import Run
from regard.runtime import check_shortlist
from regard.tasks import SequenceTask
from regard.text import BOS_ID, EOS_ID, PAD_ID, UNK_ID, BadLines, Corpus, Pair, PairTokenizer
from regard.text.model_one import likeliest_targets
from regard.text.padding import lengths_of, padded

# Pairs that a shortlist is tried on, and how many at once.
_TRIED, _AT_ONCE = 5000, 256


@dataclass(frozen=True, kw_only=True, slots=True)
class ShortlistReport:
    """How a shortlist does on pairs that it was not learned from, where there are any.

    Attributes:
        pairs: How many pairs it was tried on.
        length: Target pieces on a sentence's list, the mean of them.
        target_vocab: Target pieces in all.
        found: Share of the pieces of right answers that are on their lists.
        whole: Share of right answers all of whose pieces are.
    """

    pairs: int
    length: float
    target_vocab: int
    found: float
    whole: float

    def __str__(self) -> str:
        """All of it in a line."""
        return (
            f"{self.length:,.0f} of {self.target_vocab:,} pieces a sentence; of {self.pairs:,} "
            f"right answers {100 * self.found:.2f} % of the pieces are on their lists, and "
            f"{100 * self.whole:.1f} % are whole"
        )


def make_shortlist(
    path: str | Path, *, per_piece: int = 100, frequent: int = 100
) -> ShortlistReport:
    """Learn a shortlist from the pairs that a run was trained on, and keep it in the run.

    On the list of a sentence are the likeliest target pieces of each of its pieces by IBM model 1,
    the piece itself where targets have it, and the most frequent target pieces.

    Args:
        path: The folder of a finished run of a translator, whose training text is still there.
        per_piece: Target pieces of each source piece.
        frequent: How many of the most frequent target pieces stand on every list.

    Raises:
        DataError: The training text is gone.
        RunError: There is no run, it has not finished, it translates nothing, or another process
            trains into it.
        SettingError: A number is out of range, or the model cannot use a shortlist.
    """
    check_at_least("per_piece", per_piece, 1)
    check_at_least("frequent", frequent, 0)
    with Run.open_for_training(path) as run:
        run.check_finished()
        predictor = Predictor.load(path, device=CPU.type)
        task = predictor.sequence_task
        check_shortlist(predictor.model.eval())
        parts = task.read_parts(predictor.recipe)
        corpus = _encoded(task, parts.train)
        shortlist = learned(corpus, task.tokenizer, per_piece=per_piece, frequent=frequent)
        run.save_shortlist(shortlist.tensors())
    held_out = parts.valid or parts.train
    return tried(shortlist, _encoded(task, held_out[:_TRIED]))


def learned(
    corpus: Corpus, tokenizer: PairTokenizer, *, per_piece: int, frequent: int
) -> Shortlist:
    """The shortlist of a corpus.

    Args:
        corpus: Pairs of sentences.
        tokenizer: What they were cut with.
        per_piece: See ``make_shortlist``, as the other.
        frequent: See there.
    """
    sizes = {
        "source_vocab": tokenizer.source.vocab_size,
        "target_vocab": tokenizer.target.vocab_size,
    }
    likely = likeliest_targets(corpus, **sizes, count=per_piece)
    counts = np.bincount(corpus.target.ids, minlength=sizes["target_vocab"])
    often = np.argsort(-counts, kind="stable")[:frequent]
    always = np.union1d([PAD_ID, UNK_ID, BOS_ID, EOS_ID], often).astype(np.int64)
    both = np.concatenate([likely, _itself(tokenizer)[:, None]], axis=1)
    return Shortlist(both, always, sizes["target_vocab"])


def tried(shortlist: Shortlist, corpus: Corpus) -> ShortlistReport:
    """How much of right answers is on the lists of their sources.

    Args:
        shortlist: Of any corpus.
        corpus: Pairs with at least one piece of target.
    """
    found, lengths, whole = 0, 0, 0
    for first in range(0, len(corpus), _AT_ONCE):
        rows = range(first, min(first + _AT_ONCE, len(corpus)))
        sources = [corpus.source[row] for row in rows]
        mask = shortlist.of(padded(sources), lengths_of(sources))
        lengths += int(mask.sum())
        for row, allowed in zip(rows, mask, strict=True):
            hits = allowed[corpus.target[row]]
            found, whole = found + int(hits.sum()), whole + bool(hits.all())
    return ShortlistReport(
        pairs=len(corpus),
        length=lengths / len(corpus),
        target_vocab=shortlist.target_vocab,
        found=found / max(1, len(corpus.target.ids)),
        whole=whole / len(corpus),
    )


def _encoded(task: SequenceTask, pairs: Sequence[Pair]) -> Corpus:
    return task.encode_corpus(pairs, BadLines())


def _itself(tokenizer: PairTokenizer) -> Int32[np.ndarray, " S"]:
    """Each source piece as a target piece, where there is one of that name."""
    targets = {name: place for place, name in enumerate(tokenizer.target.names)}
    found = [targets.get(name, EOS_ID) for name in tokenizer.source.names]
    return np.array(found, np.int32)
