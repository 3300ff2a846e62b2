"""The layouts of language models: GPT-2, GPT-NeoX and Llama."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial

import torch
from torch import nn

from regard.config import JsonValue
from regard.interop.checkpoint_names import Tie, gpt2, gpt_neox, llama
from regard.interop.checkpoint_settings import Layout, Settings, Table, expect, require, size_of
from regard.layers.positions import SinusoidalPositions, sinusoidal
from regard.models import Decoder, DecoderConfig

_BASE = 10_000.0  # of the angles of rotary positions, as ours have it

_SIZES = {
    "hidden_size": "model_dim",
    "num_attention_heads": "num_heads",
    "num_hidden_layers": "num_layers",
    "intermediate_size": "ffn_dim",
    "max_position_embeddings": "max_length",
}
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
    },
    settled={
        "norm": "pre",
        "norm_kind": "layer",
        "positions": "learned",
        "window": None,
        "num_key_heads": None,
    },
)
_NEOX = Settings(
    config=DecoderConfig,
    sizes=_SIZES,
    shares={
        "hidden_dropout": ("dropout", 0.0),
        "attention_dropout": ("attention_dropout", 0.0),
        "layer_norm_eps": ("norm_eps", 1e-5),
    },
    activation=("hidden_act", "gelu"),
    only={"use_parallel_residual": False, "attention_bias": True},
    settled={
        "norm": "pre",
        "norm_kind": "layer",
        "positions": "rotary",
        "window": None,
        "num_key_heads": None,
    },
)
_LLAMA = Settings(
    config=DecoderConfig,
    sizes={**_SIZES, "num_key_value_heads": "num_key_heads"},
    shares={
        "attention_dropout": ("attention_dropout", 0.0),
        "rms_norm_eps": ("norm_eps", 1e-6),
    },
    only={"attention_bias": True, "mlp_bias": True, "hidden_act": "silu"},
    settled={
        "norm": "pre",
        "norm_kind": "rms",
        "activation": "swiglu",
        "positions": "rotary",
        "window": None,
    },
)


@torch.no_grad()
def as_learned(model: Decoder, *, max_length: int) -> Decoder:
    """Store sinusoids as learned positions, as GPT-2 has them.

    Embeddings that are scaled are then a table of their own beside the last layer's.

    Args:
        model: With learned positions, which are left alone, or sinusoidal ones.
        max_length: How many of those are written down.
    """
    if not isinstance(model.positions, SinusoidalPositions):
        return model
    table, width = model.embedding, model.config.model_dim
    config = replace(model.config, positions="learned", tie_embeddings=False, max_length=max_length)
    twin = Decoder(config, vocab_size=len(table.weight), pad_id=table.pad_id)
    twin.load_state_dict(
        {
            **model.state_dict(),
            "embedding.weight": table.weight * table.scale,
            "output.weight": model.output.weight,
            "positions.table": sinusoidal(torch.arange(max_length), width),
        }
    )
    return twin.eval()


def _build_gpt2(table: Table) -> Decoder:
    inner = table.get("n_inner") or 4 * size_of(table, "n_embd")
    return _decoder(_GPT2, {**table, "n_inner": inner}, is_tied=True)


def _build_neox(table: Table) -> Decoder:
    _check_turned(table, share=0.25)
    return _decoder(_NEOX, table, is_tied=False)


def _build_llama(table: Table) -> Decoder:
    _check_turned(table, share=1.0)
    heads = table.get("num_key_value_heads") or size_of(table, "num_attention_heads")
    return _decoder(_LLAMA, {**table, "num_key_value_heads": heads}, is_tied=False)


def _decoder(settings: Settings[DecoderConfig], table: Table, *, is_tied: bool) -> Decoder:
    """A decoder of a config's sizes.

    Args:
        settings: Of its family.
        table: The config.
        is_tied: Whether a config that is silent has one table of embeddings and last layer.
    """
    config = settings.read(table, tie_embeddings=bool(table.get("tie_word_embeddings", is_tied)))
    return Decoder(config, vocab_size=size_of(table, "vocab_size"), pad_id=None)


def _check_turned(table: Table, *, share: float) -> None:
    """Raise SettingError unless whole heads are turned, by the angles of ours.

    Args:
        table: A config, of any age.
        share: Which share of a head is turned where it is silent.
    """
    named = table.get("rope_parameters") or table.get("rope_scaling")
    found: Table = {
        "rope_theta": table.get("rotary_emb_base", _BASE),
        "partial_rotary_factor": table.get("rotary_pct", share),
        "rope_type": "default",
        **{name: table[name] for name in ("rope_theta",) if name in table},
        **(named if isinstance(named, dict) else {}),
    }
    wanted: Table = {"rope_theta": _BASE, "partial_rotary_factor": 1.0, "rope_type": "default"}
    for name, value in wanted.items():
        require(found, name, value)


def _describe(
    settings: Settings[DecoderConfig],
    more: Callable[[DecoderConfig], Mapping[str, JsonValue]],
    model: nn.Module,
) -> dict[str, JsonValue]:
    model = expect(model, Decoder)
    return {
        **settings.write(model.config),
        "vocab_size": len(model.embedding.weight),
        "tie_word_embeddings": model.config.tie_embeddings,
        **more(model.config),
    }


def _more_gpt2(config: DecoderConfig) -> Mapping[str, JsonValue]:
    return {"embd_pdrop": config.dropout}


def _more_neox(config: DecoderConfig) -> Mapping[str, JsonValue]:
    rotary: JsonValue = {"rope_type": "default", "rope_theta": _BASE, "partial_rotary_factor": 1.0}
    return {
        "use_parallel_residual": False,
        "attention_bias": True,
        "rotary_pct": 1.0,
        "rotary_emb_base": _BASE,
        "rope_parameters": rotary,
    }


def _more_llama(config: DecoderConfig) -> Mapping[str, JsonValue]:
    rotary: JsonValue = {"rope_type": "default", "rope_theta": _BASE}
    return {
        "num_key_value_heads": config.num_key_heads or config.num_heads,
        "head_dim": config.model_dim // config.num_heads,
        "hidden_act": "silu",
        "attention_bias": True,
        "mlp_bias": True,
        "rope_parameters": rotary,
    }


def _gpt2_ties(model: nn.Module) -> Iterator[Tie]:
    return gpt2(expect(model, Decoder).config.num_layers, prefix="transformer.")


def _neox_ties(model: nn.Module) -> Iterator[Tie]:
    config = expect(model, Decoder).config
    return gpt_neox(
        config.num_layers, heads=config.num_heads, head_dim=config.model_dim // config.num_heads
    )


def _llama_ties(model: nn.Module) -> Iterator[Tie]:
    config = expect(model, Decoder).config
    return llama(
        config.num_layers,
        heads=config.num_heads,
        key_heads=config.num_key_heads or config.num_heads,
        head_dim=config.model_dim // config.num_heads,
    )


DECODERS: dict[str, Layout] = {
    "gpt2": Layout(
        build=_build_gpt2,
        describe=partial(_describe, _GPT2, _more_gpt2),
        ties=_gpt2_ties,
        prefix="transformer.",
        copies=("lm_head.weight", "attn.bias", "attn.masked_bias"),
        architecture="GPT2LMHeadModel",
    ),
    "gpt_neox": Layout(
        build=_build_neox,
        describe=partial(_describe, _NEOX, _more_neox),
        ties=_neox_ties,
        prefix="gpt_neox.",
        copies=("embed_out.weight", "attention.bias", "attention.masked_bias", "inv_freq"),
        architecture="GPTNeoXForCausalLM",
    ),
    "llama": Layout(
        build=_build_llama,
        describe=partial(_describe, _LLAMA, _more_llama),
        ties=_llama_ties,
        prefix="model.",
        copies=("lm_head.weight", "inv_freq"),
        architecture="LlamaForCausalLM",
    ),
}
