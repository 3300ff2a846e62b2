"""Joey NMT and regard after the same 1,000 updates: BLEU, and the time to translate.

    python -m benchmarks.joey_side_by_side --work FOLDER --joey VENV/bin/python >> LOG 2>&1 &

Both train Transformer-tiny on the same 1,000 batches of Multi30k in the same order, with the same
schedule; then both translate the validation and test sentences greedily, in turn. BLEU is
computed here, cased and on detokenised text, for both alike.

Joey NMT alone needs about an hour. Each finished stage leaves a file in ``FOLDER/side_by_side``;
run again, the script goes on with the first stage that has none. Delete the file to measure a
stage anew.
"""

import argparse
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import sacrebleu

from benchmarks import measuring
from benchmarks.measuring import Figure, Spread
from benchmarks.peers import joey, prepare_multi30k, processes

OURS = "benchmarks.peers.regard_quality"
SPLITS = ("val", "test_2016_flickr")
_TINY = "Transformer-tiny, Multi30k en→de"


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """What is compared, where, and how often.

    Attributes:
        work: Folder of the prepared corpus.
        joey_python: Python of Joey NMT's environment; None leaves it out.
        updates: Batches both sides train on.
        rounds: How often both sides translate.
        threads: Of both sides.
    """

    work: Path
    joey_python: Path | None
    updates: int
    rounds: int
    threads: int

    @property
    def folder(self) -> Path:
        """Where the stages leave their results."""
        return self.work / "side_by_side" / str(self.updates)

    @property
    def batches_file(self) -> Path:
        """The batches both sides train on."""
        return prepare_multi30k.write_batches(self.work, updates=self.updates)


def main() -> None:
    """Read the arguments, go through the stages, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=_Raw)
    parser.add_argument("--corpora", type=Path, default=measuring.corpora())
    parser.add_argument("--work", type=Path, required=True, help="folder outside the repository")
    parser.add_argument("--joey", type=Path, help="python of its environment; left out without")
    parser.add_argument("--updates", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3, help="how often both sides translate")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--dry", action="store_true", help="print, and write no record")
    given = parser.parse_args()
    setting = Setting(
        work=given.work.resolve(),
        joey_python=given.joey.absolute() if given.joey else None,
        updates=given.updates,
        rounds=given.rounds,
        threads=given.threads,
    )
    prepare_multi30k.prepare(given.corpora, setting.work)
    setting.folder.mkdir(parents=True, exist_ok=True)
    results = run_stages(setting)
    if results is None:
        return
    if setting.joey_python is None:
        print("left out: Joey NMT, as --joey names no Python that has it. No record.")
        return
    figures, details = summarise(results, setting)
    for figure in figures:
        print(f"{figure.what}: {figure.ours}; {figure.beside}; {figure.note}")
    if not given.dry:
        measuring.write_record(
            "joey_side_by_side",
            title="Joey NMT and regard after the same updates on the same batches",
            figures=figures,
            details=details,
            packages=("torch", "regard", "sacrebleu"),
            started_on=results["joey_train"]["machine"],
        )


def run_stages(setting: Setting) -> dict[str, Any] | None:
    """Every stage's result, measured now or before; None where regard cannot be measured yet."""
    stages: dict[str, Callable[[], Mapping[str, Any]]] = {
        "joey_train": lambda: _train_joey(setting),
        "regard_train": lambda: _train_ours(setting),
    }
    for turn in range(1, setting.rounds + 1):
        stages[f"joey_translate_{turn}"] = lambda: _translate_joey(setting)
        stages[f"regard_translate_{turn}"] = lambda: _translate_ours(setting)
    if setting.joey_python is None:
        stages = {name: work for name, work in stages.items() if name.startswith("regard")}
    try:
        return {name: _stage(setting, name, work) for name, work in stages.items()}
    except processes.UnavailableError as error:
        print(f"stopped: {error}")
        return None


