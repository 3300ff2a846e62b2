"""Interface of export forms."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar

from regard.inference import Predictor
from regard.runs import Run


def trained_with(setting: str, value: object) -> str:
    """The cure of a refusal: the option of ``regard train`` that a form holds.

    Example:
        >>> trained_with("head.crf", False)
        'train with --set head.crf=false'
    """
    if value is None:
        return f"train without {setting}"
    written = str(value).lower() if isinstance(value, bool) else value
    return f"train with --set {setting}={written}"


class ExportForm(ABC):
    """One way to write a run down for others.

    Attributes:
        purpose: What it is good for, in a line.
        precisions: What the weights can be written in; empty where it is what they are in.
        precision: What they are written in.

    Example:
        One that hands on the recipe alone:

        >>> import json, tempfile
        >>> class RecipeAlone(ExportForm):
        ...     purpose = "the settings, as JSON"
        ...     def usage(self, predictor, name):
        ...         return f"Read {name}."
        ...     def refuse(self, predictor):
        ...         return None
        ...     def write(self, run, predictor, out, *, readme):
        ...         out.write_text(json.dumps(run.recipe), "utf-8")
        >>> home = Path(tempfile.mkdtemp())
        >>> with Run.create(home / "run", {"task": "translation"}, "translation") as run:
        ...     RecipeAlone().write(run, None, home / "recipe.json", readme="")
        >>> (home / "recipe.json").read_text("utf-8")
        '{"task": "translation"}'
    """

    purpose: ClassVar[str]
    precisions: ClassVar[tuple[str, ...]] = ()
    precision: str = "float32"

    @abstractmethod
    def refuse(self, predictor: Predictor) -> str | None:
        """Why this form cannot hold the run, by the option of its recipe; None if it can."""

    @abstractmethod
    def usage(self, predictor: Predictor, name: str) -> str:
        """How what was written is used, in Markdown; a program in it runs as it stands.

        Args:
            predictor: What the run holds, loaded.
            name: Of the file or folder.
        """

    @abstractmethod
    def write(self, run: Run, predictor: Predictor, out: Path, *, readme: str) -> None:
        """Write it, whole or not at all.

        Args:
            run: Where it comes from.
            predictor: What the run holds, loaded.
            out: The file or folder, which does not exist.
            readme: What is said to people who find it, in Markdown.
        """
