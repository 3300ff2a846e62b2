"""Chinese to English on Tatoeba's short sentences: three models, equal budgets in CPU minutes.

A recurrent network with one fixed context vector, the same with additive attention, and a
Transformer of about the same size train for the same CPU time. How text is cut into pieces is
chosen first, on the validation set: characters on the Chinese side and words on the English one,
or subwords on both. The test set is read once, after training. Its pairs are merged by Chinese
sentence, so a sentence with several English translations has several references.

    python -m benchmarks.chinese_english --work W [--minutes 6] [--threads 1] [--dry]

Run again after an interruption, it goes on where it was.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import torch

from benchmarks import measuring
from benchmarks.equal_budgets import (
    ADDITIVE,
    SYSTEMS,
    argument_parser,
    folder_name,
    recipe_table,
    train_for,
    translate,
)
from regard.inference.evaluation import compare, evaluate
from regard.inference.report import TextReport
from regard.metrics import bleu, chrf
from regard.text import Pair, PairLayout, read_pairs

# English stands in the first column, Chinese in the second.
COLUMNS = (2, 1)
TOKENIZERS: dict[str, dict[str, Any]] = {
    "characters and words": {"type": "words", "shared": False, "min_count": 2},
    "subwords": {"type": "bpe", "shared": False, "vocab_size": 4000},
}
# The share of the budget that the choice between tokenizers gets, for each.
TRIAL_SHARE = 0.25


def data_table(corpora: Path) -> dict[str, Any]:
    home = corpora / "cmn-eng"
    return {
        "train": str(home / "train.tsv.gz"),
        "valid": str(home / "val.tsv"),
        "source_language": "zh",
        "target_language": "en",
        "columns": list(COLUMNS),
        "max_length": 100,
    }


def read_split(corpora: Path, split: str, *, merge: bool = True) -> list[Pair]:
    layout = PairLayout(columns=COLUMNS, merge_references=merge)
    return list(read_pairs(corpora / "cmn-eng" / split, layout=layout))


def choose_tokenizer(
    work: Path, corpora: Path, minutes: float
) -> tuple[str, dict[str, dict[str, Any]]]:
    """The cut with the higher BLEU on the validation set after a short training, and all trials."""
    pairs = read_split(corpora, "val.tsv")
    sources, references = [p.source for p in pairs], [p.references for p in pairs]
    trials = {}
    for name, tokenizer in TOKENIZERS.items():
        table = recipe_table(
            ADDITIVE, data=data_table(corpora), tokenizer=tokenizer, minutes=TRIAL_SHARE * minutes
        )
        predictor, facts = train_for(table, work / folder_name("trial", name))
        outputs = translate(predictor, sources)
        trials[name] = {
            "tokenizer": tokenizer,
            "training": facts,
            "bleu": bleu(outputs, references).to_dict(),
            "chrf": chrf(outputs, references).to_dict(),
        }
        print(f"{name}: BLEU {trials[name]['bleu']['value']:.2f} on the validation set")
    return max(trials, key=lambda name: float(trials[name]["bleu"]["value"])), trials


def figures(
    reports: Mapping[str, TextReport], duels: Mapping[str, Any], minutes: float, count: int
) -> list[measuring.Figure]:
    """One line for each system; the simplest is what the others are read beside."""
    names = list(reports)
    lines = []
    for name, report in reports.items():
        score, nearness = report.scores[0], report.score("chrF2")
        always = report.baselines[-1]
        trivial = {score.name: score.value for score in always.scores}
        beside = f"{always.name}: {trivial['BLEU']:.2f} / {trivial['chrF2']:.2f}"
        if name != names[0]:
            p_value = duels[f"{names[0]} → {name}"]["comparisons"][0]["p_value"]
            beside += f"; differs from {names[0]} in BLEU with p = {p_value:.4f}"
        lines.append(
            measuring.Figure(
                what=f"Tatoeba zh→en, BLEU / chrF: {name}",
                ours=f"{score.value:.2f} ± {score.margin or 0:.2f} / {nearness:.2f}",
                beside=beside,
                note=f"{minutes:g} CPU minutes, {count} test sentences",
            )
        )
    return lines


def main() -> None:
    """Choose the tokenizer, train the three, compare them, write the record."""
    arguments = argument_parser(__doc__ or "", minutes=6).parse_args()
    torch.set_num_threads(arguments.threads)
    before, corpora, minutes = measuring.machine(), measuring.corpora(), arguments.minutes
    chosen, trials = choose_tokenizer(arguments.work, corpora, minutes)
    test = read_split(corpora, "test.tsv")
    sources, references = [p.source for p in test], [p.references for p in test]
    targets = [pair.target for pair in read_split(corpora, "train.tsv.gz", merge=False)]
    training: dict[str, Any] = {}
    outputs: dict[str, Sequence[str]] = {}
    reports: dict[str, TextReport] = {}
    for system in SYSTEMS:
        table = recipe_table(
            system, data=data_table(corpora), tokenizer=TOKENIZERS[chosen], minutes=minutes
        )
        predictor, facts = train_for(table, arguments.work / folder_name(system))
        training[system] = {**facts, "model": table["model"], "settings": table["training"]}
        outputs[system] = translate(predictor, sources)
        reports[system] = evaluate(
            outputs[system],
            references,
            sources=sources,
            source_language="zh",
            target_language="en",
            training_targets=targets,
        )
        print(f"{system}\n{reports[system]}", flush=True)
    duels = {}
    for one, other in combinations(SYSTEMS, 2):
        duel = compare(
            outputs[one], outputs[other], references, sources=sources, target_language="en"
        )
        duels[f"{one} → {other}"] = duel.to_dict()
        print(f"{one} → {other}\n{duel}")
    lines = figures(reports, duels, minutes, len(test))
    for line in lines:
        print(line)
    if arguments.dry:
        return
    measuring.write_record(
        "chinese_english",
        title="Chinese to English on Tatoeba, three models with equal budgets in CPU minutes",
        figures=lines,
        details={
            "cpu_minutes_each": minutes,
            "threads": arguments.threads,
            "test_sentences": len(test),
            "test_sentences_with_several_references": sum(len(p.references) > 1 for p in test),
            "tokenizer_chosen_on_validation": chosen,
            "tokenizer_trials": trials,
            "training": training,
            "reports": {name: report.to_dict() for name, report in reports.items()},
            "comparisons": duels,
        },
        packages=("torch", "sacrebleu", "sentencepiece"),
        started_on=before,
    )


if __name__ == "__main__":
    main()
