"""``regard look`` of three runs or more, and of the texts of a corpus where a head is sharpest."""

import webbrowser
from collections.abc import Sequence
from pathlib import Path

from regard.cli.options import heads_of
from regard.cli.output import note, say
from regard.errors import SettingError
from regard.files import write_file
from regard.viewer.options import LookOptions


def look_at_seeds(
    runs: Sequence[str],
    texts: Sequence[str],
    out: Path,
    options: LookOptions,
    *,
    device: str,
    open_page: bool,
) -> None:
    """Draw the weights of several runs of one recipe in the terminal, and write their page."""
    from regard.inference import Predictor
    from regard.inference.seeds import weights_of_runs
    from regard.viewer.spread import draw_spread, spread_page

    predictors = [Predictor.load(run, device=device) for run in runs]
    target, beam_size = options.target, options.beam_size
    spreads = [weights_of_runs(predictors, text, target, beam_size=beam_size) for text in texts]
    say("\n\n".join(map(draw_spread, spreads)))
    write_page(out, spread_page(spreads), is_opened=open_page)


def show_sharpest(
    models: Sequence[tuple[str, bool]],
    word: str,
    texts: Sequence[str],
    out: Path,
    device: str,
    allow_download: bool,
    *,
    open_page: bool,
) -> None:
    """List the texts in which a head is sharpest, and write their page."""
    from regard.inference.checkpoint import Checkpoint
    from regard.inference.loading import load_run
    from regard.inference.sharpest import sharpest_texts

    (name, is_run), *more_models = models
    (layer, head), *more_heads = heads_of("sharpest", word)
    if more_models or more_heads:
        raise SettingError("--sharpest must go with one model and one head; got more.")
    page, ranked = sharpest_texts(
        load_run(name, device=device)
        if is_run
        else Checkpoint.load(name, device=device, allow_download=allow_download),
        texts,
        layer,
        head,
    )
    say("\n".join(f"{confidence:.2f}  {text}" for text, confidence in ranked))
    where = f": {len(ranked)} of {len(texts)} texts, where head {layer}.{head} is sharpest"
    write_page(out, page.page(), where, is_opened=open_page)


def write_page(path: Path, page: str, remark: str = "", *, is_opened: bool) -> None:
    """Write a page and say so; open it in a browser if that is wanted."""
    write_file(path, page.encode())
    note(f"wrote {path}{remark}")
    if is_opened:
        webbrowser.open(path.resolve().as_uri())
