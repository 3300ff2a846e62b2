"""``regard predict --input … --output …``: files answered shard by shard."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from regard.cli.options import UNLISTED
from regard.cli.output import note, progress_bar
from regard.config import JsonValue
from regard.errors import DataError, SettingError
from regard.layers.choices import Precision

if TYPE_CHECKING:
    from regard.inference.bulk import BulkReport, Engine, ShardReport

_SHOWN = 3  # problems of files that are told


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True, slots=True)
class Bulk:
    """Options of bulk prediction: inputs, outputs, workers.

    Attributes:
        input: Files, folders or patterns ('shards/*.parquet'), each answered into its own file in
            --output.
        output: The file to write the answers into, by default stdout; of --input the folder.
        embed: Turn each row of --input into a vector, the mean of the states it is read into.
        engine: Who answers --input: this process, or workers of Ray Data.
        actors: Workers of --engine ray; by default one for each core, or --threads of them.
        address: A Ray cluster to join, such as auto or ray://host:10001; by default Ray is started
            here.
        threads: Of each worker on --input; the answers are the same byte for byte with as many.
        remake: Make answers in --output anew that another model or other options made.
    """

    input: Annotated[tuple[str, ...], Parameter(consume_multiple=True, show_default=False)] = ()
    output: Annotated[Path | None, Parameter(name=["--output", "-o", "--out"])] = None
    embed: Annotated[bool, UNLISTED] = False
    engine: Annotated[Literal["local", "ray"], UNLISTED] = "local"
    actors: Annotated[int | None, UNLISTED] = None
    address: Annotated[str | None, UNLISTED] = None
    threads: Annotated[int, UNLISTED] = 1
    remake: Annotated[bool, UNLISTED] = False

    def is_asked(self) -> bool:
        """Whether files are to be answered.

        Raises:
            SettingError: An option is given that needs others.
        """
        given: dict[str, object] = {"--actors": self.actors, "--address": self.address}
        given |= {"--remake": self.remake or None, "--embed": self.embed or None}
        given |= {"--engine": self.engine if self.engine != "local" else None}
        if not self.input:
            for name, value in given.items():
                if value is not None:
                    raise SettingError(f"{name} must go with --input; got it without.")
            return False
        if self.output is None:
            raise SettingError("--input must go with --output FOLDER; got it without.")
        if self.engine == "local":
            for name in ("--actors", "--address"):
                if given[name] is not None:
                    raise SettingError(f"{name} must go with --engine ray; got it without.")
        return True


STREAM = Bulk()


def predict_files(
    run: Path,
    bulk: Bulk,
    *,
    decoding: Mapping[str, JsonValue],
    output_format: Literal["text", "jsonl"],
    precision: Precision,
    device: str,
) -> None:
    """Answer files, and say what came of it.

    Raises:
        DataError: Some of them could not be read to their ends; the others are answered.
    """
    from regard.checks import check_at_least
    from regard.inference.bulk import BulkOptions, answer_files

    check_at_least("--threads", bulk.threads, 1)
    check_at_least("--actors", bulk.actors or 1, 1)
    assert bulk.output is not None
    with ExitStack() as stack:
        advance: Callable[[int], object] = int

        def starting(waiting: int, skipped: int) -> None:
            nonlocal advance
            before = f", {skipped:,} answered before" if skipped else ""
            note(f"{waiting:,} files to answer{before}")
            advance = stack.enter_context(progress_bar("answering files", lambda: waiting))

        def progress(report: "ShardReport") -> None:
            advance(1)

        found = answer_files(
            run,
            bulk.input,
            bulk.output,
            options=BulkOptions(
                output_format=output_format,
                embed=bulk.embed,
                decoding=dict(decoding),
                precision=precision,
                device=device,
                threads=bulk.threads,
            ),
            engine=_engine(bulk),
            remake=bulk.remake,
            starting=starting,
            progress=progress,
        )
    _tell(found, bulk.output)


def _engine(bulk: Bulk) -> "Engine":
    from regard.inference.bulk import local_engine, ray_engine

    if bulk.engine == "local":
        return local_engine
    return ray_engine(actors=bulk.actors, address=bulk.address)


def _tell(found: "BulkReport", folder: Path) -> None:
    """Say what came of it."""
    errors = f", {found.errors:,} of them with errors, noted beside" if found.errors else ""
    note(f"answered {found.answered:,} files, {found.rows:,} rows{errors}; in {folder}")
    if not found.failed:
        return
    for report in found.failed[:_SHOWN]:
        note(f"not answered: {report.problem}")
    raise DataError(
        f"every file must be readable to its end; {len(found.failed):,} of "
        f"{len(found.failed) + found.answered:,} are not. Mend or leave them out, and run the same "
        "command again: what is answered stays."
    )
