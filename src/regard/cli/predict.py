"""``regard predict``."""

import shlex
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from regard.checks import counted
from regard.cli.bulk import STREAM, Bulk, predict_files
from regard.cli.options import ANSWERED_BY_RECIPE, AnswerFlags
from regard.cli.output import note, note_unknown, refuse, require, say, writing_to
from regard.devices.kinds import AUTO, Precision, check_device_name
from regard.errors import DataError, SettingError
from regard.inference.options import AnswerOptions
from regard.progress import displaying, is_displayed, progress

if TYPE_CHECKING:
    from regard.inference.lines import AnsweredLine, LineAnswering
    from regard.inference.use import RunInUse
    from regard.tasks import AnyTask, DecodingConfig

# Lines named on stderr, before they are only counted.
_MOST_WARNINGS = 10


def predict(
    run: Path,
    /,
    *files: Path,
    answers: AnswerFlags = ANSWERED_BY_RECIPE,
    score: Annotated[bool, Parameter(show_default=False)] = False,
    output_format: Literal["text", "jsonl"] = "text",
    on_bad_line: Literal["error", "skip"] | None = None,
    encoding: str | None = None,
    precision: Precision = "auto",
    device: str = AUTO,
    bulk: Bulk = STREAM,
) -> None:
    """Answer lines of text: a line in, a line out.

    Example: `echo 我爱中国 | regard predict tatoeba-zh-en`

    Example: `regard predict runs/reviews new.csv --output labels.txt`

    Example: `regard predict runs/ende --input 'shards/*.parquet' --output answers`

    An empty line stays an empty line. A line longer than the model was trained on is translated in
    parts, and a note on stderr says so. A run that labels or tags answers with the label and its
    probability, or with word/tag; a language model goes on with each line. With --input it answers
    any number of files, and goes on where it was when it is run again.

    Each setting of `regard settings decoding` is an option too: `--no-repeat-ngram 3`. With --input
    go --threads, --engine ray, --actors, --address and --remake; see the docs.

    Args:
        run: The run folder.
        files: Lines of text, by default stdin; or tables with the columns of training, .jsonl with
            its keys. Each may end in .gz or .zst.
        answers: How outputs are searched for, and fields that come with them.
        score: Print how likely the target of each line of source, tab, target is; of a language
            model, how surprising the line, in nats a token.
        output_format: Lines of text, or a JSON object a line with scores.
        on_bad_line: Stop at a line that cannot be read (error, the default), or leave its answer
            empty.
        encoding: Of text that is not UTF-8, such as gbk or cp1252; by default as in training.
        precision: Of the weights: `int8` takes a quarter of the memory, and rounds.
        device: `auto` takes a GPU if there is one; or `cpu`, `cuda`, `cuda:1`, `mps`.
        bulk: Files to answer into a folder.
    """
    check_device_name("--device", device)
    options = answers.options(AnswerOptions)
    if bulk.is_set():
        of_lines: dict[str, object] = {"FILE": files, "--score": score, "--encoding": encoding}
        of_lines |= {name: answers.flags().get(name) for name in ("--attention", "--layers")}
        of_lines |= {"--on-bad-line": on_bad_line}
        refuse(of_lines, "with --input; rows that cannot be answered are noted beside the answers")
        predict_files(
            run,
            bulk,
            decoding=options.search(),
            output_format=output_format,
            precision=precision,
            device=device,
        )
        return
    _refuse_text(run, files)
    from regard.inference.lines import AnsweredLine, predicting, scoring
    from regard.inference.loading import load_run
    from regard.text.reading.encodings import encoded_as

    with ExitStack() as stack:
        stack.enter_context(writing_to(bulk.output, inputs=[run, *files]))
        use = load_run(run, precision=precision, device=device)
        stack.enter_context(encoded_as(encoding or use.recipe.encoding))
        _check_options(use, answers, is_scored=score)
        search = use.search(use.recipe, options.search())
        n_best = 1 if search is None else search.n_best
        if output_format == "text":
            _check_one_a_line(options, n_best)
        if not files and _is_typed():
            note("type a line and press Enter; Ctrl-D ends")
        predictions = partial(predicting, use, attention=options.attention, layers=options.layers)
        answering = partial(scoring, use) if score else predictions
        done, is_text = 0, output_format == "text" and not score
        for file in files or (None,):
            if file is None and is_text and sys.stdout.isatty() and use.streams(search):
                _stream_lines(use, search, on_bad_line=on_bad_line)
                continue
            done = _answer_lines(
                use,
                file,
                partial(answering, decoding=search),
                done=done,
                is_scored=score,
                printed=partial(AnsweredLine.printed, output_format=output_format, n_best=n_best),
                on_bad_line=on_bad_line,
            )


def _is_typed() -> bool:
    """Whether lines of stdin come from a terminal."""
    return sys.stdin is not None and sys.stdin.isatty()


def _refuse_text(run: Path, files: Sequence[Path]) -> None:
    """Refuse words that are no files and look like lines of text."""
    from regard.text.reading.opening import missing

    for file in files:
        is_text = not file.suffix or " " in file.name
        if is_text and file.parent == Path() and not file.exists():
            raise DataError(
                f"{missing(file)} Text itself comes by stdin: "
                f"echo {shlex.quote(str(file))} | regard predict {shlex.quote(str(run))}"
            )


