"""Documentation with its markup, English to Chinese; and one model for talk and documentation.

``python-docs-en-zh`` has paragraphs of Python's documentation with their reStructuredText. Beside
the recipe that reads each span of markup as one sign and puts it back, the same model that spells
all of it. Then one model each way for Tatoeba's sentences and the documentation together, the first
word of a source saying which it is. Markup is intact where an output has each span of its source
as often, and no other.

    python -m benchmarks.markup --work W [--row NAME …] [--threads 1]

A row is trained in some 40 minutes on one core, or taken from its folder in ``W``. Run again after
an interruption, it goes on where it was. With ``--row`` a part is done: it goes into the record
beside the rows of the same recipes that are there, and the record says what is not in it.
"""

import argparse
import gzip
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks import measuring
from benchmarks.training import train
from regard.cli.recipes import packaged_recipe
from regard.config import read_toml
from regard.inference import Predictor
from regard.metrics import bleu, chrf
from regard.tasks import recipe_from_table
from regard.text import Pair, PairLayout, read_pairs
from regard.text.placeholders import MARKUP, is_intact

DOCS, TALK = "python-docs-en-zh", "cmn-eng"
TAGS = {DOCS: "<docs>", TALK: "<talk>"}
_FILES = {
    DOCS: {"train": "train.tsv.gz", "valid": "valid.tsv.gz", "test": "test.tsv.gz"},
    TALK: {"train": "train.tsv.gz", "valid": "val.tsv", "test": "test.tsv"},
}
_SHOWN = 10


@dataclass(frozen=True, kw_only=True)
class Row:
    """A model.

    Attributes:
        title: What a table calls it.
        recipe: The packaged one.
        columns: Of source and target: English is the first.
        corpora: What it learns from; of several, the first word says which.
        placeholders: Whether markup is read as signs.
    """

    title: str
    recipe: str = "transformer-markup"
    columns: tuple[int, int] = (1, 2)
    corpora: tuple[str, ...] = (DOCS,)
    placeholders: str = "rst"


ROWS = {
    "signs": Row(title="markup as signs, put back"),
    "spelled": Row(title="markup spelled", placeholders="none"),
    "en-zh": Row(title="with Tatoeba, tagged", recipe="transformer-domains", corpora=(DOCS, TALK)),
    "zh-en": Row(
        title="with Tatoeba, tagged",
        recipe="transformer-domains",
        columns=(2, 1),
        corpora=(DOCS, TALK),
    ),
}


def pairs_of(corpus: str, split: str, row: Row, *, merge: bool = False) -> list[Pair]:
    """The pairs of a part of a corpus."""
    layout = PairLayout(columns=row.columns, merge_references=merge)
    return list(read_pairs(measuring.corpora() / corpus / _FILES[corpus][split], layout=layout))


def source_of(pair: Pair, corpus: str, row: Row) -> str:
    """What the model reads: with several corpora, the tag first."""
    return f"{TAGS[corpus]} {pair.source}" if len(row.corpora) > 1 else pair.source


def written(row: Row, split: str, folder: Path) -> Path:
    """A file with the pairs of all the row's corpora."""
    path = folder / f"{'-'.join(row.corpora)}-{row.columns[0]}{row.columns[1]}.{split}.tsv.gz"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with gzip.open(path, "wt", encoding="utf-8") as file:
            for corpus in row.corpora:
                for pair in pairs_of(corpus, split, row):
                    file.write(f"{source_of(pair, corpus, row)}\t{pair.target}\n")
    return path


def settings_of(row: Row) -> dict[str, Any]:
    """The recipe of a row, without files."""
    table: dict[str, Any] = read_toml(packaged_recipe(row.recipe))
    languages = ["en", "zh"] if row.columns == (1, 2) else ["zh", "en"]
    table["data"] |= dict(zip(("source_language", "target_language"), languages, strict=True))
    pieces = table["tokenizer"]["vocab_size"]
    table["tokenizer"]["vocab_size"] = measuring.sized(pieces, None)  # few lines have few
    table["tokenizer"]["placeholders"] = row.placeholders
    return table


def recipe_table(row: Row, work: Path) -> dict[str, Any]:
    """The recipe of a row."""
    table = settings_of(row)
    table["data"] |= {split: [str(written(row, split, work))] for split in ("train", "valid")}
    return table


