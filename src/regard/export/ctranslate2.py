"""CTranslate2's model folder: a Transformer's weights as it lays them out.

Its ``specs``, https://opennmt.net/CTranslate2, name every weight and option of a model; there is no
place for others.
"""

from collections.abc import Iterable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float32
from torch import Tensor, nn

from regard.attention.scores import Dot
from regard.errors import SettingError
from regard.export.form import (
    PROGRAM,
    ExportForm,
    reading,
    run_program,
    search_differences,
    sides,
    spelled,
    trained_with,
)
from regard.files import fill_file
from regard.inference import Predictor
from regard.layers import MultiHeadAttention, RelativePositions, TokenEmbedding
from regard.layers.block import GATED, BlockStack, TransformerBlock
from regard.layers.positions import LearnedPositions, SinusoidalPositions
from regard.models import Decoder, DecoderConfig, Transformer, TransformerConfig
from regard.runs import Run
from regard.runs.files import new_folder
from regard.tasks import SequenceTask
from regard.tasks.running_text.language_modelling import LanguageModelling
from regard.text import BOS_ID, EOS_ID, PAD_ID, UNK_ID
from regard.text.tokenizers.pieces import RESERVED

if TYPE_CHECKING:
    from ctranslate2.specs import LayerSpec, ModelSpec

# Options of which every value is held, since sizes and weights say it.
_HELD = {
    *("model_dim", "num_heads", "num_key_heads", "ffn_dim", "max_length", "norm", "norm_eps"),
    *("num_layers", "num_encoder_layers", "num_decoder_layers"),
    *("dropout", "attention_dropout", "head_dropout"),
    *("tie_embeddings", "scale_embeddings", "embedding_norm", "own_positions", "output_bias"),
}
_ACTIVATIONS = {
    "relu": "RELU",
    "gelu": "GELU",
    "gelu_tanh": "GELUTanh",
    "silu": "SWISH",
    "swiglu": "SWISH",
}
# Options of which some values are held; of all others it is the one that they have by default.
_PARTLY_HELD: dict[str, tuple[str, ...]] = {
    "norm_kind": ("layer", "rms"),
    "activation": tuple(_ACTIVATIONS),
    "score": ("scaled_dot", "dot"),
    "positions": ("sinusoidal", "learned", "rotary", "relative", "t5", "none"),
}
_DECODERS_POSITIONS = ("sinusoidal", "learned", "rotary", "alibi")
# Its longest source, unless it is given another: positions that nothing distinguishes.
_PLACES = 1024


def unheld(config: TransformerConfig | DecoderConfig) -> str | None:
    """The first option without a place in CTranslate2, as a recipe spells it, or None."""
    held: dict[str, tuple[object, ...]] = {**_PARTLY_HELD}
    if isinstance(config, DecoderConfig):
        held["positions"] = _DECODERS_POSITIONS
    elif config.positions == "relative":  # its vectors of distances are scaled as the score is
        held["score"] = ("scaled_dot",)
    for field in fields(config):
        value = getattr(config, field.name)
        values = held.get(field.name, (field.default,))
        if field.name not in _HELD and value not in values:
            cure = trained_with(f"model.{field.name}", values[0])
            return f"model.{field.name} = {spelled(value)}; {cure}"
    return None


def vocabularies(*tables: Sequence[str]) -> list[list[str]]:
    """Vocabularies in which the reserved ids have the same names, which no other id has."""
    taken = {name for table in tables for name in table[len(RESERVED) :]}
    reserved = [_free(name, taken) for name in RESERVED]
    return [[*reserved, *table[len(RESERVED) :]] for table in tables]


