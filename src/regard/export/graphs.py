"""Graphs of a run: functions of tensors, with their inputs, outputs and dynamic sizes.

They are traced with the formula of attention in them, so that they need nothing of regard.
"""

import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, cast

import torch
from jaxtyping import Shaped
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram

from regard.attention.graph.formula import written_out
from regard.export.form import PROGRAM, ExportForm, run_program, trained_with
from regard.files import fill_file
from regard.inference import Predictor
from regard.models import (
    BagReader,
    Classifier,
    ConvReader,
    Encoder,
    LanguageModel,
    MaskedLanguageModel,
    MultipleChoice,
    RecurrentReader,
    SpanFinder,
    Tagger,
    VisionTransformer,
)
from regard.progress import progress
from regard.runs import Run
from regard.runs.files import new_folder
from regard.tasks import TASKS, Recipe
from regard.tasks.labels.image_classification import ImageClassification
from regard.tasks.labels.tagging import Tagging
from regard.tasks.labels.word_parts import reads_parts
from regard.tasks.overlap import OVERLAP_FEATURES
from regard.tasks.questions.text_pairs import FEATURES, pair_model
from regard.text import TokenizerConfig

# Sizes to trace with: all different, so that no axis is taken for another.
_AXES = ("batch", "length", "past", "words", "source", "choices", "parts", "ngrams")
_SIZES = {axis: size for size, axis in enumerate(_AXES, 2)}
_HEADS = (Classifier, MaskedLanguageModel, MultipleChoice, SpanFinder, Tagger)
_READERS = (BagReader, ConvReader, Encoder)
_MEANINGS = {
    "ids": "token ids; rows are padded with 0 on the right",
    "lengths": "how many of a row's ids are real, at least one",
    "segments": "0 up to the end of the first text of a row, 1 after it",
    "features": f"of each token its match in the other text, 0 to 1: {', '.join(FEATURES)}",
    "overlap": f"overlap of both texts of a row, one or all of: {', '.join(OVERLAP_FEATURES)}",
    "parts": "ids of the parts of each word, padded with 0",
    "ngrams": "ids of the n-grams of each text, padded with 0",
    "ngram_values": "TF-IDF of the n-grams of each text",
    "positions": "which id of a row is the first of each word",
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


# How a row of ids is laid out, by task; {begin} and {end} as the recipe has them.
_ROWS = {
    "classification": "{begin}text 3",
    "generation": "document{end}",
    "language_modelling": "3 prompt",
    "masked_language_modelling": "2 text 3",
    "multiple_choice": "2 question 3 choice 3",
    "pair_matching": "2 first-text 3 second-text 3",
    "question_answering": "2 question 3 passage 3",
    "translation": "source{end}",
}


class TracedModel(nn.Module):
    """A function of a model and tensors, as a module that torch traces."""

    def __init__(self, model: nn.Module, function: Callable[..., tuple[Tensor, ...]]) -> None:
        super().__init__()
        self.model, self.function = model, function

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        return self.function(self.model, *inputs)


class Axes(NamedTuple):
    """Shape and dtype of a graph's tensor."""

    shape: tuple[str | int, ...]  # an open axis by its name, others by their size
    dtype: torch.dtype = torch.float32

    def example(self) -> Shaped[Tensor, "..."]:
        """A tensor of ones like it."""
        sizes = [_SIZES[axis] if isinstance(axis, str) else axis for axis in self.shape]
        return torch.ones(sizes, dtype=self.dtype)

    @property
    def open(self) -> dict[int, str]:
        """The names of the open axes, by their positions."""
        return {number: axis for number, axis in enumerate(self.shape) if isinstance(axis, str)}

    def __str__(self) -> str:
        return f"{str(self.dtype).removeprefix('torch.')} {' × '.join(map(str, self.shape))}"


@dataclass(frozen=True, kw_only=True)
class Graph:
    """A model or a part of it: a function of the inputs that returns the outputs as a tuple."""

    name: str
    model: nn.Module
    inputs: Mapping[str, Axes]
    outputs: Mapping[str, Axes]

    def traced(self) -> ExportedProgram:
        """A program of torch's own operations, for all open sizes."""
        examples = tuple(axes.example() for axes in self.inputs.values())
        sizes = tuple(dict.fromkeys(axes.open, Dim.DYNAMIC) for axes in self.inputs.values())
        with torch.no_grad(), written_out():
            exported = torch.export.export(self.model.eval(), examples, dynamic_shapes=(sizes,))
        for node in exported.graph.nodes:
            node.meta.pop("stack_trace", None)  # paths of this machine
        return exported

    def description(self) -> str:
        """Inputs and outputs in Markdown."""
        parts = [f"`{self.name}`"]
        for title, tensors in (("takes", self.inputs), ("gives", self.outputs)):
            parts += [f"\n{title}\n"]
            parts += [_described(name, axes) for name, axes in tensors.items()]
        return "\n".join(parts)


def refuse_head(predictor: Predictor, *, may_recur: bool = False) -> str | None:
    """Why a run is no single graph, by its option; ``may_recur`` allows reading in turn."""
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
        inputs["positions"] = Axes(("batch", "words"), whole)
    if isinstance(model, Classifier) and model.pooling.name == "aspect":
        inputs["aspects"] = Axes(("batch",), whole)
    if isinstance(model, Classifier) and model.overlap is not None:
        inputs["overlap"] = Axes(("batch", model.overlap.hidden.in_features))

    def answer(model: nn.Module, *tensors: Tensor) -> tuple[Tensor, ...]:
        output = model(**dict(zip(inputs, tensors, strict=True)))
        if isinstance(model, MaskedLanguageModel):
            output = model.project(output)
        return output if isinstance(output, tuple) else (output,)

    return Graph(
        name="model",
        model=TracedModel(model, answer),
        inputs=inputs,
        outputs=_outputs(model, inputs),
    )


def _reader_of(model: nn.Module) -> nn.Module | None:
    head = model.score if isinstance(model, MultipleChoice) else model
    return cast("nn.Module | None", getattr(head, "reader", None))


def _reading(predictor: Predictor) -> Iterator[tuple[str, Axes]]:
    """Further inputs of the reader, for each row."""
    recipe = predictor.recipe
    reads_pairs = TASKS[recipe.task].beside
    if reads_pairs and pair_model(recipe).reads_features:
        yield "features", Axes(("length", len(FEATURES)))
    asks = reads_pairs or getattr(recipe.data, "next_sentence", False)
    if asks and getattr(recipe.model, "num_segments", 0) > 1:
        yield "segments", Axes(("length",), torch.int64)
    if reads_parts(recipe):
        yield "parts", Axes(("length", "parts"), torch.int64)
    if isinstance(predictor.model, Classifier) and predictor.model.ngrams is not None:
        yield "ngrams", Axes(("ngrams",), torch.int64)
        yield "ngram_values", Axes(("ngrams",))


def _outputs(model: nn.Module, inputs: Mapping[str, Axes]) -> dict[str, Axes]:
    if isinstance(model, SpanFinder):
        return {"start": Axes(("batch", "length")), "end": Axes(("batch", "length"))}
    if isinstance(model, MultipleChoice):
        return {"logits": Axes(("batch", "choices"))}
    if isinstance(model, MaskedLanguageModel):
        return {"logits": Axes(("batch", "length", len(model.bias)))}
    count = cast(nn.Linear, model.output).out_features
    if isinstance(model, Tagger):
        return {"logits": Axes(("batch", "words" if "positions" in inputs else "length", count))}
    return {"logits": Axes(("batch", count))}


def _picture_graph(model: VisionTransformer, task: ImageClassification) -> Graph:
    rows, columns = (side * model.patches.patch for side in model.patches.grid)
    shape = ("batch", model.patches.weight.shape[1], rows, columns)

    def answer(model: nn.Module, pictures: Tensor) -> tuple[Tensor, ...]:
        return (model((pictures - task.mean) / task.deviation),)

    return Graph(
        name="model",
        model=TracedModel(model, answer),
        inputs={"pictures": Axes(shape)},
        outputs=_outputs(model, {}),
    )


def _described(name: str, axes: Axes) -> str:
    meaning = _MEANINGS.get(name)
    return f"- `{name}`: {axes}" + (f": {meaning}" if meaning else "")


def write_folder(
    predictor: Predictor, out: Path, files: Mapping[str, bytes], *, graphs: list[Graph], readme: str
) -> None:
    """Write a folder whole or not at all: files, tokenizer, README with the graphs' tensors."""
    tensors = "\n\n".join(graph.description() for graph in graphs)
    page = f"{readme}\n## Inputs and outputs\n\n{tensors}\n\n{_ids_of(predictor.recipe)}"
    with new_folder(out) as folder:
        for name, content in files.items():
            fill_file(folder / name, content)
        fill_file(folder / "README.md", page.encode())
        predictor.task.save(folder / "tokenizer")


def _ids_of(recipe: Recipe) -> str:
    """Describe the meaning of ids, and their order."""
    if recipe.task == "image_classification":
        return ""
    reserved = "Of the ids, 0 is padding, 1 an unknown token, 2 the begin and 3 the end of a text."
    row = _ROWS.get(recipe.task)
    if recipe.task == "classification" and reads_parts(recipe):
        row = "the words"
    if recipe.task == "tagging":
        row = "the words" if recipe.tokenizer is None else "{begin}pieces-of-the-words 3"
    if row is None:
        return f"{reserved}\n"
    begins = recipe.tokenizer is not None and recipe.settings(TokenizerConfig).begins
    end = " 3" if getattr(recipe.data, "source_end", True) else ""
    return f"{reserved} A row is: `{row.format(begin='2 ' * begins, end=end)}`.\n"


_CALL = """
import torch

model = torch.export.load("model.pt2").module()
# Of your own numbers, in the order that README.md has.
print(model({given}))
"""


class TorchProgram(ExportForm):
    """A folder with a program of torch.export: ids in, logits out, whatever the sizes."""

    purpose = "a folder with a program of torch.export (.pt2), which needs torch alone"

    def usage(self, predictor: Predictor, name: str) -> str:
        return run_program(needs="torch", reads=False)

    def refuse(self, predictor: Predictor) -> str | None:
        return refuse_head(predictor)

    def write(self, run: Run, predictor: Predictor, out: Path, *, readme: str) -> None:
        graph = head_graph(predictor)
        content = io.BytesIO()
        with progress(f"writing {graph.name}.pt2"):
            torch.export.save(graph.traced(), content)
        arguments = ", ".join(
            f"torch.ones({tuple(axes.example().shape)}, dtype={axes.dtype})"
            for axes in graph.inputs.values()
        )
        code = _CALL.format(given=arguments).lstrip()
        files = {f"{graph.name}.pt2": content.getvalue(), PROGRAM: code.encode()}
        write_folder(predictor, out, files, graphs=[graph], readme=readme)
