"""``regard predict``."""

import json
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from regard.cli.continuing import continue_lines, is_run_of_language_model
from regard.cli.decoding_options import AS_THE_RECIPE_SAYS, DecodingOptions
from regard.cli.oddities import Oddities
from regard.cli.output import progress_bar, refuse, say
from regard.cli.scoring import score_lines
from regard.errors import SettingError

if TYPE_CHECKING:
    from regard.inference.filtering import Answer


def predict(
    run: Path,
    file: Path | None = None,
    /,
    *,
    decoding: DecodingOptions = AS_THE_RECIPE_SAYS,
    n_best: int | None = None,
    score: bool = False,
    attention: bool = False,
    layers: str | None = None,
    output_format: Literal["text", "jsonl"] = "text",
    on_bad_line: Literal["error", "skip"] = "error",
) -> None:
    """Answer lines of text: a line in, a line out.

    Example: `echo 我爱中国 | regard predict regard-demo`

    Five different answers: `… --method sample --top-p 0.9 --n-best 5`

    Reads a file, or stdin; an empty line stays an empty line. A line longer than the model was
    trained on is translated in parts, and a note on stderr says so. A run that labels or tags
    answers with the label and its probability, or with word/tag. A language model goes on with each
    line, as it writes; with --score it says how surprising the line is, in nats a token.

    Args:
        run: The run folder.
        file: Lines of text, by default stdin. Of a .tsv file the source's column is read, of a
            .jsonl file what is at "source"; each may end in .gz or .zst.
        decoding: How outputs are searched for.
        n_best: Translations of each line, the best or as many samples; with more than one, a line
            of text is: the line's number, a tab, the score, a tab, the translation.
        score: Translate nothing, but say how likely given outputs are: of lines of source, a tab
            and target (or a file as for training), print the score, a tab, the log-probability, a
            tab, the target; in jsonl the log-probability of each token as well.
        attention: Add what was looked at: to text a tab and the strongest links between tokens,
            source-output, counted from 0; to jsonl the tokens and all weights.
        layers: Whose attention that is, counted from 0: 3 or 0,2-3. By default that of all layers.
        output_format: Lines of text, or a JSON object a line with scores.
        on_bad_line: What to do about a line that cannot be read: stop, or leave its answer empty.
    """
    from regard.cli.jobs import is_run_of_job, predict_run_of_job
    from regard.inference import Predictor
    from regard.inference.filtering import answers, groups_of
    from regard.inference.numbers import numbers_of

    if is_run_of_language_model(run) and not score:
        if attention:
            raise SettingError(
                "--attention must be left out for a language model; see regard look."
            )
        continue_lines(
            run,
            file,
            decoding,
            n_best=n_best,
            output_format=output_format,
            on_bad_line=on_bad_line,
        )
        return
    if is_run_of_job(run):
        is_scored = score and not is_run_of_language_model(run)
        given: dict[str, object] = {"--attention": attention, "--score": is_scored}
        given |= {"--n-best": n_best, **decoding.flags()}
        predict_run_of_job(
            run, file, output_format=output_format, on_bad_line=on_bad_line, given=given
        )
        return
    if layers is not None and not attention:
        raise SettingError("--layers must go with --attention; got it without.")
    of_layers = numbers_of("--layers", layers)
    predictor = Predictor.load(run)
    asked = decoding.given() | ({} if n_best is None else {"n_best": n_best})
    search = predictor.recipe.decoding.changed(**asked)
    if score:
        given = {"--attention": attention, "--n-best": n_best}
        refuse(given, "with --score; nothing is searched for")
        score_lines(predictor, file, search, output_format=output_format, on_bad_line=on_bad_line)
        return
    if attention and search.n_best > 1 and output_format == "text":
        raise SettingError(
            "--attention must go with one translation a line, or with --output-format jsonl; "
            f"got --n-best {search.n_best}."
        )
    options: dict[str, Any] = {
        "attention": attention,
        "layers": of_layers,
        "skip_bad_lines": on_bad_line == "skip",
        "decoding": search,
    }
    groups, name, ending = groups_of(file)
    oddities = Oddities()
    done = 0
    bar = (
        nullcontext(lambda count: None)
        if file is None
        else progress_bar("translating", lambda: _count_lines(file), beside_results=True)
    )
    with bar as advance:
        for group in answers(predictor, groups, name=name, ending=ending, **options):
            for number, answer in enumerate(group, done + 1):
                _remark(answer, oddities, predictor.recipe.data.max_length)
                for line in _lines(answer, number, output_format, search.n_best):
                    say(line)
            sys.stdout.flush()
            done += len(group)
            advance(len(group))
    oddities.end()


def _lines(answer: "Answer", number: int, output_format: str, n_best: int) -> Iterator[str]:
    if output_format == "jsonl":
        yield json.dumps(answer.to_dict(), ensure_ascii=False)
    elif n_best > 1:
        for each in answer.translations:
            score = each.score if each.utility is None else each.utility
            yield f"{number}\t{score:.4f}\t{each.text}"
    else:
        yield answer.text()


def _remark(answer: "Answer", oddities: Oddities, longest: int) -> None:
    """Say what is odd about a line, if anything."""
    oddities.see(answer.problem)
    if answer.best.parts > 1:
        oddities.say(
            f"{answer.where}: longer than the {longest} tokens that the model was trained on; "
            f"translated in {answer.best.parts} parts."
        )


def _count_lines(file: Path) -> int:
    from regard.text import open_text

    with open_text(file) as lines:
        return sum(1 for _ in lines)
