"""Tagging: a label for each word, such as its part of speech, or the entity it is part of."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, ClassVar, TypedDict

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from regard.config import JsonValue
from regard.errors import DataError
from regard.fields import several
from regard.metrics.labels import accuracy, macro_f1
from regard.metrics.spans import as_bio, as_known, entity_scores, is_bio, marks_entities
from regard.models import READERS, Tagger, TaggerConfig
from regard.tasks.baselines.tags import entities_of_training, most_frequent_tags
from regard.tasks.checking import CheckedExample
from regard.tasks.one_pass_task import OnePassTask
from regard.tasks.recipe import (
    Recipe,
    check_framed_positions,
    check_not_smoothed,
    check_positions,
)
from regard.tasks.showing import Said, Shown, ShownText, check_shown_length
from regard.tasks.tables import confusion_table, label_table
from regard.tasks.tagging.settings import TaggingData, check_whole
from regard.tasks.tagging.tags import (
    Tags,
    compared,
    joined,
    novelty_table,
    numbers_of,
    transitions,
)
from regard.tasks.tagging.word_batches import EncodedWords, WordBatch, word_batch
from regard.tasks.tagging.word_pieces import joined_words, pieces_of
from regard.tasks.task import Table
from regard.tasks.word_parts import WORD_PARTS, reads_parts
from regard.text import (
    UNK_ID,
    BadLines,
    Tokenizer,
    TokenizerConfig,
    load_tokenizer,
    normalize,
    train_tokenizer,
)
from regard.text.files import read_kept, write_plain
from regard.text.pieces import BEGIN, END
from regard.text.tables import Field
from regard.text.tagged import TaggedWords, read_tagged
from regard.text.vocabulary import Vocabulary

_WORDS_FILE = "words.json"


class _Words(TypedDict):
    """Contents of the file of words."""

    words: list[str]
    parts: list[str]
    tags: Annotated[list[str], several(1)]
    rare: list[str]


class Tagging(OnePassTask[TaggedWords, EncodedWords, WordBatch, Tags]):
    """Words to tags.

    Args:
        recipe: Whose settings hold.
        words: Learned from the training text.
        parts: What words are also read from, learned from it too.
        tags: In order of their ids.
        rare: Words that occur once in training.
        tokenizer: What cuts words into pieces; None reads them as they are.

    Example:
        >>> from regard.tasks import recipe_from_table
        >>> sentence = TaggedWords(("Hans", "ran"), ("B-PER", "O"), "a.conll:1")
        >>> task = Tagging.learn(recipe_from_table({"task": "tagging"}), [sentence])
        >>> task.tags, task.collate(task.encode([sentence])).tags.tolist()
        (['B-PER', 'O'], [[0, 1]])
        >>> task.show(sentence, Tags(("Hans", "ran"), ("B-PER", "O")))
        '[Hans PER] ran'
    """

    unit: ClassVar[str] = "sentences"
    counted = "words"
    metrics: ClassVar[Mapping[str, int]] = {"accuracy": 1, "f1": 1}

    def __init__(
        self,
        recipe: Recipe,
        words: Vocabulary,
        parts: Vocabulary,
        tags: Sequence[str],
        rare: Iterable[str] = (),
        tokenizer: Tokenizer | None = None,
    ) -> None:
        self.recipe, self.words, self.parts, self.tags = recipe, words, parts, list(tags)
        self.data = recipe.settings(TaggingData)
        self.tokenizer = tokenizer
        self._rare = frozenset(rare)
        self._parts_of = WORD_PARTS[self.data.parts] if reads_parts(recipe.model) else None

    @classmethod
    def read(
        cls, recipe: Recipe, split: str, *, bad_lines: BadLines | None = None
    ) -> list[TaggedWords]:
        """The sentences of a split; none if the recipe names no file.

        Tags of entities come out as BIO, of files in IOB1, BIOES or BILOU too: see ``as_bio``.
        """
        data = recipe.settings(TaggingData)
        found = [
            sentence
            for file in recipe.files(split)
            for sentence in read_tagged(
                file,
                word=data.word,
                tag=data.tag,
                on_bad_line=data.on_bad_line,
                bad_lines=bad_lines,
            )
        ]
        if not marks_entities({tag for sentence in found for tag in sentence.tags or ()}):
            return found
        return [replace(each, tags=as_bio(each.tags or ())) for each in found]

    @staticmethod
    def subject(example: TaggedWords) -> str:
        """The words."""
        return " ".join(example.words)

    @staticmethod
    def checked(example: TaggedWords) -> CheckedExample:
        """The words and their tags."""
        return CheckedExample((" ".join(example.words),), example.tags or (), example.where)

    @classmethod
    def learn(cls, recipe: Recipe, examples: Sequence[TaggedWords]) -> "Tagging":
        """The task with the words, their parts and the tags of the training text.

        Raises:
            DataError: There are fewer than two tags.
            SettingError: What is set of words has no meaning for their pieces.
        """
        data = recipe.settings(TaggingData)
        if recipe.tokenizer is not None:
            check_whole(recipe)
        tags = sorted({tag for example in examples for tag in example.tags or ()})
        if len(tags) < 2:
            raise DataError(
                f"data.train must hold at least two different tags; got {tags}. "
                "Is data.tag the tag's column?"
            )
        every = [_folded(word, data) for example in examples for word in example.words]
        rare = [word for word, count in Counter(every).items() if count == 1]
        parts: Iterable[str] = ()
        if reads_parts(recipe.model):
            spelled = (WORD_PARTS[data.parts](example.words) for example in examples)
            parts = (part for words in spelled for word in words for part in word)
        tokenizer = None
        if recipe.tokenizer is not None:
            lines = [joined_words(example.words) for example in examples]
            tokenizer = train_tokenizer(lines, recipe.settings(TokenizerConfig))
        return cls(
            recipe,
            Vocabulary.learn(every, min_count=data.min_count),
            Vocabulary.learn(parts, min_count=data.parts_min_count),
            tags,
            rare,
            tokenizer,
        )

    @classmethod
    def load(cls, recipe: Recipe, folder: Path) -> "Tagging":
        """The task with what ``save`` wrote."""
        table = read_kept(folder, _WORDS_FILE, _Words)
        words, parts = Vocabulary(table["words"]), Vocabulary(table["parts"])
        tokenizer = None if recipe.tokenizer is None else load_tokenizer(folder / "text")
        return cls(recipe, words, parts, table["tags"], table["rare"], tokenizer)

    def save(self, folder: Path) -> None:
        """Write words, parts and tags, and the tokenizer if there is one."""
        if self.tokenizer is not None:
            self.tokenizer.save(folder / "text")
        table = {"words": self.words.units, "parts": self.parts.units, "tags": self.tags}
        write_plain(folder, {**table, "rare": sorted(self._rare)}, _WORDS_FILE)

    def build_model(self) -> nn.Module:
        """The recipe's reader with new weights, and the tagger on it."""
        read = READERS[self.recipe.model_type].load()
        tokenizer = self.tokenizer
        sizes = {"vocab_size": len(self.words) if tokenizer is None else tokenizer.vocab_size}
        if self._parts_of is not None:
            sizes["parts_vocab"] = len(self.parts)
        allowed = transitions(self.tags) if is_bio(self.tags) else None
        reader = read(self.recipe.model, **sizes)
        if self.tokenizer is None:
            check_positions(reader, "data.max_length", self.data.max_length)
        else:
            check_framed_positions(
                reader, self.data.max_length, self.recipe.settings(TokenizerConfig)
            )
        return Tagger(
            self.recipe.settings(TaggerConfig), reader, num_tags=len(self.tags), allowed=allowed
        )

    def facts(self) -> list[str]:
        """Describe the vocabulary and tags learned from the text, in lines."""
        shown = ", ".join(self.tags[:12]) + (" …" if len(self.tags) > 12 else "")
        is_read = self._parts_of is not None
        parts = f", {len(self.parts):,} {self.data.parts}" if is_read else ""
        facts = [f"{len(self.words):,} words{parts}", f"{len(self.tags)} tags: {shown}"]
        if all(tag.isdecimal() for tag in self.tags):
            facts.append(
                "tags are numbers without names, so f1 is the mean over tags; "
                "entities are scored where files have their names (B-PER, I-PER, O)"
            )
        if self.tokenizer is not None:
            kind, size = self.recipe.settings(TokenizerConfig).type, self.tokenizer.vocab_size
            facts.insert(0, f"{kind} tokenizer: {size:,} pieces; a word's first carries its tag")
        return facts

    def asked_fields(self, *, with_answers: bool = False) -> Sequence[Field]:
        """The word: a sentence is a row a word."""
        return (Field.of(self.data, "word"),)

    def request(self, record: str | Mapping[str, JsonValue], where: str) -> TaggedWords:
        """The words of a line or of a JSON record's "tokens".

        Words of a line are parted by spaces; without one they are its characters, if those were the
        words of the training text.

        Raises:
            DataError: There are no words.
        """
        if isinstance(record, str):
            words = normalize(record).split()
            if len(words) == 1 and all(len(word) == 1 for word in self.words.units[:200]):
                words = list(words[0])
        else:
            found = record.get("tokens")
            tokens = found if isinstance(found, list) else []
            words = [normalize(word) if isinstance(word, str) else "" for word in tokens]
        if not words or not all(words):
            raise DataError(f"{where}: tokens must hold words to tag; got {record!r}.")
        return TaggedWords(tuple(words), None, where)

    def encode(
        self,
        examples: Iterable[TaggedWords],
        *,
        training: bool = False,
        too_long: BadLines | None = None,
    ) -> list[EncodedWords]:
        """Ids of each sentence.

        Raises:
            DataError: A tag was not met in training.
        """
        found = []
        for example in examples:
            found.append(self._encoded(example))
            if training and self.data.join_entities:
                without_marks = joined(example)
                found += [] if without_marks is None else [self._encoded(without_marks)]
        return found

    def lengths(self, encoded: Sequence[EncodedWords]) -> Int64[np.ndarray, " n"]:
        """Words of each sentence, or their pieces."""
        return np.array([sum(each.sizes) for each in encoded], dtype=np.int64)

    def collate(
        self, encoded: Sequence[EncodedWords], *, generator: torch.Generator | None = None
    ) -> WordBatch:
        """A padded batch; with a generator, words that occur once and parts may become unknown."""
        data = self.data
        return word_batch(
            encoded,
            longest=data.max_length,
            begins=self.tokenizer is not None and self.recipe.settings(TokenizerConfig).begins,
            drop_words=data.drop_words,
            drop_parts=data.drop_parts,
            generator=generator,
        )

    def loss(
        self, model: nn.Module, batch: WordBatch, *, smoothing: float = 0.0
    ) -> tuple[Float[Tensor, ""], int]:
        """Minus the log-probability of the tags, and how many there are.

        Raises:
            SettingError: Labels are to be smoothed, which a sequence's probability has no sense of.
        """
        check_not_smoothed(self.recipe, smoothing)
        scores = self._scores(model, batch)
        loss: Tensor = model.loss(scores, batch.tags.clamp(min=0), batch.lengths)  # type: ignore[operator]
        return loss, int(batch.lengths.sum())

    def predict(self, model: nn.Module, batch: WordBatch) -> list[Tags]:
        """The tags of each sentence."""
        best = model.best(self._scores(model, batch), batch.lengths).tolist()  # type: ignore[operator]
        found: list[list[str]] = [[] for _ in batch.texts]
        for owner, row, length in zip(batch.owners, best, batch.lengths.tolist(), strict=True):
            found[owner] += [self.tags[tag] for tag in row[:length]]
        return [Tags(words, tuple(tags)) for words, tags in zip(batch.texts, found, strict=True)]

    def score(self, answers: Sequence[Tags], examples: Sequence[TaggedWords]) -> dict[str, float]:
        """Accuracy of tags; F1 of whole entities where tags mark them, else averaged over tags."""
        given, right = [each.tags for each in answers], self._right(examples)
        all_given, all_right = _flat(given), _flat(right)
        if marks_entities(self.tags):
            f1 = entity_scores(given, right)[0].f1
        else:
            f1 = macro_f1(all_given, all_right)
        return {"accuracy": accuracy(all_given, all_right), "f1": f1}

    def example_score(self, answer: Tags, example: TaggedWords) -> float:
        """The share of right tags."""
        return accuracy(answer.tags, self._known(example).tags or answer.tags) / 100

    def baselines(
        self, train: Sequence[TaggedWords], examples: Sequence[TaggedWords]
    ) -> dict[str, list[Tags]]:
        """Tags looked up in the training text, by word and, of entities, by their words."""
        train = [self._known(example) for example in train]
        found = {"each word's most frequent tag": most_frequent_tags(train, examples)}
        if marks_entities(self.tags):
            rows = entities_of_training(train, examples)
            found["entities met in training"] = [as_known(tags, self.tags) for tags in rows]
        return {
            name: [Tags(each.words, tags) for each, tags in zip(examples, rows, strict=True)]
            for name, rows in found.items()
        }

    def tables(self, answers: Sequence[Tags], examples: Sequence[TaggedWords]) -> list[Table]:
        """By entity type or by tag, known words and unknown ones, what was taken for what."""
        given, right = [each.tags for each in answers], self._right(examples)
        flat = (_flat(given), _flat(right))
        if marks_entities(self.tags):
            _, each = entity_scores(given, right)
            rows = tuple((s.label, s.precision, s.recall, s.f1, s.count) for s in each)
            columns = ("type", "precision", "recall", "F1", "count")
            first = Table("by type of entity", columns, rows)
        else:
            first = label_table(*flat)
        words = (self.words.ids(_folded(word, self.data) for word in e.words) for e in examples)
        novel = [number == UNK_ID for numbers in words for number in numbers]
        return [first, novelty_table(*flat, novel), confusion_table(*flat)]

    def shown(self, example: TaggedWords, encoded: EncodedWords, answer: Tags) -> Shown:
        """The words, single characters without spaces between, or their pieces."""
        is_cut = self.tokenizer is not None
        unit, size = ("pieces" if is_cut else "words"), sum(encoded.sizes)
        check_shown_length(size, self.data.max_length, unit)
        if self.tokenizer is None:
            space = "" if all(len(word) == 1 for word in example.words) else " "
            text = ShownText.of_words(example.words, space)
        else:
            decode = self.tokenizer.decode
            pieces = [decode([one]).strip() or "␣" for ids in encoded.pieces for one in ids]
            text = ShownText.of_words(
                [*[BEGIN] * self.recipe.settings(TokenizerConfig).begins, *pieces, END]
            )
        return Shown(text=text, output=ShownText.of_words(answer.tags))

    def said(
        self, model: nn.Module, example: TaggedWords, encoded: EncodedWords, answer: Tags
    ) -> Said:
        """The tags; of a word in pieces its first has it."""
        if self.tokenizer is None:
            return Said(tags=answer.tags)
        tags = [""] * self.recipe.settings(TokenizerConfig).begins
        for ids, tag in zip(encoded.pieces, answer.tags, strict=True):
            tags += [tag, *[""] * (len(ids) - 1)]
        return Said(tags=(*tags, ""))

    def show(self, example: TaggedWords, answer: Tags) -> str:
        """The words with their tags, the right ones behind wrong ones; entities in brackets."""
        gold = self._known(example).tags or answer.tags
        if marks_entities(self.tags):
            text = compared(example.words, answer.tags, gold)
        else:
            text = " ".join(
                f"{word}/{tag}" + (f"(right: {right})" if tag != right else "")
                for word, tag, right in zip(example.words, answer.tags, gold, strict=True)
            )
        return text if len(text) <= 240 else f"{text[:237]}…"

    def _encoded(self, example: TaggedWords) -> EncodedWords:
        folded = [_folded(word, self.data) for word in example.words]
        spelled = self._parts_of(example.words) if self._parts_of is not None else []
        most = self.data.max_length
        cut = [] if self.tokenizer is None else pieces_of(folded, self.tokenizer)
        return EncodedWords(
            example.words,
            self.words.ids(folded),
            [self.parts.ids(parts) for parts in spelled],
            numbers_of(self._known(example), self.tags),
            [word in self._rare for word in folded],
            [ids[:most] for ids in cut],
        )

    def _right(self, examples: Sequence[TaggedWords]) -> list[tuple[str, ...]]:
        return [self._known(example).tags or () for example in examples]

    def _known(self, example: TaggedWords) -> TaggedWords:
        """The example in the run's own scheme, which early runs have, as BIOES."""
        if example.tags is None or is_bio(self.tags) or not marks_entities(self.tags):
            return example
        return replace(example, tags=as_known(example.tags, self.tags))

    def _scores(self, model: nn.Module, batch: WordBatch) -> Float[Tensor, "R N K"]:
        reading = {} if batch.parts is None else {"parts": batch.parts}
        ids, lengths = batch.words, batch.lengths
        if batch.pieces is not None:
            ids, lengths = batch.pieces.ids, batch.pieces.lengths
            reading["places"] = batch.pieces.places
        scores: Tensor = model(ids, lengths, **reading)
        return scores.float()


def _folded(word: str, data: TaggingData) -> str:
    return word.lower() if data.lowercase else word


def _flat(rows: Iterable[Sequence[str]]) -> list[str]:
    return [tag for row in rows for tag in row]
