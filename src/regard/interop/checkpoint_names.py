"""Parameter names of checkpoints, by layout, for each of our parameters."""

from collections.abc import Iterable, Iterator, Mapping
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
        sizes: How many rows each of theirs has; none where they have as many.
        order: The place among our rows of each of theirs; None where they stand alike.
    """

    ours: str
    theirs: tuple[str, ...]
    is_turned: bool = False
    offset: int = 0
    has_axis: bool = False
    sizes: tuple[int, ...] = ()
    order: Tensor | None = None

    def take(self, tensors: dict[str, Tensor]) -> Tensor:
        """Our parameter from their tensors."""
        parts = [tensors[name] for name in self.theirs]
        parts = [part.T if self.is_turned else part for part in parts]
        whole = torch.cat(parts) if len(parts) > 1 else parts[0]
        if self.order is not None and len(whole) == len(self.order):
            whole = whole[self.order.argsort()]
        return (whole[0] if self.has_axis else whole)[self.offset :]

    def give(self, parameter: Tensor) -> dict[str, Tensor]:
        """Their tensors from our parameter."""
        padding = parameter.new_zeros(self.offset, *parameter.shape[1:])
        whole = torch.cat([padding, parameter]) if self.offset else parameter
        whole = whole if self.order is None else whole[self.order]
        whole = whole[None] if self.has_axis else whole
        sizes = self.sizes or [len(whole) // len(self.theirs)] * len(self.theirs)
        parts: tuple[Tensor, ...] = torch.split(whole, list(sizes))
        parts = tuple(part.T if self.is_turned else part for part in parts)
        return {
            name: part.clone(memory_format=torch.contiguous_format)
            for name, part in zip(self.theirs, parts, strict=True)
        }


def bert(num_layers: int, *, ours: str, theirs: str, offset: int) -> Iterator[Tie]:
    """BERT's names of an encoder, and RoBERTa's.

    Args:
        num_layers: How many layers it has.
        ours: What our names of it begin with.
        theirs: What theirs begin with.
        offset: How many rows stand before the first of the positions.
    """
    table = f"{theirs}embeddings."
    yield Tie(f"{ours}embedding.weight", (f"{table}word_embeddings.weight",))
    yield Tie(f"{ours}positions.table", (f"{table}position_embeddings.weight",), offset=offset)
    yield Tie(f"{ours}segments", (f"{table}token_type_embeddings.weight",))
    yield from _both(f"{ours}embedding_norm", f"{table}LayerNorm")
    for layer in range(num_layers):
        inner, outer = f"{ours}layers.{layer}.", f"{theirs}encoder.layer.{layer}."
        own = [f"{outer}attention.self.{name}" for name in ("query", "key", "value")]
        yield from _both(f"{inner}attend.query_key_value", *own)
        yield from _both(f"{inner}attend.output", f"{outer}attention.output.dense")
        yield from _both(f"{inner}attend_residual.norm", f"{outer}attention.output.LayerNorm")
        yield from _both(f"{inner}feed.inner", f"{outer}intermediate.dense")
        yield from _both(f"{inner}feed.outer", f"{outer}output.dense")
        yield from _both(f"{inner}feed_residual.norm", f"{outer}output.LayerNorm")


def bert_words(prefix: str) -> Iterator[Tie]:
    """BERT's names of what guesses words, and whether a sentence follows another."""
    yield from _both("transform", "cls.predictions.transform.dense")
    yield from _both("norm", "cls.predictions.transform.LayerNorm")
    yield Tie("bias", ("cls.predictions.bias",))
    yield from _both("pooler", f"{prefix}pooler.dense")
    yield from _both("next_sentence", "cls.seq_relationship")


def roberta_words() -> Iterator[Tie]:
    """RoBERTa's names of what guesses words."""
    yield from _both("transform", "lm_head.dense")
    yield from _both("norm", "lm_head.layer_norm")
    yield Tie("bias", ("lm_head.bias",))


def bert_heads(prefix: str) -> Iterator[Tie]:
    """BERT's names of what gives a label to a text, or to each token."""
    yield from _both("pooler", f"{prefix}pooler.dense")
    yield from _both("output", "classifier")


def gpt2(num_layers: int, *, prefix: str) -> Iterator[Tie]:
    """GPT-2's names; its matrices are stored input first."""
    yield Tie("embedding.weight", (f"{prefix}wte.weight",))
    yield Tie("output.weight", ("lm_head.weight",))
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


