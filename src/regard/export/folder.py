"""A folder for others: what a form writes, the tokenizer and a README."""

from collections.abc import Mapping
from pathlib import Path

from regard.export.graphs import Graph
from regard.inference import Predictor
from regard.runs.files import fill_file, new_folder
from regard.tasks import Recipe
from regard.tasks.word_parts import reads_parts
from regard.text import TokenizerConfig


def write_folder(
    predictor: Predictor, out: Path, files: Mapping[str, bytes], *, graphs: list[Graph], readme: str
) -> None:
    """Write it, whole or not at all.

    Args:
        predictor: Whose tokenizer it gets.
        out: The folder.
        files: What else is in it, by name.
        graphs: What the README tells inputs and outputs of.
        readme: What comes before that, in Markdown.
    """
    told = "\n\n".join(graph.told() for graph in graphs)
    page = f"{readme}\n## Inputs and outputs\n\n{told}\n\n{_ids_of(predictor.recipe)}"
    with new_folder(out) as folder:
        for name, content in files.items():
            fill_file(folder / name, content)
        fill_file(folder / "README.md", page.encode())
        predictor.task.save(folder / "tokenizer")


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


def _ids_of(recipe: Recipe) -> str:
    """Describe what ids stand for, and in which order they come."""
    if recipe.task == "image_classification":
        return ""
    said = "Of the ids, 0 is padding, 1 an unknown token, 2 the begin and 3 the end of a text."
    row = _ROWS.get(recipe.task)
    if recipe.task == "classification" and reads_parts(recipe.model):
        row = "the words"
    if recipe.task == "tagging":
        row = "the words" if recipe.tokenizer is None else "{begin}pieces-of-the-words 3"
    if row is None:
        return f"{said}\n"
    begins = recipe.tokenizer is not None and recipe.settings(TokenizerConfig).begins
    end = " 3" if getattr(recipe.data, "source_end", True) else ""
    return f"{said} A row is: `{row.format(begin='2 ' * begins, end=end)}`.\n"
