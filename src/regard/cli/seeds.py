"""``regard look`` of three runs or more: the mean and the spread of their weights."""

import webbrowser
from collections.abc import Sequence
from pathlib import Path

from regard.cli.output import note, say
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
    write_file(out, spread_page(spreads).encode())
    note(f"wrote {out}")
    if open_page:
        webbrowser.open(out.resolve().as_uri())
