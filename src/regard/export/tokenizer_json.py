"""Our tokenizers as the library ``tokenizers`` reads them: the same ids for the same text.

Pieces stand in ``tokenizer.json`` as they read, with real spaces: the sign that sentencepiece marks
a space with, U+2581, is then a character like others, and spelled in bytes, as it is here.
"""

import json
from collections.abc import Iterator, Sequence

from regard.config import JsonValue
from regard.text import UNK_ID, Tokenizer
from regard.text.normalization import OPENS_WITH_WORD, WHITE_SPACE
from regard.text.tokenizers.checkpoint_pieces import CheckpointPieces
from regard.text.tokenizers.pieces import RESERVED
from regard.text.tokenizers.sentencepieces import SentencePieceTokenizer
from regard.text.tokenizers.words import ListTokenizer

Table = dict[str, JsonValue]
Ids = tuple[int, ...]

_MARKER = "\u2581"  # how sentencepiece writes a space
# Below every sum of scores: a text that spells the name of a byte, or of a reserved token, is not
# cut into that.
_NEVER = -1e6
# Characters of those names.
_SPELLED = "".join(sorted({*"0123456789ABCDEFx", *"".join(RESERVED)}))


def tokenizer_json(
    tokenizer: object, *, before: Ids, after: Ids, mask: str | None = None
) -> str | None:
    """Contents of ``tokenizer.json``; None where the library ``tokenizers`` has none like it."""
    model = _model(tokenizer)
    if model is None:
        return None
    if mask is not None:  # unlike others that are added, it is read where a text says it
        assert isinstance(tokenizer, Tokenizer)
        if mask in tokenizer.names:
            return None
        read = {**_added(tokenizer.vocab_size, mask), "special": False}
        added = model["added_tokens"]
        assert isinstance(added, list)
        model["added_tokens"] = [*added, read]
    table: Table = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        **model,
        "post_processor": _framed(before, after),
    }
    return _text(table)


def has_ties(tokenizer: object) -> bool:
    """Whether texts may be cut in two ways that are as good, of which the library takes any."""
    return isinstance(tokenizer, SentencePieceTokenizer) and tokenizer.kind == "unigram"


def tokenizer_config(*, begin: int, longest: int, tells_segments: bool = False) -> str:
    """Contents of ``tokenizer_config.json``; ``begin`` is the reserved id that begins a text."""
    pad, unk, _, end = RESERVED
    table: Table = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "pad_token": pad,
        "unk_token": unk,
        "bos_token": RESERVED[begin],
        "eos_token": end,
        "model_max_length": longest,
        "model_input_names": ["input_ids", *["token_type_ids"] * tells_segments, "attention_mask"],
        "padding_side": "right",
        "clean_up_tokenization_spaces": False,
        # "</s>" in a text is text; so would be a mask, if it were named here.
        "split_special_tokens": True,
    }
    return _text(table)


def _model(tokenizer: object) -> Table | None:
    """How text is normed, cut, looked up and put together again."""
    if not isinstance(tokenizer, Tokenizer):
        return None
    is_marked = isinstance(tokenizer, SentencePieceTokenizer)
    names = [name.replace(_MARKER, " ") if is_marked else name for name in tokenizer.names]
    if len(set(names)) < len(names):  # a piece that reads like a reserved name
        return None
    if isinstance(tokenizer, CheckpointPieces):
        return _borrowed(tokenizer)
    if isinstance(tokenizer, SentencePieceTokenizer):
        return {"added_tokens": _reserved(), **_subwords(tokenizer, names)}
    if isinstance(tokenizer, ListTokenizer) and tokenizer.kind == "characters":
        return {"added_tokens": _reserved(), **_characters(names)}
    return None


def _characters(names: list[str]) -> Table:
    """Every character by itself."""
    return {
        "normalizer": {"type": "Sequence", "normalizers": _normed()},
        "pre_tokenizer": _split(r"[\s\S]", "Isolated"),
        "model": {"type": "WordLevel", "vocab": _numbered(names), "unk_token": RESERVED[UNK_ID]},
        "decoder": {"type": "Fuse"},
    }


