"""Checkpoints in Hugging Face's layouts, read into our models and written from them.

A folder holds ``config.json`` and ``model.safetensors``. Nothing is unpickled, no code that comes
with a model is run, and transformers need not be installed.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from regard.choices import choose
from regard.errors import DataError, SettingError
from regard.interop.checkpoint_names import Tie, bart, bert, check_shape, gpt2
from regard.layers import LearnedPositions
from regard.models import (
    Decoder,
    DecoderConfig,
    EncoderConfig,
    MaskedLanguageModel,
    Transformer,
    TransformerConfig,
)

CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
_PICKLED = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.h5", "*.msgpack")

LayoutName = Literal["bert", "roberta", "gpt2", "bart", "marian"]
Table = Mapping[str, Any]

# Hugging Face's names of what FeedForward has.
ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
}


@dataclass(frozen=True)
class PretrainedModel:
    """A model that others trained.

    Attributes:
        model: It, in evaluation mode.
        layout: The layout it came in.
        settings: Its ``config.json``.
        absent: Our parameters that the files do not hold, such as those of a head that was not
            trained; they begin anew.
        unused: Tensors of the files that have no place here.
    """

    model: nn.Module
    layout: str
    settings: dict[str, Any]
    absent: tuple[str, ...]
    unused: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """How one family's checkpoints are made.

    Attributes:
        build: A model of the sizes that a config names.
        describe: The config of a model.
        ties: Which parameter is which tensor.
        prefix: What the names of the body begin with; a file of the body alone leaves it out.
        optional: What our names begin with that a file may lack: heads.
        copies: What names end with that only repeat other tensors, or none that is learned.
        architecture: The class of transformers that the written config names.
    """

    build: Callable[[Table], nn.Module]
    describe: Callable[[Any], dict[str, Any]]
    ties: Callable[[Any], Iterator[Tie]]
    prefix: str
    optional: tuple[str, ...]
    copies: tuple[str, ...]
    architecture: str


def load_checkpoint(folder: str | Path) -> PretrainedModel:
    """The model in a folder of Hugging Face's, as one of ours, with the same logits.

    BERT and RoBERTa become a ``MaskedLanguageModel``, GPT-2 a ``Decoder``, BART and Marian a
    ``Transformer``. Weights become float32.

    Raises:
        DataError: A file is missing or damaged, or its tensors are not of the config's sizes; or
            the weights are pickled.
        SettingError: The family, or an option of it, has no model here.
    """
    folder = Path(folder)
    settings = _read_config(folder)
    name = settings.get("model_type")
    layout = choose("model_type", str(name), LAYOUTS)
    tensors = _with_prefix(_read_weights(folder), layout.prefix)
    model = layout.build(settings)
    absent = _fill(model, layout, tensors)
    used = {name for tie in layout.ties(model) for name in tie.theirs}
    unused = sorted(
        name for name in tensors if name not in used and not name.endswith(layout.copies)
    )
    return PretrainedModel(model.eval(), str(name), settings, tuple(absent), tuple(unused))


def save_checkpoint(
    model: nn.Module,
    folder: str | Path,
    *,
    layout: LayoutName,
    settings: Table | None = None,
) -> None:
    """Write a model of ours as Hugging Face's ``from_pretrained`` reads it.

    Args:
        model: A ``MaskedLanguageModel`` for bert and roberta, a ``Decoder`` for gpt2, a
            ``Transformer`` for bart and marian.
        folder: Where to; made if it is not there.
        layout: Whose names and options.
        settings: More of ``config.json``, such as ``eos_token_id``; sizes stay the model's.

    Raises:
        SettingError: The layout is unknown, or has no place for what the model is.
    """
    made = choose("layout", layout, LAYOUTS)
    sizes = made.describe(model)
    parameters = model.state_dict()
    tensors: dict[str, Tensor] = {}
    for tie in made.ties(model):
        if tie.ours in parameters:
            tensors |= tie.give(parameters[tie.ours].detach().cpu())
    table = {
        **(settings or {}),
        **sizes,
        "model_type": layout,
        "architectures": [made.architecture],
        "tie_word_embeddings": True,
    }
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})
    text = json.dumps(table, indent=2, ensure_ascii=False) + "\n"
    (folder / CONFIG).write_text(text, encoding="utf-8")


@torch.no_grad()
def _fill(model: nn.Module, layout: Layout, tensors: dict[str, Tensor]) -> list[str]:
    """Copy a file's tensors into a model; gives our names that it has nothing for."""
    parameters = dict(model.named_parameters())
    absent = []
    for tie in layout.ties(model):
        if tie.ours not in parameters:
            continue
        if missing := [name for name in tie.theirs if name not in tensors]:
            if not tie.ours.startswith(layout.optional):
                raise DataError(
                    f"{WEIGHTS} must hold {missing[0]}; got none. Is it a whole {layout.prefix}"
                    "checkpoint?"
                )
            absent.append(tie.ours)
            continue
        found = tie.take(tensors)
        check_shape(tie, found, parameters[tie.ours])
        parameters[tie.ours].copy_(found)
    return absent


