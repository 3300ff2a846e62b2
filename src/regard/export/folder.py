"""A folder for others: what a form writes, the tokenizer and a README."""

from collections.abc import Mapping
from pathlib import Path

from regard.export.graphs import Graph
from regard.inference import Predictor
from regard.runs.files import fill_file, new_folder


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
    page = f"{readme}\n## Inputs and outputs\n\n{told}\n\n{_IDS}"
    with new_folder(out) as folder:
        for name, content in files.items():
            fill_file(folder / name, content)
        fill_file(folder / "README.md", page.encode())
        predictor.task.save(folder / "tokenizer")


_IDS = "Of the ids, 0 is padding, 1 an unknown token, 2 the begin and 3 the end of a text.\n"
