"""How the families of Hugging Face's checkpoints describe a model, and which of ours it is."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

import torch
from torch import Tensor, nn

from regard.choices import choose
from regard.config import JsonValue, build
from regard.errors import DataError, SettingError
from regard.interop.checkpoint_names import Tie, bart, bert, gpt2
from regard.layers import LearnedPositions
from regard.models import (
    Decoder,
    DecoderConfig,
    EncoderConfig,
    MaskedLanguageModel,
    Transformer,
    TransformerConfig,
)

CONFIG = "config.json"

Table = Mapping[str, JsonValue]
ModelT = TypeVar("ModelT", bound=nn.Module)
ConfigT = TypeVar("ConfigT", EncoderConfig, DecoderConfig, TransformerConfig)

# Hugging Face's names of what FeedForward has.
ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
}


@dataclass(frozen=True, slots=True)
class Settings(Generic[ConfigT]):
    """What a family's config says, and what of our settings it is.

    Attributes:
        config: Our settings.
        sizes: Its names of whole numbers, with ours; of several names of one, all must agree.
        shares: Its names of other numbers, with ours and what a config that is silent means.
        activation: Its name of the activation, and which it is where a config is silent.
        only: What else its config may say, which has one value here.
        settled: Our settings that have one value in it.
    """

    config: type[ConfigT]
    sizes: Mapping[str, str]
    shares: Mapping[str, tuple[str, float]]
    only: Table
    settled: Table
    activation: tuple[str, str] | None = None

    def read(self, table: Table, **more: JsonValue) -> ConfigT:
        """Our settings, of a config.

        Args:
            table: The config.
            more: Settings that its family has besides.

        Raises:
            DataError: A size is missing.
            SettingError: An option has no place here.
        """
        for name, value in self.only.items():
            _require(table, name, value)
        found: dict[str, JsonValue] = {**self.settled, **more}
        for name, ours in self.sizes.items():
            if ours in found:
                _require(table, name, found[ours])
            else:
                found[ours] = size_of(table, name)
        for name, (ours, silent) in self.shares.items():
            share = table.get(name, silent)
            found[ours] = float(share) if isinstance(share, int) else share
        if self.activation is not None:
            name, usual = self.activation
            found["activation"] = choose(name, str(table.get(name, usual)), ACTIVATIONS)
        return build(self.config, found, where=CONFIG)

    def write(self, config: ConfigT) -> dict[str, JsonValue]:
        """A config, of our settings.

        Raises:
            SettingError: A setting has no place in it.
        """
        for name, value in self.settled.items():
            if (got := getattr(config, name)) != value:
                raise SettingError(
                    f"model.{name} must be {value!r} in this layout; got {got!r}. "
                    "It has no place for what differs."
                )
        names = {**self.sizes, **{name: ours for name, (ours, _) in self.shares.items()}}
        table: dict[str, JsonValue] = {name: getattr(config, ours) for name, ours in names.items()}
        if self.activation is not None:
            ours = config.activation
            table[self.activation[0]] = next(n for n, each in ACTIVATIONS.items() if each == ours)
        return table


@dataclass(frozen=True, slots=True)
class Layout:
    """How one family's checkpoints are made.

    Attributes:
        build: A model of the sizes that a config names.
        describe: The config of a model.
        ties: Which parameter is which tensor.
        prefix: What the names of the body begin with; a file of the body alone leaves it out.
        copies: What names end with that only repeat other tensors, or none that is learned.
        architecture: The class of transformers that the written config names.
        optional: What our names begin with that a file may lack: heads.
    """

    build: Callable[[Table], nn.Module]
    describe: Callable[[nn.Module], dict[str, JsonValue]]
    ties: Callable[[nn.Module], Iterator[Tie]]
    prefix: str
    copies: tuple[str, ...]
    architecture: str
    optional: tuple[str, ...] = ()


def size_of(table: Table, name: str) -> int:
    """A whole number that a config must say."""
    value = table.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise DataError(f"{CONFIG} must say {name} as int; got {value!r}.")
    return value


def _require(table: Table, name: str, value: JsonValue) -> None:
    """Raise unless an option has the only value that our models know."""
    if table.get(name, value) != value:
        raise SettingError(
            f"{name} must be {value!r} for a model of ours; got {table[name]!r}. "
            "regard.watch looks into other models as they are."
        )


def _of(model: nn.Module, wanted: type[ModelT]) -> ModelT:
    if not isinstance(model, wanted):
        raise SettingError(
            f"model must be a {wanted.__name__} for this layout; got {type(model).__name__}."
        )
    return model


_BERT = Settings(
    config=EncoderConfig,
    sizes={
        "hidden_size": "model_dim",
        "num_attention_heads": "num_heads",
        "num_hidden_layers": "num_layers",
        "intermediate_size": "ffn_dim",
        "max_position_embeddings": "max_length",
        "type_vocab_size": "num_segments",
    },
    shares={
        "hidden_dropout_prob": ("dropout", 0.1),
        "attention_probs_dropout_prob": ("attention_dropout", 0.1),
        "layer_norm_eps": ("norm_eps", 1e-12),
    },
    only={
        "position_embedding_type": "absolute",
        "is_decoder": False,
        "hidden_act": "gelu",
        "tie_word_embeddings": True,
    },
    settled={"norm": "post", "norm_kind": "layer", "activation": "gelu", "positions": "learned"},
)

_GPT2 = Settings(
    config=DecoderConfig,
    sizes={
        "n_embd": "model_dim",
        "n_head": "num_heads",
        "n_layer": "num_layers",
        "n_inner": "ffn_dim",
        "n_positions": "max_length",
    },
    shares={
        "resid_pdrop": ("dropout", 0.1),
        "attn_pdrop": ("attention_dropout", 0.1),
        "layer_norm_epsilon": ("norm_eps", 1e-5),
    },
    activation=("activation_function", "gelu_new"),
    only={
        "scale_attn_weights": True,
        "scale_attn_by_inverse_layer_idx": False,
        "add_cross_attention": False,
        "tie_word_embeddings": True,
    },
    settled={
        "norm": "pre",
        "norm_kind": "layer",
        "positions": "learned",
        "window": None,
        "num_key_heads": None,
        "tie_embeddings": True,
    },
)


def _bart_settings(*, is_marian: bool) -> Settings[TransformerConfig]:
    return Settings(
        config=TransformerConfig,
        sizes={
            "d_model": "model_dim",
            "encoder_attention_heads": "num_heads",
            "decoder_attention_heads": "num_heads",
            "encoder_ffn_dim": "ffn_dim",
            "decoder_ffn_dim": "ffn_dim",
            "encoder_layers": "num_encoder_layers",
            "decoder_layers": "num_decoder_layers",
            "max_position_embeddings": "max_length",
        },
        shares={"dropout": ("dropout", 0.1)},
        activation=("activation_function", "gelu"),
        only={
            "share_encoder_decoder_embeddings": True,
            "tie_word_embeddings": True,
            "static_position_embeddings": is_marian,
            "normalize_before": False,
            "add_final_layer_norm": False,
            "extra_pos_embeddings": 2,
        },
        settled={
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
        },
    )


def _build_bert(table: Table) -> MaskedLanguageModel:
    pad_id = size_of(table, "pad_token_id")
    first = pad_id + 1 if table["model_type"] == "roberta" else 0
    most = size_of(table, "max_position_embeddings") - first
    config = _BERT.read({**table, "max_position_embeddings": most})
    return MaskedLanguageModel(config, vocab_size=size_of(table, "vocab_size"), pad_id=pad_id)


def _describe_bert(model: nn.Module, *, is_roberta: bool) -> dict[str, JsonValue]:
    model = _of(model, MaskedLanguageModel)
    config, pad_id = model.encoder.config, _padding_of(model)
    return {
        **_BERT.write(config),
        "vocab_size": len(model.bias),
        "hidden_act": "gelu",
        "max_position_embeddings": config.max_length + (pad_id + 1 if is_roberta else 0),
        "pad_token_id": pad_id,
    }


def _bert_ties(model: nn.Module, *, is_roberta: bool) -> Iterator[Tie]:
    model = _of(model, MaskedLanguageModel)
    return bert(
        model.encoder.config.num_layers,
        prefix="roberta." if is_roberta else "bert.",
        offset=_padding_of(model) + 1 if is_roberta else 0,
        is_roberta=is_roberta,
    )


def _padding_of(model: MaskedLanguageModel) -> int:
    pad_id = model.encoder.embedding.pad_id
    assert pad_id is not None
    return pad_id


def _build_gpt2(table: Table) -> Decoder:
    inner = table.get("n_inner") or 4 * size_of(table, "n_embd")
    config = _GPT2.read({**table, "n_inner": inner})
    return Decoder(config, vocab_size=size_of(table, "vocab_size"), pad_id=None)


def _describe_gpt2(model: nn.Module) -> dict[str, JsonValue]:
    model = _of(model, Decoder)
    return {
        **_GPT2.write(model.config),
        "vocab_size": len(model.embedding.weight),
        "embd_pdrop": model.config.dropout,
    }


def _gpt2_ties(model: nn.Module) -> Iterator[Tie]:
    return gpt2(_of(model, Decoder).config.num_layers, prefix="transformer.")


def _build_bart(table: Table) -> Transformer:
    is_marian = table["model_type"] == "marian"
    config = _bart_settings(is_marian=is_marian).read(
        table, scale_embeddings=bool(table.get("scale_embedding", False)), output_bias=True
    )
    vocab = size_of(table, "vocab_size")
    model = Transformer(config, source_vocab=vocab, target_vocab=vocab, shared_vocab=True)
    # Padding is what lengths say; a pad id of its own is all the table has to know.
    model.target_embedding.pad_id = size_of(table, "pad_token_id")
    if is_marian:
        assert isinstance(model.positions, LearnedPositions)
        model.positions.table.data = _marian_waves(config.max_length, config.model_dim)
    return model


def _describe_bart(model: nn.Module, *, is_marian: bool) -> dict[str, JsonValue]:
    model = _of(model, Transformer)
    config, vocab = model.config, len(model.target_embedding.weight)
    table = _bart_settings(is_marian=is_marian).write(config)
    assert isinstance(model.positions, LearnedPositions)
    if is_marian and not torch.equal(
        model.positions.table.detach().cpu(), _marian_waves(config.max_length, config.model_dim)
    ):
        raise SettingError(
            "layout 'marian' must have Marian's positions, which are not learned; got others. "
            "Train with model.positions.table.requires_grad_(False)."
        )
    return {
        **table,
        "vocab_size": vocab,
        "scale_embedding": config.scale_embeddings,
        "pad_token_id": model.target_embedding.pad_id,
        **({"decoder_vocab_size": vocab} if is_marian else {}),
    }


def _bart_ties(model: nn.Module, *, is_marian: bool) -> Iterator[Tie]:
    config = _of(model, Transformer).config
    return bart(config.num_encoder_layers, config.num_decoder_layers, is_marian=is_marian)


def _marian_waves(length: int, width: int) -> Tensor:
    """Marian's positions: all sines, then all cosines; ours alternate."""
    places = torch.arange(length, dtype=torch.float64)[:, None]
    even = torch.arange(0, width, 2, dtype=torch.float64)
    angles = places / 10000 ** (even / width)
    return torch.cat([angles.sin(), angles.cos()[:, : width // 2]], dim=1).float()


LAYOUTS: dict[str, Layout] = {
    "bert": Layout(
        build=_build_bert,
        describe=partial(_describe_bert, is_roberta=False),
        ties=partial(_bert_ties, is_roberta=False),
        prefix="bert.",
        optional=("transform", "norm", "bias", "pooler", "next_sentence"),
        copies=("position_ids", "decoder.weight", "decoder.bias"),
        architecture="BertForPreTraining",
    ),
    "roberta": Layout(
        build=_build_bert,
        describe=partial(_describe_bert, is_roberta=True),
        ties=partial(_bert_ties, is_roberta=True),
        prefix="roberta.",
        optional=("transform", "norm", "bias"),
        copies=("position_ids", "decoder.weight", "decoder.bias"),
        architecture="RobertaForMaskedLM",
    ),
    "gpt2": Layout(
        build=_build_gpt2,
        describe=_describe_gpt2,
        ties=_gpt2_ties,
        prefix="transformer.",
        copies=("lm_head.weight", "attn.bias", "attn.masked_bias"),
        architecture="GPT2LMHeadModel",
    ),
    "bart": Layout(
        build=_build_bart,
        describe=partial(_describe_bart, is_marian=False),
        ties=partial(_bart_ties, is_marian=False),
        prefix="model.",
        optional=("output_bias",),
        copies=("embed_tokens.weight", "lm_head.weight"),
        architecture="BartForConditionalGeneration",
    ),
    "marian": Layout(
        build=_build_bart,
        describe=partial(_describe_bart, is_marian=True),
        ties=partial(_bart_ties, is_marian=True),
        prefix="model.",
        optional=("output_bias",),
        copies=("embed_tokens.weight", "embed_positions.weight", "lm_head.weight"),
        architecture="MarianMTModel",
    ),
}
