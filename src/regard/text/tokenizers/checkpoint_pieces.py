"""The tokenizer of a checkpoint that others trained, on our reserved ids.

WordPiece and byte-level BPE as a folder of Hugging Face's holds them in ``tokenizer.json``. Its
begin, end, padding and unknown token take the ids that they have in every tokenizer here, 0 to
3, and its other tokens follow in their order: no task needs to know. Whoever takes over the
checkpoint's table of embeddings puts its rows into the same order: ``CheckpointPieces.theirs``.
"""

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from regard.checks import as_path
from regard.config import JsonValue, parse_json, read_file
from regard.errors import DataError, RunError, SettingError, excerpt
from regard.files import write_file
from regard.text.files import TABLE_FILE, parse_saved, read_plain, write_plain
from regard.text.normalization import normalize
from regard.text.tokenizers.pieces import (
    BOS_ID,
    EOS_ID,
    PAD_ID,
    RESERVED,
    UNK_ID,
    Piece,
    Span,
    Tokenizer,
    checked_ids,
)

if TYPE_CHECKING:
    from tokenizers import Tokenizer as Library

_PIECES_FILE, _SETTINGS_FILE = "pieces.json", "tokenizer_config.json"
# Names of the reserved tokens in a folder's settings, and their usual spellings without these.
_ROLES = {
    PAD_ID: (("pad",), ("[PAD]", "<pad>")),
    UNK_ID: (("unk",), ("[UNK]", "<unk>")),
    BOS_ID: (("cls", "bos"), ("[CLS]", "<s>", "<|endoftext|>")),
    EOS_ID: (("sep", "eos"), ("[SEP]", "</s>", "<|endoftext|>")),
}
_LAST_ID = 2**24  # far beyond the largest vocabularies
_MASK = (("mask",), ("[MASK]", "<mask>"))


class CheckpointPieces(Tokenizer):
    """A checkpoint's tokenizer; ``theirs`` holds the checkpoint's id of each of ours."""

    def __init__(self, written: str, theirs: Sequence[int]) -> None:
        self.written, self.theirs = written, tuple(theirs)
        self._cut = _library(written)
        ours = {their: our for our, their in enumerate(self.theirs) if our >= len(RESERVED)}
        for our in (PAD_ID, UNK_ID, BOS_ID, EOS_ID):  # the end last: it stands for missing ones
            ours[self.theirs[our]] = our
        self.ours: Mapping[int, int] = ours

    @property
    def vocab_size(self) -> int:
        return len(self.theirs)

    @cached_property
    def names(self) -> list[str]:
        theirs = self.theirs[len(RESERVED) :]
        return [*RESERVED, *(self._cut.id_to_token(their) or f"<{their}>" for their in theirs)]

    def encode(self, text: str) -> list[int]:
        encoding = self._cut.encode(normalize(text), add_special_tokens=False)
        return [self.ours[their] for their in encoding.ids]

    def encode_all(self, texts: Sequence[str], *, seed: int | None = None) -> list[list[int]]:
        plain = [normalize(text) for text in texts]
        every = self._cut.encode_batch(plain, add_special_tokens=False)
        return [[self.ours[their] for their in encoding.ids] for encoding in every]

    def decode(self, ids: Sequence[int]) -> str:
        pieces = checked_ids(ids, self.vocab_size)
        text: str = self._cut.decode([self.theirs[i] for i in pieces if i >= len(RESERVED)])
        return text

    def decode_with_spans(self, ids: Sequence[int]) -> tuple[str, list[Span]]:
        text, ends = self.decode(ids), [len(self.decode(ids[:end])) for end in range(len(ids) + 1)]
        ends = [min(end, len(text)) for end in ends]
        spans = zip(ends[:-1], map(max, ends[:-1], ends[1:]), strict=True)
        return text, [_trimmed(text, *span) if span[0] < span[1] else span for span in spans]

    def pieces(self, text: str) -> list[Piece]:
        plain = normalize(text)
        encoding = self._cut.encode(plain, add_special_tokens=False)
        spans = [_trimmed(plain, *offsets) for offsets in encoding.offsets]
        return [
            Piece(plain[start:end].strip() or "␣", self.ours[their], start, end)
            for their, (start, end) in zip(encoding.ids, spans, strict=True)
        ]

    def save(self, folder: str | Path) -> None:
        folder = as_path("folder", folder)
        digest = hashlib.sha256(self.written.encode()).hexdigest()
        write_plain(folder, {"type": "checkpoint", "theirs": list(self.theirs), "sha256": digest})
        write_file(folder / _PIECES_FILE, self.written.encode())


class _CheckpointFile(TypedDict):
    """Contents of ``tokenizer.json``."""

    theirs: list[int]
    sha256: str


