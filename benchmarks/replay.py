"""Records made sure of, by the code as it is: speed is measured again, trainings begin again.

    python -m benchmarks.replay [NAME ...] --work FOLDER [--code CHECKOUT]

The record of a training keeps a fingerprint: losses at updates 10, 50 and 200 by seed 1 and one
thread, as ``regard train`` writes them down, that of the validation part after the last, and
digests of the recipe and of its data. The loss at update 200 is a mean of 50, or by code before
2a221a3d of one update: one of the two last has to agree. A missing one is taken by the code as it
is, or by that of ``CHECKOUT``, a clone at the commit that the training was recorded of. Only a
fingerprint of that code says whether a record holds: its losses are compared with those of the code
as it is. Budgets in minutes become a thousand updates.

Losses agree within ``SAME`` of each other on the same kind of machine, and within ``OTHER`` on
another, which ``benchmarks/README.md`` says how to find. What is there of a commit is not made
again for it: the command goes on where it was stopped.
"""

import argparse
import hashlib
import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from benchmarks import measuring, occasion
from benchmarks.training import PLACES, settings_of, shortened
from regard.config import write_toml
from regard.tasks import Recipe

# Scripts that train: each has `trainings`, the recipes of its rows by their names.
SCRIPTS = (
    *("attention_mechanisms", "classification", "documents", "language_modelling", "pretraining"),
    *("question_answering", "summarisation", "tagging", "translation"),
)
ENCODERS = ("fine_tuning",)  # these begin with pretrained encoders, and are replayed if named
# Scripts that measure again, in minutes, and what each is told besides a folder to work in.
MEASURED: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("start_up", "additive_attention", "inspection", "attention"), ()),
    "generation_speed": (),
    **dict.fromkeys(("demo", "decoding_speed", "training_speed"), ("--work", "WORK")),
    "simple_methods": ("--work", "WORK", "--sizes", "200"),
}
UPDATES = measuring.sized((10, 50, 200), (1, 2))
_LAST, _VALIDATION = UPDATES[-1], "validation"
SAME, OTHER = 1e-3, 1e-2
_TIMED = 1000  # updates in the place of minutes
_SPLITS = PLACES["data"]


def replay(record: dict[str, Any], work: Path, code: Path, jobs: int) -> None:
    """Take or compare the fingerprint of each training, and judge whether the record holds."""
    now = {
        "date": occasion.occasion()["date"],
        "commit": occasion.commit(),
        "machine": occasion.kind(occasion.machine()),
    }
    trainings = importlib.import_module(f"benchmarks.{record['name']}").trainings(work)
    prints = record.setdefault("fingerprint", {})
    parts = {name: part for name in trainings if (part := part_of(record, name)) is not None}
    with ThreadPoolExecutor(jobs) as pool:
        waiting = {}
        for number, (name, whole) in enumerate(trainings.items()):
            recipe = whole if measuring.TINY is None else shortened(whole)
            if (part := parts.get(name)) is not None:
                part = {"commit": record["commit"], **part, **part.get("measured", {})}
                folder, known = work / f"{record['name']}-{number}", prints.get(name)
                job = pool.submit(fingerprint, known, part, recipe, folder, code, now)
                waiting[job] = name
        for job in as_completed(waiting):
            if (found := job.result()) is not None:
                prints[waiting[job]] = found
                print(f"{record['name']}, {waiting[job]}: {describe(found)}", flush=True)
                measuring.store(record)
    judge(record, now, parts)
    measuring.store(record)


def fingerprint(
    known: Mapping[str, Any] | None,
    part: Mapping[str, Any],
    recipe: Recipe,
    folder: Path,
    code: Path,
    now: Mapping[str, Any],
) -> dict[str, Any] | None:
    """The fingerprint of a training, taken if there is none, compared with the code as it is.

    None where there is none and the checkout is not of the commit that the training is recorded of.
    """
    is_here = code == occasion.ROOT
    commit = now["commit"] if is_here else commit_in(code)
    is_recorded = is_same(commit, part["commit"])
    if known is None and not is_here and not is_recorded:
        return None
    if known is None or (not is_here and is_recorded and known["commit"] != commit):
        table = table_of(recipe) if is_here else recorded_table(part, recipe)
        losses = first_losses(table, folder, code)
        known = {**now, "commit": commit, "is_recorded": is_recorded, "losses": losses}
        known |= digests(recipe)
    if now["commit"] in (known["commit"], known.get("compared", {}).get("commit")):
        return {**known}
    found = {**now, "losses": first_losses(table_of(recipe), folder, occasion.ROOT)}
    return {**known, "compared": {**found, "agrees": agree(known, {**found, **digests(recipe)})}}


