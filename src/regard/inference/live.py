"""A page with the model inside, which answers typed text without a server.

The page's weights are int8 by row, as ``--precision int8`` rounds them, with the states in
floating point. ``rounded`` is the same model in Python.
"""

import base64
import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import singledispatch
from typing import Any, TypeVar, cast

import torch
from jaxtyping import Float, Int8
from torch import Tensor, nn

from regard.config import JsonValue
from regard.errors import SettingError
from regard.inference.predictor import Predictor
from regard.inference.search.searcher import FORBIDDEN
from regard.layers import BilinearAttention, LocationAttention, TokenEmbedding
from regard.models import (
    BagReader,
    Classifier,
    Decoder,
    Encoder,
    RecurrentReader,
    RnnSeq2Seq,
    Seq2Seq,
    Transformer,
)
from regard.models.configs.generation import DecoderConfig, RnnSeq2SeqConfig, TransformerConfig
from regard.models.configs.readers import BagReaderConfig, EncoderConfig
from regard.tasks import DecodingConfig, SequenceTask
from regard.tasks.labels.classification import ODDS, POOLING, Classification
from regard.tasks.running_text.language_modelling import SURPRISE, LanguageModelling
from regard.text import BOS_ID, EOS_ID, Tokenizer, TokenizerConfig
from regard.text.tokenizers.sentencepieces import SentencePieceTokenizer
from regard.text.tokenizers.words import ListTokenizer
from regard.viewer import page

MOST_WEIGHTS = 4_000_000
MOST_BYTES = 6_000_000  # of the page
MOST_TOKENS = 24  # that a language model writes
Config = TransformerConfig | RnnSeq2SeqConfig | DecoderConfig | EncoderConfig | BagReaderConfig
ModelT = TypeVar("ModelT", bound=nn.Module)

_KINDS: dict[type[nn.Module], str] = {
    Classifier: "classifier",
    Decoder: "decoder",
    RnnSeq2Seq: "recurrent",
    Transformer: "transformer",
}
_READERS = {BagReader, RecurrentReader, Encoder, Decoder, RnnSeq2Seq, Transformer}
_ATTENDING = ("query", "tanh_query", "structured", "state")  # poolings
# Settings of a search that the page does not have.
_RULES = ("coverage_penalty", "repetition_penalty", "no_repeat_ngram", "prefix", "avoid")

# Layers whose matrices are rounded by row; vectors and tables of positions stay as they are.
_ROUNDED = (nn.Linear, nn.RNNBase, TokenEmbedding, BilinearAttention, LocationAttention)
_SPACE_MARK = "\u2581"


def live_page(
    predictor: Predictor, texts: Sequence[str] = (), *, beam_size: int | None = None
) -> str:
    """Make one HTML file that holds a model and runs it: one types, and sees.

    Args:
        predictor: A run of a Transformer or of a recurrent encoder-decoder, which translates
            typed text; of a decoder, which continues it; or of a classifier.
        texts: Texts to begin with; the page answers the first at once.
        beam_size: Hypotheses of a translator kept at each step; None takes the recipe's.

    Raises:
        SettingError: The model is of another kind, too large, or has an option that the page does
            not compute.
    """
    model = pack_model(predictor, texts, beam_size=beam_size)
    made = page(predictor.use.document([], title="regard"), model=model)
    if (size := len(made.encode())) > MOST_BYTES:
        raise SettingError(
            f"page must take at most {MOST_BYTES:,} bytes; got {size:,}. Train with a smaller "
            "model.model_dim, model.hidden_dim or tokenizer.vocab_size."
        )
    return made


def pack_model(
    predictor: Predictor, texts: Sequence[str] = (), *, beam_size: int | None = None
) -> dict[str, JsonValue]:
    """The model of a run as plain data: its settings, weights in base64, tokenizers."""
    check_live(predictor)
    model, decoding = predictor.model, predictor.recipe.decoding
    if decoding is not None and beam_size is not None:
        decoding = decoding.changed(method="beam", beam_size=beam_size, n_best=1)
    tensors, weights = _packed_tensors(model)
    modules = model.named_modules(remove_duplicate=False)  # tied tables go by several names
    packed: dict[str, object] = {
        "kind": _KINDS[type(model)],
        "config": asdict(_config_of(model)),
        "scales": {
            name: table.scale for name, table in modules if isinstance(table, TokenEmbedding)
        },
        "tensors": tensors,
        "weights": base64.b64encode(weights).decode(),
        "attentions": _attentions(model),
        "texts": list(texts),
        **_packed_task(predictor.task, model, decoding),
    }
    return cast(dict[str, JsonValue], packed)


# The search of a page.
_SEARCH: dict[str, object] = {"begin": BOS_ID, "end": EOS_ID, "forbidden": list(FORBIDDEN)}


