"""The pages of ``regard demo``: a translator's attention, and one to type into."""

from collections.abc import Sequence
from pathlib import Path

from regard.cli.output import say
from regard.errors import SettingError
from regard.files import write_file
from regard.inference import Predictor
from regard.inference.live import live_page
from regard.viewer import Example, page


def write_page(predictor: Predictor, examples: Sequence[Example], path: Path) -> None:
    """Write the page of a translator's attention, and print its name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    title = "What a translator looks at"
    write_file(path, page(predictor.use.document(examples, title=title)).encode())
    say(f"The page with the attention of {len(examples)} sentences: {path.resolve()}")


def write_typing_page(predictor: Predictor, texts: Sequence[str], path: Path) -> None:
    """Write the page with a translator in it, and print where; or why there is none."""
    try:
        write_file(path, live_page(predictor, texts).encode())
        say(f"The page with the translator in it, for sentences of yours: {path.resolve()}")
    except SettingError as reason:  # a translator of other settings, which lay in the folder
        say(f"There is no page to type into: {reason}")