def _borrowed(tokenizer: CheckpointPieces) -> Table | None:
    """Tokenizer of the checkpoint with our ids and our reserved tokens."""
    table = json.loads(tokenizer.written)
    model, ours, names = table["model"], tokenizer.ours, tokenizer.names
    if model["type"] not in ("BPE", "WordLevel", "WordPiece"):
        return None
    added = {ours[token["id"]]: token for token in table["added_tokens"]}
    reserved = {*range(len(RESERVED)), *added, *(ours[their] for their in model["vocab"].values())}
    model["vocab"] = {name: number for number, name in enumerate(names) if number in reserved}
    if model.get("unk_token") is not None:
        model["unk_token"] = RESERVED[UNK_ID]
    remaining = [
        {**token, "id": number, "content": names[number]}
        for number, token in sorted(added.items())
        if number >= len(RESERVED)
    ]
    normed = [*_normed(), *([table["normalizer"]] if table.get("normalizer") else [])]
    return {
        "added_tokens": [*_reserved(), *remaining],
        "normalizer": {"type": "Sequence", "normalizers": normed},
        "pre_tokenizer": table.get("pre_tokenizer"),
        "model": model,
        "decoder": table.get("decoder"),
    }


def _reserved() -> list[JsonValue]:
    return [_added(number, name) for number, name in enumerate(RESERVED)]


def _subwords(tokenizer: SentencePieceTokenizer, names: list[str]) -> Table:
    """Pieces of words, and bytes where there is none."""
    normed = _normed()
    if tokenizer.marks_words:
        normed.append(_replace(OPENS_WITH_WORD, " "))
    cuts = [_split(r"(?= )", "MergedWithNext")]
    shared: Table = {"byte_fallback": True, "fuse_unk": True}
    if tokenizer.kind == "bpe":
        model: Table = {
            "type": "BPE",
            "unk_token": RESERVED[UNK_ID],
            "vocab": _numbered(names),
            "merges": [list(pair) for pair in _merges(tokenizer)],
            "ignore_merges": False,
            **shared,
        }
    else:
        scores = tokenizer.scores
        # No piece holds a character that is none itself, so a text may be cut beside it: else a
        # name with one would have a better score than its characters.
        if unknown := "".join(char for char in _SPELLED if char not in scores):
            cuts.append(_split(f"[{unknown}]", "Isolated"))
        scored: list[JsonValue] = [[name, scores.get(name, _NEVER)] for name in names]
        model = {"type": "Unigram", "unk_id": UNK_ID, "vocab": scored, **shared}
    return {
        "normalizer": {"type": "Sequence", "normalizers": normed},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": cuts},
        "model": model,
        "decoder": {
            "type": "Sequence",
            "decoders": [
                {"type": "ByteFallback"},
                {"type": "Fuse"},
                {"type": "Strip", "content": " ", "start": 1, "stop": 0},
            ],
        },
    }


def _merges(tokenizer: SentencePieceTokenizer) -> Iterator[tuple[str, str]]:
    """Pairs of pieces that make a third, as sentencepiece merges them: the best score first."""
    scores = tokenizer.scores
    for piece in sorted(scores, key=lambda candidate: -scores[candidate]):
        for end in range(1, len(piece)):
            if piece[:end] in scores and piece[end:] in scores:
                yield piece[:end], piece[end:]


def _normed() -> list[JsonValue]:
    """Normalizer equal to ``normalize``."""
    strip: JsonValue = {"type": "Strip", "strip_left": True, "strip_right": True}
    return [_replace(f"{WHITE_SPACE}+", " "), strip]


def _replace(pattern: str, content: str) -> JsonValue:
    return {"type": "Replace", "pattern": {"Regex": pattern}, "content": content}


def _split(pattern: str, behavior: str) -> JsonValue:
    regex: JsonValue = {"Regex": pattern}
    return {"type": "Split", "pattern": regex, "behavior": behavior, "invert": False}


def _added(number: int, name: str) -> Table:
    off = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": number, "content": name, **off, "special": True}


def _framed(before: Ids, after: Ids) -> JsonValue:
    """Template of special tokens around a text, and around a pair."""
    first, second = (_sign("Sequence", name, number) for number, name in enumerate("AB"))
    signs: Table = {
        RESERVED[number]: {"id": RESERVED[number], "ids": [number], "tokens": [RESERVED[number]]}
        for number in sorted({*before, *after})
    }
    framed: list[JsonValue] = [*_signs(before, 0), first, *_signs(after, 0)]
    return {
        "type": "TemplateProcessing",
        "single": framed,
        "pair": [*framed, second, *_signs(after, 1)],
        "special_tokens": signs,
    }


def _signs(numbers: Ids, segment: int) -> list[JsonValue]:
    return [_sign("SpecialToken", RESERVED[number], segment) for number in numbers]


def _sign(kind: str, name: str, segment: int) -> JsonValue:
    return {kind: {"id": name, "type_id": segment}}


def _numbered(names: Sequence[str]) -> dict[str, JsonValue]:
    return {name: number for number, name in enumerate(names)}


def _text(table: Table) -> str:
    return json.dumps(table, ensure_ascii=False, indent=1) + "\n"
