"""``regard evaluate``."""

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

from cyclopts import Parameter

from regard.checks import choose
from regard.cli.options import AS_THE_RECIPE_SAYS, DecodingOptions
from regard.cli.output import note, refuse, say
from regard.devices.kinds import AUTO, Precision, check_device_name
from regard.errors import DataError, SettingError
from regard.progress import progress

if TYPE_CHECKING:
    import torch

    from regard.inference import Predictor
    from regard.inference.evaluation.evaluate import Member
    from regard.inference.evaluation.report import Comparison, Report, Speed
    from regard.tasks import AnyTask
    from regard.tasks.sequences.translations import Translations
    from regard.text import Pair

    Evaluation = tuple[Report, Speed, Comparison | None]

_SPLITS = ("train", "valid", "test")


def evaluate(
    run: Path,
    /,
    *files: Path,
    split: str = "test",
    references: Annotated[tuple[Path, ...], Parameter(consume_multiple=True)] = (),
    compare: Path | None = None,
    also: Annotated[tuple[Path, ...], Parameter(consume_multiple=True)] = (),
    decoding: DecodingOptions = AS_THE_RECIPE_SAYS,
    plot: Path | None = None,
    plot_language: Literal["en", "zh"] = "en",
    as_json: Annotated[bool, Parameter(name="--json")] = False,
    encoding: str | None = None,
    precision: Precision = "auto",
    device: str = AUTO,
) -> None:
    """Measure how good a run's outputs are.

    Example: `regard evaluate regard-demo --split new`

    Example: `regard evaluate runs/reviews held-back.csv`

    Of a translator: BLEU and chrF with sacrebleu's signatures and 95 % intervals, exact match, what
    trivial outputs would score, quality by length of the source, and ten outputs to read: best,
    worst and at random. Of other tasks: their figures with intervals, beside answers that take no
    model; by label and by length; what was taken for what; and ten examples to read. Last stands
    how fast it answered on this machine, together and one alone, and in how much memory.

    Args:
        run: The run folder.
        files: Text to evaluate on, in the form of the training text: files like the recipe's own;
            of translators one of pairs, or one of sources and one of translations.
        split: Without files, part of the recipe's data: test, valid or train; the phrasebook has
            new as well.
        references: Further files of right answers, line by line.
        compare: Another run, to say which is better and whether that is chance.
        also: Of texts, pairs or pictures to label: further runs of the task that answer together
            with this one, by the mean of their probabilities.
        decoding: How outputs are searched for.
        plot: Of labels: draw what was taken for what into this .svg, .png or .pdf file.
        plot_language: Language of the plot's titles and axes: en, or zh for Chinese.
        as_json: Print one JSON object instead.
        encoding: What text that is not UTF-8 is in, such as gbk, big5, cp1252 or utf-16; by default
            as it was given in training; GB18030, Windows-1252 and UTF-16 are recognised.
        precision: What weights are kept in: `int8` takes a quarter of the memory and is faster of
            large models, and rounds; `auto` rounds nothing.
        device: Where it works: `auto` takes a GPU if there is one; `cpu`; `cuda`, or `cuda:1` for
            the second GPU; `mps` for that of a Mac.
    """
    check_device_name("--device", device)
    from regard.inference import Predictor
    from regard.inference.evaluation.comparison import Ensemble
    from regard.text.reading.encodings import encoded_as
    from regard.version import __version__

    load = partial(Predictor.load, precision=precision, device=device, setting="--device")
    predictor = load(run)
    task = predictor.recipe.task
    if predictor.is_seq2seq:
        if also:
            raise SettingError(f"--also must go with a run of a classifier; got {run}.")
        if plot is not None:
            raise SettingError(f"--plot must go with a run of labels, tags or spans; got {run}.")
    else:
        options: dict[str, object] = {"--references": references}
        refuse(options | decoding.flags(), f"for a run of {task}; it is for translators")
    members = Ensemble([predictor, *map(load, also)]) if also else predictor
    other = None if compare is None else load(compare)
    with encoded_as(encoding or predictor.recipe.encoding):
        if predictor.is_seq2seq:
            report, speed, comparison = _evaluate_written(
                predictor, other, split, files, references, decoding
            )
        elif other is not None and other.recipe.task != task:
            raise SettingError(
                f"--compare must name a run of {task}; got one of {other.recipe.task}."
            )
        else:
            report, speed, comparison = _evaluate_answers(
                members,
                other,
                split,
                files,
                predictor.device,
                run=run,
                plot=plot,
                language=plot_language,
            )
    if as_json:
        record = {"regard": __version__, "run": str(run), **report.to_dict()}
        record |= {"speed": speed.to_dict()}
        if comparison is not None:
            record |= {"compared_with": str(compare), "comparison": comparison.to_dict()}
        say(json.dumps(record, ensure_ascii=False))
        return
    say(f"{report}\n{speed}")
    if comparison is not None:
        say(f"{compare} → {run}\n{comparison}")


