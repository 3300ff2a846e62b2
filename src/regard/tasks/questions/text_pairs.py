"""Two texts read together: word overlap, padded batches, one reader of both."""

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np
import torch
from jaxtyping import Float32

from regard.checks import choose
from regard.errors import SettingError
from regard.models import PAIR_MODELS, PairClassifier, Reader
from regard.tasks.batches import Batch, Sample
from regard.tasks.drawing import CrossAttention, TextPart, pieces_text
from regard.tasks.settings.recipe import Recipe
from regard.text import BOS_ID, EOS_ID, Tokenizer, words_of_spans
from regard.text.batches import lengths_of, padded
from regard.text.normalization import normalize, word_spans
from regard.text.reading.questions import normalized_positions
from regard.viewer import Text

# Features of each token of a text that is read together with another.
FEATURES = ("as written", "in any case", "same beginning", "with its neighbour", "rarity")
# Letters that words which begin alike share: "divide" and "divided" are not the same word.
_BEGINNING = 5
_ALL = slice(None)


@dataclass(frozen=True, slots=True)
class CutText:
    """A text in pieces."""

    ids: list[int]
    spans: list[tuple[int, int]]  # of each piece in the text as it was given
    words: list[str]  # punctuation reads as nothing
    owners: list[int]  # the number of each piece's word, −1 for none


def cut_text(text: str, tokenizer: Tokenizer) -> CutText:
    """A text in the pieces of a tokenizer, with its words and their positions."""
    plain, offsets = normalize(text), normalized_positions(text)
    pieces = tokenizer.pieces(text)
    inside = [(piece.start, piece.end) for piece in pieces]
    spans = word_spans(plain)
    words = [plain[start:end] for start, end in spans]
    return CutText(
        [piece.id for piece in pieces],
        [(offsets[start], offsets[max(start, end - 1)] + 1) for start, end in inside],
        [word if any(char.isalnum() for char in word) else "" for word in words],
        words_of_spans(inside, spans),
    )


def text_cutter(tokenizer: Tokenizer) -> Callable[[str], CutText]:
    """``cut_text`` that cuts a text once, however many questions are asked about it."""
    return cache(partial(cut_text, tokenizer=tokenizer))


def joined(first: CutText, second: CutText) -> CutText:
    """Two texts as one, such as a question and its answer, an end between; without positions."""
    last = len(first.words)
    return CutText(
        [*first.ids, EOS_ID, *second.ids],
        [],
        [*first.words, "", *second.words],
        [*first.owners, last, *(owner + last + 1 if owner >= 0 else -1 for owner in second.owners)],
    )


def match_features(text: CutText, paired: CutText) -> Float32[np.ndarray, "n F"]:
    """``FEATURES`` of each token of the text, from 0 to 1."""
    lower = [word.lower() for word in text.words]
    theirs = [word.lower() for word in paired.words]
    exact, folded = set(paired.words), set(theirs)
    beginnings = {word[:_BEGINNING] for word in theirs}
    both = set(itertools.pairwise(theirs))
    counts = Counter(lower)
    is_joined = [pair in both and all(pair) for pair in itertools.pairwise(lower)]
    rows = [
        (as_written in exact, word in folded, word[:_BEGINNING] in beginnings, before or after)
        if word
        else (False,) * 4
        for as_written, word, before, after in zip(
            text.words, lower, [False, *is_joined], [*is_joined, False], strict=True
        )
    ]
    of_words = np.zeros((len(lower) + 1, len(FEATURES)), dtype=np.float32)  # the last is of none
    if rows:
        of_words[:-1, :-1] = rows
        of_words[:-1, -1] = [1 / counts[word] for word in lower]
    return of_words[text.owners]


def pair_model(recipe: Recipe) -> type[Reader | PairClassifier]:
    """The class of the recipe's model, which says how it reads two texts."""
    return choose("model.type", recipe.model_type, PAIR_MODELS).load()