def gpt_neox(num_layers: int, *, heads: int, head_dim: int) -> Iterator[Tie]:
    """GPT-NeoX's names; queries, keys and values of a head stand together, turned by halves."""
    yield Tie("embedding.weight", ("gpt_neox.embed_in.weight",))
    yield Tie("output.weight", ("embed_out.weight",))
    query, key, value = _heads_by_halves(heads, heads, head_dim).view(3, heads, head_dim)
    order = torch.stack([query, key, value], dim=1).flatten()
    pairs = {
        "attend_residual.norm": "input_layernorm",
        "attend.query_key_value": "attention.query_key_value",
        "attend.output": "attention.dense",
        "feed_residual.norm": "post_attention_layernorm",
        "feed.inner": "mlp.dense_h_to_4h",
        "feed.outer": "mlp.dense_4h_to_h",
    }
    for layer in range(num_layers):
        for ours, theirs in pairs.items():
            for tie in _both(f"layers.{layer}.{ours}", f"gpt_neox.layers.{layer}.{theirs}"):
                yield replace(tie, order=order) if "query_key_value" in ours else tie
    yield from _both("norm", "gpt_neox.final_layer_norm")


def llama(num_layers: int, *, heads: int, key_heads: int, head_dim: int) -> Iterator[Tie]:
    """Llama's names; queries and keys are turned by halves, and norms have no bias."""
    yield Tie("embedding.weight", ("model.embed_tokens.weight",))
    yield Tie("output.weight", ("lm_head.weight",))
    order = _heads_by_halves(heads, key_heads, head_dim)
    sizes = tuple(count * head_dim for count in (heads, key_heads, key_heads))
    for layer in range(num_layers):
        ours, theirs = f"layers.{layer}.", f"model.layers.{layer}."
        own = [f"{theirs}self_attn.{name}_proj" for name in ("q", "k", "v")]
        for tie in _both(f"{ours}attend.query_key_value", *own):
            yield replace(tie, order=order, sizes=sizes)
        yield from _both(f"{ours}attend.output", f"{theirs}self_attn.o_proj")
        gates = [f"{theirs}mlp.{name}_proj" for name in ("gate", "up")]
        yield from _both(f"{ours}feed.inner", *gates)
        yield from _both(f"{ours}feed.outer", f"{theirs}mlp.down_proj")
        for name, norm in (("attend", "input"), ("feed", "post_attention")):
            weight = f"{theirs}{norm}_layernorm.weight"
            yield Tie(f"{ours}{name}_residual.norm.weight", (weight,))
    yield Tie("norm.weight", ("model.norm.weight",))


def _heads_by_halves(heads: int, key_heads: int, head_dim: int) -> Tensor:
    """Our rows of queries, keys and values, with the two of a turned pair half a head apart.

    Ours stand side by side; values are not turned.
    """
    inside = torch.arange(head_dim).view(-1, 2).T.flatten()  # 0 2 4 … 1 3 5 …
    turned = (heads + key_heads) * head_dim
    firsts = torch.arange(0, turned, head_dim)
    return torch.cat(
        [(firsts[:, None] + inside).flatten(), torch.arange(turned, turned + key_heads * head_dim)]
    )


# Our tables of a Transformer, and BART's names of them.
_TABLES = {
    "all": ("target_embedding.weight", "model.shared.weight"),
    "source": ("source_embedding.weight", "model.encoder.embed_tokens.weight"),
    "target": ("target_embedding.weight", "model.decoder.embed_tokens.weight"),
    "last": ("output.weight", "lm_head.weight"),
}


def bart(
    num_encoder_layers: int,
    num_decoder_layers: int,
    *,
    tables: Iterable[str],
    embedding_norm: bool,
    final_norm: bool,
    positions: Mapping[str, str],
    offset: int,
) -> Iterator[Tie]:
    """BART's names, and those of its relatives.

    Args:
        num_encoder_layers: How many layers read.
        num_decoder_layers: How many write.
        tables: Which it has: ``all``, or ``source``, ``target`` and ``last``.
        embedding_norm: Whether embeddings are normed.
        final_norm: Whether a norm ends each side.
        positions: Our table of each side's positions, of those that are in files.
        offset: How many rows stand before their first.
    """
    for name in tables:
        ours, theirs = _TABLES[name]
        yield Tie(ours, (theirs,))
    yield Tie("output_bias", ("final_logits_bias",), has_axis=True)
    sides = {"encoder": num_encoder_layers, "decoder": num_decoder_layers}
    for side, count in sides.items():
        if side in positions:
            theirs = f"model.{side}.embed_positions.weight"
            yield Tie(positions[side], (theirs,), offset=offset)
        if embedding_norm:
            norm = "source_norm" if side == "encoder" else "target_norm"
            yield from _both(norm, f"model.{side}.layernorm_embedding")
        for layer in range(count):
            yield from _bart_layer(f"{side}.{layer}.", f"model.{side}.layers.{layer}.", side)
        if final_norm:
            yield from _both(f"{side}_norm", f"model.{side}.layer_norm")


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