def describe(found: Mapping[str, Any]) -> str:
    """The losses of a fingerprint, and of those that it was compared with."""
    shown = [
        f"{', '.join(f'{update}: {loss:.4f}' for update, loss in each['losses'].items())} "
        f"by {each['commit']}"
        for each in (found, found.get("compared"))
        if each
    ]
    agrees = found.get("compared", {}).get("agrees")
    return "; ".join([*shown, *([] if agrees is None else ["agree" if agrees else "differ"])])


def judge(record: dict[str, Any], now: Mapping[str, Any], names: Iterable[str]) -> None:
    """Note whether a record of trainings holds by the code as it is, and if not, why."""
    prints = record["fingerprint"]
    every = [*names, *(part for figure in record["figures"] for part in figure.get("parts", ()))]
    missing = [name for name in dict.fromkeys(every) if name not in prints]
    compared = {name: each.get("compared", {}) for name, each in prints.items()}
    different = [name for name, each in compared.items() if not each.get("agrees", True)]
    late = [each["date"] for each in prints.values() if not each["is_recorded"]]
    record["held"], record["unsure"] = None, ""
    if different:
        record["unsure"] = f"losses differ: {'; '.join(different)}"
    elif late:
        record["unsure"] = f"losses are kept since {min(late)} only"
    elif missing:
        record["unsure"] = f"no losses of {'; '.join(missing)}"
    elif prints:
        record["held"] = {key: now[key] for key in ("date", "commit")}


def agree(known: Mapping[str, Any], found: Mapping[str, Any]) -> bool:
    """Whether two fingerprints have the same data, and losses that differ by rounding only."""
    within = SAME if known["machine"] == found["machine"] else OTHER

    def is_near(name: str) -> bool:
        one, other = known["losses"].get(name), found["losses"].get(name)
        return one is not None and other is not None and abs(one - other) <= within * abs(one)

    ends = {str(_LAST), _VALIDATION} & known["losses"].keys()
    before = known["losses"].keys() - ends
    is_same_end = not ends or any(map(is_near, ends))
    return known["data"] == found["data"] and all(map(is_near, before)) and is_same_end


def first_losses(table: Mapping[str, Any], work: Path, code: Path) -> dict[str, float]:
    """The losses of the first updates of a training by the code of a checkout."""
    run, log, path = (work / name for name in ("run", "log.txt", "recipe.toml"))
    shutil.rmtree(run, ignore_errors=True)
    work.mkdir(parents=True, exist_ok=True)
    path.write_text(write_toml(without_clock(table)), "utf-8")
    command = [sys.executable, "-m", "regard", "train", str(path), "--run", str(run)]
    paths = os.pathsep.join([str(code / "src"), str(code)])
    environment = {**measuring.thread_environment(1), "PYTHONPATH": paths}
    with log.open("w") as file:
        started = subprocess.Popen(
            command, cwd=code, env=environment, stdout=file, stderr=subprocess.STDOUT
        )
        try:
            while started.poll() is None and not is_complete(run):
                time.sleep(0.2)
        finally:
            started.send_signal(signal.SIGTERM)
            started.wait()
    losses = losses_of(run)
    if not losses:
        raise RuntimeError(f"{command} wrote no losses: {log.read_text('utf-8')[-3000:]}")
    shutil.rmtree(run, ignore_errors=True)
    return losses


def losses_of(run: Path) -> dict[str, float]:
    """The losses of a fingerprint, as far as a run has written them down."""
    found = {}
    for line in written(run):
        if line["split"] == "train" and line["update"] in UPDATES:
            found[str(line["update"])] = line["loss"]
        elif line["split"] == "valid" and line["update"] == _LAST:
            found[_VALIDATION] = line["loss"]
    return found


def is_complete(run: Path) -> bool:
    """Whether a run has written all losses of its fingerprint; not all have a validation part."""
    is_past = any(line["update"] > _LAST for line in written(run))
    return is_past or losses_of(run).keys() >= {str(_LAST), _VALIDATION}