def _evaluate_answers(
    predictor: "Member",
    other: "Predictor | None",
    split: str,
    files: Sequence[Path],
    device: "torch.device",
    *,
    run: Path,
    plot: Path | None,
    language: Literal["en", "zh"],
) -> "Evaluation":
    """Evaluate answers of one pass, beside baselines and another run; draw them if need be."""
    from regard.inference.evaluation.comparison import compare_answers
    from regard.inference.evaluation.evaluate import evaluate_task
    from regard.inference.evaluation.report import answer_timed

    task = predictor.task
    examples, train = _examples(task, split, files)
    with progress("answering", len(examples)) as advance:
        answers, speed = answer_timed(predictor.answers, examples, device=device, progress=advance)
    report = evaluate_task(predictor, examples, train, answers=answers)
    if plot is not None:
        from regard.inference.evaluation.report_plot import plot_report
        from regard.runs import Run

        metrics = Run.open(run).metrics()
        plot_report(predictor, report, examples, metrics, plot, language=language)
        note(f"wrote {plot}")
    if other is None:
        return report, speed, None
    with progress("answering", len(examples)) as advance:
        others = other.answers(examples, progress=advance)
    return report, speed, compare_answers(task, others, answers, examples)


def _evaluate_written(
    predictor: "Predictor",
    other: "Predictor | None",
    split: str,
    files: Sequence[Path],
    references: Sequence[Path],
    decoding: DecodingOptions,
) -> "Evaluation":
    """Evaluate texts that are written, beside baselines and those of another run."""
    from regard.inference.evaluation.comparison import compare as compare_texts
    from regard.inference.evaluation.evaluate import evaluate_written
    from regard.tasks.sequences.translation import TranslationTask

    task, recipe = predictor.sequence_task, predictor.recipe
    if references and not files:
        raise SettingError("--references must go with a file of sources; got none.")
    if files and not isinstance(task, TranslationTask):
        refuse(
            {"--references": references}, f"for a run of {recipe.task}; its files hold the answers"
        )
        test = tuple(os.path.realpath(file) for file in files)
        split, recipe = "test", replace(recipe, data=replace(recipe.data, test=test))
    examples, train = _examples(task, split, files)
    pairs = _with_references(cast("list[Pair]", examples), references)
    outputs, speed = _translate(predictor, pairs, decoding)
    report = evaluate_written(
        task,
        outputs,
        pairs,
        training_targets=[cast("Pair", each).target for each in train],
        trivial=task.baselines(recipe, split),
    )
    if other is None:
        return report, speed, None
    others, _ = _translate(other, pairs, decoding)
    comparison = compare_texts(
        others,
        outputs,
        [pair.references for pair in pairs],
        sources=[pair.source for pair in pairs],
        target_language=task.data.target_language,
        rouge="rouge_l" in task.metrics,
    )
    return report, speed, comparison


def _translate(
    predictor: "Predictor", pairs: "Sequence[Pair]", options: DecodingOptions
) -> "tuple[list[str], Speed]":
    from regard.inference.evaluation.report import answer_timed

    answer = partial(predictor.answers, decoding=predictor.decoding.changed(**options.changes()))
    with progress("translating", len(pairs)) as advance:
        answers, speed = answer_timed(answer, pairs, device=predictor.device, progress=advance)
    return [cast("Translations", each).best.text for each in answers], speed


def _examples(
    task: "AnyTask", split: str, files: Sequence[Path]
) -> tuple[Sequence[object], Sequence[object]]:
    """Examples to evaluate on, and the training examples, if they are still there."""
    from regard.inference.evaluation.evaluate import read_examples
    from regard.tasks import OnePassTask, Parts
    from regard.training.corpora.stored_text import parts_of

    recipe = task.recipe
    parts: Parts[object] = Parts((), ())
    with suppress(DataError):
        parts = parts_of(recipe)
    if files:
        return read_examples(task, files), parts.train
    splits = (*_SPLITS, "new") if recipe.uses_phrasebook else _SPLITS
    choose("split", split, dict.fromkeys(splits))
    is_part = {
        "train": isinstance(task, OnePassTask),
        "valid": not recipe.named("valid") and not recipe.uses_phrasebook,
        "test": bool(parts.test),
    }
    if is_part.get(split):
        parts = parts_of(recipe)  # whose error says what is wrong with the text
        return getattr(parts, split), parts.train
    examples = task.read(recipe, split)
    if not examples:
        raise DataError(
            f"data.{split} must name the text to evaluate on; the recipe names none. "
            "Name a file behind the run, or give --split valid."
        )
    return examples, parts.train


def _with_references(pairs: "list[Pair]", files: Sequence[Path]) -> "list[Pair]":
    """Add one more right answer from each file, line by line."""
    from regard.text import normalize, read_lines

    for file in files:
        texts = [normalize(line.text) for line in read_lines(file)]
        if len(texts) != len(pairs):
            raise DataError(
                f"{file} must have a line for each of the {len(pairs)} sentences; "
                f"got {len(texts)} lines."
            )
        pairs = [
            replace(pair, references=tuple(filter(None, dict.fromkeys((*pair.references, text)))))
            for pair, text in zip(pairs, texts, strict=True)
        ]
    return pairs