def _read_config(folder: Path) -> dict[str, Any]:
    path = folder / CONFIG
    if not path.is_file():
        raise DataError(
            f"{folder} must hold a Hugging Face checkpoint; got no {CONFIG} in it. "
            "Save one there: model.save_pretrained(folder)."
        )
    try:
        table = json.loads(path.read_text("utf-8"))
    except (ValueError, OSError) as error:
        raise DataError(f"{path} must hold JSON; got: {error}.") from error
    if not isinstance(table, dict):
        raise DataError(f"{path} must hold a table; got {type(table).__name__}.")
    return table


def _read_weights(folder: Path) -> dict[str, Tensor]:
    """All tensors of a folder, by name, from one file or from shards."""
    tensors: dict[str, Tensor] = {}
    for path in _weight_files(folder):
        try:
            tensors |= load_file(path)
        except (SafetensorError, OSError) as error:
            raise DataError(f"{path} must be a whole safetensors file; got: {error}.") from error
    # Checkpoints of BERT's own time have TensorFlow's names.
    renamed = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}
    for old, new in renamed.items():
        tensors = {name.replace(old, new): each for name, each in tensors.items()}
    return tensors


def _weight_files(folder: Path) -> list[Path]:
    if (folder / INDEX).is_file():
        try:
            names = set(json.loads((folder / INDEX).read_text("utf-8"))["weight_map"].values())
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataError(f"{folder / INDEX} must map tensors to files; it does not.") from error
        if strange := [name for name in names if Path(str(name)).name != name]:
            raise DataError(f"{folder / INDEX} must name files beside it; got {strange[0]!r}.")
        return sorted(folder / name for name in names)
    if not (folder / WEIGHTS).is_file():
        pickled = sorted(path.name for kind in _PICKLED for path in folder.glob(kind))
        if pickled:
            raise DataError(
                f"weights must be safetensors; got {pickled[0]} in {folder}, a format that may run "
                "code when it is read. Where you trust it, load it with transformers once and "
                "save it again: model.save_pretrained(folder)."
            )
        raise DataError(f"{folder} must hold {WEIGHTS}; it does not. Is the folder complete?")
    return [folder / WEIGHTS]


