"""Chooses tokenizer, model and batch for sentence pairs without a recipe."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from regard.checks import counted
from regard.config import JsonValue, assign, build
from regard.errors import DataError, SettingError
from regard.models import TransformerConfig
from regard.tasks import DataConfig, Recipe, recipe_from_table
from regard.tasks.sequences.translation import TranslationTask
from regard.text import Pair, TokenizerConfig
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
    {"type": "rnn_seq2seq", "embed_dim": 128, "hidden_dim": 128, "attention_dim": 64},
    speed=8000,
    least_pairs=0,
    least_passes=0,
    learning_rate=0.003,
)
# The largest first; the last fits always.
_TRANSFORMERS = (
    _Size(_transformer(512, 2048, 8, 6), 700, 500_000, 5, 7e-4),
    _Size(_transformer(256, 1024, 4, 4), 4000, 50_000, 20, 1e-3),
    _Size(_transformer(128, 256, 4, 4), 12_000, 0, 0, 2e-3),
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


@dataclass(frozen=True, slots=True)
class _Text:
    """Statistics of the pairs, from a sample of them."""

    pairs: int
    source: _Side
    target: _Side

    @classmethod
    def of(cls, pairs: Sequence[Pair], count: int) -> "_Text":
        sample = pairs[:: max(1, len(pairs) // _SAMPLE)]
        source, target = ([getattr(pair, side) for pair in sample] for side in ("source", "target"))
        return cls(count, _statistics(source), _statistics(target))

    @property
    def tokens(self) -> float:
        return self.pairs * (self.target.words + 1)

    @property
    def richer(self) -> _Side:
        return max(self.source, self.target, key=lambda side: side.distinct)


def choose_recipe(settings: Mapping[str, JsonValue]) -> ChosenRecipe:
    """A recipe for sentence pairs, chosen from the data; the same text gives the same recipe."""
    sections = assign({}, settings)
    default = recipe_from_table(
        {name: sections[name] for name in ("data", "training") if name in sections}
    )
    text = _Text.of(*_read(default))
    minutes = cast("float | None", default.training.get("minutes"))
    # Minutes in which the smallest Transformer reads the text 40 times.
    worth = round(40 * text.tokens / _TRANSFORMERS[-1].speed / 60)
    time = minutes or float(min(120, max(5, worth)))
    model = sections.get("model")
    model_type = model.get("type") if isinstance(model, Mapping) else None
    size = _size(text, time, model_type)
    chosen = _choose(text, time, size)
    for section, table in chosen.items():
        over = sections.get(section, {})
        if not isinstance(over, Mapping):
            raise SettingError(f"{section} must be a table: [{section}]; got {over!r}.")
        if over.get("type", table.get("type")) == table.get("type"):
            sections[section] = {**table, **over}
    if model_type is None:
        _check_model(
            cast("Mapping[str, JsonValue]", sections["model"]), _why_size(size, text.pairs)
        )
    recipe = recipe_from_table(sections)
    reasons = _reasons(recipe, text, size, is_timed=minutes is not None)
    types = {"tokenizer": recipe.settings(TokenizerConfig).type, "model": recipe.model_type}
    for section, name in types.items():
        if name != chosen[section]["type"]:
            reasons[section] = f"{name}, as you set, with its usual settings"
    return ChosenRecipe(recipe, tuple(f"{name}: {reason}" for name, reason in reasons.items()))


def _check_model(table: Mapping[str, JsonValue], why: str) -> None:
    """Raise SettingError for settings that do not fit the chosen model, with the reason for it."""
    try:
        recipe_from_table({"model": table})
    except SettingError as error:
        raise SettingError(
            f"{error} {table['type']} was chosen: {why}. model.type sets another."
        ) from None


def _read(recipe: Recipe) -> tuple[Sequence[Pair], int]:
    """The pairs, or of a text that is trained from disk a sample; and how many there are."""
    config = build(TrainingConfig, {**recipe.training, "updates": 1}, where="training")
    if is_on_disk(recipe, config.corpus):
        text = StoredText.of(recipe, cache=config.cache)
        return cast("Sequence[Pair]", text.sample()), text.num_lines
    pairs = TranslationTask.peek(recipe)
    if not pairs:
        raise DataError("data.train must name the training text; got nothing.")
    return pairs, len(pairs)


def _choose(text: _Text, time: float, size: _Size) -> dict[str, dict[str, JsonValue]]:
    """Sections of a recipe for the text."""
    source, target = text.source, text.target
    tokenizer = _tokenizer(text)
    # Small text: more, smaller batches, so that there are some thirty updates in a pass.
    batch = min(4096, max(512, 2 ** round(max(1.0, text.tokens / 30)).bit_length() // 2))
    longest = min(512, max(32, -(-max(source.longest, target.longest) * 2 // 32) * 32))
    table: dict[str, dict[str, JsonValue]] = {
        "data": {
            "max_length": longest,
            **({"source_language": source.language} if source.language else {}),
            **({"target_language": target.language} if target.language else {}),
        },
        "tokenizer": tokenizer,
        "model": {**size.table, "dropout": 0.3 if text.pairs < 200_000 else 0.1},
        "training": {
            "minutes": float(time),
            "batch_tokens": batch,
            "learning_rate": size.learning_rate,
            "warmup": 400,
            "schedule": "linear",
            "clip_norm": 1.0,
            "patience": 10,
        },
    }
    if tokenizer.get("shared") is False and size.table["type"] == "transformer":
        table["model"]["tie_embeddings"] = "target"
    return table


def _reasons(recipe: Recipe, text: _Text, size: _Size, *, is_timed: bool) -> dict[str, str]:
    """The settings of the recipe, the user's among them, and the reasons for those chosen."""
    config = build(TrainingConfig, recipe.training, where="training")
    limits = []
    if config.minutes is not None:
        passes = max(1, round(config.minutes * 60 * size.speed / text.tokens))
        limits = [
            counted(config.minutes, "minutes")
            + ("" if is_timed else " (--minutes sets another time)"),
            f"some {passes:,} passes at most",
        ]
    batch = config.batch_tokens
    batches = f"batches of {batch:,} tokens" if batch != "auto" else "the largest batches that fit"
    return {
        "text": f"{counted(text.pairs, 'pairs')}, {_named(text.source)} to {_named(text.target)}, "
        f"{_lengths(text.source, text.target)} on average",
        "tokenizer": _why_tokenizer(recipe.settings(TokenizerConfig), text),
        "model": f"{_describe_model(recipe.model)}; {_why_size(size, text.pairs)}",
        "training": ", ".join([*limits, batches]),
        "sentences": f"up to {recipe.settings(DataConfig).max_length} tokens; longer ones are left "
        "out",
    }


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


