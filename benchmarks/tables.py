"""The figures of README.md, README.zh.md, docs/measured.md and `regard recipes`, of the records.

python -m benchmarks.tables           write them
python -m benchmarks.tables --check   fail, and show why, if they are not what is there
"""

import argparse
import difflib
import re
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import ages, measuring, occasion, quoting, shipped
from benchmarks.pages import Group, measured
from benchmarks.short_table import short_table

BEGIN, END = "<!-- figures:begin -->", "<!-- figures:end -->"
MEASURED = "docs/measured.md"


# The figures that sentences take numbers from: a record, and words that one of its figures has,
# with one thread where they were measured with several.
QUOTED = {
    "additive": "additive_attention: forward + backward & threads: 1",
    "additive_memory": "additive_attention: peak memory & threads: 1",
    "window": "attention: Window of 256 & threads: 1",
    "documents": "attention: 64 documents & threads: 1",
    "documents_by_two": "attention: 64 documents & threads: 2",
    "gaussian": "attention: Gaussian kernel & threads: 1",
    "own_softmax": "attention: own softmax & threads: 1",
    "sparsemax": "attention: Sparsemax & threads: 1",
    "entmax": "attention: Entmax-1.5 & threads: 1",
    "layer_in_bfloat16": "attention: automatic precision & threads: 1",
    "masked_call": "attention: N 8, under & threads: 1",
    "summary": "inspection: N = 8,192, H 8 & threads: 1",
    "causal_summary": "inspection: N = 8,192, causal & threads: 1",
    "watched": "inspection: N = 16,384 & threads: 1",
    "fixed": "attention_mechanisms: RNN, fixed context",
    "attending": "attention_mechanisms: RNN, additive",
    "general": "attention_mechanisms: Luong general",
    "location": "attention_mechanisms: Luong location",
    "local_m": "attention_mechanisms: local-m",
    "local_p": "attention_mechanisms: local-p",
    "best": "attention_mechanisms: Transformer |",
    "batch_norm": "attention_mechanisms: batch norm",
    "coverage": "attention_mechanisms: RNN, coverage",
    "restricted": "attention_mechanisms: Transformer, restricted",
    "multi30k": "translation: tokenised lower-cased",
    "tatoeba": "translation: Tatoeba & `transformer-muon`",
    "tatoeba_tiny": "translation: Tatoeba & `transformer-tiny`",
    "tatoeba_rnn": "translation: Tatoeba & `rnn-attention`",
    "tatoeba_conv": "translation: Tatoeba & `conv-seq2seq`",
    "torch_modules": "training_speed: tiny, identical batches, sorted by length | `nn & 1 thread",
    "torch_modules_bf16": "training_speed: tiny, & sorted by length, bfloat16 & 1 thread",
    "trained_rnn": "training_speed: GRU & sorted by length | `nn & 1 thread",
    "trained_classifier": "training_speed: labels & sorted by length | `nn & 1 thread",
    "trained_tagger": "training_speed: tags & sorted by length | `nn & 1 thread",
    "beam": "decoding_speed: 6 + 6 layers & 32 sentences at once, a beam & threads: 1",
    "beam_by_two": "decoding_speed: 6 + 6 layers & 32 sentences at once, a beam & threads: 2",
    "single": "decoding_speed: 6 + 6 layers & one sentence at a time & threads: 1",
    "trained_single": "decoding_speed: trained & one sentence at a time & threads: 1",
    "trained": "decoding_speed: trained & 32 sentences at once, a beam & threads: 1",
    "trained_by_two": "decoding_speed: trained & 32 sentences at once, a beam & threads: 2",
    "prompts": "generation_speed: 16 prompts, greedy & threads: 1",
    "prompt": "generation_speed: one prompt, greedy & threads: 1",
    "nanogpt": "language_modelling: nanoGPT's CPU recipe",
    "shakespeare": "language_modelling: our own recipe",
    "books": "language_modelling: gutenberg",
    "brown": "language_modelling: brown",
    "sst2": "classification: sst2",
    "hotels": "classification: chnsenticorp",
    "shops": "classification: characters and pairs",
    "shops_aspect": "classification: convolution",
    "phrases_hotels": "phrases: chnsenticorp",
    "phrases_goods": "phrases: online-shopping",
    "few_sst2": "pretraining: sst2",
    "few_hotels": "pretraining: chnsenticorp",
    "few_shops": "pretraining: online-shopping",
    "speech": "tagging: Parts of speech",
    "wnut": "tagging: Entities, WNUT",
    "msra": "tagging: Entities, MSRA",
    "crf": "tagging: Training step",
    "spans": "question_answering: Answers in English",
    "pretrained_spans": "question_answering: begins with a masked",
    "chinese_spans": "question_answering: Answers in Chinese",
    "choices": "question_answering: Multiple choice",
    "esim": "question_answering: ESIM",
    "side_by_side": "question_answering: read side by side",
    "hop": "question_answering: one hop",
    "written": "documents: RNN, copying",
    "not_copied": "documents: no copying",
    "written_transformer": "documents: Transformer",
    "titles": "summarisation: ACL Anthology & Transformer, copying",
    "chinese_titles": "summarisation: CSL & Transformer, copying",
    "chinese_masked": "summarisation: CSL & masked words",
    "demo": "demo: training / all around",
    "demo_right": "demo: right outputs",
    "help": "start_up: --help",
    "predict": "start_up: regard predict",
    "gpu_additive": "gpu_attention: Additive",
    "gpu_dot": "gpu_attention: Dot product",
    "gpu_window": "gpu_attention: Window",
    "gpu_documents": "gpu_attention: 64 documents",
    "dialogues": "summarisation: DialogSum & Transformer, copying",
    "abstracts": "summarisation: SciTLDR & Transformer, copying",
    "pointer": "summarisation: SciTLDR & pointer-generator",
    "taken_out": "summarisation: SciTLDR & sentences taken out",
}

