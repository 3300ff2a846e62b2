"""``regard predict --input … --output …``: files answered shard by shard."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from regard.cli.options import UNLISTED
from regard.cli.output import note, require
from regard.config import JsonValue
from regard.devices.kinds import Precision
from regard.errors import DataError

_NAMED = 3  # failed files that are named


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True, slots=True)
class Bulk:
    """Options of bulk prediction: inputs, outputs, workers.

    Attributes:
        input: Files, folders or patterns ('shards/*.parquet'), each answered into its own file in
            --output.
        output: The file to write the answers into, by default stdout; of --input the folder.
        engine: Who answers --input: this process (local), or workers of Ray Data.
        actors: Workers of --engine ray; by default one for each core, or --threads of them.
        address: A Ray cluster to join, such as auto or ray://host:10001; by default Ray is started
            here.
        threads: Of each worker on --input, by default 1; the answers are the same byte for byte
            with as many.
        remake: Make answers in --output anew that another model or other options made.
    """

    input: Annotated[tuple[str, ...], Parameter(consume_multiple=True, show_default=False)] = ()
    output: Annotated[Path | None, Parameter(name=["--output", "-o", "--out"])] = None
    engine: Annotated[Literal["local", "ray"] | None, UNLISTED] = None
    actors: Annotated[int | None, UNLISTED] = None
    address: Annotated[str | None, UNLISTED] = None
    threads: Annotated[int | None, UNLISTED] = None
    remake: Annotated[bool, UNLISTED] = False

    def is_set(self) -> bool:
        """Whether files are to be answered; an option without those it needs is a SettingError."""
        of_ray: dict[str, object] = {"--actors": self.actors, "--address": self.address}
        if not self.input:
            of_all = {"--remake": self.remake, "--engine": self.engine, "--threads": self.threads}
            require(of_ray | of_all, "--input")
            return False
        if self.output is None:
            require({"--input": self.input}, "--output FOLDER")
        if self.engine != "ray":
            require(of_ray, "--engine ray")
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
    """Answer files and say how many; DataError if some of them could not be read to their ends."""
    from regard.checks import check_at_least, counted
    from regard.inference.bulk import BulkOptions, answer_files, ray_engine
    from regard.inference.bulk.engines import local_engine

    check_at_least("--actors", bulk.actors or 1, 1)
    assert bulk.output is not None
    report = answer_files(
        run,
        bulk.input,
        bulk.output,
        options=BulkOptions(
            output_format=output_format,
            decoding=dict(decoding),
            precision=precision,
            device=device,
            threads=1 if bulk.threads is None else bulk.threads,
        ),
        engine=local_engine
        if bulk.engine != "ray"
        else ray_engine(actors=bulk.actors, address=bulk.address),
        remake=bulk.remake,
    )
    errors = f", {report.errors:,} of them with errors, noted beside" if report.errors else ""
    before = f"; {report.skipped:,} were answered before" if report.skipped else ""
    made = f"answered {counted(report.answered, 'files')}, {counted(report.rows, 'rows')}{errors}"
    note(f"{made}; in {bulk.output}{before}")
    for shard in report.failed[:_NAMED]:
        note(f"not answered: {shard.problem}")
    if report.failed:
        raise DataError(
            f"every file must be readable to its end; {len(report.failed):,} of "
            f"{len(report.failed) + report.answered:,} are not. "
            "Mend or leave them out, and run the same command again: what is answered stays."
        )
