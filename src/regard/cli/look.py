"""``regard look``."""

import re
import sys
import threading
import webbrowser
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from regard.cli.output import note, refuse, require, say, write_file
from regard.devices.kinds import AUTO, check_device_name
from regard.errors import DataError, SettingError

if TYPE_CHECKING:
    from regard.inference import Predictor
    from regard.viewer import NotebookPage

_LONG = 512  # tokens up to which a page holds every weight


def look(
    run: str | None = None,
    /,
    *texts: str,
    model: str | None = None,
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

    Example: `regard look bert-folder article.txt`

    Draws what can be drawn in the terminal, and writes a page that needs no network. A run of
    translation translates each text; a text longer than it was trained on is cut at sentence ends,
    as in `regard predict`. A run of another task says its label, its tags, or how unexpected each
    token is, beside what the model looked at. A model that reads one text and writes another is
    looked at while it writes; its weights must be safetensors.

    Args:
        run: The run folder, or that of a Hugging Face model.
        texts: The texts; of a Hugging Face model files of text, too. Without any, stdin.
        model: The same as a Hugging Face folder for RUN, or a name on the Hugging Face hub.
        file: Read texts from here: of a run one on each line, with --model all of it.
        target: Explain this output of the one text, instead of the model's own; of a language model
            a next word, of a masked one a word in the mask's place, of a classifier a class.
        against: Why the target, and not this: a word, a class, or another output.
        attribute: How contributions of tokens are computed: `gradient-times-input`,
            `integrated-gradients`, `leave-one-out`, `rollout`, `attention-gradient`, with commas
            between them; `all`, or `none`. By default those that take little time.
        layers: Which layers, counted from 0: 3 or 0,2 or 4-7. The page counts from 1.
        heads: Which heads, in the same way.
        out: The page to write.
        beam_size: Hypotheses kept at each step of a run's search; by default the recipe's.
        truncate: Cut a text that is longer than the positions of --model.
        device: Where it works: `auto` takes a GPU if there is one; `cpu`; `cuda`, or `cuda:1` for
            the second GPU; `mps` for that of a Mac.
        allow_download: Fetch --model from the Hugging Face hub where it is no folder here.
        open_page: Open the page in a browser.
        serve: Serve the page on this machine until Ctrl-C, and answer it with the exact weights of
            texts too long for a page to hold them; takes memory for their queries and keys.
        live: Put the model itself into the page, which then translates, continues or classifies
            what is typed into it, without a server; TEXTS are offered there.
        pair: Let --model read two texts as one, as BERT reads a pair of sentences.
        neurons: Heads of --model whose queries and keys the page has, counted from 0: 3.5 or
            0.1,3.5 (layer.head); by default all, where they take at most 1.5 MB.
    """
    check_device_name("--device", device)
    from regard.inference import Predictor
    from regard.inference.look import numbers_of
    from regard.viewer import draw_examples

    if live:
        given = {"--model": model, "--target": target, "--layers": layers, "--heads": heads}
        given |= {"--not": against, "--attribute": attribute}
        refuse({**given, "--serve": serve, "--truncate": truncate}, "with --live")
        _write_live(run, texts, file, device, beam_size, out)
        if open_page:
            webbrowser.open(out.resolve().as_uri())
        return
    from regard.interop.explaining import methods_named

    wanted: dict[str, Any] = {"target": target, "layers": numbers_of("--layers", layers)}
    wanted["heads"] = numbers_of("--heads", heads)
    wanted |= {"against": against, "attribute": methods_named(attribute)}
    copies: list[str] = []
    if model is None and run is not None and _is_checkpoint(Path(run)):
        model, run = run, None
    if model is not None:
        from regard.interop.looking import look as look_into

        require({"--beam-size": beam_size}, "a run")
        all_texts = _texts([text for text in (run, *texts) if text is not None], file)
        loaded = _load_model(model, device, allow_download=allow_download)
        wanted |= {"pair": pair, "neurons": _heads_of(neurons)}
        page = look_into(*loaded, all_texts, truncate=truncate, live=serve, **wanted)
    else:
        options = {"--truncate": truncate, "--allow-download": allow_download, "--pair": pair}
        require({**options, "--neurons": neurons}, "--model")
        if run is None:
            raise SettingError(
                "RUN must be given, or --model; got neither. See regard look --help."
            )
        lines = _lines_of(texts, file)
        predictor = Predictor.load(run, device=device, setting="--device")
        page, copies = _look_into_run(predictor, lines, beam_size, serve, **wanted)
    examples = page.document.examples
    say("\n\n".join([draw_examples(examples, page.document.opening), *copies]))
    write_file(out, page.page())
    note(f"wrote {out}")
    sizes = [len(each.source_tokens) for each in examples]
    sizes += [len(each.output_tokens) for each in examples]
    if not serve and max(sizes) > _LONG:
        note("its maps of long texts are pooled: --serve shows every weight while it runs")
    address = page.serve() if serve else out.resolve().as_uri()
    if open_page:
        webbrowser.open(address)
    if serve:
        with suppress(KeyboardInterrupt):
            note(f"serving it at {address} (Ctrl-C to stop)")
            threading.Event().wait()
        page.close()


def _heads_of(text: str | None) -> list[tuple[int, int]] | None:
    """The heads that a text such as ``0.1,3.5`` names."""
    if text is None:
        return None
    if not re.fullmatch(r"\d{1,6}\.\d{1,6}(,\d{1,6}\.\d{1,6})*", text):
        raise SettingError(f"--neurons must be heads LAYER.HEAD, such as 0.1,3.5; got {text!r}.")
    layers_and_heads = [one.split(".") for one in text.split(",")]
    return [(int(layer), int(head)) for layer, head in layers_and_heads]


def _write_live(
    run: str | None,
    texts: Sequence[str],
    file: Path | None,
    device: str,
    beam_size: int | None,
    out: Path,
) -> None:
    """Write the page that holds the model of a run."""
    from regard.checks import check_at_least
    from regard.inference import Predictor
    from regard.inference.live import live_page

    if run is None:
        raise SettingError("RUN must be given with --live; got none. See regard look --help.")
    if beam_size is not None:
        check_at_least("beam_size", beam_size, 1, cure="Use 1 for greedy search.")
    predictor = Predictor.load(run, device=device, setting="--device")
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
    **wanted: Any,
) -> "tuple[NotebookPage, list[str]]":
    """The page, and the copied tokens in lines."""
    from regard.checks import check_at_least
    from regard.inference.looking import look_into, rows_of
    from regard.interop.readings import explain_run, is_explained
    from regard.viewer import show

    why: dict[str, Any] = {"against": against, "methods": attribute}
    if not predictor.is_seq2seq:
        options: dict[str, object] = {"--beam-size": beam_size}
        if not is_explained(predictor.task):
            options |= {"--target": target, "--not": against, "--attribute": attribute}
        refuse(options, f"for a run of {predictor.recipe.task}; it is for translators")
        document = look_into(predictor, texts, **wanted)
        return show(explain_run(predictor, document, texts, target=target, **why)), []
    if beam_size is not None:
        check_at_least("beam_size", beam_size, 1, cure="Use 1 for greedy search.")
    task = predictor.task
    sources = [task.request(text, f"text {number}").source for number, text in enumerate(texts, 1)]
    document = look_into(predictor, sources, target=target, beam_size=beam_size, **wanted)
    document = explain_run(predictor, document, sources, **why)
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


def _load_model(model: str, device: str, *, allow_download: bool) -> tuple[Any, Any]:
    """A Hugging Face model on a device, and its tokenizer."""
    from torch import nn

    from regard.devices import find_device
    from regard.interop.checkpoints.folder import load_folder

    torch_device = find_device(device, setting="--device")
    loaded, tokenizer = load_folder(model, allow_download=allow_download)
    return nn.Module.to(loaded, torch_device), tokenizer  # of whose own ``to`` mypy knows nothing


def _is_checkpoint(folder: Path) -> bool:
    """Whether a folder is a model of Hugging Face's and no run."""
    from regard.runs import is_run

    return (folder / "config.json").is_file() and not is_run(folder)


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
