"""``regard evaluate``."""

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from regard.cli.options import SEARCHED_BY_RECIPE, SearchFlags
from regard.cli.output import check_output, note, refuse, require, say
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
    split: str | None = None,
    settings: Annotated[tuple[str, ...], Parameter(name="--set", show_default=False)] = (),
    compare: Path | None = None,
    also: Annotated[tuple[Path, ...], Parameter(consume_multiple=True)] = (),
    decoding: SearchFlags = SEARCHED_BY_RECIPE,
    plot: Path | None = None,
    plot_language: Literal["en", "zh"] | None = None,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
    encoding: str | None = None,
    precision: Precision = "auto",
    device: str = AUTO,
) -> None:
    """Measure how good a run's outputs are.

    Example: `regard evaluate regard-demo --split new`

    Example: `regard evaluate runs/reviews held-back.csv --plot confusion.svg`

    Of a translator: BLEU and chrF with sacrebleu's signatures and 95 % intervals, exact match,
    scores of trivial outputs, quality by length of the source, and ten outputs to read: best,
    worst and at random. Of other tasks: their figures with intervals, beside answers that take no
    model; by label and by length; the confusion matrix; and ten examples to read. Last stands
    how fast it answered on this machine, together and one alone, and in how much memory.

    Args:
        run: The run folder.
        files: Text to evaluate on, in the form of the training text: files like the recipe's own;
            of translators one of pairs, or one of sources and one of translations, behind which
            further ones of right translations may stand.
        split: Without files, part of the recipe's data: test (the default), valid or train; the
            phrasebook has new as well.
        settings: Which columns of the files to read, where they are others than in training: such
            as data.columns=[2,1] of pairs, the source's first, or data.text=review.
        compare: Another run, to say which is better and whether that is chance.
        also: Of texts, pairs or pictures to label: further runs of the task that answer together
            with this one, by the mean of their probabilities.
        decoding: How outputs are searched for.
        plot: Draw the confusion matrix, or the fits of a regression, into an .svg, .png or .pdf.
        plot_language: Language of the plot's titles and axes: en (the default), or zh for Chinese.
        as_json: Print one JSON object instead.
        encoding: Encoding of text that is not UTF-8, such as gbk, big5, cp1252 or utf-16; by
            default as it was given in training; GB18030, Windows-1252 and UTF-16 are recognised.
        precision: Type of the weights: `int8` takes a quarter of the memory and is faster of
            large models, and rounds; `auto` rounds nothing.
        device: Where it works: `auto` takes a GPU if there is one; `cpu`; `cuda`, or `cuda:1` for
            the second GPU; `mps` for that of a Mac.
    """
    check_device_name("--device", device)
    if not files:
        refuse({"--set": settings}, "without files, which it says how to read")
    else:
        refuse({"--split": split}, "beside files; it is for the recipe's data")
    if plot is None:
        require({"--plot-language": plot_language}, "--plot")
    else:
        read = [run, *files, *also, *([] if compare is None else [compare])]
        check_output(plot, read, option="--plot")
    from regard.inference import Predictor
    from regard.inference.evaluation.comparison import Ensemble, compare_answers
    from regard.inference.evaluation.evaluate import measure, read_data
    from regard.inference.evaluation.report import answer_timed
    from regard.inference.evaluation.report_plot import check_picture
    from regard.text.reading.encodings import encoded_as
    from regard.training.corpora.stored_text import parts_of
    from regard.version import __version__

    if plot is not None:
        check_picture("--plot", plot)
    load = partial(Predictor.load, precision=precision, device=device)
    predictor = load(run)
    task = predictor.recipe.task
    _check_options(predictor, also=also, plot=plot, decoding=decoding)
    members = Ensemble([predictor, *map(load, also)]) if also else predictor
    compared = None if compare is None else load(compare)
    if compared is not None and compared.recipe.task != task:
        raise SettingError(
            f"--compare must name a run of {task}; got one of {compared.recipe.task}."
        )
    work = predictor.use.work
    with encoded_as(encoding or predictor.recipe.encoding):
        data = read_data(
            predictor.task,
            files,
            split=split or "test",
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
            _plot(members, report, data.examples, run, plot, language=plot_language or "en")
        if compared is not None:
            with progress(work, len(data.examples)) as advance:
                baseline = _answers_of(compared, decoding)(data.examples, progress=advance)
            comparison = compare_answers(predictor.task, baseline, answers, data.examples)
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
    predictor: "Predictor", *, also: Sequence[Path], plot: Path | None, decoding: SearchFlags
) -> None:
    """Refuse options that have no effect on a run of this task."""
    where = f"for a run of {predictor.recipe.task}"
    if predictor.use.evaluated_search({}) is None:
        refuse(decoding.flags(), f"{where}; it is for translators")
        return
    refuse({"--also": also, "--plot": plot}, f"{where}; it is for runs of labels, tags or spans")
    predictor.use.evaluated_search(decoding.given())


def _warn_if_exchanged(predictor: "Predictor", examples: Sequence[object]) -> None:
    """Warn where files hold translations the other way round."""
    from regard.tasks import DataConfig
    from regard.text import Pair
    from regard.text.languages import are_exchanged

    if predictor.recipe.task != "translation":
        return
    data = predictor.recipe.settings(DataConfig)
    languages = (data.source_language, data.target_language)
    pairs = [pair for pair in examples if isinstance(pair, Pair)]
    if are_exchanged([one.source for one in pairs], [one.target for one in pairs], languages):
        note(
            f"warning: the pairs look exchanged; the run translates {languages[0]} to "
            f"{languages[1]}. Name the columns, the source's first: --set 'data.columns=[2,1]', "
            "or give the files in the other order."
        )


def _answers_of(member: "Member", decoding: SearchFlags) -> "Callable[..., Sequence[Answer]]":
    """The function that answers examples; where texts are written, by these settings."""
    use: Any = getattr(member, "use", None)
    search = None if use is None else use.evaluated_search(decoding.given())
    return member.answers if search is None else partial(use.answer_examples, decoding=search)


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
