"""Recipes that begin with a run or a checkpoint, in place of those that learn from one file."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from regard.config import read_toml
from regard.text.reading.sources import shards
from regard.training.recipes import InferredTask, InferredTasks, Settings
from regard.training.recipes.columns import is_chinese
from regard.training.recipes.packaged import packaged_recipe, packaged_recipes

_SUMMARIES = "summarisation"
# Jobs that learn more from a small file where the model has read before, and bytes of such a file.
_HELPED = {"classification", "multiple_choice", "pair_matching", "question_answering", "tagging"}
_SMALL = 2 << 20
# Small encoders of the Hugging Face Hub for English and for Chinese.
_ENGLISH = "hf:sentence-transformers/all-MiniLM-L6-v2"
_CHINESE = "hf:google-bert/bert-base-chinese"
# Settings of a recipe that its pretrained one has to be told.
_SETTINGS: Mapping[str, Settings] = {"classification-aspect": {"head.pooling": "aspect"}}
_RUNNING_TEXT = ("language_modelling", "masked_language_modelling")


def pretrained_recipe(name: str) -> tuple[str, Settings] | None:
    """The packaged recipe that does the job of another from a checkpoint, and settings over it.

    None where there is none.

    Example:
        >>> pretrained_recipe("summarisation-chinese"), pretrained_recipe("transformer-tiny")
        (('summarisation-pretrained', {}), None)
    """
    if name.endswith("-pretrained"):
        return name, {}
    if name.startswith(_SUMMARIES):
        return f"{_SUMMARIES}-pretrained", {}
    task = _task(name).replace("_", "-").replace("modelling", "model")
    recipe = f"{task}-pretrained"
    return (recipe, _SETTINGS.get(name, {})) if recipe in packaged_recipes() else None


def begin_pretrained(tasks: InferredTasks, name: str) -> InferredTasks:
    """The candidates by recipes that begin with a run or a checkpoint; those that cannot go."""
    from regard.training.pretrained import named_pretrained

    learned = named_pretrained(name).task
    candidates = []
    for task in tasks.candidates:
        begun = None if task.recipe is None else pretrained_recipe(task.recipe)
        if begun is None:
            continue
        recipe, settings = begun
        if learned in _RUNNING_TEXT and _task(recipe) in {*_RUNNING_TEXT} - {learned}:
            continue  # an encoder does not continue a text, nor a decoder fill its blanks
        candidates.append(replace(task, recipe=recipe, settings={**settings, **task.settings}))
    if not candidates:  # the training says why
        return tasks
    is_sure = tasks.is_sure or len(candidates) == 1 < len(tasks.candidates)
    return InferredTasks(tuple(candidates), is_sure=is_sure)


def pretrained_hint(task: InferredTask, files: Sequence[str]) -> str | None:
    """A line that recommends an encoder for a small file that is to be learned from alone."""
    begun = None if task.recipe is None else pretrained_recipe(task.recipe)
    if begun is None or begun[0] == task.recipe or _task(begun[0]) not in _HELPED:
        return None
    paths = [path for name in files for path in shards(Path(name))]
    if sum(path.stat().st_size for path in paths) > _SMALL:
        return None
    texts = [text for example in task.examples for text in example.values()]
    name = _CHINESE if is_chinese(texts) else _ENGLISH
    return (
        "hint: of so few examples a model that has read before learns more: "
        f"--pretrained {name}, or a folder"
    )


def _task(recipe: str) -> str:
    return str(read_toml(packaged_recipe(recipe)).get("task", "translation"))