def measured(predictor: Predictor, corpus: str, row: Row) -> dict[str, Any]:
    """BLEU, chrF and how often markup is intact, of the test part of a corpus."""
    pairs = pairs_of(corpus, "test", row, merge=True)
    found = [one[0] for one in predictor.translate([source_of(p, corpus, row) for p in pairs])]
    outputs, references = [one.text for one in found], [pair.references for pair in pairs]
    language = predictor.sequence_task.data.target_language
    resamples = measuring.sized(1000, 10)
    return {
        "bleu": bleu(outputs, references, target_language=language, resamples=resamples).to_dict(),
        "chrf": chrf(outputs, references, resamples=resamples).to_dict(),
        "source_bleu": bleu([p.source for p in pairs], references, target_language=language).value,
        "markup": _intact(outputs, pairs),
        "references": _intact([pair.target for pair in pairs], pairs),
        "outputs": outputs[:_SHOWN],
    }


def _intact(texts: Iterable[str], pairs: Sequence[Pair]) -> dict[str, float]:
    """In how many lines markup is intact: in percent of those with markup, and of all."""
    kept = [
        (is_intact(text, pair.source, "rst"), MARKUP["rst"].search(pair.source) is not None)
        for text, pair in zip(texts, pairs, strict=True)
    ]
    marked = [right for right, is_marked in kept if is_marked]
    return {
        "lines": len(kept),
        "lines_with_markup": len(marked),
        "of_lines": round(100 * sum(right for right, _ in kept) / len(kept), 2),
        "of_lines_with_markup": round(100 * sum(marked) / len(marked), 2) if marked else 100.0,
    }


def figure_of(row: Row, corpus: str, found: Mapping[str, Any], updates: int) -> measuring.Figure:
    """A line of the table."""
    way = "en→zh" if row.columns == (1, 2) else "zh→en"
    markup, known = found["markup"], found["references"]
    ours = f"{found['bleu']['value']:.1f} ± {found['bleu']['margin']:.1f}"
    ours += f" / {found['chrf']['value']:.1f}"
    beside = f"the source itself: {found['source_bleu']:.1f}"
    if corpus == DOCS:
        ours += f" / {markup['of_lines']:.1f} %"
        beside += f"; references: {known['of_lines']:.1f} %"
    name = "Python's documentation" if corpus == DOCS else "Tatoeba"
    what = "BLEU / chrF / lines with markup intact" if corpus == DOCS else "BLEU / chrF"
    return measuring.Figure(
        what=f"{name} {way}, {what}: {row.title}",
        ours=ours,
        beside=beside,
        note=f"{updates:,} updates, {markup['lines']:,} test lines, "
        f"{markup['lines_with_markup']:,} with markup",
    )


def main() -> None:
    """Train or take each row, measure it, write the record."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=Path, required=True, help="folder of texts and runs")
    parser.add_argument("--row", nargs="+", choices=list(ROWS), help="some")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--dry", action="store_true", help="write no record")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    for name in arguments.row or measuring.sized([*ROWS], ["signs", "zh-en"]):
        before, row = measuring.machine(), ROWS[name]
        trained = train(recipe_from_table(recipe_table(row, arguments.work)), arguments.work / name)
        summary = trained.summary
        facts = {"updates": summary["updates"], "minutes": round(summary["seconds"] / 60, 1)}
        found = {corpus: measured(trained.predictor, corpus, row) for corpus in row.corpora}
        outputs = [output for one in found.values() for output in one["outputs"]]
        entry = {"training": facts, **found}
        print(*figures_of(name, entry), *outputs, sep="\n", flush=True)
        if arguments.dry:
            continue
        measuring.write_rows(
            "markup",
            {name: entry},
            title="Python's documentation, English and Chinese, with its markup; "
            "with Tatoeba, tagged",
            recipes={one: settings_of(other) for one, other in ROWS.items()},
            figures=figures_of,
            details={"threads": arguments.threads},
            packages=("torch", "sentencepiece", "sacrebleu"),
            started_on=before,
        )


def figures_of(name: str, entry: Mapping[str, Any]) -> list[measuring.Figure]:
    """The lines of a row, one of each corpus."""
    row, updates = ROWS[name], entry["training"]["updates"]
    return [figure_of(row, corpus, entry[corpus], updates) for corpus in row.corpora]


if __name__ == "__main__":
    main()
