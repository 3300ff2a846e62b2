"""Tagging: a label for each word, such as its part of speech, or the entity it is part of."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

from torch import Generator, nn

from regard.config import JsonValue
from regard.errors import DataError
from regard.fields import several
from regard.metrics.labels import (
    accuracy,
    as_bio,
    by_label,
    entity_scores,
    entity_tags,
    macro_f1,
    marks_entities,
    to_scheme,
)
from regard.tasks.batches import Batch, Sample, dropped
from regard.tasks.drawing import Drawing, check_drawn_length, words_text
from regard.tasks.labels.tag_baselines import (
    REGRESSION,
    LocalTagger,
    entities_of_training,
    most_frequent_tags,
)
from regard.tasks.labels.tags import (
    TaggerTask,
    Tags,
    compared,
    flattened,
    in_scheme,
    marked_errors,
    space_of,
    tag_numbers,
    without_marks,
)
from regard.tasks.labels.word_parts import (
    WORD_PARTS,
    check_whole,
    framed,
    joined_words,
    pieces_of,
    reads_parts,
    stretches,
)
from regard.tasks.oddities import CheckedExample
from regard.tasks.settings.data import TaggingData
from regard.tasks.settings.recipe import Recipe, check_framed_positions, check_positions
from regard.tasks.tables import Table, by_group, confusion_table, label_table
from regard.text import (
    BOS_ID,
    EOS_ID,
    PAD_ID,
    UNK_ID,
    BadLines,
    Tokenizer,
    TokenizerConfig,
    normalize,
    train_tokenizer,
)
from regard.text.batches import padded
from regard.text.normalization import has_unspaced
from regard.text.reading.annotations import words_of
from regard.text.reading.records import Handling
from regard.text.reading.tables import Field
from regard.text.reading.tagged import TaggedWords, read_tagged, words_in
from regard.text.tokenizers.pieces import BEGIN, END
from regard.text.tokenizers.words import Vocabulary
from regard.viewer import Prediction

__all__ = ["Tagging", "TaggingData"]


class Tagging(TaggerTask[TaggedWords, Tags]):
    """Words to tags.

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
    main_metric: ClassVar[str] = "f1"
    learned = ("words", "parts", "tags", "rare")
    file = "words.json"
    data: TaggingData
    tokenizer: Tokenizer | None
    words: list[str]
    parts: list[str]
    tags: Annotated[list[str], several(1)]
    rare: list[str]

    def __init__(self, recipe: Recipe, tokenizer: Any = None, **learned: list[str]) -> None:
        super().__init__(recipe, tokenizer, **learned)
        self.word_ids, self.part_ids = Vocabulary(self.words), Vocabulary(self.parts)
        self._rare = frozenset(self.rare)
        self._parts_of = WORD_PARTS[self.data.parts] if reads_parts(recipe) else None
        self._begins = tokenizer is not None and recipe.settings(TokenizerConfig).begins

    @classmethod
    def read(
        cls, recipe: Recipe, split: str, *, bad_lines: BadLines | None = None
    ) -> list[TaggedWords]:
        """The sentences of a split; none if the recipe names no file.

        Tags of entities come out as BIO, of files in IOB1, BIOES or BILOU too, and of those that
        write PER-B: see ``entity_tags`` and ``as_bio``.
        """
        every = super().read(recipe, split, bad_lines=bad_lines)
        names = entity_tags({tag for sentence in every for tag in sentence.tags or ()})
        if names is None:
            return every
        return [
            replace(sentence, tags=as_bio([names[tag] for tag in sentence.tags or ()]))
            for sentence in every
        ]

    @classmethod
    def read_file(cls, file: Path, data: Any, handling: Handling) -> Iterable[TaggedWords]:
        return read_tagged(file, word=data.word, tag=data.tag, **handling)

    @staticmethod
    def checked(example: TaggedWords) -> CheckedExample:
        return CheckedExample((" ".join(example.words),), example.tags or (), example.where)

    @classmethod
    def learn(cls, recipe: Recipe, examples: Sequence[TaggedWords]) -> "Tagging":
        """The task with the words, their parts and the tags of the training text.

        DataError if there are fewer than two tags; SettingError as ``check_whole`` says.
        """
        data, tokenizer = recipe.settings(TaggingData), None
        if recipe.tokenizer is not None:
            check_whole(recipe)
        tags = sorted({tag for example in examples for tag in example.tags or ()})
        if len(tags) < 2:
            raise DataError(
                f"data.train must hold at least two different tags; got {tags}. "
                "Is data.tag the tag's column?"
            )
        every = [_folded(word, data) for example in examples for word in example.words]
        parts: Iterable[str] = ()
        if reads_parts(recipe):
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
        tokenizer, longest = self.tokenizer, self.data.max_length
        sizes = {"vocab_size": len(self.word_ids) if tokenizer is None else tokenizer.vocab_size}
        if self._parts_of is not None:
            sizes["parts_vocab"] = len(self.part_ids)
        reader, tagger = self.build_tagger(self.tags, **sizes)
        if tokenizer is None:
            check_positions(reader.max_length, "data.max_length", longest)
        else:
            check_framed_positions(
                reader.max_length, longest, self.recipe.settings(TokenizerConfig)
            )
        return tagger

    def describe(self) -> list[str]:
        names = ", ".join(self.tags[:12]) + (" …" if len(self.tags) > 12 else "")
        is_read = self._parts_of is not None
        parts = f", {len(self.part_ids):,} {self.data.parts}" if is_read else ""
        lines = [f"{len(self.word_ids):,} words{parts}", f"{len(self.tags)} tags: {names}"]
        if all(tag.isdecimal() for tag in self.tags):
            lines.append(
                "tags are numbers without names, so f1 is the mean over tags; "
                "entities are scored where files have their names (B-PER, I-PER, O)"
            )
        return [
            f"{pieces}; a word's first carries its tag" for pieces in super().describe()
        ] + lines

    def input_fields(self, *, with_answers: bool = False) -> Sequence[Field]:
        return (Field.of(self.data, "word"),)

    def request(self, record: str | Mapping[str, JsonValue], where: str) -> TaggedWords:
        """The words of a line or of a JSON record's "tokens" or text; DataError without any.

        Words of a line have spaces between them; a line without a space is its characters, if
        those were the words of the training text. An unknown word is parted from marks that are
        words by themselves in training, as those of spans are.
        """
        if isinstance(record, str):
            words = self._words(normalize(record))
        else:
            tokens = words_in(record, Field.of(self.data, "word"))
            words = [normalize(word) if isinstance(word, str) else "" for word in tokens]
        if not words or not all(words):
            raise DataError(f"{where}: tokens must hold words to tag; got {record!r}.")
        return TaggedWords(tuple(words), None, where)

    def _words(self, text: str) -> list[str]:
        words = text.split()
        if len(words) == 1 and all(len(word) == 1 for word in self.words[:200]):
            return list(words[0])
        return [part for word in words for part in self._parted(word)]

    def _parted(self, word: str) -> list[str]:
        """The word, or its parts where training has such parts as words."""
        parts = [word[start:end] for start, end in words_of(word)]
        if len(parts) == 1 or self._in_vocabulary(word):
            return [word]
        if has_unspaced(word):
            is_parted = not any(len(entry) > 1 and has_unspaced(entry) for entry in self.words)
        else:
            marks = [part for part in parts if not part.isalnum()]
            is_parted = bool(marks) and all(map(self._in_vocabulary, marks))
        return parts if is_parted else [word]

    def _in_vocabulary(self, word: str) -> bool:
        return self.word_ids.ids([_folded(word, self.data)]) != [UNK_ID]

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
        sample: Sample = {
            "words": example.words,
            "ids": self.word_ids.ids(folded),
            "tags": tag_numbers(in_scheme(example, self.tags), self.tags),
            "rare": [word in self._rare for word in folded],
            "sizes": [1] * len(folded),
        }
        if self._parts_of is not None:
            parts = self._parts_of(example.words)
            sample["parts"] = [self.part_ids.ids(word_parts) for word_parts in parts]
        if self.tokenizer is not None:
            cut = pieces_of(folded, self.tokenizer)
            sample["pieces"] = [ids[: self.data.max_length] for ids in cut]
            sample["sizes"] = [len(ids) for ids in sample["pieces"]]
        return sample

    def length(self, sample: Sample) -> int:
        return sum(sample["sizes"])

    def collate(self, encoded: Sequence[Sample], *, generator: Generator | None = None) -> Batch:
        """Padded sentences; a row of one that is too long is a part of it, as ``owners`` say."""
        every = [
            (owner, self._part(sample, part))
            for owner, sample in enumerate(encoded)
            for part in stretches(sample["sizes"], self.data.max_length)
        ]
        batch = super().collate([row for _, row in every], generator=generator)
        texts = [sample["words"] for sample in encoded]
        return {**batch, "owners": [owner for owner, _ in every], "texts": texts}

    def _part(self, sample: Sample, part: slice) -> Sample:
        """The sample of some of the words of a sentence."""
        row = {name: sample[name][part] for name in ("ids", "tags", "rare")}
        row["counts"] = len(row["ids"])
        if "parts" in sample:
            row["parts"] = padded(sample["parts"][part])
        if "pieces" in sample:
            row["ids"], row["positions"] = framed(sample["pieces"][part], begins=self._begins)
        return row

    def noisy(self, batch: Batch, generator: Generator) -> Batch:
        """The batch with words that occur once, and parts, perhaps unknown."""
        data, drawn = self.data, dict(batch)
        if data.drop_words:
            rare = batch["rare"].bool()
            drawn["ids"] = dropped(batch["ids"], rare, data.drop_words, generator)
        if data.drop_parts and "parts" in batch:
            parts = batch["parts"]
            drawn["parts"] = dropped(parts, parts != PAD_ID, data.drop_parts, generator)
        return drawn

    def predict(self, model: nn.Module, batch: Batch) -> list[Tags]:
        texts, counts = batch["texts"], batch["counts"]
        best = model.best(self.tag_scores(model, batch), counts).tolist()  # type: ignore[operator]
        tags: list[list[str]] = [[] for _ in texts]
        for owner, row, count in zip(batch["owners"], best, counts.tolist(), strict=True):
            tags[owner] += [self.tags[tag] for tag in row[:count]]
        return [Tags(words, tuple(predicted)) for words, predicted in zip(texts, tags, strict=True)]

    def score(self, answers: Sequence[Tags], examples: Sequence[TaggedWords]) -> dict[str, float]:
        """Accuracy of tags; F1 of whole entities where tags mark them, else averaged over tags."""
        predicted, true = [answer.tags for answer in answers], self._true(examples)
        flat = flattened(predicted), flattened(true)
        is_marked = marks_entities(self.tags)
        f1 = entity_scores(predicted, true)[0].f1 if is_marked else macro_f1(*flat)
        return {"accuracy": accuracy(*flat), "f1": f1}

    def example_score(self, answer: Tags, example: TaggedWords) -> float:
        """The share of right tags."""
        return accuracy(answer.tags, in_scheme(example, self.tags).tags or answer.tags) / 100

    def baselines(
        self, train: Sequence[TaggedWords], examples: Sequence[TaggedWords]
    ) -> dict[str, list[Tags]]:
        """Tags looked up in the training text, by word and, of entities, by their words.

        And logistic regression on the words around.
        """
        tagged = [in_scheme(example, self.tags) for example in train]
        local = LocalTagger(tagged).tags([example.words for example in examples])
        rows = {
            "each word's most frequent tag": most_frequent_tags(tagged, examples),
            REGRESSION: local,
        }
        if marks_entities(self.tags):
            met = entities_of_training(tagged, examples)
            rows["entities met in training"] = [to_scheme(tags, self.tags) for tags in met]
        return {
            name: [Tags(example.words, tags) for example, tags in zip(examples, every, strict=True)]
            for name, every in rows.items()
        }

    def tables(self, answers: Sequence[Tags], examples: Sequence[TaggedWords]) -> list[Table]:
        """Figures by entity type or tag, and of unknown words, and the confusion matrix."""
        predicted, true = [answer.tags for answer in answers], self._true(examples)
        flat = flattened(predicted), flattened(true)
        words = flattened(example.words for example in examples)
        ids = self.word_ids.ids(_folded(word, self.data) for word in words)
        groups = ["unknown" if n == UNK_ID else "known from training" for n in ids]
        hits = {"accuracy": [float(a == b) for a, b in zip(*flat, strict=True)]}
        by_word = by_group("word", groups, hits, column="words")
        if marks_entities(self.tags):
            by_tag = label_table(entity_scores(predicted, true)[1], "type", "type of entity")
        else:
            by_tag = label_table(by_label(*flat))
        return [by_tag, by_word, confusion_table(*flat)]

    def draw(
        self, model: nn.Module, example: TaggedWords, encoded: Sample, answer: Tags
    ) -> Drawing:
        """The words, single characters without spaces between, or their pieces; and the tags.

        The first piece of a word has its tag.
        """
        unit = "words" if self.tokenizer is None else "pieces"
        check_drawn_length(self.length(encoded), self.data.max_length, unit)
        if self.tokenizer is None:
            text, tags = words_text(example.words, space_of(example.words)), list(answer.tags)
        else:
            ids, positions = framed(encoded["pieces"], begins=self._begins)
            names = {BOS_ID: BEGIN, EOS_ID: END}
            decode, tags = self.tokenizer.decode, [""] * len(ids)
            text = words_text([names.get(i) or decode([i]).strip() or "␣" for i in ids])
            for position, tag in zip(positions, answer.tags, strict=True):
                tags[position] = tag
        output, prediction = words_text(answer.tags), Prediction(tags=tuple(tags))
        return Drawing(text=text, output=output, prediction=prediction)

    def show(self, example: TaggedWords, answer: Tags) -> str:
        gold = in_scheme(example, self.tags).tags or answer.tags
        show = compared if marks_entities(self.tags) else marked_errors
        text = show(example.words, answer.tags, gold)
        return text if len(text) <= 240 else f"{text[:237]}…"

    def _true(self, examples: Sequence[TaggedWords]) -> list[tuple[str, ...]]:
        return [in_scheme(example, self.tags).tags or () for example in examples]


def _folded(word: str, data: TaggingData) -> str:
    return word.lower() if data.lowercase else word
