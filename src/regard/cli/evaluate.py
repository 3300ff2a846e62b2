"""``regard evaluate``."""

import json
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from regard.choices import choose
from regard.cli.decoding_options import AS_THE_RECIPE_SAYS, DecodingOptions
from regard.cli.output import note, progress_bar, refuse, say
from regard.errors import DataError, SettingError

if TYPE_CHECKING:
    from regard.inference import Predictor
    from regard.tasks import Recipe
    from regard.text import Pair

_SPLITS = ("train", "valid", "test")


def evaluate(
    run: Path,
    /,
    *,
    split: str = "test",
    source: Path | None = None,
    target: Path | None = None,
    references: Annotated[tuple[Path, ...], Parameter(consume_multiple=True)] = (),
    compare: Path | None = None,
    also: Annotated[tuple[Path, ...], Parameter(consume_multiple=True)] = (),
    decoding: DecodingOptions = AS_THE_RECIPE_SAYS,
    plot: Path | None = None,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
) -> None:
    """Measure how good a run's outputs are.

    Example: `regard evaluate regard-demo --split new`

    Of a translator: BLEU and chrF with sacrebleu's signatures and 95 % intervals, exact match, what
    trivial outputs would score, quality by length of the source, and ten outputs to read: best,
    worst and at random. Of other tasks: their figures with intervals, beside answers that take no
    model; by label and by length; what was taken for what; and ten examples to read.

    Args:
        run: The run folder.
        split: Part of the recipe's data: test, valid or train; the phrasebook has new as well.
        source: Lines to translate instead, or a .tsv or .jsonl file of pairs; for other tasks, a
            file like the recipe's own.
        target: The right answers to the lines of --source.
        references: Further files of right answers, line by line.
        compare: Another run, to say which is better and whether that is chance.
        also: Of classifiers: further runs that answer together with this one, by the mean of their
            probabilities.
        decoding: How outputs are searched for.
        plot: Of labels: draw what was taken for what into this .svg, .png or .pdf file.
        as_json: Print one JSON object instead.
    """
    from regard import __version__
    from regard.cli.jobs import evaluate_run_of_job, is_run_of_job
    from regard.inference import Predictor, evaluation

    if is_run_of_job(run):
        given: dict[str, object] = {"--target": target, "--references": references}
        given |= {"--compare": compare, **decoding.flags()}
        evaluate_run_of_job(
            (run, *also), split=split, source=source, plot=plot, as_json=as_json, given=given
        )
        return
    if also:
        raise SettingError(f"--also must go with a run of a classifier; got {run}.")
    if plot is not None:
        raise SettingError(f"--plot must go with a run of labels, tags or spans; got {run}.")
    predictor = Predictor.load(run)
    other = None if compare is None else Predictor.load(compare)
    recipe = predictor.recipe
    if recipe.task == "generation" and source is not None:
        given = {"--target": target, "--references": references}
        refuse(given, "for a run of generation; --source holds the answers")
        named = replace(recipe.data, test=(str(source.resolve()),))
        recipe, split, source = replace(recipe, data=named), "test", None
    pairs = _pairs(recipe, split, source, target, references)
    outputs, seconds = _translate(predictor, pairs, decoding)
    right = [pair.references for pair in pairs]
    sources = [pair.source for pair in pairs]
    report = evaluation.evaluate(
        outputs,
        right,
        sources=sources,
        source_language=recipe.data.source_language,
        target_language=recipe.data.target_language,
        training_targets=_training_targets(recipe),
        trivial=_trivial_answers(recipe, split),
        rouge=recipe.task == "generation",
    )
    duel = None
    if other is not None:
        theirs, _ = _translate(other, pairs, decoding)
        duel = evaluation.compare(
            theirs,
            outputs,
            right,
            sources=sources,
            target_language=recipe.data.target_language,
        )
    if as_json:
        record = {"regard": __version__, "run": str(run), "seconds": round(seconds, 3)}
        record |= report.to_dict()
        if duel is not None:
            record |= {"compared_with": str(compare), "comparison": duel.to_dict()}
        say(json.dumps(record, ensure_ascii=False))
        return
    say(str(report))
    if duel is not None:
        say(f"{compare} → {run}")
        say(str(duel))
    note(f"translated in {seconds:.1f} s")


def _translate(
    predictor: "Predictor", pairs: "Sequence[Pair]", options: DecodingOptions
) -> tuple[list[str], float]:
    search = predictor.recipe.decoding.changed(**options.given())
    started = time.perf_counter()
    with progress_bar("translating", lambda: len(pairs)) as advance:
        found = predictor.translate(
            [pair.source for pair in pairs], decoding=search, progress=advance
        )
    return [translations[0].text for translations in found], time.perf_counter() - started


def _pairs(
    recipe: "Recipe",
    split: str,
    source: Path | None,
    target: Path | None,
    references: Sequence[Path],
) -> "list[Pair]":
    from regard.tasks.translation import read_held_out, read_split, read_training
    from regard.text import PairLayout, read_pairs

    if source is not None:
        layout = PairLayout(columns=recipe.data.columns, merge_references=target is None)
        return _with_references(list(read_pairs(source, target, layout=layout)), references)
    if target is not None or references:
        raise SettingError("--target and --references must go with --source; got no --source.")
    splits = (*_SPLITS, "new") if recipe.uses_phrasebook else _SPLITS
    choose("split", split, dict.fromkeys(splits))
    if split == "valid" and not recipe.uses_phrasebook and not recipe.files("valid"):
        return read_training(recipe)[1]
    is_held_out = split == "test" and recipe.holds_out_test
    pairs = read_held_out(recipe) if is_held_out else read_split(recipe, split, merge=True)
    if not pairs:
        raise DataError(
            f"data.{split} must name the text to evaluate on; the recipe names none. "
            "Give --source and --target, or --split valid."
        )
    return pairs


def _trivial_answers(recipe: "Recipe", split: str) -> dict[str, list[str]] | None:
    """Sentences of the documents, where there are documents."""
    from regard.tasks.generation import DocumentData
    from regard.tasks.generation.documents import (
        baselines,
        hold_out,
        read_documents,
        train_and_test,
    )

    if not isinstance(recipe.data, DocumentData):
        return None
    if split == "valid" and not recipe.files("valid"):
        documents = hold_out(train_and_test(recipe)[0])[1]
    elif split == "test" and recipe.holds_out_test:
        documents = train_and_test(recipe)[1]
    else:
        documents = read_documents(recipe.files(split), recipe.data)
    return baselines(documents)


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


def _training_targets(recipe: "Recipe") -> list[str]:
    """What the run was trained to say, for a baseline; nothing if the text is no longer there."""
    from regard.tasks.translation import read_training

    with suppress(DataError):
        return [pair.target for pair in read_training(recipe)[0]]
    return []
