"""The layouts of language models: GPT-2, GPT-NeoX, and Llama with its relatives."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor, nn

from regard.config import JsonValue
from regard.interop.checkpoints.layout import (
    SIZES,
    Layout,
    Settings,
    Table,
    TensorMap,
    expect,
    of_layers,
    require,
    size_of,
    weight_and_bias,
)
from regard.layers.positions import SinusoidalPositions, sinusoidal
from regard.models import Decoder, DecoderConfig

_BASE = 10_000.0  # of the angles of rotary positions, as ours have it
_FIXED: Table = {"norm": "pre", "norm_kind": "layer", "window": None}
_GPT2 = Settings(
    config=DecoderConfig,
    sizes={
        "n_embd": "model_dim",
        "n_head": "num_heads",
        "n_layer": "num_layers",
        "n_inner": "ffn_dim",
        "n_positions": "max_length",
    },
    numbers={
        "resid_pdrop": ("dropout", 0.1),
        "attn_pdrop": ("attention_dropout", 0.1),
        "layer_norm_epsilon": ("norm_eps", 1e-5),
    },
    activation=("activation_function", "gelu_new"),
    required={
        "scale_attn_weights": True,
        "scale_attn_by_inverse_layer_idx": False,
        "add_cross_attention": False,
    },
    fixed={**_FIXED, "positions": "learned", "rotary_base": _BASE, "num_key_heads": None},
)
_NEOX = Settings(
    config=DecoderConfig,
    sizes=SIZES,
    numbers={
        "hidden_dropout": ("dropout", 0.0),
        "attention_dropout": ("attention_dropout", 0.0),
        "layer_norm_eps": ("norm_eps", 1e-5),
    },
    activation=("hidden_act", "gelu"),
    required={"use_parallel_residual": False, "attention_bias": True},
    fixed={**_FIXED, "positions": "rotary", "num_key_heads": None},
)
_LLAMA = Settings(
    config=DecoderConfig,
    sizes={**SIZES, "num_key_value_heads": "num_key_heads"},
    numbers={
        "attention_dropout": ("attention_dropout", 0.0),
        "rms_norm_eps": ("norm_eps", 1e-6),
    },
    required={"hidden_act": "silu"},
    fixed={**_FIXED, "norm_kind": "rms", "activation": "swiglu", "positions": "rotary"},
)


@torch.no_grad()
def as_learned(model: Decoder, *, max_length: int) -> Decoder:
    """Store ``max_length`` sinusoids as learned positions, as GPT-2 has them."""
    if not isinstance(model.positions, SinusoidalPositions):
        return model
    # Scaled embeddings need a table of their own beside the last layer's.
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
    base = _rotary_base(table, fraction=0.25)
    return _decoder(_NEOX, table, is_tied=False, rotary_base=base)


def _build_llama(table: Table) -> Decoder:
    """Llama, Mistral or Qwen2; Mistral's window counts the token itself."""
    base, num_heads = _rotary_base(table, fraction=1.0), size_of(table, "num_attention_heads")
    require(table, "use_sliding_window", False)
    if table.get("head_dim") is not None:
        require(table, "head_dim", size_of(table, "hidden_size") // num_heads)
    window = table.get("sliding_window") if table["model_type"] == "mistral" else None
    return _decoder(
        _LLAMA,
        {**table, "num_key_value_heads": table.get("num_key_value_heads") or num_heads},
        is_tied=False,
        rotary_base=base,
        window=window - 1 if isinstance(window, int) else None,
    )


def _decoder(
    settings: Settings[DecoderConfig], table: Table, *, is_tied: bool, **extra: JsonValue
) -> Decoder:
    """Build a decoder of a config's sizes; ``is_tied`` is the family's default for embeddings."""
    extra["tie_embeddings"] = bool(table.get("tie_word_embeddings", is_tied))
    config = settings.read(table, **extra)
    return Decoder(config, vocab_size=size_of(table, "vocab_size"), pad_id=None)


def _rotary_base(table: Table, *, fraction: float) -> float:
    """The base of the angles by which whole heads are rotated, in a config of any age.

    Raises SettingError where not all of a head is, or angles are scaled.
    """
    named = table.get("rope_parameters") or table.get("rope_scaling")
    options: Table = {
        "rope_theta": table.get("rope_theta", table.get("rotary_emb_base", _BASE)),
        "partial_rotary_factor": table.get("rotary_pct", fraction),
        "rope_type": "default",
        **(named if isinstance(named, dict) else {}),
    }
    require(options, "partial_rotary_factor", 1.0)
    require(options, "rope_type", "default")
    base = options["rope_theta"]
    return float(base) if isinstance(base, int | float) else _BASE


def _describe(
    settings: Settings[DecoderConfig],
    more: Callable[[DecoderConfig], Mapping[str, JsonValue]],
    model: nn.Module,
) -> dict[str, JsonValue]:
    model = expect(model, Decoder)
    return {
        **settings.required,
        **settings.write(model.config),
        "vocab_size": len(model.embedding.weight),
        "tie_word_embeddings": model.config.tie_embeddings,
        **more(model.config),
    }


def _more_neox(config: DecoderConfig) -> Mapping[str, JsonValue]:
    rotary: JsonValue = {**_rotary(config), "partial_rotary_factor": 1.0}
    return {"rotary_pct": 1.0, "rotary_emb_base": config.rotary_base, "rope_parameters": rotary}


def _more_llama(config: DecoderConfig) -> Mapping[str, JsonValue]:
    return {
        "num_key_value_heads": config.num_key_heads or config.num_heads,
        "head_dim": config.model_dim // config.num_heads,
        "attention_bias": True,
        "mlp_bias": True,
        "rope_parameters": _rotary(config),
    }


def _rotary(config: DecoderConfig) -> dict[str, JsonValue]:
    return {"rope_type": "default", "rope_theta": config.rotary_base}


def _gpt2_tensors(model: nn.Module) -> Iterator[TensorMap]:
    """GPT-2's names; its matrices are stored input first."""
    yield TensorMap("embedding.weight", ("transformer.wte.weight",))
    yield TensorMap("output.weight", ("lm_head.weight",))
    yield TensorMap("positions.table", ("transformer.wpe.weight",))
    parts = {
        "attend_residual.norm": "ln_1",
        "attend.query_key_value": "attn.c_attn",
        "attend.output": "attn.c_proj",
        "feed_residual.norm": "ln_2",
        "feed.inner": "mlp.c_fc",
        "feed.outer": "mlp.c_proj",
    }
    count = expect(model, Decoder).config.num_layers
    for tensor_map in of_layers(count, "layers", "transformer.h", parts):
        is_matrix = tensor_map.ours.endswith("weight") and "norm" not in tensor_map.ours
        yield replace(tensor_map, is_transposed=is_matrix)
    yield from weight_and_bias("norm", "transformer.ln_f")


def _neox_tensors(model: nn.Module) -> Iterator[TensorMap]:
    """GPT-NeoX's names; queries, keys and values of a head stand together, rotated by halves."""
    config = expect(model, Decoder).config
    heads, head_dim = config.num_heads, config.model_dim // config.num_heads
    yield TensorMap("embedding.weight", ("gpt_neox.embed_in.weight",))
    yield TensorMap("output.weight", ("embed_out.weight",))
    query, key, value = _order_by_halves(heads, heads, head_dim).view(3, heads, head_dim)
    order = torch.stack([query, key, value], dim=1).flatten()
    parts = {
        "attend_residual.norm": "input_layernorm",
        "attend.query_key_value": "attention.query_key_value",
        "attend.output": "attention.dense",
        "feed_residual.norm": "post_attention_layernorm",
        "feed.inner": "mlp.dense_h_to_4h",
        "feed.outer": "mlp.dense_4h_to_h",
    }
    for tensor_map in of_layers(config.num_layers, "layers", "gpt_neox.layers", parts):
        is_joined = "query_key_value" in tensor_map.ours
        yield replace(tensor_map, order=order) if is_joined else tensor_map
    yield from weight_and_bias("norm", "gpt_neox.final_layer_norm")


def _llama_tensors(model: nn.Module) -> Iterator[TensorMap]:
    """Llama's names; queries and keys are rotated by halves, and norms have no bias.

    Nor have other layers, in most of its checkpoints: Qwen2's queries, keys and values alone.
    """
    config = expect(model, Decoder).config
    heads, head_dim = config.num_heads, config.model_dim // config.num_heads
    key_heads = config.num_key_heads or heads
    yield TensorMap("embedding.weight", ("model.embed_tokens.weight",))
    yield TensorMap("output.weight", ("lm_head.weight",))
    order = _order_by_halves(heads, key_heads, head_dim)
    sizes = tuple(count * head_dim for count in (heads, key_heads, key_heads))
    parts = {
        "attend.query_key_value": "self_attn.q_proj self_attn.k_proj self_attn.v_proj",
        "attend.output": "self_attn.o_proj",
        "feed.inner": "mlp.gate_proj mlp.up_proj",
        "feed.outer": "mlp.down_proj",
        "attend_residual.norm": "input_layernorm",
        "feed_residual.norm": "post_attention_layernorm",
    }
    for tensor_map in of_layers(config.num_layers, "layers", "model.layers", parts):
        is_bias = tensor_map.ours.endswith("bias")
        if "query_key_value" in tensor_map.ours:
            yield replace(tensor_map, order=order, sizes=sizes, is_zero_where_absent=is_bias)
        elif not tensor_map.ours.endswith("norm.bias"):
            yield replace(tensor_map, is_zero_where_absent=is_bias)
    yield TensorMap("norm.weight", ("model.norm.weight",))


def _order_by_halves(heads: int, key_heads: int, head_dim: int) -> Tensor:
    """Order our rows with the two of a rotated pair half a head apart; ours are neighbours."""
    inside = torch.arange(head_dim).view(-1, 2).T.flatten()  # 0 2 4 … 1 3 5 …
    rotated = (heads + key_heads) * head_dim  # values are not rotated
    firsts = torch.arange(0, rotated, head_dim)
    values = torch.arange(rotated, rotated + key_heads * head_dim)
    return torch.cat([(firsts[:, None] + inside).flatten(), values])


_LLAMA_LAYOUT = Layout(
    build=_build_llama,
    describe=partial(_describe, _LLAMA, _more_llama),
    tensors=_llama_tensors,
    prefix="model.",
    copies=("lm_head.weight", "inv_freq"),
    architecture="LlamaForCausalLM",
)
DECODERS: dict[str, Layout] = {
    "gpt2": Layout(
        build=_build_gpt2,
        describe=partial(_describe, _GPT2, lambda config: {"embd_pdrop": config.dropout}),
        tensors=_gpt2_tensors,
        prefix="transformer.",
        copies=("lm_head.weight", "attn.bias", "attn.masked_bias"),
        architecture="GPT2LMHeadModel",
    ),
    "gpt_neox": Layout(
        build=_build_neox,
        describe=partial(_describe, _NEOX, _more_neox),
        tensors=_neox_tensors,
        prefix="gpt_neox.",
        copies=("embed_out.weight", "attention.bias", "attention.masked_bias", "inv_freq"),
        architecture="GPTNeoXForCausalLM",
    ),
    "llama": _LLAMA_LAYOUT,
    **dict.fromkeys(("mistral", "qwen2"), replace(_LLAMA_LAYOUT, describe=None)),
}
