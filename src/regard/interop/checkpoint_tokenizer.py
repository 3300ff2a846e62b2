"""The tokenizer that a checkpoint was trained with, as a folder of Hugging Face's holds it."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from regard.errors import DataError, SettingError
from regard.text import Piece

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


class CheckpointTokenizer:
    """Text to the ids that a checkpoint knows, and back.

    WordPiece (BERT), byte-level BPE (RoBERTa, GPT-2, BART) and sentencepiece (Marian), by
    transformers. Ids are the checkpoint's own, and so are those that begin and end a text: unlike
    those of ``regard.text`` they are not 0 to 3.

    Args:
        tokenizer: Of transformers; ``load`` makes one.

    Example:
        >>> from tokenizers import Tokenizer, models, pre_tokenizers
        >>> from transformers import PreTrainedTokenizerFast
        >>> words = Tokenizer(models.WordLevel({"[UNK]": 0, "the": 1, "cat": 2}, unk_token="[UNK]"))
        >>> words.pre_tokenizer = pre_tokenizers.Whitespace()
        >>> tokenizer = CheckpointTokenizer(PreTrainedTokenizerFast(tokenizer_object=words))
        >>> tokenizer.encode("the cat sat"), tokenizer.vocab_size, tokenizer.pad_id
        ([1, 2, 0], 3, None)
        >>> [(piece.text, piece.start, piece.end) for piece in tokenizer.pieces("the cat")]
        [('the', 0, 3), ('cat', 4, 7)]
    """

    def __init__(self, tokenizer: "PreTrainedTokenizerBase") -> None:
        self._tokenizer = tokenizer

    @classmethod
    def load(cls, folder: str | Path) -> "CheckpointTokenizer":
        """The tokenizer in a folder; nothing is downloaded, and no code in it is run.

        Raises:
            DataError: There is none, or transformers cannot read it.
            SettingError: transformers is not installed.
        """
        try:
            from transformers import AutoTokenizer
        except ImportError as error:
            raise SettingError(
                "transformers must be installed to read a checkpoint's tokenizer; got none. "
                "Install it: pip install 'regard[interop]'."
            ) from error
        if not Path(folder).is_dir():
            raise DataError(f"{folder} must be a folder with a tokenizer; got none.")
        try:
            made = AutoTokenizer.from_pretrained(
                str(folder), local_files_only=True, trust_remote_code=False
            )
        except Exception as error:  # of all kinds: its tokenizers raise what they like
            said = " ".join(str(error).split())[:200]
            raise DataError(
                f"{folder} must hold a tokenizer that transformers can load; "
                f"got {type(error).__name__}: {said}"
            ) from error
        return cls(made)

    @property
    def vocab_size(self) -> int:
        """How many ids there are, added ones included."""
        return len(self._tokenizer)

    @property
    def pad_id(self) -> int | None:
        """Fills a batch up; None if nothing does, as in GPT-2."""
        return self._special("pad")

    @property
    def mask_id(self) -> int | None:
        """Says that a word is masked."""
        return self._special("mask")

    @property
    def bos_id(self) -> int | None:
        """Begins a text: [CLS], <s>."""
        return self._special("bos") if self._special("cls") is None else self._special("cls")

    @property
    def eos_id(self) -> int | None:
        """Ends a text: [SEP], </s>."""
        return self._special("sep") if self._special("eos") is None else self._special("eos")

    def encode(self, text: str, second: str | None = None) -> list[int]:
        """The ids of a text, or of two side by side, with what begins and ends them."""
        ids: list[int] = self._tokenizer(text, second)["input_ids"]
        return ids

    def segments(self, text: str, second: str) -> list[int]:
        """Segment ids of a pair, 0 or 1; all 0 where a model has none."""
        found = self._tokenizer(text, second)
        segments: list[int] = found.get("token_type_ids", [0] * len(found["input_ids"]))
        return segments

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids, without what begins and ends it."""
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=True))

    def pieces(self, text: str) -> list[Piece]:
        """The pieces of a text and their places in it; none of what begins and ends it.

        Raises:
            SettingError: The tokenizer does not tell places, as Marian's does not.
        """
        if not self._tokenizer.is_fast:
            raise SettingError(
                "tokenizer must tell the places of its pieces; got "
                f"{type(self._tokenizer).__name__}, which does not."
            )
        found = self._tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        pairs = zip(found["input_ids"], found["offset_mapping"], strict=True)
        return [Piece(text[start:end].strip(), i, start, end) for i, (start, end) in pairs]

    def save(self, folder: str | Path) -> None:
        """Write it beside a checkpoint."""
        self._tokenizer.save_pretrained(str(folder))

    def _special(self, name: str) -> int | None:
        found = None
        with suppress(AttributeError):
            found = getattr(self._tokenizer, f"{name}_token_id")
        return found
