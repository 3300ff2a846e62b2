"""Graphs of runs that write: the source, and one step of the decoder with its caches."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import torch
from torch import Tensor

from regard.attention import lengths
from regard.attention.key_value_cache import KeyValueCache
from regard.export.form import spelled, trained_with
from regard.export.graphs import Axes, Graph, TracedModel
from regard.inference import Predictor
from regard.models import Decoder, RnnSeq2Seq, Transformer
from regard.models.decoder import DecoderState
from regard.models.interfaces import SourceMemory
from regard.models.recurrent_attention import AttentionState
from regard.models.rnn_seq2seq import RnnState
from regard.models.transformer import TransformerState

# Values of options that are written down for recurrent translators.
_HELD_OF_RNN: Mapping[str, tuple[object, ...]] = {
    "attention": ("additive", "dot", "general"),
    "local": ("none",),
    "hard": (False,),
    "coverage": (False,),
    "copy": (False,),
}


def refuse_steps(predictor: Predictor) -> str | None:
    """Why a run's answers cannot be written step by step by graphs; None if they can."""
    model = predictor.model
    if isinstance(model, Transformer | Decoder):
        return None
    if not isinstance(model, RnnSeq2Seq):
        kind = predictor.recipe.model_type
        cure = trained_with("model.type", "transformer" if predictor.is_seq2seq else "decoder")
        return f"model.type = {kind!r} is none of transformer, decoder, rnn_seq2seq; {cure}"
    for name, held in _HELD_OF_RNN.items():
        if (value := getattr(model.config, name)) not in held:
            cure = trained_with(f"model.{name}", held[0])
            option = f"model.{name} = {spelled(value)}"
            return f"{option} of rnn_seq2seq is not written as a graph; {cure}"
    return None


def step_graphs(predictor: Predictor) -> list[Graph]:
    """The graphs of a run that ``refuse_steps`` does not refuse: of the input, and of a step."""
    model = predictor.model
    if isinstance(model, Decoder):
        return [_decoder_graph(model)]
    if isinstance(model, RnnSeq2Seq):
        return _rnn_graphs(model)
    assert isinstance(model, Transformer)
    return _transformer_graphs(model)


def _transformer_graphs(model: Transformer) -> list[Graph]:
    block = next(iter(model.decoder))
    assert block.cross_attend is not None
    layers, cache = len(model.decoder), block.empty_cache(1)
    source, token = {"source": Axes(("batch", "source"), torch.int64)}, _whole("token")
    memory = _caches("memory", layers, block.cross_attend.empty_cache(1), "source")
    if model.config.copy:
        memory["copying"] = Axes(("batch", "source", model.config.model_dim))
    past = _caches("past", layers, cache, "past")
    step = token | _whole("source_lengths") | past | memory
    return [
        Graph(
            name="encoder",
            model=TracedModel(model, _start),
            inputs=source | _whole("source_lengths"),
            outputs=memory,
        ),
        Graph(
            name="decoder_step",
            model=TracedModel(model, _step),
            inputs=step | (source if model.config.copy else {}),
            outputs=_log_probs(model) | _caches("present", layers, cache, "past+1"),
        ),
    ]


def _rnn_graphs(model: RnnSeq2Seq) -> list[Graph]:
    """The source read, whose last states are the first step's past; and a step."""
    with torch.no_grad():
        one = torch.ones(1, dtype=torch.int64)
        start = model.eval().start(one[None], one)
    assert isinstance(start.memory, SourceMemory)
    memory = {
        f"memory.{name}": Axes(("batch", "source", part.shape[2]))
        for name, part in (("keys", start.memory.keys), ("values", start.memory.values))
    }
    sizes = {f"{layer}.state": state.shape[1] for layer, state in enumerate(start.layers)}
    sizes |= {} if start.fed is None else {"fed": model.config.embed_dim}
    past, present = (
        {f"{name}.{state}": Axes(("batch", size)) for state, size in sizes.items()}
        for name in ("past", "present")
    )
    lengths = _whole("source_lengths")
    return [
        Graph(
            name="encoder",
            model=TracedModel(model, _rnn_start),
            inputs={"source": Axes(("batch", "source"), torch.int64)} | lengths,
            outputs=memory | past,
        ),
        Graph(
            name="decoder_step",
            model=TracedModel(model, _rnn_step),
            inputs=_whole("token") | lengths | memory | past,
            outputs=_log_probs(model) | present,
        ),
    ]