def load_checkpoint_pieces(folder: Path, table: dict[str, JsonValue]) -> CheckpointPieces:
    """Load the files of ``save``."""
    saved = parse_saved(table, _CheckpointFile, folder / TABLE_FILE)
    theirs, path = saved["theirs"], folder / _PIECES_FILE
    content = read_plain(path, digest=saved["sha256"])
    parse_json(content)  # which bounds how deep it is
    pieces = CheckpointPieces(content.decode("utf-8"), theirs)
    every = set(pieces._cut.get_vocab(with_added_tokens=True).values())
    if missing := sorted(every - pieces.ours.keys()):
        raise RunError(
            f"{folder / TABLE_FILE} must hold an id for each piece of {path}; got none for "
            f"{missing[0]}. It is damaged."
        )
    return pieces


def is_saved_pieces(folder: Path) -> bool:
    """Whether ``save`` wrote the tokenizer in a folder; else it is as others write theirs."""
    return (folder / _PIECES_FILE).is_file()


def borrow_pieces(folder: Path) -> CheckpointPieces:
    """Take the tokenizer from a Hugging Face folder, without download or code."""
    path = folder / TABLE_FILE
    if not path.is_file():
        raise DataError(
            f"{folder} must hold the checkpoint's tokenizer in {TABLE_FILE}; got none. Write it "
            f"there: transformers.AutoTokenizer.from_pretrained({str(folder)!r})"
            f".save_pretrained({str(folder)!r})."
        )
    written = _read(path)
    library, settings = _library(written, path), folder / _SETTINGS_FILE
    config = _settings(settings)
    reserved = [_reserved(library, config, *_ROLES[our]) for our in range(len(RESERVED))]
    end = reserved[EOS_ID]
    if end is None:
        raise DataError(f"{path} must have a token that ends a text, such as [SEP]; got none.")
    specials = [end if their is None else their for their in reserved]
    last = max(library.get_vocab(with_added_tokens=True).values())
    if last > _LAST_ID:
        raise DataError(f"{path} must have ids up to {_LAST_ID:,}; got {last:,}.")
    remaining = [their for their in range(last + 1) if their not in specials]
    return CheckpointPieces(written, [*specials, *remaining])


def mask_of(folder: Path) -> int | None:
    """The checkpoint's own id of the mask; None without one."""
    settings = folder / _SETTINGS_FILE
    config = _settings(settings)
    return _reserved(_library(_read(folder / TABLE_FILE)), config, *_MASK)


def _reserved(
    library: "Library", config: dict[str, JsonValue], roles: Sequence[str], usual: Sequence[str]
) -> int | None:
    """The checkpoint's id of a reserved token: as its settings say, or by its usual name."""
    named = [config.get(f"{role}_token") for role in roles]
    names = [token.get("content") if isinstance(token, dict) else token for token in named]
    ids = [library.token_to_id(name) for name in (*names, *usual) if isinstance(name, str)]
    return next((i for i in ids if i is not None), None)


def _trimmed(text: str, start: int, end: int) -> Span:
    """A stretch without the space before it, unless it is nothing else."""
    if start == end:  # some libraries leave a space out even then
        start, end = (start, end + 1) if text[start : end + 1].isspace() else (start - 1, end)
        start = max(0, start)
    inside = text[start:end]
    return (end - len(inside.lstrip()), end) if inside.strip() else (start, end)


def _settings(path: Path) -> dict[str, JsonValue]:
    """Read the folder's file of settings, if there is one."""
    if not path.is_file():
        return {}
    try:
        table = parse_json(_read(path).encode())
    except ValueError as error:
        raise DataError(f"{path} must hold JSON; {error}.") from error
    if not isinstance(table, dict):
        raise DataError(f"{path} must hold a table; got {excerpt(table)}.")
    return table


def _read(path: Path) -> str:
    try:
        return read_file(path).decode("utf-8")
    except (OSError, ValueError) as error:
        raise DataError(f"{path} must be a readable file of UTF-8; got: {error}.") from error


def _library(written: str, path: Path | None = None) -> "Library":
    try:
        from tokenizers import Tokenizer as Library
    except ImportError as error:
        raise SettingError(
            "tokenizers must be installed to cut text as a checkpoint does; got none. "
            "Install it: pip install 'regard[interop]'."
        ) from error
    try:
        library = Library.from_str(written)
    except BaseException as error:  # of all kinds: the library raises plain ones, and its panics
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        reason = " ".join(str(error).split())[:200]
        raise DataError(
            f"{path or _PIECES_FILE} must hold a tokenizer that tokenizers can read; got: {reason}."
        ) from error
    library.no_truncation()
    library.no_padding()
    library.encode_special_tokens = True  # special tokens in a text are text
    return library
