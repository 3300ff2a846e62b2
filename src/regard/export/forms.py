"""The forms that a run can be handed on in.

A new form is one class in a file beside this one, and its name in ``FORMS``.
"""

import shlex
from copy import copy
from pathlib import Path

import torch

from regard.checks import check_path, choose
from regard.devices.kinds import ON_CPU
from regard.errors import SettingError
from regard.export.ctranslate2 import CTranslate2
from regard.export.form import ExportForm, readme_of
from regard.export.graphs import TorchProgram
from regard.export.huggingface import HuggingFace
from regard.export.onnx_graphs import OnnxGraphs
from regard.inference import Predictor
from regard.runs import SUFFIX, Run
from regard.runs.files import explain_path
from regard.runs.packing import pack


class Bundle(ExportForm):
    """One file that every command takes in place of the run folder."""

    purpose = f"one file ({SUFFIX}) that every command takes in place of the run folder"
    precisions = ("bfloat16",)

    def usage(self, predictor: Predictor, name: str) -> str:
        return (
            "    pip install regard\n"
            f"    regard predict {shlex.quote(name)} FILE\n\n"
            "It is a plain zip archive of the weights (safetensors), the tokenizer and the recipe; "
            "it holds no code, and nothing in it is unpickled."
        )

    def refuse(self, predictor: Predictor) -> str | None:
        return None

    def write(self, run: Run, predictor: Predictor, out: Path, *, readme: str) -> None:
        dtype = torch.bfloat16 if self.precision == "bfloat16" else None
        pack(run, out, readme=readme, dtype=dtype)


FORMS: dict[str, ExportForm] = {
    "bundle": Bundle(),
    "ctranslate2": CTranslate2(),
    "huggingface": HuggingFace(),
    "onnx": OnnxGraphs(),
    "torch": TorchProgram(),
}


def export_run(
    path: str | Path, form: str, out: str | Path, *, precision: str | None = None
) -> None:
    """Write a finished run in another form.

    Args:
        path: The run folder, or a bundle.
        form: One of ``FORMS``.
        out: Where to write it; nothing may be there.
        precision: Type of written weights, such as ``int8``; None is as they are.

    Raises:
        RunError: There is no run, it has not finished, or the disk refuses.
        SettingError: There is no such form or precision of it, it cannot hold this run, or
            something is at ``out``.

    Example:
        Of a run that answers by the two points it knows:

        >>> import tempfile
        >>> from regard.tasks import TASKS, recipe_from_table
        >>> from regard.text.reading.points import Point
        >>> recipe = recipe_from_table({"task": "regression", "model": {"is_learned": True}})
        >>> known = [Point((0.0,), 2.0, ("x",), ""), Point((1.0,), 4.0, ("x",), "")]
        >>> task, home = TASKS["regression"].task.learn(recipe, known), Path(tempfile.mkdtemp())
        >>> with Run.create(home / "run", recipe.table(), recipe.task) as run:
        ...     with run.new_tokenizer_folder() as folder:
        ...         task.save(folder)
        ...     run.finish(task.build_model().state_dict())
        >>> export_run(home / "run", "bundle", home / "points.regard")
        >>> [answer.text() for answer in Predictor.load(home / "points.regard").predict(["0.5"])]
        ['3']
    """
    check_path("out", out)
    path, out = Path(path), Path(out)
    chosen = choose("form", form, FORMS)
    if precision is not None:
        chosen = _in_precision(chosen, form, precision)
    with explain_path(out):
        is_there, has_folder = out.exists() or out.is_symlink(), out.parent.is_dir()
    if is_there:
        raise SettingError(f"out must be a new path; there is something at {out}.")
    if not has_folder:
        raise SettingError(f"out must be in a folder that exists; got {out}. Make the folder.")
    run = Run.open(path)
    run.check_finished()
    predictor = Predictor.load(path, device=ON_CPU)
    if (refusal := chosen.refuse(predictor)) is not None:
        holding = [name for name, candidate in FORMS.items() if candidate.refuse(predictor) is None]
        raise SettingError(
            f"form must be one that can hold the run; got {form!r}, but {refusal}. "
            f"Forms that hold it: --to {', --to '.join(holding)}."
        )
    readme = readme_of(run, predictor, usage=chosen.usage(predictor, out.name))
    chosen.write(run, predictor, out, readme=readme)


def _in_precision(form: ExportForm, name: str, precision: str) -> ExportForm:
    """The form, with its weights in another precision."""
    if not form.precisions:
        raise SettingError(
            f"precision must be left out for {name}, whose weights are as the run's; "
            f"got {precision!r}."
        )
    choose("precision", precision, dict.fromkeys(form.precisions))
    changed = copy(form)
    changed.precision = precision
    return changed
