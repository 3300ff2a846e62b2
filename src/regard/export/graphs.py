"""Graphs of a run: functions of tensors, with their inputs, outputs and dynamic sizes.

They are traced with the formula of attention in them, so that they need nothing of regard.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import torch
from jaxtyping import Shaped
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram

from regard.attention import lengths
from regard.attention.attend import KeyValueCache
from regard.attention.graph.formula import written_out
from regard.export.form import trained_with
from regard.inference import Predictor
from regard.models import (
    BagReader,
    Classifier,
    ConvReader,
    Decoder,
    Encoder,
    LanguageModel,
    MaskedLanguageModel,
    MultipleChoice,
    RecurrentReader,
    RnnSeq2Seq,
    RnnState,
    SpanFinder,
    Tagger,
    Transformer,
    VisionTransformer,
)
from regard.models.decoder import DecoderState
from regard.models.decoding_state import SourceMemory
from regard.models.recurrent_attention import AttentionState
from regard.models.transformer import TransformerState
from regard.tasks import TASKS
from regard.tasks.image_classification import ImageClassification
from regard.tasks.tagging import Tagging
from regard.tasks.text_pairs import FEATURES, pair_model
from regard.tasks.word_parts import reads_parts

# Sizes to trace with: all different, so that no axis is taken for another.
_SIZES = {"batch": 2, "length": 3, "past": 4, "words": 5, "source": 6, "choices": 7, "parts": 8}
# Values of options that are written down for recurrent translators.
_HELD_OF_RNN: Mapping[str, tuple[object, ...]] = {
    "attention": ("additive", "dot", "general"),
    "local": ("none",),
    "hard": (False,),
    "coverage": (False,),
    "copy": (False,),
}
_HEADS = (Classifier, MaskedLanguageModel, MultipleChoice, SpanFinder, Tagger)
_READERS = (BagReader, ConvReader, Encoder)
_MEANINGS = {
    "ids": "token ids; rows are padded with 0 on the right",
    "lengths": "how many of a row's ids are real, at least one",
    "segments": "0 up to the end of the first text of a row, 1 after it",
    "features": f"what of each token stands in the other text, 0 to 1: {', '.join(FEATURES)}",
    "parts": "ids of the parts of each word, padded with 0",
    "places": "which id of a row is the first of each word",
    "aspects": "the number of the aspect, 0 for none",
    "pictures": "channels, rows and columns of each, in the numbers of the data",
    "source": "token ids of the source, padded with 0 on the right",
    "source_lengths": "how many of a row's source ids are real",
    "token": "the last token that was written; at first 2",
    "padding": "how many ids of a row's past and its ids are padding, on the left; 0 without",
    "log_probs": "log-probabilities of the next token",
    "logits": "logits",
    "start": "logits of the answer's first token, −∞ in padding",
    "end": "logits of the answer's last token, −∞ in padding",
}


class Axes(NamedTuple):
    """Shape and dtype of a graph's tensor.

    Attributes:
        shape: The name of each axis that is open, the size of each that is not.
        dtype: What it holds.
    """

    shape: tuple[str | int, ...]
    dtype: torch.dtype = torch.float32

    def example(self) -> Shaped[Tensor, "..."]:
        """A tensor of ones like it."""
        sizes = [_SIZES[axis] if isinstance(axis, str) else axis for axis in self.shape]
        return torch.ones(sizes, dtype=self.dtype)

    @property
    def open(self) -> dict[int, str]:
        """The names of the open axes, by their places."""
        return {place: axis for place, axis in enumerate(self.shape) if isinstance(axis, str)}

    def __str__(self) -> str:
        return f"{str(self.dtype).removeprefix('torch.')} {' × '.join(map(str, self.shape))}"


@dataclass(frozen=True, kw_only=True)
class Graph:
    """A model, or a part of it, as a function of tensors.

    Attributes:
        name: What it is called among those of a run.
        model: Takes the inputs one after the other, and gives the outputs as a tuple.
        inputs: What goes in, by name.
        outputs: What comes out, by name.
    """

    name: str
    model: nn.Module
    inputs: Mapping[str, Axes]
    outputs: Mapping[str, Axes]

    def traced(self) -> ExportedProgram:
        """A program of torch's own operations, for all open sizes."""
        examples = tuple(axes.example() for axes in self.inputs.values())
        sizes = tuple(dict.fromkeys(axes.open, Dim.DYNAMIC) for axes in self.inputs.values())
        with torch.no_grad(), written_out():
            program = torch.export.export(self.model.eval(), examples, dynamic_shapes=(sizes,))
        for node in program.graph.nodes:
            node.meta.pop("stack_trace", None)  # paths of this machine
        return program

    def told(self) -> str:
        """Inputs and outputs in Markdown."""
        parts = [f"`{self.name}`"]
        for title, tensors in (("takes", self.inputs), ("gives", self.outputs)):
            parts += [f"\n{title}\n"]
            parts += [_told(name, axes) for name, axes in tensors.items()]
        return "\n".join(parts)


