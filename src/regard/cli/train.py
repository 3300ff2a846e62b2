"""``regard train``."""

import os
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from regard.cli.jobs import Files, parse_arguments, typed_options
from regard.cli.output import note, program
from regard.config import JsonValue, parse_settings
from regard.devices.kinds import check_device_name
from regard.errors import Interrupted, RunError, SettingError
from regard.training.distributed.launching import check_processes, find_rank, is_launched, launch
from regard.training.recipes.resolving import (
    default_run,
    file_settings,
    pretrained_settings,
    with_minutes,
)

if TYPE_CHECKING:
    from regard.tasks import Recipe


def train(
    *recipe_or_files: str,
    valid: Files = (),
    test: Files = (),
    run: Path | None = None,
    minutes: float | None = None,
    pretrained: str | None = None,
    settings: Annotated[tuple[str, ...], Parameter(name="--set", show_default=False)] = (),
    on_bad_line: Literal["error", "skip"] | None = None,
    encoding: str | None = None,
    device: str | None = None,
    processes: int | None = None,
    resume: bool = False,
) -> int:
    """Train a model into a run folder: a translator, a classifier, a tagger.

    Example: `regard train pairs.tsv --minutes 30`

    Example: `regard train classification-convolution reviews.csv`

    Example: `regard train reviews.csv --pretrained hf:sentence-transformers/all-MiniLM-L6-v2`

    With a recipe, by name or path (`regard recipes` lists them), it trains that; files after it are
    its training text, in the form that the recipe's task reads. With files only, it infers the
    task from the first (labels, tags, pairs, summaries, questions, running text), says so, why, and
    the command that says the same; of sentence pairs it picks tokenizer, model and batch.
    Ctrl-C saves and stops; the same command goes on. With --resume it goes on by other limits,
    rates or batches, and records the changes. It trains on a GPU where there is one; a run
    that began on one device goes on on any other.

    Example: `regard train --resume --run runs/pairs --set training.learning_rate=0.0005`

    Args:
        recipe_or_files: A recipe, or files to train on, or both. Sentence pairs are one .tsv, .csv,
            .jsonl or .parquet file, or two files of lines, source and target; each may end in .gz
            or .zst, and may be a folder of such files or a pattern in quotes: 'shards/*.tsv.gz'.
        valid: Validation text, in the same forms; by default a part of the training text.
        test: Test text of `regard evaluate`; by default a part of the training text.
        run: The run folder; by default runs/ and the recipe's or the file's name.
        minutes: Time to train, in place of the recipe's updates and epochs.
        pretrained: Weights to begin with, which make much of few examples: the run of a masked
            language model, a folder with a checkpoint, or hf:OWNER/NAME[@REVISION] of the Hugging
            Face Hub, fetched once.
        settings: A setting over the recipe's, such as training.batch_tokens=2048; may be given
            often.
            `regard settings` lists them all.
        on_bad_line: Treatment of lines that cannot be read: stop, or leave them out and count.
        encoding: Encoding of text that is not UTF-8, such as gbk, big5, cp1252 or utf-16; by
            default GB18030, Windows-1252 and UTF-16 are recognised.
        device: `auto` takes a GPU if there is one; or `cpu`, `cuda`, `cuda:1`, `mps`.
        processes: How many processes of this machine train it together, each on a GPU of its own
            where there are GPUs. On several machines torchrun starts them.
        resume: Go on with the run in --run by the recipe that it keeps; --minutes (in all) and
            --set training.… go over it. Its model and its data stay.
    """
    if device is not None:
        check_device_name("--device", device)
    if processes is not None and not is_launched():
        check_processes(processes)
        if processes > 1:
            return launch(sys.argv[1:], processes)
    named = {"data.on_bad_line": on_bad_line, "training.device": device}
    named["training.encoding"] = encoding
    over = {
        **file_settings("valid", valid),
        **file_settings("test", test),
        **pretrained_settings(pretrained),
        **with_minutes(minutes, parse_settings(settings)),
        **{name: value for name, value in named.items() if value is not None},
    }
    from regard.text.reading.encodings import encoded_as

    try:
        with _process_group(), encoded_as(encoding):
            arguments = parse_arguments(recipe_or_files)
            options = typed_options(
                valid=valid,
                test=test,
                run=run,
                minutes=minutes,
                pretrained=pretrained,
                settings=settings,
                on_bad_line=on_bad_line,
                encoding=encoding,
                device=device,
                processes=processes,
            )
            is_unnamed = resume and not arguments.name
            recipe = None if is_unnamed else arguments.resolve(over, options)
            folder = run or default_run(arguments.name)
            if resume:
                _check_run(folder, is_named=bool(run or arguments.name))
            if recipe is None:
                _resume(folder, over)
            else:
                _train(recipe, folder, resume=resume)
    except KeyboardInterrupt as stop:
        if not isinstance(stop, Interrupted):  # which the training has reported
            note("stopped outside the updates; the same command goes on from the last save")
        raise
    return 0


def _process_group() -> AbstractContextManager[object]:
    """The processes that torchrun or ``--processes`` has started, if any."""
    if find_rank() is None:
        return nullcontext()
    # Torch's own words on connections that close, many lines in each process, tell nobody anything.
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "FATAL")
    from regard.training.distributed.world import process_group

    return process_group()


def _check_run(folder: Path, *, is_named: bool) -> None:
    """Raise unless there is a run to resume."""
    from regard.runs import is_run

    rule = "--resume must go with the folder of a run"
    if folder.is_dir() and not is_run(folder):
        raise RunError(f"{rule}; run.json is missing in {folder}.")
    if not is_run(folder) and is_named:
        raise RunError(f"{rule}; there is no folder {folder}. Leave out --resume to begin it.")
    if not is_run(folder):
        raise SettingError(f"{rule}; got none. Name it: --run FOLDER.")


def _resume(folder: Path, settings: Mapping[str, JsonValue]) -> None:
    """Go on with a run by the recipe that it keeps, and settings over it."""
    from regard import training

    training.resume(folder, settings=settings)


def _train(recipe: "Recipe", folder: Path, *, resume: bool) -> None:
    """Train into a run folder, describe the model, and name the commands that can use it."""
    from regard import training
    from regard.tasks import TASKS

    done = training.resume(folder, recipe=recipe) if resume else training.train(recipe, folder)
    predictor = done.predictor
    for line in predictor.task.describe_learned(predictor.model):
        note(line)
    trained = predictor.task.recipe
    part = "" if done.has_test else " --split valid"
    commands = [f"predict {folder}", f"evaluate {folder}{part}"]
    if trained.task == "regression" and find_spec("matplotlib") is not None:
        commands[-1] += " --plot fits.svg"
    if TASKS[trained.task].is_shown:
        commands.append(f"look {folder} {predictor.task.request_name}")
    note(f"next: {', '.join(f'{program()} {command}' for command in commands)}", is_command=True)
