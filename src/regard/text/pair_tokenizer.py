"""The two tokenizers of a pair of languages, which may be one."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from regard.text.files import read_table, write_plain
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

    def save(self, folder: Path) -> None:
        """Write both into ``folder``: ``shared/``, or ``source/`` and ``target/``."""
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
    """Tokenizers for both sides, learned together if ``settings.shared``.

    Example:
        >>> settings = TokenizerConfig(type="words")
        >>> pair = train_pair_tokenizer(["我爱中国。"], ["I love China."], settings)
        >>> pair.is_shared, pair.target.decode(pair.target.encode("I love 中国."))
        (True, 'I love 中国.')
    """
    if settings.shared:
        tokenizer = train_tokenizer([*sources, *targets], settings)
        return PairTokenizer(tokenizer, tokenizer)
    return PairTokenizer(train_tokenizer(sources, settings), train_tokenizer(targets, settings))


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
    if table.get("shared", False):
        tokenizer = load_tokenizer(folder / "shared")
        return PairTokenizer(tokenizer, tokenizer)
    return PairTokenizer(load_tokenizer(folder / "source"), load_tokenizer(folder / "target"))
