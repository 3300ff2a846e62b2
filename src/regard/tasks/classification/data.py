"""Labelled texts: where they are, and what they are to a model."""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Int, Int32
from torch import Tensor

from regard.fields import Count, Natural, Share, check_fields
from regard.tasks.recipe import check_different_columns
from regard.tasks.word_parts import WordPartsName
from regard.text.records import OnBadLine


@dataclass(frozen=True, kw_only=True, slots=True)
class ClassificationData:
    """Where the labelled texts are.

    Attributes:
        train: TSV or JSONL files.
        valid: The same, for validation; empty takes a few examples from the training text.
        test: The same, for ``evaluate``; or ``held out`` of the training text.
        text: The text's column of a TSV file, from 1; of JSONL, the key is "text".
        label: The label's column; of JSONL, the key is "label".
        aspect: The column of what of the text is asked about, such as the kind of goods a review is
            of; of JSONL, the key is "aspect". 0: there is none.
        parts: What a word is read from besides itself, where ``model.parts`` says that it is: its
            ``characters`` or ``ngrams`` of them; or its pairs with its ``neighbours``, which suit
            text cut into characters.
        drop_words: Share of the words that are read as unknown in training, so that a text is
            judged by all of them (Iyyer et al., 2015, https://aclanthology.org/P15-1162). Their
            parts stay.
        max_length: Longest text, in tokens; what is beyond is cut off.
        on_bad_line: Whether a line that cannot be read is an ``error``, or is left out (``skip``).
    """

    train: tuple[str, ...] | str = ()
    valid: tuple[str, ...] | str = ()
    test: tuple[str, ...] | str = ()
    text: Count = 1
    label: Count = 2
    aspect: Natural = 0
    parts: WordPartsName = "ngrams"
    drop_words: Share = 0.0
    max_length: Count = 256
    on_bad_line: OnBadLine = "error"

    def __post_init__(self) -> None:
        check_fields(self)
        check_different_columns(text=self.text, label=self.label, aspect=self.aspect)


@dataclass(frozen=True, slots=True)
class LabelledText:
    """A text and its label.

    Attributes:
        text: Normalised.
        label: None where it is asked for.
        aspect: What of the text is asked about; None where nothing is.
        where: ``file:line`` it was read at.
    """

    text: str
    label: str | None
    aspect: str | None
    where: str


@dataclass(frozen=True, slots=True)
class EncodedText:
    """A text as ids.

    Attributes:
        ids: Of its tokens; of pieces, the end last, and the begin first if they have one.
        parts: Of each word's parts; None where words are not read from them.
        label: The label's number; -1 where it is not known.
        aspect: The aspect's number; 0 is that of aspects not met in training.
    """

    ids: list[int]
    parts: Int32[Tensor, "N L"] | None
    label: int
    aspect: int

    def without(self, place: int) -> "EncodedText":
        """The text without one of its tokens; of the only one, the text."""
        if len(self.ids) == 1:
            return self
        parts = self.parts
        if parts is not None:
            parts = torch.cat([parts[:place], parts[place + 1 :]])
        return replace(self, ids=[*self.ids[:place], *self.ids[place + 1 :]], parts=parts)


@dataclass(frozen=True, slots=True, eq=False)
class TextBatch:
    """Padded texts, batch first.

    Attributes:
        ids: Of their tokens.
        lengths: How many of each row are real.
        parts: Ids of the words' parts; None where words are not read from them.
        aspects: The aspects' numbers.
        labels: The labels' numbers; -1 where not known.
    """

    ids: Int[Tensor, "B S"]
    lengths: Int[Tensor, " B"]
    parts: Int[Tensor, "B S L"] | None
    aspects: Int[Tensor, " B"]
    labels: Int[Tensor, " B"]