def _tokenizer(text: _Text) -> dict[str, JsonValue]:
    source, target = text.source, text.target
    if text.richer.distinct <= _CLOSED_VOCABULARY:
        return {"type": "words", "shared": False}
    size = next(size for most, size in _SUBWORDS if most is None or text.pairs < most)
    characters = max(source.characters, target.characters)
    table: dict[str, JsonValue] = {
        "type": "bpe",
        "vocab_size": max(size, 2 * characters + _SUBWORD_RESERVED),
        "shared": source.is_unspaced == target.is_unspaced,
    }
    if characters > _MANY_CHARACTERS:
        table["character_coverage"] = 0.9995
    return table


def _why_tokenizer(tokenizer: TokenizerConfig, text: _Text) -> str:
    richer = text.richer
    if tokenizer.type == "words":
        is_unspaced = text.source.is_unspaced or text.target.is_unspaced
        return (
            f"words{'; characters where none are spaced' * is_unspaced}: "
            f"there are no more than {richer.distinct:,} different ones on a side"
        )
    size = "" if tokenizer.vocab_size is None else f"{tokenizer.vocab_size:,} "
    why = "one for both sides" if tokenizer.shared else "one a side"
    if not tokenizer.shared and text.source.is_unspaced != text.target.is_unspaced:
        why += ", as only one writes spaces"
    return f"{size}subwords, {why}, for {richer.distinct:,} different {richer.unit}"


def _size(text: _Text, minutes: float, model_type: JsonValue) -> _Size:
    """The model for the text, or the size of the Transformer that the user asks for."""
    if text.pairs < _FEW_PAIRS and model_type != "transformer":
        return _RECURRENT
    return next(
        size
        for size in _TRANSFORMERS
        if text.pairs >= size.least_pairs
        and minutes * 60 * size.speed >= size.least_passes * text.tokens
    )


def _describe_model(model: object) -> str:
    if isinstance(model, TransformerConfig):
        layers = f"{model.num_encoder_layers} + {model.num_decoder_layers} layers"
        return f"Transformer, {model.model_dim} wide, {layers}"
    return f"recurrent model with attention, {getattr(model, 'hidden_dim', None)} wide"


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
