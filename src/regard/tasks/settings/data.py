"""Settings ``[data]`` of tasks, without torch."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from regard.checks import check_fraction, check_positive
from regard.errors import SettingError
from regard.fields import Count, Natural, Share, Weight, at_least, check_fields
from regard.tasks.settings.recipe import DataFiles, SplitFiles
from regard.text.reading.tables import Column

WordPartsName = Literal["characters", "neighbours", "ngrams", "phrases"]


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelledData(DataFiles):
    """Files and columns of labelled texts.

    Attributes:
        train: TSV, CSV or JSONL files, or tables of Parquet or Arrow.
        text: The text's column in a table: its number from 1, or its name in the header. A name is
            its key in JSONL, Parquet and Arrow, too, which is else "text".
        label: The label's column, likewise; the key is else "label".

    Raises:
        SettingError: Two columns are one.
    """

    text: Column = 1
    label: Column = 2

    column_names: ClassVar[tuple[str, ...]] = ("text", "label")


@dataclass(frozen=True, kw_only=True, slots=True)
class ClassificationData(LabelledData):
    """Files and columns of texts to classify, and how they are read.

    Attributes:
        aspect: The column of the aspect of the text that is judged, such as the kind of goods a
            review is of, likewise; the key is else "aspect". 0: there is none.
        parts: Parts that a word is read from besides itself, where ``model.parts`` says so: its
            ``characters`` or ``ngrams`` of them; its pairs with its ``neighbours`` or the
            ``phrases`` of up to five that end at it, which suit text cut into characters.
        parts_min_count: In how many texts a part must occur to get an id: a part of one says only
            which text it is.
        drop_words: Share of the words that are read as unknown in training, so that a text is
            judged by all of them (Iyyer et al., 2015, https://aclanthology.org/P15-1162). Their
            parts stay.
        drop_parts: Share of the parts that are read as unknown in training.
        max_length: Longest text, in tokens; the rest is cut off.
    """

    aspect: Natural | str = 0
    parts: WordPartsName = "ngrams"
    parts_min_count: Count = 2
    drop_words: Share = 0.0
    drop_parts: Share = 0.0
    max_length: Count = 256

    column_names: ClassVar[tuple[str, ...]] = ("text", "label", "aspect")


@dataclass(frozen=True, kw_only=True, slots=True)
class PairsData(DataFiles):
    """Files and columns of pairs of texts.

    Attributes:
        train: .tsv, .csv, .jsonl or a table of Parquet or Arrow, of pairs with a label; or .json as
            SQuAD's, which gives two pairs a question: with its own passage ("match"), and with
            another of the same article ("other").
        first: The first text's column in a table: its number from 1, or its name in the header. A
            name is its key in JSONL, Parquet and Arrow, too, which is else "first".
        second: The second text's, likewise; the key is else "second".
        label: The label's, likewise; the key is else "label".
        max_length: Most tokens of each text; the rest is cut off.
        shared_words: Whether the model sees in numbers how much of the first text the second has,
            its rare words above all, as the training text counts them.
    """

    first: Column = 1
    second: Column = 2
    label: Column = 3
    max_length: Count = 192
    shared_words: bool = False

    renamed: ClassVar[Mapping[str, str]] = {"overlap": "shared_words"}

    column_names: ClassVar[tuple[str, ...]] = ("first", "second", "label")


@dataclass(frozen=True, kw_only=True, slots=True)
class PicturesData(DataFiles):
    """Files of pictures, and how they are scaled and moved.

    Attributes:
        train: JSONL files, each line an object with "pixels", rows of numbers (or of lists of
            numbers, such as red, green, blue), and "label"; or folders that hold a folder of
            picture files for each label, which need Pillow. All pictures are of one size.
        size: Rows and columns that pictures of folders are scaled to; 0 leaves them as they are.
        shift: Pixels that a picture is moved by at most in training, to each side at random;
            pixels that come in at the edges are as dark as can be.
        example: Built-in data used without files: ``digits``, the 1,797 handwritten ones of 8 × 8
            pixels that scikit-learn has, or ``none``.
    """

    size: Natural = 0
    shift: Natural = 0
    example: Literal["none", "digits"] = "none"


@dataclass(frozen=True, kw_only=True, slots=True)
class RegressionData(DataFiles):
    """Files and columns of points.

    Attributes:
        train: CSV or TSV files. Predictions need them too: a kernel regression is its points.
        inputs: Names of the input columns in the header, or their numbers from 1, as text; none
            means all but the target.
        target: Name or number of the target's column; empty is the last.
        scale: Whether inputs are taken as they are (``none``), or from their mean and in standard
            deviations (``deviation``), so that one bandwidth suits them all.
        example: Built-in data used without files: ``sine``, y = 2 sin x + x^0.8, or ``none``.
        points: How many points of the example are drawn.
        noise: Deviation of the noise in their targets.
        seed: Another one draws others.
    """

    inputs: tuple[str, ...] = ()
    target: str = ""
    scale: Literal["none", "deviation"] = "none"
    example: Literal["none", "sine"] = "none"
    points: Annotated[int, at_least(2)] = 50
    noise: Weight = 0.5
    seed: Natural = 0

    column_names: ClassVar[tuple[str, ...]] = ("inputs", "target")


@dataclass(frozen=True, kw_only=True, slots=True)
class RegressionConfig:
    """Objective that training minimises.

    Attributes:
        loss: The ``mean`` of a batch's squared errors, or their ``sum``.
    """

    loss: Literal["mean", "sum"] = "mean"

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, kw_only=True, slots=True)
class ChoicesData(DataFiles):
    """Files of questions with answers to choose from.

    Attributes:
        train: .jsonl with "question", "context", "answers" (the first is the right one) and
            "choices", or with "story" instead of those: then wrong answers are drawn from the
            answers to other questions about the same story. Or .json as SQuAD's, whose articles are
            the stories.
        sentences: Whether the answers to choose from are the sentences of the text, and the right
            one is that in which the answer stands. Each is read beside the question alone.
        num_wrong: Wrong answers drawn for a question without choices.
        max_length: Most tokens of a text that are read; the rest is cut off.
        max_answer: Most tokens of question and answer together.
    """

    sentences: bool = False
    num_wrong: Count = 3
    max_length: Count = 384
    max_answer: Count = 96


@dataclass(frozen=True, kw_only=True, slots=True)
class QuestionsData(DataFiles):
    """Files of questions that a stretch of a text answers.

    Attributes:
        train: .json files as SQuAD's, or .jsonl with "question", "context" and "answers".
        max_length: Most tokens of a text that are read at once; a longer one is read in windows,
            and the best answer of all windows is taken.
        stride: Tokens from the beginning of one window to that of the next.
        max_question: Longest question, in tokens; the rest is cut off.
        max_answer: Longest answer that is given, in tokens.

    Raises:
        SettingError: ``stride`` is above ``max_length``.
    """

    max_length: Count = 384
    stride: Count = 192
    max_question: Count = 64
    max_answer: Count = 30

    def __post_init__(self) -> None:
        DataFiles.__post_init__(self)
        if self.stride > self.max_length:
            raise SettingError(
                f"stride must be at most max_length, or text between two windows is never read; "
                f"got stride={self.stride}, max_length={self.max_length}."
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class SentencesData(DataFiles):
    """Files of questions that a sentence of a text answers.

    Attributes:
        train: .json files as SQuAD's, or .jsonl with "question", "context" and "answers".
        min_count: How often a word must occur to get an id; words are read in lower case.
        max_words: Most words of a sentence; the rest is cut off.
        oov_buckets: Ids that all other words share by their spelling, so that a name that stands in
            question and text is seen to be the same; 0 gives them one id.
        shared_words: Whether the model sees in numbers how much of the question each sentence has,
            its rare words above all, as the training text counts them.
    """

    min_count: Count = 2
    max_words: Count = 60
    oov_buckets: Natural = 1000
    shared_words: bool = False

    renamed: ClassVar[Mapping[str, str]] = {"overlap": "shared_words"}


@dataclass(frozen=True, kw_only=True, slots=True)
class ExtractionData(DataFiles):
    """Files and columns of documents and their summaries.

    Attributes:
        train: TSV files, or JSONL with "document" and "summary" or several "summaries".
        document: TSV: column of the document, from 1.
        summary: TSV: column of the summary.
        sentences: Sentences that are taken out; None takes as many as summaries of the training
            text have on average.
        max_length: Most tokens of a document that are read, a begin for each sentence among them.
    """

    document: Count = 1
    summary: Count = 2
    sentences: Count | None = None
    max_length: Count = 1024

    column_names: ClassVar[tuple[str, ...]] = ("document", "summary")


@dataclass(frozen=True, kw_only=True, slots=True)
class TaggingData(DataFiles):
    """Files and columns of tagged sentences, and how words are read.

    Words have an id each; or, in a recipe with ``[tokenizer]``, such as one that begins with a
    masked language model, they are cut into its pieces, the first of which carries the tag.

    Attributes:
        train: Files: .conllu, or columns parted by tabs (.conll, .txt, .tsv) or as in .csv, or
            .jsonl, or tables of Parquet or Arrow.
        word: The word's column, its number from 1 or its name in a header; not of .conllu. A name
            is the key of the words in .jsonl and tables, too, which is else "tokens".
        tag: The tag's column, likewise; the key is else "tags".
        lowercase: Whether words are looked up in lower case; their characters are read as they are.
        min_count: How often a word must occur to get an id.
        parts: Parts of words that ``model.parts`` reads: their ``characters``, ``ngrams`` of them,
            or its pairs with its ``neighbours``, which suit words of single characters.
        parts_min_count: How often a part must occur to get an id.
        drop_words: In training, the probability that a word which occurs once there is read as
            unknown, so that the model learns to read those.
        drop_parts: In training, the probability that a part is read as unknown.
        join_entities: In training, whether sentences are read a second time without the marks
            between two entities of one type, so that names in a row are told apart.
        max_length: Longest sentence, in words, or in their pieces, that is read at once; a longer
            one is read in parts.
    """

    word: Column = 1
    tag: Column = 2
    lowercase: bool = False
    min_count: Count = 1
    parts: WordPartsName = "characters"
    parts_min_count: Count = 1
    drop_words: Share = 0.0
    drop_parts: Share = 0.0
    join_entities: bool = False
    max_length: Count = 256

    column_names: ClassVar[tuple[str, ...]] = ("word", "tag")


@dataclass(frozen=True, kw_only=True, slots=True)
class RunningTextData(SplitFiles):
    """Files of running text.

    Attributes:
        train: Text files, which may end in .gz or .zst; or JSONL or tables (Parquet, Arrow).
        valid: The same, for validation; empty takes the end of the training text.
        valid_share: How much of the training text its end is, where ``valid`` is empty.
        column: The name of the text in JSONL and tables.
    """

    valid_share: Share = 0.05
    column: str = "text"

    column_names: ClassVar[tuple[str, ...]] = ("column",)


@dataclass(frozen=True, kw_only=True, slots=True)
class TextData(RunningTextData):
    """Files of running text for a language model, and the windows it is read in.

    Attributes:
        context: Tokens that a training window holds.
        overlap: Tokens of a window that evaluation has read before: each is scored once, with at
            least so many before it, but for the first of a passage.

    Raises:
        SettingError: A value is out of range, or windows overlap by as much as they hold.
    """

    context: Annotated[int, at_least(2)] = 256
    overlap: int = 0

    def __post_init__(self) -> None:
        check_fields(self)
        if not 0 <= self.overlap < self.context:
            raise SettingError(
                f"overlap must be at least 0 and below context = {self.context}; "
                f"got {self.overlap}."
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class MaskedTextData(RunningTextData):
    """Files of running text, and the words of it to predict.

    Attributes:
        context: Tokens that a window holds, begin and ends included; windows are full, whatever
            the lines in them.
        rate: The share of words, or pieces, to guess.
        masking: ``words`` masks whole words, Chinese ones too; ``pieces`` single tokens.
        next_sentence: Whether the model is also asked if the second half of a window follows the
            first; in half of them it comes from elsewhere.
    """

    context: Annotated[int, at_least(8)] = 128
    rate: Annotated[float, check_positive, check_fraction] = 0.15
    masking: Literal["words", "pieces"] = "words"
    next_sentence: bool = False
