"""``regard look``."""

import os
import shlex
import sys
import threading
import webbrowser
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from regard.checks import check_path
from regard.cli.options import LOOKED_AT_WHOLE, LookFlags
from regard.cli.output import (
    check_output,
    end_interrupted_line,
    note,
    note_unknown,
    refuse,
    require,
    say,
)
from regard.cli.surveys import look_at_seeds, show_sharpest
from regard.devices.kinds import AUTO, check_device_name
from regard.errors import DataError, RunError, SettingError
from regard.files import write_file
from regard.text.reading.folders import PICTURES
from regard.viewer.options import LookOptions

if TYPE_CHECKING:
    from regard.inference.use import RunInUse
    from regard.tasks import AnyTask
    from regard.viewer import Document, NotebookPage

_LONG = 512  # tokens up to which a page holds every weight
_COMPARED = 2  # models, or texts, that stand beside each other


def look(
    run: str | None = None,
    /,
    *texts: str,
    model: Annotated[tuple[str, ...], Parameter(show_default=False)] = (),
    file: Path | None = None,
    sharpest: str | None = None,
    looked: LookFlags = LOOKED_AT_WHOLE,
    out: Annotated[Path, Parameter(name=["--output", "-o", "--out"])] = Path("attention.html"),
    truncate: bool = False,
    device: str = AUTO,
    allow_download: bool = False,
    open_page: Annotated[bool, Parameter(name="--open")] = False,
    serve: bool = False,
    live: bool = False,
    pair: bool = False,
) -> None:
    """Show the attention of a model: a run or a Hugging Face folder, and texts.

    Example: `regard look tatoeba-zh-en 我爱中国`

    Example: `regard look runs/small runs/large 我爱中国`, both beside each other

    Example: `regard look seeds/* 我爱中国`, runs of one recipe, with error bars

    Draws small maps in the terminal, and writes a page that needs no network. A run
    translates its texts, or says a label, tags, or how unexpected each token is. Of two models, or
    two texts, the page opens with both and their difference.

    Args:
        run: The run folder, or that of a Hugging Face model; a second one is compared with it. Of
            three runs or more of one recipe, the mean and the spread of each weight are drawn.
        texts: The texts; of a Hugging Face model files of text, too, and of a run or a model of
            pictures picture files. Without any, stdin.
        model: A Hugging Face folder, or a name on its hub; twice, or beside RUN, to compare two.
        file: Read texts from here: of a run one on each line, with --model all of it.
        sharpest: A head, LAYER.HEAD from 0; the page has the twenty texts, lines of FILE, where
            its links are sharpest.
        looked: Attention to show and answers to explain.
        out: The page to write.
        truncate: Cut a text that is longer than the positions of --model.
        device: Where it works: `auto` (a GPU if there is one), `cpu`, `cuda`, `cuda:1`, `mps`.
        allow_download: Fetch --model from the Hugging Face hub where it is no folder.
        open_page: Open the page in a browser.
        serve: Serve the page until Ctrl-C, with exact weights of texts too long for a page.
        live: Put the model itself into the page: it answers typed text, without a server.
        pair: Let --model read two texts as one, as BERT reads a pair of sentences.
    """
    check_device_name("--device", device)
    words = [word for word in (run, *texts) if word is not None]
    check_output(out, [*words, *model, *([] if file is None else [file])])
    served = {"--serve": serve, "--truncate": truncate, "--pair": pair}
    if live:
        refused = {n: v for n, v in looked.flags().items() if n != "--beam-size"}
        refused |= {"--model": model, "--allow-download": allow_download, "--sharpest": sharpest}
        refuse(refused | served, "with --live")
        _write_live(run, texts, file, device, looked.options(LookOptions), out)
        if open_page:
            webbrowser.open(out.resolve().as_uri())
        return
    options = looked.options(LookOptions)
    if options.attribute == []:
        where = "with --attribute none, as no contributions are computed"
        refuse({"--not": options.against}, where)
    models, words = _models_of(words, model)
    if sharpest is not None:
        refuse(served | looked.flags(), "with --sharpest")
        lines = _lines_of(words, file)
        show_sharpest(models, sharpest, lines, out, device, allow_download, open_page=open_page)
        return
    names = _names_of([name for name, _ in models])
    if len(models) > _COMPARED:
        averaged = {**looked.flags(), **served, "--allow-download": allow_download}
        averaged = {n: v for n, v in averaged.items() if n not in ("--target", "--beam-size")}
        refuse(averaged, "with three runs or more, whose weights are averaged")
        named = [name for name, _ in models]
        lines = _lines_of(words, file)
        look_at_seeds(named, lines, out, options, device=device, open_page=open_page)
        return
    where = "with two models: the page holds what it compares"
    refuse({"--serve": serve and len(models) > 1}, where)
    given, requests = words, list[str | Path]()
    if any(is_run for _, is_run in models):
        if all(is_run for _, is_run in models):
            require(
                {"--truncate": truncate, "--allow-download": allow_download, "--pair": pair},
                "--model",
            )
        requests += _lines_of(words, file)
    else:
        require({"--beam-size": options.beam_size}, "a run")
        requests += _texts(words, file)

    def look_by(name: str, is_run: bool) -> "tuple[NotebookPage, list[str]]":
        if is_run:
            return _look_by_run(name, device, given, requests, looked)
        from regard.inference.checkpoint import Checkpoint

        reading = {"truncate": truncate, "live": serve, "pair": pair}
        loaded = Checkpoint.load(name, device=device, allow_download=allow_download, **reading)
        return loaded.look(requests, options), []

    pages = [look_by(*model) for model in models]
    _show(pages, names, requests, out, open_page=open_page, serve=serve)