def _with_prefix(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The tensors, of a body alone too, under the names they have beside a head."""
    if not prefix or any(name.startswith(prefix) for name in tensors):
        return tensors
    return {prefix + name: each for name, each in tensors.items()}


def _require(settings: Table, wanted: Table) -> None:
    """Raise unless options have the only value that our models know."""
    for name, value in wanted.items():
        if settings.get(name, value) != value:
            raise SettingError(
                f"{name} must be {value!r} for a model of ours; got {settings[name]!r}. "
                "regard.watch looks into other models as they are."
            )


def _build_bert(settings: Table) -> MaskedLanguageModel:
    is_roberta = settings["model_type"] == "roberta"
    _require(
        settings,
        {
            "position_embedding_type": "absolute",
            "is_decoder": False,
            "hidden_act": "gelu",
            "tie_word_embeddings": True,
        },
    )
    pad_id = _get(settings, "pad_token_id", int)
    config = EncoderConfig(
        model_dim=_get(settings, "hidden_size", int),
        num_heads=_get(settings, "num_attention_heads", int),
        num_layers=_get(settings, "num_hidden_layers", int),
        ffn_dim=_get(settings, "intermediate_size", int),
        dropout=float(settings.get("hidden_dropout_prob", 0.1)),
        attention_dropout=float(settings.get("attention_probs_dropout_prob", 0.1)),
        norm_eps=float(settings.get("layer_norm_eps", 1e-12)),
        max_length=_get(settings, "max_position_embeddings", int)
        - (pad_id + 1 if is_roberta else 0),
        num_segments=_get(settings, "type_vocab_size", int),
    )
    vocab = _get(settings, "vocab_size", int)
    return MaskedLanguageModel(config, vocab_size=vocab, pad_id=pad_id)


def _describe_bert(model: Any, *, is_roberta: bool) -> dict[str, Any]:
    _check_kind(model, MaskedLanguageModel)
    config = model.encoder.config
    wanted = {"norm": "post", "norm_kind": "layer", "activation": "gelu", "positions": "learned"}
    _check_settings(config, wanted)
    pad_id = model.encoder.embedding.pad_id
    return {
        "vocab_size": len(model.bias),
        "hidden_size": config.model_dim,
        "num_attention_heads": config.num_heads,
        "num_hidden_layers": config.num_layers,
        "intermediate_size": config.ffn_dim,
        "hidden_dropout_prob": config.dropout,
        "attention_probs_dropout_prob": config.attention_dropout,
        "hidden_act": "gelu",
        "layer_norm_eps": config.norm_eps,
        "max_position_embeddings": config.max_length + (pad_id + 1 if is_roberta else 0),
        "type_vocab_size": config.num_segments,
        "pad_token_id": pad_id,
    }


def _build_gpt2(settings: Table) -> Decoder:
    _require(
        settings,
        {
            "scale_attn_weights": True,
            "scale_attn_by_inverse_layer_idx": False,
            "add_cross_attention": False,
            "tie_word_embeddings": True,
        },
    )
    width = _get(settings, "n_embd", int)
    act = settings.get("activation_function", "gelu_new")
    config = DecoderConfig(
        model_dim=width,
        num_heads=_get(settings, "n_head", int),
        num_layers=_get(settings, "n_layer", int),
        ffn_dim=settings.get("n_inner") or 4 * width,
        dropout=float(settings.get("resid_pdrop", 0.1)),
        attention_dropout=float(settings.get("attn_pdrop", 0.1)),
        norm_eps=float(settings.get("layer_norm_epsilon", 1e-5)),
        activation=cast(Any, choose("activation_function", act, ACTIVATIONS)),
        max_length=_get(settings, "n_positions", int),
    )
    return Decoder(config, vocab_size=_get(settings, "vocab_size", int), pad_id=None)


def _describe_gpt2(model: Any) -> dict[str, Any]:
    _check_kind(model, Decoder)
    config = model.config
    wanted = {"norm": "pre", "norm_kind": "layer", "positions": "learned", "window": None}
    _check_settings(config, {**wanted, "num_key_heads": None, "tie_embeddings": True})
    return {
        "vocab_size": len(model.embedding.weight),
        "n_embd": config.model_dim,
        "n_head": config.num_heads,
        "n_layer": config.num_layers,
        "n_inner": config.ffn_dim,
        "n_positions": config.max_length,
        "resid_pdrop": config.dropout,
        "embd_pdrop": config.dropout,
        "attn_pdrop": config.attention_dropout,
        "layer_norm_epsilon": config.norm_eps,
        "activation_function": _theirs(config.activation),
    }


def _build_bart(settings: Table) -> Transformer:
    is_marian = settings["model_type"] == "marian"
    heads = _get(settings, "encoder_attention_heads", int)
    width = _get(settings, "d_model", int)
    _require(
        settings,
        {
            "decoder_attention_heads": heads,
            "decoder_ffn_dim": _get(settings, "encoder_ffn_dim", int),
            "share_encoder_decoder_embeddings": True,
            "tie_word_embeddings": True,
            "static_position_embeddings": is_marian,
            "normalize_before": False,
            "add_final_layer_norm": False,
            "extra_pos_embeddings": 2,
        },
    )
    config = TransformerConfig(
        model_dim=width,
        num_heads=heads,
        num_encoder_layers=_get(settings, "encoder_layers", int),
        num_decoder_layers=_get(settings, "decoder_layers", int),
        ffn_dim=_get(settings, "encoder_ffn_dim", int),
        dropout=float(settings.get("dropout", 0.1)),
        activation=cast(
            Any,
            choose("activation_function", settings.get("activation_function", "gelu"), ACTIVATIONS),
        ),
        positions="learned",
        max_length=_get(settings, "max_position_embeddings", int),
        scale_embeddings=bool(settings.get("scale_embedding", False)),
        embedding_norm=not is_marian,
        own_positions=not is_marian,
        output_bias=True,
    )
    vocab = _get(settings, "vocab_size", int)
    model = Transformer(config, source_vocab=vocab, target_vocab=vocab, shared_vocab=True)
    # Padding is what lengths say; a pad id of its own is all the table has to know.
    model.target_embedding.pad_id = _get(settings, "pad_token_id", int)
    if is_marian:
        assert isinstance(model.positions, LearnedPositions)
        model.positions.table.data = _marian_waves(config.max_length, width)
    return model


def _describe_bart(model: Any, *, is_marian: bool) -> dict[str, Any]:
    _check_kind(model, Transformer)
    config = model.config
    wanted = {
        "norm": "post",
        "norm_kind": "layer",
        "positions": "learned",
        "num_key_heads": None,
        "score": "scaled_dot",
        "window": None,
        "copy": False,
        "norm_eps": None,
        "source_begin": False,
        "values": "states",
        "tie_embeddings": "all",
        "embedding_norm": not is_marian,
        "own_positions": not is_marian,
    }
    _check_settings(config, wanted)
    if is_marian and not torch.equal(
        model.positions.table.detach().cpu(), _marian_waves(config.max_length, config.model_dim)
    ):
        raise SettingError(
            "layout 'marian' must have Marian's positions, which are not learned; got others. "
            "Train with model.positions.table.requires_grad_(False)."
        )
    both = ("encoder", "decoder")
    return {
        "vocab_size": len(model.target_embedding.weight),
        "d_model": config.model_dim,
        **{f"{side}_attention_heads": config.num_heads for side in both},
        **{f"{side}_ffn_dim": config.ffn_dim for side in both},
        "encoder_layers": config.num_encoder_layers,
        "decoder_layers": config.num_decoder_layers,
        "dropout": config.dropout,
        "activation_function": _theirs(config.activation),
        "max_position_embeddings": config.max_length,
        "scale_embedding": config.scale_embeddings,
        "pad_token_id": model.target_embedding.pad_id,
        **({"decoder_vocab_size": len(model.target_embedding.weight)} if is_marian else {}),
    }


def _marian_waves(length: int, width: int) -> Tensor:
    """Marian's positions: all sines, then all cosines; ours alternate."""
    places = torch.arange(length, dtype=torch.float64)[:, None]
    even = torch.arange(0, width, 2, dtype=torch.float64)
    angles = places / 10000 ** (even / width)
    return torch.cat([angles.sin(), angles.cos()[:, : width // 2]], dim=1).float()


def _theirs(activation: str) -> str:
    return next(name for name, ours in ACTIVATIONS.items() if ours == activation)


def _get(settings: Table, name: str, kind: type) -> Any:
    value = settings.get(name)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise DataError(f"{CONFIG} must say {name} as {kind.__name__}; got {value!r}.")
    return value


def _check_kind(model: Any, wanted: type[nn.Module]) -> None:
    if not isinstance(model, wanted):
        raise SettingError(
            f"model must be a {wanted.__name__} for this layout; got {type(model).__name__}."
        )


def _check_settings(config: Any, wanted: Table) -> None:
    for name, value in wanted.items():
        if (got := getattr(config, name)) != value:
            raise SettingError(
                f"model.{name} must be {value!r} in this layout; got {got!r}. "
                "It has no place for what differs."
            )


LAYOUTS: dict[str, Layout] = {
    "bert": Layout(
        build=_build_bert,
        describe=lambda model: _describe_bert(model, is_roberta=False),
        ties=lambda model: bert(
            model.encoder.config.num_layers, prefix="bert.", offset=0, is_roberta=False
        ),
        prefix="bert.",
        optional=("transform", "norm", "bias", "pooler", "next_sentence"),
        copies=("position_ids", "decoder.weight", "decoder.bias"),
        architecture="BertForPreTraining",
    ),
    "roberta": Layout(
        build=_build_bert,
        describe=lambda model: _describe_bert(model, is_roberta=True),
        ties=lambda model: bert(
            model.encoder.config.num_layers,
            prefix="roberta.",
            offset=model.encoder.embedding.pad_id + 1,
            is_roberta=True,
        ),
        prefix="roberta.",
        optional=("transform", "norm", "bias"),
        copies=("position_ids", "decoder.weight", "decoder.bias"),
        architecture="RobertaForMaskedLM",
    ),
    "gpt2": Layout(
        build=_build_gpt2,
        describe=_describe_gpt2,
        ties=lambda model: gpt2(model.config.num_layers, prefix="transformer."),
        prefix="transformer.",
        optional=(),
        copies=("lm_head.weight", "attn.bias", "attn.masked_bias"),
        architecture="GPT2LMHeadModel",
    ),
    "bart": Layout(
        build=_build_bart,
        describe=lambda model: _describe_bart(model, is_marian=False),
        ties=lambda model: _bart_ties(model, is_marian=False),
        prefix="model.",
        optional=("output_bias",),
        copies=("embed_tokens.weight", "lm_head.weight"),
        architecture="BartForConditionalGeneration",
    ),
    "marian": Layout(
        build=_build_bart,
        describe=lambda model: _describe_bart(model, is_marian=True),
        ties=lambda model: _bart_ties(model, is_marian=True),
        prefix="model.",
        optional=("output_bias",),
        copies=("embed_tokens.weight", "embed_positions.weight", "lm_head.weight"),
        architecture="MarianMTModel",
    ),
}


def _bart_ties(model: Any, *, is_marian: bool) -> Iterator[Tie]:
    layers = (model.config.num_encoder_layers, model.config.num_decoder_layers)
    return bart(*layers, is_marian=is_marian)
