"""Tagging: a label for each word, such as its part of speech, or the entity it is part of."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.config import JsonValue
from regard.errors import DataError, SettingError
from regard.fields import several
from regard.metrics.labels import (
    accuracy,
    as_bio,
    as_known,
    by_label,
    entity_scores,
    is_bio,
    macro_f1,
    marks_entities,
)
from regard.models import READERS, Tagger, TaggerConfig
from regard.tasks.batches import Batch, Sample, boxed, dropped
from regard.tasks.checking import CheckedExample
from regard.tasks.drawing import Drawing, check_drawn_length, words_text
from regard.tasks.one_pass_task import Loss, OnePassTask
from regard.tasks.recipe import Recipe, check_framed_positions, check_positions
from regard.tasks.settings import TaggingData
from regard.tasks.tables import Table, by_group, confusion_table, label_table
from regard.tasks.tags import (
    compared,
    entities_of_training,
    most_frequent_tags,
    tag_numbers,
    transitions,
    without_marks,
)
from regard.tasks.word_parts import (
    WORD_PARTS,
    joined_words,
    piece_rows,
    pieces_of,
    reads_parts,
    stretches,
)
from regard.text import (
    PAD_ID,
    UNK_ID,
    BadLines,
    Tokenizer,
    TokenizerConfig,
    normalize,
    train_tokenizer,
)
from regard.text.batches import lengths_of, padded
from regard.text.reading.records import Handling
from regard.text.reading.tables import Field
from regard.text.reading.tagged import TaggedWords, read_tagged
from regard.text.tokenizers.pieces import BEGIN, END
from regard.text.tokenizers.words import Vocabulary
from regard.viewer import Prediction

__all__ = ["Tagging", "TaggingData"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Tags:
    """The words of one sentence and a tag for each."""

    words: tuple[str, ...]
    tags: tuple[str, ...]

    def text(self) -> str:
        """``word/tag`` with spaces between."""
        return " ".join(f"{word}/{tag}" for word, tag in zip(self.words, self.tags, strict=True))

    def to_dict(self) -> dict[str, JsonValue]:
        """Plain data, ready for JSON."""
        return {"tokens": list(self.words), "tags": list(self.tags)}


class Tagging(OnePassTask[TaggedWords, Tags]):
    """Words to tags.

    Args:
        tokenizer: Cuts words into pieces; None reads them whole.
        words: Those of the training text.
        parts: Their parts, where they are also read from these.
        tags: In order of their ids.
        rare: Words that occur once in training.

    Example:
        >>> from regard.tasks import recipe_from_table
        >>> sentence = TaggedWords(("Hans", "ran"), ("B-PER", "O"), "a.conll:1")
        >>> task = Tagging.learn(recipe_from_table({"task": "tagging"}), [sentence])
        >>> task.tags, task.collate(task.encode([sentence]))["tags"].tolist()
        (['B-PER', 'O'], [[0, 1]])
        >>> task.show(sentence, Tags(("Hans", "ran"), ("B-PER", "O")))
        '[Hans PER] ran'
    """

    unit: ClassVar[str] = "sentences"
    loss_unit = "words"
    metrics: ClassVar[Mapping[str, int]] = {"accuracy": 1, "f1": 1}
    learned = ("words", "parts", "tags", "rare")
    file = "words.json"
    data: TaggingData
    tokenizer: Tokenizer | None
    words: list[str]
    parts: list[str]
    tags: Annotated[list[str], several(1)]
    rare: list[str]

    def __init__(
        self, recipe: Recipe, tokenizer: Tokenizer | None = None, **learned: list[str]
    ) -> None:
        super().__init__(recipe, tokenizer, **learned)
        self.word_ids, self.part_ids = Vocabulary(self.words), Vocabulary(self.parts)
        self._rare = frozenset(self.rare)
        self._parts_of = WORD_PARTS[self.data.parts] if reads_parts(recipe.model) else None
        self._begins = tokenizer is not None and recipe.settings(TokenizerConfig).begins

    @classmethod
    def read(
        cls, recipe: Recipe, split: str, *, bad_lines: BadLines | None = None
    ) -> list[TaggedWords]:
        """The sentences of a split; none if the recipe names no file.

        Tags of entities come out as BIO, of files in IOB1, BIOES or BILOU too: see ``as_bio``.
        """
        every = super().read(recipe, split, bad_lines=bad_lines)
        if not marks_entities({tag for sentence in every for tag in sentence.tags or ()}):
            return every
        return [replace(each, tags=as_bio(each.tags or ())) for each in every]

    @classmethod
    def read_file(cls, file: Path, data: Any, handling: Handling) -> Iterable[TaggedWords]:
        """The sentences of one file, with their tags as they stand there."""
        return read_tagged(file, word=data.word, tag=data.tag, **handling)

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
            SettingError: A setting of whole words is given where they are cut into pieces.
        """
        data, tokenizer = recipe.settings(TaggingData), None
        if recipe.tokenizer is not None:
            _check_whole(recipe)
        tags = sorted({tag for example in examples for tag in example.tags or ()})
        if len(tags) < 2:
            raise DataError(
                f"data.train must hold at least two different tags; got {tags}. "
                "Is data.tag the tag's column?"
            )
        every = [_folded(word, data) for example in examples for word in example.words]
        parts: Iterable[str] = ()
        if reads_parts(recipe.model):
            spelled = (WORD_PARTS[data.parts](example.words) for example in examples)
            parts = (part for words in spelled for word in words for part in word)
        if recipe.tokenizer is not None:
            lines = [joined_words(example.words) for example in examples]
            tokenizer = train_tokenizer(lines, recipe.settings(TokenizerConfig))
        return cls(
            recipe,
            tokenizer,
            words=Vocabulary.learn(every, min_count=data.min_count).units,
            parts=Vocabulary.learn(parts, min_count=data.parts_min_count).units,
            tags=tags,
            rare=sorted(word for word, count in Counter(every).items() if count == 1),
        )

    def build_model(self) -> nn.Module:
        """The recipe's reader with new weights, and the tagger on it."""
        tokenizer, longest = self.tokenizer, self.data.max_length
        sizes = {"vocab_size": len(self.word_ids) if tokenizer is None else tokenizer.vocab_size}
        if self._parts_of is not None:
            sizes["parts_vocab"] = len(self.part_ids)
        allowed = transitions(self.tags) if is_bio(self.tags) else None
        reader = READERS[self.recipe.model_type].load()(self.recipe.model, **sizes)
        if tokenizer is None:
            check_positions(reader, "data.max_length", longest)
        else:
            check_framed_positions(reader, longest, self.recipe.settings(TokenizerConfig))
        head = self.recipe.settings(TaggerConfig)
        return Tagger(head, reader, num_tags=len(self.tags), allowed=allowed)

    def describe(self) -> list[str]:
        """Describe the vocabulary and tags learned from the text, in lines."""
        names = ", ".join(self.tags[:12]) + (" …" if len(self.tags) > 12 else "")
        is_read = self._parts_of is not None
        parts = f", {len(self.part_ids):,} {self.data.parts}" if is_read else ""
        facts = [f"{len(self.word_ids):,} words{parts}", f"{len(self.tags)} tags: {names}"]
        if all(tag.isdecimal() for tag in self.tags):
            facts.append(
                "tags are numbers without names, so f1 is the mean over tags; "
                "entities are scored where files have their names (B-PER, I-PER, O)"
            )
        return [
            f"{pieces}; a word's first carries its tag" for pieces in super().describe()
        ] + facts

    def input_fields(self, *, with_answers: bool = False) -> Sequence[Field]:
        """The word: a sentence is a row a word."""
        return (Field.of(self.data, "word"),)

    def request(self, record: str | Mapping[str, JsonValue], where: str) -> TaggedWords:
        """The words of a line or of a JSON record's "tokens"; DataError without any.

        Words of a line have spaces between them; a line without a space is its characters, if
        those were the words of the training text.
        """
        if isinstance(record, str):
            words = normalize(record).split()
            if len(words) == 1 and all(len(word) == 1 for word in self.words[:200]):
                words = list(words[0])
        else:
            listed = record.get("tokens")
            tokens = listed if isinstance(listed, list) else []
            words = [normalize(word) if isinstance(word, str) else "" for word in tokens]
        if not words or not all(words):
            raise DataError(f"{where}: tokens must hold words to tag; got {record!r}.")
        return TaggedWords(tuple(words), None, where)

    def samples(
        self, examples: Sequence[TaggedWords], too_long: BadLines, *, training: bool
    ) -> Iterator[Sample]:
        """Ids of each sentence; in training, some a second time, as ``data.join_entities`` says."""
        for example in examples:
            yield self.encode_one(example, too_long)
            again = without_marks(example) if training and self.data.join_entities else None
            if again is not None:
                yield self.encode_one(again, too_long)

    def encode_one(self, example: TaggedWords, too_long: BadLines) -> Sample:
        """Ids of the words, of their parts and of their pieces, if they are read from any."""
        folded = [_folded(word, self.data) for word in example.words]
        spelled = self._parts_of(example.words) if self._parts_of is not None else []
        cut = [] if self.tokenizer is None else pieces_of(folded, self.tokenizer)
        pieces = [ids[: self.data.max_length] for ids in cut]
        return {
            "texts": example.words,
            "words": self.word_ids.ids(folded),
            "parts": [self.part_ids.ids(parts) for parts in spelled],
            "tags": tag_numbers(self._known(example), self.tags),
            "rare": [word in self._rare for word in folded],
            "pieces": pieces,
            "sizes": [len(ids) for ids in pieces] or [1] * len(folded),
        }

    def length(self, sample: Sample) -> int:
        """Words of a sentence, or their pieces."""
        return sum(sample["sizes"])

    def collate(
        self, encoded: Sequence[Sample], *, generator: torch.Generator | None = None
    ) -> Batch:
        """Padded sentences; a row of one that is too long is a part of it, as ``owners`` say.

        With a generator, words that occur once and parts may become unknown.
        """
        every = [
            (owner, each, part)
            for owner, each in enumerate(encoded)
            for part in stretches(each["sizes"], self.data.max_length)
        ]

        def rows(name: str) -> list[Any]:
            return [each[name][part] for _, each, part in every]

        words, pieces, data = padded(rows("words")), rows("pieces"), self.data
        parts = boxed([padded(row) for row in rows("parts")]) if any(rows("parts")) else None
        if generator is not None and data.drop_words:
            words = dropped(words, padded(rows("rare"), False).bool(), data.drop_words, generator)
        if generator is not None and data.drop_parts and parts is not None:
            parts = dropped(parts, parts != PAD_ID, data.drop_parts, generator)
        return {
            "words": words,
            "lengths": lengths_of(rows("words")),
            "parts": parts,
            "tags": padded(rows("tags"), -1),
            "owners": [owner for owner, _, _ in every],
            "texts": [each["texts"] for each in encoded],
            "pieces": piece_rows(pieces, begins=self._begins) if any(pieces) else None,
        }

    def batch_loss(self, model: nn.Module, batch: Batch, smoothing: float) -> Loss:
        """Minus the log-probability of the tags, and how many there are."""
        tags, lengths = batch["tags"].clamp(min=0), batch["lengths"]
        loss: Tensor = model.loss(_scores(model, batch), tags, lengths)  # type: ignore[operator]
        return loss, int(lengths.sum())

    def predict(self, model: nn.Module, batch: Batch) -> list[Tags]:
        """The tags of each sentence."""
        texts, lengths = batch["texts"], batch["lengths"]
        best = model.best(_scores(model, batch), lengths).tolist()  # type: ignore[operator]
        tags: list[list[str]] = [[] for _ in texts]
        for owner, row, length in zip(batch["owners"], best, lengths.tolist(), strict=True):
            tags[owner] += [self.tags[tag] for tag in row[:length]]
        return [Tags(words, tuple(each)) for words, each in zip(texts, tags, strict=True)]

    def score(self, answers: Sequence[Tags], examples: Sequence[TaggedWords]) -> dict[str, float]:
        """Accuracy of tags; F1 of whole entities where tags mark them, else averaged over tags."""
        predicted, gold = [each.tags for each in answers], self._right(examples)
        flat = _flat(predicted), _flat(gold)
        is_marked = marks_entities(self.tags)
        f1 = entity_scores(predicted, gold)[0].f1 if is_marked else macro_f1(*flat)
        return {"accuracy": accuracy(*flat), "f1": f1}

    def example_score(self, answer: Tags, example: TaggedWords) -> float:
        """The share of right tags."""
        return accuracy(answer.tags, self._known(example).tags or answer.tags) / 100

    def baselines(
        self, train: Sequence[TaggedWords], examples: Sequence[TaggedWords]
    ) -> dict[str, list[Tags]]:
        """Tags looked up in the training text, by word and, of entities, by their words."""
        train = [self._known(example) for example in train]
        predicted = {"each word's most frequent tag": most_frequent_tags(train, examples)}
        if marks_entities(self.tags):
            rows = entities_of_training(train, examples)
            predicted["entities met in training"] = [as_known(tags, self.tags) for tags in rows]
        return {
            name: [Tags(each.words, tags) for each, tags in zip(examples, rows, strict=True)]
            for name, rows in predicted.items()
        }

    def tables(self, answers: Sequence[Tags], examples: Sequence[TaggedWords]) -> list[Table]:
        """By entity type or by tag, known words and unknown ones, the confusion matrix."""
        predicted, gold = [each.tags for each in answers], self._right(examples)
        flat = (_flat(predicted), _flat(gold))
        first = label_table(by_label(*flat))
        if marks_entities(self.tags):
            first = label_table(entity_scores(predicted, gold)[1], "type", "type of entity")
        words = (self.word_ids.ids(_folded(word, self.data) for word in e.words) for e in examples)
        groups = ["unknown" if n == UNK_ID else "known from training" for n in _flat(words)]
        hits = {"accuracy": [float(a == b) for a, b in zip(*flat, strict=True)]}
        return [first, by_group("word", groups, hits, column="words"), confusion_table(*flat)]

    def draw(
        self, model: nn.Module, example: TaggedWords, encoded: Sample, answer: Tags
    ) -> Drawing:
        """The words, single characters without spaces between, or their pieces; and the tags.

        The first piece of a word has its tag.
        """
        unit = "words" if self.tokenizer is None else "pieces"
        check_drawn_length(self.length(encoded), self.data.max_length, unit)
        if self.tokenizer is None:
            space = "" if all(len(word) == 1 for word in example.words) else " "
            text, tags = words_text(example.words, space), list(answer.tags)
        else:
            decode = self.tokenizer.decode
            pieces = [decode([one]).strip() or "␣" for ids in encoded["pieces"] for one in ids]
            text = words_text([*[BEGIN] * self._begins, *pieces, END])
            tags = [""] * self._begins
            for ids, tag in zip(encoded["pieces"], answer.tags, strict=True):
                tags += [tag, *[""] * (len(ids) - 1)]
            tags.append("")
        output, prediction = words_text(answer.tags), Prediction(tags=tuple(tags))
        return Drawing(text=text, output=output, prediction=prediction)

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

    def _right(self, examples: Sequence[TaggedWords]) -> list[tuple[str, ...]]:
        return [self._known(example).tags or () for example in examples]

    def _known(self, example: TaggedWords) -> TaggedWords:
        """The example in the run's own scheme, which early runs have, as BIOES."""
        if example.tags is None or is_bio(self.tags) or not marks_entities(self.tags):
            return example
        return replace(example, tags=as_known(example.tags, self.tags))


def _scores(model: nn.Module, batch: Batch) -> Float[Tensor, "R N K"]:
    reading = {} if batch["parts"] is None else {"parts": batch["parts"]}
    ids, lengths = batch["words"], batch["lengths"]
    if batch["pieces"] is not None:
        ids, lengths = batch["pieces"]["ids"], batch["pieces"]["lengths"]
        reading["places"] = batch["pieces"]["places"]
    scores: Tensor = model(ids, lengths, **reading)
    return scores.float()


def _folded(word: str, data: TaggingData) -> str:
    return word.lower() if data.lowercase else word


def _flat(rows: Iterable[Iterable[T]]) -> list[T]:
    return [each for row in rows for each in row]


def _check_whole(recipe: Recipe) -> None:
    """Raise SettingError if something is set that is done to whole words alone."""
    data = recipe.settings(TaggingData)
    settings = {
        "model.parts": reads_parts(recipe.model),
        "data.drop_words": data.drop_words > 0,
        "data.drop_parts": data.drop_parts > 0,
    }
    if found := [name for name, is_set in settings.items() if is_set]:
        raise SettingError(
            f"{found[0]} must be left out where words are cut into pieces, by [tokenizer] or as "
            "training.pretrained does; it is set."
        )
