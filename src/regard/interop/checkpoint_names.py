"""Which of our parameters is which of theirs, for each layout of checkpoints."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from regard.errors import DataError


@dataclass(frozen=True, slots=True)
class Tie:
    """One parameter of ours, and the tensors of a file that it is made of.

    Attributes:
        ours: Its name.
        theirs: Their names; several are joined row after row.
        is_turned: Whether they are stored input first, as GPT-2's are.
        offset: How many rows of theirs stand before the first of ours.
        has_axis: Whether theirs have an axis of one before it.
    """

    ours: str
    theirs: tuple[str, ...]
    is_turned: bool = False
    offset: int = 0
    has_axis: bool = False

    def take(self, tensors: dict[str, Tensor]) -> Tensor:
        """Our parameter from their tensors."""
        parts = [tensors[name] for name in self.theirs]
        parts = [part.T if self.is_turned else part for part in parts]
        whole = torch.cat(parts) if len(parts) > 1 else parts[0]
        return (whole[0] if self.has_axis else whole)[self.offset :]

    def give(self, parameter: Tensor) -> dict[str, Tensor]:
        """Their tensors from our parameter."""
        padding = parameter.new_zeros(self.offset, *parameter.shape[1:])
        whole = torch.cat([padding, parameter]) if self.offset else parameter
        whole = whole[None] if self.has_axis else whole
        parts = whole.chunk(len(self.theirs)) if len(self.theirs) > 1 else (whole,)
        parts = tuple(part.T if self.is_turned else part for part in parts)
        return {
            name: part.clone(memory_format=torch.contiguous_format)
            for name, part in zip(self.theirs, parts, strict=True)
        }


def bert(num_layers: int, *, prefix: str, offset: int, is_roberta: bool) -> Iterator[Tie]:
    """BERT's names, and RoBERTa's, which differ in the head."""
    inner = f"{prefix}embeddings."
    yield Tie("encoder.embedding.weight", (f"{inner}word_embeddings.weight",))
    yield Tie("encoder.positions.table", (f"{inner}position_embeddings.weight",), offset=offset)
    yield Tie("encoder.segments", (f"{inner}token_type_embeddings.weight",))
    yield from _both("encoder.embedding_norm", f"{inner}LayerNorm")
    for layer in range(num_layers):
        ours, theirs = f"encoder.layers.{layer}.", f"{prefix}encoder.layer.{layer}."
        own = [f"{theirs}attention.self.{name}" for name in ("query", "key", "value")]
        yield from _both(f"{ours}attend.query_key_value", *own)
        yield from _both(f"{ours}attend.output", f"{theirs}attention.output.dense")
        yield from _both(f"{ours}attend_residual.norm", f"{theirs}attention.output.LayerNorm")
        yield from _both(f"{ours}feed.inner", f"{theirs}intermediate.dense")
        yield from _both(f"{ours}feed.outer", f"{theirs}output.dense")
        yield from _both(f"{ours}feed_residual.norm", f"{theirs}output.LayerNorm")
    if is_roberta:
        yield from _both("transform", "lm_head.dense")
        yield from _both("norm", "lm_head.layer_norm")
        yield Tie("bias", ("lm_head.bias",))
        return
    yield from _both("transform", "cls.predictions.transform.dense")
    yield from _both("norm", "cls.predictions.transform.LayerNorm")
    yield Tie("bias", ("cls.predictions.bias",))
    yield from _both("pooler", f"{prefix}pooler.dense")
    yield from _both("next_sentence", "cls.seq_relationship")


def gpt2(num_layers: int, *, prefix: str) -> Iterator[Tie]:
    """GPT-2's names; its matrices are stored input first."""
    yield Tie("embedding.weight", (f"{prefix}wte.weight",))
    yield Tie("positions.table", (f"{prefix}wpe.weight",))
    pairs = {
        "attend_residual.norm": "ln_1",
        "attend.query_key_value": "attn.c_attn",
        "attend.output": "attn.c_proj",
        "feed_residual.norm": "ln_2",
        "feed.inner": "mlp.c_fc",
        "feed.outer": "mlp.c_proj",
    }
    for layer in range(num_layers):
        for ours, theirs in pairs.items():
            both = _both(f"layers.{layer}.{ours}", f"{prefix}h.{layer}.{theirs}")
            for tie in both:
                is_matrix = tie.ours.endswith("weight") and "norm" not in ours
                yield replace(tie, is_turned=is_matrix)
    yield from _both("norm", f"{prefix}ln_f")


def bart(num_encoder_layers: int, num_decoder_layers: int, *, is_marian: bool) -> Iterator[Tie]:
    """BART's names, and Marian's, which has no learned positions and no norm of embeddings."""
    yield Tie("target_embedding.weight", ("model.shared.weight",))
    yield Tie("output_bias", ("final_logits_bias",), has_axis=True)
    sides = {"encoder": num_encoder_layers, "decoder": num_decoder_layers}
    for side, count in sides.items():
        if not is_marian:
            ours = "positions.table" if side == "encoder" else "target_positions.table"
            yield Tie(ours, (f"model.{side}.embed_positions.weight",), offset=2)
            norm = "source_norm" if side == "encoder" else "target_norm"
            yield from _both(norm, f"model.{side}.layernorm_embedding")
        for layer in range(count):
            yield from _bart_layer(f"{side}.{layer}.", f"model.{side}.layers.{layer}.", side)


def _bart_layer(ours: str, theirs: str, side: str) -> Iterator[Tie]:
    own = [f"{theirs}self_attn.{name}_proj" for name in ("q", "k", "v")]
    yield from _both(f"{ours}attend.query_key_value", *own)
    yield from _both(f"{ours}attend.output", f"{theirs}self_attn.out_proj")
    yield from _both(f"{ours}attend_residual.norm", f"{theirs}self_attn_layer_norm")
    if side == "decoder":
        across = f"{theirs}encoder_attn."
        yield from _both(f"{ours}look.query", f"{across}q_proj")
        yield from _both(f"{ours}look.key_value", f"{across}k_proj", f"{across}v_proj")
        yield from _both(f"{ours}look.output", f"{across}out_proj")
        yield from _both(f"{ours}look_residual.norm", f"{theirs}encoder_attn_layer_norm")
    yield from _both(f"{ours}feed.inner", f"{theirs}fc1")
    yield from _both(f"{ours}feed.outer", f"{theirs}fc2")
    yield from _both(f"{ours}feed_residual.norm", f"{theirs}final_layer_norm")


def _both(ours: str, *theirs: str) -> Iterator[Tie]:
    """The weight and the bias of a layer."""
    for part in ("weight", "bias"):
        yield Tie(f"{ours}.{part}", tuple(f"{name}.{part}" for name in theirs))


def check_shape(tie: Tie, found: Tensor, wanted: Tensor) -> None:
    """Raise DataError unless a file's tensors have the shape that its config says."""
    if found.shape != wanted.shape:
        raise DataError(
            f"{', '.join(tie.theirs)} must make {tuple(wanted.shape)}, as config.json says; "
            f"got {tuple(found.shape)}. Are both files of one model?"
        )
