"""Any number of files answered into a folder, which any number of runs of the same may go on with.

::

    folder/bulk.json              the model and options of the answers, and their files
    folder/a.tsv.jsonl            the answers to a.tsv: as many lines as rows, whole or absent
    folder/a.tsv.errors.jsonl     rows of it that could not be answered, and why; absent if none
    folder/lock                   held by the process that makes answers
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

from regard.config import JsonValue, as_saved, as_table
from regard.errors import DataError, RunError, SettingError
from regard.files import explain_refusal, write_file
from regard.inference.bulk.answering import WRITING, BulkOptions, ShardReport
from regard.inference.bulk.engines import Engine, local_engine
from regard.inference.bulk.shards import ENDINGS, ERRORS, Shard, find_shards
from regard.inference.lines import first_problem
from regard.inference.loading import kind_of
from regard.progress import progress
from regard.runs import Run
from regard.runs.files import explain_path, read_file, seal, unseal
from regard.runs.lock import Lock
from regard.tasks import TASKS, DecodingConfig, recipe_from_table
from regard.text.reading.opening import TABLES, read_rows
from regard.version import __version__

_MANIFEST, _FORMAT = "bulk.json", 1
# Contents of a folder before its first manifest.
_BEFORE = {"lock"}


@dataclass(frozen=True, kw_only=True, slots=True)
class BulkReport:
    """Result of a job.

    Attributes:
        answered: Shards that were answered now.
        skipped: Shards whose answers were there.
        rows: Rows of those answered now.
        errors: Rows of them that could not be answered.
        failed: Shards that could not be answered at all, with their problems.

    Example:
        >>> report = BulkReport(answered=2, skipped=7, rows=900, errors=3, failed=[])
        >>> f"{report.errors / report.rows:.1%}"
        '0.3%'
    """

    answered: int
    skipped: int
    rows: int
    errors: int
    failed: list[ShardReport] = field(default_factory=list)


def answer_files(
    run: str | Path,
    inputs: Sequence[str | Path],
    folder: str | Path,
    *,
    options: BulkOptions | None = None,
    engine: Engine = local_engine,
    remake: bool = False,
) -> BulkReport:
    """Answer every row of some files, each file into one of its own, which is whole or absent.

    Files whose answers are there are left alone, so that a job that was stopped or killed goes on
    where it was. A file that has changed since is answered anew.

    Args:
        run: The run folder or bundle that answers.
        inputs: Files, folders of them, or patterns as ``shards/*.parquet``: lines of text, TSV,
            JSONL, each perhaps compressed, or Parquet.
        folder: Where the answers go; made if it does not exist.
        options: How to answer; None is by the defaults.
        engine: Who answers.
        remake: Whether answers of another model or of other options are made anew.

    Raises:
        DataError: Nothing is named, or something that is not there; or of a table of Arrow's making
            no row has an input, as when it has no such column.
        RunError: The folder holds something else, or answers made otherwise, or is in use; the run
            is damaged or has not finished; or the disk is full.
        SettingError: An option is not for this run.

    Example:
        Of a run that answers by the two points it knows:

        >>> import tempfile
        >>> from regard.tasks import TASKS, recipe_from_table
        >>> from regard.text.reading.points import Point
        >>> recipe = recipe_from_table({"task": "regression", "model": {"is_learned": True}})
        >>> known = [Point((0.0,), 2.0, ("x",), ""), Point((1.0,), 4.0, ("x",), "")]
        >>> task, home = TASKS["regression"].task.learn(recipe, known), Path(tempfile.mkdtemp())
        >>> with Run.create(home / "run", recipe.table(), recipe.task) as run:
        ...     with run.new_tokenizer_folder() as folder:
        ...         task.save(folder)
        ...     run.finish(task.build_model().state_dict())
        >>> _ = (home / "asked.txt").write_text("0.5", "utf-8")
        >>> report = answer_files(home / "run", [home / "asked.txt"], home / "answers")
        >>> report.answered, (home / "answers" / "asked.txt.jsonl").read_text("utf-8").strip()
        (1, '{"value": 3.0}')
        >>> answer_files(home / "run", [home / "asked.txt"], home / "answers").skipped
        1
    """
    options, folder, run = options or BulkOptions(), Path(folder), Path(run)
    opened = Run.open(run)
    if opened.task == "language_modelling":
        raise SettingError(
            f"{run} must be a run that answers rows, to answer files; it is a language model. "
            "Use regard predict without --input."
        )
    made_with = _identity(opened, options)
    shards = find_shards(inputs, folder, ending=ENDINGS[options.output_format])
    _check_tables(opened, [shard for shard in shards if not shard.is_answered])
    with explain_path(folder), explain_refusal(folder):
        folder.mkdir(parents=True, exist_ok=True)
    lock = Lock(folder, cure="Wait until it ends, or choose another: --output FOLDER.")
    try:
        _settle(folder, made_with, shards, remake=remake)
        waiting = [shard for shard in shards if not shard.is_answered]
        reports = []
        with progress("answering files", len(waiting)) as advance:
            for report in engine(run, options, waiting) if waiting else ():
                reports.append(report)
                advance(1)
    finally:
        lock.release()
    done = [report for report in reports if report.problem is None]
    return BulkReport(
        answered=len(done),
        skipped=len(shards) - len(waiting),
        rows=sum(report.rows for report in done),
        errors=sum(report.errors for report in done),
        failed=[report for report in reports if report.problem is not None],
    )


def _check_tables(run: Run, shards: Sequence[Shard]) -> None:
    """Raise DataError if of a table with named columns nothing can be answered."""
    tables = [shard.source for shard in shards if shard.source.suffix in TABLES]
    if not tables:
        return
    task = run.load_task()
    for table in tables:
        try:
            problem = first_problem(task, table)
            if problem is None:
                continue
            columns = ", ".join(json.loads(next(read_rows(table))))
        except DataError:
            continue  # a damaged file is one that cannot be answered; the others can
        raise DataError(f"{problem} No row of {table.name} says it; its columns are {columns}.")


def _settle(
    folder: Path, made_with: Mapping[str, JsonValue], shards: Sequence[Shard], *, remake: bool
) -> None:
    """Make the folder one of these answers: stale ones are removed, and never counted."""
    # Stale files are noted before they are removed, so that a kill in between leaves a folder
    # that the next run settles.
    before = _Manifest.read(folder)
    for partial in filter(Path.is_file, folder.rglob(f"{WRITING}*")):  # by a worker that was killed
        partial.unlink(missing_ok=True)
    if before is None:
        _Manifest(made_with, {shard.name: _fingerprint(shard) for shard in shards}).write(folder)
        return
    stale = set(before.stale)
    if remake and before.made_with != made_with:
        stale |= set(before.shards)
        earlier = {}
    else:
        _check_same(folder, before.made_with, made_with)
        earlier = dict(before.shards)
    for shard in shards:
        was = before.shards.get(shard.name)
        if was is None or (was["size"], was["modified"]) == (shard.size, shard.modified):
            continue
        if was["source"] != str(shard.source) and not remake:
            raise RunError(
                f"{shard.answers} must hold the answers to {was['source']}; {shard.source} is "
                "another file of its name. Choose another folder: --output FOLDER."
            )
        stale.add(shard.name)
    now = _Manifest(
        made_with, earlier | {shard.name: _fingerprint(shard) for shard in shards}, sorted(stale)
    )
    now.write(folder)
    if stale:
        _remove(sorted(stale), folder)
        replace(now, stale=()).write(folder)


@dataclass(frozen=True, slots=True)
class _Manifest:
    """Contents of ``bulk.json``."""

    made_with: Mapping[str, JsonValue]
    shards: Mapping[str, Mapping[str, JsonValue]] = field(default_factory=dict)
    stale: Sequence[str] = ()

    @classmethod
    def read(cls, folder: Path) -> "_Manifest | None":
        """That of a folder of answers; None of a new one."""
        path = folder / _MANIFEST
        if not path.exists():
            _check_empty(folder)
            return None
        table = unseal(read_file(path), where=path)
        if table.get("format") != _FORMAT:
            raise RunError(
                f"{path} must have format {_FORMAT}; got {table.get('format')}. A newer version of "
                "regard wrote it: install that version."
            )
        return cls(
            cast(Mapping[str, JsonValue], table["made_with"]),
            cast(Mapping[str, Mapping[str, JsonValue]], table["shards"]),
            cast(Sequence[str], table["stale"]),
        )

    def write(self, folder: Path) -> None:
        """Put it into a folder, whole."""
        table: dict[str, object] = {"format": _FORMAT, "regard": __version__}
        table |= {"made_with": self.made_with, "shards": self.shards, "stale": list(self.stale)}
        write_file(folder / _MANIFEST, seal(table))


def _identity(run: Run, options: BulkOptions) -> dict[str, JsonValue]:
    """Fingerprint of the model and options that determine the answers."""
    weights, recipe = run.check_finished(), recipe_from_table(run.recipe)
    decoding = kind_of(TASKS[recipe.task].task).search(recipe, options.decoding)
    return {
        "task": run.task,
        "weights": weights,
        "tokenizer": run.card.get("tokenizer"),
        "embed": False,  # as folders of before say
        "decoding": None if decoding is None else as_table(decoding),
        "output_format": options.output_format,
        "precision": options.precision,
        "device": options.device,
        "threads": options.threads,
    }


def _fingerprint(shard: Shard) -> dict[str, JsonValue]:
    """Fingerprint of a shard's file."""
    return {"source": str(shard.source), "size": shard.size, "modified": shard.modified}


def _check_same(
    folder: Path, before: Mapping[str, JsonValue], now: Mapping[str, JsonValue]
) -> None:
    """Raise RunError if a folder's answers were made with another model or other options."""
    for name, value in now.items():
        if before.get(name) == value:
            continue
        if name in ("weights", "tokenizer"):
            difference = f"the {name} of the run are others"
        elif isinstance(value, Mapping) and isinstance(was := before.get(name), Mapping):
            was = as_saved(DecodingConfig, was)
            changed = [key for key in {**value, **was} if value.get(key) != was.get(key)]
            if not changed:
                continue
            key = changed[0]
            difference = f"{name}.{key} was {was.get(key)!r}, now {value.get(key)!r}"
        else:
            difference = f"{name} was {before.get(name)!r}, now {value!r}"
        raise RunError(
            f"{folder} must go on as it was begun; {difference}. Choose another folder, or make "
            "all answers in it anew: --remake."
        )


def _remove(shards: Sequence[str], folder: Path) -> None:
    for name in shards:
        for ending in (*ENDINGS.values(), ERRORS):
            (folder / f"{name}{ending}").unlink(missing_ok=True)


def _check_empty(folder: Path) -> None:
    paths = sorted(
        path.name
        for path in folder.iterdir()
        if path.name not in _BEFORE and not path.name.startswith(WRITING)
    )
    if paths:
        raise RunError(
            f"{folder} must be a new or empty folder, or one of an earlier job; {_MANIFEST} is "
            f"missing, and it holds {', '.join(paths[:3])}. Choose another: --output FOLDER."
        )
