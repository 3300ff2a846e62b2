"""Subword tokenizers, BPE and unigram, by sentencepiece; every text comes back exactly.

Characters outside the vocabulary are spelled in bytes. Two things sentencepiece would lose are kept
here: U+2581, its own sign for a space, is always spelled in bytes; and a space is too, where the
corpus had none and so the sign is not in the vocabulary.
"""

import hashlib
import io
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from random import Random
from typing import Literal, TypedDict

import sentencepiece

from regard.checks import as_path, check_choice
from regard.config import JsonValue
from regard.errors import RunError, SettingError
from regard.fields import Weight
from regard.files import write_file
from regard.text.files import TABLE_FILE, parse_saved, read_plain, write_plain
from regard.text.normalization import normalize, opens_with_word
from regard.text.tokenizers.pieces import (
    BOS_ID,
    EOS_ID,
    PAD_ID,
    UNK_ID,
    UNKNOWN_TEXT,
    Piece,
    Span,
    Tokenizer,
    checked_ids,
    display_text,
    join,
)

Kind = Literal["bpe", "unigram"]

_MARKER = "\u2581"  # how sentencepiece writes a space
_MODEL_FILE = "tokenizer.model"
_DEFAULT_VOCAB_SIZE = 8000
# A word, which is cut into pieces by itself: no piece has a space after its first character.
_WORD = re.compile(f"{_MARKER}?[^{_MARKER}]+|{_MARKER}")
_LONGEST_LINE = 1 << 24  # bytes; sentencepiece drops longer ones, by default those above 4192
# Cost of a character outside the vocabulary, below the rarest piece, as in sentencepiece.
_UNKNOWN_COST = 10.0
# Cuts a word into pieces: (word, random numbers) → pieces.
Segmenter = Callable[[str, Random], list[str]]


class SentencePieceTokenizer(Tokenizer):
    """A trained BPE or unigram model; ``noise`` is BPE's dropout or unigram's exponent, 0 none."""

    def __init__(self, model: bytes, *, kind: Kind, noise: float = 0.0):
        """Load a serialised model; RuntimeError if it is none."""
        check_choice("kind", kind, Kind)
        self._model = model
        self.kind = kind
        self._noise = noise
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        ids = range(self._processor.get_piece_size())
        self._byte_values = {
            i: int(self._processor.id_to_piece(i)[3:5], 16)
            for i in ids
            if self._processor.is_byte(i)
        }
        self._byte_ids = {value: i for i, value in self._byte_values.items()}
        self._surfaces = [self._surface(i) for i in ids]
        self.marks_words = self._processor.piece_to_id(_MARKER) != UNK_ID
        self._spelled = re.compile(f"({_MARKER})" if self.marks_words else f"([{_MARKER} ])")

    @property
    def vocab_size(self) -> int:
        return len(self._surfaces)

    @property
    def scores(self) -> dict[str, float]:
        """Each piece that text is cut into, as it reads, and its score."""
        score = self._processor.get_score
        return {self._surfaces[i]: score(i) for i in self._numbers.values()}

    @property
    def is_sampling(self) -> bool:
        """Whether a seed changes the ids of ``encode_all``."""
        return self._noise > 0

    @property
    def names(self) -> list[str]:
        names: list[str] = self._processor.id_to_piece(list(range(self.vocab_size)))
        return names

    def encode_all(self, texts: Sequence[str], *, seed: int | None = None) -> list[list[int]]:
        """The ids of many texts; a seed draws other segmentations, for training."""
        marked = [normalize(text) for text in texts]
        if self.marks_words:
            marked = [f" {text}" if opens_with_word(text) else text for text in marked]
        odd = [i for i, text in enumerate(marked) if self._spelled.search(text)]
        if seed is None or not self.is_sampling:
            encoded: list[list[int]] = self._processor.encode(marked, num_threads=1)
        else:
            encoded = self._drawn(marked, Random(seed))
        for i in odd:
            encoded[i] = self._encode_odd(marked[i])
        return encoded

    def decode_with_spans(self, ids: Sequence[int]) -> tuple[str, list[Span]]:
        return join(checked_ids(ids, self.vocab_size), self._surfaces, self._byte_values)

    def pieces(self, text: str) -> list[Piece]:
        """The pieces of ``normalize(text)``; a byte shows as ``<0xE2>``."""
        ids = self.encode(text)
        return [
            Piece(self._text_of(i), i, *span)
            for i, span in zip(ids, self.decode_with_spans(ids)[1], strict=True)
        ]

    def save(self, folder: str | Path) -> None:
        folder = as_path("folder", folder)
        folder.mkdir(parents=True, exist_ok=True)
        write_file(folder / _MODEL_FILE, self._model)
        digest = hashlib.sha256(self._model).hexdigest()
        write_plain(folder, {"type": self.kind, "noise": self._noise, "model_sha256": digest})

    def _drawn(self, texts: Sequence[str], rng: Random) -> list[list[int]]:
        numbers, cut = self._numbers, self._segmenter
        encoded = []
        for text in texts:
            ids: list[int] = []
            for word in _WORD.findall(text.replace(" ", _MARKER)):
                for piece in cut(word, rng):
                    number = numbers.get(piece)
                    if number is None:
                        ids.extend(self._byte_ids[byte] for byte in piece.encode())
                    else:
                        ids.append(number)
            encoded.append(ids)
        return encoded

    @cached_property
    def _numbers(self) -> dict[str, int]:
        """The pieces that text can be cut into, and their ids."""
        model = self._processor
        reserved = (model.is_control, model.is_unknown, model.is_byte)
        ids = (i for i in range(self.vocab_size) if not any(test(i) for test in reserved))
        return {model.id_to_piece(i): i for i in ids}

    @cached_property
    def _segmenter(self) -> Segmenter:
        scores = {piece: self._processor.get_score(i) for piece, i in self._numbers.items()}
        if self.kind == "bpe":
            return bpe_dropout(scores, self._noise)
        return unigram_sampling(scores, self._noise)

    def _encode_odd(self, text: str) -> list[int]:
        ids: list[int] = []
        for part in self._spelled.split(text):
            if self._spelled.fullmatch(part):
                ids.extend(self._byte_ids[byte] for byte in part.encode())
            else:
                ids.extend(self._processor.encode(part))
        return ids

    def _surface(self, i: int) -> str:
        if i == UNK_ID:
            return UNKNOWN_TEXT
        if self._processor.is_control(i) or self._processor.is_byte(i):
            return ""
        surface: str = self._processor.id_to_piece(i).replace(_MARKER, " ")
        return surface

    def _text_of(self, i: int) -> str:
        if i in self._byte_values:
            return f"<0x{self._byte_values[i]:02X}>"
        return display_text(self._surfaces[i])


