"""Where tagged sentences are, and how their words are read."""

from dataclasses import dataclass

from regard.errors import SettingError
from regard.fields import Count, Share, check_fields
from regard.tasks.recipe import Recipe
from regard.tasks.word_parts import WordPartsName, reads_parts
from regard.text.records import OnBadLine
from regard.text.tables import Column


@dataclass(frozen=True, kw_only=True, slots=True)
class TaggingData:
    """Where the tagged sentences are.

    Words have an id each; or, in a recipe with ``[tokenizer]``, such as one that begins with a
    masked language model, they are cut into its pieces, the first of which carries the tag.

    Attributes:
        train: Files: .conllu, or columns parted by tabs (.conll, .txt, .tsv) or as in .csv, or
            .jsonl, or tables of Parquet or Arrow.
        valid: The same, for validation; empty takes a few sentences from the training text.
        test: The same, for ``evaluate``; or ``held out`` of the training text.
        word: The word's column, its number from 1 or its name in a header; not of .conllu. A name
            is the key of the words in .jsonl and tables, too, which is else "tokens".
        tag: The tag's column, likewise; the key is else "tags".
        lowercase: Whether words are looked up in lower case; their characters are read as they are.
        min_count: How often a word must occur to get an id.
        parts: What ``model.parts`` reads of each word: its ``characters``, ``ngrams`` of them, or
            its pairs with its ``neighbours``, which suit text whose words are single characters.
        parts_min_count: How often a part must occur to get an id.
        drop_words: In training, the probability that a word which occurs once there is read as
            unknown, so that the model learns what to do about those.
        drop_parts: In training, the probability that a part is read as unknown.
        join_entities: In training, whether sentences are read a second time without the marks
            between two entities of one type, so that names in a row are told apart.
        max_length: Longest sentence, in words, or in their pieces, that is read at once; a longer
            one is read in parts.
        on_bad_line: Whether a sentence that cannot be read is an ``error``, or is left out.

    Raises:
        SettingError: A value is of another type, none of the choices, or out of range, or
            ``word`` and ``tag`` are one column.

    Example:
        >>> from regard.tasks import recipe_from_table
        >>> table = {"train": "names.conllu", "tag": "upos", "lowercase": True}
        >>> recipe_from_table({"task": "tagging", "data": table}).data.tag
        'upos'
        >>> TaggingData(word=2)
        Traceback (most recent call last):
        regard.errors.SettingError: word and tag must be different columns; got 2 for both.
    """

    train: tuple[str, ...] | str = ()
    valid: tuple[str, ...] | str = ()
    test: tuple[str, ...] | str = ()
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
    on_bad_line: OnBadLine = "error"

    def __post_init__(self) -> None:
        check_fields(self)
        if self.word == self.tag:
            raise SettingError(f"word and tag must be different columns; got {self.word} for both.")


def check_whole(recipe: Recipe) -> None:
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