def translator_spec(
    model: Transformer, source: Sequence[str], target: Sequence[str], *, source_end: bool
) -> "ModelSpec":
    """An encoder-decoder for CTranslate2; weights are copied, and each id has its name."""
    specs, config = _specs(), model.config
    options = _options(model.encoder, config)
    encoder = specs.TransformerEncoderSpec(len(model.encoder), config.num_heads, **options)
    decoder = specs.TransformerDecoderSpec(len(model.decoder), config.num_heads, **options)
    _fill_embedding(encoder, model.source_embedding, model.positions)
    _fill_layers(encoder, model.encoder, model.encoder_norm)
    _fill_embedding(decoder, model.target_embedding, model.target_positions or model.positions)
    _fill_layers(decoder, model.decoder, model.decoder_norm)
    _fill_linear(decoder.projection, model.output.weight, model.output_bias)
    if config.embedding_norm:
        _fill_norm(encoder.layernorm_embedding, model.source_norm)
        _fill_norm(decoder.layernorm_embedding, model.target_norm)
    if config.positions == "t5":
        _fill_distances(encoder, model.encoder_bias)
        _fill_distances(decoder, model.decoder_bias)
    spec = specs.TransformerSpec(encoder, decoder)
    source, target = vocabularies(source, target)
    spec.register_source_vocabulary(source)
    spec.register_target_vocabulary(target)
    spec.config.decoder_start_token = target[BOS_ID]
    spec.config.add_source_eos = source_end
    return _named(spec, target, model.encoder)


def language_model_spec(model: Decoder, names: Sequence[str]) -> "ModelSpec":
    """A decoder-only model for CTranslate2; weights are copied, and each id has its name."""
    specs, config = _specs(), model.config
    options = _options(model.layers, config)
    decoder = specs.TransformerDecoderSpec(
        len(model.layers),
        config.num_heads,
        with_encoder_attention=False,
        alibi=config.positions == "alibi",
        **options,
    )
    _fill_embedding(decoder, model.embedding, model.positions)
    _fill_layers(decoder, model.layers, model.norm)
    _fill_linear(decoder.projection, model.output.weight, None)
    spec = specs.TransformerDecoderModelSpec(decoder)
    (vocabulary,) = vocabularies(names)
    spec.register_vocabulary(vocabulary)
    return _named(spec, vocabulary, model.layers)


def _options(blocks: BlockStack, config: TransformerConfig | DecoderConfig) -> dict[str, Any]:
    attend = next(iter(blocks)).attend
    assert attend is not None
    return {
        "pre_norm": config.norm == "pre",
        "activation": getattr(_specs().Activation, _ACTIVATIONS[config.activation]),
        "layernorm_embedding": getattr(config, "embedding_norm", False),
        "relative_position": config.positions == "relative",
        "relative_attention_bias": config.positions == "t5",
        "ffn_glu": config.activation in GATED,
        "rms_norm": config.norm_kind == "rms",
        "num_heads_kv": attend.num_key_heads,
        "rotary_dim": None if attend.rotary is None else 0,  # which is all there are
    }


def _fill_embedding(
    spec: "LayerSpec",
    table: TokenEmbedding,
    positions: SinusoidalPositions | LearnedPositions | None,
) -> None:
    """Fill in the embeddings of an encoder or a decoder."""
    embeddings = spec.embeddings[0] if isinstance(spec.embeddings, list) else spec.embeddings
    embeddings.weight = _array(table.weight)
    spec.scale_embeddings = table.scale != 1
    if hasattr(spec, "position_encodings"):
        spec.position_encodings.encodings = (
            np.zeros((_PLACES, table.weight.shape[1]), np.float32)
            if positions is None
            else _array(positions.table)
        )


def _fill_layers(spec: "LayerSpec", blocks: BlockStack, norm: nn.Module) -> None:
    """All layers, and the norm that ends them if there is one."""
    for layer, block in zip(spec.layer, blocks, strict=True):
        _fill_block(layer, block)
    if not isinstance(norm, nn.Identity):
        _fill_norm(spec.layer_norm, norm)


