"""How fast a run answers on this machine: many texts at once, one at a time, in what memory."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import cast

import numpy as np

from regard.config import JsonValue
from regard.errors import DataError
from regard.inference.filtering import requests_in
from regard.inference.line_groups import groups_of
from regard.inference.predictor import Predictor
from regard.layers.choices import Precision
from regard.tasks import DecodingConfig, OnePassTask
from regard.tasks.language_modelling import LanguageModelling
from regard.tasks.language_modelling.running_text import Passage
from regard.tasks.translations import Hypotheses, Translations
from regard.text import Line

# Answers examples, telling how many are done; gives how many tokens that were.
Answering = Callable[[Sequence[object], Callable[[int], None]], int]

# Texts that are answered alone: enough for the slowest in twenty.
MOST_ALONE = 50
# Texts that are answered before anything is measured.
_BEFORE = 16
# Of a text that a language model goes on with, tokens that it is given, and most that it writes.
_PROMPT, _WRITTEN = 8, 64


@dataclass(frozen=True, slots=True)
class Speed:
    """How fast texts were answered in one way.

    Attributes:
        precision: What the weights were in.
        beam_size: Hypotheses kept at each step; None where nothing is searched for.
        texts: How many were answered.
        tokens: How many tokens were written for them; of answers in one pass, how many were read.
        seconds: What answering them at once took.
        p50: Milliseconds that half of the texts took at most, each answered by itself.
        p95: Milliseconds that nineteen in twenty took at most.
        peak_mib: Most memory of the process meanwhile; None where the system does not say.
    """

    precision: str
    beam_size: int | None
    texts: int
    tokens: int
    seconds: float
    p50: float
    p95: float
    peak_mib: float | None

    @property
    def texts_per_second(self) -> float:
        """Texts a second, answered at once."""
        return self.texts / self.seconds

    @property
    def tokens_per_second(self) -> float:
        """Tokens a second, of the same."""
        return self.tokens / self.seconds

    def to_dict(self) -> dict[str, JsonValue]:
        """Plain data, ready for JSON."""
        rates = {
            "texts_per_second": self.texts_per_second,
            "tokens_per_second": self.tokens_per_second,
        }
        return cast("dict[str, JsonValue]", asdict(self) | rates)


def texts_of(predictor: Predictor, file: Path | None, *, most: int) -> Sequence[object]:
    """Texts to measure with: the lines of a file, or else the run's test or validation data.

    Args:
        predictor: The run.
        file: Lines, as ``regard predict`` reads them; None takes the run's own.
        most: How many at most.

    Raises:
        DataError: The file asks nothing, or there is no text of the run's own any more.
    """
    examples = _own(predictor) if file is None else _of_file(predictor, file)
    if isinstance(predictor.task, LanguageModelling):
        passages = cast("Sequence[Passage]", examples)
        examples = [line for passage in passages for line in passage.lines if line]
    if not examples:
        if file is not None:
            raise DataError(f"{file} must hold texts to measure with; got none.")
        raise DataError(
            "data.test or data.valid must be there to measure with; it is not. "
            "Give a file of texts: regard bench RUN FILE."
        )
    return examples[:most]


def beam_sizes_of(predictor: Predictor) -> list[int | None]:
    """Greedy search, and the beam of the recipe; of what is not searched for, None alone."""
    if not predictor.writes:
        return [None]
    decoding = predictor.decoding
    return list(dict.fromkeys([1, decoding.beam_size if decoding.method == "beam" else 1]))


def speeds(
    load: Callable[[Precision], Predictor],
    examples: Sequence[object],
    *,
    precisions: Sequence[Precision],
    beam_sizes: Sequence[int | None],
    progress: Callable[[int], None],
) -> Iterator[Speed]:
    """How fast examples are answered at each precision and beam size, one after the other.

    Args:
        load: The run in a precision.
        examples: See ``texts_of``.
        precisions: What weights are to be in.
        beam_sizes: Those to search with; see ``beam_sizes_of``.
        progress: Called with the number of texts answered since; ``steps`` says of how many.
    """
    for precision in precisions:
        predictor = load(precision)
        predictor.warm_up()
        for beam_size in beam_sizes:
            answer = _answering(predictor, beam_size)
            yield _measured(answer, examples, precision, beam_size, progress)


def steps(examples: Sequence[object], ways: int) -> int:
    """How many texts ``speeds`` answers, each at once with the others and some alone as well."""
    return ways * (len(examples) + min(MOST_ALONE, len(examples)))


def _measured(
    answer: Answering,
    examples: Sequence[object],
    precision: str,
    beam_size: int | None,
    progress: Callable[[int], None],
) -> Speed:
    answer(examples[:_BEFORE], lambda count: None)  # what is made once is made now
    _forget_peak()
    started = time.perf_counter()
    tokens = answer(examples, progress)
    seconds = time.perf_counter() - started
    alone = []
    for example in examples[:MOST_ALONE]:
        before = time.perf_counter()
        answer([example], progress)
        alone.append(1000 * (time.perf_counter() - before))
    p50, p95 = np.percentile(alone, [50, 95], method="higher").tolist()
    return Speed(precision, beam_size, len(examples), tokens, seconds, p50, p95, _peak())


def _answering(predictor: Predictor, beam_size: int | None) -> Answering:
    if predictor.is_seq2seq:
        return partial(_translate, predictor, _searching(predictor.decoding, beam_size))
    if isinstance(predictor.task, LanguageModelling):
        return partial(_go_on, predictor, _searching(predictor.decoding, beam_size))
    return partial(_answer, predictor)


def _searching(decoding: DecodingConfig, beam_size: int | None) -> DecodingConfig:
    """The recipe's search with another beam, and one answer."""
    alone: dict[str, object] = {"n_best": 1, "groups": 1, "require": ()}
    alone |= {"minimum_bayes_risk": None, "max_tokens": min(_WRITTEN, decoding.max_tokens)}
    return decoding.changed(method="beam", beam_size=beam_size, **alone)


