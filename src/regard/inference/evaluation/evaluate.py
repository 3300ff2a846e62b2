"""Evaluation of a run: figures, those of trivial baselines, and ten answers to read."""

import math
import os
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import singledispatch
from pathlib import Path
from statistics import fmean
from typing import Any, Protocol, cast, runtime_checkable

from torch import nn

from regard.checks import choose
from regard.config import JsonValue, assign
from regard.errors import DataError
from regard.inference.evaluation.report import AnswerReport, Figure, TextReport, beside_baselines
from regard.inference.evaluation.texts import evaluate, to_read, trivial_outputs
from regard.metrics.score import wilson
from regard.progress import progress as show_progress
from regard.progress import track
from regard.tasks import TASKS, Parts, Recipe, recipe_from_table
from regard.tasks.one_pass_task import OnePassTask
from regard.tasks.sequences.sequence_task import SequenceTask
from regard.tasks.sequences.translation import TranslationTask
from regard.tasks.sequences.translations import Translations
from regard.tasks.settings.recipe import DataConfig
from regard.tasks.task import Answer, AnyTask
from regard.text import Pair, PairLayout, normalize, read_lines, read_pairs

# Resamples that the intervals of answers are drawn from.
_RESAMPLES = 200


def parts_in_memory(recipe: Recipe) -> Parts[object]:
    """Training and validation examples of a run; none of a text that is read from the disk."""
    if recipe.training.get("corpus") == "disk":
        return Parts((), ())
    return TASKS[recipe.task].task.read_parts(recipe)


@runtime_checkable
class Member(Protocol):
    """Interface of predictors: a run, several of them, or one that needs no training."""

    @property
    def task(self) -> AnyTask:
        """Task of the examples."""

    def answers(
        self, examples: Sequence[object], *, progress: Callable[[int], None] | None = None
    ) -> Sequence[Answer]:
        """The answer to each example."""


@dataclass(frozen=True, slots=True)
class EvaluationData:
    """Examples to evaluate on, those of training, and outputs of texts that take no model."""

    examples: Sequence[object]
    train: Sequence[object] = ()
    trivial: Mapping[str, Sequence[str]] | None = None  # None takes the sources themselves


def read_data(
    task: AnyTask,
    files: Sequence[Path] = (),
    *,
    split: str = "test",
    read_parts: Callable[[Recipe], Parts[object]] = parts_in_memory,
    columns: Mapping[str, JsonValue] | None = None,
) -> EvaluationData:
    """The examples of files in the form of the training text, else of a split of the recipe's.

    ``columns`` are settings, such as ``data.columns``, for files whose columns lie otherwise.
    """
    recipe, problem = task.recipe, None
    baselines = task.baselines if isinstance(task, SequenceTask) else None
    parts: Parts[object] = Parts((), ())
    try:
        parts = read_parts(recipe)
    except DataError as error:  # the training text may be gone
        problem = error
    if columns:
        recipe = _with_columns(recipe, columns)
    if files and (examples := _read_files(task, recipe, files)) is not None:
        return EvaluationData(examples, parts.train)
    if files:
        test = tuple(os.path.realpath(file) for file in files)
        recipe, split = replace(recipe, data=replace(recipe.data, test=test)), "test"
    splits = ("train", "valid", "test", *(["new"] if recipe.uses_phrasebook else []))
    choose("split", split, dict.fromkeys(splits))
    is_part = {
        "train": baselines is None,
        "valid": not recipe.named("valid") and not recipe.uses_phrasebook,
        "test": not files and bool(parts.test),
    }
    if is_part.get(split) and problem is not None:
        raise problem
    examples = getattr(parts, split) if is_part.get(split) else task.read(recipe, split)
    if not examples:
        why = "the recipe names none"
        if split == "test" and recipe.holds_out_test:
            why = "the training text has too few different ones to hold some out"
        raise DataError(
            f"data.{split} must name the text to evaluate on; {why}. "
            "Name a file behind the run, or give --split valid."
        )
    trivial = None if baselines is None else baselines(recipe, split)
    return EvaluationData(examples, parts.train, trivial)


def _with_columns(recipe: Recipe, columns: Mapping[str, JsonValue]) -> Recipe:
    """The recipe with settings over its own that say which columns to read."""
    names = [f"data.{name}" for name in recipe.data.column_names]
    for name in columns:
        choose("--set", name, dict.fromkeys(names), "What else a run has stays.")
    table = cast("Mapping[str, JsonValue]", recipe.table())
    return recipe_from_table(assign(table, columns))


@singledispatch
def _read_files(task: object, recipe: Recipe, files: Sequence[Path]) -> list[Pair] | None:
    """The examples of files in another form than the recipe's; None where there is none."""
    return None


