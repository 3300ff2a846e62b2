"""Chooses tokenizer, model and batch for sentence pairs without a recipe."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from regard.config import JsonValue, assign, build
from regard.errors import DataError, SettingError
from regard.tasks import Recipe, recipe_from_table
from regard.tasks.sequences.translation import TranslationTask
from regard.text import Pair
from regard.text.languages import guess_language, length_unit, side_script
from regard.text.normalization import has_unspaced, split_words
from regard.training.corpora.stored_text import StoredText
from regard.training.corpora.training_text import is_on_disk
from regard.training.settings import TrainingConfig

# Up to so many different words on either side, a vocabulary holds them all.
_CLOSED_VOCABULARY = 5000
# Subwords of a vocabulary, by the most pairs it is for.
_SUBWORDS = ((20_000, 4000), (100_000, 8000), (1_000_000, 16_000), (None, 32_000))
# Below so many pairs a recurrent model with attention learns more than a Transformer.
_FEW_PAIRS = 3000
# From so many different characters on, the rarest are spelled in bytes.
_MANY_CHARACTERS = 1500
# Bytes and reserved ids that a subword vocabulary begins with.
_SUBWORD_RESERVED = 260
# Sentences looked at to know the text.
_SAMPLE = 50_000


@dataclass(frozen=True, slots=True)
class _Size:
    """A model to choose, and when: ``speed`` is in target tokens a second on two cores, roughly."""

    name: str
    table: dict[str, JsonValue]
    speed: int
    least_pairs: int
    least_passes: int
    learning_rate: float


def _transformer(width: int, ffn: int, heads: int, layers: int) -> dict[str, JsonValue]:
    return {
        "type": "transformer",
        "model_dim": width,
        "ffn_dim": ffn,
        "num_heads": heads,
        "num_encoder_layers": layers,
        "num_decoder_layers": layers,
        "norm": "pre",
    }


_RECURRENT = _Size(
    "recurrent model with attention, 128 wide",
    {"type": "rnn_seq2seq", "embed_dim": 128, "hidden_dim": 128, "attention_dim": 64},
    speed=8000,
    least_pairs=0,
    least_passes=0,
    learning_rate=0.003,
)
# The largest first; the last fits always.
_TRANSFORMERS = (
    _Size(
        "Transformer, 512 wide, 6 + 6 layers", _transformer(512, 2048, 8, 6), 700, 500_000, 5, 7e-4
    ),
    _Size(
        "Transformer, 256 wide, 4 + 4 layers", _transformer(256, 1024, 4, 4), 4000, 50_000, 20, 1e-3
    ),
    _Size("Transformer, 128 wide, 4 + 4 layers", _transformer(128, 256, 4, 4), 12_000, 0, 0, 2e-3),
)


@dataclass(frozen=True, slots=True)
class ChosenRecipe:
    """A recipe made from data, and the reasons for its settings in lines."""

    recipe: Recipe
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Side:
    """Statistics of one side of the text; ``unit`` names its words, perhaps characters."""

    language: str | None
    words: float
    unit: str
    longest: int
    distinct: int
    characters: int
    is_unspaced: bool


def choose_recipe(settings: Mapping[str, JsonValue]) -> ChosenRecipe:
    """A recipe for sentence pairs, chosen from the data; the same text gives the same recipe."""
    sections = assign({}, settings)
    pairs, count = _read(
        recipe_from_table(
            {name: sections[name] for name in ("data", "training") if name in sections}
        )
    )
    minutes = settings.get("training.minutes")
    table, reasons = _choose(pairs, count, cast("float | None", minutes))
    for section, chosen in table.items():
        over = sections.get(section, {})
        if not isinstance(over, Mapping):
            raise SettingError(f"{section} must be a table: [{section}]; got {over!r}.")
        if over.get("type", chosen.get("type")) == chosen.get("type"):
            sections[section] = {**chosen, **over}
        else:
            reasons[section] = f"{over['type']}, as you set, with its usual settings"
    lines = tuple(f"{name}: {reason}" for name, reason in reasons.items())
    return ChosenRecipe(recipe_from_table(sections), lines)


def _read(recipe: Recipe) -> tuple[Sequence[Pair], int]:
    """The pairs, or of a text that is trained from disk a sample; and how many there are."""
    config = build(TrainingConfig, {**recipe.training, "updates": 1}, where="training")
    if is_on_disk(recipe, config.corpus):
        text = StoredText.of(recipe, cache=config.cache)
        return cast("Sequence[Pair]", text.sample()), text.num_lines
    pairs = TranslationTask.read(recipe, "train", merge=False)
    if not pairs:
        raise DataError("data.train must name the training text; got nothing.")
    return pairs, len(pairs)


def _choose(
    pairs: Sequence[Pair], count: int, minutes: int | float | None
) -> tuple[dict[str, dict[str, JsonValue]], dict[str, str]]:
    """Recipe sections, and the reason for each."""
    step = max(1, len(pairs) // _SAMPLE)
    source = _statistics([pair.source for pair in pairs[::step]])
    target = _statistics([pair.target for pair in pairs[::step]])
    tokens = count * (target.words + 1)
    time = minutes or _worth(tokens)
    size = _size(count, tokens, time)
    tokenizer, why_tokenizer = _tokenizer(count, source, target)
    # Small text: more, smaller batches, so that there are some thirty updates in a pass.
    batch = min(4096, max(512, 2 ** round(max(1.0, tokens / 30)).bit_length() // 2))
    updates = time * 60 * size.speed / batch
    longest = min(512, max(32, -(-max(source.longest, target.longest) * 2 // 32) * 32))
    table: dict[str, dict[str, JsonValue]] = {
        "data": {
            "max_length": longest,
            **({"source_language": source.language} if source.language else {}),
            **({"target_language": target.language} if target.language else {}),
        },
        "tokenizer": tokenizer,
        "model": {**size.table, "dropout": 0.3 if count < 200_000 else 0.1},
        "training": {
            "minutes": float(time),
            "batch_tokens": batch,
            "learning_rate": size.learning_rate,
            "warmup": 400,
            "schedule": "linear",
            "clip_norm": 1.0,
            "validate_every": int(min(2000, max(50, updates / 20 // 50 * 50))),
            "patience": 10,
        },
    }
    if tokenizer.get("shared") is False and size.table["type"] == "transformer":
        table["model"]["tie_embeddings"] = "target"
    reasons = {
        "text": f"{count:,} pairs, {_named(source)} to {_named(target)}, "
        f"{_lengths(source, target)} on average",
        "tokenizer": why_tokenizer,
        "model": f"{size.name}; {_why_size(size, count)}",
        "training": f"{time:g} minutes{'' if minutes else ' (--minutes sets another time)'}, "
        f"some {max(1, round(time * 60 * size.speed / tokens)):,} passes at most, batches of "
        f"{batch:,} tokens",
        "left out": f"sentences of more than {longest} tokens",
    }
    return table, reasons


def _statistics(texts: Sequence[str]) -> _Side:
    words: Counter[str] = Counter()
    lengths = []
    for text in texts:
        tokens = [word for word in split_words(text) if word != " "]
        words.update(tokens)
        lengths.append(len(tokens))
    lengths.sort()
    return _Side(
        language=guess_language(texts),
        words=sum(lengths) / len(lengths),
        unit=length_unit(side_script(texts)),
        longest=lengths[int(0.995 * (len(lengths) - 1))],
        distinct=len(words),
        characters=len(set().union(*texts)),
        is_unspaced=sum(map(has_unspaced, texts)) > len(texts) / 2,
    )


def _tokenizer(pairs: int, source: _Side, target: _Side) -> tuple[dict[str, JsonValue], str]:
    richer = max(source, target, key=lambda side: side.distinct)
    distinct = richer.distinct
    if distinct <= _CLOSED_VOCABULARY:
        what = "words" + (
            "; characters where none are spaced" if source.is_unspaced or target.is_unspaced else ""
        )
        return (
            {"type": "words", "shared": False},
            f"{what}: there are no more than {distinct:,} different ones on a side",
        )
    size = next(size for most, size in _SUBWORDS if most is None or pairs < most)
    characters = max(source.characters, target.characters)
    is_shared = source.is_unspaced == target.is_unspaced
    size = max(size, 2 * characters + _SUBWORD_RESERVED)
    table: dict[str, JsonValue] = {"type": "bpe", "vocab_size": size, "shared": is_shared}
    if characters > _MANY_CHARACTERS:
        table["character_coverage"] = 0.9995
    why = "one for both sides" if is_shared else "one a side, as only one writes spaces"
    return table, f"{size:,} subwords, {why}, for {distinct:,} different {richer.unit}"


def _worth(tokens: float) -> float:
    """Minutes in which the smallest Transformer reads the text 40 times."""
    return float(min(120, max(5, round(40 * tokens / _TRANSFORMERS[-1].speed / 60))))


def _size(pairs: int, tokens: float, minutes: int | float) -> _Size:
    if pairs < _FEW_PAIRS:
        return _RECURRENT
    return next(
        size
        for size in _TRANSFORMERS
        if pairs >= size.least_pairs and minutes * 60 * size.speed >= size.least_passes * tokens
    )


def _why_size(size: _Size, pairs: int) -> str:
    if size is _RECURRENT:
        return f"it learns more than a Transformer from so few pairs as {pairs:,}"
    if size is _TRANSFORMERS[-1]:
        return "a larger one takes more text, or more time"
    return f"the time is enough to read the text {size.least_passes} times"


def _lengths(source: _Side, target: _Side) -> str:
    if source.unit == target.unit:
        return f"{source.words:.1f} and {target.words:.1f} {source.unit}"
    return f"{source.words:.1f} {source.unit} and {target.words:.1f} {target.unit}"


def _named(side: _Side) -> str:
    return side.language or "a language not known"