# What each group of figures shows.
_GROUPS = tomllib.loads((Path(__file__).parent / "measured.toml").read_text("utf-8"))
GROUPS = tuple(
    Group(
        title=title,
        figures=tuple(each["figures"]),
        says=each["says"],
        holds=tuple(each.get("holds", ())),
    )
    for title, each in _GROUPS.items()
)


_READMES = {"README.md": 0, "README.zh.md": 1}


def main() -> None:
    """Write the pages, or check those that are there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=_Raw)
    parser.add_argument("--check", action="store_true", help="change nothing, fail if out of date")
    parser.add_argument("--pages", type=Path, default=occasion.ROOT, help="where the READMEs lie")
    parser.add_argument("--records", type=Path, default=measuring.RECORDS)
    arguments = parser.parse_args()
    try:
        wanted = pages(measuring.read_records(arguments.records), arguments.pages)
    except quoting.QuoteError as problem:
        sys.exit(f"benchmarks/tables.py and the records differ: {problem}")
    stale = {path: page for path, page in wanted.items() if _there(path) != page}
    for path, page in stale.items():
        if arguments.check:
            print(_difference(path, page))
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(page, "utf-8")
    if arguments.check and stale:
        names = ", ".join(path.name for path in stale)
        sys.exit(f"{names} and the records differ. Run: python -m benchmarks.tables")


def pages(records: Sequence[Mapping[str, Any]], folder: Path) -> dict[Path, str]:
    """Each page as the records want it, and the list of those that are old."""
    quoted, old = quoting.numbers(records, QUOTED), ages.old_records(records)
    wanted = {
        folder / ages.NAMES: "".join(f"{name}\n" for name in old),
        folder / MEASURED: measured(records, quoted, GROUPS, old),
        folder / shipped.FIGURES: shipped.recipe_figures(quoted),
    }

    def is_old(sentence: str) -> bool:
        return not set(old).isdisjoint(_names(sentence))

    for name, language in _READMES.items():
        text = _there(folder / name)
        wanted[folder / name] = insert(text, short_table(quoted, language, is_old), name=name)
    return wanted


def _names(sentence: str) -> set[str]:
    """The records that a sentence quotes."""
    return {QUOTED[name].partition(":")[0] for name in re.findall(r"{(\w+)\.", sentence)}


def insert(text: str, table: str, *, name: str) -> str:
    """The text with the table between its two markers, in the place of what was there."""
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        sys.exit(f"{name} must have one {BEGIN} and, after it, one {END}")
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n{table}\n{END}{rest.split(END)[1]}"


def _there(path: Path) -> str:
    return path.read_text("utf-8") if path.exists() else ""


def _difference(path: Path, page: str) -> str:
    old, new = _there(path).splitlines(), page.splitlines()
    return "\n".join(difflib.unified_diff(old, new, path.name, "benchmarks/records", lineterm=""))


class _Raw(argparse.RawDescriptionHelpFormatter):
    """Keeps the module docstring's lines as they are."""


if __name__ == "__main__":
    main()
