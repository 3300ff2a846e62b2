"""``regard look``."""

import os
import re
import shlex
import sys
import threading
import webbrowser
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from regard.cli.output import (
    end_interrupted_line,
    note,
    note_unknown,
    refuse,
    require,
    say,
    write_file,
)
from regard.devices.kinds import AUTO, check_device_name
from regard.errors import DataError, RunError, SettingError

if TYPE_CHECKING:
    from regard.inference import Predictor
    from regard.viewer import Document, NotebookPage

_LONG = 512  # tokens up to which a page holds every weight
_COMPARED = 2  # models, or texts, that stand beside each other


def look(
    run: str | None = None,
    /,
    *texts: str,
    model: Annotated[tuple[str, ...], Parameter(show_default=False)] = (),
    file: Path | None = None,
    target: str | None = None,
    against: Annotated[str | None, Parameter(name="--not")] = None,
    attribute: str | None = None,
    layers: str | None = None,
    heads: str | None = None,
    out: Annotated[Path, Parameter(name=["--output", "-o", "--out"])] = Path("attention.html"),
    beam_size: int | None = None,
    truncate: bool = False,
    device: str = AUTO,
    allow_download: bool = False,
    open_page: Annotated[bool, Parameter(name="--open")] = False,
    serve: bool = False,
    live: bool = False,
    pair: bool = False,
    neurons: str | None = None,
) -> None:
    """Show what a model looks at: a run or a Hugging Face folder, and texts.

    Example: `regard look regard-demo 我爱中国`

    Example: `regard look runs/small runs/large 我爱中国`, both beside each other

    Draws what can be drawn in the terminal, and writes a page that needs no network. A run
    translates its texts, or says a label, tags, or how unexpected each token is. Of two models, or
    two texts, the page opens with both and their difference.

    Args:
        run: The run folder, or that of a Hugging Face model; a second one is compared with it.
        texts: The texts; of a Hugging Face model files of text, too. Without any, stdin.
        model: A Hugging Face folder, or a name on its hub; twice, or beside RUN, to compare two.
        file: Read texts from here: of a run one on each line, with --model all of it.
        target: Explain this output, not the model's own: a next word, a word for the mask, a class.
        against: Why the target, and not this: a word, a class, or another output.
        attribute: How tokens contribute: `gradient-times-input`, `integrated-gradients`,
            `leave-one-out`, `rollout`, `attention-gradient`, with commas; `all` or `none`. By
            default those that take little time.
        layers: Which layers, counted from 0: 3 or 0,2 or 4-7. The page counts from 1.
        heads: Which heads, in the same way.
        out: The page to write.
        beam_size: Hypotheses kept at each step of a run's search; by default the recipe's.
        truncate: Cut a text that is longer than the positions of --model.
        device: Where it works: `auto` (a GPU if there is one), `cpu`, `cuda`, `cuda:1`, `mps`.
        allow_download: Fetch --model from the Hugging Face hub where it is no folder.
        open_page: Open the page in a browser.
        serve: Serve the page until Ctrl-C, with exact weights of texts too long for a page.
        live: Put the model itself into the page: it answers what is typed, without a server.
        pair: Let --model read two texts as one, as BERT reads a pair of sentences.
        neurons: Heads whose queries and keys the page has: 3.5 or 0.1,3.5 (layer.head, from 0);
            by default all, where they take at most 1.5 MB.
    """
    check_device_name("--device", device)
    from regard.inference.look import numbers_of

    if live:
        refused = {"--model": model, "--target": target, "--layers": layers, "--heads": heads}
        refused |= {"--not": against, "--attribute": attribute}
        refuse({**refused, "--serve": serve, "--truncate": truncate}, "with --live")
        _write_live(run, texts, file, device, beam_size, out)
        if open_page:
            webbrowser.open(out.resolve().as_uri())
        return
    from regard.interop.pages.explaining import methods_named

    selected: dict[str, Any] = {"target": target, "layers": numbers_of("--layers", layers)}
    selected["heads"] = numbers_of("--heads", heads)
    selected |= {"against": against, "attribute": methods_named(attribute)}
    selected["neurons"] = _heads_of(neurons)
    models, words = _models_of([word for word in (run, *texts) if word is not None], model)
    names = _names_of([name for name, _ in models])
    if len(models) > 1:
        refuse({"--serve": serve}, "with two models: the page holds what it compares")
    given = words
    if any(is_run for _, is_run in models):
        if all(is_run for _, is_run in models):
            options = {"--truncate": truncate, "--allow-download": allow_download, "--pair": pair}
            require(options, "--model")
        words = _lines_of(words, file)
    else:
        require({"--beam-size": beam_size}, "a run")
        words = _texts(words, file)

    def looked(name: str, is_run: bool) -> "tuple[NotebookPage, list[str]]":
        if is_run:
            from regard.inference import Predictor
            from regard.inference.requests import request_of_value, unknown_in

            try:
                predictor = Predictor.load(name, device=device)
            except RunError as error:
                if Path(name).exists() or len(Path(name).parts) > 2:  # owner/name, on the hub
                    raise
                cure = f"Of a Hugging Face model on the hub: --model {name} --allow-download."
                raise RunError(f"{error} {cure}") from None
            _refuse_files(predictor, given)
            made = _look_into_run(predictor, words, beam_size, serve, **selected)
            requests = [request_of_value(predictor.task, word, word) for word in words]
            note_unknown(chain.from_iterable(unknown_in(predictor.task, one) for one in requests))
            return made
        from regard.interop.pages.looking import look as look_into

        loaded = _load_model(name, device, allow_download=allow_download)
        return look_into(*loaded, words, truncate=truncate, live=serve, pair=pair, **selected), []

    _show([looked(*each) for each in models], names, words, out, open_page=open_page, serve=serve)