def summarise(results: Mapping[str, Any], setting: Setting) -> tuple[list[Figure], dict[str, Any]]:
    """The lines of docs/measured.md and the record's details, from the results of all stages."""
    details: dict[str, Any] = {
        "threads": setting.threads,
        "updates": setting.updates,
        "training": {side: results[f"{side}_train"]["speed"] for side in ("joey", "regard")},
        "bleu": {"source copied": {split: _copied(setting.work, split) for split in SPLITS}},
        "signature": _bleu(["a"], ["a"])["signature"],
        "seconds": {},
        "outputs": {},
    }
    for side in ("joey", "regard"):
        turns = [results[f"{side}_translate_{n}"] for n in range(1, setting.rounds + 1)]
        details["seconds"][side] = {
            split: Spread.of(turn[split]["seconds"] for turn in turns).table() for split in SPLITS
        }
        details["bleu"][side] = {
            split: _score(setting.work, split, turns[-1][split]["lines"]) for split in SPLITS
        }
        details["outputs"][side] = turns[-1]["val"]["lines"][:10]
    details["bleu"]["joey, by its own count"] = {
        split: results["joey_translate_1"][split]["bleu"] for split in SPLITS
    }
    bleu, seconds = details["bleu"], details["seconds"]
    figures = [
        Figure(
            what=f"{_TINY}: BLEU on {split} after the same {setting.updates:,} updates",
            ours=f"{bleu['regard'][split]:.1f}",
            beside=f"Joey NMT 2.3.0: {bleu['joey'][split]:.1f}; "
            f"source copied: {bleu['source copied'][split]:.1f}",
            note="greedy, cased, detokenised",
        )
        for split in SPLITS
    ]
    mine, theirs = seconds["regard"]["val"], seconds["joey"]["val"]
    figures.append(
        Figure(
            what=f"{_TINY}: translating 1,014 sentences, greedy",
            ours=f"{mine['median']:.1f} s",
            beside=f"Joey NMT 2.3.0: {theirs['median']:.1f} s",
            note=f"{setting.threads} thread{'s' * (setting.threads > 1)}, ±{mine['relative']:.0%}",
        )
    )
    return figures, details


def _stage(setting: Setting, name: str, work: Callable[[], Mapping[str, Any]]) -> Any:
    path = setting.folder / f"{name}.json"
    if path.exists():
        return json.loads(path.read_text("utf-8"))
    print(f"{time.strftime('%H:%M:%S')}  {name} …", flush=True)
    machine, start = measuring.machine(), time.perf_counter()
    result = {**work(), "machine": machine, "wall": round(time.perf_counter() - start, 2)}
    half_written = path.with_suffix(".part")
    half_written.write_text(json.dumps(result, ensure_ascii=False), "utf-8")
    half_written.replace(path)
    print(f"{time.strftime('%H:%M:%S')}  {name}: {result['wall']:.0f} s", flush=True)
    return result


def _train_joey(setting: Setting) -> Mapping[str, Any]:
    assert setting.joey_python is not None
    updates, given = joey.train(
        setting.joey_python,
        setting.batches_file,
        model_dir=setting.folder / "joey",
        threads=setting.threads,
    )
    return {
        "speed": joey.speed(updates, given, warmup=0),
        "losses": [update.loss for update in updates],
    }


def _train_ours(setting: Setting) -> Mapping[str, Any]:
    run = setting.folder / "regard"
    return {
        "speed": processes.answer(OURS, "train", setting.batches_file, run, threads=setting.threads)
    }


def _translate_joey(setting: Setting) -> Mapping[str, Any]:
    assert setting.joey_python is not None
    translated = joey.translate(
        setting.joey_python,
        setting.work,
        model_dir=setting.folder / "joey",
        updates=setting.updates,
        threads=setting.threads,
    )
    return {split: asdict(translated[split]) for split in SPLITS}


def _translate_ours(setting: Setting) -> Mapping[str, Any]:
    run = setting.folder / "regard"
    return processes.answer(OURS, "translate", run, setting.work, threads=setting.threads)


def _score(work: Path, split: str, lines: list[str]) -> float:
    references = prepare_multi30k.read_lines(work / f"{split}.{prepare_multi30k.TARGET}")
    score: float = _bleu(lines, references)["score"]
    return score


def _copied(work: Path, split: str) -> float:
    source = prepare_multi30k.read_lines(work / f"{split}.{prepare_multi30k.SOURCE}")
    return _score(work, split, source)


def _bleu(lines: list[str], references: list[str]) -> dict[str, Any]:
    metric = sacrebleu.BLEU()
    score = metric.corpus_score(lines, [references]).score
    return {"score": round(score, 2), "signature": str(metric.get_signature())}


class _Raw(argparse.RawDescriptionHelpFormatter):
    """Keeps the module docstring's lines as they are."""


if __name__ == "__main__":
    main()
