"""``regard look --sharpest``: the texts of a corpus in which a head is sharpest."""

import webbrowser
from collections.abc import Sequence
from pathlib import Path

from regard.cli.options import heads_of
from regard.cli.output import note, say
from regard.errors import SettingError
from regard.files import write_file


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
    write_file(out, page.page().encode())
    note(f"wrote {out}: {len(ranked)} of {len(texts)} texts, where head {layer}.{head} is sharpest")
    if open_page:
        webbrowser.open(out.resolve().as_uri())
