"""The two tokenizers of a pair of languages, which may be one."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from regard.errors import RunError
from regard.text.files import read_table, write_plain
from regard.text.normalization import normalize
from regard.text.placeholders import MARKUP, PlaceholderTokenizer, hold, put_back
from regard.text.tokenizer import Tokenizer, TokenizerConfig, load_tokenizer, train_tokenizer

_PAIR_FILE = "pair.json"


@dataclass(frozen=True, slots=True)
class PairTokenizer:
    """A tokenizer for each side.

    Attributes:
        source: Encodes what is read.
        target: Encodes and decodes what is written; the same object if the vocabulary is shared.

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

    @property
    def markup(self) -> str:
        """Markup that becomes placeholders: a name in ``MARKUP``; empty for none."""
        source = self.source
        return source.markup if isinstance(source, PlaceholderTokenizer) else ""

    def is_alike(self, source: str, target: str) -> bool:
        """Whether both hold the same markup, so that the one can be learned from the other."""
        if not self.markup:
            return True
        one, other = (hold(normalize(text), self.markup).spans for text in (source, target))
        return one == other

    def restored(self, output: str, source: str) -> str:
        """An output with the markup of its source in the place of signs: see ``put_back``."""
        if not self.markup:
            return output
        return put_back(output, hold(normalize(source), self.markup))

    def save(self, folder: Path) -> None:
        """Write both into ``folder``: ``shared/``, or ``source/`` and ``target/``."""
        folder.mkdir(parents=True, exist_ok=True)
        if self.is_shared:
            self.source.save(folder / "shared")
        else:
            self.source.save(folder / "source")
            self.target.save(folder / "target")
        markup = {"placeholders": self.markup} if self.markup else {}
        write_plain(folder, {"shared": self.is_shared, **markup}, _PAIR_FILE)


def train_pair_tokenizer(
    sources: Iterable[str], targets: Iterable[str], settings: TokenizerConfig
) -> PairTokenizer:
    """Tokenizers for both sides, learned together if ``settings.shared``.

    Example:
        >>> settings = TokenizerConfig(type="words")
        >>> pair = train_pair_tokenizer(["我爱中国。"], ["I love China."], settings)
        >>> pair.is_shared, pair.target.decode(pair.target.encode("I love 中国."))
        (True, 'I love 中国.')
    """
    markup, settings = settings.placeholders, replace(settings, placeholders="none")
    if markup != "none":
        sources, targets = (
            [hold(normalize(text), markup).text for text in texts] for texts in (sources, targets)
        )
    if settings.shared:
        tokenizer = train_tokenizer([*sources, *targets], settings)
        return _pair(tokenizer, tokenizer, markup)
    made = train_tokenizer(sources, settings), train_tokenizer(targets, settings)
    return _pair(*made, markup)


def load_pair_tokenizer(folder: Path) -> PairTokenizer:
    """Load the files of ``PairTokenizer.save``.

    Raises:
        RunError: A file is missing, damaged or of a newer format; the message names it.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp()) / "tokenizer"
        >>> pair = train_pair_tokenizer(["我爱"], ["I love"], TokenizerConfig(type="words"))
        >>> pair.save(folder)
        >>> load_pair_tokenizer(folder).source.encode("我爱") == pair.source.encode("我爱")
        True
    """
    table = read_table(folder, _PAIR_FILE)
    markup = str(table.get("placeholders", "none"))
    if markup not in ("none", *MARKUP):
        raise RunError(
            f"{folder / _PAIR_FILE} holds markup of a kind that is not known here: {markup!r}. A "
            "newer version of regard wrote it, or it is damaged."
        )
    if table.get("shared", False):
        tokenizer = load_tokenizer(folder / "shared")
        return _pair(tokenizer, tokenizer, markup)
    return _pair(load_tokenizer(folder / "source"), load_tokenizer(folder / "target"), markup)


def _pair(source: Tokenizer, target: Tokenizer, markup: str) -> PairTokenizer:
    """Both, reading markup as signs where some is named; one where they are one."""
    if markup == "none":
        return PairTokenizer(source, target)
    held = PlaceholderTokenizer(source, markup)
    return PairTokenizer(held, held if source is target else PlaceholderTokenizer(target, markup))