def _translate(
    predictor: Predictor,
    decoding: DecodingConfig,
    examples: Sequence[object],
    progress: Callable[[int], None],
) -> int:
    found = predictor.answers(examples, decoding=decoding, progress=progress)
    # Each with its end.
    return sum(len(cast("Translations", each).best.tokens) + 1 for each in found)


def _go_on(
    predictor: Predictor,
    decoding: DecodingConfig,
    examples: Sequence[object],
    progress: Callable[[int], None],
) -> int:
    task, tokens = cast("LanguageModelling", predictor.task), 0
    encode, decode = task.tokenizer.encode, task.tokenizer.decode
    for line in cast("Sequence[str]", examples):
        prompt = decode(encode(line)[:_PROMPT])
        (found,) = predictor.predictions([prompt], decoding=decoding)
        tokens += len(cast("Hypotheses", found).best.tokens)
        progress(1)
    return tokens


def _answer(
    predictor: Predictor, examples: Sequence[object], progress: Callable[[int], None]
) -> int:
    task = predictor.task
    assert isinstance(task, OnePassTask)
    predictor.answers(examples, progress=progress)
    return int(task.lengths(task.encode(examples)).sum())


def _own(predictor: Predictor) -> Sequence[object]:
    """The run's own test or validation data, where the text is still there."""
    task = predictor.task
    for split in ("test", "valid"):
        with suppress(DataError):
            if found := task.read(predictor.recipe, split):
                return found
    if predictor.recipe.training.get("corpus") == "disk":
        return []  # what is validated on is among more than memory holds
    with suppress(DataError):
        parts = task.read_parts(predictor.recipe)
        return parts.test or parts.valid
    return []


def _of_file(predictor: Predictor, file: Path) -> Sequence[object]:
    groups, name, ending = groups_of(file, predictor.task.asked_fields())

    def read(line: Line) -> object | None:
        return predictor.task.asked(line, ending) if line.text.strip() else None

    lines = (line for group in requests_in(groups, read, name=name) for line in group)
    return [line.request for line in lines if line.request is not None]


def _forget_peak() -> None:
    """Let the system count the most memory from now on, where it can."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def _peak() -> float | None:
    """Most memory of the process since then, in MiB."""
    with suppress(OSError, StopIteration, ValueError):
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
        found = next(line for line in lines if line.startswith("VmHWM:"))
        return int(found.split()[1]) / 1024
    return None
