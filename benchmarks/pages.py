"""The page of all figures, group by group, and what each record was made of."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks import ages, measuring, occasion, quoting, shipped

_HEAD = "| measured | regard | beside it | how | script |\n|---|---:|---|---|---|"
_RECORDS_HEAD = (
    "| record | commit | date | machine | load before | threads | rounds | its code since |\n"
    "|---|---|---|---|---:|---:|---:|---|"
)

_MEASURED = """\
# What was measured

Every figure comes from a script in [benchmarks/](../benchmarks/README.md) that leaves a record
beside it; peers run in the same minutes on the same machine. `python -m benchmarks.tables` writes
this page. ▼ marks what is no better than what needs no model: the baseline beside it. † marks what
is old: the code that it measures has changed since, or is in no commit. Peers run at the fastest
of their settings of threads. The last table says of each record when, where and how it was made.
"""
_NOT_MEASURED = "Not measured since its script changed."


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """The figures of one job, and what they show; sentences are those of ``benchmarks.quoting``."""

    title: str  # the heading
    figures: tuple[str, ...]  # the places of its figures: records, or figures with certain words
    # what they show, and where they are short of a goal or of a trivial baseline; broken into lines
    # at will
    says: str
    holds: tuple[str, ...] = ()  # what must be so for that to be true


def measured(
    records: Sequence[Mapping[str, Any]],
    quoted: Mapping[str, quoting.Numbers],
    groups: Sequence[Group],
    old: Sequence[str],
) -> str:
    """The page of all figures, group by group."""
    parts, left = [_MEASURED], [figure for record in records for figure in record["figures"]]
    marked = shipped.no_better(records)
    for group in groups:
        lines = []
        for place in group.figures:
            name = place.partition(":")[0]
            mark = f" {ages.MARK}" if name in old else ""
            for figure in quoting.find(records, place):
                left.remove(figure)
                script = f"[`{name}`](../benchmarks/{measuring.script_of(name)}.py){mark}"
                lines.append(line([*shipped.cells(figure, marked), script]))
        try:
            said = quoting.say(group.says, quoted, holds=group.holds)
        except quoting.NotMeasuredError:
            said = _NOT_MEASURED
        table = "\n".join([_HEAD, *lines]) if lines else ""
        blocks = (f"## {group.title}", said, table)
        parts.append("\n\n".join(filter(None, blocks)) + "\n")
    if left:
        raise quoting.QuoteError(f"no group has {left[0]['what']!r}.")
    return "\n".join([*parts, _occasions(records, old)])


def line(cells: Iterable[str]) -> str:
    """A row of a table."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _occasions(records: Sequence[Mapping[str, Any]], old: Sequence[str]) -> str:
    """When, where and how each record was made; a dash where an older one does not say."""
    lines = []
    for record in records:
        machine, details = record["machine"], record["details"]
        threads = record.get("threads") or details.get("threads")
        cells = (
            f"[`{record['name']}`](../benchmarks/records/{record['name']}.json)",
            record["commit"] or "–",
            record["date"],
            _machine(machine),
            f"{machine['load_at_start']:.2f}" if "load_at_start" in machine else "–",
            ", ".join(map(str, threads)) if isinstance(threads, list) else str(threads or "–"),
            str(record.get("rounds") or details.get("rounds") or "–"),
            f"{ages.MARK} old" if record["name"] in old else "the same",
        )
        lines.append(line(cells))
    said = (
        "What is timed is refused a record where the load before is above "
        f"{occasion.HIGHEST_LOAD:g} or there are fewer than {occasion.FEWEST_ROUNDS} rounds; older "
        "records do not keep to it all. Samples, versions and commands are in the records."
    )
    return "\n\n".join(["## Each record", said, "\n".join([_RECORDS_HEAD, *lines])]) + "\n"


def _machine(machine: Mapping[str, Any]) -> str:
    """A machine, and the widest instructions of its processor."""
    flags = machine["flags"]
    names = {"amx_bf16": "AMX", "avx512f": "AVX-512", "avx2": "AVX2", "asimd": "NEON"}
    widest = next((name for flag, name in names.items() if flag in flags), "")
    device = [machine["gpu"]] if machine.get("gpu") else []
    return ", ".join(filter(None, [*device, machine["cpu"], widest, f"{machine['cores']} cores"]))
