"""``regard evaluate``."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

from cyclopts import Parameter

from regard.choices import choose
from regard.cli.decoding_options import AS_THE_RECIPE_SAYS, DecodingOptions
from regard.cli.jobs import with_sides
from regard.cli.output import note, progress_bar, refuse, say
from regard.devices.kinds import AUTO, check_device_name
from regard.errors import DataError, SettingError
from regard.layers.choices import Precision

if TYPE_CHECKING:
    import torch

    from regard.config import JsonValue
    from regard.inference import Predictor
    from regard.inference.evaluation import Member
    from regard.inference.speed import Speed
    from regard.tasks import AnyTask, Recipe
    from regard.tasks.translations import Translations
    from regard.text import Pair

_SPLITS = ("train", "valid", "test")


def evaluate(
    run: Path,
    /,
    *files: Path,
    split: str = "test",
    source: Path | None = None,
    target: Path | None = None,
    references: Annotated[tuple[Path, ...], Parameter(consume_multiple=True)] = (),
    compare: Path | None = None,
    also: Annotated[tuple[Path, ...], Parameter(consume_multiple=True)] = (),
    decoding: DecodingOptions = AS_THE_RECIPE_SAYS,
    plot: Path | None = None,
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
        source: The same as the first file.
        target: The same as the second: the right answers to the lines of the first.
        references: Further files of right answers, line by line.
        compare: Another run, to say which is better and whether that is chance.
        also: Of classifiers: further runs that answer together with this one, by the mean of their
            probabilities.
        decoding: How outputs are searched for.
        plot: Of labels: draw what was taken for what into this .svg, .png or .pdf file.
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
    from regard.inference.ensemble import Ensemble
    from regard.text.reading.encodings import encoded_as

    given = with_sides(files, source, target)
    load = partial(Predictor.load, precision=precision, device=device, setting="--device")
    predictor = load(run)
    if predictor.is_seq2seq:
        if also:
            raise SettingError(f"--also must go with a run of a classifier; got {run}.")
        if plot is not None:
            raise SettingError(f"--plot must go with a run of labels, tags or spans; got {run}.")
        with encoded_as(encoding or predictor.recipe.encoding):
            asked = _asked_pairs(predictor, split, given, references)
        _evaluate_written(predictor, run, asked, compare, decoding, as_json=as_json, load=load)
        return
    options: dict[str, object] = {"--target": target, "--references": references}
    options |= decoding.flags()
    refuse(options, f"for a run of {predictor.recipe.task}; it is for translators")
    every = Ensemble([predictor, *map(load, also)]) if also else predictor
    other = None if compare is None else load(compare)
    if other is not None and other.recipe.task != predictor.recipe.task:
        raise SettingError(
            f"--compare must name a run of {predictor.recipe.task}; got one of {other.recipe.task}."
        )
    with encoded_as(encoding or predictor.recipe.encoding):
        _evaluate_answers(
            every,
            run,
            split,
            given,
            plot,
            as_json=as_json,
            compared=(compare, other),
            device=predictor.device,
        )


def _evaluate_answers(
    predictor: "Member",
    run: Path,
    split: str,
    files: Sequence[Path],
    plot: Path | None,
    *,
    as_json: bool,
    compared: "tuple[Path | None, Predictor | None]",
    device: "torch.device",
) -> None:
    """Figures of answers that are computed in one pass, baselines, tables and examples to read."""
    from regard.inference.answer_comparison import compare_answers
    from regard.inference.evaluation import evaluate_task
    from regard.inference.speed import answer_timed
    from regard.runs import Run

    recipe = _naming(predictor.task.recipe, files)
    examples, train = _examples(predictor.task, recipe, split, is_given=bool(files))
    with progress_bar("answering", lambda: len(examples)) as advance:
        answers, speed = answer_timed(predictor.answers, examples, device=device, progress=advance)
    report = evaluate_task(predictor, examples, train, answers=answers)
    if plot is not None:
        from regard.inference.report_plot import plot_report

        plot_report(predictor, report, examples, Run.open(run).metrics(), plot)
        note(f"wrote {plot}")
    texts, record = [str(report), str(speed)], {**report.to_dict(), "speed": speed.to_dict()}
    path, other = compared
    if other is not None:
        with progress_bar("answering", lambda: len(examples)) as advance:
            theirs = other.answers(examples, progress=advance)
        found = compare_answers(predictor.task, theirs, answers, examples)
        texts += [f"{path} → {run}", str(found)]
        record |= {"compared_with": str(path), "comparison": found.to_dict()}
    _say(run, "\n".join(texts), record, as_json=as_json)


def _evaluate_written(
    predictor: "Predictor",
    run: Path,
    asked: "_Asked",
    compare: Path | None,
    decoding: DecodingOptions,
    *,
    as_json: bool,
    load: "Callable[[Path], Predictor]",
) -> None:
    """Figures of texts that are written, and whether another run's are better."""
    from regard.inference import evaluation

    other = None if compare is None else load(compare)
    task = predictor.sequence_task
    outputs, speed = _translate(predictor, asked.pairs, decoding)
    report = evaluation.evaluate_written(
        task,
        outputs,
        asked.pairs,
        training_targets=_training_targets(predictor),
        trivial=task.baselines(asked.recipe, asked.split),
    )
    texts, record = [str(report), str(speed)], {**report.to_dict(), "speed": speed.to_dict()}
    if other is not None:
        theirs, _ = _translate(other, asked.pairs, decoding)
        compared = evaluation.compare(
            theirs,
            outputs,
            [pair.references for pair in asked.pairs],
            sources=[pair.source for pair in asked.pairs],
            target_language=task.data.target_language,
            rouge="rouge_l" in task.metrics,
        )
        texts += [f"{compare} → {run}", str(compared)]
        record |= {"compared_with": str(compare), "comparison": compared.to_dict()}
    _say(run, "\n".join(texts), record, as_json=as_json)


