"""``regard evaluate``."""

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from regard.cli.options import AS_THE_RECIPE_SAYS, DecodingOptions
from regard.cli.output import note, refuse, say
from regard.config import parse_settings
from regard.devices.kinds import AUTO, Precision, check_device_name
from regard.errors import SettingError
from regard.progress import progress

if TYPE_CHECKING:
    from regard.inference import Predictor
    from regard.inference.evaluation.evaluate import Member
    from regard.inference.evaluation.report import AnswerReport, TextReport
    from regard.tasks.task import Answer


def evaluate(
    run: Path,
    /,
    *files: Path,
    split: str = "test",
    settings: Annotated[tuple[str, ...], Parameter(name="--set", show_default=False)] = (),
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
            of translators one of pairs, or one of sources and one of translations, behind which
            further ones of right translations may stand.
        split: Without files, part of the recipe's data: test, valid or train; the phrasebook has
            new as well.
        settings: Which columns of the files to read, where they are others than in training: such
            as data.columns=[2,1] of pairs, the source's first, or data.text=review.
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
    if not files:
        refuse({"--set": settings}, "without files, which it says how to read")
    from regard.inference import Predictor
    from regard.inference.evaluation.comparison import Ensemble, compare_answers
    from regard.inference.evaluation.evaluate import measure, read_data
    from regard.inference.evaluation.report import answer_timed
    from regard.text.reading.encodings import encoded_as
    from regard.training.corpora.stored_text import parts_of
    from regard.version import __version__

    load = partial(Predictor.load, precision=precision, device=device)
    predictor = load(run)
    task = predictor.recipe.task
    _check_options(predictor, also=also, plot=plot, decoding=decoding)
    members = Ensemble([predictor, *map(load, also)]) if also else predictor
    other = None if compare is None else load(compare)
    if other is not None and other.recipe.task != task:
        raise SettingError(f"--compare must name a run of {task}; got one of {other.recipe.task}.")
    work = "translating" if predictor.is_seq2seq else "answering"
    with encoded_as(encoding or predictor.recipe.encoding):
        data = read_data(
            predictor.task,
            files,
            split=split,
            read_parts=parts_of,
            columns=parse_settings(settings),
        )
        _warn_if_exchanged(predictor, data.examples)
        with progress(work, len(data.examples)) as advance:
            answers, speed = answer_timed(
                _answers_of(members, decoding),
                data.examples,
                device=predictor.device,
                progress=advance,
            )
        report, comparison = measure(members, data, answers), None
        if plot is not None:
            _plot(members, report, data.examples, run, plot, language=plot_language)
        if other is not None:
            with progress(work, len(data.examples)) as advance:
                others = _answers_of(other, decoding)(data.examples, progress=advance)
            comparison = compare_answers(predictor.task, others, answers, data.examples)
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


def _check_options(
    predictor: "Predictor",
    *,
    also: Sequence[Path],
    plot: Path | None,
    decoding: DecodingOptions,
) -> None:
    """Refuse options that have no effect on a run of this task."""
    where = f"for a run of {predictor.recipe.task}"
    if predictor.is_seq2seq:
        options = {"--also": also, "--plot": plot}
        refuse(options, f"{where}; it is for runs of labels, tags or spans")
    else:
        refuse(decoding.flags(), f"{where}; it is for translators")


def _warn_if_exchanged(predictor: "Predictor", examples: Sequence[object]) -> None:
    """Warn where files hold translations the other way round."""
    from regard.tasks import DataConfig
    from regard.text import Pair
    from regard.text.languages import are_exchanged

    if predictor.recipe.task != "translation":
        return
    data = predictor.recipe.settings(DataConfig)
    languages = (data.source_language, data.target_language)
    pairs = [each for each in examples if isinstance(each, Pair)]
    if are_exchanged([one.source for one in pairs], [one.target for one in pairs], languages):
        note(
            f"warning: the pairs look exchanged; the run translates {languages[0]} to "
            f"{languages[1]}. Name the columns, the source's first: --set 'data.columns=[2,1]', "
            "or give the files in the other order."
        )


def _answers_of(
    predictor: "Member", decoding: DecodingOptions
) -> "Callable[..., Sequence[Answer]]":
    """The function that answers examples; where texts are written, by these settings."""
    from regard.inference import Predictor

    if isinstance(predictor, Predictor) and predictor.is_seq2seq:
        search = predictor.decoding.changed(**decoding.changes())
        return partial(predictor.answers, decoding=search)
    return predictor.answers


def _plot(
    predictor: "Member",
    report: "AnswerReport | TextReport",
    examples: Sequence[object],
    run: Path,
    path: Path,
    *,
    language: Literal["en", "zh"],
) -> None:
    """Draw a report of answers, and the training that led to them."""
    from regard.inference.evaluation.report import AnswerReport
    from regard.inference.evaluation.report_plot import plot_report
    from regard.runs import Run

    assert isinstance(report, AnswerReport), "refused before"
    plot_report(predictor, report, examples, Run.open(run).metrics(), path, language=language)
    note(f"wrote {path}")