def _look_by_run(
    name: str,
    device: str,
    given: Sequence[str],
    requests: "Sequence[str | Path]",
    looked: LookFlags,
) -> "tuple[NotebookPage, list[str]]":
    """The page of a run's attention, and lines to print below the drawing of the terminal."""
    from regard.inference.loading import load_run

    try:
        use = load_run(name, device=device)
    except RunError as error:
        if Path(name).exists() or len(Path(name).parts) > 2:  # owner/name, on the hub
            raise
        cure = f"Of a Hugging Face model on the hub: --model {name} --allow-download."
        raise RunError(f"{error} {cure}") from None
    _refuse_files(use, given)
    options = looked.options(LookOptions)
    unused = looked.flags(use.unused(explain=True))
    refuse(unused, f"for a run of {use.job}; it is for translators")
    texts = [_picture(str(request)) if not use.task.are_texts else request for request in requests]
    made = use.look(texts, options)
    unknown = [use.parse_value(text, str(text)).unknown for text in texts]
    note_unknown(chain.from_iterable(unknown))
    return made, use.notes(texts, options)


def _picture(word: str) -> str | Path:
    """A picture file, where a word names one; else the word itself."""
    return Path(word) if Path(word).suffix.lower() in PICTURES else word


def _show(
    looked: "Sequence[tuple[NotebookPage, list[str]]]",
    names: Sequence[str],
    texts: "Sequence[str | Path]",
    out: Path,
    *,
    open_page: bool,
    serve: bool,
) -> None:
    """Draw in the terminal, and write the page or serve it."""
    from regard.viewer import draw_examples, show

    blocks = []
    for name, (model_page, copies) in zip(names, looked, strict=True):
        drawn = draw_examples(model_page.document.examples, model_page.document.opening)
        blocks += [*([f"{name}:"] if len(names) > 1 else []), drawn, *copies]
    say("\n\n".join(blocks))
    page = looked[0][0]
    if len(looked) > 1:
        page = show(_compared(page.document, looked[1][0].document, (names[0], names[1]), texts))
    elif len(texts) == len(page.document.examples) == _COMPARED:
        page.document = replace(page.document, tab="compare")
    write_file(out, page.page().encode())
    note(f"wrote {out}")
    examples = page.document.examples
    sizes = [len(example.source_tokens) for example in examples]
    sizes += [len(example.output_tokens) for example in examples]
    if not serve and len(looked) == 1 and max(sizes) > _LONG:
        note("its maps of long texts are pooled: --serve shows every weight while it runs")
    address = page.serve() if serve else out.resolve().as_uri()
    if open_page:
        webbrowser.open(address)
    if serve:
        try:
            note(f"serving it at {address} (Ctrl-C to stop)")
            threading.Event().wait()
        except KeyboardInterrupt:
            end_interrupted_line()
        page.close()


def _models_of(
    words: list[str], options: Sequence[str]
) -> tuple[list[tuple[str, bool]], list[str]]:
    """Models, each with whether it is a run, and the words that are texts."""
    for name in options:
        check_path("--model", name)
    if words and not options:
        check_path("RUN", words[0])
    models: list[tuple[str, bool]] = []
    while words and ((not models and not options) or _is_model(words[0])):
        models.append((words[0], not is_checkpoint(Path(words[0]))))
        words = words[1:]
    models += [(name, is_run_folder(name)) for name in options]
    if not models:
        raise SettingError("RUN must be given, or --model; got neither. See regard look --help.")
    if len(models) > _COMPARED and not all(is_run for _, is_run in models):
        raise SettingError(
            f"models must be one, two to compare, or runs of one recipe; got {len(models)}."
        )
    return models, words