@_read_files.register(TranslationTask)
def _read_pairs(task: TranslationTask, recipe: Recipe, files: Sequence[Path]) -> list[Pair]:
    """The pairs of one file, or of one of sources and one or more of targets, line by line."""
    source, *targets = files
    columns = recipe.settings(DataConfig).columns
    layout = PairLayout(columns=columns, merge_references=not targets)
    pairs = list(read_pairs(source, next(iter(targets), None), layout=layout))
    for file in targets[1:]:
        texts = [normalize(line.text) for line in read_lines(file)]
        if len(texts) != len(pairs):
            raise DataError(
                f"{file} must have a line for each of the {len(pairs)} sentences; "
                f"got {len(texts)} lines."
            )
        pairs = [
            replace(pair, references=tuple(filter(None, dict.fromkeys((*pair.references, text)))))
            for pair, text in zip(pairs, texts, strict=True)
        ]
    return pairs


def measure(
    predictor: Member, data: EvaluationData, answers: Sequence[Answer]
) -> AnswerReport | TextReport:
    """Measure answers to the examples of some data, beside baselines without a model."""
    return _measured(predictor.task, predictor, data, answers)


@singledispatch
def _measured(
    task: object, predictor: Member, data: EvaluationData, answers: Sequence[Answer]
) -> AnswerReport | TextReport:
    return evaluate_task(predictor, data.examples, data.train, answers=answers)


@_measured.register(SequenceTask)
def _measured_texts(
    task: SequenceTask, predictor: Member, data: EvaluationData, answers: Sequence[Answer]
) -> TextReport:
    pairs, train = cast("Sequence[Pair]", data.examples), cast("Sequence[Pair]", data.train)
    sources = [pair.source for pair in pairs]
    return evaluate(
        best_texts(answers),
        [pair.references for pair in pairs],
        sources=sources,
        languages=(task.data.source_language, task.data.target_language),
        trivial=trivial_outputs(sources, [pair.target for pair in train], data.trivial),
        rouge=reports_rouge(task),
    )


def best_texts(answers: Sequence[Answer]) -> list[str]:
    """The best text that was written for each example."""
    return [cast(Translations, answer).best.text for answer in answers]


def reports_rouge(task: SequenceTask) -> bool:
    """Whether ROUGE comes before the other figures."""
    return "rouge_l" in task.metrics


def evaluate_task(
    predictor: Member,
    examples: Sequence[object],
    train: Sequence[object] = (),
    *,
    answers: Sequence[Answer] | None = None,
) -> AnswerReport:
    """How good a task's answers to these examples are."""
    task = cast("OnePassTask[Any, Any]", predictor.task)
    if answers is None:
        answers = predictor.answers(examples)
    dice = random.Random(0)
    with show_progress("baselines"):
        trivial = task.baselines(train, examples) if train else {}
    scores = [task.example_score(a, e) for a, e in zip(answers, examples, strict=True)]
    order, model = (
        sorted(range(len(scores)), key=scores.__getitem__),
        getattr(predictor, "model", None),
    )
    figures = _with_intervals(task, answers, examples, dice)
    baselines = {name: task.score(outputs, examples) for name, outputs in trivial.items()}
    chosen = to_read({"worst": (4, order), "best": (2, order[::-1])}, order, dice)
    return AnswerReport(
        count=len(examples),
        unit=task.unit,
        figures=figures,
        baselines=baselines,
        beside=beside_main_baselines(
            task, {figure.name: figure.value for figure in figures}, baselines
        ),
        tables=tuple(task.tables(answers, examples)),
        examples=tuple(
            (kind, task.show(examples[index], answers[index]))
            for kind, indices in chosen.items()
            for index in indices
        ),
        learned=tuple(task.describe_learned(model)) if isinstance(model, nn.Module) else (),
    )


def beside_main_baselines(
    task: AnyTask, figures: Mapping[str, float], baselines: Mapping[str, Mapping[str, float]]
) -> str | None:
    """``beside_baselines`` by a task's main figure, or by its first where that is the loss."""
    if not (task.metrics and baselines):
        return None
    metric = next(iter(task.metrics)) if task.main_metric == "loss" else task.main_metric
    main = {name: scores[metric] for name, scores in baselines.items()}
    return beside_baselines(metric, figures[metric], main, sign=task.metrics[metric])


def _with_intervals(
    task: AnyTask, answers: Sequence[Answer], examples: Sequence[object], dice: random.Random
) -> tuple[Figure, ...]:
    count = len(examples)
    drawn: list[dict[str, float]] = []
    for _ in track("resampling", range(_RESAMPLES), _RESAMPLES):
        indices = dice.choices(range(count), k=count)
        drawn.append(task.score([answers[i] for i in indices], [examples[i] for i in indices]))
    single = [task.score([answers[i]], [examples[i]]) for i in range(count)]
    figures = []
    for name, value in task.score(answers, examples).items():
        parts = [of_one[name] for of_one in single]
        ordered = sorted(drawn_figures[name] for drawn_figures in drawn)
        if set(parts) <= {0.0, 100.0} and math.isclose(fmean(parts), value, abs_tol=1e-9):
            low, high = (100 * end for end in wilson(value / 100, count))  # a proportion
        else:
            low, high = (ordered[round(share * (_RESAMPLES - 1))] for share in (0.025, 0.975))
        figures.append(Figure(name=name, value=value, low=low, high=high))
    return tuple(figures)
