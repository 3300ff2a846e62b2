"""Settings of labelled texts, without torch."""

from dataclasses import dataclass

from regard.fields import Count, Natural, Share, check_fields
from regard.tasks.recipe import check_different_columns
from regard.tasks.word_parts import WordPartsName
from regard.text.records import OnBadLine
from regard.text.tables import Column


@dataclass(frozen=True, kw_only=True, slots=True)
class ClassificationData:
    """Where the labelled texts are.

    Raises:
        SettingError: A value is none of the choices or out of range, or two columns are one.

    Example:
        >>> from regard.tasks import recipe_from_table
        >>> table = {"task": "classification", "data": {"train": "goods.tsv", "aspect": 3}}
        >>> recipe_from_table(table).data.max_length
        256
        >>> ClassificationData(text=2)
        Traceback (most recent call last):
        regard.errors.SettingError: text, label and aspect must be different columns; got 2, 2
        and 0.

    Attributes:
        train: TSV, CSV or JSONL files, or tables of Parquet or Arrow.
        valid: The same, for validation; empty takes a few examples from the training text.
        test: The same, for ``evaluate``; or ``held out`` of the training text.
        text: The text's column in a table: its number from 1, or its name in the header. A name is
            its key in JSONL, Parquet and Arrow, too, which is else "text".
        label: The label's column, likewise; the key is else "label".
        aspect: The column of what of the text is asked about, such as the kind of goods a review is
            of, likewise; the key is else "aspect". 0: there is none.
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
    text: Column = 1
    label: Column = 2
    aspect: Natural | str = 0
    parts: WordPartsName = "ngrams"
    drop_words: Share = 0.0
    max_length: Count = 256
    on_bad_line: OnBadLine = "error"

    def __post_init__(self) -> None:
        check_fields(self)
        check_different_columns(text=self.text, label=self.label, aspect=self.aspect)