def _show(
    looked: "Sequence[tuple[NotebookPage, list[str]]]",
    names: Sequence[str],
    texts: Sequence[str],
    out: Path,
    *,
    open_page: bool,
    serve: bool,
) -> None:
    """Draw in the terminal, and write the page or serve it."""
    from regard.viewer import draw_examples, show

    blocks = []
    for name, (each, copies) in zip(names, looked, strict=True):
        drawn = draw_examples(each.document.examples, each.document.opening)
        blocks += [*([f"{name}:"] if len(names) > 1 else []), drawn, *copies]
    say("\n\n".join(blocks))
    page = looked[0][0]
    if len(looked) > 1:
        page = show(_compared(page.document, looked[1][0].document, (names[0], names[1]), texts))
    elif len(texts) == len(page.document.examples) == _COMPARED:
        page.document = replace(page.document, tab="compare")
    write_file(out, page.page())
    note(f"wrote {out}")
    examples = page.document.examples
    sizes = [len(each.source_tokens) for each in examples]
    sizes += [len(each.output_tokens) for each in examples]
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


def _heads_of(text: str | None) -> list[tuple[int, int]] | None:
    """The heads that a text such as ``0.1,3.5`` names."""
    if text is None:
        return None
    if not re.fullmatch(r"\d{1,6}\.\d{1,6}(,\d{1,6}\.\d{1,6})*", text):
        raise SettingError(f"--neurons must be heads LAYER.HEAD, such as 0.1,3.5; got {text!r}.")
    layers_and_heads = [one.split(".") for one in text.split(",")]
    return [(int(layer), int(head)) for layer, head in layers_and_heads]


def _models_of(
    words: list[str], options: Sequence[str]
) -> tuple[list[tuple[str, bool]], list[str]]:
    """Models, each with whether it is a run, and the words that are texts."""
    models: list[tuple[str, bool]] = []
    while words and ((not models and not options) or _is_model(words[0])):
        models.append((words[0], not is_checkpoint(Path(words[0]))))
        words = words[1:]
    models += [(name, is_run_folder(name)) for name in options]
    if not models:
        raise SettingError("RUN must be given, or --model; got neither. See regard look --help.")
    if len(models) > _COMPARED:
        raise SettingError(f"models must be one, or two to compare; got {len(models)}.")
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
    one: "Document", other: "Document", names: tuple[str, str], texts: Sequence[str]
) -> "Document":
    """The examples of two models as one document, which opens with a comparison."""
    from regard.viewer import beside, in_one_line

    both = beside(one, other, labels=names)
    task = one.task if one.task == other.task else ""
    return replace(both, title=in_one_line(texts[0]), task=task, opening=None, tab="compare")


