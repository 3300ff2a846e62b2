"""``regard look``."""

import webbrowser
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from regard.cli.output import note, say


def look(
    run: Path,
    text: str,
    /,
    *,
    output: Path = Path("attention.html"),
    target: str | None = None,
    beam_size: int | None = None,
    open_page: Annotated[bool, Parameter(name="--open")] = False,
) -> None:
    """Show what the model looks at when it translates a text.

    Example: `regard look regard-demo 我爱中国`

    Draws the attention in the terminal, and writes a page that needs no network: source and output,
    heads and layers to choose from.

    Args:
        run: The run folder.
        text: The sentence to translate.
        output: The page to write.
        target: Explain this translation, instead of the model's own.
        beam_size: Hypotheses kept at each step of the search; by default the recipe's.
        open_page: Open the page in a browser.
    """
    from regard.inference import Predictor
    from regard.inference.looking import document, draw, look_at
    from regard.viewer import page

    predictor = Predictor.load(run)
    example = look_at(predictor, text, target, beam_size=beam_size)
    say(f"{example.source} → {example.output}")
    if any(found.kind == "cross" for found in example.maps):
        say()
        say(str(draw(example)))
    shown = document(predictor, [example], title=f"{example.source} → {example.output}")
    write_page(output, page(shown))
    note(f"wrote {output}")
    if open_page:
        webbrowser.open(output.resolve().as_uri())


def write_page(path: Path, text: str) -> None:
    """Write a page, making its folder if need be.

    Raises:
        RunError: The system refuses.
    """
    from regard.errors import RunError

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise RunError(
            f"{path} must be a file that can be written; got: {error.strerror}. "
            "Choose another with --output."
        ) from error