def _decoder_graph(model: Decoder) -> Graph:
    cache, layers = next(iter(model.layers)).empty_cache(1), len(model.layers)
    ids = {"ids": Axes(("batch", "length"), torch.int64)} | _whole("padding")
    return Graph(
        name="decoder_step",
        model=TracedModel(model, _read),
        inputs=ids | _caches("past", layers, cache, "past"),
        outputs=_log_probs(model) | _caches("present", layers, cache, "past+length"),
    )


def _whole(name: str) -> dict[str, Axes]:
    """One whole number for each row."""
    return {name: Axes(("batch",), torch.int64)}


def _log_probs(model: Transformer | RnnSeq2Seq | Decoder) -> dict[str, Axes]:
    return {"log_probs": Axes(("batch", len(model.output.weight)))}


def _start(model: Transformer, *inputs: Tensor) -> tuple[Tensor, ...]:
    state = model.start(*inputs)
    copying = () if state.copying is None else state.copying[:1]
    return (*_tensors(state.memory), *copying)


def _step(
    model: Transformer, token: Tensor, source_lengths: Tensor, *tensors: Tensor
) -> tuple[Tensor, ...]:
    size = 2 * len(model.decoder)
    past, memory, copying = tensors[:size], tensors[size : 2 * size], tensors[2 * size :]
    state = TransformerState(
        past=_to_caches(past),
        memory=_to_caches(memory),
        source_lengths=source_lengths,
        copying=(copying[0], copying[1]) if copying else None,
    )
    log_probs, after = model.step(token, state)
    return (log_probs, *_tensors(after.past))


def _rnn_start(model: RnnSeq2Seq, *inputs: Tensor) -> tuple[Tensor, ...]:
    state = model.start(*inputs)
    assert isinstance(state.memory, SourceMemory)
    return (state.memory.keys, state.memory.values, *_states(state))


def _rnn_step(
    model: RnnSeq2Seq,
    token: Tensor,
    source_lengths: Tensor,
    keys: Tensor,
    values: Tensor,
    *past: Tensor,
) -> tuple[Tensor, ...]:
    size = len(model.cells)
    state = RnnState(
        layers=tuple(past[:size]),
        memory=SourceMemory(keys, values, source_lengths, lengths(source_lengths)),
        attention=AttentionState(),
        fed=past[size] if len(past) > size else None,
    )
    log_probs, after = model.step(token, state)
    return (log_probs, *_states(after))


def _read(model: Decoder, ids: Tensor, padding: Tensor, *past: Tensor) -> tuple[Tensor, ...]:
    states, after = model.read(ids, DecoderState(_to_caches(past), padding))
    logits = model.project(states[:, -1])
    return (torch.log_softmax(logits.float(), dim=-1), *_tensors(after.past))


def _caches(name: str, layers: int, like: KeyValueCache, axis: str) -> dict[str, Axes]:
    """Keys and values of each layer's cache, by name."""
    return {
        f"{name}.{layer}.{part}": Axes(("batch", heads.shape[1], axis, heads.shape[3]))
        for layer in range(layers)
        for part, heads in (("key", like.key), ("value", like.value))
    }


def _tensors(caches: Iterable[KeyValueCache]) -> Iterator[Tensor]:
    for cache in caches:
        yield from (cache.key, cache.value)


def _states(state: RnnState) -> tuple[Tensor, ...]:
    return state.layers if state.fed is None else (*state.layers, state.fed)


def _to_caches(tensors: Sequence[Tensor]) -> tuple[KeyValueCache, ...]:
    return tuple(map(KeyValueCache, tensors[::2], tensors[1::2]))
