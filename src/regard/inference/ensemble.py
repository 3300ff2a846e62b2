"""Several trained runs of one task that answer together."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import cast

from regard.config import JsonValue
from regard.errors import RunError
from regard.inference.evaluation import Member
from regard.inference.predictor import Predictor
from regard.tasks.labels.classification import Classification
from regard.tasks.labels.label_task import LabelPrediction


class Ensemble:
    """Classifiers whose probabilities are averaged: Hansen & Salamon (1990).

    Trainings that differ in their seed alone make different mistakes, and the mean makes fewer than
    each of them. It is used as a ``Predictor`` is, and can be a member of another.
    """

    def __init__(self, members: Sequence[Member]) -> None:
        if not members:
            raise RunError("An ensemble must have runs; got none.")
        first, *others = map(_classification, members)
        for other in others:
            if other.labels != first.labels:
                raise RunError(
                    "An ensemble must be of runs with the same labels; got "
                    f"{', '.join(first.labels)} and {', '.join(other.labels)}."
                )
        self.members, self.task = list(members), first

    @classmethod
    def load(cls, *paths: str | Path) -> "Ensemble":
        """The models in several run folders."""
        return cls([Predictor.load(path) for path in paths])

    def predict(
        self,
        records: Sequence[str | Mapping[str, JsonValue]],
        *,
        progress: Callable[[int], None] | None = None,
    ) -> list[LabelPrediction]:
        """The answer to each record, as ``Task.request`` takes them: a line of text, or a table."""
        examples = [
            self.task.request(record, f"record {index}") for index, record in enumerate(records, 1)
        ]
        return self.answers(examples, progress=progress)

    def answers(
        self, examples: Sequence[object], *, progress: Callable[[int], None] | None = None
    ) -> list[LabelPrediction]:
        """The answer to each example."""
        *others, last = self.members
        every = [member.answers(examples) for member in others]
        every.append(last.answers(examples, progress=progress))
        predictions = cast("list[Sequence[LabelPrediction]]", every)
        return [self._mean(answers) for answers in zip(*predictions, strict=True)]

    def _mean(self, answers: Sequence[LabelPrediction]) -> LabelPrediction:
        """The answer with the mean of the probabilities."""
        shares = {
            label: sum(answer.probabilities[label] for answer in answers) / len(answers)
            for label in self.task.labels
        }
        return LabelPrediction(max(self.task.labels, key=shares.__getitem__), shares)


def _classification(member: Member) -> Classification:
    if not isinstance(member.task, Classification):
        task = member.task.recipe.task
        raise RunError(f"An ensemble must be of runs that are classifiers; got one of {task}.")
    return member.task
