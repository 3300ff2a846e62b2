"""A text answered, looked at and explained: by the model as it is, and with heads changed."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

from regard.inference import Predictor
from regard.inference.checkpoint_predictor import CheckpointPredictor
from regard.inference.explanation import is_explained
from regard.inference.looking import document, look_at
from regard.inference.replies import Reply, reply_of
from regard.interop.interventions.edit import edit
from regard.interop.pages.explaining import Why
from regard.server.requests import AttentionRequest
from regard.viewer import Document, Example

T = TypeVar("T")

# A run, or a Hugging Face model.
Served: TypeAlias = Predictor | CheckpointPredictor

WHOLE, EDITED = "all heads", "heads changed"  # labels of examples


@dataclass(frozen=True, slots=True)
class Looked:
    """Document of one text, and its answer in words."""

    document: Document
    reply: Reply

    @property
    def example(self) -> Example:
        """The only one."""
        return self.document.examples[0]


def look(served: Served, request: AttentionRequest) -> list[Looked]:
    """Look at the text of a request; with edits once without them, and once with them."""

    def looked(label: str | None) -> Looked:
        shown = _document(served, request, label)
        if isinstance(served, CheckpointPredictor):
            return Looked(shown, served.reply_of(request.text, shown.examples[0]))
        return Looked(shown, reply_of(served, request.text, shown.examples[0]))

    return _with_and_without_edits(served, request, looked)


def explain(served: Served, request: AttentionRequest) -> list[Document]:
    """Look at the text of a request as ``look`` does, and explain the answers."""
    return _with_and_without_edits(
        served, request, lambda label: _document(served, request, label, Why())
    )


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
        shown = served.look_at(text, target, explain=why is not None)
    else:
        example = look_at(served, text, target, beam_size=request.beam_size, why=why)
        shown = document(served, [example])
    if label is None:
        return shown
    return replace(shown, examples=(replace(shown.examples[0], label=label),))