def train_sentencepiece(
    lines: Iterable[str],
    *,
    kind: Kind,
    vocab_size: int | None,
    may_shrink: bool = False,
    character_coverage: float = 1.0,
    noise: float = 0.0,
) -> SentencePieceTokenizer:
    """Train a subword tokenizer; of 8000 ids, or as many as the text allows, if no size is set."""
    check_choice("kind", kind, Kind)
    texts = [normalize(line).replace(_MARKER, "") for line in lines]
    texts = [f" {text}" if opens_with_word(text) else text for text in texts]
    if not any(texts):
        raise SettingError("The text to train a tokenizer on must not be empty; got no words.")
    size = _DEFAULT_VOCAB_SIZE if vocab_size is None else vocab_size
    try:
        model = _train(texts, kind, size, character_coverage)
    except _WrongSizeError as bound:
        if vocab_size is not None and not (may_shrink and bound.is_largest):
            raise SettingError(bound.sentence(size)) from None
        model = _train(texts, kind, bound.size, character_coverage)
    return SentencePieceTokenizer(model, kind=kind, noise=noise)


class _Subwords(TypedDict):
    """Contents of ``tokenizer.json``."""

    type: Kind
    noise: Weight
    model_sha256: str


def load_sentencepiece(folder: Path, table: dict[str, JsonValue]) -> SentencePieceTokenizer:
    """Load the files of ``save``."""
    saved = parse_saved(table, _Subwords, folder / TABLE_FILE)
    model = read_plain(folder / _MODEL_FILE, digest=saved["model_sha256"])
    try:
        tokenizer = SentencePieceTokenizer(model, kind=saved["type"], noise=saved["noise"])
        ours = tokenizer._processor  # reserved ids, bytes and pieces are as in the models we train
        reserved = [ours.pad_id(), ours.unk_id(), ours.bos_id(), ours.eos_id()]
        if reserved != [PAD_ID, UNK_ID, BOS_ID, EOS_ID] or len(tokenizer._byte_ids) != 256:
            raise ValueError("ids")
    except (RuntimeError, ValueError, LookupError) as error:
        raise RunError(
            f"{folder / _MODEL_FILE} must be a model of sentencepiece as regard trains it; it is "
            "not. It is damaged."
        ) from error
    return tokenizer