def _say(run: Path, text: str, record: "Mapping[str, JsonValue]", *, as_json: bool) -> None:
    from regard.version import __version__

    if as_json:
        text = json.dumps({"regard": __version__, "run": str(run), **record}, ensure_ascii=False)
    say(text)


def _translate(
    predictor: "Predictor", pairs: "Sequence[Pair]", options: DecodingOptions
) -> "tuple[list[str], Speed]":
    from regard.inference.speed import answer_timed

    answer = partial(predictor.answers, decoding=predictor.decoding.changed(**options.given()))
    with progress_bar("translating", lambda: len(pairs)) as advance:
        found, speed = answer_timed(answer, pairs, device=predictor.device, progress=advance)
    return [cast("Translations", each).best.text for each in found], speed


def _naming(recipe: "Recipe", files: Sequence[Path]) -> "Recipe":
    """The recipe, with these files as what to test on if there are any."""
    if not files:
        return recipe
    test = tuple(os.path.realpath(file) for file in files)
    return replace(recipe, data=replace(recipe.data, test=test))


def _examples(
    task: "AnyTask", recipe: "Recipe", split: str, *, is_given: bool
) -> tuple[Sequence[object], Sequence[object]]:
    """Examples to evaluate on, and the training examples, if they are still there."""
    from regard.tasks import OnePassTask, Parts
    from regard.training.corpora.stored_text import parts_of

    parts: Parts[object] = Parts((), ())
    with suppress(DataError):
        parts = parts_of(task.recipe)
    if is_given:
        return task.read(recipe, "test"), parts.train
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


@dataclass(frozen=True, slots=True)
class _Asked:
    """The pairs to evaluate on, and of which part of which recipe's data they are."""

    pairs: "Sequence[Pair]"
    recipe: "Recipe"
    split: str


def _asked_pairs(
    predictor: "Predictor",
    split: str,
    files: Sequence[Path],
    references: Sequence[Path],
) -> _Asked:
    from regard.inference.evaluation import read_examples
    from regard.tasks.translation import TranslationTask

    task, recipe = predictor.task, predictor.recipe
    if files and isinstance(task, TranslationTask):
        pairs = cast("list[Pair]", read_examples(task, files))
        return _Asked(_with_references(pairs, references), recipe, split)
    if files:
        given = {"--target": files[1:], "--references": references}
        refuse(given, f"for a run of {recipe.task}; its files hold the answers")
        split, recipe = "test", _naming(recipe, files)
    elif references:
        raise SettingError("--references must go with a file of sources; got none.")
    examples, _ = _examples(task, recipe, split, is_given=bool(files))
    return _Asked(cast("Sequence[Pair]", examples), recipe, split)


def _with_references(pairs: "list[Pair]", files: Sequence[Path]) -> "list[Pair]":
    """The pairs with one more right answer from each file, line by line."""
    from regard.text import normalize, read_lines

    for file in files:
        texts = [normalize(line.text) for line in read_lines(file)]
        if len(texts) != len(pairs):
            raise DataError(
                f"{file} must have a line for each of the {len(pairs)} sentences; "
                f"got {len(texts)} lines."
            )
        pairs = [
            replace(
                pair, references=tuple(dict.fromkeys([*pair.references, *filter(None, [text])]))
            )
            for pair, text in zip(pairs, texts, strict=True)
        ]
    return pairs


def _training_targets(predictor: "Predictor") -> list[str]:
    """Targets of the training text, for a baseline; none if the text is no longer there."""
    from regard.training.corpora.stored_text import parts_of

    with suppress(DataError):
        return [pair.target for pair in cast("Sequence[Pair]", parts_of(predictor.recipe).train)]
    return []
