"""What the one working thread does: whole batches of texts, with the models that are served."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention import explain
from regard.attention.expressions import parse_mask
from regard.errors import RegardError, SettingError
from regard.inference import Look, Predictor, Translation
from regard.inference.looking import document, look_at
from regard.server.batching import AbandonedError

# Weights kept of texts looked at before, so that their rows are there at once.
_KEPT_WEIGHTS = 16_000_000
# Larger masks are planned and not drawn.
_DRAWN = 64


@dataclass(frozen=True, slots=True)
class Translating:
    """What requests for translations must ask alike to share a batch; everything is given."""

    run: str
    beam_size: int
    n_best: int
    length_penalty: float
    alignments: bool


@dataclass(frozen=True, slots=True)
class Looking:
    """Requests to look into translations: for a page's document, or for all weights."""

    run: str
    beam_size: int
    wants: Literal["document", "weights"]


@dataclass(frozen=True, slots=True)
class Planning:
    """Requests to explain a call of ``attend``."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A text to look into, and the translation to explain; None is the model's own."""

    text: str
    target: str | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """A call of ``attend`` to plan."""

    mask: str
    queries: int
    keys: int
    heads: int
    head_dim: int


Task = Translating | Looking | Planning
Item = str | Subject | Call


class Worker:
    """Answers batches, one after another.

    Whatever it refuses of an item stands in the item's place, so that the others have answers.

    Args:
        predictors: The models by name.
    """

    def __init__(self, predictors: Mapping[str, Predictor]) -> None:
        self._predictors = predictors
        self._looks: OrderedDict[tuple[str, int, Subject], Look] = OrderedDict()

    def __call__(
        self, task: Task, items: Sequence[Any], is_wanted: Callable[[], bool]
    ) -> Sequence[Any]:
        """One answer for each item.

        Args:
            task: What is to be done with all of them.
            items: Texts for ``Translating``, subjects for ``Looking``, calls for ``Planning``.
            is_wanted: Whether anybody still waits.

        Raises:
            AbandonedError: Nobody waits any more.
        """
        match task:
            case Translating():
                return self._translate(task, items, is_wanted)
            case Looking(wants="document"):
                return _each(lambda subject: self._document(task, subject), items, is_wanted)
            case Looking():
                return _each(lambda subject: self._look(task, subject), items, is_wanted)
            case Planning():
                return _each(plan, items, is_wanted)

    def _translate(
        self, task: Translating, texts: Sequence[str], is_wanted: Callable[[], bool]
    ) -> list[dict[str, Any]]:
        found = self._predictors[task.run].translate(
            texts,
            beam_size=task.beam_size,
            n_best=task.n_best,
            length_penalty=task.length_penalty,
            attention=task.alignments,
            progress=lambda _: _check_wanted(is_wanted),
        )
        return [_members(translations) for translations in found]

    def _document(self, task: Looking, subject: Subject) -> str:
        predictor = self._predictors[task.run]
        shown = look_at(predictor, subject.text, subject.target, beam_size=task.beam_size)
        title = f"{shown.source} → {shown.output}"
        return document(predictor, [shown], title=title).to_json()

    def _look(self, task: Looking, subject: Subject) -> Look:
        key = task.run, task.beam_size, subject
        if key not in self._looks:
            predictor, target = self._predictors[task.run], subject.target
            output = (
                predictor.translate([subject.text], beam_size=task.beam_size)[0][0].tokens
                if target is None
                else target
            )
            self._looks[key] = predictor.look(subject.text, output)
            while sum(map(_weights, self._looks.values())) > _KEPT_WEIGHTS and len(self._looks) > 1:
                self._looks.popitem(last=False)
        self._looks.move_to_end(key)
        return self._looks[key]


def plan(call: Call) -> dict[str, Any]:
    """How ``attend`` would serve a call, and the drawing of its mask where that is small.

    Example:
        >>> print(plan(Call("causal()", 2, 3, 1, 8))["drawing"])
        1 1 .
        1 1 1
    """
    mask = parse_mask(call.mask)
    # Nothing is written into these, so no memory is taken for them.
    query = torch.empty(1, 1, 1, 1).expand(1, call.heads, call.queries, call.head_dim)
    key = torch.empty(1, 1, 1, 1).expand(1, call.heads, call.keys, call.head_dim)
    found = explain(query, key, mask=mask)
    is_small = max(call.queries, call.keys) <= _DRAWN
    return {
        "mask": repr(mask),
        "drawing": mask.draw(call.queries, call.keys) if is_small else None,
        "plan": {
            "backend": found.backend,
            "reason": found.reason,
            "notes": list(found.notes),
            "bytes": found.bytes,
            "operations": found.operations,
        },
        "matrix_bytes": 4 * call.heads * call.queries * call.keys,
    }


def weights_of(
    look: Look, kind: str, layer: int | Literal["mean"], head: int | Literal["mean"]
) -> Float[Tensor, "N M"]:
    """The weights of one head; or their mean over the heads of a layer, or over all layers.

    Raises:
        SettingError: The model has no such layer or head.
    """
    layers = {found.layer: found.weights for found in look.maps if found.kind == kind}
    if not layers:
        kinds = ", ".join(sorted({found.kind for found in look.maps})) or "none"
        raise SettingError(f"kind must be one the model has ({kinds}); got {kind!r}.")
    if layer != "mean" and layer not in layers:
        raise SettingError(f"layer must be one of {_listed(layers)}; got {layer}.")
    chosen = list(layers.values()) if layer == "mean" else [layers[layer]]
    if head == "mean":
        return torch.stack([found.mean(0) for found in chosen]).mean(0)
    if layer == "mean":
        raise SettingError("head must be mean where layer is mean; their heads differ.")
    if not head < len(chosen[0]):
        raise SettingError(f"head must be one of {_listed(range(len(chosen[0])))}; got {head}.")
    return chosen[0][head]


def _members(translations: Sequence[Translation]) -> dict[str, Any]:
    """The translations of one text as plain data."""
    best = translations[0]
    members: dict[str, Any] = {
        "source": best.source,
        "translation": best.text,
        "score": round(best.score, 4),
    }
    if best.parts > 1:
        members["parts"] = best.parts
    if len(translations) > 1:
        members["n_best"] = [
            {"translation": each.text, "score": round(each.score, 4)} for each in translations
        ]
    if (found := best.alignment) is not None:
        members["source_tokens"] = [piece.text for piece in found.source_pieces]
        members["output_tokens"] = [piece.text for piece in found.output_pieces]
        members["attention"] = [[round(w, 4) for w in row] for row in found.weights.tolist()]
        members["links"] = [list(link) for link in found.links()]
    return members


def _each(
    answer: Callable[[Any], Any], items: Sequence[Any], is_wanted: Callable[[], bool]
) -> list[Any]:
    found: list[Any] = []
    for item in items:
        _check_wanted(is_wanted)
        try:
            found.append(answer(item))
        except RegardError as error:
            found.append(error)
    return found


def _check_wanted(is_wanted: Callable[[], bool]) -> None:
    if not is_wanted():
        raise AbandonedError


def _weights(look: Look) -> int:
    return sum(found.weights.numel() for found in look.maps)


def _listed(numbers: Iterable[int]) -> str:
    found = sorted(numbers)
    return f"{found[0]} to {found[-1]}" if len(found) > 1 else str(found[0])
