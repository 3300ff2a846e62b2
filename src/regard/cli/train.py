"""``regard train``."""

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from regard.cli.jobs import Files, find_recipe, recipe_and_files, split_settings
from regard.cli.options import UNLISTED
from regard.cli.output import note, preparing_bar
from regard.config import build
from regard.devices.kinds import check_device_name
from regard.errors import Interrupted, RunError, SettingError
from regard.training.launching import check_processes, find_place, launch
from regard.training.packaged import default_run
from regard.training.settings import TrainingConfig

if TYPE_CHECKING:
    from regard.tasks import Recipe


def train(
    *what: str,
    source: Annotated[str | None, UNLISTED] = None,
    target: Annotated[str | None, UNLISTED] = None,
    valid: Files = (),
    test: Files = (),
    run: Path | None = None,
    minutes: float | None = None,
    settings: Annotated[tuple[str, ...], Parameter(name="--set", show_default=False)] = (),
    on_bad_line: Literal["error", "skip"] | None = None,
    encoding: str | None = None,
    device: str | None = None,
    processes: int | None = None,
    resume: bool = False,
) -> int:
    """Train a model into a run folder: a translator, a classifier, a tagger.

    Example: `regard train pairs.tsv --minutes 30`

    Example: `regard train classification-convolution reviews.csv --test held-back.csv`

    With a recipe, by name or path (`regard recipes` lists them), it trains that; files after it are
    what it trains on, in the form that the recipe's task reads. With files only, it guesses from
    the first what they are for (labels, tags, pairs, summaries, questions, running text), says so,
    why, and the command that says the same; of sentence pairs it picks tokenizer, model and batch.
    Ctrl-C saves and stops; the same command goes on. With --resume it goes on by other limits,
    rates or batches, and remembers what was changed. It trains on a GPU where there is one; what is
    begun on one device goes on on any other.

    Example: `regard train --resume --run runs/pairs --set training.learning_rate=0.0005`

    Args:
        what: A recipe, or files to train on, or both. Sentence pairs are one .tsv, .csv, .jsonl or
            .parquet file, or two files of lines, source and target; each may end in .gz or .zst,
            and may be a folder of such files or a pattern in quotes: 'shards/*.tsv.gz'.
        source: The file of sources, with --target the same as two files.
        target: The file of targets.
        valid: What to validate on, in the same forms; by default a part of the training text.
        test: What `regard evaluate` asks about; by default a part of the training text.
        run: The run folder; by default runs/ and the recipe's or the file's name.
        minutes: Time to train, in place of the recipe's updates and epochs.
        settings: A setting over the recipe's, such as model.num_heads=4; may be given often.
            `regard settings` lists them all.
        on_bad_line: What to do about lines that cannot be read: stop, or leave them out and count.
        encoding: What text that is not UTF-8 is in, such as gbk, big5, cp1252 or utf-16; by default
            GB18030 and UTF-16 are recognised.
        device: `auto` takes a GPU if there is one; or `cpu`, `cuda`, `cuda:1`, `mps`.
        processes: How many processes of this machine train it together, each on a GPU of its own
            where there are GPUs. On several machines torchrun starts them.
        resume: Go on with the run in --run by the recipe that it keeps; --minutes (in all) and
            --set training.… go over it. What the model is and what it reads stays.
    """
    if device is not None:
        check_device_name("--device", device)
    what = tuple(recipe_and_files(what, source, target))
    files = [*split_settings("valid", valid), *split_settings("test", test)]
    if processes is not None:
        check_processes(processes)
    if processes is not None and processes > 1:
        options = {
            "run": run,
            "minutes": minutes,
            "on-bad-line": on_bad_line,
            "encoding": encoding,
            "device": device,
        }
        given = [f"--{name}={value}" for name, value in options.items() if value is not None]
        given += [f"--set={setting}" for setting in (*files, *settings)] + ["--resume"] * resume
        return launch(["train", *what, *given], processes)
    asked = [*files, *_settings(settings, minutes, on_bad_line, device)]
    from regard.text.encodings import encoded_as

    try:
        with _together(), encoded_as(encoding):
            _train(what, run, asked, minutes=minutes, resume=resume)
    except KeyboardInterrupt as stop:
        if not isinstance(stop, Interrupted):  # which has been told of
            note("stopped outside the updates; the same command goes on from what is saved")
        raise
    return 0


def _together() -> AbstractContextManager[object]:
    """The other processes, where torchrun or ``--processes`` has started several."""
    if find_place() is None:
        return nullcontext()
    # Torch's own words on connections that close, many lines in each process, tell nobody anything.
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "FATAL")
    from regard.training.ranks import joined

    return joined()


def _train(
    what: Sequence[str],
    run: Path | None,
    settings: Sequence[str],
    *,
    minutes: float | None,
    resume: bool,
) -> None:
    if resume:
        from regard.runs import is_run

        folder = run or (default_run(what) if what else None)
        if folder is not None and folder.is_dir() and not is_run(folder):
            raise RunError(
                f"--resume must go with the folder of a run; run.json is missing in {folder}."
            )
        if folder is None or not is_run(folder):
            raise SettingError(
                f"--resume must go with the folder of a run; got {str(folder or 'none')!r}. "
                "Name it: --run FOLDER."
            )
        if not what:
            from regard import training

            training.resume(folder, settings=settings, preparing=preparing_bar)
            return
    recipe = find_recipe(what, settings, minutes=minutes)
    build(TrainingConfig, recipe.training, where="training")  # refused before torch is there
    from regard import training

    folder = run or default_run(what)
    recipe = training.with_test(recipe, folder)
    predictor = training.train(
        recipe,
        folder,
        may_change=resume,
        preparing=preparing_bar,
    ).predictor
    for line in predictor.task.describe_learned(predictor.model):
        note(line)
    note(f"next: {_next(recipe, folder)}", is_command=True)


def _next(recipe: "Recipe", run: Path) -> str:
    """The commands that can do something with a new run."""
    from regard.tasks import TASKS

    has_test = recipe.uses_phrasebook or bool(recipe.data.test)
    commands = [f"predict {run}", f"evaluate {run}{'' if has_test else ' --split valid'}"]
    if TASKS[recipe.task].is_shown:
        commands.append(f"look {run} TEXT")
    return ", ".join(f"regard {command}" for command in commands)


def _settings(
    settings: Sequence[str],
    minutes: float | None,
    on_bad_line: str | None,
    device: str | None,
) -> list[str]:
    """Settings given by the options of a command line."""
    extra = list(settings)
    if minutes is not None:
        named = {setting.partition("=")[0].strip() for setting in settings}
        limits = [name for name in ("training.updates", "training.epochs") if name not in named]
        extra = [*(f"{name}=none" for name in limits), *extra]
        extra.append(f"training.minutes={float(minutes)}")
    if on_bad_line is not None:
        extra.append(f"data.on_bad_line={on_bad_line}")
    if device is not None:
        extra.append(f"training.device={device}")
    return extra