class _WrongSizeError(Exception):
    """The size asked for is out of bounds; ``size`` is the nearest that is possible."""

    def __init__(self, size: int, *, is_largest: bool):
        super().__init__(size)
        self.size = size
        self.is_largest = is_largest

    def sentence(self, vocab_size: int) -> str:
        if self.is_largest:
            return (
                f"vocab_size must be at most {self.size}; got {vocab_size}. The corpus allows no "
                f"larger vocabulary: set vocab_size = {self.size} or less, or train on more text."
            )
        return (
            f"vocab_size must be at least {self.size}; got {vocab_size}. The corpus has that many "
            f"characters, bytes and reserved ids: raise vocab_size, or lower character_coverage."
        )


def _train(texts: list[str], kind: str, vocab_size: int, coverage: float) -> bytes:
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(texts),
            model_writer=model,
            model_type=kind,
            vocab_size=vocab_size,
            character_coverage=coverage,
            normalization_rule_name="identity",
            add_dummy_prefix=False,
            remove_extra_whitespaces=False,
            byte_fallback=True,
            pad_id=PAD_ID,
            unk_id=UNK_ID,
            bos_id=BOS_ID,
            eos_id=EOS_ID,
            max_sentence_length=_LONGEST_LINE,
            # Fixed, so that sums of probabilities do not depend on the machine.
            num_threads=2,
            minloglevel=2,
        )
    except RuntimeError as error:
        raise _wrong_size(error) from error
    return model.getvalue()


def _wrong_size(error: RuntimeError) -> Exception:
    if match := re.search(r"too high \(\d+\).*<= (\d+)", str(error)):
        return _WrongSizeError(int(match[1]), is_largest=True)
    if match := re.search(r"smaller than required_chars\. \d+ vs (\d+)", str(error)):
        return _WrongSizeError(int(match[1]), is_largest=False)
    return error


# Sentencepiece draws, too, but by seeds of its threads, which differ from process to process: a
# training that is continued would not end as one that never stopped.


def bpe_dropout(scores: Mapping[str, float], rate: float) -> Segmenter:
    """BPE that leaves out merges: Provilkov et al. (2020), https://arxiv.org/abs/1910.13267."""

    def cut(word: str, rng: Random) -> list[str]:
        pieces = list(word)
        while len(pieces) > 1:
            best, index = -math.inf, -1
            for i in range(len(pieces) - 1):
                score = scores.get(pieces[i] + pieces[i + 1])
                if score is not None and score > best and (not rate or rng.random() >= rate):
                    best, index = score, i
            if index < 0:
                break
            pieces[index : index + 2] = [pieces[index] + pieces[index + 1]]
        return pieces

    return cut


def unigram_sampling(scores: Mapping[str, float], alpha: float) -> Segmenter:
    """Draw from all segmentations by p**alpha: Kudo (2018), section 3.3."""
    longest = max(map(len, scores), default=1)
    unknown = min(scores.values(), default=0.0) - _UNKNOWN_COST

    @lru_cache(maxsize=1 << 16)  # words come again
    def ways_to(word: str) -> list[tuple[list[int], list[float]]]:
        """The starts of the pieces at each end in the word, and their shares."""
        ways: list[tuple[list[int], list[float]]] = [([], [])]
        sums = [0.0]
        for end in range(1, len(word) + 1):
            starts, weights = [], []
            for start in range(max(0, end - longest), end):
                score = scores.get(word[start:end], unknown if start == end - 1 else None)
                if score is not None:
                    starts.append(start)
                    weights.append(sums[start] + alpha * score)
            most = max(weights)
            total = most + math.log(sum(math.exp(weight - most) for weight in weights))
            ways.append((starts, [math.exp(weight - total) for weight in weights]))
            sums.append(total)
        return ways

    def cut(word: str, rng: Random) -> list[str]:
        ways = ways_to(word)
        pieces: list[str] = []
        end = len(word)
        while end:
            starts, shares = ways[end]
            start = starts[0] if len(starts) == 1 else rng.choices(starts, shares)[0]
            pieces.append(word[start:end])
            end = start
        return pieces[::-1]

    return cut
