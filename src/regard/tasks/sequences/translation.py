"""Translation: sentence pairs for a sequence-to-sequence model."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import ClassVar, Literal

import numpy as np
from jaxtyping import Int64

from regard.config import JsonValue
from regard.errors import DataError, SettingError
from regard.metrics import bleu
from regard.tasks.checking import CheckReport, check_examples
from regard.tasks.held_out import Parts, evenly, hold_out_by_hash, valid_share
from regard.tasks.oddities import CheckedExample
from regard.tasks.sequences.sequence_task import EncodedSequences, SequenceTask
from regard.tasks.sequences.translations import Translations
from regard.tasks.settings.recipe import DataConfig, Recipe
from regard.tasks.streaming import Chunk, Shard, Stored, StreamedTask
from regard.text import (
    BadLines,
    Line,
    Pair,
    PairLayout,
    Sequences,
    encode_corpus,
    normalize,
    read_pairs,
)
from regard.text.corpus import MappedArrays
from regard.text.reading.lines import readable
from regard.text.reading.pairs import merged, pairs_of_lines
from regard.text.reading.records import record_in, value_at
from regard.text.reading.tables import Field

__all__ = ["TranslationTask"]

# Latin marks end a sentence only before a space: not in 3.14.
_SENTENCE_END = re.compile(r"(?<=[。！？；])\s*|(?<=[!?;.])\s+")


class StoredPairs(Stored[EncodedSequences]):
    """Pairs of a corpus that is on disk, the arrays ``source`` and ``target``."""

    def __init__(self, arrays: MappedArrays, *, source_end: bool) -> None:
        super().__init__(arrays)
        self._source, self._target = arrays["source"], arrays["target"]
        self._source_end = source_end

    def __len__(self) -> int:
        return len(self._source)

    def sample(self, index: int) -> EncodedSequences:
        self.arrays.reading()
        return EncodedSequences(self._source[index], self._target[index])

    def lengths_at(self, indices: Int64[np.ndarray, " n"]) -> Int64[np.ndarray, "2 n"]:
        source, target = self._source.lengths_at(indices), self._target.lengths_at(indices)
        return np.stack([source + int(self._source_end), target + 1])


# The training pairs that a recipe was chosen by, until the training reads them.
_PEEKED: dict[object, tuple[list[Pair], BadLines]] = {}


def _text_of(data: DataConfig, files: Sequence[Shard]) -> object:
    """A key of pairs: their files as they are now, and how they are read."""
    names = [file for sides in files for file in sides if file is not None and file.exists()]
    stats = tuple((str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in names)
    return stats, tuple(data.columns), data.on_bad_line


class TranslationTask(SequenceTask, StreamedTask[Pair, EncodedSequences]):
    """A sentence for a sentence.

    Example:
        >>> from regard.tasks import recipe_from_table
        >>> pair = Pair("我爱中国", "I love China", ("I love China",), "a.tsv:1")
        >>> recipe = recipe_from_table({"tokenizer": {"type": "words"}})
        >>> task = TranslationTask.learn(recipe, [pair])
        >>> batch = task.collate(task.encode([pair], training=True)).padded
        >>> batch.source.shape, batch.labels.shape
        (torch.Size([1, 5]), torch.Size([1, 4]))
        >>> task.tokenizer.target.decode(batch.labels[0].tolist())
        'I love China'
    """

    metrics: ClassVar[Mapping[str, int]] = {"bleu": 1}
    main_metric: ClassVar[str] = "bleu"
    held_out: ClassVar[Literal["hash", "end"]] = "hash"
    stored_as: ClassVar[tuple[str, ...]] = ("source", "target")
    numbered: ClassVar[tuple[str, ...]] = ()
    data: DataConfig

    @classmethod
    def read(
        cls, recipe: Recipe, split: str, *, bad_lines: BadLines | None = None, merge: bool = True
    ) -> list[Pair]:
        if recipe.uses_phrasebook:
            from regard.text.phrasebook import phrases  # thousands of entries, only for who asks

            parts = recipe.phrasebook_splits if split == "train" else (split,)
            split_phrases = (phrase for part in parts for phrase in phrases(part))  # type: ignore[arg-type]
            return [
                Pair(phrase.source, phrase.target, phrase.references, f"phrasebook:{number}")
                for number, phrase in enumerate(split_phrases, 1)
            ]
        data, files = recipe.settings(DataConfig), cls.shards(recipe, split)
        layout = PairLayout(columns=data.columns, merge_references=merge)
        if not merge and (peeked := _PEEKED.pop(_text_of(data, files), None)) is not None:
            if bad_lines is not None:
                bad_lines.merge(peeked[1])
            return peeked[0]
        pairs = [
            pair
            for source, target in files
            for pair in read_pairs(
                source, target, layout=layout, on_bad_line=data.on_bad_line, bad_lines=bad_lines
            )
        ]
        return merged(pairs) if merge and len(files) > 1 else pairs

    @classmethod
    def peek(cls, recipe: Recipe) -> list[Pair]:
        """The training pairs, cached for who reads them next, once and from unchanged files."""
        _PEEKED.clear()
        bad_lines = BadLines()
        pairs = cls.read(recipe, "train", bad_lines=bad_lines, merge=False)
        if not recipe.uses_phrasebook:
            text = _text_of(recipe.settings(DataConfig), cls.shards(recipe, "train"))
            _PEEKED[text] = pairs, bad_lines
        return pairs

    @classmethod
    def read_parts(cls, recipe: Recipe, *, bad_lines: BadLines | None = None) -> Parts[Pair]:
        """The pairs to train on, to validate on and to test on.

        Held-out pairs are spread evenly over the text, and no training pair shares a side with
        them. Those to test on with one source are one.
        """
        text = cls.read(recipe, "train", bad_lines=bad_lines, merge=False)
        if not text:
            raise DataError("data.train must name the training text; got nothing.")
        pairs, test, held_out = text, list[Pair](), list[Pair]()
        if recipe.holds_out_test:
            remaining, test = hold_out_by_hash(pairs, attrgetter("source"))
            pairs = _different(cls.drop_overlap(remaining, test), pairs)
        if not (valid := cls.read(recipe, "valid", bad_lines=bad_lines)):
            valid = held_out = list(evenly(pairs, unit="pairs", share=valid_share(recipe)))
            pairs = _different(cls.drop_overlap(pairs, held_out), pairs)
        sources = merged(test)
        return Parts(
            pairs,
            valid,
            sources,
            overlap=len(text) - len(pairs) - len(held_out) - len(test),
            references=len(test) - len(sources),
        )

    @classmethod
    def shards(cls, recipe: Recipe, split: str) -> list[Shard]:
        named = recipe.sharded(split)
        if len(named) > 2:
            raise SettingError(
                f"data.{split} must be one file of pairs, or a source and a target file; got "
                f"{len(named)} files. Name more by their folder, or by a pattern: shards/*.tsv."
            )
        if len(named) < 2:
            return [(file, None) for files in named for file in files]
        sources, targets = named
        if len(sources) != len(targets):
            raise SettingError(
                f"data.{split} must name as many files of sources as of targets; got "
                f"{len(sources)} and {len(targets)}."
            )
        return list(zip(sources, targets, strict=True))

    @classmethod
    def of_chunk(
        cls, recipe: Recipe, chunk: Chunk, *, bad_lines: BadLines | None = None
    ) -> list[Pair]:
        data = recipe.settings(DataConfig)
        return list(
            pairs_of_lines(
                chunk.decoded(),
                chunk.decoded_targets(),
                ending=chunk.ending,
                header=chunk.decoded_header(),
                layout=PairLayout(columns=data.columns),
                on_bad_line=data.on_bad_line,
                bad_lines=bad_lines,
            )
        )

    @classmethod
    def drop_overlap(cls, examples: Sequence[Pair], held: Sequence[Pair]) -> list[Pair]:
        """The pairs that share no side with those held out."""
        sources, targets = {pair.source for pair in held}, {pair.target for pair in held}
        return [p for p in examples if p.source not in sources and p.target not in targets]

    def to_store(self, examples: Sequence[Pair], *, too_long: BadLines) -> Mapping[str, Sequences]:
        """The ids of both sides, of pairs that are not too long."""
        corpus = encode_corpus(
            examples, self.tokenizer, max_length=self.data.max_length, too_long=too_long
        )
        return {"source": corpus.source, "target": corpus.target}

    def stored(self, arrays: MappedArrays) -> StoredPairs:
        return StoredPairs(arrays, source_end=self.data.source_end)

    @staticmethod
    def checked(example: Pair) -> CheckedExample:
        sides = (example.source, example.target)
        return CheckedExample(sides, (), example.where, target_where=example.target_where)

    @staticmethod
    def named_texts(example: Pair) -> dict[str, str]:
        return {"source": example.source, "target": example.target}

    @classmethod
    def check(cls, recipe: Recipe, *, examples: int = 3) -> CheckReport:
        """Check the text as the base does, the sides of each pair by themselves and together."""

        def read(split: str, bad_lines: BadLines) -> list[CheckedExample]:
            pairs = cls.read(recipe, split, bad_lines=bad_lines, merge=False)
            return [cls.checked(pair) for pair in pairs]

        return check_examples(read, unit=cls.unit, examples=examples, is_translation=True)

    @classmethod
    def baselines(cls, recipe: Recipe, split: str) -> None:
        """The source itself as the output: the baseline of a translation."""

    def input_fields(self, *, with_answers: bool = False) -> Sequence[Field]:
        return PairLayout(columns=self.data.columns).fields[: 1 + with_answers]

    def request(self, record: str | Mapping[str, JsonValue], where: str) -> Pair:
        """The sentence that a text is, or that a JSON record has at "source"."""
        text = record if isinstance(record, str) else record.get("source")
        if not isinstance(text, str):
            raise DataError(f"{where}: source must be text; got {text!r}.")
        return Pair(text, "", (), where)

    def parse_line(self, line: Line, ending: str) -> Pair:
        text = readable(line)
        if text.strip() and ending == ".jsonl":
            (text,) = sides_of(text, line.where, PairLayout(columns=self.data.columns), 1)
        return Pair(text, "", (), line.where)

    def parse_pair(self, line: Line, ending: str) -> Pair:
        layout, text = PairLayout(columns=self.data.columns), readable(line)
        if ending == ".jsonl":
            source, target = map(normalize, sides_of(text, line.where, layout, 2))
            return Pair(source, target, (target,), line.where)
        cells = list(map(normalize, text.split("\t")))
        columns = [column for column in layout.columns[:2] if isinstance(column, int)] or [1, 2]
        if len(cells) < max(columns):
            raise DataError(
                f"{line.where}: expected at least {max(columns)} columns, found {len(cells)}. "
                "To score an output, write its source, a tab and the output."
            )
        source, target = (cells[column - 1] for column in columns)
        return Pair(source, target, (target,), line.where)

    def parts(self, text: str) -> list[str]:
        """A text itself, or parts no longer than training allowed, cut at ends of sentences."""
        longest = self.data.max_length
        if len(self.tokenizer.source.encode(text)) <= longest:
            return [text]
        return [
            part
            for sentence in _SENTENCE_END.split(text)
            for part in self._fitting(sentence, longest)
        ]

    def score(self, answers: Sequence[Translations], examples: Sequence[Pair]) -> dict[str, float]:
        language = self.data.target_language
        texts, references = [one.best.text for one in answers], [one.references for one in examples]
        return {"bleu": bleu(texts, references, target_language=language).value}

    def _fitting(self, sentence: str, longest: int) -> Iterator[str]:
        pieces = self.tokenizer.source.pieces(sentence)
        for first in range(0, len(pieces), longest):
            last = pieces[min(first + longest, len(pieces)) - 1]
            part = sentence[pieces[first].start : last.end].strip()
            if part:
                yield part


def sides_of(text: str, where: str, layout: PairLayout, count: int) -> list[str]:
    """The source in a JSON object, or the source and the target; DataError without them."""
    keys, names = layout.keys[:count], ("source", "target")[:count]
    record = record_in(text)
    values = [] if isinstance(record, str) else map(partial(value_at, record), keys, names)
    sides = [value for value in values if isinstance(value, str)]
    if len(sides) < count:
        texts = "a text" if count == 1 else "texts"
        at = " and ".join(map(repr, keys))
        raise DataError(f"{where}: expected a JSON object with {texts} at {at}.")
    return sides


def _different(remaining: list[Pair], pairs: Sequence[Pair]) -> list[Pair]:
    """Training pairs without those held out."""
    if not remaining:
        kinds = len({pair.target for pair in pairs})
        raise DataError(
            "data.train must hold different sentences; got the same ones throughout: "
            f"{kinds:,} targets for {len(pairs):,} sources, such as {pairs[0].target[:20]!r}. "
            "If those are labels, take a recipe of classification: `regard recipes`."
        )
    return remaining