def written(run: Path) -> list[dict[str, Any]]:
    """Whole lines of figures that a run has written down."""
    path = run / "metrics.jsonl"
    lines = path.read_text("utf-8").splitlines(keepends=True) if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def without_clock(table: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe whose end no clock decides, validated where its fingerprint ends."""
    training = {**table["training"], "validate_every": _LAST}
    if training.get("minutes") is not None:
        training |= {"minutes": None, "updates": _TIMED}
    return {**table, "training": training}


def digests(recipe: Recipe) -> dict[str, str]:
    """Digests of a recipe without its files, and of what is in them."""
    settings = json.dumps(settings_of(recipe), sort_keys=True, default=str)
    content = hashlib.sha256()
    if not recipe.uses_phrasebook:
        for file in (file for split in _SPLITS for file in recipe.files(split)):
            content.update(Path(file).read_bytes())
    return {
        "recipe": hashlib.sha256(settings.encode()).hexdigest()[:16],
        "data": content.hexdigest()[:16],
    }


def table_of(recipe: Recipe) -> dict[str, Any]:
    """The table of a recipe, without what a pretrained encoder brings."""
    given = recipe.given if recipe.training.get("pretrained") else None
    return {**recipe.table(), **(given or {})}


def recorded_table(part: Mapping[str, Any], recipe: Recipe) -> dict[str, Any]:
    """The recipe as a record keeps it, on the files of today's."""
    if "recipe" not in part:
        sys.exit("the record must keep the recipe for older code to train by it; it does not.")
    table = {
        k: each for k, each in part["recipe"].items() if k not in ("name", "set") and each != {}
    }
    today = table_of(recipe)
    for place, names in PLACES.items():
        if place in table:
            now = today.get(place) or {}
            known = {name: now[name] for name in names if now.get(name) is not None}
            table[place] = {**table[place], **known}
    if today["training"].get("pretrained"):
        table |= {name: today[name] for name in ("tokenizer", "model")}
    return table


def part_of(record: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    """The recorded training: the table of its name, or of its beginning; of seeds, the first."""
    waiting: list[Any] = [record["details"]]
    while waiting:
        table = waiting.pop(0)
        for key, each in table.items() if isinstance(table, Mapping) else ():
            if isinstance(each, Mapping):
                if key == name or name.startswith(f"{key} "):
                    seeds = each.get("seeds") or {}
                    first = seeds.get("1", {}) if isinstance(seeds, Mapping) else seeds[0]
                    measured = first.get("measured", each.get("measured", {}))
                    return {**first, **each, **each.get("part", {}), "measured": measured}
                waiting.append(each)
    return None


def commit_in(code: Path) -> str:
    """The commit of a checkout."""
    return (occasion.git("-C", str(code), "rev-parse", "--short", "HEAD") or "none").strip()


def is_same(one: str | None, other: str | None) -> bool:
    """Whether two names of commits, one of which may be shorter, mean the same."""
    shorter, longer = sorted((one or "", other or ""), key=len)
    return bool(shorter) and not longer.endswith("+") and longer.startswith(shorter)


def measure(name: str, work: Path) -> None:
    """Measure again by the script."""
    words = [word.replace("WORK", str(work / name)) for word in MEASURED[name]]
    command = [sys.executable, "-m", f"benchmarks.{name}", *words]
    if code := subprocess.run(command, cwd=occasion.ROOT, check=False).returncode:
        print(f"{name}: not measured, its script ended with {code}", flush=True)


def main() -> None:
    """Make sure of every record that the command line names."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="records; by default all")
    parser.add_argument("--work", type=Path, required=True, help="folder outside the repository")
    parser.add_argument("--code", type=Path, default=occasion.ROOT, help="a record's own code")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="trainings at a time")
    options = parser.parse_args()
    commit = occasion.commit()
    if measuring.TINY is None and (commit is None or commit.endswith("+")):
        sys.exit(f"the code must be that of a commit; it is that of {commit}.")
    records = {each["name"]: each for each in measuring.read_records()}
    names, start = options.names or [*SCRIPTS, *MEASURED], time.monotonic()
    work = options.work.resolve() / str(commit)
    for number, name in enumerate(names, start=1):
        minutes = (time.monotonic() - start) / 60
        print(f"{number} of {len(names)}, after {minutes:.0f} min: {name}", flush=True)
        held = records.get(name, {}).get("held") or {}
        if held.get("commit") == commit is not None:
            print(f"{name}: holds at {commit}", flush=True)
        elif name in (*SCRIPTS, *ENCODERS):
            replay(records[name], work, options.code.resolve(), options.jobs)
        else:
            measure(name, work)
    left = ", ".join(sorted(records.keys() - {*SCRIPTS, *MEASURED}))
    print(f"left as they are, since they take hours, pretrained models or other machines: {left}")


if __name__ == "__main__":
    main()
