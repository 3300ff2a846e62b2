"""Tiny random models of Hugging Face, each with what it is given: sizes that are all different."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import transformers as hf

B, N, T, V = 2, 13, 7, 61
H, G, C, F = 6, 3, 36, 44
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
SMALL = {
    "vocab_size": V,
    "hidden_size": C,
    "num_hidden_layers": 2,
    "num_attention_heads": H,
    "intermediate_size": F,
}
# Some families refuse places beyond these; the memory test needs many.
PLACES = {"max_position_embeddings": 1100}
GROUPED = {**SMALL, **PLACES, "num_key_value_heads": G, "head_dim": 10, "pad_token_id": 0}
WINDOW = {"sliding_window": 5, "layer_types": ["sliding_attention", "full_attention"]}
TWO_SIDED = {
    "vocab_size": V,
    "d_model": C,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": H,
    "decoder_attention_heads": H,
    "encoder_ffn_dim": F,
    "decoder_ffn_dim": F,
    "pad_token_id": 1,
    "bos_token_id": 2,
    "eos_token_id": None,
    "decoder_start_token_id": 2,
    "dropout": 0.0,
    "forced_eos_token_id": None,
}
IMAGES = {"image_size": 12, "patch_size": 4}


@dataclass(frozen=True)
class Family:
    """A family of models.

    Attributes:
        make: The model.
        kind: What it takes: "text", "pairs", "images" or "sounds".
        pad_id: Of padding.
    """

    make: Callable[[], Any]
    kind: str = "text"
    pad_id: int = 0


def _model(name, config, **options):
    return lambda: getattr(hf, name)(getattr(hf, config)(**options))


GPTS = {
    "vocab_size": V,
    "n_embd": C,
    "n_layer": 2,
    "n_head": H,
    "n_positions": 1100,
    "bos_token_id": 2,
    **dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0),
}
EXPERTS = {"num_local_experts": 2, "num_experts_per_tok": 1}
ENDLESS = {**GROUPED, "eos_token_id": None}


def _writer(name, config, **options):
    return Family(_model(f"{name}ForCausalLM", config, **options))


FAMILIES = {
    "bert": Family(_model("BertForMaskedLM", "BertConfig", **SMALL, **PLACES, **NO_DROPOUT)),
    "roberta": Family(
        _model("RobertaModel", "RobertaConfig", **SMALL, **PLACES, **NO_DROPOUT), pad_id=1
    ),
    "distilbert": Family(
        _model(
            "DistilBertModel", "DistilBertConfig", vocab_size=V, dim=C, n_layers=2, n_heads=H,
            hidden_dim=F, dropout=0.0, attention_dropout=0.0, **PLACES,
        )
    ),
    "modernbert": Family(
        _model(
            "ModernBertModel", "ModernBertConfig", **SMALL, **PLACES, local_attention=6,
            global_attn_every_n_layers=2, pad_token_id=0,
        )
    ),
    "gpt2": Family(_model("GPT2LMHeadModel", "GPT2Config", **GPTS, eos_token_id=None)),
    "gptj": _writer("GPTJ", "GPTJConfig", **GPTS, eos_token_id=None, rotary_dim=4),
    "llama": _writer("Llama", "LlamaConfig", **ENDLESS),
    "qwen3": _writer("Qwen3", "Qwen3Config", **ENDLESS),
    "mistral": _writer("Mistral", "MistralConfig", **ENDLESS, sliding_window=5),
    "gemma2": _writer(
        "Gemma2", "Gemma2Config", **ENDLESS, **WINDOW, query_pre_attn_scalar=7,
        attn_logit_softcapping=2.0,
    ),
    "gemma3": _writer("Gemma3", "Gemma3TextConfig", **ENDLESS, **WINDOW),
    "gpt_oss": _writer(
        "GptOss", "GptOssConfig", **{**ENDLESS, "max_position_embeddings": 131072}, **WINDOW,
        **EXPERTS,
    ),
    "llama4": _writer(
        "Llama4", "Llama4TextConfig", **ENDLESS, **EXPERTS, attention_chunk_size=5,
        layer_types=["chunked_attention", "full_attention"], intermediate_size_mlp=F,
    ),
    "t5": Family(
        _model(
            "T5ForConditionalGeneration", "T5Config", vocab_size=V, d_model=C, d_kv=10, d_ff=F,
            num_layers=2, num_heads=H, dropout_rate=0.0, eos_token_id=None,
            decoder_start_token_id=0,
        ),
        "pairs",
    ),
    "bart": Family(
        _model("BartForConditionalGeneration", "BartConfig", **TWO_SIDED, **PLACES), "pairs", 1
    ),
    "marian": Family(_model("MarianMTModel", "MarianConfig", **TWO_SIDED, **PLACES), "pairs", 1),
    "vit": Family(
        _model(
            "ViTModel", "ViTConfig", hidden_size=C, num_hidden_layers=2, num_attention_heads=H,
            intermediate_size=F, **IMAGES, **NO_DROPOUT,
        ),
        "images",
    ),
    "whisper": Family(
        _model(
            "WhisperForConditionalGeneration", "WhisperConfig", **TWO_SIDED,
            max_source_positions=11, max_target_positions=1100, num_mel_bins=8,
            suppress_tokens=None, begin_suppress_tokens=None,
        ),
        "sounds",
    ),
}  # fmt: skip
WRITERS = [
    name
    for name in FAMILIES
    if name not in ("bert", "roberta", "distilbert", "modernbert", "vit", "whisper")
]


def make(name):
    """A model whose attention is far from even, with its own eager attention."""
    torch.manual_seed(0)
    model = FAMILIES[name].make().eval()
    with torch.no_grad():
        for parameter_name, parameter in model.named_parameters():
            wider = 0.4 if any(part in parameter_name for part in ("sinks", "bias")) else 0.12
            parameter.add_(torch.randn_like(parameter) * wider)
    model.set_attn_implementation("eager")
    return model


def padding(side, length=N):
    """(B, length) of ones, and zeros on a side of the first row."""
    mask = torch.ones(B, length, dtype=torch.long)
    if side == "right":
        mask[0, -4:] = 0
    elif side == "left":
        mask[0, :4] = 0
    return mask


def inputs(name, side="none"):
    family = FAMILIES[name]
    if family.kind == "images":
        return {"pixel_values": torch.randn(B, 3, 12, 12)}
    targets = {"decoder_input_ids": torch.randint(3, V, (B, T))}
    if family.kind == "sounds":
        return {"input_features": torch.randn(B, 8, 22), **targets}
    mask = padding(side)
    ids = torch.randint(3, V, (B, N)).masked_fill(mask == 0, family.pad_id)
    batch = {"input_ids": ids, "attention_mask": mask}
    if family.kind == "pairs":
        return {**batch, **targets}
    if name in WRITERS:
        batch["position_ids"] = places(mask)
    return batch


def places(mask):
    """The place of each token among the real ones."""
    return (mask.cumsum(-1) - 1).clamp_min(0)


def real(name, batch):
    if FAMILIES[name].kind == "text":
        return batch["attention_mask"].bool()
    if "decoder_input_ids" in batch:
        return torch.ones_like(batch["decoder_input_ids"], dtype=torch.bool)
    return torch.ones(B, 10, dtype=torch.bool)