@singledispatch
def _packed_task(task: object, model: Any, decoding: DecodingConfig | None) -> Mapping[str, object]:
    """Tokenizers, limits and the search of a page; of a classifier its labels."""
    raise NotImplementedError(type(task))


@_packed_task.register(Classification)
def _packed_classification(
    task: Classification, model: Classifier, decoding: object
) -> Mapping[str, object]:
    return {
        "source": _packed_tokenizer(cast(Tokenizer, task.tokenizer)),
        "target": None,
        "search": _SEARCH,
        "longest_source": task.data.max_length,
        "begins": task.recipe.settings(TokenizerConfig).begins,
        "reader": task.recipe.model_type,
        "pooling": model.config.pooling,
        "labels": task.labels,
        "measure": POOLING.measure,
        "measure_without": ODDS,
    }


@_packed_task.register(LanguageModelling)
def _packed_language_modelling(
    task: LanguageModelling, model: object, decoding: DecodingConfig
) -> Mapping[str, object]:
    return {
        "source": _packed_tokenizer(task.tokenizer),
        "target": None,
        "search": {**_SEARCH, "begin": EOS_ID},
        "longest_source": task.data.context - 1,  # a line end stands before
        "one_line": decoding.one_line,
        "most_tokens": MOST_TOKENS,
        "measure": SURPRISE,
    }


@_packed_task.register(SequenceTask)
def _packed_sequences(
    task: SequenceTask, model: Seq2Seq[Any], decoding: DecodingConfig
) -> Mapping[str, object]:
    source, target = task.tokenizer.source, task.tokenizer.target
    width = decoding.beam_size if decoding.method == "beam" else 1
    return {
        "source": _packed_tokenizer(source),
        "target": None if target is source else _packed_tokenizer(target),
        "search": {
            **_SEARCH,
            "beam_size": width,
            "length_penalty": decoding.length_penalty,
            "min_length": decoding.min_length,
        },
        "max_ratio": decoding.max_ratio,
        "longest_source": task.data.max_length,
        "longest_output": None if model.max_length is None else model.max_length - 1,
        "source_end": task.data.source_end,
    }


def rounded(model: ModelT) -> ModelT:
    """A copy of a model with the weights that its page has: in int8 by row, given back."""
    model = copy.deepcopy(model)
    with torch.no_grad():
        for names, tensor, is_rounded in _tensors_of(model):
            if is_rounded:
                values, scales = _round(tensor)
                parameter = model.get_parameter(names[0])
                parameter.copy_(values.float() * scales[:, None])
    return model


def check_live(predictor: Predictor) -> None:
    """Raise SettingError unless the run's model can live in a page."""
    recipe, model = predictor.recipe, predictor.model
    kind = _packed_task.dispatch(type(predictor.task))
    if (
        kind is _packed_task.dispatch(object)
        or type(model) not in _KINDS
        or _reader_of(model) not in _READERS
    ):
        raise SettingError(
            "run must be of a translator (transformer, rnn_seq2seq), a language model (decoder) or "
            "a classifier (transformer, recurrent, bag) to live in a page; got "
            f"{recipe.task} by {recipe.model_type}. Leave out --live to look into it."
        )
    count = sum(parameter.numel() for parameter in model.parameters())
    if count > MOST_WEIGHTS:
        raise SettingError(
            f"model must have at most {MOST_WEIGHTS:,} weights to live in a page; got {count:,}. "
            "Train a smaller one, or leave out --live to look into it."
        )
    for name, value, is_supported in _options(predictor):
        if not is_supported:
            raise SettingError(
                f"{name} must be left out for a page that answers by itself; got {value!r}. "
                "Leave out --live to look into it."
            )


def _options(predictor: Predictor) -> Iterator[tuple[str, object, bool]]:
    """Settings that the page may not know, and whether it knows their values."""
    model = predictor.model
    config = _config_of(model)
    if isinstance(model, Classifier):
        parts = getattr(config, "parts", "none")
        yield "model.parts", parts, parts == "none"
        yield "head.pooling", model.config.pooling, model.config.pooling != "aspect"
        yield "head.ngram_scores", model.config.ngram_scores, not model.config.ngram_scores
    copies = getattr(config, "copy", False)
    yield "model.copy", copies, not copies
    score = getattr(config, "score", "dot")
    yield "model.score", score, score in ("scaled_dot", "dot", "additive")
    attention = getattr(config, "attention", "additive")
    yield "model.attention", attention, attention != "mixture"
    kind = predictor.recipe.settings(TokenizerConfig).type
    yield "tokenizer.type", kind, kind != "checkpoint"
    decoding, plain = predictor.use.evaluated_search({}), DecodingConfig()
    if decoding is None:
        return  # the page continues a text greedily, whatever the recipe does
    yield "decoding.method", decoding.method, decoding.method != "sample"
    for name in _RULES:
        value = getattr(decoding, name)
        yield f"decoding.{name}", value, value == getattr(plain, name)