def refuse_head(predictor: Predictor, *, may_recur: bool = False) -> str | None:
    """Why a run's answers are not those of one graph, by the option of its recipe; None if so.

    Args:
        predictor: What the run holds.
        may_recur: Whether the graph may have operators that read token by token.
    """
    recipe, model = predictor.recipe, predictor.model
    if predictor.is_seq2seq or isinstance(model, LanguageModel):
        return f"task = {recipe.task!r} writes its answers token by token"
    if isinstance(model, VisionTransformer):
        return None
    if not isinstance(model, _HEADS):
        cure = trained_with("model.type", "transformer")
        return (
            f"model.type = {recipe.model_type!r} is none of bag, convolutional, transformer; {cure}"
        )
    readers = (*_READERS, RecurrentReader) if may_recur else _READERS
    if (reader := _reader_of(model)) is not None and not isinstance(reader, readers):
        cure = trained_with("model.type", "transformer")
        return f"model.type = {recipe.model_type!r} reads a text token by token; {cure}"
    if getattr(recipe.model, "parts", "none") == "lstm" and not may_recur:
        cure = trained_with("model.parts", "convolution")
        return f"model.parts = 'lstm' reads a word part by part; {cure}"
    if isinstance(model, Tagger) and model.crf is not None:
        cure = trained_with("head.crf", False)
        return f"head.crf = true searches for the best tags token by token; {cure}"
    return None


def head_graph(predictor: Predictor) -> Graph:
    """The graph of a run that ``refuse_head`` does not refuse: ids, or pictures, in, logits out."""
    model = predictor.model
    if isinstance(model, VisionTransformer):
        return _picture_graph(model, cast(ImageClassification, predictor.task))
    row = ("batch", "choices") if isinstance(model, MultipleChoice) else ("batch",)
    whole = torch.int64
    inputs = {"ids": Axes((*row, "length"), whole), "lengths": Axes(row, whole)}
    inputs |= {name: Axes((*row, *axes.shape), axes.dtype) for name, axes in _reading(predictor)}
    if isinstance(predictor.task, Tagging) and predictor.task.tokenizer is not None:
        inputs["places"] = Axes(("batch", "words"), whole)
    if isinstance(model, Classifier) and model.pooling.name == "aspect":
        inputs["aspects"] = Axes(("batch",), whole)
    return Graph(
        name="model",
        model=_Head(model, list(inputs)),
        inputs=inputs,
        outputs=_outputs(model, inputs),
    )


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
            written = str(value).lower() if isinstance(value, bool) else repr(value)
            cure = trained_with(f"model.{name}", held[0])
            return f"model.{name} = {written} of rnn_seq2seq is not written as a graph; {cure}"
    return None


def step_graphs(predictor: Predictor) -> list[Graph]:
    """The graphs of a run that ``refuse_steps`` does not refuse: what is read, and a step."""
    model = predictor.model
    if isinstance(model, Decoder):
        return [_decoder_graph(model)]
    if isinstance(model, RnnSeq2Seq):
        return _rnn_graphs(model)
    assert isinstance(model, Transformer)
    return _transformer_graphs(model)


def _reader_of(model: nn.Module) -> nn.Module | None:
    head = model.score if isinstance(model, MultipleChoice) else model
    return cast("nn.Module | None", getattr(head, "reader", None))