class PairReading:
    """Methods of a task whose model reads two texts: apart, or as ``begin other end text end``."""

    recipe: Recipe
    tokenizer: Tokenizer

    def build_reader(self, longest: int) -> Reader:
        """The recipe's reader with new weights; SettingError if ``longest`` has no positions."""
        read = pair_model(self.recipe)
        assert issubclass(read, Reader)
        sizes = {"vocab_size": self.tokenizer.vocab_size}
        if read.reads_features:
            sizes["num_features"] = len(FEATURES)
        reader = read(self.recipe.model, **sizes)
        most = reader.max_length
        if most is not None and most < longest:
            raise SettingError(
                f"model.max_length must be at least {longest}, for the longest texts that data "
                f"allows, side by side; got {most}. Lower data.max_length, or raise "
                "model.max_length."
            )
        return reader

    def encode_pair(
        self, text: CutText, paired: CutText, *, part: slice = _ALL, paired_part: slice = _ALL
    ) -> Sample:
        """Ids and features of a pair; ``part`` and ``paired_part`` are the tokens that stay."""
        model = pair_model(self.recipe)
        of_both = model.reads_features and not model.reads_apart
        return {
            "ids": text.ids[part],
            "other": paired.ids[paired_part],
            "features": match_features(text, paired)[part],
            "other_features": match_features(paired, text)[paired_part] if of_both else None,
        }

    def collate_pairs(self, pairs: Sequence[Sample], *, every: int = 1) -> Batch:
        """A batch of pairs; ``every`` so many consecutive ones share the other text."""
        model = pair_model(self.recipe)
        if model.reads_apart:
            rows = [[BOS_ID, *pair["ids"]] for pair in pairs]
            firsts = [1] * len(rows)
            paired_rows = [[*pair["other"], EOS_ID] for pair in pairs[::every]]
            reading = {"other": padded(paired_rows), "other_lengths": lengths_of(paired_rows)}
        else:
            rows = [[BOS_ID, *pair["other"], EOS_ID, *pair["ids"], EOS_ID] for pair in pairs]
            firsts = [len(pair["other"]) + 2 for pair in pairs]
            reading = {}
        ids, lengths = padded(rows), lengths_of(rows)
        if model.reads_features:
            features = np.zeros((*ids.shape, len(FEATURES)), dtype=np.float32)
            for row, (pair, first) in enumerate(zip(pairs, firsts, strict=True)):
                features[row, first : first + len(pair["ids"])] = pair["features"]
                if pair["other_features"] is not None:
                    features[row, 1 : 1 + len(pair["other"])] = pair["other_features"]
            reading["features"] = torch.from_numpy(features)
        if getattr(self.recipe.model, "num_segments", 0) > 1:
            is_text = torch.arange(ids.shape[1]) >= torch.tensor(firsts)[:, None]
            reading["segments"] = is_text.long()
        return {"ids": ids, "lengths": lengths, "reading": reading, "firsts": firsts}

    def drawn_text(self, text: str, count: int) -> Text:
        """A text in its first so many pieces."""
        return pieces_text(text, self.tokenizer.pieces(text)[:count])

    def cross_attentions(
        self,
        text: tuple[str, Text],
        paired: tuple[str, Text],
        *,
        read: range | None = None,
        row: int = 0,
    ) -> tuple[CrossAttention, ...]:
        """Attention between two named texts in a row; ``read`` limits the first one's tokens."""
        model = pair_model(self.recipe)
        start, paired_start = (1, 0) if model.reads_apart else (len(paired[1].tokens) + 2, 1)
        forth = CrossAttention(
            queries=TextPart(*text, start, read),
            keys=TextPart(*paired, paired_start),
            is_answered=True,
            kind="cross" if model.reads_apart else "encoder",
            row=row,
        )
        back = replace(forth, queries=forth.keys, keys=forth.queries, is_answered=False)
        if issubclass(model, PairClassifier):
            return replace(back, layers=(0,)), replace(forth, layers=(1,))
        return (forth,) if model.reads_apart else (back, forth)


def pair_length(pair: Sample) -> int:
    """Tokens of both texts plus separators."""
    return len(pair["ids"]) + len(pair["other"]) + 3
