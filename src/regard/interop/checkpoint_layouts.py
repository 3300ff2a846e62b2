"""How the families of Hugging Face's checkpoints describe a model, and which of ours it is."""

from collections.abc import Iterator
from functools import partial

from torch import nn

from regard.config import JsonValue
from regard.interop.checkpoint_decoders import DECODERS
from regard.interop.checkpoint_names import Tie, bert
from regard.interop.checkpoint_seq2seq import SEQ2SEQ
from regard.interop.checkpoint_settings import Layout, Settings, Table, expect, size_of
from regard.models import EncoderConfig, MaskedLanguageModel

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


def _build_bert(table: Table) -> MaskedLanguageModel:
    pad_id = size_of(table, "pad_token_id")
    first = pad_id + 1 if table["model_type"] == "roberta" else 0
    most = size_of(table, "max_position_embeddings") - first
    config = _BERT.read({**table, "max_position_embeddings": most})
    return MaskedLanguageModel(config, vocab_size=size_of(table, "vocab_size"), pad_id=pad_id)


def _describe_bert(model: nn.Module, *, is_roberta: bool) -> dict[str, JsonValue]:
    model = expect(model, MaskedLanguageModel)
    config, pad_id = model.encoder.config, _paddingexpect(model)
    return {
        **_BERT.write(config),
        "vocab_size": len(model.bias),
        "hidden_act": "gelu",
        "max_position_embeddings": config.max_length + (pad_id + 1 if is_roberta else 0),
        "pad_token_id": pad_id,
    }


def _bert_ties(model: nn.Module, *, is_roberta: bool) -> Iterator[Tie]:
    model = expect(model, MaskedLanguageModel)
    return bert(
        model.encoder.config.num_layers,
        prefix="roberta." if is_roberta else "bert.",
        offset=_paddingexpect(model) + 1 if is_roberta else 0,
        is_roberta=is_roberta,
    )


def _paddingexpect(model: MaskedLanguageModel) -> int:
    pad_id = model.encoder.embedding.pad_id
    assert pad_id is not None
    return pad_id


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
    **DECODERS,
    **SEQ2SEQ,
}