def _reading(predictor: Predictor) -> Iterator[tuple[str, Axes]]:
    """Further inputs of the reader, for each row."""
    recipe = predictor.recipe
    is_beside = TASKS[recipe.task].beside
    if is_beside and pair_model(recipe).reads_features:
        yield "features", Axes(("length", len(FEATURES)))
    asks = is_beside or getattr(recipe.data, "next_sentence", False)
    if asks and getattr(recipe.model, "num_segments", 0) > 1:
        yield "segments", Axes(("length",), torch.int64)
    if reads_parts(recipe.model):
        yield "parts", Axes(("length", "parts"), torch.int64)


def _outputs(model: nn.Module, inputs: Mapping[str, Axes]) -> dict[str, Axes]:
    if isinstance(model, SpanFinder):
        return {"start": Axes(("batch", "length")), "end": Axes(("batch", "length"))}
    if isinstance(model, MultipleChoice):
        return {"logits": Axes(("batch", "choices"))}
    if isinstance(model, MaskedLanguageModel):
        return {"logits": Axes(("batch", "length", len(model.bias)))}
    count = cast(nn.Linear, model.output).out_features
    if isinstance(model, Tagger):
        return {"logits": Axes(("batch", "words" if "places" in inputs else "length", count))}
    return {"logits": Axes(("batch", count))}


def _picture_graph(model: VisionTransformer, task: ImageClassification) -> Graph:
    rows, columns = (side * model.patches.patch for side in model.patches.grid)
    shape = ("batch", model.patches.weight.shape[1], rows, columns)
    return Graph(
        name="model",
        model=_Picture(model, task.mean, task.deviation),
        inputs={"pictures": Axes(shape)},
        outputs=_outputs(model, {}),
    )


class _Picture(nn.Module):
    """Pictures as they come, which the task scales."""

    def __init__(self, model: VisionTransformer, mean: float, deviation: float) -> None:
        super().__init__()
        self.model, self.mean, self.deviation = model, mean, deviation

    def forward(self, *given: Tensor) -> tuple[Tensor, ...]:
        (pictures,) = given
        return (self.model((pictures - self.mean) / self.deviation),)


class _Head(nn.Module):
    def __init__(self, model: nn.Module, names: Sequence[str]) -> None:
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *given: Tensor) -> tuple[Tensor, ...]:
        found = self.model(**dict(zip(self.names, given, strict=True)))
        if isinstance(self.model, MaskedLanguageModel):
            found = self.model.project(found)
        return found if isinstance(found, tuple) else (found,)


def _transformer_graphs(model: Transformer) -> list[Graph]:
    block = next(iter(model.decoder))
    assert block.look is not None
    layers, whole = len(model.decoder), torch.int64
    lengths = {"source_lengths": Axes(("batch",), whole)}
    memory = _caches("memory", layers, block.look.empty_cache(1), "source")
    if model.config.copy:
        memory["copying"] = Axes(("batch", "source", model.config.model_dim))
    source = {"source": Axes(("batch", "source"), whole)}
    kept = block.empty_cache(1)
    past = _caches("past", layers, kept, "past")
    said = {"log_probs": Axes(("batch", len(model.output.weight)))}
    return [
        Graph(name="encoder", model=_Start(model), inputs=source | lengths, outputs=memory),
        Graph(
            name="decoder_step",
            model=_Step(model),
            inputs={"token": Axes(("batch",), whole)}
            | lengths
            | past
            | memory
            | (source if model.config.copy else {}),
            outputs=said | _caches("present", layers, kept, "past+1"),
        ),
    ]


def _rnn_graphs(model: RnnSeq2Seq) -> list[Graph]:
    """The source read, whose last states are the first step's past; and a step."""
    whole, width = torch.int64, model.config.embed_dim
    ids = {"source": Axes(("batch", "source"), whole)}
    lengths = {"source_lengths": Axes(("batch",), whole)}
    with torch.no_grad():
        start = model.eval().start(torch.ones(1, 1, dtype=whole), torch.ones(1, dtype=whole))
    assert isinstance(start.memory, SourceMemory)
    memory = {
        f"memory.{name}": Axes(("batch", "source", part.shape[2]))
        for name, part in (("keys", start.memory.keys), ("values", start.memory.values))
    }

    def states(name: str) -> dict[str, Axes]:
        kept = {f"{n}.state": each.shape[1] for n, each in enumerate(start.layers)}
        kept |= {} if start.fed is None else {"fed": width}
        return {f"{name}.{each}": Axes(("batch", size)) for each, size in kept.items()}

    said = {"log_probs": Axes(("batch", len(model.output.weight)))}
    return [
        Graph(
            name="encoder",
            model=_RnnStart(model),
            inputs=ids | lengths,
            outputs=memory | states("past"),
        ),
        Graph(
            name="decoder_step",
            model=_RnnStep(model),
            inputs={"token": Axes(("batch",), whole)} | lengths | memory | states("past"),
            outputs=said | states("present"),
        ),
    ]


