"""A text answered and looked at: by the model as it is, and with heads muted or scaled."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TypeAlias

from regard.inference import Predictor
from regard.inference.looking import document, look_at
from regard.inference.replies import Reply, reply_of
from regard.interop.answering import CheckpointPredictor
from regard.interop.edit import edit
from regard.server.requests import AttentionRequest
from regard.viewer import Document, Example

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
    first = _look(served, request, WHOLE if request.edits else None)
    if request.edits is None:
        return [first]
    with edited(served, request):
        return [first, _look(served, request, EDITED)]


@contextmanager
def edited(served: Served, request: AttentionRequest) -> Iterator[None]:
    """Mute and scale the heads that a request names inside the block."""
    with edit(served.model) as edits:
        for each in request.edits or ():
            edits.scale(each.factor, each.layer, each.heads, kind=each.kind)
        yield


def _look(served: Served, request: AttentionRequest, label: str | None) -> Looked:
    text, target = request.text, request.target
    if isinstance(served, CheckpointPredictor):
        shown = served.look_at(text, target)
        reply = served.reply_of(text, shown.examples[0])
    else:
        example = look_at(served, text, target, beam_size=request.beam_size)
        shown, reply = document(served, [example]), reply_of(served, text, example)
    if label is not None:
        shown = replace(shown, examples=(replace(shown.examples[0], label=label),))
    return Looked(shown, reply)