def _names_of(models: Sequence[str]) -> list[str]:
    """Names of models: of their folders, or the whole paths where these are the same."""
    names = [Path(os.path.realpath(model)).name for model in models]
    if len(set(names)) < len(names):
        names = list(models)
    if len(set(names)) < len(names):
        raise SettingError(f"models must be two different ones to compare; got {names[0]} twice.")
    return names


def _compared(
    first: "Document", second: "Document", names: tuple[str, str], texts: "Sequence[str | Path]"
) -> "Document":
    """The examples of two models as one document, which opens with a comparison."""
    from regard.viewer import beside, in_one_line

    both = beside(first, second, labels=names)
    task = first.task if first.task == second.task else ""
    return replace(both, title=in_one_line(str(texts[0])), task=task, opening=None, tab="compare")


def _write_live(
    run: str | None,
    texts: Sequence[str],
    file: Path | None,
    device: str,
    options: LookOptions,
    out: Path,
) -> None:
    """Write the page that holds the model of a run."""
    from regard.inference import Predictor
    from regard.inference.live import live_page

    if run is None:
        raise SettingError("RUN must be given with --live; got none. See regard look --help.")
    predictor = Predictor.load(run, device=device)
    _refuse_files(predictor.use, texts)
    lines = [*texts, *(_lines(file) if file is not None else [])]
    made = live_page(
        predictor, [line for line in lines if line.strip()], beam_size=options.beam_size
    )
    write_file(out, made.encode())
    say(f"wrote {out}, {len(made.encode()) / 1e6:.1f} MB with the model in it: open it and type")


def _refuse_files(use: "RunInUse[AnyTask]", texts: Sequence[str]) -> None:
    """Raise DataError if a text for a run is the name of a file."""
    for text in texts if use.task.are_texts else ():
        with suppress(OSError):  # longer than any name
            if Path(text).is_file():
                raise DataError(
                    f"text must be what to look into; got the name of a file, {text}. "
                    f"Look into its lines: --file {shlex.quote(text)}"
                )


def is_checkpoint(folder: Path) -> bool:
    """Whether a folder is a model of Hugging Face's and no run."""
    from regard.runs import is_run

    return (folder / "config.json").is_file() and not is_run(folder)


def is_run_folder(name: str) -> bool:
    """Whether a word names the folder of a run."""
    from regard.runs import is_run

    with suppress(OSError):  # longer than any name
        return bool(name.strip()) and Path(name).is_dir() and is_run(name)
    return False


def _is_model(word: str) -> bool:
    with suppress(OSError):
        return is_run_folder(word) or is_checkpoint(Path(word))
    return False


def _lines_of(texts: Sequence[str], file: Path | None) -> list[str]:
    """Texts for a run: those of the command line, and lines of the file; else of stdin."""
    lines = _lines(file) if file is not None else [] if texts else _piped()
    all_texts = [*texts, *(line for line in lines if line.strip())]
    if not all_texts:
        where = "the command" if file is None else str(file)
        raise DataError(
            f"text must be given to look into a run; got none in {where}. Write it behind the run, "
            "or a line each into --file."
        )
    return all_texts


def _texts(all_texts: Sequence[str], file: Path | None) -> "list[str | Path]":
    """Texts for a model: words of the command line or of files that they name; else stdin."""
    named = [] if file is None else [_whole(file)]
    texts = [*map(_text_of, all_texts), *named] or ["\n".join(_piped())]
    if not all(str(text).strip() for text in texts):
        raise DataError(
            "text must be given to look into a model; got none. Write it behind the folder, name a "
            "file of it, or pipe it in."
        )
    return texts


def _text_of(word: str) -> str | Path:
    """The text of a file, where the word names one, or a picture file; else the word itself."""
    path = Path(word)
    ending = path.suffix[1:]  # letters, unlike that of "3.5" or of a sentence in Chinese
    is_file = ending.isascii() and ending[:1].isalpha() and not any(map(str.isspace, word))
    with suppress(OSError):  # longer than any name
        is_file = is_file or path.is_file()
    if is_file and path.suffix.lower() in PICTURES:
        return path
    return _whole(path) if is_file else word


def _whole(file: Path) -> str:
    text = "\n".join(_lines(file))
    if not text.strip():
        raise DataError(f"{file} must hold text to look at; got an empty file.")
    return text


def _piped() -> list[str]:
    """The lines of stdin, unless somebody sits before it."""
    if sys.stdin is None or sys.stdin.isatty():
        return []
    return sys.stdin.buffer.read().decode("utf-8", "replace").splitlines()


def _lines(file: Path) -> list[str]:
    from regard.text import read_lines
    from regard.text.reading.lines import readable

    return [readable(line) for line in read_lines(file)]
