"""``regard export``."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from regard.choices import choose
from regard.cli.output import note


def export(
    run: Path,
    /,
    out: Annotated[Path, Parameter(name=["--output", "-o", "--out"])],
    *,
    to: str = "bundle",
    precision: str | None = None,
) -> None:
    """Write a finished run in a form to hand on.

    Example: `regard export regard-demo demo.regard`, then `regard predict demo.regard FILE`

    - `bundle`: one file that every command takes in place of the run folder; weights, tokenizer
      and recipe, without code and without pickle
    - `huggingface`: a folder that `from_pretrained` of transformers opens, with its tokenizer
    - `ctranslate2`: a folder that CTranslate2 translates with, or goes on with texts
    - `onnx`: a folder with ONNX graphs: of what answers in one pass, and of translators and
      language models that are Transformers (the source, and a step with its caches)
    - `torch`: a folder with a program of torch.export (.pt2) of what answers in one pass

    With it goes a README: what it is, its data, its figures, and how to use it.

    Args:
        run: The run folder.
        out: The file or folder to write; nothing may be there.
        to: The form.
        precision: Of `ctranslate2`: `int8` or `float16`, to write its weights smaller.
    """
    from regard.export import FORMS, export_run

    choose("--to", to, FORMS)
    export_run(run, to, out, precision=precision)
    note(f"wrote {out}")