def _write_live(
    run: str | None,
    texts: Sequence[str],
    file: Path | None,
    device: str,
    beam_size: int | None,
    out: Path,
) -> None:
    """Write the page that holds the model of a run."""
    from regard.inference import Predictor
    from regard.inference.live import live_page

    if run is None:
        raise SettingError("RUN must be given with --live; got none. See regard look --help.")
    predictor = Predictor.load(run, device=device)
    _refuse_files(predictor, texts)
    lines = [*texts, *(_lines(file) if file is not None else [])]
    made = live_page(predictor, [line for line in lines if line.strip()], beam_size=beam_size)
    write_file(out, made)
    say(f"wrote {out}, {len(made.encode()) / 1e6:.1f} MB with the model in it: open it and type")


def _look_into_run(
    predictor: "Predictor",
    texts: Sequence[str],
    beam_size: int | None,
    serve: bool,
    *,
    target: str | None,
    against: str | None,
    attribute: Sequence[str] | None,
    neurons: Sequence[tuple[int, int]] | None,
    **selected: Any,
) -> "tuple[NotebookPage, list[str]]":
    """The page, and the copied tokens in lines."""
    from regard.inference.explanation import is_explained
    from regard.inference.looking import look_into, rows_of
    from regard.interop.pages.explaining import Why
    from regard.viewer import show

    why = Why(against=against, methods=attribute, neurons=neurons)
    if not predictor.is_seq2seq:
        refused: dict[str, object] = {"--beam-size": beam_size}
        if not is_explained(predictor.task):
            refused |= {"--target": target, "--not": against, "--attribute": attribute}
            refused["--neurons"] = neurons
        refuse(refused, f"for a run of {predictor.recipe.task}; it is for translators")
        return show(look_into(predictor, texts, why=replace(why, target=target), **selected)), []
    task = predictor.task
    sources = [task.request(text, f"text {number}").source for number, text in enumerate(texts, 1)]
    selected |= {"target": target, "beam_size": beam_size}
    document = look_into(predictor, sources, why=why, **selected)
    page = show(document, rows=rows_of(predictor, document) if serve else None)
    if target is not None or predictor.seq2seq.copying_layer is None:
        return page, []
    return page, _copies(predictor, sources, beam_size)


def _copies(predictor: "Predictor", sources: Sequence[str], beam_size: int | None) -> list[str]:
    """Source of each copied token, a line each."""
    lines = []
    for hypotheses in predictor.translate(sources, beam_size=beam_size, attention=True):
        alignment = hypotheses[0].alignment
        if alignment is not None and alignment.tokens:
            words = [
                text if place is None else f"[{text}]{place}" for text, place in alignment.copies()
            ]
            lines.append(f"copied, from which character on: {' '.join(words)}")
    return lines


def _refuse_files(predictor: "Predictor", texts: Sequence[str]) -> None:
    """Raise DataError if a text for a run is the name of a file."""
    for text in texts if predictor.task.are_texts else ():
        with suppress(OSError):  # longer than any name
            if Path(text).is_file():
                raise DataError(
                    f"text must be what to look into; got the name of a file, {text}. "
                    f"Look into its lines: --file {shlex.quote(text)}"
                )


def _load_model(model: str, device: str, *, allow_download: bool) -> tuple[Any, Any]:
    """A Hugging Face model on a device, and its tokenizer."""
    from torch import nn

    from regard.devices import find_device
    from regard.interop.checkpoints.folder import load_folder

    torch_device = find_device(device)
    loaded, tokenizer = load_folder(model, allow_download=allow_download)
    return nn.Module.to(loaded, torch_device), tokenizer  # of whose own ``to`` mypy knows nothing


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


def _texts(all_texts: Sequence[str], file: Path | None) -> list[str]:
    """Texts for a model: words of the command line or of files that they name; else stdin."""
    named = [] if file is None else [_whole(file)]
    texts = [*map(_text_of, all_texts), *named] or ["\n".join(_piped())]
    if not all(text.strip() for text in texts):
        raise DataError(
            "text must be given to look into a model; got none. Write it behind the folder, name a "
            "file of it, or pipe it in."
        )
    return texts


def _text_of(word: str) -> str:
    """The text of a file, where the word names one; else the word itself."""
    path = Path(word)
    ending = path.suffix[1:]  # letters, unlike that of "3.5" or of a sentence in Chinese
    is_file = ending.isascii() and ending[:1].isalpha() and not any(map(str.isspace, word))
    with suppress(OSError):  # longer than any name
        is_file = is_file or path.is_file()
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
