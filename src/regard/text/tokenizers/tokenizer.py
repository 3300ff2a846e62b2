"""Settings and registry of tokenizers, and the two tokenizers of a pair of languages."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from regard.checks import as_path, check_kind
from regard.config import JsonValue
from regard.errors import DataError, RunError, SettingError, excerpt
from regard.fields import Count, Share, Weight, at_least, check_fields
from regard.progress import progress
from regard.text.files import TABLE_FILE, read_table, write_plain
from regard.text.tokenizers.checkpoint_pieces import (
    borrow_pieces,
    is_saved_pieces,
    load_checkpoint_pieces,
)
from regard.text.tokenizers.pieces import Tokenizer
from regard.text.tokenizers.sentencepieces import load_sentencepiece, train_sentencepiece
from regard.text.tokenizers.words import load_list, train_list

TokenizerType = Literal["bpe", "unigram", "words", "characters", "checkpoint"]


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenizerConfig:
    """Settings of a tokenizer, which cuts text into pieces.

    Attributes:
        type: Subwords (bpe, unigram), words, or characters; or the tokenizer of a ``checkpoint`` in
            Hugging Face's layout, whose folder ``folder`` is.
        vocab_size: Ids in all. None takes 8000 subwords, or as many as the corpus allows; or every
            word or character.
        may_shrink: Whether a text that allows no vocabulary of that size gets as many ids as it
            does allow; else that is an error.
        shared: One vocabulary for both languages, instead of one each.
        dropout: BPE only, in training only: the probability that a merge is left out, so that the
            model sees words cut in several ways. 0 always cuts the same way.
        alpha: Unigram only, in training only: segmentations are drawn with their probability to
            this power; 0.1 is usual. 0 always takes the best.
        character_coverage: BPE and unigram only: share of all characters that get ids of their own.
        min_count: Words and characters only: how often a piece must occur to get an id.
        begin: Whether a text that is read by itself has the begin before it, BERT's ``[CLS]``. None
            reads it as the pretrained model did; else only a checkpoint's pieces have it.
        folder: Where a tokenizer of that type was saved, to be taken as it is; None learns one from
            the text. A run keeps its own in ``tokenizer/text``.

    Raises:
        SettingError: A value is of another type, none of the choices, or out of range, or
            the type has no use for a setting.

    Example:
        >>> TokenizerConfig(type="words", min_count=2).begins
        False
        >>> TokenizerConfig(type="bpe", min_count=2)
        Traceback (most recent call last):
        regard.errors.SettingError: min_count must be left out unless type is characters or words;
        got type = 'bpe'.
    """

    type: TokenizerType = "bpe"
    vocab_size: Annotated[int, at_least(5)] | None = None
    may_shrink: bool = False
    shared: bool = True
    dropout: Share = 0.0
    alpha: Weight = 0.0
    character_coverage: float = 1.0
    min_count: Count = 1
    begin: bool | None = None
    folder: str | None = None

    retired: ClassVar[Mapping[str, JsonValue]] = {"placeholders": "none"}

    def __post_init__(self) -> None:
        check_fields(self)
        if not 0 < self.character_coverage <= 1:
            raise SettingError(
                f"character_coverage must be above 0 and at most 1; got {self.character_coverage}."
            )
        self._check_use("dropout", self.dropout > 0, ["bpe"])
        self._check_use("alpha", self.alpha > 0, ["unigram"])
        self._check_use("character_coverage", self.character_coverage < 1, ["bpe", "unigram"])
        self._check_use("min_count", self.min_count > 1, ["characters", "words"])

    @property
    def begins(self) -> bool:
        """Whether a text that is read by itself has the begin before it: ``begin``, settled."""
        return self.type == "checkpoint" if self.begin is None else self.begin

    def _check_use(self, name: str, is_set: bool, types: Sequence[str]) -> None:
        if is_set and self.type not in types:
            raise SettingError(
                f"{name} must be left out unless type is {' or '.join(types)}; "
                f"got type = {self.type!r}."
            )


def train_tokenizer(lines: Iterable[str], settings: TokenizerConfig) -> Tokenizer:
    """A tokenizer of the kind that ``settings`` name, learned from ``lines`` or saved before.

    Raises:
        RunError: The folder that settings name holds no tokenizer, or a damaged one.
        SettingError: There is no text, or the vocabulary does not fit the corpus; the message
            names the size that would. Or the folder's tokenizer is another than settings say.

    Example:
        >>> tokenizer = train_tokenizer(["我爱中国。"], TokenizerConfig(type="characters"))
        >>> tokenizer.encode("中国")
        [6, 7]
    """
    check_kind("settings", settings, TokenizerConfig)
    if settings.folder is not None:
        return _saved(Path(settings.folder), settings)
    train, _ = TOKENIZERS[settings.type]
    with progress("learning a tokenizer"):
        return train(_texts("lines", lines), settings)


def _texts(name: str, lines: Iterable[str]) -> Iterable[str]:
    """The lines as they are asked for; DataError at the first that is no text."""
    if isinstance(lines, str | bytes) or not isinstance(lines, Iterable):
        raise DataError(f"{name} must be a list of texts; got {excerpt(lines)}.")
    for number, line in enumerate(lines, 1):
        if not isinstance(line, str):
            raise DataError(f"{name} must be texts; got {excerpt(line)} as number {number}.")
        yield line


def load_tokenizer(folder: str | Path) -> Tokenizer:
    """The tokenizer saved in ``folder``.

    Raises:
        RunError: A file is missing, damaged or of a newer format.
    """
    folder = as_path("folder", folder)
    table = read_table(folder)
    try:
        _, load = TOKENIZERS[str(table["type"])]
        return load(folder, table)
    except (LookupError, TypeError, ValueError, RuntimeError) as error:
        if isinstance(error, RunError):
            raise
        raise RunError(
            f"{folder / TABLE_FILE} does not describe a tokenizer. It is damaged."
        ) from error


def _saved(folder: Path, settings: TokenizerConfig) -> Tokenizer:
    is_theirs = settings.type == "checkpoint" and not is_saved_pieces(folder)
    tokenizer = borrow_pieces(folder) if is_theirs else load_tokenizer(folder)
    actual = settings.type if is_theirs else read_table(folder)["type"]
    sizes = {"type": actual, "vocab_size": tokenizer.vocab_size}
    for name, actual in sizes.items():
        setting = getattr(settings, name)
        if setting not in (None, actual):
            raise SettingError(
                f"tokenizer.{name} must be {actual!r}, that of the tokenizer in {folder}; "
                f"got {setting!r}. Set it so, or leave out tokenizer.folder."
            )
    return tokenizer


def _train_subwords(lines: Iterable[str], settings: TokenizerConfig) -> Tokenizer:
    kind: Literal["bpe", "unigram"] = "bpe" if settings.type == "bpe" else "unigram"
    return train_sentencepiece(
        lines,
        kind=kind,
        vocab_size=settings.vocab_size,
        may_shrink=settings.may_shrink,
        character_coverage=settings.character_coverage,
        noise=settings.dropout if kind == "bpe" else settings.alpha,
    )


def _train_list(lines: Iterable[str], settings: TokenizerConfig) -> Tokenizer:
    return train_list(
        lines,
        kind="words" if settings.type == "words" else "characters",
        vocab_size=settings.vocab_size,
        may_shrink=settings.may_shrink,
        min_count=settings.min_count,
    )


def _borrow(lines: Iterable[str], settings: TokenizerConfig) -> Tokenizer:
    raise SettingError(
        "tokenizer.folder must name the folder of a checkpoint for type = 'checkpoint'; got none. "
        "training.pretrained sets both."
    )


_Train = Callable[[Iterable[str], TokenizerConfig], Tokenizer]
_Load = Callable[[Path, dict[str, JsonValue]], Tokenizer]

TOKENIZERS: dict[str, tuple[_Train, _Load]] = {
    "bpe": (_train_subwords, load_sentencepiece),
    "characters": (_train_list, load_list),
    "checkpoint": (_borrow, load_checkpoint_pieces),
    "unigram": (_train_subwords, load_sentencepiece),
    "words": (_train_list, load_list),
}


_PAIR_FILE = "pair.json"


@dataclass(frozen=True, slots=True)
class PairTokenizer:
    """A tokenizer for each side.

    Attributes:
        source: Encodes the source text.
        target: Encodes and decodes the target text; the same object if the vocabulary is shared.

    Example:
        >>> settings = TokenizerConfig(type="words", shared=False)
        >>> pair = train_pair_tokenizer(["我爱中国。"], ["I love China."], settings)
        >>> pair.source.vocab_size, pair.target.vocab_size, pair.is_shared
        (10, 19, False)
        >>> pair.target.decode(pair.target.encode("I love China."))
        'I love China.'
    """

    source: Tokenizer
    target: Tokenizer

    @property
    def is_shared(self) -> bool:
        """Whether both sides have the same ids, so that embeddings can be shared."""
        return self.source is self.target

    @property
    def is_sampling(self) -> bool:
        """Whether a seed changes how either side is encoded."""
        return self.source.is_sampling or self.target.is_sampling

    def save(self, folder: str | Path) -> None:
        """Write both into ``folder``: ``shared/``, or ``source/`` and ``target/``."""
        folder = as_path("folder", folder)
        folder.mkdir(parents=True, exist_ok=True)
        if self.is_shared:
            self.source.save(folder / "shared")
        else:
            self.source.save(folder / "source")
            self.target.save(folder / "target")
        write_plain(folder, {"shared": self.is_shared}, _PAIR_FILE)


def train_pair_tokenizer(
    sources: Iterable[str], targets: Iterable[str], settings: TokenizerConfig
) -> PairTokenizer:
    """Tokenizers for both sides, learned together if ``settings.shared``."""
    check_kind("settings", settings, TokenizerConfig)
    sources, targets = _texts("sources", sources), _texts("targets", targets)
    if settings.shared:
        tokenizer = train_tokenizer([*sources, *targets], settings)
        return PairTokenizer(tokenizer, tokenizer)
    return PairTokenizer(train_tokenizer(sources, settings), train_tokenizer(targets, settings))


def load_pair_tokenizer(folder: str | Path) -> PairTokenizer:
    """Load the files of ``PairTokenizer.save``.

    Raises:
        RunError: A file is missing, damaged or of a newer format; the message names it.
    """
    folder = as_path("folder", folder)
    table = read_table(folder, _PAIR_FILE)
    if table.get("shared", False):
        tokenizer = load_tokenizer(folder / "shared")
        return PairTokenizer(tokenizer, tokenizer)
    return PairTokenizer(load_tokenizer(folder / "source"), load_tokenizer(folder / "target"))