def _check_options(use: "RunInUse[AnyTask]", answers: AnswerFlags, *, is_scored: bool) -> None:
    """Refuse options that have no effect on a run of this task, or beside others."""
    searched, given = answers.flags(), answers.given()
    if use.recipe.decoding is None:
        where = f"for a run of {use.job}; it is for translators"
        refuse({**searched, "--score": is_scored}, where)
    if is_scored:
        where = "with --score; nothing is searched for"
        refuse({name: v for name, v in searched.items() if name not in use.scored_by}, where)
    if "attention" not in given:
        require({"--layers": given.get("layers")}, "--attention")
    elif use.no_attention:
        raise SettingError("--attention must be left out for a language model; see regard look.")


def _check_one_a_line(options: AnswerOptions, n_best: int) -> None:
    """Refuse the links of several translations, of which a line of text has room for one."""
    if options.attention and n_best > 1:
        raise SettingError(
            "--attention must go with one translation a line, or with --output-format jsonl; "
            f"got --n-best {n_best}."
        )


def _answer_lines(
    use: "RunInUse[AnyTask]",
    file: Path | None,
    answering: "Callable[..., LineAnswering]",
    *,
    done: int,
    is_scored: bool,
    printed: "Callable[[AnsweredLine, int], Iterable[str]]",
    on_bad_line: str | None,
) -> int:
    """Print the answer to each line as soon as there is one; the lines answered so far."""
    from regard.inference.lines import answers
    from regard.text.reading.line_groups import groups_of

    warnings = LineWarnings(
        "Its score is left empty." if is_scored else "Its answer is left empty."
    )
    groups, ending = groups_of(file, use.task.input_fields(with_answers=is_scored))
    answered = answers(groups, answering(ending=ending), skip_bad_lines=on_bad_line == "skip")
    bar: AbstractContextManager[Callable[[float], None]] = nullcontext(lambda count: None)
    if file is not None and is_displayed() and not sys.stdout.isatty():
        work = "scoring" if is_scored else use.work
        bar = progress(work, _count_lines(file))
    with bar as advance, displaying(None):  # one bar for one work
        for group in answered:
            for number, line in enumerate(group, done + 1):
                warnings.see(line.problem, line.unknown)
                if line.request is not None and (parts := len(line.request.parts)) > 1:
                    longest = use.about()["max_tokens"]
                    warnings.add(
                        f"{line.where}: longer than the {longest} tokens that the model was "
                        f"trained on; translated in {parts} parts."
                    )
                for text in printed(line, number):
                    say(text)
            sys.stdout.flush()
            if file is None and _is_typed():
                warnings.end_unknown()
            done += len(group)
            advance(len(group))
    warnings.end()
    return done


def _stream_lines(
    use: "RunInUse[AnyTask]", search: "DecodingConfig | None", *, on_bad_line: str | None
) -> None:
    """Print each line of stdin and its continuation as it is written, for somebody who waits."""
    from regard.inference.lines import requests_in
    from regard.text.reading.line_groups import groups_of

    groups, ending = groups_of(None)
    read = partial(use.parse_line, ending=ending)
    warnings = LineWarnings("Its answer is left empty.")
    for group in requests_in(groups, read, skip_bad_lines=on_bad_line == "skip"):
        for line in group:
            warnings.see(line.problem, line.unknown)
            if line.request is not None:
                for piece in chain((line.request.example,), use.stream(line.request, search)):
                    say(piece, end="")
                    sys.stdout.flush()
            say("\n" if line.problem is None else "")
            if _is_typed():
                warnings.end_unknown()
    warnings.end()


def _count_lines(file: Path) -> int:
    from regard.text import open_text

    with open_text(file) as lines:
        return sum(1 for _ in lines)


class LineWarnings:
    """Warnings about lines on stderr: the first ones each, then a count."""

    def __init__(self, consequence: str) -> None:
        self._consequence = consequence
        self._lines = self._unread = self._warnings = 0
        self._unknown: dict[str, None] = {}

    def see(self, problem: str | None, unknown: Iterable[str]) -> None:
        """Count a line and its unknown pieces, with a warning if it could not be read."""
        self._lines += 1
        self._unknown |= dict.fromkeys(unknown)
        if problem is not None:
            self._unread += 1
            self.add(f"{problem} {self._consequence}")

    def add(self, text: str) -> None:
        """Print a warning, if it is among the first."""
        self._warnings += 1
        if self._warnings <= _MOST_WARNINGS:
            note(f"warning: {text}")

    def end_unknown(self) -> None:
        """Print the unknown pieces so far."""
        note_unknown(self._unknown)
        self._unknown.clear()

    def end(self) -> None:
        """Print unknown pieces, how many lines could not be read, and how many were not named."""
        self.end_unknown()
        if self._unread:
            note(f"warning: {self._unread:,} of {self._lines:,} lines could not be read.")
        if self._warnings > _MOST_WARNINGS:
            more = counted(self._warnings - _MOST_WARNINGS, "more lines")
            note(f"warning: {more} like these.")