def _fill_block(spec: "LayerSpec", block: TransformerBlock) -> None:
    _fill_attention(spec.self_attention, block.attend)
    _fill_norm(spec.self_attention.layer_norm, block.attend_residual.norm)
    if block.distances is not None:
        assert block.distances.value_table is not None
        spec.self_attention.relative_position_keys = _array(block.distances.key_table)
        spec.self_attention.relative_position_values = _array(block.distances.value_table)
    if block.cross_attend is not None and block.cross_attend_residual is not None:
        _fill_attention(spec.attention, block.cross_attend)
        _fill_norm(spec.attention.layer_norm, block.cross_attend_residual.norm)
    inner, outer, feed = block.feed.inner, block.feed.outer, spec.ffn
    if hasattr(feed, "linear_0_noact"):  # the gate, which has the activation, and the gated values
        (gate, value), (gate_bias, value_bias) = inner.weight.chunk(2), inner.bias.chunk(2)
        _fill_linear(feed.linear_0, gate, gate_bias)
        _fill_linear(feed.linear_0_noact, value, value_bias)
    else:
        _fill_linear(feed.linear_0, inner.weight, inner.bias)
    _fill_linear(feed.linear_1, outer.weight, outer.bias)
    _fill_norm(feed.layer_norm, block.feed_residual.norm)


def _fill_attention(spec: "LayerSpec", attention: MultiHeadAttention) -> None:
    joint = attention.query_key_value
    made = (attention.query, attention.key_value) if joint is None else (joint,)
    for into, linear in zip(spec.linear, (*made, attention.output), strict=True):
        assert isinstance(linear, nn.Linear)
        _fill_linear(into, linear.weight, linear.bias)
    if isinstance(attention.score, Dot):
        spec.queries_scale = 1.0


def _fill_distances(spec: "LayerSpec", positions: RelativePositions) -> None:
    """T5's table, which its layers share."""
    for layer in spec.layer:
        layer.self_attention.relative_attention_bias = _array(positions.table)
        layer.self_attention.relative_attention_max_distance = np.int32(positions.max_distance)


def _fill_linear(spec: "LayerSpec", weight: Tensor, bias: Tensor | None) -> None:
    spec.weight = _array(weight)
    if bias is not None:
        spec.bias = _array(bias)


def _fill_norm(spec: "LayerSpec", norm: nn.Module) -> None:
    assert isinstance(norm, nn.LayerNorm | nn.RMSNorm)
    spec.gamma = _array(norm.weight)
    if isinstance(norm, nn.LayerNorm):
        spec.beta = _array(norm.bias)


def _named(spec: "ModelSpec", names: Sequence[str], blocks: BlockStack) -> "ModelSpec":
    """Name the reserved ids in the spec's settings, and set the epsilon of its norms."""
    config = spec.config
    config.unk_token, config.bos_token, config.eos_token = (
        names[token_id] for token_id in (UNK_ID, BOS_ID, EOS_ID)
    )
    config.layer_norm_epsilon = next(iter(blocks)).attend_residual.norm.eps
    return spec


def _array(weight: Tensor) -> Float32[np.ndarray, "..."]:
    """A copy, as quantising changes arrays in place."""
    return weight.detach().cpu().float().numpy().copy()


def _free(name: str, taken: Iterable[str]) -> str:
    return _free(f"<{name}>", taken) if name in taken else name


def _specs() -> Any:
    try:
        from ctranslate2 import specs
    except ImportError as error:
        raise SettingError(
            "ctranslate2 must be installed to export to it; got none. "
            "Install it: pip install 'regard[export]'."
        ) from error
    return specs


