"""``regard bench``."""

import json
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from regard.checks import check_at_least
from regard.cli.output import note, progress_bar, refuse, say
from regard.devices.kinds import AUTO, check_device_name
from regard.layers.choices import Precision

if TYPE_CHECKING:
    from regard.inference import Predictor
    from regard.inference.speed import Speed

# Wide enough where nobody's terminal says otherwise.
_WIDTH = 120
_STOPPED = 130


def bench(
    run: Path,
    file: Path | None = None,
    /,
    *,
    beam_sizes: Annotated[tuple[int, ...], Parameter(consume_multiple=True)] = (),
    precisions: Annotated[tuple[Precision, ...], Parameter(consume_multiple=True)] = ("float32",),
    most: int = 200,
    device: str = AUTO,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
) -> int:
    """Measure how fast a run answers on this machine, and in what memory.

    Example: `regard bench regard-demo`

    Example: `regard bench regard-demo sentences.txt --beam-sizes 1 5 10`

    Texts a second and tokens a second (written; of answers in one pass, read) where all are
    answered at once; how long one takes by itself, as half and as nineteen in twenty of them do;
    and the most memory of the process. Ctrl-C prints what has been measured.

    Args:
        run: The run folder.
        file: Texts, as `regard predict` reads them; by default the run's own test or validation
            data, if it is still there.
        beam_sizes: Hypotheses kept at each step; by default 1 and the recipe's.
        precisions: What weights are kept in: float32, int8 or bfloat16.
        most: How many texts to answer at most.
        device: Where it works: `auto` takes a GPU if there is one; `cpu`; `cuda`, or `cuda:1` for
            the second GPU; `mps` for that of a Mac.
        as_json: Print one JSON object instead.
    """
    check_device_name("--device", device)
    from regard.inference import Predictor
    from regard.inference.speed import beam_sizes_of, speeds, steps, texts_of

    check_at_least("--most", most, 1)
    for size in beam_sizes:
        check_at_least("--beam-sizes", size, 1, cure="Use 1 for greedy search.")
    load = partial(Predictor.load, run, device=device, setting="--device")
    predictor = load()
    own = beam_sizes_of(predictor)
    if own == [None]:
        refuse(
            {"--beam-sizes": beam_sizes},
            f"for a run of {predictor.recipe.task}, which searches for nothing",
        )
    sizes = beam_sizes or own
    texts = texts_of(predictor, file, most=most)
    found: list[Speed] = []
    is_stopped = False
    try:
        with progress_bar(
            "measuring", lambda: steps(texts, len(sizes) * len(precisions)), beside_results=False
        ) as advance:
            for speed in speeds(
                lambda precision: load(precision=precision),
                texts,
                precisions=precisions,
                beam_sizes=sizes,
                progress=advance,
            ):
                found.append(speed)
    except KeyboardInterrupt:
        is_stopped = True
    _say(run, found, predictor, as_json=as_json)
    if is_stopped:
        note("stopped; what was measured is above")
    return _STOPPED if is_stopped else 0


def _say(run: Path, found: "Sequence[Speed]", predictor: "Predictor", *, as_json: bool) -> None:
    import torch

    from regard.devices import told_device
    from regard.version import __version__

    if not as_json:
        _print(run, found)
        where = told_device(predictor.device)
        note(f"{where}; regard {__version__}, torch {torch.__version__}")
        return
    versions = {"regard": __version__, "torch": torch.__version__}
    place = {"device": told_device(predictor.device), "threads": torch.get_num_threads()}
    said = {**versions, "run": str(run), **place}
    speeds = [speed.to_dict() for speed in found]
    say(json.dumps({**said, "speeds": speeds}, ensure_ascii=False))


def _print(run: Path, found: "Sequence[Speed]") -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{run}", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("precision", "beam", "texts", "texts/s", "tokens/s", "p50 ms", "p95 ms", "MiB"):
        table.add_column(name, justify="left" if name == "precision" else "right")
    for each in found:
        table.add_row(
            each.precision,
            "" if each.beam_size is None else str(each.beam_size),
            f"{each.texts:,}",
            f"{each.texts_per_second:,.1f}",
            f"{each.tokens_per_second:,.0f}",
            f"{each.p50:,.1f}",
            f"{each.p95:,.1f}",
            "" if each.peak_mib is None else f"{each.peak_mib:,.0f}",
        )
    is_terminal = sys.stdout.isatty()
    width = None if is_terminal else _WIDTH
    Console(file=sys.stdout, width=width, markup=False, highlight=False).print(table)