def _decoder_graph(model: Decoder) -> Graph:
    cache, layers = next(iter(model.layers)).empty_cache(1), len(model.layers)
    inputs = {
        "ids": Axes(("batch", "length"), torch.int64),
        "padding": Axes(("batch",), torch.int64),
    }
    return Graph(
        name="decoder_step",
        model=_Read(model),
        inputs=inputs | _caches("past", layers, cache, "past"),
        outputs={"log_probs": Axes(("batch", len(model.output.weight)))}
        | _caches("present", layers, cache, "past+length"),
    )


class _Start(nn.Module):
    """Encoded source."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model

    def forward(self, *given: Tensor) -> tuple[Tensor, ...]:
        state = self.model.start(*given)
        copying = () if state.copying is None else state.copying[:1]
        return (*_flat(state.memory), *copying)


class _Step(nn.Module):
    """One token further."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model

    def forward(self, *given: Tensor) -> tuple[Tensor, ...]:
        token, lengths, *kept = given
        size = 2 * len(self.model.decoder)
        past, memory, copying = kept[:size], kept[size : 2 * size], kept[2 * size :]
        state = TransformerState(
            past=_joined(past),
            memory=_joined(memory),
            source_lengths=lengths,
            copying=(copying[0], copying[1]) if copying else None,
        )
        log_probs, after = self.model.step(token, state)
        return (log_probs, *_flat(after.past))


class _RnnStart(nn.Module):
    """Encoded source, and the state before the first token."""

    def __init__(self, model: RnnSeq2Seq) -> None:
        super().__init__()
        self.model = model

    def forward(self, *given: Tensor) -> tuple[Tensor, ...]:
        state = self.model.start(*given)
        assert isinstance(state.memory, SourceMemory)
        return (state.memory.keys, state.memory.values, *_carried(state))


class _RnnStep(nn.Module):
    """One token further, of a recurrent decoder."""

    def __init__(self, model: RnnSeq2Seq) -> None:
        super().__init__()
        self.model = model

    def forward(self, *given: Tensor) -> tuple[Tensor, ...]:
        token, source_lengths, keys, values, *past = given
        size = len(self.model.cells)
        state = RnnState(
            layers=tuple(past[:size]),
            memory=SourceMemory(keys, values, source_lengths, lengths(source_lengths)),
            attention=AttentionState(),
            fed=past[size] if len(past) > size else None,
        )
        log_probs, after = self.model.step(token, state)
        return (log_probs, *_carried(after))


class _Read(nn.Module):
    """Some tokens further."""

    def __init__(self, model: Decoder) -> None:
        super().__init__()
        self.model = model

    def forward(self, *given: Tensor) -> tuple[Tensor, ...]:
        ids, padding, *past = given
        states, after = self.model.read(ids, DecoderState(_joined(past), padding))
        logits = self.model.project(states[:, -1])
        return (torch.log_softmax(logits.float(), dim=-1), *_flat(after.past))


def _caches(name: str, layers: int, like: KeyValueCache, axis: str) -> dict[str, Axes]:
    """Keys and values of each layer's cache, by name."""
    return {
        f"{name}.{layer}.{part}": Axes(("batch", each.shape[1], axis, each.shape[3]))
        for layer in range(layers)
        for part, each in (("key", like.key), ("value", like.value))
    }


def _flat(caches: Iterable[KeyValueCache]) -> Iterator[Tensor]:
    for cache in caches:
        yield from (cache.key, cache.value)


def _carried(state: RnnState) -> tuple[Tensor, ...]:
    return state.layers if state.fed is None else (*state.layers, state.fed)


def _joined(tensors: Sequence[Tensor]) -> tuple[KeyValueCache, ...]:
    return tuple(map(KeyValueCache, tensors[::2], tensors[1::2]))


def _told(name: str, axes: Axes) -> str:
    meaning = _MEANINGS.get(name)
    return f"- `{name}`: {axes}" + (f": {meaning}" if meaning else "")