_NEEDS = '"ctranslate2==4.8.*" sentencepiece'
_TRANSLATE = """

def vocabulary(side):
    shared = Path("shared_vocabulary.json")
    file = shared if shared.exists() else Path(f"{{side}}_vocabulary.json")
    return json.loads(file.read_text("utf-8"))


def score(found):
    tokens, log_prob = found
    return log_prob / ((6 + len(tokens)) / 6) ** {penalty}


import ctranslate2

(encode, _), (_, decode) = reader("{source}"), reader("{target}")
source, target = vocabulary("source"), vocabulary("target")
numbers = {{name: number for number, name in enumerate(target)}}
translator = ctranslate2.Translator(".")
lines = [encode(line) for line in sys.stdin]
answers = {{}}
for size in {{len(ids) for ids in lines if ids}}:  # nothing to read, nothing to write
    indices = [index for index, ids in enumerate(lines) if len(ids) == size]
    found = translator.translate_batch(
        [[source[number] for number in lines[index]] for index in indices],
        beam_size={beam},
        num_hypotheses={beam},
        min_decoding_length={least},
        max_decoding_length=max(int((size + {after}) * {ratio}) + 10, {least} + 1),
        length_penalty=1e-9,
        return_scores=True,
        disable_unk=True,
        max_batch_size=32,
    )
    answers |= dict(zip(indices, found))
for index in range(len(lines)):
    tokens = []
    if index in answers:
        found = answers[index]
        tokens, _ = max(zip(found.hypotheses, found.scores), key=score)
    print(decode([numbers[token] for token in tokens]))
"""
_CONTINUE = """

import ctranslate2

encode, decode = reader("text")
names = json.loads(Path("vocabulary.json").read_text("utf-8"))
generator = ctranslate2.Generator(".")
for line in sys.stdin:
    lines = [encode(line)]
    (found,) = generator.generate_batch(
        [[names[3], *(names[number] for number in lines[0])]],
        max_length={longest},
        sampling_topk=1,
        end_token=names[{end}],
        include_prompt_in_result=False,
    )
    for number in found.sequences_ids[0]:  # 3 ends a line
        lines.append([]) if number == 3 else lines[-1].append(number)
    print("\\n".join(map(decode, lines)))
"""
_TRAINED = "; train it with --set model.type=transformer"


class CTranslate2(ExportForm):
    """A Transformer that translates or continues texts, for CTranslate2."""

    purpose = "a CTranslate2 model folder, for Transformers that translate or continue texts"
    precisions = ("float32", "float16", "int8")

    def refuse(self, predictor: Predictor) -> str | None:
        model, recipe = predictor.model, predictor.recipe
        if not isinstance(model, Transformer | Decoder):
            return (
                "CTranslate2 is for Transformers that write, model.type = 'transformer' or "
                f"'decoder', and it is {recipe.model_type!r} of {recipe.task}"
                f"{_TRAINED * predictor.is_seq2seq}"
            )
        option = unheld(model.config)
        return None if option is None else f"CTranslate2 has no place for {option}"

    def usage(self, predictor: Predictor, name: str) -> str:
        task, decoding = predictor.task, predictor.decoding
        differences = search_differences(predictor)
        if isinstance(task, LanguageModelling):
            if decoding.method == "beam" and decoding.beam_size > 1:
                width = decoding.beam_size
                differences.insert(0, f"the run has a beam of {width}, and the program of 1;")
            most = task.data.context // 2
            if decoding.max_tokens > most:
                differences.insert(0, f"it writes up to {most} tokens, and regard further windows;")
        return run_program(needs=_NEEDS, differences=differences)

    def write(self, run: Run, predictor: Predictor, out: Path, *, readme: str) -> None:
        model, task = predictor.model, predictor.task
        if isinstance(model, Transformer):
            assert isinstance(task, SequenceTask)
            source, target = task.tokenizer.source.names, task.tokenizer.target.names
            spec = translator_spec(model, source, target, source_end=task.data.source_end)
        else:
            assert isinstance(model, Decoder)
            assert isinstance(task, LanguageModelling)
            spec = language_model_spec(model, task.tokenizer.names)
        spec.validate()
        spec.optimize(quantization=self.precision)
        with new_folder(out) as folder:
            spec.save(str(folder))
            task.save(folder / "tokenizer")
            fill_file(folder / PROGRAM, _program(predictor).encode())
            fill_file(folder / "README.md", readme.encode())


def _program(predictor: Predictor) -> str:
    """The program that answers by CTranslate2 as the run does."""
    task, decoding = predictor.task, predictor.decoding
    if isinstance(task, LanguageModelling):
        main = _CONTINUE.format(
            longest=min(decoding.max_tokens, task.data.context // 2),
            end=EOS_ID if decoding.one_line else PAD_ID,
        )
        return reading(task.tokenizer) + main
    assert isinstance(task, SequenceTask)
    source, target = sides(task.tokenizer)
    main = _TRANSLATE.format(
        source=source,
        target=target,
        beam=decoding.beam_size if decoding.method == "beam" else 1,
        least=decoding.min_length,
        ratio=decoding.max_ratio,
        after=int(getattr(task.data, "source_end", True)),
        penalty=decoding.length_penalty,
    )
    return reading(task.tokenizer.source) + main
