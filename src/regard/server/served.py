"""A text answered, looked at and explained: by the model as it is, and with heads changed."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeAlias, TypeVar

from regard.inference import Predictor
from regard.inference.checkpoint_predictor import CheckpointPredictor, Reply, reply_of
from regard.inference.explanation import is_explained
from regard.inference.looking import document, look_at
from regard.interop.interventions.edit import edit
from regard.interop.pages.explaining import Why
from regard.server.requests import AttentionRequest
from regard.viewer import Document

T = TypeVar("T")

# A run, or a Hugging Face model.
Served: TypeAlias = Predictor | CheckpointPredictor

WHOLE, EDITED = "all heads", "heads changed"  # labels of examples


def look(served: Served, request: AttentionRequest) -> list[tuple[Document, Reply]]:
    """The document and the answer of a text; with edits once without them, and once with them."""

    def answer(label: str | None) -> tuple[Document, Reply]:
        document = _document(served, request, label)
        text, (example, *_) = request.text, document.examples
        if isinstance(served, CheckpointPredictor):
            return document, served.reply_of(text, example)
        return document, reply_of(served, text, example)

    return _with_and_without_edits(served, request, answer)


def explain(served: Served, request: AttentionRequest) -> list[Document]:
    """Look at the text of a request as ``look`` does, and explain the answers."""
    return _with_and_without_edits(
        served, request, lambda label: _document(served, request, label, Why())
    )


def task_of(served: Served) -> str:
    """The task's name; "attention" of a model that says nothing."""
    return served.task if isinstance(served, CheckpointPredictor) else served.recipe.task


def explains(served: Served) -> bool:
    """Whether answers of a model are explained."""
    if isinstance(served, CheckpointPredictor):
        return served.task != "attention"
    return is_explained(served.task)


@contextmanager
def edited(served: Served, request: AttentionRequest) -> Iterator[None]:
    """Mute and scale the heads that a request names inside the block."""
    with edit(served.model) as edits:
        for each in request.edits or ():
            edits.scale(each.factor, each.layer, each.heads, kind=each.kind)
        yield


def _with_and_without_edits(
    served: Served, request: AttentionRequest, look: Callable[[str | None], T]
) -> list[T]:
    if request.edits is None:
        return [look(None)]
    first = look(WHOLE)
    with edited(served, request):
        return [first, look(EDITED)]


def _document(
    served: Served, request: AttentionRequest, label: str | None, why: Why | None = None
) -> Document:
    text, target = request.text, request.target
    if isinstance(served, CheckpointPredictor):
        made = served.look_at(text, target, explain=why is not None)
    else:
        example = look_at(served, text, target, beam_size=request.beam_size, why=why)
        made = document(served, [example])
    if label is None:
        return made
    return replace(made, examples=(replace(made.examples[0], label=label),))
