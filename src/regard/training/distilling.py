"""Learning from what a trained run writes: sequence-level distillation.

The targets of the training text are what the teacher's search finds for its sources: Kim & Rush
(2016), https://arxiv.org/abs/1606.07947, section 3.2. What is validated and tested on keeps its
own.

::

    run/distilled.jsonl  who the teacher is, and what it wrote for each different source

What is written there is not written again, whenever the work stopped.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, fields, replace
from itertools import islice
from pathlib import Path
from typing import cast

from regard.config import JsonValue, as_table
from regard.errors import DataError, SettingError
from regard.inference import Predictor
from regard.runs import Run
from regard.runs.files import append, cut, read_file, sync_file
from regard.runs.records import read_records
from regard.runs.run import DISTILLED_FILE
from regard.tasks import DecodingConfig, Recipe, recipe_from_table
from regard.tasks.recipe import DataConfig, with_training
from regard.tasks.task import ExampleT
from regard.text import Pair, normalize

# Sources that are translated before their translations are kept.
_GROUP = 1000
_TASK = "translation"

# What shows how translating goes: told how many sources there are, it gives what counts them.
Watch = Callable[[int], AbstractContextManager[Callable[[int], None]]]


def unwatched(total: int) -> AbstractContextManager[Callable[[int], None]]:
    """Translating shown to nobody."""
    return nullcontext(lambda count: None)


def taught(
    examples: Sequence[ExampleT],
    teacher: "Teacher | None",
    folder: Path,
    run: Run | None,
    watch: Watch,
) -> Sequence[ExampleT]:
    """The examples with a teacher's translations as targets, where there is one.

    Args:
        examples: What is trained on.
        teacher: Who writes for them; None leaves them as they are.
        folder: The run folder of who learns.
        run: It, locked, where there is a run already.
        watch: Shows how translating goes.

    Raises:
        DataError: The teacher wrote nothing at all.
        RunError: The folder holds something else, or the disk refuses.
    """
    if teacher is None:
        return examples
    found = teacher.taught(cast("Sequence[Pair]", examples), folder, run, watch)
    return cast("Sequence[ExampleT]", found)


def learn_from(recipe: Recipe, run: Run | None) -> tuple[Recipe, "Teacher | None"]:
    """The recipe, complete, and the run whose translations ``[training]`` says to learn.

    A recipe that names no text to train on has the teacher's.

    Args:
        recipe: What is to be trained.
        run: The run to go on with; None begins a new one.

    Raises:
        RunError: There is no such run, or it has not finished.
        SettingError: The teacher writes no translations, or others than the recipe is for.
    """
    name = recipe.training.get("distill")
    if name is None:
        return recipe, None
    if recipe.task != _TASK:
        raise SettingError(
            f"training.distill must be left out for {recipe.task}; got {name!r}. "
            f"It is for {_TASK}, whose targets a teacher can write."
        )
    teacher = Teacher(Path(os.path.realpath(recipe.folder / str(name))))
    return teacher.complete(recipe, run), teacher


@dataclass(frozen=True)
class Teacher:
    """The run whose translations are learned.

    Attributes:
        path: Its folder or bundle, an absolute path.
    """

    path: Path

    def complete(self, recipe: Recipe, run: Run | None) -> Recipe:
        """The recipe with what it leaves out of the text as the teacher has it.

        Args:
            recipe: What is to be trained.
            run: The run to go on with, which knows; None asks the teacher.

        Raises:
            RunError: There is no such run, or it has not finished.
            SettingError: It writes no translations, or others than the recipe is for.
        """
        before = recipe_from_table(run.recipe if run is not None else self._checked().recipe)
        said, theirs = recipe.settings(DataConfig), before.settings(DataConfig)
        for name in ("source_language", "target_language"):
            asked, known = getattr(said, name), getattr(theirs, name)
            if None not in (asked, known) and asked != known:
                raise SettingError(
                    f"training.distill must name a run of the same languages; got {known!r} as its "
                    f"{name} and {asked!r} as data.{name}."
                )
        languages = {
            name: getattr(said, name) or getattr(theirs, name)
            for name in ("source_language", "target_language")
        }
        if not recipe.named("train"):
            unsaid = {
                field.name: getattr(theirs, field.name)
                for field in fields(DataConfig)
                if getattr(said, field.name) == field.default
            }
            said = replace(said, **unsaid)
        recipe = replace(recipe, data=replace(said, **languages))
        return with_training(recipe, {**recipe.training, "distill": str(self.path)})

    def taught(
        self, pairs: Sequence[Pair], folder: Path, run: Run | None, watch: Watch
    ) -> list[Pair]:
        """The pairs with its translations as targets, but where it wrote nothing."""
        sources = list(dict.fromkeys(pair.source for pair in pairs))
        with ExitStack() as stack:
            if run is None:
                stack.enter_context(Run.reserved(folder))
            known = self._written(folder / DISTILLED_FILE, sources, run, watch)
        found = [
            replace(pair, target=known[pair.source], references=(known[pair.source],))
            for pair in pairs
            if known[pair.source]
        ]
        if not found:
            raise DataError(
                f"training.distill must name a run that writes translations; {self.path} writes "
                "nothing for any source. Train it longer."
            )
        return found

    def _written(
        self, file: Path, sources: Sequence[str], run: Run | None, watch: Watch
    ) -> Mapping[str, str]:
        """Outputs of the teacher for each source, cached or new."""
        known = _kept(file)
        if run is not None and known.keys() >= set(sources):
            return known  # the teacher may be gone
        teacher = self._checked()
        about: dict[str, JsonValue] = {
            "teacher": teacher.model_checksum,
            "decoding": as_table(recipe_from_table(teacher.recipe).settings(DecodingConfig)),
        }
        if _about(file) != about:
            known = {}
            cut(file, 0)
            append(file, _line(about))
        missing = [source for source in sources if source not in known]
        if missing:
            predictor = Predictor.load(self.path)
            with watch(len(missing)) as advance:
                for group in _groups(missing):
                    translations = _translated(predictor, group, advance)
                    new = dict(zip(group, translations, strict=True))
                    append(file, b"".join(map(_record, new.items())))
                    sync_file(file)
                    known |= new
        return known

    def _checked(self) -> Run:
        """The teacher's run.

        Raises:
            RunError: There is none, or it has not finished.
            SettingError: It is of another task.
        """
        run = Run.open(self.path)
        run.check_finished()
        if run.task != _TASK:
            raise SettingError(
                f"training.distill must name a run of {_TASK}; got one of {run.task} in "
                f"{self.path}."
            )
        return run


def _translated(
    predictor: Predictor, sources: Sequence[str], advance: Callable[[int], None]
) -> list[str]:
    found = predictor.translate(sources, n_best=1, progress=advance)
    return [normalize(best.text) for best, *_ in found]


def _groups(sources: Sequence[str]) -> Iterator[list[str]]:
    rest = iter(sources)
    while group := list(islice(rest, _GROUP)):
        yield group


def _kept(file: Path) -> dict[str, str]:
    """The translations in a file, by their sources; a line that a kill tore is cut off."""
    if not file.exists():
        return {}
    cut(file, read_file(file).rfind(b"\n") + 1)
    return {
        str(record["source"]): str(record["translation"])
        for record in read_records(file)[1:]
        if record.keys() >= {"source", "translation"}
    }


def _about(file: Path) -> Mapping[str, JsonValue] | None:
    """Header of a file of teacher outputs."""
    records = read_records(file)
    return records[0] if records else None


def _record(translated: tuple[str, str]) -> bytes:
    return _line(dict(zip(("source", "translation"), translated, strict=True)))


def _line(record: Mapping[str, object]) -> bytes:
    return (json.dumps(record, ensure_ascii=False) + "\n").encode(errors="replace")