def _attentions(model: nn.Module) -> list[dict[str, object]]:
    """Kinds of attention with their layers and heads, as a page offers them to be muted."""
    config = _config_of(model)
    layers: dict[str, int] = {}
    heads = getattr(config, "num_heads", 1)
    if isinstance(config, RnnSeq2SeqConfig):
        layers = {"cross": int(config.attention != "none")}
    elif isinstance(config, DecoderConfig):
        layers = {"decoder": config.num_layers}
    elif isinstance(config, EncoderConfig):
        layers = {"encoder": config.num_layers}
    elif isinstance(config, TransformerConfig):
        layers = {"cross": config.num_decoder_layers, "encoder": config.num_encoder_layers}
        layers["decoder"] = config.num_decoder_layers
    offered = [
        {"kind": kind, "layer": layer, "heads": heads}
        for kind, count in layers.items()
        for layer in range(count)
    ]
    if isinstance(model, Classifier) and model.config.pooling in _ATTENDING:
        hops = model.config.num_hops if model.config.pooling == "structured" else 1
        offered.insert(0, {"kind": "cross", "layer": 0, "heads": hops})
    return cast(list[dict[str, object]], offered)


def _reader_of(model: nn.Module) -> type[nn.Module]:
    """The class of a classifier's reader, or of a model that is none."""
    return type(model.reader) if isinstance(model, Classifier) else type(model)


def _config_of(model: nn.Module) -> Config:
    """The settings of a model; of a classifier, those of its reader."""
    return cast(Config, (model.reader if isinstance(model, Classifier) else model).config)


def _tensors_of(model: nn.Module) -> Iterator[tuple[list[str], Tensor, bool]]:
    """Each tensor once with all its names, and whether its rows are rounded."""
    names: dict[int, list[str]] = {}
    tensors = model.state_dict()
    is_mixing = isinstance(model, Transformer) and model.config.values == "embeddings"
    for name, tensor in tensors.items():
        names.setdefault(tensor.data_ptr(), []).append(name)
    for same in names.values():
        tensor = tensors[same[0]]
        module = model.get_submodule(same[0].rpartition(".")[0])
        is_rounded = tensor.dim() == 2 and isinstance(module, _ROUNDED)
        # As by ``--precision int8``.
        stays = is_mixing and same[0].endswith("cross_attend.key_value.weight")
        yield same, tensor, is_rounded and not stays


def _round(weight: Float[Tensor, "O I"]) -> tuple[Int8[Tensor, "O I"], Float[Tensor, " O"]]:
    """Values and scales, by the rule of ``regard.runtime``."""
    scales = weight.abs().amax(dim=1).clamp_min(torch.finfo(torch.float32).tiny) / 127
    return (weight / scales[:, None]).round().to(torch.int8), scales


def _packed_tensors(model: nn.Module) -> tuple[list[dict[str, object]], bytes]:
    """Offsets of the tensors in the bytes, little-endian and at multiples of four."""
    entries: list[dict[str, object]] = []
    weights = bytearray()

    def add(data: bytes) -> int:
        at = len(weights)
        weights.extend(data + bytes(-len(data) % 4))
        return at

    for names, tensor, is_rounded in _tensors_of(model):
        entry: dict[str, object] = {"names": names, "shape": list(tensor.shape), "scales": None}
        if is_rounded:
            values, scales = _round(tensor.detach().cpu().float())
            entry["scales"] = add(scales.numpy().astype("<f4").tobytes())
            entry["at"] = add(values.contiguous().numpy().tobytes())
        else:
            entry["at"] = add(tensor.detach().cpu().float().numpy().astype("<f4").tobytes())
        entries.append(entry)
    return entries, bytes(weights)


def _packed_tokenizer(tokenizer: Tokenizer) -> Mapping[str, object]:
    """Pieces in the order of their ids; of subwords also scores, NaN for those without text."""
    if isinstance(tokenizer, ListTokenizer):
        return {"type": tokenizer.kind, "pieces": tokenizer.names[4:]}
    assert isinstance(tokenizer, SentencePieceTokenizer), "checked before"
    names, scores = tokenizer.names, tokenizer.scores
    of_pieces = [scores.get(name.replace(_SPACE_MARK, " "), float("nan")) for name in names]
    first_byte = names.index("<0x00>")
    of_pieces[: first_byte + 256] = [float("nan")] * (first_byte + 256)
    packed = torch.tensor(of_pieces).numpy().astype("<f4").tobytes()
    return {
        "type": tokenizer.kind,
        "pieces": names,
        "scores": base64.b64encode(packed).decode(),
        "first_byte": first_byte,
    }
